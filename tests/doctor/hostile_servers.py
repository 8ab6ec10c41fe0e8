"""Malicious servers, and a good one: each on its own port on 127.0.0.1.

Prints a line "NAME PORT" for each, then "ready", and serves until its standard input ends. The requests of a
server are written to the given directory, a file per server: one line per request."""

import gzip
import os
import socket
import sys
import threading
import time

asked_in = sys.argv[1] if len(sys.argv) > 1 else None
file_of = dict(word.split("=", 1) for word in sys.argv[2:])


def read_request(client):
    got = b""
    while b"\r\n\r\n" not in got:
        more = client.recv(65536)
        if not more:
            break
        got += more
    return got.decode("latin-1")


def answer(client, body, status="200 OK", headers=""):
    head = "HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n" % (status, len(body), headers)
    client.sendall(head.encode() + body)


def good(client, request):
    """Answers with the request and its credentials, or with the current content of one of the given files."""
    path = request.split(" ")[1] if " " in request else ""
    if path.partition("?")[0] in file_of:
        with open(file_of[path.partition("?")[0]], "rb") as source:
            answer(client, source.read())
        return
    who = [line for line in request.split("\r\n") if line.lower().startswith("authorization:")]
    answer(client, (path + "\n" + "\n".join(who)).encode())


def packed(client, request):
    answer(client, gzip.compress(b"unpacked\n" * 1000), headers="Content-Encoding: gzip\r\n")


def silent(client, request):
    time.sleep(600)


def drip(client, request):
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    for _ in range(6000):
        client.sendall(b"x")
        time.sleep(0.1)


def drip_head(client, request):
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 6000:
        client.sendall(bytes([byte]))
        time.sleep(0.1)


def garbage(client, request):
    state = 7
    data = bytearray()
    for _ in range(5000):
        state = (state * 1103515245 + 12345) % 2**31
        data.append(state >> 16 & 0xFF)
    client.sendall(bytes(data))


def huge(client, request):
    """A gigabyte with a Content-Length."""
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    for _ in range(1024):
        client.sendall(bytes(1 << 20))


def endless(client, request):
    """A gigabyte without one."""
    client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(1024):
        client.sendall(b"100000\r\n" + bytes(1 << 20) + b"\r\n")


def bomb(client, request):
    answer(client, gzip.compress(bytes(64 << 20), 1), headers="Content-Encoding: gzip\r\n")


def headers(client, request):
    client.sendall(b"HTTP/1.1 200 OK\r\n")
    for i in range(200000):
        client.sendall(b"X-%d: %s\r\n" % (i, b"y" * 1000))


def half(client, request):
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 100)


def closes(client, request):
    pass


def redirect(client, request):
    answer(client, b"", "302 Found", "Location: file:///etc/passwd\r\n")


def wrong(client, request):
    answer(client, b"<html>not what you wanted\033[31m</html>")


def locked(client, request):
    answer(client, b"who are you?", "401 Unauthorized", "WWW-Authenticate: Basic realm=x\r\n")


def missing(client, request):
    answer(client, b"no such page", "404 Not Found")


refusals = 0


def soon(client, request):
    """Busy twice, and says when to retry."""
    global refusals
    refusals += 1
    if refusals <= 2:
        answer(client, b"busy", "503 Service Unavailable", "Retry-After: 1\r\n")
    else:
        answer(client, b"at last")


def later(client, request):
    """Always busy."""
    answer(client, b"busy", "503 Service Unavailable", "Retry-After: %s\r\n" % request.split("=")[1].split(" ")[0])


def serve(name, handler, listener):
    def one(client):
        try:
            client.settimeout(60)
            request = read_request(client)
            if asked_in and request:
                with open(os.path.join(asked_in, name), "a") as log:
                    log.write(request.split("\r\n")[0] + "\n")
            handler(client, request)
        except OSError:
            pass
        client.close()

    while True:
        client, _ = listener.accept()
        threading.Thread(target=one, args=(client,), daemon=True).start()


for handler in (good, packed, silent, drip, drip_head, garbage, huge, endless, bomb, headers, half, closes,
                redirect, wrong, locked, missing, soon, later):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(256)
    print(handler.__name__, listener.getsockname()[1], flush=True)
    threading.Thread(target=serve, args=(handler.__name__, handler, listener), daemon=True).start()
# Nothing listens there: the port stays reserved, so that no other process gets it.
refused = socket.socket()
refused.bind(("127.0.0.1", 0))
print("refused", refused.getsockname()[1], flush=True)
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
