#!/usr/bin/env python3
"""Tests the comparison without GPU or NCCL: a synthetic job of two ranks is recorded
correctly, then each kind of error must be found. Prints TAP."""

import copy
import json
import os
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import gpu_compare_ddp  # noqa: E402
import gpu_cost  # noqa: E402
import gpu_inspector  # noqa: E402
import gpu_overhead  # noqa: E402
import gpu_pages  # noqa: E402
import gpu_releases  # noqa: E402
import gpu_steps  # noqa: E402
from gpu_compare import (BLIND_BROADCAST, BLIND_REPLAYS, Issued, RankResult, Shown,  # noqa: E402
                         call_times, ranks_join, sampled_together)
from gpu_fields import (OPERATION, kernel_state, lost_operations, missing_fields,  # noqa: E402
                        read_dump, verified_counts)
from gpu_job import Place  # noqa: E402

COUNT = [0, 0]
MS = 1_000_000
OFFSET = 400_000


def expect(is_ok, what):
    COUNT[0] += 1
    COUNT[1] += not is_ok
    print("%sok %d - %s" % ("" if is_ok else "not ", COUNT[0], what))


class MadeUp:
    """A log and a recording of one rank that agree."""

    def __init__(self, rank):
        self.rank, self.time, self.number, self.matches = rank, 10_000 * MS, 0, {}
        self.issued = [{"line": "rank", "rank": rank, "ranks": 2, "pid": 100 + rank, "nccl": 22809},
                       {"line": "comm", "comm": 1, "name": "one", "rank": rank, "ranks": 2}]
        self.calls, self.dump = [], []

    def call(self, kind, style, function, count, datatype="float32", captured=0, peer=-1, root=-1,
             phase=""):
        self.time += 25 * MS
        element = 1 if datatype == "uint8" else 4
        whole = 2 if function in ("AllGather", "ReduceScatter") else 1
        call = {"line": "call", "index": len(self.calls), "comm": 1, "kind": kind, "style": style,
                "phase": phase, "function": function, "count": count, "datatype": datatype,
                "bytes": count * element * whole, "root": root, "peer": peer, "captured": captured,
                "begin_ns": self.time, "end_ns": self.time + MS, "host_ns": 5000,
                "event_ns": 0 if captured or style == "burst" else 50_000}
        self.calls.append(call)
        self.issued.append(call)
        return self.record(call, "captured" if captured else "done", [])

    def record(self, call, state, flags, captured_number=None, begin_ns=None):
        self.number += 1
        is_replay = "replay" in flags
        key = ("replay" if is_replay else call["function"] if call["peer"] >= 0 else "collective",
               call["peer"])
        self.matches[key] = self.matches.get(key, 0) + 1
        start = (begin_ns or call["begin_ns"]) + OFFSET + 10_000
        is_timed = state == "done"
        fields = dict.fromkeys(OPERATION.values())
        fields.update({
            "record": "operation", "pid": 100 + self.rank, "comm_id": 1, "comm_name": "one",
            "comm_hash": "0x1", "comm_rank": self.rank, "comm_ranks": 2, "number": self.number,
            "match": self.matches[key], "signature": "0x%x" % self.matches[key],
            "function": call["function"], "count": call["count"],
            "datatype": call["datatype"], "bytes": call["bytes"],
            "root": call["root"] if call["root"] >= 0 else None,
            "peer": call["peer"] if call["peer"] >= 0 and not call["captured"] else None,
            "state": state, "flags": flags, "captured_number": captured_number,
            "time_source": "kernel_gpu" if is_timed else "none",
            "duration_ns": 40_000 if is_timed else None,
            "gpu_start_ns": start if is_timed else None,
            "gpu_stop_ns": start + 40_000 if is_timed else None})
        self.dump.append(fields)
        return fields

    def replay(self, first, calls, records):
        self.time += 25 * MS
        self.issued.append({"line": "replay", "first": first, "calls": calls,
                            "begin_ns": self.time, "end_ns": self.time + MS, "event_ns": 0})
        for index in range(first, first + calls):
            self.record(self.calls[index], "done", ["replay"], records[index - first]["number"],
                        self.time)

    def texts(self):
        end = [{"line": "end", "calls": len(self.calls)}]
        return "\n".join(map(json.dumps, self.issued + end))


