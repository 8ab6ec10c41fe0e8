"""Compares what was called with what was recorded, for one rank and across ranks. No files, no processes:
everything here is tested without a GPU by test_compare.py."""

from collections import Counter, defaultdict
import json
from statistics import median

from gpu_fields import SOURCES_TIMED

# A timestamp belongs to another operation if it is this far outside its call. Calls to be distinguished
# are 25 ms apart; the GPU's clock drifts by less than a millisecond relative to the host's.
STAMP_SLACK_NS = 5_000_000
# Not on a busy host with the fake GPU: --no-times.
ARE_TIMES_JUDGED = True
COLLECTIVES = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"}
PROBLEMS_SHOWN = 12
# Names of docs/BLIND-SPOTS.md.
BLIND_BROADCAST, BLIND_REPLAYS = "broadcast_call_only", "graph_replays_without_kernel_events"
ALL, NONE, EITHER = "all", "none", "either"


class Shown:
    """What a release of NCCL shows of a job: docs/BLIND-SPOTS.md has the list, this is the part that the comparison
    needs. `kernel` is "on", "sampled" or "off"."""

    def __init__(self, number=22809, is_one_node=False, kernel="on", has_allgatherv=True):
        self.number, self.is_one_node, self.kernel = number, is_one_node, kernel
        # Before 2.28 there is no event for the call itself, so a capture is not visible.
        self.has_calls = number >= 22800
        # From 2.29 on Broadcast is a kind of kernel for which NCCL has no event.
        self.has_broadcast = number < 22900 or not has_allgatherv

    def replays(self, function):
        """How many of a captured call's replays have a record, and the blind spot if not all have."""
        if function == "Broadcast" and not self.has_broadcast:
            return NONE, BLIND_BROADCAST
        if not self.is_one_node or self.kernel == "on":
            return ALL, None
        # NCCL decides at the capture; a sampling window may have been open just then.
        return (EITHER if self.kernel == "sampled" else NONE), BLIND_REPLAYS

    def is_in_bytes(self, function):
        """NCCL turns these into bytes before the event, and before 2.28 there is no other event."""
        return not self.has_calls and function in ("AllGather", "Broadcast")


class Issued:
    """A rank's own log of its calls, from issued-RANK.jsonl."""

    def __init__(self, text):
        self.rank = self.ranks = self.pid = self.nccl = None
        self.comms, self.calls, self.replays = {}, [], []
        self.is_complete = False
        for line in text.splitlines():
            self._take(json.loads(line))
        self.calls.sort(key=lambda call: call["index"])

    def _take(self, fields):
        kind = fields["line"]
        if kind == "rank":
            self.rank, self.ranks = fields["rank"], fields["ranks"]
            self.pid, self.nccl = fields["pid"], fields["nccl"]
        elif kind == "comm":
            self.comms[fields["comm"]] = fields
        elif kind == "call":
            self.calls.append(fields)
        elif kind == "replay":
            self.replays.append(fields)
        elif kind == "end":
            self.is_complete = fields["calls"] == len(self.calls)


class Row:
    """One case and style on one rank."""

    def __init__(self):
        self.issued = self.captured = self.replayed = 0
        self.recorded = self.recorded_captured = self.recorded_replayed = 0
        self.timed = self.gpu_timed = self.untrusted = self.lost = 0
        self.unseen_captured = self.read_replays = 0
        self.functions = Counter()
        self.blind = Counter()
        self.problems = []

    @property
    def is_complete(self):
        """Every record exists, or a blind spot explains its absence."""
        return (not self.problems and self.issued == self.recorded
                and self.captured == self.recorded_captured + self.unseen_captured
                and self.replayed == self.recorded_replayed + sum(self.blind.values()))

    def take(self, record, is_replay=None):
        """Adds a record to the row. If NCCL does not distinguish replays, the caller does."""
        is_replay = record.is_replay if is_replay is None else is_replay
        self.recorded_captured += record.is_captured and not is_replay
        self.recorded_replayed += is_replay
        self.recorded += not record.is_captured and not is_replay
        self.timed += record.time_source in SOURCES_TIMED
        self.gpu_timed += record.is_gpu_timed
        self.untrusted += record.is_untrusted

    def as_dict(self):
        fields = {name: value for name, value in vars(self).items()
                  if name not in ("functions", "blind")}
        fields["functions"], fields["blind"] = dict(self.functions), dict(self.blind)
        fields["problems"] = self.problems[:PROBLEMS_SHOWN]
        return fields


