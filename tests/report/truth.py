#!/usr/bin/env python3
"""What a report prints of times, against the simulator's truth, or absent.

    truth.py [--all]

Plays jobs through the plugin and as trace files, over workloads, releases and what is timed. The truth is the same job with
every operation timed on the GPU. Every share of run time, bus bandwidth and share of waiting is close to it or is not there,
and no total is longer than the ranks' run time. Prints TAP. --all plays every combination; otherwise each pair of two values
occurs once or more. BUILD is the build directory.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
RINGSIDE = os.path.join(BUILD, "ringside")
SECONDS = 8
FACTORS = (
    ("workload", ("ddp", "fsdp", "tp-pp", "moe")),
    ("release", ("2.23", "2.26", "2.27", "2.28", "2.31")),
    ("times", ("auto", "off", "kernel")),
    ("how", ("offline", "live")),
    ("shape", ("2x2", "1x4")),
)
SYNCHRONISING = ("AllReduce", "AllGather", "ReduceScatter")
# How far a sample may be from all calls, and a played job from a computed one, beside what chance allows.
SHARE_APART = {"offline": 0.03, "live": 0.08}
WAIT_APART = {"offline": 0.06, "live": 0.15}
SPEED_APART = {"offline": 0.10, "live": 0.25}
WIRE_APART = {"offline": 0.15, "live": 0.35}
NETWORK = 6                 # GB/s of each link
TIMED_LEAST = 30


def pairs_of(case):
    return {frozenset(pair) for pair in itertools.combinations(enumerate(case), 2)}


def pairwise(cases):
    """Greedy: the case that adds most pairs comes next."""
    missing = set().union(*(pairs_of(case) for case in cases))
    chosen = []
    while missing:
        best = max(cases, key=lambda case: len(pairs_of(case) & missing))
        missing -= pairs_of(best)
        chosen.append(best)
    return chosen


def is_playable(case):
    """NCCL has kernel events from 2.26 on; elsewhere asking for them is the same as off."""
    return not (case[2] == "kernel" and case[1] == "2.23")


def play(scratch, name, case, times, how):
    nodes, gpus = case[4].split("x")
    folder = os.path.join(scratch, name)
    command = [RINGSIDE, "sim", "--nodes", nodes, "--gpus", gpus, "-w", case[0], "--release", case[1], "--times", times,
               "--network", str(NETWORK), "--seconds", f"{SECONDS}s", "--seed", "7", "-m", "trace", "-o", folder]
    if how == "offline":
        command.append("--offline")
    environment = dict(os.environ, RINGSIDE_SHM=os.path.join(scratch, name + ".shm"))
    os.mkdir(environment["RINGSIDE_SHM"])
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, env=environment, timeout=120)
    run = subprocess.run([RINGSIDE, "report", "--json", folder], stdout=subprocess.PIPE, check=True, timeout=120)
    return json.loads(run.stdout)


def rows_of(report):
    return {(row["function"], row["size_least"]): row for row in report["tables"]["size"]["rows"]}


def all_rows(report):
    yield "total", report["total"]
    for name, table in report["tables"].items():
        for row in table["rows"]:
            yield name, row


def too_long(report, ranks):
    """No total of what runs one after another exceeds the ranks' run time, and no call is longer than the run."""
    run_ns = report["duration_ns"]
    for name, row in all_rows(report):
        if row["max_ns"] is not None and row["max_ns"] > 1.05 * run_ns:
            yield f"{name}: a call of {row['max_ns'] / 1e9:.1f} s"
        if row.get("function") in SYNCHRONISING and row["total_ns"] is not None:
            if row["total_ns"] > 1.05 * run_ns * ranks:
                yield f"{name}: {row['function']} takes {row['total_ns'] / 1e9:.1f} s of {run_ns * ranks / 1e9:.1f}"
        if row.get("busy_share") is not None and row["busy_share"] > 1.01:
            yield f"{name}: communication is {row['busy_share']:.2f} of run time"
    if report["busy_share"] is not None and report["busy_share"] > 1.01:
        yield f"communication is {report['busy_share']:.2f} of run time"
    for one in (report["iterations"] or {}).get("list", ()):
        if one["duration_ns"] is not None and one["duration_ns"] > 1.05 * run_ns:
            yield f"an iteration of {one['duration_ns'] / 1e9:.1f} s"