def made_up(rank):
    job = MadeUp(rank)
    for _ in range(6):
        job.call("allreduce", "sync", "AllReduce", 256)
    job.call("allreduce", "sync", "AllReduce", 1024, "uint8")
    for _ in range(5):
        job.call("allgather", "burst", "AllGather", 128)
    job.call("broadcast", "sync", "Broadcast", 256, root=1)
    for _ in range(3):
        job.call("sendrecv", "sync", "Send", 256, peer=1 - rank)
        job.call("sendrecv", "sync", "Recv", 256, peer=1 - rank)
    first = len(job.calls)
    captured = [job.call("allreduce", "graph", "AllReduce", 256, captured=1) for _ in range(2)]
    captured.append(job.call("sendrecv", "graph", "Send", 64, captured=1, peer=1 - rank))
    for _ in range(4):
        job.replay(first, 3, captured)
    job.call("allreduce", "sync", "AllReduce", 256, phase="after")
    return job


def compare(job, shown=None):
    records = read_dump("\n".join(map(json.dumps, job.dump)))
    return RankResult(Issued(job.texts()), records, shown), records


def is_good(result):
    return not result.problems and all(row.is_complete for row in result.rows.values())


def with_change(change):
    """The job of rank 0 after `change(dump records)`."""
    job = made_up(0)
    job.dump = copy.deepcopy(job.dump)
    change(job.dump)
    return compare(job)[0]


def complaints(result):
    return "\n".join(result.problems + [p for row in result.rows.values() for p in row.problems])


def one_rank():
    result, records = compare(made_up(0))
    row = result.rows["allreduce", "graph"]
    expect(is_good(result), "a correct recording is complete: " + complaints(result))
    expect((row.captured, row.recorded_captured, row.replayed, row.recorded_replayed)
           == (2, 2, 8, 8), "captures and replays are counted separately")
    expect(result.rows["sendrecv", "sync"].recorded == 6, "eager transfers are counted")
    expect(result.clock_offset_ns is not None
           and abs(result.clock_offset_ns - (OFFSET + 50_000 - MS)) < 1, "the clocks are compared")
    expect(all(0.79 < ratio["median"] < 0.81 for ratio in result.ratios), "ratios to CUDA events")
    expect(any(r["kind"] == "allreduce" and r["gpu_ns"] == 40_000 for r in call_times(result)),
           "median times are reported")
    expect(len(records) == len(made_up(0).dump), "every line of the dump is read")


def lies():
    def drop(index):
        return lambda dump: dump.pop(index)

    def put(index, **fields):
        return lambda dump: dump[index].update(fields)

    cases = [
        ("a missing record", drop(3), "issued"),
        ("a record too many", lambda dump: dump.append(dict(dump[-1], number=len(dump) + 1)),
         "recorded"),
        ("a missing replay", drop(-2), "replayed 4 times, recorded 3"),
        ("a wrong function", put(1, function="AllGather"), "function AllReduce"),
        ("a wrong count", put(1, count=255), "count 256"),
        ("a wrong datatype", put(1, datatype="int32"), "datatype float32"),
        ("uint8 recorded as int8", put(6, datatype="int8"), "datatype uint8"),
        ("uint8 of unknown datatype", put(6, datatype=None), "datatype uint8"),
        ("uint8 of unknown size", put(6, bytes=None), "bytes 1024"),
        ("unknown bytes where they are known", put(1, bytes=None), "bytes 1024"),
        ("wrong bytes in a replay", put(-2, bytes=4), "in its replays"),
        ("a wrong peer", put(13, peer=0), "peer 1"),
        ("a wrong root", put(12, root=0), "root 1"),
        ("a captured call recorded as done", put(19, state="done"), "captured 1"),
        ("a replay without a capture", put(-2, captured_number=None), "which was not captured"),
        ("a gap in the numbers", put(-1, number=99), "without a gap"),
        ("another rank", put(0, comm_rank=1), "rank 0 of 2"),
        ("an unknown communicator", put(-1, comm_id=7, comm_name="other"), "did not create"),
        ("marked timestamps as a time", put(2, flags=["stamp_stale"]), "reported as a time"),
        ("a time of no length", lambda dump: [d.update(duration_ns=0) for d in dump[:6]],
         "median of GPU time"),
        ("a time beyond the events", lambda dump: [d.update(duration_ns=80_000) for d in dump[:6]],
         "median of GPU time"),
    ]
    for what, change, word in cases:
        result = with_change(change)
        expect(not is_good(result) and word in complaints(result),
               "found: %s (%s)" % (what, complaints(result).splitlines()[:1]))


