#!/usr/bin/env python3
"""A second, slow and simple implementation of the report's figures, to compare with the real one.

	ringside dump PATH > dump.jsonl
	ringside report --json PATH > report.json
	tests/report/reference.py report.json dump.jsonl [FILTER...]

FILTER is op=NAME, rank=FIRST-LAST, comm=NAME or tag=NUMBER. Counts and bytes must be equal, times equal
to the nanosecond, means to 1e-9, quantiles within the stated error. Prints each difference on a
line, and the number of compared figures; exits with 1 if something differs.
"""
import bisect
import json
import math
import sys
from collections import defaultdict

SYNCHRONISING = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"}
BLIND = {"api_only", "copy_engine", "self", "untracked"}
UNTRUSTED = {"stamp_zero", "stamp_reversed", "stamp_stale", "stamp_overrun", "stamp_channel"}
SOURCES = ("none", "kernel_gpu", "proxy", "host", "cuda_event", "tool")
# The others are spans of the network's side and bounds by the host's clock: counted, in no figure of time.
DURATIONS = ("kernel_gpu", "cuda_event", "tool")
OPEN_STATES = ("issued", "launched", "running")


def bus_factor(function, ranks):
    if function == "AllReduce":
        return 2 * (ranks - 1) / ranks if ranks else 0
    if function in ("AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"):
        return (ranks - 1) / ranks if ranks else 0
    return 1


def comm_kind(op):
    ranks, nodes = op["comm_ranks"], op["comm_nodes"]
    if ranks == 1:
        return "single-rank"
    if not ranks or not nodes:
        return None
    if nodes == 1:
        return "nvlink-only"
    return "net-only" if nodes == ranks else "mixed"


def size_range(op):
    size = op["bytes"]
    if size is None:
        return (None, None)
    if size == 0:
        return (0, 0)
    least = 1 << (size.bit_length() - 1)
    return (least, 2 * least - 1)


def known(name):
    return None if name in (None, "Unknown", "?") else name


def comm_name(op):
    """Communicators without a name share a row per number of ranks and nodes."""
    ranks, nodes = op["comm_ranks"], op["comm_nodes"]
    if op["comm_name"]:
        return op["comm_name"]
    if not ranks or not nodes:
        return "(no name)"
    return f"({ranks} rank{'s'[:ranks > 1]}, {nodes} node{'s'[:nodes > 1]})"


# Parts of a key: computed from an operation, and their place in a row of the report.
PARTS = {
    "comm": lambda op: op["comm_hash"],
    "name": comm_name,
    "kind": comm_kind,
    "function": lambda op: known(op["function"]),
    "size": size_range,
    "datatype": lambda op: known(op["datatype"]),
    "algorithm": lambda op: known(op["algorithm"]),
    "protocol": lambda op: known(op["protocol"]),
    "rank": lambda op: (op["host"], op["pid"]),
    "host": lambda op: op["host"],
    "tag": lambda op: op["user_tag"] or 0,
    "source": lambda op: op["time_source"],
    "job": lambda op: op["job"],
}


def row_part(report, row, part):
    if part == "size":
        return (row["size_least"], row["size_most"])
    if part == "comm":
        return report["communicators"][row["comm_index"]]["hash"]
    if part == "rank":
        rank = report["ranks"][row["rank_index"]]
        return (report["hosts"][rank["host_index"]]["name"], rank["pid"])
    if part == "job":
        return report["jobs"][row["job_index"]]["name"]
    if part == "host":
        return report["hosts"][row["host_index"]]["name"]
    return row[part]


def process_of(op):
    return (op["host"], op["pid"])


def is_timed(op):
    return op["time_source"] in DURATIONS


def add_waiting(ops):
    """Waiting of each operation that can be matched with other ranks."""
    meetings = defaultdict(list)
    for op in ops:
        op["joined"] = False
        if (op["function"] not in SYNCHRONISING or not op["match"] or op["state"] == "captured" or
                op["time_source"] not in DURATIONS or op["comm_hash"] is None):
            continue
        key = (op["job"], op["comm_hash"], op["comm_ranks"], op["match"], "replay" in op["flags"],
               op["time_source"], op["signature"], op["function"], op["datatype"], op["algorithm"],
               op["protocol"], size_range(op))
        meetings[key].append(op)
    for members in meetings.values():
        # Waiting is unknown without other ranks.
        if len(members) < 2:
            continue
        least = min(op["duration_ns"] for op in members)
        for op in members:
            op["joined"] = True
            op["wait_ns"] = op["duration_ns"] - least