class Pair:
    """A record with the call or launch it belongs to."""

    __slots__ = ("call", "record", "begin_ns", "end_ns", "event_ns", "is_replay")

    def __init__(self, call, record, launch=None):
        times = launch or call
        self.call, self.record, self.is_replay = call, record, launch is not None
        self.begin_ns, self.end_ns = times["begin_ns"], times["end_ns"]
        self.event_ns = 0 if launch else times["event_ns"]


class RankResult:
    """The comparison of one rank: rows by (kind, style), pairs for the times."""

    def __init__(self, issued, records, shown=None):
        self.issued, self.shown = issued, shown or Shown()
        self.rows = defaultdict(Row)
        self.pairs = []
        self.problems = []
        self.clock_offset_ns = None
        self.ratios = []
        if not issued.is_complete:
            self.problems.append("the rank did not finish")
        _rank_compare(self, [r for r in records if r.pid == issued.pid])


def _row_of(result, call):
    return result.rows[call["kind"], call["style"]]


def _comms_join(result, records):
    """Records by the driver's number of the communicator: by name, otherwise by order of creation."""
    by_comm = defaultdict(list)
    for record in records:
        by_comm[record.comm].append(record)
    names = {comm: own[0].comm_name for comm, own in by_comm.items()}
    joined = {}
    left = sorted(by_comm)
    for order, comm in sorted(result.issued.comms.items()):
        named = [c for c in left if names[c] == comm["name"]]
        found = named[0] if named else (order if order in left and not names[order] else None)
        if found is None:
            continue
        left.remove(found)
        joined[order] = sorted(by_comm[found], key=lambda r: r.number)
    for comm in left:
        result.problems.append("%d records on communicator %s (%r), which the driver did not create"
                               % (len(by_comm[comm]), comm, names[comm]))
    return joined


def _kind_difference(call, record, shown):
    """Function, count, datatype and bytes."""
    wrong = []
    if record.function != call["function"]:
        wrong.append("function %s is recorded as %s" % (call["function"], record.function))
    if record.bytes != call["bytes"]:
        wrong.append("bytes %s are recorded as %s" % (call["bytes"], record.bytes))
    if shown.is_in_bytes(call["function"]):
        return wrong
    if record.count != call["count"]:
        wrong.append("count %s is recorded as %s" % (call["count"], record.count))
    if record.datatype != call["datatype"]:
        wrong.append("datatype %s is recorded as %s" % (call["datatype"], record.datatype))
    return wrong


def _difference(call, record, shown, is_replay=False):
    """Differences between a record and its call: a list of short texts."""
    wrong = _kind_difference(call, record, shown)
    # NCCL reports the peer when the transfer is enqueued: for a captured one at its replays.
    is_peer_told = not call["captured"] or is_replay or (record.peer is not None and
                                                         record.peer >= 0)
    if call["peer"] >= 0 and is_peer_told and record.peer != call["peer"]:
        wrong.append("peer %s is recorded as %s" % (call["peer"], record.peer))
    if call["root"] >= 0 and record.root != call["root"]:
        wrong.append("root %s is recorded as %s" % (call["root"], record.root))
    if bool(call["captured"] and not is_replay) != record.is_captured:
        wrong.append("captured %d is recorded in state %s" % (call["captured"], record.state))
    return wrong


def _counts_problem(calls, records):
    wanted = Counter(call["function"] for call in calls)
    got = Counter(record.function for record in records)
    return ", ".join("%s: issued %d, recorded %d" % (name, wanted[name], got[name])
                     for name in sorted(set(wanted) | set(got)) if wanted[name] != got[name])


def _calls_compare(result, calls, records):
    """Eager and captured calls of one communicator, in call order."""
    if len(calls) != len(records):
        problem = _counts_problem(calls, records)
        for row in {id(_row_of(result, c)): _row_of(result, c) for c in calls}.values():
            row.problems.append("on its communicator: " + problem)
        if not calls:
            result.problems.append("records on a communicator that was not used: " + problem)
    for call, record in zip(calls, records):
        row = _row_of(result, call)
        row.take(record)
        wrong = _difference(call, record, result.shown)
        if wrong:
            row.problems.append("call %d: %s" % (call["index"], "; ".join(wrong)))
        result.pairs.append(Pair(call, record))
    return {call["index"]: record for call, record in zip(calls, records)}


def _launches_of(issued, comm):
    """For every captured call of the communicator, the launches of its graph, in order."""
    launches = defaultdict(list)
    for replay in issued.replays:
        for index in range(replay["first"], replay["first"] + replay["calls"]):
            if issued.calls[index]["comm"] == comm:
                launches[index].append(replay)
    return launches