def stamps():
    def stale(dump):
        dump[-1].update(gpu_start_ns=dump[4]["gpu_start_ns"], gpu_stop_ns=dump[4]["gpu_stop_ns"])

    def marked(dump):
        stale(dump)
        dump[-1].update(flags=["stamp_stale"], time_source="proxy")

    expect("another operation's timestamps" in complaints(with_change(stale)),
           "found: another operation's timestamps as a time")
    result = with_change(marked)
    expect(is_good(result) and result.rows["allreduce", "sync"].untrusted == 1,
           "old timestamps that are marked and not used are accepted and counted")


def graph_job(rank=0, has_broadcast=True, has_replays=True, has_calls=True):
    """Eager calls and a graph, as a release shows them."""
    job = MadeUp(rank)
    job.call("allreduce", "sync", "AllReduce", 256)
    first = len(job.calls)
    captured = [job.call("split", "graph", "AllReduce", 256, captured=1),
                job.call("split", "graph", "Broadcast", 64, captured=1, root=1)]
    for _ in range(3):
        job.replay(first, 2, captured)
    job.call("allreduce", "sync", "AllReduce", 256)
    if not has_calls:
        job.dump = [d for d in job.dump if d["state"] != "captured"]
        for fields in job.dump:
            fields.update(flags=[], captured_number=None)
            if fields["function"] == "Broadcast":  # in bytes, of no datatype
                fields.update(count=fields["bytes"], datatype=None)
    job.dump = [d for d in job.dump if "replay" not in d["flags"] or (
        has_replays and (has_broadcast or d["function"] != "Broadcast"))]
    for number, fields in enumerate(job.dump):
        fields["number"] = number + 1
    return job


def releases():
    """The same job, as each release shows it, is complete or has the right blind spot."""
    broadcast = {BLIND_BROADCAST: 3}
    cases = [
        ("2.27", graph_job(has_calls=False), Shown(22707), {}),
        ("2.28", graph_job(), Shown(22809), {}),
        ("2.30", graph_job(has_broadcast=False), Shown(23007), broadcast),
        ("2.30 with NCCL_ALLGATHERV_ENABLE=0", graph_job(), Shown(23007, has_allgatherv=False), {}),
        ("2.30 in one node, kernel events on", graph_job(has_broadcast=False),
         Shown(23007, True, "on"), broadcast),
        ("2.30 in one node, kernel events off", graph_job(has_replays=False),
         Shown(23007, True, "off"), {BLIND_BROADCAST: 3, BLIND_REPLAYS: 3}),
        ("2.30 in one node, captured inside a window", graph_job(has_broadcast=False),
         Shown(23007, True, "sampled"), broadcast),
        ("2.30 in one node, captured outside of windows", graph_job(has_replays=False),
         Shown(23007, True, "sampled"), {BLIND_BROADCAST: 3, BLIND_REPLAYS: 3}),
    ]
    for what, job, shown, blind in cases:
        result, _ = compare(job, shown)
        got = dict(result.rows["split", "graph"].blind)
        expect(is_good(result) and got == blind, "%s: complete, blind %s: %s" % (
            what, got, complaints(result)))
    for what, job, shown in (
            ("replays are missing over the network", graph_job(has_replays=False), Shown(23007)),
            ("replays are missing with kernel events on", graph_job(has_replays=False),
             Shown(23007, True, "on")),
            ("Broadcast's replays are missing on 2.28", graph_job(has_broadcast=False), Shown()),
            ("some replays of one call are missing", part_of_replays(), Shown(23007, True, "sampled")),
            ("a replay is missing on 2.27", short_of_one(), Shown(22707)),
            ("another peer's receive on 2.27", other_peer(), Shown(22707)),
            ("wrong bytes on 2.27", wrong_bytes(), Shown(22707))):
        expect(not is_good(compare(job, shown)[0]), "found: %s (%s)" % (
            what, complaints(compare(job, shown)[0]).splitlines()[:1]))
    grouped = MadeUp(0)
    for peer in (0, 1):
        grouped.call("alltoall", "sync", "Send", 64, peer=peer)
        grouped.call("alltoall", "sync", "Recv", 64, peer=peer)
    grouped.dump = [dict(grouped.dump[i], number=n + 1) for n, i in enumerate((3, 0, 2, 1))]
    expect(is_good(compare(grouped, Shown(22707))[0]), "2.27: a group's order is NCCL's own")