def add_flight(ops, report):
    """Operations in flight when the recording ended."""
    ended = set()
    for rank in report["ranks"]:
        if rank["state"] == "ended":
            ended.add((report["hosts"][rank["host_index"]]["name"], rank["pid"]))
    last_done = defaultdict(int)
    for op in ops:
        if op["done_ns"]:
            comm = (process_of(op), op["comm_id"])
            last_done[comm] = max(last_done[comm], op["number"])
    for op in ops:
        op["open"] = (not is_timed(op) and op["state"] in OPEN_STATES and not op["done_ns"] and
                      not BLIND & set(op["flags"]) and process_of(op) not in ended and
                      (op["state"] == "running" or
                       op["number"] > last_done[(process_of(op), op["comm_id"])]))


def add_estimates(ops):
    """Estimated duration of an operation that was not timed: the mean of its kind on its rank."""
    kinds = defaultdict(list)
    for op in ops:
        op["guess"] = None
        if op["state"] != "captured" and not op["open"]:
            kinds[(process_of(op), op["comm_id"], op["function"], op["datatype"], op["algorithm"],
                   op["protocol"], size_range(op))].append(op)
    for members in kinds.values():
        timed = [op for op in members if is_timed(op)]
        if not timed:
            continue
        guess = (sum(op["duration_ns"] for op in timed) / len(timed),
                 sum(op["wait_ns"] for op in timed if op["joined"]) / len(timed))
        for op in members:
            if not is_timed(op):
                op["guess"] = guess


def sum_up(ops, is_by_source):
    calls = [op for op in ops if op["state"] != "captured"]
    timed = sorted(op["duration_ns"] for op in calls if is_timed(op))
    sized = [op for op in calls if op["bytes"] is not None]
    joined = [op for op in calls if op["joined"]]
    moved = [op for op in sized if is_timed(op)]
    bused = [op for op in moved if bus_factor(op["function"], op["comm_ranks"] or 0) > 0]
    sum_ns = sum(timed)
    moved_ns = sum(op["duration_ns"] for op in moved)
    bused_ns = sum(op["duration_ns"] for op in bused)
    in_flight = sum(op["open"] for op in calls)
    guesses = [op["guess"] for op in calls if op["guess"] and not is_by_source]
    exact = {
        "calls": len(calls),
        "in_flight": in_flight,
        "captured": len(ops) - len(calls),
        "unknown_size": len(calls) - len(sized),
        "untrusted": sum(bool(UNTRUSTED & set(op["flags"])) for op in calls),
        "bytes": sum(op["bytes"] for op in sized) if sized or not calls else None,
        "timed": len(timed),
        "estimated": len(guesses),
        "not_timed": len(calls) - in_flight - len(timed) - len(guesses),
        "sources": {s: sum(op["time_source"] == s for op in calls) for s in SOURCES},
        "sum_ns": sum_ns if timed else None,
        "min_ns": timed[0] if timed else None,
        "max_ns": timed[-1] if timed else None,
        "joined": len(joined),
        "joined_ns": sum(op["duration_ns"] for op in joined) if joined else None,
        "wait_ns": sum(op["wait_ns"] for op in joined) if joined else None,
    }
    near = {
        "mean_ns": sum_ns / len(timed) if timed else None,
        "total_ns": sum_ns + sum(guess[0] for guess in guesses) if timed or guesses else None,
        "total_wait_ns": (sum(op["wait_ns"] for op in joined) + sum(guess[1] for guess in guesses)
                          if joined else None),
        "algbw_bytes_per_second":
            sum(op["bytes"] for op in moved) / moved_ns * 1e9 if moved_ns else None,
        "busbw_bytes_per_second":
            sum(op["bytes"] * bus_factor(op["function"], op["comm_ranks"] or 0)
                for op in bused) / bused_ns * 1e9 if bused_ns else None,
    }
    if len(timed) > 1:
        mean = sum_ns / len(timed)
        near["deviation_ns"] = math.sqrt(sum((t - mean)**2 for t in timed) / (len(timed) - 1))
    quantiles = {}
    for name, q, least in (("median_ns", 0.5, 1), ("p90_ns", 0.9, 10), ("p99_ns", 0.99, 100)):
        quantiles[name] = timed[math.ceil(q * len(timed)) - 1] if len(timed) >= least else None
    return exact, near, quantiles, timed