FIGURES = ("sum_ns", "total_ns", "min_ns", "median_ns", "mean_ns", "max_ns", "algbw_bytes_per_second",
           "busbw_bytes_per_second", "wait_ns", "wait_share")


def not_absent(report):
    """Without a timed call there is no figure of time, and only the GPU times calls."""
    sources = report["total"]["sources"]
    if report["total"]["timed"] != sources["kernel_gpu"] + sources["cuda_event"]:
        yield f"{report['total']['timed']} timed calls, of {sources}"
    for name, row in all_rows(report):
        if row["timed"] == 0:
            yield from (f"{name}: {figure} of untimed calls" for figure in FIGURES if row.get(figure) is not None)
    if report["total"]["timed"] == 0 and report["busy_share"] is not None:
        yield "a share of run time although no call was timed"
    if report["iterations"] and report["iterations"]["timed"] == 0:
        yield from (f"iterations: {figure}" for figure in ("median_busy_ns", "exposed_high_ns")
                    if report["iterations"][figure] is not None)


def chance(row):
    """Three errors of a mean of so many calls, relative."""
    if not row["timed"] or row["estimated"] == 0:
        return 0
    return 3 * row["deviation_ns"] / row["mean_ns"] / row["timed"] ** 0.5


def wires_off(report, case):
    """Links that carry most are as fast as the network, whether or not calls have durations."""
    links = report["links"]
    if case[4] == "1x4":
        if links:
            yield f"{len(links)} links inside a node"
        return
    most = max((one["bytes"] for one in links), default=0)
    main = [one for one in links if one["bytes"] > most / 2]
    if not main:
        yield "no links between nodes"
    for one in main:
        speed = (one["bytes_per_second"] or 0) / 1e9
        if abs(speed / NETWORK - 1) > WIRE_APART[case[3]]:
            yield f"link {one['from_index']} -> {one['to_index']}: {speed:.2f} GB/s, truth {NETWORK}"


def far_off(report, truth, how):
    if report["total"]["timed"] == 0:
        return
    error = chance(report["total"])
    if report["total"]["not_timed"] == 0:
        apart = SHARE_APART[how] + truth["busy_share"] * min(error, 0.5)
        if abs(report["busy_share"] - truth["busy_share"]) > apart:
            yield f"communication {report['busy_share']:.3f} of run time, truth {truth['busy_share']:.3f}"
    true_rows = rows_of(truth)
    for key, row in rows_of(report).items():
        true = true_rows.get(key)
        if true is None or row["timed"] < TIMED_LEAST or true["timed"] < TIMED_LEAST or row["function"] not in SYNCHRONISING:
            continue
        speed, true_speed = row["busbw_bytes_per_second"], true["busbw_bytes_per_second"]
        if (row["size_least"] or 0) >= 1 << 20 and speed and true_speed:
            if abs(speed / true_speed - 1) > SPEED_APART[how] + min(chance(row) + chance(true), 0.5):
                yield f"{key}: busbw {speed / 1e9:.2f} GB/s, truth {true_speed / 1e9:.2f}"
        if (row["size_least"] or 0) >= 1 << 20 and row["wait_share"] is not None and true["wait_share"] is not None:
            if abs(row["wait_share"] - true["wait_share"]) > WAIT_APART[how]:
                yield f"{key}: waiting {row['wait_share']:.3f}, truth {true['wait_share']:.3f}"


def main():
    cases = [case for case in itertools.product(*(values for _, values in FACTORS)) if is_playable(case)]
    if "--all" not in sys.argv[1:]:
        cases = pairwise(cases)
    print(f"1..{len(cases)}")
    failed = False
    truths = {}
    for number, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as scratch:
            ranks = int(case[4][0]) * int(case[4][2])
            # Releases with the same interface play the same job; those before kernel events have the truth of the next.
            key = (case[0], max(case[1], "2.26"), case[4])
            if key not in truths:
                truths[key] = play(scratch, "truth", (case[0], key[1]) + case[2:], "kernel", "offline")
            report = play(scratch, "job", case, case[2], case[3])
        wrong = [*too_long(report, ranks), *not_absent(report), *far_off(report, truths[key], case[3]), *wires_off(report, case)]
        print(f"{'not ' if wrong else ''}ok {number} - {' '.join(case)}: {report['total']['timed']} of "
              f"{report['total']['calls']} calls are timed")
        for line in wrong[:8]:
            print(f"# {line}")
        sys.stdout.flush()
        failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())