def part_of_replays():
    job = graph_job(has_broadcast=False)
    job.dump = [d for d in job.dump if "replay" not in d["flags"]] + \
        [d for d in job.dump if "replay" in d["flags"]][:2]
    for number, fields in enumerate(job.dump):
        fields["number"] = number + 1
    return job


def short_of_one():
    job = graph_job(has_calls=False)
    job.dump = job.dump[:-1]
    return job


def other_peer():
    job = MadeUp(0)
    job.call("alltoall", "sync", "Recv", 64, peer=1)
    job.dump[0]["peer"] = 0
    return job


def wrong_bytes():
    job = graph_job(has_calls=False)
    next(d for d in job.dump if d["function"] == "Broadcast")["bytes"] = 64
    return job


def sampling():
    jobs = [made_up(0), made_up(1)]
    for job in jobs:
        for fields in job.dump[2:]:
            fields.update(time_source="none", duration_ns=None, gpu_start_ns=None, gpu_stop_ns=None)
    records = [record for job in jobs for record in compare(job)[1]]
    expect(sampled_together(records)[:2] == (2, 0), "both ranks time the same collectives")
    jobs[1].dump[4].update(kernels_started=1)
    records = [record for job in jobs for record in compare(job)[1]]
    expect(sampled_together(records)[:2] == (2, 1), "found: a collective timed on only one rank")
    for words, state in (((("on",) * 2), "on"), ((("sampled",) * 2), "sampled"),
                         (("on", "off"), None)):
        text = json.dumps({"processes": [{"kernel_events": word} for word in words]})
        expect(kernel_state(text) == state, "kernel events are %s" % state)


def two_ranks():
    jobs = [made_up(0), made_up(1)]
    records = [record for job in jobs for record in compare(job)[1]]
    expect(ranks_join(records) == [], "records of two ranks match")
    for what, change in (
            ("a collective of another size", {"count": 1}),
            ("another signature", {"signature": "0xbad"}),
            ("a missing match number", {"match": None})):
        jobs = [made_up(0), made_up(1)]
        jobs[1].dump[2].update(change)
        found = ranks_join([record for job in jobs for record in compare(job)[1]])
        expect(len(found) == 1, "found across ranks: %s (%s)" % (what, found[:1]))
    jobs = [made_up(0), made_up(1)]
    jobs[1].dump[14].update(match=9)
    expect(len(ranks_join([r for job in jobs for r in compare(job)[1]])) == 1,
           "found across ranks: a receive that belongs to another send")


