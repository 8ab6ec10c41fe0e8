#!/usr/bin/env python3
"""How often `ringside diff` is right: pairs of simulated jobs, of which one may have a fault.

    diff_power.py [--runs N] [--parity even|odd] [--factor F] [--table FILE] [--kind KIND]

Each run has a workload, a size, a length and noise of its own (jitter of compute, and a network that is
busy for three seconds), drawn from its seed. A is healthy; B is the same
job with other random numbers, and with one of: nothing, a slow link, slow NVLink, a slow network. A
difference is right if the exit code is 0 for nothing and 1 for a fault.

A fault that is not on the critical path makes no transfer longer. So each fault is also simulated with A's
random numbers: the largest change of a row or sender between two such runs, which differ in nothing else,
is its true effect. Faults are counted apart by that.

Limits are tuned on even seeds; odd ones are reported. BUILD is the build directory.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

KINDS = ("none", "link", "nvlink", "network")
WORKLOADS = ("fsdp", "ddp", "tp-pp", "moe")
EFFECT_LEAST = 0.075  # a true effect from here on should be found: the threshold is 5%


class Job:
    """What is simulated for one seed."""

    def __init__(self, kind, seed, factor):
        rng = random.Random("%s %d" % (kind, seed))
        self.kind, self.seed = kind, seed
        self.workload = WORKLOADS[seed // 2 % len(WORKLOADS)]
        self.nodes = rng.choice((2, 3, 4, 6, 8))
        self.gpus = rng.choice((2, 4, 8))
        if self.workload in ("moe", "tp-pp"):
            self.nodes = rng.choice((2, 4, 8))
        self.seconds = rng.choice((20, 25, 30, 40))
        self.is_timed = rng.random() < 0.5  # every operation, not a share
        if kind == "nvlink" and self.workload in ("fsdp", "ddp"):
            self.gpus = 8  # with fewer, the network is the limit
        self.jitter = rng.choice((2, 2, 10, 30))
        # The network is busy for a while, at another time in each run.
        self.is_busy = rng.random() < 0.5
        self.fault = self.make_fault(rng, factor)

    def make_fault(self, rng, factor):
        ranks = self.nodes * self.gpus
        sender = rng.randrange(ranks)
        node, place = divmod(sender, self.gpus)
        if self.kind == "network":
            return "degraded-network:factor=%g" % factor
        if self.kind == "nvlink":
            return "slow-nvlink:factor=%g" % factor
        if self.kind == "none":
            return None
        if self.workload in ("moe", "tp-pp"):
            # Between the two nodes of an expert group, or two stages of a pipeline.
            sender, peer = (node & ~1) * self.gpus + place, (node | 1) * self.gpus + place
        else:
            # Where rings leave a node: the last GPU of channel c's ring is c - 1.
            peer = (node + 1) % self.nodes * self.gpus + (place + 1) % self.gpus
        return "slow-link:from=%d,to=%d,factor=%g" % (sender, peer, factor)

    def options(self, seed, is_faulty):
        options = ["--nodes", str(self.nodes), "--gpus", str(self.gpus), "-w", self.workload,
                   "--seconds", "%ds" % self.seconds, "--seed", str(seed), "--jitter", str(self.jitter)]
        if self.is_busy:
            start = random.Random(seed).randrange(1, self.seconds - 4)
            options += ["-f", "degraded-network:factor=1.3,at=%ds,until=%ds" % (start, start + 3)]
        if self.is_timed:
            options.append("--kernel")
        return options + (["-f", self.fault] if is_faulty and self.fault else [])


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=600)


def simulate(ringside, directory, options):
    done = run([ringside, "sim", "--offline", "-o", directory] + options)
    if done.returncode != 0 or "never" in done.stderr:
        sys.exit("%s: %s" % (" ".join(options), done.stderr))


def largest_ratio(text):
    diff = json.loads(text)
    ratios = [row["ratio"] for row in diff["rows"] if row["ratio"]]
    ratios += [sender["ratio"] for sender in diff["senders"]]
    return max(ratios, default=1)


def play(ringside, scratch, job):
    """Returns (job, exit code, true effect)."""
    place = tempfile.mkdtemp(dir=scratch)
    a, b, same = (os.path.join(place, name) for name in ("a", "b", "same"))
    effect = 0
    simulate(ringside, a, job.options(2 * job.seed, False))
    simulate(ringside, b, job.options(2 * job.seed + 1, True))
    code = run([ringside, "diff", a, b]).returncode
    if job.fault:
        simulate(ringside, same, job.options(2 * job.seed, True))
        effect = largest_ratio(run([ringside, "diff", a, same, "--json"]).stdout) - 1
    shutil.rmtree(place)
    return job, code, effect


def group_of(job, effect):
    if not job.fault:
        return "nothing differs"
    return job.kind + (", on the critical path" if effect >= EFFECT_LEAST else ", off the critical path")


def table(outcomes, arguments):
    lines = ["Made by: tests/report/diff_power.py --runs %d --parity %s --factor %g" %
             (arguments.runs, arguments.parity, arguments.factor),
             "pairs of jobs: 2 to 8 nodes, 2 to 8 GPUs each, 20 to 40 s; jitter 2 to 30%%; in half of them the network is busy for 3 s; faults: factor %g"
             % arguments.factor,
             "on the critical path: with equal random numbers a row or sender takes %g%% longer or more"
             % (100 * EFFECT_LEAST), "",
             "%-32s %-9s %5s %7s %8s %5s" % ("FAULT", "WORKLOAD", "RUNS", "SLOWER", "UNKNOWN", "SAME")]
    groups = collections.defaultdict(collections.Counter)
    for job, code, effect in outcomes:
        for workload in (job.workload, "all"):
            groups[group_of(job, effect), workload][code] += 1
    for group, workload in sorted(groups, key=lambda key: (key[0], key[1] == "all", key[1])):
        codes = groups[group, workload]
        lines.append("%-32s %-9s %5d %7d %8d %5d" % (group, workload, sum(codes.values()), codes[1],
                                                    codes[3], codes[0]))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100, help="of each kind")
    parser.add_argument("--parity", choices=("even", "odd"), default="odd")
    parser.add_argument("--factor", type=float, default=1.1)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--table")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="print each run that is wrong")
    arguments = parser.parse_args()
    ringside = os.path.join(os.environ.get("BUILD", "build"), "ringside")
    seeds = range(1 if arguments.parity == "odd" else 2, 2 * arguments.runs + 1, 2)
    jobs = [Job(kind, seed, arguments.factor) for kind in KINDS if arguments.kind in (None, kind)
            for seed in seeds]
    scratch = tempfile.mkdtemp(prefix="diff-power.")
    try:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            outcomes = list(pool.map(lambda job: play(ringside, scratch, job), jobs))
    finally:
        shutil.rmtree(scratch)
    for job, code, effect in outcomes if arguments.verbose else ():
        if code != (1 if job.fault else 0):
            print("exit %d, effect %.1f%%: %s" % (code, 100 * effect, " ".join(job.options(2 * job.seed + 1, True))),
                  file=sys.stderr)
    text = table(outcomes, arguments)
    if arguments.table:
        with open(arguments.table, "w") as file:
            file.write(text)
    else:
        print(text, end="")
    alarms = sum(1 for job, code, _ in outcomes if not job.fault and code != 0)
    found = [code == 1 for job, code, effect in outcomes if job.fault and effect >= EFFECT_LEAST]
    runs = sum(1 for job, _, _ in outcomes if not job.fault)
    print("%d of %d equal pairs differ; %d of %d faults found" % (alarms, runs, sum(found), len(found)))
    return alarms * 100 > runs or sum(found) * 100 < 95 * len(found)


if __name__ == "__main__":
    sys.exit(main())
