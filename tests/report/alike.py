#!/usr/bin/env python3
"""The same job played through the plugin and computed as trace files, record by record.

    alike.py [--all]

Over releases, workloads and what is timed: every call is in both, with the same fields, and a field that is unknown in one is
unknown in the other. Steps are not compared (a played job makes fewer, larger ones), nor how long anything took: truth.py does
that. Nor are bounds by the host's clock, which depend on when a record leaves memory. Prints TAP. BUILD is the build directory.
"""

import json
import os
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
RINGSIDE = os.path.join(BUILD, "ringside")
EQUAL = ("comm_name", "comm_rank", "comm_ranks", "comm_nodes", "match", "signature", "captured_number", "function", "datatype",
         "algorithm", "protocol", "count", "bytes", "root", "peer", "channels", "warps", "user_tag", "nccl_sequence",
         "kernels_started", "kernels_stopped", "proxies_started", "proxies_stopped", "send_bytes", "recv_bytes")
KNOWN = ("issue_ns", "launch_ns", "task_ns")
# Which launches a recorder times by itself depends on the pace that it measures.
TIMED = ("active_ns", "time_source", "duration_ns", "gpu_start_ns", "gpu_stop_ns")
TRIES = 3
CASES = (
    ("2.23", "fsdp", "2x2", "off"), ("2.25", "tp-pp", "2x2", "off"), ("2.26", "moe", "2x2", "kernel"), ("2.27", "ddp", "2x2", "off"),
    ("2.27", "tp-pp", "1x4", "kernel"), ("2.28", "moe", "2x2", "auto"), ("2.29", "ddp", "2x4", "off"), ("2.30", "fsdp", "4x1", "kernel"),
    ("2.31", "tp-pp", "2x2", "auto"), ("2.31", "fsdp", "1x2", "off"),
)
MORE = tuple((release, workload, shape, times)
             for release in ("2.23", "2.24", "2.25", "2.26", "2.27", "2.28", "2.29", "2.30", "2.31")
             for workload in ("ddp", "fsdp", "tp-pp", "moe") for shape in ("2x2", "1x4") for times in ("off", "kernel"))


def records(scratch, name, case, *options):
    release, workload, shape, times = case
    nodes, gpus = shape.split("x")
    folder = os.path.join(scratch, name)
    environment = dict(os.environ, RINGSIDE_SHM=os.path.join(scratch, name + ".shm"))
    os.mkdir(environment["RINGSIDE_SHM"])
    subprocess.run([RINGSIDE, "sim", "--nodes", nodes, "--gpus", gpus, "-w", workload, "--release", release, "--times", times,
                    "--network", "6", "--seconds", "5s", "--seed", "19", "-m", "trace", "-o", folder, *options],
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, env=environment, timeout=120)
    run = subprocess.run([RINGSIDE, "dump", folder], stdout=subprocess.PIPE, check=True, timeout=120)
    rows = (json.loads(line) for line in run.stdout.splitlines())
    return {(row["rank"], row["comm_hash"], row["number"]): row for row in rows if row["record"] == "operation"}


def source_of(row):
    return "none" if row["time_source"] == "host" else row["time_source"]


def differences(played, computed, times):
    for key in sorted(played.keys() ^ computed.keys()):
        yield "%s: only %s" % (key, "played" if key in played else "computed")
    for key in sorted(played.keys() & computed.keys()):
        one, other = played[key], computed[key]
        for field in EQUAL + (("state",) if times != "auto" else ()):
            if one[field] != other[field]:
                yield "%s %s: %s is %s played, %s computed" % (key, one["function"], field, one[field], other[field])
        for field in KNOWN + (TIMED if times != "auto" else ()):
            if (one[field] is None) != (other[field] is None) or (field == "time_source" and source_of(one) != source_of(other)):
                yield "%s %s: %s is %s played, %s computed" % (key, one["function"], field, one[field], other[field])


def main():
    cases = MORE if "--all" in sys.argv[1:] else CASES
    failed = 0
    for number, case in enumerate(cases, 1):
        # On a busy machine events of the simulated NCCL can come after an operation has left memory.
        for _ in range(TRIES):
            with tempfile.TemporaryDirectory() as scratch:
                played, computed = records(scratch, "played", case), records(scratch, "computed", case, "--offline")
            found = list(differences(played, computed, case[3]))
            if not found:
                break
        failed += bool(found) or not played
        print("%sok %d - %s: %d calls" % ("not " if found or not played else "", number, " ".join(case), len(played)))
        kinds = {}
        for line in found:
            kinds.setdefault(line.split(": ")[1].split(" is ")[0], []).append(line)
        for lines in kinds.values():
            print("# %s (%d like this)" % (lines[0], len(lines)))
        sys.stdout.flush()
    print("1..%d" % len(cases))
    return 1 if failed else 0


sys.exit(main())
