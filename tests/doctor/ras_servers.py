#!/usr/bin/env python3
"""Simulated NCCL RAS servers: a good one, one of an older release, and some broken ones. Prints its port, then
answers for ever.

	ras_servers.py good|old|http|flood|silent|slow|closes
"""
import socket
import sys
import threading
import time

ANSWER = "NCCL version 2.28.9 compiled with CUDA 12.8\nJob summary\n===========\n  1 process MISSING\x1b[31m\n"


def lines_of(conn):
    buffer = b""
    while True:
        while b"\n" in buffer:
            line, buffer = buffer.split(b"\n", 1)
            yield line.decode().lower()
        got = conn.recv(4096)
        if not got:
            return
        buffer += got


def behave(conn, has_json):
    is_json = False
    for line in lines_of(conn):
        if line.startswith("client protocol"):
            conn.sendall(b"SERVER PROTOCOL 2\n")
        elif line.startswith("timeout "):
            conn.sendall(b"OK\n")
        elif line == "set format json":
            is_json = has_json
            conn.sendall(b"OK\n" if has_json else b"ERROR: Unknown command\n")
        elif line == "verbose status":
            text = '{"nccl_version": "2.28.9"}\n' if is_json else ANSWER
            for i in range(0, len(text), 7):
                conn.sendall(text[i : i + 7].encode())
            return
        else:
            conn.sendall(b"ERROR: " + line.encode() + b"\n")


def answer(conn, kind):
    try:
        if kind in ("good", "old"):
            behave(conn, kind == "good")
        elif kind == "http":
            conn.sendall(b"HTTP/1.1 400 Bad Request\r\nServer: \x1b[2J\r\n\r\n")
        elif kind == "flood":
            conn.sendall(b"SERVER PROTOCOL 2\nOK\n")
            while True:
                conn.sendall(b"A" * 65536)
        elif kind == "silent":
            time.sleep(60)
        elif kind == "slow":
            for byte in b"SERVER PROTOCOL 2\nOK\n" + b"z" * 1000:
                conn.sendall(bytes([byte]))
                time.sleep(0.5)
    except OSError:
        pass
    finally:
        conn.close()


def main():
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    while True:
        conn, _ = server.accept()
        threading.Thread(target=answer, args=(conn, sys.argv[1]), daemon=True).start()


main()
