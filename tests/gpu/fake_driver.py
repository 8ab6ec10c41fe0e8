#!/usr/bin/env python3
"""Simulates the driver's scenarios with `ringside sim`, for hosts without a GPU: four nodes of one rank each. Takes
the driver's arguments, writes the files that the driver writes; FAKE_DRIVER_TOOL is the program."""

import argparse
import json
import os
import subprocess
import sys
import time

FAULTS = {
    "skip": "never-arrives:rank=%(victim)d", "size": "mismatch:rank=%(victim)d",
    "datatype": "mismatch:rank=%(victim)d,what=datatype", "gpu": "gpu-stuck:rank=%(victim)d",
    "link": "slow-link:from=%(before)d,to=%(victim)d,factor=8", "deadlock": "deadlock:rank=1,peer=0",
    "stop": "none", "kill": "none", "calm": "none",
}


def children(pid, wanted):
    path = "/proc/%d/task/%d/children" % (pid, pid)
    while True:
        with open(path, encoding="ascii") as file:
            found = file.read().split()
        if len(found) == wanted:
            return found
        time.sleep(0.05)


def wait_for_calls(pids):
    """Until every rank communicates: a rank that is killed before shows another death than the scene's."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        told = subprocess.run([os.environ["FAKE_DRIVER_TOOL"], "ls", "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False).stdout
        processes = json.loads(told or b"{}").get("processes", [])
        calling = {str(process["pid"]) for process in processes
                   if any(comm.get("issued") for comm in process["communicators"])}
        if calling >= set(pids):
            return
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb")
    for name in ("ranks", "victim", "big"):
        parser.add_argument("--" + name, type=int)
    for name in ("out", "scene", "preload"):
        parser.add_argument("--" + name)
    options = parser.parse_args()
    fault = FAULTS[options.scene] % {"victim": options.victim, "before": options.victim - 1}
    workload = ["-w", "tp-pp", "--tp", "2"] if options.scene == "deadlock" else ["-w", "fsdp"]
    job = subprocess.Popen([
        os.environ["FAKE_DRIVER_TOOL"], "sim", "--nodes", str(options.ranks), "--gpus", "1", "--rate", "10",
        "-f", fault + ("" if options.scene == "link" or fault == "none" else ",at=300ms"),
        "--seconds", "60s", "-m", "flight"]
        + workload, stdout=subprocess.DEVNULL)
    pids = children(job.pid, options.ranks)
    wait_for_calls(pids)
    for rank, pid in enumerate(pids):
        with open(os.path.join(options.out, "pid-%d" % rank), "w", encoding="ascii") as file:
            file.write(pid + "\n")
        with open(os.path.join(options.out, "nccl-%s.log" % pid), "w", encoding="ascii") as file:
            file.write("%s:%s:%s [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>\n" % (
                os.uname().nodename, pid, pid))
        open(os.path.join(options.out, "ready-%d" % rank), "w", encoding="ascii").close()
    return job.wait()


sys.exit(main())
