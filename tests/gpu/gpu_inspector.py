"""Replacing NCCL Inspector: a job with Inspector's variables, and the fate of each operation in its log. The
comparison is tested without a GPU by test_compare.py."""

from collections import Counter
import json
import re

from gpu_fields import SOURCES_TIMED

# The plugin's last line in a process: "ringside: PATH: 12 operations, 10 lines, 2 without a time, 0 lost".
ACCOUNT = re.compile(r"ringside: \S+-pid(\d+)\.log: (\d+) operations, (.*) lost$", re.M)
# Reasons why an operation can have no line even if everything is requested.
REASONS = ("captured into graphs", "of unknown size", "without a time")
KERNEL_SOURCES = ("kernel_gpu", "kernel_cpu")


def settings(directory):
    """Everything that has any time at all."""
    return {"NCCL_INSPECTOR_ENABLE": "1", "NCCL_INSPECTOR_DUMP_DIR": directory,
            "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "500",
            "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING": "0"}


def read_accounts(texts):
    """By pid: the number of operations, and a count per reason."""
    accounts = {}
    for pid, operations, rest in ACCOUNT.findall("\n".join(texts)):
        words = dict(lines=0, lost=0)
        for number, word in re.findall(r"(\d+) ([^,]+)", rest + " lost"):
            words[word.strip()] = int(number)
        accounts[int(pid)] = (int(operations), words)
    return accounts


def _line_key(line):
    kind = "p2p" if "p2p_perf" in line else "coll"
    perf = line[kind + "_perf"]
    return (int(line["header"]["id"], 16), perf[kind], perf[kind + "_msg_size_bytes"],
            perf[kind + "_exec_time_us"])


def _record_key(record):
    is_whole = record.function in ("AllGather", "ReduceScatter")
    return (int(record.comm_hash, 16), record.function,
            record.bytes // record.comm_ranks if is_whole else record.bytes,
            (record.duration_ns + 500) // 1000)


def compare(issued, records, log, account):
    """One rank: its calls, its records, the text of its log, its summary line. A list of problems."""
    problems = []
    wanted = len(issued.calls) + sum(replay["calls"] for replay in issued.replays)
    lines = [json.loads(line) for line in log.splitlines()]
    if account is None:
        return ["no summary of the log on stderr"]
    operations, words = account
    if operations != wanted:
        problems.append("%d operations called, the summary has %d" % (wanted, operations))
    if sum(words.values()) != operations:
        problems.append("the summary does not add up: %d operations, %s" % (operations, words))
    if words["lost"]:
        problems.append("%d lost" % words["lost"])
    if words["lines"] != len(lines):
        problems.append("%d lines, the summary has %d" % (len(lines), words["lines"]))
    strange = set(words) - set(REASONS) - {"lines", "lost"}
    if strange:
        problems.append("skipped for unknown reasons: %s" % sorted(strange))
    return problems + _compare_figures(lines, [r for r in records if r.pid == issued.pid])


def _compare_figures(lines, records):
    """Every operation with a time has its line, with the same size and time."""
    own = Counter(_record_key(record) for record in records if not record.is_captured and
                  record.time_source in SOURCES_TIMED and record.bytes is not None and
                  record.duration_ns)
    told = Counter(_line_key(line) for line in lines
                   if line.get("coll_perf", line.get("p2p_perf"))[
                       ("coll" if "coll_perf" in line else "p2p") + "_timing_source"]
                   in KERNEL_SOURCES)
    missing, more = own - told, told - own
    return (["%d operations with a time have no such line: %s" % (
        sum(missing.values()), list(missing)[:3])] if missing else []) + (
            ["%d lines match no operation: %s" % (sum(more.values()), list(more)[:3])]
            if more else [])