def _replays_compare(result, launches, records, record_of):
    """Replays by the captured call that they name."""
    by_captured = defaultdict(list)
    for record in records:
        by_captured[record.captured_number].append(record)
    for index, own in sorted(launches.items()):
        call = result.issued.calls[index]
        row = _row_of(result, call)
        row.replayed += len(own)
        captured = record_of.get(index)
        found = by_captured.pop(captured.number, []) if captured else []
        for record in found:
            row.take(record)
        wanted, blind = result.shown.replays(call["function"])
        if wanted != ALL and not found:
            row.blind[blind] += len(own)
            continue
        if len(found) != len(own) or any(r.function != call["function"] for r in found):
            row.problems.append("call %d was replayed %d times, recorded %d times (%s)" % (
                index, len(own), len(found), dict(Counter(r.function for r in found))))
        sizes = {r.bytes for r in found} - {call["bytes"]}
        if sizes:
            row.problems.append("call %d: bytes %s are recorded as %s in its replays" % (
                index, call["bytes"], sorted(sizes, key=str)[:3]))
        result.pairs += [Pair(call, r, launch) for r, launch in zip(found, own)]
    for number, left in by_captured.items():
        result.problems.append("%d replays of operation %s, which was not captured (%s)" % (
            len(left), number, dict(Counter(r.function for r in left))))


def _read_replays_compare(result, launches, records, record_of):
    """Replays read from events in the graph: never more than there were, each inside a launch of its graph."""
    by_captured = defaultdict(list)
    for record in records:
        by_captured[record.captured_number].append(record)
    for index, own in sorted(launches.items()):
        captured = record_of.get(index)
        found = by_captured.pop(captured.number, []) if captured else []
        row = _row_of(result, result.issued.calls[index])
        row.read_replays += len(found)
        if len(found) > len(own):
            row.problems.append("call %d was replayed %d times, read %d times" % (
                index, len(own), len(found)))
        longest = max(launch["end_ns"] - launch["begin_ns"] for launch in own)
        for record in found:
            if not 0 < (record.gpu_duration_ns or 0) <= longest and ARE_TIMES_JUDGED:
                row.problems.append("call %d: a replay of %s ns is read, its launches took at most %d" % (
                    index, record.gpu_duration_ns, longest))
    for number, left in by_captured.items():
        result.problems.append("%d replays read of operation %s, which was not replayed" % (len(left), number))


def _numbers_check(result, order, records):
    numbers = [record.number for record in records]
    if numbers != list(range(1, len(numbers) + 1)):
        result.problems.append("operation numbers on communicator %d are not 1..%d without a gap"
                               % (order, len(numbers)))


def _runs_of(issued, comm):
    """What ran on a communicator, in order: (call, None) or, for a captured call, (call, launch)."""
    runs = [(call["begin_ns"], 0, call["index"], call, None) for call in issued.calls
            if call["comm"] == comm and not call["captured"]]
    for order, launch in enumerate(issued.replays):
        runs += [(launch["begin_ns"], 1 + order, index, issued.calls[index], launch)
                 for index in range(launch["first"], launch["first"] + launch["calls"])
                 if issued.calls[index]["comm"] == comm]
    return [run[3:] for run in sorted(runs, key=lambda run: run[:3])]


def _line_of(function, peer, root):
    """NCCL keeps the order within these if it shows tasks and not calls: a group's transfers come in the order
    of its own schedule."""
    return (function, peer) if function in ("Send", "Recv") else ("collective", function, root)


def _runs_compare(result, comm, records):
    """Before 2.28: no record at the capture, and a replay looks like any other operation."""
    wanted, got = defaultdict(list), defaultdict(list)
    for call, launch in _runs_of(result.issued, comm):
        wanted[_line_of(call["function"], call["peer"], call["root"])].append((call, launch))
    for record in records:
        root = record.root if record.function in ("Broadcast", "Reduce") else -1
        got[_line_of(record.function, record.peer, root)].append(record)
    for line in sorted(set(wanted) | set(got), key=str):
        own, found = wanted[line], got[line]
        if len(own) != len(found):
            problem = "%s: issued %d, recorded %d" % (" ".join(map(str, line)), len(own), len(found))
            rows = {id(_row_of(result, call)): _row_of(result, call) for call, _ in own}
            for row in rows.values():
                row.problems.append("on its communicator: " + problem)
            if not own:
                result.problems.append("records without a call: " + problem)
        for (call, launch), record in zip(own, found):
            row = _row_of(result, call)
            row.take(record, is_replay=launch is not None)
            wrong = _difference(call, record, result.shown, launch is not None)
            if wrong:
                row.problems.append("call %d: %s" % (call["index"], "; ".join(wrong)))
            result.pairs.append(Pair(call, record, launch))
    for call in result.issued.calls:
        if call["comm"] == comm and call["captured"]:
            _row_of(result, call).unseen_captured += 1
    for index, own in _launches_of(result.issued, comm).items():
        _row_of(result, result.issued.calls[index]).replayed += len(own)


