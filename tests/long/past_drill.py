#!/usr/bin/env python3
"""Random jobs, judged by all their operations and by what an agent keeps of them: do both find the same?

    past_drill.py [--jobs N] [--seed N] [--table FILE] [--verbose]

Each job is simulated, followed as an agent follows it (tests/process/process_past.c), and judged three times: by its files, by the last
operations of each process alone, and by these with the past. Prints TAP.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", os.path.join(HERE, "..", "..", "build"))
RINGSIDE = os.path.join(BUILD, "ringside")
FOLLOW = os.path.join(BUILD, "tests", "process", "process_past")
SAME_SHARE = 0.9
COST_POINTS = 5  # of the job's time, where both state a cost and no bound


def doctor(directory):
    done = subprocess.run([RINGSIDE, "doctor", "--json", directory], stdout=subprocess.PIPE, text=True, check=False)
    return [one for one in json.loads(done.stdout)["verdicts"]
            if one["severity"] != "note" and not one["class"].startswith("blind")]


def names(verdicts):
    return [(one["class"], one["rank"], one["host"]) for one in verdicts]


def draw(rng):
    """The options of a job, and the class of its fault."""
    workload = rng.choice(["fsdp", "ddp", "tp-pp", "moe"])
    nodes, gpus = rng.choice([1, 2, 3, 4]), rng.choice([2, 4])
    if workload == "tp-pp":
        nodes = max(nodes, 2)
    seconds = rng.choice([200, 300, 400, 600])
    at = rng.randrange(40, seconds - 60)
    fault = rng.choice(["none", "none", "network", "network", "rank", "rank", "link", "nvlink"])
    if nodes == 1 and fault in ("network", "link"):
        fault = "none"
    options = {
        "none": [],
        "network": ["degraded-network:factor=%.1f,at=%ds" % (rng.choice([1.5, 2, 3, 5]), at)],
        "rank": ["slow-rank:rank=%d,factor=%.2f,at=%ds" % (rng.randrange(nodes * gpus), rng.choice([1.15, 1.3, 1.6]), at)],
        "link": ["slow-link:from=%d,to=%d,factor=%d,at=%ds" % (gpus - 1, gpus, rng.choice([3, 6, 10]), at)],
        "nvlink": ["slow-nvlink:node=%d,factor=%d,at=%ds" % (rng.randrange(nodes), rng.choice([3, 5]), at)],
    }[fault]
    noise = rng.choice([[], [], ["gc:every=5s,for=10ms"], ["evaluation:every=60s,for=5s"], ["compute:percent=5"]])
    words = ["--nodes", nodes, "--gpus", gpus, "-w", workload, "--release", rng.choice(["2.27", "2.28", "2.29", "2.30", "2.31"]),
             "--seed", rng.randrange(1000), "--network", 12, "--jitter", rng.choice([1, 2, 5]),
             "--clock-shift", rng.choice(["1ms", "100ms", "1s"]), "--seconds", "%ds" % seconds]
    for one in options:
        words += ["-f", one]
    for one in noise:
        words += ["--noise", one]
    return fault, [str(word) for word in words], rng.choice([1000, 3000, 10000]), rng.choice([4096, 16384])


def play(scratch, words, last, past):
    shutil.rmtree(scratch, ignore_errors=True)
    os.mkdir(scratch)
    subprocess.run([RINGSIDE, "sim", "--offline", "-o", os.path.join(scratch, "job")] + words, stdout=subprocess.DEVNULL,
                   check=True)
    subprocess.run([FOLLOW, scratch, str(last), str(past)], check=True)
    return [doctor(os.path.join(scratch, kind)) for kind in ("job", "recent", "aged")]


def is_cost_alike(whole, aged):
    for one, other in zip(whole, aged):
        costs = [verdict["cost_percent"] for verdict in (one, other)
                 if verdict["cost_percent"] is not None and not verdict["cost_bound"] and not verdict["cost_least_percent"]]
        if len(costs) == 2 and abs(costs[0] - costs[1]) > COST_POINTS:
            return False
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    faults = ["none", "network", "rank", "link", "nvlink"]
    counts = {fault: dict.fromkeys(["jobs", "found", "recent", "aged", "more", "cost"], 0) for fault in faults}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as directory:
        for _ in range(args.jobs):
            fault, words, last, past = draw(rng)
            whole, recent, aged = play(os.path.join(directory, "play"), words, last, past)
            count = counts[fault]
            count["jobs"] += 1
            count["found"] += bool(whole)
            count["recent"] += names(recent) == names(whole)
            count["aged"] += names(aged) == names(whole)
            count["more"] += bool(aged) and not whole
            count["cost"] += not is_cost_alike(whole, aged)
            if args.verbose or names(aged) != names(whole):
                print("# %s: last %d, past %d: ringside sim --offline %s" % (fault, last, past, " ".join(words)))
                for kind, verdicts in (("all", whole), ("past", aged), ("last", recent)):
                    print("#   %-5s %s" % (kind, "; ".join(one["title"] for one in verdicts)))
    lines = ["Made by: tests/long/past_drill.py --jobs %d --seed %d --table FILE" % (args.jobs, args.seed), "",
             "Random jobs of 200 to 600 s, judged by all their operations, by the last 1,000 to 10,000 of each process, and by these",
             "with 4,096 or 16,384 of the past. The same: verdicts of the same classes name the same ranks and hosts.", "",
             "%-8s %6s %13s %20s %20s %16s" % ("fault", "jobs", "found by all", "the same, last only", "the same, with past",
                                              "only with past")]
    for fault in faults:
        count = counts[fault]
        lines.append("%-8s %6d %13d %20d %20d %16d" % (fault, count["jobs"], count["found"], count["recent"], count["aged"],
                                                       count["more"]))
    total = {key: sum(count[key] for count in counts.values()) for key in counts["none"]}
    lines.append("%-8s %6d %13d %20d %20d %16d" % ("all", total["jobs"], total["found"], total["recent"], total["aged"],
                                                   total["more"]))
    lines += ["", "costs that differ by more than %d points of the job's time: %d" % (COST_POINTS, total["cost"])]
    print("\n".join("# " + line for line in lines))
    if args.table:
        with open(args.table, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
    passed = [
        ("nothing is found in a healthy job", counts["none"]["more"] == 0),
        ("verdicts are the same in nine of ten jobs", total["aged"] >= SAME_SHARE * total["jobs"]),
        ("costs are the same", total["cost"] <= total["jobs"] // 50),
    ]
    for number, (what, is_so) in enumerate(passed, 1):
        print("%s %d - %s" % ("ok" if is_so else "not ok", number, what))
    print("1..%d" % len(passed))
    return 0 if all(is_so for _, is_so in passed) else 1


if __name__ == "__main__":
    sys.exit(main())
