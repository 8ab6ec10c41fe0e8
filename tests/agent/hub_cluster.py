#!/usr/bin/env python3
"""A job on simulated nodes with an agent each, and a hub: does everything that the hub publishes name one cause?

    hub_cluster.py NODES MODE...       MODE: poll, prometheus, slow

A network send gets stuck while two of the agents are dead; or a rank is slow (slow). The hub's log, hook, metrics, API and page (in a browser) must
name the same cause as `ringside doctor --agents`. Prints TAP, and how long after the threshold the verdict came.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "doctor"))

import live_job  # noqa: E402
from story import Tap  # noqa: E402

HANG_S = 5
LATEST_S = 15  # after the threshold
FAULT_S = 25  # after the start of the job: all agents are up by then, unless the machine is very busy
CULPRIT = 1  # sends to rank 2, on the next node; the last two nodes lose their agents


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def until(is_so, what, process):
    deadline = time.monotonic() + live_job.PATIENCE_S
    while not is_so():
        if process.poll() is not None:
            raise RuntimeError("ended before: %s" % what)
        if time.monotonic() > deadline:
            raise RuntimeError("never: %s" % what)
        time.sleep(0.2)


class Hub:
    def __init__(self, build, scratch, options):
        self.log_path = os.path.join(scratch, "hub.log")
        self.calls_path = os.path.join(scratch, "calls")
        hook = os.path.join(scratch, "hook")
        with open(hook, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\necho "$RINGSIDE_EVENT $RINGSIDE_CLASS $RINGSIDE_RANK $RINGSIDE_KEY" >>%s\n'
                       % self.calls_path)
        os.chmod(hook, 0o755)
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [os.path.join(build, "ringside"), "hub", "--listen", "127.0.0.1:0", "--interval", "1s",
                 "--refresh", "1s", "--hang", "%ds" % HANG_S, "--timeout", "10s", "--check", "0s", "--hook", hook,
                 "--gpu-hour-price", "3", "--grafana", "http://grafana.example/d/x"] + options,
                env=live_job.clean_environment(), stderr=log, stdin=subprocess.DEVNULL)
        until(lambda: "listening on" in self.log(), "the hub listens", self.process)
        self.url = re.search(r"listening on (http://[^\s,]*)", self.log()).group(1)

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def calls(self):
        if not os.path.exists(self.calls_path):
            return []
        with open(self.calls_path, encoding="utf-8") as file:
            return file.read().splitlines()

    def job(self):
        jobs = json.loads(get(self.url + "/api/v1/jobs"))["jobs"]
        return jobs[0] if len(jobs) == 1 else None

    def end(self):
        self.process.terminate()
        self.process.wait()


def start_prometheus(scratch, addresses):
    port = free_port()
    with open(os.path.join(scratch, "prometheus.yml"), "w", encoding="ascii") as file:
        file.write("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n  - job_name: ringside\n"
                   "    static_configs:\n      - targets: %s\n" % json.dumps(addresses))
    with open(os.path.join(scratch, "prometheus.log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            ["prometheus", "--config.file=" + os.path.join(scratch, "prometheus.yml"),
             "--storage.tsdb.path=" + os.path.join(scratch, "data"),
             "--web.listen-address=127.0.0.1:%d" % port, "--log.level=warn"], stderr=log, stdout=log)
    return process, "http://127.0.0.1:%d" % port


def page_titles(hub, key):
    """What a browser shows: of all jobs, and of this one."""
    done = subprocess.run(["node", os.path.join(HERE, "..", "page", "hub.mjs"), hub.url, key], text=True,
                          stdout=subprocess.PIPE, timeout=live_job.PATIENCE_S, check=True)
    return json.loads(done.stdout)


def check_page(tap, hub, job, nodes):
    shown = page_titles(hub, job["key"])
    title = job["verdict"]["title"]
    tap.ok(shown["verdict"] == "Hang: " + title, "the job's page has it on top", [shown["verdict"]])
    tap.ok(shown["row"][:3] == ["sim-1", "hung", title] and shown["row"][4] == "%d (2 silent)" % nodes,
           "the list of jobs has it", shown["row"])
    tap.ok(len(shown["nodes"]) == nodes and all(link.startswith("http://127.0.0.1:") for link in shown["nodes"]),
           "with a link to each node", shown["nodes"])
    tap.ok(shown["grafana"] == "http://grafana.example/d/x?var-nccl_job=sim-1", "and to Grafana", [shown["grafana"]])
    tap.ok(not shown["trouble"], "no console messages, errors or policy violations", shown["trouble"])


def check_same(tap, hub, job, nodes, live):
    """Everything names the same cause."""
    verdict = job["verdict"]
    document, _ = live.ask(True)
    told = document["verdicts"][0]
    tap.ok([told["class"], told["rank"], told["key"]] == [verdict["class"], verdict["rank"], verdict["key"]],
           "`ringside doctor --agents` names the same cause", [told["title"], verdict["title"]])
    tap.ok("ringside-hub: %s: %s; job sim-1" % (verdict["class"], verdict["title"]) in hub.log(), "so does the log",
           hub.log().splitlines())
    until(hub.calls, "the hook is called", hub.process)
    tap.ok(hub.calls() == ["appeared network_stuck %d %s" % (CULPRIT, verdict["key"])], "so does the hook, once",
           hub.calls())
    metric = [line for line in get(hub.url + "/metrics").splitlines() if line.startswith("ringside_hub_verdict_info")]
    tap.ok(len(metric) == 1 and 'class="network_stuck"' in metric[0] and 'global_rank="%d"' % CULPRIT in metric[0],
           "so do the metrics", metric)
    if os.environ.get("CHROMIUM"):
        check_page(tap, hub, job, nodes)
    else:
        tap.say("not in a browser: there is none")


def tell_delay(tap, job, ready_s):
    verdict = job["verdict"]
    judged_s = time.time() - job["judged_ago_ns"] / 1e9
    threshold_s = verdict["since_ns"] / 1e9 + HANG_S
    delay_s = judged_s - max(threshold_s, ready_s)
    tap.say("the verdict came %.1f s after the threshold" % delay_s)
    if os.getloadavg()[0] > 4 * os.cpu_count():
        tap.say("the machine is too busy to judge that")
    else:
        tap.ok(delay_s <= LATEST_S, "the verdict came within %d s of the threshold" % LATEST_S, ["%.1f s" % delay_s])


def play_slow(tap, build, scratch, nodes):
    """Agents report that something is slow; the hub finds out what, and publishes it once."""
    live = live_job.LiveJob(build, scratch, nodes, 2, HANG_S)
    hub = None
    try:
        live.start("--gpus", "2", "-w", "fsdp", "--seconds", "600s", "-f", "slow-rank:rank=%d,factor=2" % CULPRIT)
        live.start_agents()
        hub = Hub(build, scratch, ["--agents", "@" + os.path.join(scratch, "agents")])
        until(lambda: (hub.job() or {}).get("nodes") == nodes, "the hub sees all nodes", hub.process)
        until(lambda: (hub.job() or {}).get("verdict"), "there is a verdict", hub.process)
        job = hub.job()
        verdict = job["verdict"]
        tap.ok([verdict["class"], verdict["rank"]] == ["slow_rank", CULPRIT], "slow: the cause is right", [verdict["title"]])
        tap.ok([job["state"], job["judgement"], job["nodes_silent"]] == ["slow", "found", 0], "the job is slow", [json.dumps(job)])
        tap.ok("ringside-hub: slow_rank: %s; job sim-1" % verdict["title"] in hub.log(), "the log has it", hub.log().splitlines())
        until(hub.calls, "the hook is called", hub.process)
        tap.ok(hub.calls() == ["appeared slow_rank %d %s" % (CULPRIT, verdict["key"])], "so has the hook, once", hub.calls())
        metric = [line for line in get(hub.url + "/metrics").splitlines() if line.startswith("ringside_hub_verdict_info")]
        tap.ok(len(metric) == 1 and 'class="slow_rank"' in metric[0] and 'global_rank="%d"' % CULPRIT in metric[0],
               "so have the metrics", metric)
        document, _ = live.ask(True)
        told = [one for one in document["verdicts"] if one["class"] == "slow_rank"]
        tap.ok(told and told[0]["rank"] == CULPRIT and told[0]["key"] == verdict["key"],
               "`ringside doctor --agents` names the same cause", [one["title"] for one in document["verdicts"]])
    finally:
        if hub:
            hub.end()
        live.end()


def play(tap, build, scratch, nodes, mode):
    if mode == "slow":
        play_slow(tap, build, scratch, nodes)
        return
    live = live_job.LiveJob(build, scratch, nodes, 1, HANG_S)
    hub = prometheus = None
    try:
        live.start("--node-processes", "--gpus", "2", "-w", "ddp", "--rate", "5", "--seconds", "600s",
                   "-f", "stuck-send:rank=%d,at=%ds" % (CULPRIT, FAULT_S))
        live.start_agents()
        options = ["--agents", "@" + os.path.join(scratch, "agents")]
        if mode == "prometheus":
            prometheus, url = start_prometheus(scratch, [agent.address for agent in live.agents])
            options = ["--prometheus", url]
        hub = Hub(build, scratch, options)
        until(lambda: (hub.job() or {}).get("nodes") == nodes, "the hub sees all nodes", hub.process)
        tap.ok(True, "%s: the hub sees the job on %d nodes" % (mode, nodes))
        for agent in live.agents[-2:]:
            agent.end()
        until(lambda: (hub.job() or {}).get("nodes_silent") == 2, "two agents are silent", hub.process)
        tap.ok(hub.job()["nodes"] == nodes, "two agents die; the job keeps its nodes")
        ready_s = time.time()
        until(lambda: (hub.job() or {}).get("verdict"), "there is a verdict", hub.process)
        job = hub.job()
        verdict = job["verdict"]
        tap.ok([verdict["class"], verdict["rank"], verdict["peer"]] == ["network_stuck", CULPRIT, CULPRIT + 1],
               "the cause is right", [verdict["title"]])
        tap.say("%s, confidence %.0f%%" % (verdict["title"], verdict["confidence"] * 100))
        tell_delay(tap, job, ready_s)
        check_same(tap, hub, job, nodes, live)
        live.process.terminate()
        live.process.wait()
        until(lambda: "cleared after" in hub.log(), "its end is logged", hub.process)
        until(lambda: len(hub.calls()) == 2, "and passed to the hook", hub.process)
        tap.ok(hub.calls()[1].startswith("cleared network_stuck %d" % CULPRIT), "its end is reported", hub.calls())
    finally:
        for process in (hub.process if hub else None, prometheus):
            if process:
                process.terminate()
                process.wait()
        live.end()


def main():
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    nodes, modes = int(sys.argv[1]), sys.argv[2:]
    place = live_job.memory(nodes * (48 if "slow" in modes else 24) << 20)
    tap = Tap()
    if not place or not live_job.has_agents(build):
        print("1..0 # SKIP no agents, or too little room in /dev/shm")
        return 0
    for mode in modes:
        if mode == "prometheus" and not shutil.which("prometheus"):
            tap.say("not with Prometheus: it is not installed")
            continue
        scratch = tempfile.mkdtemp(prefix="ringside-hub-", dir=place)
        try:
            play(tap, build, scratch, nodes, mode)
        except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
            tap.ok(False, "%s: it works" % mode, [str(error)])
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