def _rank_compare(result, records):
    issued = result.issued
    for call in issued.calls:
        row = _row_of(result, call)
        row.captured += bool(call["captured"])
        row.issued += not call["captured"]
        row.functions[call["function"]] += 1
    joined = _comms_join(result, records)
    for order, comm in sorted(issued.comms.items()):
        own = joined.get(order, [])
        if result.shown.has_calls:
            calls = [call for call in issued.calls if call["comm"] == order]
            record_of = _calls_compare(result, calls, [r for r in own if not r.is_replay])
            launches = _launches_of(issued, order)
            _replays_compare(result, launches,
                             [r for r in own if r.is_replay and not r.is_replay_read], record_of)
            _read_replays_compare(result, launches, [r for r in own if r.is_replay_read],
                                  record_of)
        else:
            _runs_compare(result, order, own)
        _numbers_check(result, order, own)
        _identity_check(result, comm, own)
    _stamps_check(result)
    _durations_check(result)


def _identity_check(result, comm, records):
    if not records:
        return
    first = records[0]
    if first.comm_hash is None:
        result.problems.append("%s: the recording does not know its communicator" % comm["name"])
        return
    if (first.comm_rank, first.comm_ranks) != (comm["rank"], comm["ranks"]):
        result.problems.append("%s is rank %s of %s, recorded as rank %s of %s" % (
            comm["name"], comm["rank"], comm["ranks"], first.comm_rank, first.comm_ranks))


def _clock_offset(pairs):
    """GPU's clock minus the host's, from synchronized calls before any disturbance."""
    offsets = [p.record.gpu_stop_ns - p.end_ns for p in pairs
               if p.record.is_gpu_timed and p.record.gpu_stop_ns and not p.is_replay
               and p.call["style"] == "sync" and p.call["kind"] in ("allreduce", "killed", "steady")]
    return median(offsets) if offsets else None


def _stamps_check(result):
    """A time from GPU timestamps must be inside its own call."""
    result.clock_offset_ns = offset = _clock_offset(result.pairs)
    for pair in result.pairs:
        record = pair.record
        if not record.is_gpu_timed:
            continue
        row = _row_of(result, pair.call)
        what = "call %d%s" % (pair.call["index"], ", replayed" if pair.is_replay else "")
        if record.is_untrusted:
            row.problems.append("%s: timestamps marked %s are reported as a time" % (
                what, sorted(record.flags)))
        if offset is None or not record.gpu_start_ns or not record.gpu_stop_ns or \
                not ARE_TIMES_JUDGED or record.has_rough_place:
            continue
        if "cuda_event" in record.flags:
            # On the recorder's clock, which runs at a slightly different rate.
            early = record.issue_ns - record.gpu_start_ns
            late = record.gpu_stop_ns - record.issue_ns - (pair.end_ns - pair.begin_ns)
        else:
            early = pair.begin_ns + offset - record.gpu_start_ns
            late = record.gpu_stop_ns - pair.end_ns - offset
        if early > STAMP_SLACK_NS or late > STAMP_SLACK_NS:
            row.problems.append("%s: another operation's timestamps are reported as a time: started "
                                "%.1f ms before the call, stopped %.1f ms after it" % (
                                    what, early / 1e6, late / 1e6))


def _durations_check(result):
    """Synchronized calls: the GPU's time compared with CUDA events around the call."""
    ratios = defaultdict(list)
    for pair in result.pairs:
        duration = pair.record.gpu_duration_ns
        if pair.record.is_gpu_timed and pair.event_ns and pair.call["style"] == "sync":
            ratios[pair.call["kind"], pair.call["style"]].append(
                (duration or 0) / pair.event_ns)
    for key, values in sorted(ratios.items()):
        middle = median(values)
        result.ratios.append({"kind": key[0], "style": key[1], "calls": len(values),
                              "median": middle, "largest": max(values)})
        if not 0 < middle <= 1.5 and ARE_TIMES_JUDGED:
            result.rows[key].problems.append(
                "median of GPU time over CUDA event time is %.3f over %d calls, wanted in (0, 1.5]"
                % (middle, len(values)))


