#!/usr/bin/env python3
"""Exposed communication by Ringside against torch.profiler, from jobs recorded by tests/gpu/exposed.

    tests/report/exposed.py [--page] RINGSIDE DIR

DIR has a folder per scene. What the profiler says is computed here, from its trace: of the kernels that were launched in an
iteration, the union of NCCL's minus the union of the others. The n-th operation of a rank is the n-th kernel of NCCL that
it launched. Prints TAP, or the page docs/results/exposed-h200.md."""

import calendar
import glob
import gzip
import json
import os
import re
import subprocess
import sys
from datetime import datetime

# How far two values may differ: times go through two clocks.
CLOSE_NS = 2000


def union(spans):
    joined = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return joined


def length(spans):
    return sum(end - start for start, end in spans)


def without(spans, others):
    """The length of disjoint spans outside of disjoint others."""
    return sum(end - start - sum(max(0, min(end, to) - max(start, since)) for since, to in others)
               for start, end in spans)


def profiled(path):
    """When the profile begins, NCCL's kernels in the order of their launches, and the union of the others; in ns."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    for event in events:
        # Exact: microseconds with three decimals.
        event["from"] = round(event["ts"] * 1000)
        event["to"] = event["from"] + round(event["dur"] * 1000)
    calls = {event["args"]["correlation"]: event["from"] for event in events
             if event["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in event["args"]}
    kernels = [event for event in events if event["cat"] == "kernel"]
    compute = union((event["from"], event["to"]) for event in kernels if not event["name"].startswith("nccl"))
    comms = sorted((calls[event["args"]["correlation"]], event["from"], event["to"])
                   for event in kernels if event["name"].startswith("nccl"))
    start = min(event["from"] for event in events if event["cat"] == "cpu_op")
    return trace["baseTimeNanoseconds"] + start, [(since, to) for _, since, to in comms], compute


def call_times(ringside, traces, rank):
    """Of all operations of a rank, ns since 1970."""
    output = subprocess.run([ringside, "export", traces, "--format", "jsonl", "-o", "-", "--rank", str(rank)], check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    times = []
    for line in output.splitlines():
        seconds, fraction = json.loads(line)["issue_time"].split(".")
        times.append(calendar.timegm(datetime.fromisoformat(seconds).timetuple()) * 10**9 + int(fraction))
    return times


def reported(ringside, traces, rank, *merge):
    """The report's iterations, those of the pattern."""
    output = subprocess.run([ringside, "report", traces, "--rank", str(rank), "--json", *merge], check=True,
                            stdout=subprocess.PIPE).stdout
    return json.loads(output)["iterations"]


def clock(ringside, traces, trace, scratch):
    output = subprocess.run([ringside, "trace", traces, "--json", "-o", scratch, "--merge", trace], check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return json.loads(output)["torch_traces"][0]


def compare(ringside, directory, rank, scratch):
    traces, trace = directory + "/trace", "%s/kineto-%d.json.gz" % (directory, rank)
    start, comms, compute = profiled(trace)
    before = sum(at < start for at in call_times(ringside, traces, rank))
    alone, merged = reported(ringside, traces, rank), reported(ringside, traces, rank, "--merge", trace)
    rows, whole = [], 0
    for bounds, exact in zip(alone["list"], merged["list"]):
        first = bounds["first_op"] - before
        whole += first >= 0 and first + bounds["ops"] <= len(comms)
        if not exact["is_exposed_measured"]:
            continue
        spans = union(comms[first:first + bounds["ops"]])
        rows.append({"comm": length(spans), "truth": without(spans, compute), "exact": exact["exposed_low_ns"],
                     "low": bounds["exposed_low_ns"], "high": bounds["exposed_high_ns"]})
    return {"scene": os.path.basename(directory), "rank": rank, "rows": rows, "profiled": whole,
            "clock": clock(ringside, traces, trace, scratch)}


def scenes(ringside, directory, scratch):
    for scene in sorted(glob.glob(directory + "/*/")):
        for trace in sorted(glob.glob(scene + "/kineto-*.json.gz")):
            yield compare(ringside, scene.rstrip("/"), int(re.search(r"kineto-(\d+)", trace).group(1)), scratch)


def check(found):
    number = 0
    for one in found:
        rows = one["rows"]
        name = "%s, rank %d" % (one["scene"], one["rank"])
        enough = len(rows) >= one["profiled"] - 1 and len(rows) >= 4
        equal = all(abs(row["exact"] - row["truth"]) <= CLOSE_NS for row in rows)
        # Network spans are no durations: nothing follows from them.
        has_bounds = [row["low"] is not None for row in rows]
        inside = not any(has_bounds) if one["scene"].endswith("-proxy") else all(has_bounds) and all(
            row["low"] - CLOSE_NS <= row["truth"] <= row["high"] + CLOSE_NS for row in rows)
        for good, what in ((enough, "measured in %d of %d iterations" % (len(rows), one["profiled"])),
                           (equal, "what --merge measures is what the profiler says"),
                           (inside, "the bounds without it contain that, or there are none"),
                           (one["clock"]["agreed"] == one["clock"]["compared"] and one["clock"]["offset_ns"] == 0,
                            "%d of %d launches agree on the clock" % (one["clock"]["agreed"], one["clock"]["compared"]))):
            number += 1
            print("%s %d - %s: %s" % ("ok" if good else "not ok", number, name, what))
        if not (equal and inside):
            for row in rows:
                print("# %s" % row)
    print("1..%d" % number)


def middle(values):
    return sorted(values)[len(values) // 2]


def page(found):
    print("""# Exposed communication on an H200

Two ranks of PyTorch share one GPU (NCCL over sockets, MPS); `tests/gpu/exposed` runs them under the recorder and
torch.profiler at once. The profiler's value is computed from its trace alone, by `tests/report/exposed.py`, which also writes this
page: `tests/report/exposed.py --page build/ringside tests/gpu/recorded/exposed`. Medians over the profiled iterations, in ms.
`-proxy`: without kernel events, so only network spans are known, and there are no bounds.

| job | rank | iterations | communication | exposed: profiler | `--merge` | largest difference, us | bounds without it | clocks within, us |
|---|--:|--:|--:|--:|--:|--:|--:|--:|""")
    for one in found:
        rows = one["rows"]
        bounds = "none" if rows[0]["low"] is None else "%.2f to %.2f" % (
            middle([row["low"] for row in rows]) / 1e6, middle([row["high"] for row in rows]) / 1e6)
        print("| %s | %d | %d | %.2f | %.2f | %.2f | %.2f | %s | %.1f |" % (
            one["scene"], one["rank"], len(rows), middle([row["comm"] for row in rows]) / 1e6,
            middle([row["truth"] for row in rows]) / 1e6, middle([row["exact"] for row in rows]) / 1e6,
            max(abs(row["truth"] - row["exact"]) for row in rows) / 1e3, bounds, one["clock"]["within_ns"] / 1e3))


def main():
    is_page = sys.argv[1] == "--page"
    ringside, directory = sys.argv[-2:]
    scratch = os.path.join(os.environ.get("TMPDIR", "/tmp"), "exposed-%d.json" % os.getpid())
    try:
        found = list(scenes(ringside, directory, scratch))
    finally:
        if os.path.exists(scratch):
            os.unlink(scratch)
    page(found) if is_page else check(found)


main()