def cut_short():
    job = made_up(0)
    text = "\n".join(json.dumps(line) for line in job.issued)
    result = RankResult(Issued(text), read_dump("\n".join(map(json.dumps, job.dump))))
    expect("did not finish" in complaints(result), "an incomplete rank is reported")
    result = RankResult(Issued(job.texts()), [])
    expect(not is_good(result) and "recorded 0" in complaints(result),
           "no records at all are a failure, not a crash")
    expect(missing_fields("\n".join(map(json.dumps, job.dump))) == [], "no field is missing")
    expect("number" in missing_fields('{"record":"operation","pid":1}'), "missing fields are named")


def ddp_account():
    explicit = [{"function": "AllReduce", "count": 1009, "datatype": "float32", "peer": -1},
                {"function": "AllReduce", "count": 1019, "datatype": "uint8", "peer": -1},
                {"function": "AllReduce", "count": 1, "datatype": "float32", "peer": -1},
                {"function": "Send", "count": 1049, "datatype": "float32", "peer": 1},
                {"function": "Recv", "count": 1049, "datatype": "float32", "peer": 1}]
    own = {"rank": 0, "ranks": 2, "pid": 5, "explicit": explicit, "buckets": [100, 200, 100, 200],
           "plain_elements": 600, "flight_recorder": {"nccl:all_reduce": 11, "nccl:strange": 1}}

    def line(comm, function, count, datatype="float32", peer=None):
        return dict(dict.fromkeys(OPERATION.values()), record="operation", pid=5, comm_id=comm,
                    function=function, count=count, datatype=datatype, peer=peer, flags=[],
                    state="done", time_source="none", number=1)

    dump = [line(4, c["function"], c["count"], c["datatype"],
                 c["peer"] if c["peer"] >= 0 else None) for c in explicit]
    dump += [line(2, "AllReduce", n) for n in own["buckets"]]
    dump += [line(3, "AllReduce", n) for n in (300, 300)] + [line(1, "AllReduce", 1)]
    dump += [line(2, "Broadcast", 17), line(3, "AllGather", 3)]
    return own, dump


def ddp():
    own, dump = ddp_account()

    def hard(changed):
        rows = gpu_compare_ddp.compare(own, read_dump("\n".join(map(json.dumps, changed))))
        return [row["what"] for row in rows if row["is_hard"] and not row["is_equal"]]

    expect(hard(dump) == [], "a correct training is complete: %s" % hard(dump))
    expect(any("explicit AllReduce" in what for what in hard(dump[1:])),
           "found: an explicit call is missing")
    expect(any("with a hook" in what for what in hard(dump[:5] + dump[6:])),
           "found: a bucket is missing")
    expect(any("without a hook" in what for what in hard(dump[:9] + dump[10:])),
           "found: bytes are missing")
    expect(any("per peer" in what for what in hard([dict(d, peer=0 if d["peer"] else None)
                                                    for d in dump])), "found: a wrong peer")
    expect(hard([]) != [], "found: nothing was recorded")


def fsdp():
    calls = [{"function": "AllGather", "bytes": 800}, {"function": "AllGather", "bytes": 400},
             {"function": "ReduceScatter", "bytes": 800}]
    own = {"rank": 0, "ranks": 2, "pid": 5, "calls": calls, "flight_recorder": {}}

    def hard(changed):
        dump = [dict(dict.fromkeys(OPERATION.values()), record="operation", pid=5, comm_id=1,
                     number=1, flags=[], **call) for call in changed]
        rows = gpu_compare_ddp.compare(own, read_dump("\n".join(map(json.dumps, dump))))
        return [row["what"] for row in rows if row["is_hard"] and not row["is_equal"]]

    expect(hard(calls + [{"function": "AllReduce", "bytes": 4}]) == [],
           "a correct FSDP job is complete: %s" % hard(calls))
    expect(hard(calls[1:]) != [] and hard(calls + calls[:1]) != [],
           "found: a call is missing, a call too many")
    expect(hard(calls[1:] + [{"function": "AllGather", "bytes": None}]) != [],
           "found: an unknown size")