def call_times(result):
    """Medians per kind, style, size and datatype: the call, the CUDA events, what was recorded."""
    groups = defaultdict(list)
    for pair in result.pairs:
        call = pair.call
        if not pair.is_replay and not call["captured"] and call["phase"] in ("", "before"):
            groups[call["kind"], call["style"], call["bytes"], call["function"],
                   call["datatype"]].append(pair)
    rows = []
    for (kind, style, size, function, datatype), pairs in sorted(groups.items()):
        gpu = [p.record.gpu_duration_ns for p in pairs if p.record.is_gpu_timed]
        rows.append({
            "kind": kind, "style": style, "bytes": size, "function": function,
            "datatype": datatype, "calls": len(pairs),
            "host_ns": median(p.call["host_ns"] for p in pairs),
            "event_ns": median(p.event_ns for p in pairs) or None,
            "gpu_ns": median(gpu) if gpu else None, "gpu_timed": len(gpu)})
    return rows


def ranks_join(records, shown=None):
    """Checks that the ranks' records match. A list of problems."""
    # Ranks may have been sampling or not when each captured its graph.
    has_replays = not shown or shown.replays("AllReduce")[0] != EITHER
    problems = []
    by_hash = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.comm_hash is not None:
            by_hash[record.comm_hash][record.comm_rank].append(record)
    for comm_hash, ranks in by_hash.items():
        name = "communicator %s" % comm_hash
        for is_replay in (False, True) if has_replays else (False,):
            problems += _collectives_join(name, ranks, is_replay)
        problems += _transfers_join(name, ranks)
    return problems


def _collectives_join(name, ranks, is_replay):
    wanted = None
    what = "replayed collectives" if is_replay else "collectives"
    for rank, records in sorted(ranks.items()):
        own = sorted((r.match or 0, r.function or "", r.count or 0,
                      "" if is_replay else str(r.signature))
                     for r in records if r.function in COLLECTIVES and r.is_replay == is_replay
                     and not r.is_replay_read)
        if [entry[0] for entry in own] != list(range(1, len(own) + 1)):
            return ["%s: match numbers of %s on rank %s are not 1..%d" % (
                name, what, rank, len(own))]
        if wanted is not None and own != wanted[1]:
            at = next((i for i, (a, b) in enumerate(zip(own, wanted[1])) if a != b),
                      min(len(own), len(wanted[1])))
            return ["%s: %s of ranks %s and %s differ from number %d on: %s, %s" % (
                name, what, wanted[0], rank, at + 1, wanted[1][at:at + 1], own[at:at + 1])]
        wanted = wanted or (rank, own)
    return []


def _transfers_join(name, ranks):
    sends, receives = defaultdict(list), defaultdict(list)
    for rank, records in ranks.items():
        for record in records:
            if record.is_replay or record.is_captured:
                continue
            if record.function == "Send":
                sends[rank, record.peer].append((record.match or 0, record.count or 0))
            elif record.function == "Recv":
                receives[record.peer, rank].append((record.match or 0, record.count or 0))
    problems = []
    for edge in sorted(set(sends) | set(receives), key=str):
        if sorted(sends[edge]) != sorted(receives[edge]):
            problems.append("%s: sends of rank %s to rank %s do not match the receives there: "
                            "%d and %d" % (name, edge[0], edge[1], len(sends[edge]),
                                           len(receives[edge])))
    return problems


def sampled_together(records):
    """Checks that all ranks of a communicator time the same collectives: (timed on all ranks, timed on some of them,
    a list of examples). An operation counts as timed as soon as one of its kernels was shown, trusted or not."""
    everywhere, examples, somewhere = 0, [], 0
    by_hash = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if record.comm_hash is not None and record.function in COLLECTIVES and not record.is_replay \
                and not record.is_captured:
            by_hash[record.comm_hash][record.match][record.comm_rank] = record
    for comm_hash, matches in by_hash.items():
        for match, ranks in matches.items():
            timed = [rank for rank, record in ranks.items() if record.is_sampled]
            if not timed:
                continue
            if len(timed) == len(ranks):
                everywhere += 1
                continue
            somewhere += 1
            examples.append("communicator %s, %s %s: timed on ranks %s of %d" % (
                comm_hash, next(iter(ranks.values())).function, match, sorted(timed), len(ranks)))
    return everywhere, somewhere, examples
