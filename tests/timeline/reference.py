"""A slow reference implementation: totals from `ringside dump`, compared with those of src/analysis.

    reference.py DUMP FIGURES    files of JSON lines; says what differs and exits 1
"""

import collections
import json
import math
import sys

SYNCHRONISING = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"}
SHARED = {"AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"}
# The only durations; the others are spans of the network's side, and bounds.
COMPARABLE = ("kernel_gpu", "cuda_event")
QUANTILE_ERROR = 0.0906


def size_class(count):
    if count is None:
        return 0
    return 1 if count == 0 else 2 + count.bit_length() - 1


def bus_factor(function, ranks):
    if function == "AllReduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if function in SHARED else 1


def match_of(op):
    return (op["comm_hash"], op["match"], "replay" in op["flags"], op["time_source"],
            op["signature"])


def is_joined(op):
    return (op["function"] in SYNCHRONISING and op["time_source"] in COMPARABLE and
            op["match"] and op["state"] != "captured")


def row_key(op):
    names = [op[name] or "Unknown" for name in ("function", "datatype", "algorithm", "protocol")]
    return (op["comm_name"] or op["comm_hash"], str(op["rank"]), *names, size_class(op["bytes"]),
            op["time_source"])


def covered(intervals):
    total, end = 0, 0
    for first, last in sorted(intervals):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total


class Row:
    def __init__(self):
        self.durations, self.bytes, self.calls, self.unknown = [], 0, 0, 0
        self.untrusted, self.wait, self.joined = 0, 0, 0
        self.sized_bytes, self.sized_ns, self.bus_bytes = 0, 0, 0.0

    def add(self, op, least):
        self.calls += 1
        self.unknown += op["bytes"] is None
        self.bytes += op["bytes"] or 0
        self.untrusted += any(flag.startswith("stamp_") for flag in op["flags"])
        duration = op["duration_ns"]
        if op["time_source"] not in COMPARABLE:
            return
        self.durations.append(duration)
        if op["bytes"] is not None:
            self.sized_bytes += op["bytes"]
            self.sized_ns += duration
            self.bus_bytes += op["bytes"] * bus_factor(op["function"], op["comm_ranks"] or 1)
        if least is not None:
            self.joined += 1
            self.wait += duration - least


class Check:
    def __init__(self):
        self.wrong = 0

    def same(self, what, got, wanted):
        if got != wanted:
            self.wrong += 1
            if self.wrong < 20:
                print(f"{what}: got {got}, wanted {wanted}")

    def close(self, what, got, wanted, error):
        if abs(got - wanted) > error * max(abs(wanted), 1):
            self.same(what, got, wanted)


def check_row(check, key, row, got):
    values = sorted(row.durations)
    exact = {"calls": row.calls, "timed": len(values), "bytes": row.bytes,
             "unknown_size": row.unknown, "untrusted": row.untrusted, "sum_ns": sum(values),
             "min_ns": min(values, default=0), "max_ns": max(values, default=0),
             "wait_ns": row.wait, "joined": row.joined}
    for name, value in exact.items():
        check.same(f"{key} {name}", got[name], value)
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        if values and values[-1] > 240:
            nth = max(1, math.ceil(share * len(values)))
            check.close(f"{key} {name}", got[name], values[nth - 1], QUANTILE_ERROR)
    check.close(f"{key} mean", got["mean"], sum(values) / len(values) if values else 0, 1e-12)
    rate = 1e9 / row.sized_ns if row.sized_ns else 0
    check.close(f"{key} algbw", got["algbw"], row.sized_bytes * rate, 1e-12)
    check.close(f"{key} busbw", got["busbw"], row.bus_bytes * rate, 1e-12)


def main():
    check = Check()
    ops = [json.loads(line) for line in open(sys.argv[1])]
    ops = [op for op in ops if op["record"] == "operation"]
    got_rows, got_ranks, got_meet = {}, {}, None
    for line in open(sys.argv[2]):
        item = json.loads(line)
        if "row" in item:
            key = ("comm", "rank", "function", "datatype", "algorithm", "protocol", "size_class",
                   "source")
            got_rows[tuple(item[name] for name in key)] = item
        elif "meet" in item:
            got_meet = item
        elif "rank" in item and "busy_ns" in item:
            got_ranks[item["rank"]] = item

    matches = collections.defaultdict(list)
    for op in ops:
        if is_joined(op):
            matches[match_of(op)].append(op)
    least = {key: min(op["duration_ns"] for op in group) for key, group in matches.items()}

    rows = collections.defaultdict(Row)
    intervals, waits = collections.defaultdict(list), collections.Counter()
    untimed = collections.defaultdict(list)
    for op in ops:
        if op["state"] == "captured":
            continue
        is_matched = is_joined(op) and len(matches[match_of(op)]) > 1
        shortest = least[match_of(op)] if is_matched else None
        rows[row_key(op)].add(op, shortest)
        if shortest is not None:
            waits[str(op["rank"])] += op["duration_ns"] - shortest
        if op["time_source"] in COMPARABLE and op["done_ns"]:
            intervals[str(op["rank"])].append((op["done_ns"] - op["duration_ns"], op["done_ns"]))
        elif op["issue_ns"] or op["done_ns"]:
            # Untimed calls are part of a rank's span, from their issue on.
            untimed[str(op["rank"])].append((op["issue_ns"] or op["done_ns"],
                                             max(op["issue_ns"] or 0, op["done_ns"] or 0)))

    check.same("keys that one side lacks", sorted(set(got_rows) ^ set(rows)), [])
    for key in rows:
        if key in got_rows:
            check_row(check, key, rows[key], got_rows[key])
    check.same("operations", got_meet["read"], len(ops))
    # Spans are matched for their time on the wire.
    check.same("joined", got_meet["joined"], sum(
        op["function"] in SYNCHRONISING and op["time_source"] in (*COMPARABLE, "proxy") and bool(op["match"]) and
        op["state"] != "captured" for op in ops))
    check.same("complete", got_meet["complete"],
               sum(len(group) == group[0]["comm_ranks"] for group in matches.values()))
    check.same("waiting", got_meet["wait_ns"], sum(waits.values()))
    for rank, parts in intervals.items():
        check.same(f"rank {rank} wait", got_ranks[rank]["wait_ns"], waits[rank])
        check.same(f"rank {rank} busy", got_ranks[rank]["busy_ns"], covered(parts))
        parts = parts + untimed[rank]
        span = max(last for _, last in parts) - min(first for first, _ in parts)
        check.same(f"rank {rank} span", got_ranks[rank]["span_ns"], span)
    print(f"{len(ops)} operations, {len(rows)} keys, {len(matches)} matches: "
          f"{check.wrong} figures differ")
    return 1 if check.wrong or not rows else 0


sys.exit(main())
