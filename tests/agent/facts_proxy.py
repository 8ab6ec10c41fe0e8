#!/usr/bin/env python3
"""An agent whose host has a failing GPU: passes requests on to a real agent and adds an Xid to the host facts of its
snapshots. Prints its address, then answers for ever.

	facts_proxy.py AGENT PIDFILE

The driver names the process in PIDFILE, as it does in the kernel log.
"""
import http.server
import io
import json
import sys
import tarfile
import time
import urllib.request


def with_xid(archive, pid):
    to = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=to, mode="w", format=tarfile.USTAR_FORMAT) as new:
        for member in old:
            data = old.extractfile(member).read()
            if member.name.endswith("agent.json"):
                note = json.loads(data)
                now = int(time.time())
                note["host_facts"].append(f"event xid 0000:3b:00 31 {pid} {now} {now} 1 MMU Fault")
                data = json.dumps(note).encode()
                member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return to.getvalue()


class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            with urllib.request.urlopen(f"http://{sys.argv[1]}{self.path}", timeout=60) as answer:
                body, kind = answer.read(), answer.headers["Content-Type"]
        except OSError:
            self.send_error(502)
            return
        if self.path.startswith("/api/v1/snapshot"):
            with open(sys.argv[2], encoding="utf-8") as file:
                body = with_xid(body, file.read().strip())
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
print("127.0.0.1:%d" % server.server_port, flush=True)
server.serve_forever()