def figures():
    pairs = [[(1000 + i, 1100 + i) for i in range(12)] for _ in range(3)]
    found = gpu_overhead.ratio_of(pairs)
    expect(abs(found["ratio"] - 1.1) < 0.01, "the ratio of medians")
    expect(found["interval"][0] <= found["ratio"] <= found["interval"][1], "is inside its interval")
    expect(gpu_overhead.ratio_of([]) is None, "no samples, no ratio")
    samples = {(variant, style, size): [{"call_ns": 10, "host_ns": 5}] * 4
               for variant in gpu_overhead.VARIANTS for style, size, _ in gpu_overhead.BLOCKS}
    rows = gpu_overhead.rows_of([samples])
    expect(len(rows) == len(gpu_overhead.BLOCKS) * (len(gpu_overhead.VARIANTS) - 1)
           and rows[0]["rounds"] == 4, "a row per size, style and variant")


def inspector_log(job):
    """What the plugin would write instead of Inspector, and its last line."""
    lines, left = [], {"captured into graphs": 0}
    for fields in job.dump:
        kind = "p2p" if fields["function"] in ("Send", "Recv") else "coll"
        size = fields["bytes"]
        if fields["state"] == "captured":
            left["captured into graphs"] += 1
            continue
        whole = 2 if fields["function"] in ("AllGather", "ReduceScatter") else 1
        lines.append(json.dumps({"header": {"id": "0x1"}, kind + "_perf": {
            kind: fields["function"], kind + "_msg_size_bytes": size // whole,
            kind + "_exec_time_us": 40, kind + "_timing_source": "kernel_gpu"}}))
    told = "ringside: /x/host-pid%d.log: %d operations, %d lines%s, 0 lost" % (
        100 + job.rank, len(job.dump), len(lines),
        "".join(", %d %s" % (count, words) for words, count in left.items()))
    return lines, told


def inspector():
    job = made_up(0)
    lines, told = inspector_log(job)
    issued, records = Issued(job.texts()), compare(job)[1]

    def found(changed, word):
        account = gpu_inspector.read_accounts(["noise", word, "noise"]).get(100)
        return gpu_inspector.compare(issued, records, "\n".join(changed), account)

    expect(found(lines, told) == [], "a correct log is complete: %s" % found(lines, told))
    expect(found(lines[1:], told) != [], "found: a line is missing")
    expect(found(lines + lines[:1], told) != [], "found: a duplicate line")
    expect(found(lines, "") != [], "found: no summary")
    expect(found(lines, told.replace("0 lost", "1 lost")) != [], "found: one is lost")
    expect(found(lines, told.replace("%d operations" % len(job.dump), "3 operations")) != [],
           "found: the summary does not add up")
    expect(found(lines, told.replace("captured into graphs", "below the least size")) != [],
           "found: an unknown reason")
    expect(found([line.replace('us": 40', 'us": 41') for line in lines], told) != [],
           "found: another time")


def layouts():
    """Values of --nccl."""
    with tempfile.TemporaryDirectory(prefix="ringside-nccl-") as scratch:
        def put(*parts):
            path = os.path.join(scratch, *parts)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write("NCCL_MAJOR   := 2\nNCCL_MINOR   := 27\nNCCL_PATCH   := 7\n"
                           "NCCL_SUFFIX  :=\nPKG_REVISION := 1\n")

        for name, include, lib in (("built", "build/include", "build/lib"), ("flat", ".", "."),
                                   ("prefix", "include", "lib")):
            put(name, include, "nccl.h")
            put(name, lib, "libnccl.so.2")
            found, complaints = gpu_releases.resolve([os.path.join(scratch, name)], scratch, "", 1, str)
            expect(not complaints and found[0]["library"].endswith("libnccl.so.2"),
                   "--nccl takes a built NCCL: %s" % name)
        put("long", "nccl.h")
        put("long", "libnccl.so.2.27.7")
        found, _ = gpu_releases.resolve([os.path.join(scratch, "long")], scratch, "", 1, str)
        expect(os.path.basename(found[0]["library"]) == "libnccl.so.2", "with the name that programs load")
        put("packed", "nccl-2.27.7", "src", "nccl.h.in")
        put("packed", "nccl-2.27.7", "makefiles", "version.mk")
        source = gpu_releases.source_in(os.path.join(scratch, "packed"))
        expect(gpu_releases.source_version(source) == "2.27.7", "the release of sources is found")
        archive = os.path.join(scratch, "nccl.tar.gz")
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(os.path.join(scratch, "packed", "nccl-2.27.7"), "nccl-2.27.7")
        again = gpu_releases.source_in(gpu_releases.unpack(archive, scratch))
        expect(gpu_releases.source_version(again) == "2.27.7", "and that of a tarball")
        found, complaints = gpu_releases.resolve([os.path.join(scratch, "no")], scratch, "", 1, str)
        expect(not found and len(complaints) == 1, "found: a directory without NCCL")


