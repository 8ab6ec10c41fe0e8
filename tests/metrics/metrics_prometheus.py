#!/usr/bin/env python3
"""A real Prometheus reads the sample in all three formats, and says what it has.

metrics_prometheus.py SAMPLE DIRECTORY DOCUMENT    SAMPLE FORMAT writes metrics; queries are in DOCUMENT
"""
import http.server
import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

TYPES = {
    "protobuf": "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "text": "text/plain; version=0.0.4; charset=utf-8",
}
SECONDS = 120  # give up after this time


def serve(sample):
    bodies = {f: subprocess.run([sample, f], stdout=subprocess.PIPE, check=True).stdout for f in TYPES}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", TYPES[self.path[1:]])
            self.end_headers()
            self.wfile.write(bodies[self.path[1:]])

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def configure(directory, port):
    with open(f"{directory}/prometheus.yml", "w", encoding="utf-8") as file:
        json.dump({
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [
                {"job_name": name, "metrics_path": f"/{name}",
                 "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for name in TYPES],
        }, file)


def start(directory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = open(f"{directory}/prometheus.log", "w", encoding="utf-8")
    process = subprocess.Popen(
        ["prometheus", f"--config.file={directory}/prometheus.yml",
         f"--storage.tsdb.path={directory}/data", f"--web.listen-address=127.0.0.1:{port}",
         "--enable-feature=native-histograms"], stdout=log, stderr=log)
    return process, f"http://127.0.0.1:{port}/api/v1/"


class Prometheus:
    def __init__(self, api):
        self.api = api

    def get(self, path, **values):
        url = self.api + path + "?" + urllib.parse.urlencode(values)
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def query(self, text):
        """Values by job."""
        answer = self.get("query", query=text)
        if answer["status"] != "success":
            raise SystemExit(f"{text}: {answer['error']}")
        return {r["metric"].get("job"): float(r["value"][1]) for r in answer["data"]["result"]}

    def wait(self):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                targets = self.get("targets")["data"]["activeTargets"]
                # A scrape may time out on a busy machine: wait for the next one.
                wrong = [t["lastError"] for t in targets if t["lastError"] and "deadline exceeded" not in t["lastError"]]
                if wrong:
                    raise SystemExit(f"scrape failed: {wrong}")
                # Rates need two scrapes.
                if len(self.query("sum_over_time(up[1h]) >= 2")) == len(TYPES):
                    return
            except (urllib.error.URLError, ConnectionError, ValueError):
                pass  # not listening yet, or "Service Unavailable" while it starts
            time.sleep(0.1)
        raise SystemExit("Prometheus did not scrape everything in time")


def expect(what, got, wanted):
    print(f"{'ok' if got == wanted else 'wrong'}: {what}" + ("" if got == wanted else f": {got}, wanted {wanted}"))


def figures(prometheus):
    """The current state: (what, got, wanted). After a failed scrape a target has no data until the next one."""
    count = prometheus.query("sum by (job) (nccl_operation_duration_seconds_count)")
    native = prometheus.query("histogram_count(sum by (job) (nccl_operation_duration_seconds))")
    total = prometheus.query("sum by (job) (nccl_operation_duration_seconds_sum)")
    native_total = prometheus.query("histogram_sum(sum by (job) (nccl_operation_duration_seconds))")
    others = prometheus.query('count by (job) ({__name__=~"(nccl|ringside|process)_.+",'
                              '__name__!~"nccl_operation_duration.*"})')
    return [
        ("native histograms come from protocol buffers only", sorted(native), ["protobuf"]),
        ("classic histograms from the other formats", sorted(count), ["openmetrics", "text"]),
        ("both have the same count", set(count.values()), set(native.values())),
        ("both have the same sum", {round(v, 6) for v in total.values()}, {round(v, 6) for v in native_total.values()}),
        ("all other series exist three times", (len(others), len(set(others.values()))), (3, 1)),
    ]


def compare(prometheus):
    until = time.monotonic() + SECONDS
    found = figures(prometheus)
    while any(got != wanted for _, got, wanted in found) and time.monotonic() < until:
        time.sleep(0.1)
        found = figures(prometheus)
    for what, got, wanted in found:
        expect(what, got, wanted)


def try_queries(prometheus, document):
    with open(document, encoding="utf-8") as file:
        part = file.read().split("## Queries\n", 1)[1].split("```")[1]
    for query in re.split(r"^# .*$", part, flags=re.M)[1:]:
        found = prometheus.get("query", query=query)
        expect("a documented query is valid", found["status"], "success")


def main(sample, directory, document):
    configure(directory, serve(sample))
    process, api = start(directory)
    try:
        prometheus = Prometheus(api)
        prometheus.wait()
        compare(prometheus)
        try_queries(prometheus, document)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
