"""Reads logs in NCCL Inspector's format v4.0 by its documentation alone.

    inspector_lines.py shape [verbose] LOG...   every line has every field, in order, of its type
    inspector_lines.py same LOG LOG             the same operations with the same figures; times of writing aside
    inspector_lines.py numbers LOG              each function's sequence numbers on each communicator: no gap, none twice

Exit code 1 and what is wrong otherwise.
"""

import json
import sys

HEADER = [("id", str), ("comm_name", str), ("rank", int), ("n_ranks", int), ("nnodes", int)]
METADATA = [("inspector_output_format_version", str), ("git_rev", str), ("rec_mechanism", str),
            ("dump_timestamp_us", int), ("hostname", str), ("pid", int)]
COLL = [("coll", str), ("coll_sn", int), ("coll_msg_size_bytes", int), ("coll_exec_time_us", int),
        ("coll_timing_source", str), ("coll_algobw_gbs", float), ("coll_busbw_gbs", float)]
P2P = [("p2p", str), ("p2p_sn", int), ("p2p_peer", int), ("p2p_msg_size_bytes", int),
       ("p2p_exec_time_us", int), ("p2p_timing_source", str), ("p2p_algobw_gbs", float),
       ("p2p_busbw_gbs", float)]
EVENT_SN = [("channel_id", int), ("kernel_start_sn", int), ("kernel_stop_sn", int), ("kernel_record_sn", int)]
EVENT_TS = [("channel_id", int), ("kernel_start_ts", int), ("kernel_stop_ts", int), ("kernel_record_ts", int)]
COLLECTIVES = ("AllGather", "AllReduce", "Broadcast", "Reduce", "ReduceScatter")
SOURCES = ("kernel_gpu", "kernel_cpu", "collective_cpu")


def fail(where, why):
    print("%s: %s" % (where, why))
    sys.exit(1)


def expect(where, pairs, wanted):
    """Names in order, and types; a whole number may stand for a broken one."""
    if [name for name, _ in pairs] != [name for name, _ in wanted]:
        fail(where, "fields %s, wanted %s" % ([n for n, _ in pairs], [n for n, _ in wanted]))
    for (name, value), (_, kind) in zip(pairs, wanted):
        if kind not in (list, object) and type(value) is not kind:
            fail(where, "%s is %r, wanted %s" % (name, value, kind.__name__))


def check_events(where, kind, sn, ts):
    for events, name, wanted in ((sn, "sn", EVENT_SN), (ts, "ts", EVENT_TS)):
        expect(where, events, [("%s_start_%s" % (kind, name), int), ("%s_stop_%s" % (kind, name), int),
                               ("kernel_events", list)])
        for event in events[2][1]:
            expect(where, event, wanted)
    numbers = [value for event in sn[2][1] for _, value in event[1:]]
    if len(set(numbers)) != len(numbers) or (numbers and min(numbers) < 2):
        fail(where, "numbers of events are not unique: %s" % numbers)
    return len(sn[2][1])


def check_shape(where, line, is_verbose):
    top = json.loads(line, object_pairs_hook=list)
    kind = "p2p" if top[2][0] == "p2p_perf" else "coll"
    expect(where, top, [("header", object), ("metadata", object), ("%s_perf" % kind, object)])
    expect(where, top[0][1], HEADER)
    expect(where, top[1][1], METADATA)
    perf = top[2][1]
    figures = P2P if kind == "p2p" else COLL
    if is_verbose:
        expect(where, perf, figures + [("event_trace_sn", object), ("event_trace_ts", object)])
        if check_events(where, kind, perf[-2][1], perf[-1][1]) == 0:
            fail(where, "no channel")
    else:
        expect(where, perf, figures)
    named = dict(perf)
    if named[kind] not in (("Send", "Recv") if kind == "p2p" else COLLECTIVES):
        fail(where, "no function of Inspector's: %s" % named[kind])
    if named[kind + "_timing_source"] not in SOURCES:
        fail(where, "no time source of Inspector's")
    if dict(top[1][1])["inspector_output_format_version"] != "v4.0":
        fail(where, "another version")


def check_figures(where, line):
    """Bandwidths follow from size, time and ranks, as nccl-tests defines them."""
    record = json.loads(line)
    kind = "p2p" if "p2p_perf" in record else "coll"
    perf, ranks = record[kind + "_perf"], record["header"]["n_ranks"]
    size, time_us = perf[kind + "_msg_size_bytes"], perf[kind + "_exec_time_us"]
    whole = size * ranks if perf[kind] in ("AllGather", "ReduceScatter") else size
    factor = {"AllReduce": 2 * (ranks - 1) / ranks, "AllGather": (ranks - 1) / ranks,
              "ReduceScatter": (ranks - 1) / ranks}.get(perf[kind], 1)
    algbw, busbw = perf[kind + "_algobw_gbs"], perf[kind + "_busbw_gbs"]
    if abs(busbw - algbw * factor) > 2e-6 * max(1, busbw):
        fail(where, "bus bandwidth %s of %s" % (busbw, algbw))
    if time_us >= 100 and abs(algbw - whole / time_us / 1e3) > 0.01 * algbw + 2e-6:
        fail(where, "bandwidth %s of %s bytes in %s us" % (algbw, whole, time_us))


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                fail("%s:%d" % (path, number), "the last line is not whole")
            yield "%s:%d" % (path, number), line


def operations(path):
    found = []
    for _, line in lines_of(path):
        record = json.loads(line)
        record["metadata"].pop("dump_timestamp_us")
        found.append(json.dumps(record, sort_keys=True))
    return sorted(found)


def main():
    what, paths = sys.argv[1], sys.argv[2:]
    if what == "shape":
        is_verbose = paths[0] == "verbose"
        for path in paths[is_verbose:]:
            for where, line in lines_of(path):
                check_shape(where, line, is_verbose)
                check_figures(where, line)
    elif what == "same":
        ours, other = operations(paths[0]), operations(paths[1])
        if ours != other:
            left, right = set(ours) - set(other), set(other) - set(ours)
            fail("%d and %d lines" % (len(ours), len(other)),
                 "%s\n%s" % (sorted(left)[:2], sorted(right)[:2]))
    elif what == "numbers":
        seen = {}
        for _, line in lines_of(paths[0]):
            record = json.loads(line)
            perf = record.get("coll_perf")
            if perf:
                seen.setdefault((record["header"]["id"], perf["coll"]), []).append(perf["coll_sn"])
        for key, numbers in seen.items():
            if sorted(numbers) != list(range(len(numbers))):
                fail(str(key), "%d numbers, from %d to %d" % (len(numbers), min(numbers), max(numbers)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