def costs():
    names = ["none", "none, again", "slow"]
    blocks = gpu_cost.blocks_of("node")
    sessions = [{(name, style, size): [{"call_ns": (1000 + i) * (1.2 if name == "slow" else 1),
                                        "host_ns": 5} for i in range(20)]
                 for name in names for style, size, _, _ in blocks} for _ in range(2)]
    rows = gpu_cost.rows_of(sessions, "node", names)
    expect(len(rows) == 2 * len(blocks), "a row per configuration, size and style")
    expect(all(abs(row["ratio"] - (1.2 if row["configuration"] == "slow" else 1)) < 1e-9 and
               row["interval"][0] <= row["ratio"] + 1e-9 and row["interval"][1] >= row["ratio"] - 1e-9
               for row in rows), "ratios of blocks of the same round, and their intervals")
    expect(gpu_cost.blocks_of("node")[-1][0] == "graph" or "graph" not in gpu_cost.PHASES[0][0],
           "graphs come last")


def merging():
    cell = {"nccl": "2.30.7", "transport": "node", "ranks": 4, "events": "default", "is_complete": True,
            "outcome": "ended well", "eager": 5, "blind": {BLIND_REPLAYS: 7}}
    runs = [{"when": "2026-01-02", "command": "b", "seconds": 1, "matrix": [dict(cell, eager=6)]},
            {"when": "2026-01-01", "command": "a", "seconds": 1, "matrix": [cell, dict(cell, ranks=8)]}]
    found = gpu_pages.merged(runs)
    expect(len(found["matrix"]) == 2 and found["matrix"][0]["eager"] == 6,
           "if a cell ran twice, the later run counts")
    expect([run["command"] for run in found["commands"]] == ["a", "b"], "commands by time")
    page = "\n".join(gpu_pages.releases_page(found))
    expect("complete, 7 blind" in page and BLIND_REPLAYS in page, "a page has blind spots by name")
    expect(gpu_steps.command_words(["--nccl", HERE, "--results", "/x", "--only", "cost"])
           == "tests/gpu/run --nccl gpu --only cost", "commands have no paths of this host")


def verify_output():
    text = json.dumps({"processes": [
        {"pid": 1, "issued": 10, "recorded": 8, "in_flight": 2, "lost_operations": 0, "lost": {}},
        {"pid": 2, "issued": 9, "recorded": 7, "in_flight": 0, "lost_operations": 2,
         "lost": {"quota": 2}}]})
    expect(verified_counts(text) == {1: (10, 10, 0), 2: (9, 7, 2)}, "verify's counts are read")
    expect(lost_operations(text) == {"quota": 2}, "losses are added up by reason")
    expect(verified_counts("nonsense") == {}, "other text has no counts")


def main():
    for part in (one_rank, lies, stamps, releases, sampling, two_ranks, cut_short, ddp, fsdp, figures, costs, layouts,
                 merging, inspector, verify_output):
        part()
    expect(Place is not None, "the job's parts load")
    print("1..%d" % COUNT[0])
    return 1 if COUNT[1] else 0


if __name__ == "__main__":
    sys.exit(main())