class Comparison:
    def __init__(self, report):
        self.report = report
        self.compared = 0
        self.different = 0

    def differ(self, where, key, got, wanted):
        self.different += 1
        print(f"{where}: {key} is {got}, wanted {wanted}")

    def same(self, where, key, got, wanted):
        self.compared += 1
        if got != wanted:
            self.differ(where, key, got, wanted)

    def near(self, where, key, got, wanted, error, least=0):
        self.compared += 1
        if got is None or wanted is None:
            if got is not wanted and not (got is None and wanted == 0):
                self.differ(where, key, got, wanted)
        elif abs(got - wanted) > max(error * abs(wanted), least):
            self.differ(where, key, got, wanted)

    def histogram(self, where, row, timed):
        bounds = self.report["histogram_upper_ns"]
        first, counts = row["histogram"]["first"], row["histogram"]["counts"]
        self.same(where, "histogram", sum(counts), len(timed))
        below = bisect.bisect_right(timed, bounds[first - 1]) if first > 0 else 0
        for i, count in enumerate(counts):
            high = bounds[first + i]
            upto = len(timed) if high is None else bisect.bisect_right(timed, high)
            self.same(where, f"bucket {first + i}", count, upto - below)
            below = upto

    def row(self, where, row, ops, is_by_source=False):
        exact, near, quantiles, timed = sum_up(ops, is_by_source)
        for key, wanted in exact.items():
            self.same(where, key, row[key], wanted)
        for key, wanted in near.items():
            # Bandwidths are rounded to whole bytes.
            self.near(where, key, row[key], wanted, 1e-6 if key == "deviation_ns" else 1e-9, 1)
        for key, wanted in quantiles.items():
            self.near(where, key, row[key], wanted, self.report["quantile_error"])
        if "histogram" in row:
            self.histogram(where, row, timed)

    def table(self, name, table, ops):
        groups = defaultdict(list)
        for op in ops:
            groups[tuple(PARTS[part](op) for part in table["by"])].append(op)
        rows = {}
        for row in table["rows"]:
            rows[tuple(row_part(self.report, row, part) for part in table["by"])] = row
        self.same(name, "keys", sorted(map(repr, rows)), sorted(map(repr, groups)))
        for key, members in groups.items():
            if key in rows:
                self.row(f"{name} {key}", rows[key], members, "source" in table["by"])


def busy_ns(ops):
    """The union of the times of operations."""
    spans = sorted((op["done_ns"] - op["duration_ns"], op["done_ns"]) for op in ops
                   if is_timed(op) and op["state"] != "captured" and op["done_ns"])
    total, end = 0, 0
    for start, stop in spans:
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def compare_ranks(comparison, ops):
    report = comparison.report
    groups = defaultdict(list)
    for op in ops:
        groups[process_of(op)].append(op)
    for rank in report["ranks"]:
        if not rank["is_shown"]:
            continue
        name = (report["hosts"][rank["host_index"]]["name"], rank["pid"])
        members = groups[name]
        where = f"ranks {name}"
        comparison.same(where, "calls", rank["calls"],
                        sum(op["state"] != "captured" for op in members))
        comparison.same(where, "bytes", rank["bytes"],
                        sum(op["bytes"] or 0 for op in members if op["state"] != "captured"))
        if rank["busy_ns"] is not None:
            comparison.same(where, "busy_ns", rank["busy_ns"], busy_ns(members))
        comparison.same(where, "wait_ns", rank["wait_ns"] or 0,
                        sum(op["wait_ns"] for op in members if op["joined"]))


def passes(op, filters):
    for text in filters:
        key, value = text.split("=", 1)
        if key == "op" and op["function"] not in value.split(","):
            return False
        if key == "comm" and op["comm_name"] != value:
            return False
        if key == "tag" and (op["user_tag"] or 0) != int(value):
            return False
        if key == "rank":
            first, last = value.split("-")
            if not int(first) <= op["rank"] <= int(last):
                return False
    return True


def is_within(op, report):
    """Did it end within the limits of the report, by the wall clock of its host?"""
    end_ns = op["done_ns"] + op["issue_wall_ns"] - op["issue_ns"]
    return ((report["since_ns"] or 0) <= end_ns and
            (report["until_ns"] is None or end_ns < report["until_ns"]))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    ops = []
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if record["record"] == "operation":
                ops.append(record)
    comparison = Comparison(report)
    comparison.same("completeness", "read", report["completeness"]["read"], len(ops))
    # At the limits, some ranks of a collective may be missing. Waiting also depends on ranks excluded by the filter, so
    # match first and filter afterwards.
    if report["since_ns"] or report["until_ns"]:
        ops = [op for op in ops if is_within(op, report)]
    add_waiting(ops)
    add_flight(ops, report)
    ops = [op for op in ops if passes(op, sys.argv[3:])]
    add_estimates(ops)
    comparison.row("total", report["total"], ops)
    for name, table in report["tables"].items():
        comparison.table(name, table, ops)
    for number, table in enumerate(report["custom"]):
        comparison.table(f"custom {number}", table, ops)
    compare_ranks(comparison, ops)
    print(f"{len(ops)} operations, {comparison.compared} figures, {comparison.different} differ")
    return 1 if comparison.different else 0


if __name__ == "__main__":
    sys.exit(main())
