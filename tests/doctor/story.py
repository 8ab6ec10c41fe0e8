#!/usr/bin/env python3
"""512 GPUs hang; 511 ranks wait, one is still sending. Which one, on which link?

Rank 247's second link is diagnosed from files and through agents: one agent per node, one of them dead, then the
agent of rank 247's own node dead. Prints TAP; the doctor's time is printed, not tested.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import live_job  # noqa: E402
import verdicts  # noqa: E402

NODES, NODE = 64, 30
# Its second link: two channels per GPU; the ring of channel 8 leaves a node at its last GPU.
CULPRIT = {"rank": 247, "peer": 248, "channel": 8, "communicator": "world"}
SIM = ["--gpus", "8", "-w", "fsdp", "--channels", "16", "-f", "stuck-send:rank=247,link=2"]
ROOM = 1200 << 20  # for regions of 64 processes, and as much again
HANG_S = 4


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, is_ok, what, more=()):
        self.count += 1
        self.failed += not is_ok
        print("%s %d - %s" % ("ok" if is_ok else "not ok", self.count, what), flush=True)
        for line in more if not is_ok else ():
            print("# %s" % line)

    def say(self, text):
        print("# %s" % text, flush=True)

    def end(self):
        print("1..%d" % self.count)
        return 1 if self.failed else 0


def judge(tap, what, told, culprit, document, seconds):
    _, wrong = verdicts.judge(told, culprit, document, is_timed=False)
    titles = [verdict["title"] for verdict in document["verdicts"]]
    tap.ok(not wrong, what, wrong + titles)
    tap.say("in %.2f s: %s" % (seconds, titles[0] if titles else "nothing"))


def from_files(tap, build, scratch):
    ringside, directory = os.path.join(build, "ringside"), os.path.join(scratch, "files")
    environment = live_job.clean_environment()
    subprocess.run([ringside, "sim", "--offline", "--kernel", "--nodes", str(NODES), "-o", directory, "--at", "20s",
                    "--seconds", "60s"] + SIM, check=True, stdout=subprocess.DEVNULL,
                   env=environment)
    started = time.monotonic()
    done = subprocess.run([ringside, "doctor", "--json", directory], text=True,
                          stdout=subprocess.PIPE, env=environment, check=False)
    seconds = time.monotonic() - started
    judge(tap, "from files: rank 247, its host, its peer, its second link", "network_stuck",
          dict(CULPRIT, host="node0030", peer_host="node0031"), json.loads(done.stdout), seconds)
    shutil.rmtree(directory)


def through_agents(tap, job):
    job.start("--node-processes", "--at", "3s", "--seconds", "600s", *SIM)
    job.start_agents()
    job.wait_still(NODE)
    whole, seconds = job.ask(True)
    judge(tap, "through 64 agents: the same", "network_stuck", CULPRIT, whole, seconds)
    tap.ok(whole["looked_at"]["ranks"] == 512, "all 512 ranks are visible")
    job.agents[5].end()
    less, seconds = job.ask(True)
    judge(tap, "with another node's agent dead: the same", "network_stuck", CULPRIT, less, seconds)
    tap.ok(less["looked_at"]["sources_silent"] == 1 and
           less["verdicts"][0]["confidence"] <= whole["verdicts"][0]["confidence"],
           "with no higher confidence, and the dead agent is reported")
    job.agents[NODE].end()
    blind, seconds = job.ask(True)
    judge(tap, "with the agent of its own node dead: that agent, and no rank", "agent_dead", {},
          blind, seconds)


def main():
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    tap = Tap()
    place = live_job.memory(ROOM)
    scratch = tempfile.mkdtemp(prefix="ringside-story-", dir=place)
    job = live_job.LiveJob(build, scratch, NODES, 1, HANG_S)
    try:
        from_files(tap, build, scratch)
        if not place:
            tap.say("not through agents: /dev/shm has too little room")
        elif not live_job.has_agents(build):
            tap.say("not through agents: they were not built")
        else:
            through_agents(tap, job)
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        tap.ok(False, "the job can be simulated", [str(error)])
    finally:
        job.end()
        shutil.rmtree(scratch, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
