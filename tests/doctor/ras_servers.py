#!/usr/bin/env python3
"""Simulated NCCL RAS servers: a good one, one of an older release, and some broken ones. Prints its port, then
answers for ever.

	ras_servers.py good|old|http|flood|silent|slow|closes|garbage|nested|cut
	ras_servers.py RELEASE ANSWER COMMANDS

The second form plays a release, 2.24 to 2.32: it knows that release's commands and answers with ANSWER.txt and ANSWER.json.
Commands that it got are appended to the file COMMANDS. The first connection of a "shy" one stays silent, like a stopped process.
"""
import os
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


DIAGNOSTICS = """n1:7 NCCL DIAG === RAS Diagnostics ===
n1:7 NCCL DIAG [OK]   GPU inventory: 8x NVIDIA H200 per node consistent across 3 ranks in comm 0x1
n1:7 NCCL DIAG [INFO] NVLink: inactive link(s) on rank(s) {2} across 3 ranks in comm 0x1
n1:7 NCCL DIAG RAS diagnostics completed in 12.5 ms across 3 RAS peers
"""


def play(conn, release, name, commands):
    """As client_support.cc of that release: an unknown command leaves the connection open."""
    minor = int(release.split(".")[1])
    ending = "txt"
    for line in lines_of(conn):
        with open(commands, "a", encoding="utf-8") as file:
            file.write(line + "\n")
        if line.startswith("client protocol "):
            conn.sendall(b"SERVER PROTOCOL 2\n")
        elif line.startswith("timeout "):
            conn.sendall(b"OK\n")
        elif line in ("set format json", "set format text") and minor >= 28:
            ending = "json" if line.endswith("json") else "txt"
            conn.sendall(b"OK\n")
        elif line in ("status", "verbose status"):
            with open(name + "." + ending, "rb") as file:
                conn.sendall(file.read())
            return
        elif line == "diagnostics" and minor >= 31:
            conn.sendall(DIAGNOSTICS.encode() if ending == "txt" else b"ERROR: diagnostics only supports text output\n")
            return
        elif line.startswith("monitor") and minor >= 29:
            conn.sendall(b"OK\n")
        else:
            conn.sendall(b"ERROR: Unknown command " + line.encode() + b"\n")


BROKEN = {
    "garbage": os.urandom(100000),
    "nested": b'{"communicators": ' + b"[" * 100000,
    "cut": b'{"nccl_version": "2.30.7", "communicators": [ { "hash": "0x1", "ranks": [ {"rank": 0, "pid": 1',
}
silent_left = 1


def answer(conn, kind):
    global silent_left
    try:
        if kind == "shy" and silent_left > 0:
            silent_left -= 1
            time.sleep(60)
        elif kind == "shy":
            play(conn, "2.30", sys.argv[2], sys.argv[3])
        elif kind[0] == "2":
            play(conn, kind, sys.argv[2], sys.argv[3])
        elif kind in BROKEN:
            conn.sendall(b"SERVER PROTOCOL 2\nOK\nOK\n" + BROKEN[kind])
        elif kind in ("good", "old"):
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
