"""Clients that mean no good, one kind per run: hostile_clients.py KIND HOST PORT.

Each says in a line what came of it. That others are still answered is asked elsewhere, while this one
stands still and holds what it has: it waits for its standard input to end."""

import base64
import socket
import ssl
import sys
import threading


def connect(seconds=60):
    client = socket.create_connection((host, port), timeout=seconds)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def read_all(client):
    """The bytes received until the other side closes, and whether it did."""
    got = b""
    try:
        while True:
            more = client.recv(65536)
            if not more:
                return got, True
            got += more
    except ConnectionError:
        return got, True
    except socket.timeout:
        return got, False


def status_of(got):
    words = got.split(b"\r\n", 1)[0].split()
    return words[1].decode() if len(words) > 1 else "nothing"


def hold(clients):
    print("holding", len(clients), flush=True)
    sys.stdin.read()


def many():
    """A thousand silent connections."""
    clients = []
    for _ in range(1000):
        try:
            clients.append(connect())
        except OSError:
            pass
    hold(clients)


def half():
    """Requests that never end."""
    clients = []
    for _ in range(100):
        try:
            client = connect()
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-")
            clients.append(client)
        except OSError:
            pass
    hold(clients)


def deaf():
    """Request a lot and read nothing."""
    clients = []
    for _ in range(40):
        try:
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(60)
            client.connect((host, port))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
            clients.append(client)
        except OSError:
            pass
    hold(clients)


def handshake():
    """TLS handshakes left unfinished, in the middle of a record and before it."""
    clients = []
    for i in range(100):
        try:
            client = connect()
            if i % 2:
                client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            clients.append(client)
        except OSError:
            pass
    hold(clients)


def drip():
    """A trickle of bytes does not extend a connection's deadline: two bytes a second, for longer than the limit."""
    client = connect()
    client.settimeout(0.5)
    said = "kept"
    try:
        for byte in b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 70:
            client.sendall(bytes([byte]))
            try:
                if client.recv(1) == b"":
                    said = "dropped"
                    break
            except socket.timeout:
                pass
    except OSError:
        said = "dropped"
    print(said, flush=True)


def oversized():
    """Each of these gets a 4xx or is closed; never a 200, never no reaction."""
    requests = {
        "path": b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "query": b"GET /metrics?" + b"x" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "header": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100000 + b"\r\n\r\n",
        "headers": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + b"X: x\r\n" * 20000 + b"\r\n",
        "body": b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
        + b"x" * 100000,
        "length": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        + b"9" * 40 + b"\r\n\r\n",
        "chunk": b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"ffffffffffffffffff\r\n",
        "method": b"X" * 100000 + b" /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "host": b"GET /metrics HTTP/1.1\r\nHost: " + b"x" * 10000 + b"\r\nConnection: close\r\n\r\n",
        "cookie": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic "
        + b"QUFB" * 2000 + b"\r\nAccept: " + b"text/plain;q=0.1," * 300 + b"\r\n"
        + b"Connection: close\r\n\r\n",
    }
    fine = {"cookie": "200"}
    for name, request in requests.items():
        client = connect()
        try:
            client.sendall(request)
        except OSError:
            pass
        got, is_closed = read_all(client)
        status = status_of(got)
        wanted = fine.get(name)
        good = is_closed and (status == wanted if wanted else status == "nothing" or status[0] == "4")
        print(name, "good" if good else "bad %s %s" % (status, is_closed), flush=True)
        client.close()


def garbage():
    """Bytes that are not HTTP, from a deterministic generator."""
    state = 12345
    bad = 0
    for i in range(300):
        data = bytearray()
        for _ in range(1 + i * 7 % 400):
            state = (state * 1103515245 + 12345) % 2**31
            data.append(state >> 16 & 0xFF)
        data = (b"GET /metrics HTTP/1.1\r\n" if i % 3 == 0 else b"") + bytes(data) + b"\r\n\r\n"
        client = connect()
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        got, is_closed = read_all(client)
        bad += not is_closed
        client.close()
    print("garbage", "good" if bad == 0 else "bad %d" % bad, flush=True)


def reset():
    """Connections aborted at every point of a request."""
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for i in range(len(request) + 1):
        client = connect()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.sendall(request[:i])
        client.close()
    print("reset good", flush=True)


def pipeline():
    """A thousand pipelined requests on one connection: all are answered, in order."""
    client = connect()
    wanted = []
    for i in range(1000):
        path, code = ("/healthz", b"200") if i % 2 else ("/nothing", b"404")
        wanted.append(code)
        last = "Connection: close\r\n" if i == 999 else ""
        client.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (path, last)).encode())
    got, _ = read_all(client)
    codes = [part.split()[0] for part in got.split(b"HTTP/1.1 ")[1:]]
    print("pipeline", "good" if codes == wanted else "bad %d" % len(codes), flush=True)


def renegotiate():
    """Two hundred handshakes, each aborted or completed and closed."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for i in range(200):
        client = connect()
        if i % 2:
            client.sendall(b"\x16\x03\x01")
        else:
            context.wrap_socket(client).close()
        client.close()
    print("handshakes good", flush=True)


def guess():
    """Wrong passwords on 28 connections until its input ends: each sends the next when it has its answer."""
    stop, begun, codes = threading.Event(), threading.Semaphore(0), []

    def ask(client, text):
        password = base64.b64encode(("alice:" + text).encode()).decode()
        client.sendall(("GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic %s\r\n\r\n" % password).encode())
        return status_of(client.recv(65536))

    def guesser(number):
        client, tries = None, 0
        while not stop.is_set():
            try:
                if client is None or number < 8:
                    client = connect()
                code = ask(client, "%d-%d" % (number, tries))
                codes.append(code)
            except OSError:
                client = None
            tries += 1
            if tries == 2:
                begun.release()

    threads = [threading.Thread(target=guesser, args=(i,)) for i in range(28)]
    for thread in threads:
        thread.start()
    for _ in threads:
        begun.acquire()
    hold(threads)
    stop.set()
    for thread in threads:
        thread.join()
    print("guessed %d wrong, %d right" % (codes.count("401"), codes.count("200")), flush=True)


kind, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
globals()[kind]()
