"""Compares the calls counted by ddp.py and fsdp.py with what was recorded. Process groups have no names in
NCCL, so communicators are distinguished by element counts that only one of them uses."""

from collections import Counter, defaultdict


# Of the explicit calls in ddp.py; no bucket or bookkeeping of DDP has these sizes.
EXPLICIT_COUNTS = {1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051}
# Names of the flight recorder: NCCL function, and how many per rank.
RECORDER_NAMES = {
    "all_reduce": "AllReduce", "all_reduce_barrier": "AllReduce", "allreduce": "AllReduce",
    "all_gather": "AllGather", "_all_gather_base": "AllGather",
    "all_gather_into_tensor": "AllGather", "reduce_scatter": "ReduceScatter",
    "_reduce_scatter_base": "ReduceScatter", "reduce_scatter_tensor": "ReduceScatter",
    "broadcast": "Broadcast", "reduce": "Reduce", "send": "Send", "recv": "Recv",
}


def _by_comm(records, pid):
    comms = defaultdict(list)
    for record in records:
        if record.pid == pid:
            comms[record.comm].append(record)
    return comms


ELEMENT_BYTES = {"uint8": 1, "int8": 1, "bfloat16": 2, "float16": 2, "float32": 4, "int32": 4,
                 "float64": 8, "int64": 8}


def _key(function, count, datatype):
    """A barrier's element can have any datatype."""
    if count == 1:
        datatype = "any"
    return (function, count, datatype)


def _issued_key(call, shown):
    """Before 2.28 NCCL turns some calls into bytes."""
    if shown and shown.is_in_bytes(call["function"]):
        return (call["function"], call["count"] * ELEMENT_BYTES[call["datatype"]], "bytes")
    return _key(call["function"], call["count"], call["datatype"])


def _recorded_key(record, shown):
    if shown and shown.is_in_bytes(record.function):
        return (record.function, record.count, "bytes")
    return _key(record.function, record.count, record.datatype)


def _row(rank, what, issued, recorded, is_hard=True):
    return {"rank": rank, "what": what, "issued": issued, "recorded": recorded,
            "is_equal": issued == recorded, "is_hard": is_hard}


def explicit_rows(own, records, shown=None):
    """The explicit calls, function by function, and exactly with counts, datatypes and peers."""
    wanted = Counter(_issued_key(call, shown) for call in own["explicit"])
    got = Counter(_recorded_key(record, shown) for record in records)
    rows = []
    for function in sorted({key[0] for key in wanted} | {key[0] for key in got}):
        rows.append(_row(own["rank"], "explicit " + function,
                         sum(n for key, n in wanted.items() if key[0] == function),
                         sum(n for key, n in got.items() if key[0] == function)))
    differing = sorted(str(key) for key in set(wanted) | set(got) if wanted[key] != got[key])
    rows.append(_row(own["rank"], "explicit calls that differ in count or datatype: "
                     + (", ".join(differing[:6]) or "none"), 0, len(differing)))
    peers = Counter((c["function"], c["peer"]) for c in own["explicit"] if c["peer"] >= 0)
    recorded = Counter((r.function, r.peer) for r in records if r.function in ("Send", "Recv"))
    rows.append(_row(own["rank"], "transfers per peer",
                     *("%s" % sorted(c.items()) for c in (peers, recorded))))
    return rows


def _is_hooked(records, buckets):
    reduces = Counter(r.count for r in records if r.function == "AllReduce")
    return reduces == Counter(buckets)


def training_rows(own, comms):
    """Of the remaining communicators, one has the hook's buckets, another the same total of elements."""
    reduces = {comm: [r for r in records if r.function == "AllReduce" and r.count > 1]
               for comm, records in comms.items()}
    sums = {comm: sum(r.count for r in own_reduces) for comm, own_reduces in reduces.items()}
    hooked = next((c for c in sorted(reduces) if _is_hooked(reduces[c], own["buckets"])), None)
    largest = sorted((c for c in sums if c != hooked and sums[c]), key=lambda c: -sums[c])
    plain = next((c for c in largest if sums[c] == own["plain_elements"]),
                 largest[0] if largest else None)
    guess = hooked if hooked is not None else (largest[-1] if largest else None)
    return [
        _row(own["rank"], "DDP with a hook: buckets", len(own["buckets"]),
             len(reduces.get(guess, []))),
        _row(own["rank"], "DDP with a hook: bytes", 4 * sum(own["buckets"]),
             4 * sums.get(guess, 0)),
        _row(own["rank"], "DDP with a hook: every bucket's size is recorded", True,
             hooked is not None),
        _row(own["rank"], "DDP without a hook: bytes", 4 * own["plain_elements"],
             4 * sums.get(plain, 0)),
    ]


def recorder_rows(own, records):
    """PyTorch's flight recorder, if its names are known: printed, not required."""
    counts = own.get("flight_recorder") or {"unavailable": "nothing"}
    if "unavailable" in counts:
        return [_row(own["rank"], "PyTorch's flight recorder: " + counts["unavailable"][:80], "",
                     "", False)]
    wanted, unknown = Counter(), []
    for name, times in counts.items():
        plain = name.split(":", 1)[-1].split(" ")[0]
        if plain in ("all_to_all", "alltoall_base", "all_to_all_single"):
            wanted["Send"] += times * own["ranks"]
            wanted["Recv"] += times * own["ranks"]
        elif plain in RECORDER_NAMES:
            wanted[RECORDER_NAMES[plain]] += times
        elif plain != "coalesced":
            unknown.append(name)
    got = Counter(record.function for record in records)
    rows = [_row(own["rank"], "PyTorch's flight recorder: " + function, wanted[function],
                 got[function], False) for function in sorted(set(wanted) | set(got))]
    if unknown:
        rows.append(_row(own["rank"], "PyTorch's flight recorder: unknown names: "
                         + ", ".join(unknown)[:200], "", "", False))
    return rows


def sharded_rows(own, records):
    """FSDP: every AllGather and ReduceScatter of the process, by the bytes of its whole buffer."""
    rows = []
    for function in ("AllGather", "ReduceScatter"):
        wanted = Counter(c["bytes"] for c in own["calls"] if c["function"] == function)
        got = Counter(r.bytes for r in records if r.function == function)
        rows.append(_row(own["rank"], "FSDP: calls of " + function, sum(wanted.values()),
                         sum(got.values())))
        rows.append(_row(own["rank"], "FSDP: bytes of " + function,
                         sum(size * n for size, n in wanted.items()),
                         sum((size or 0) * n for size, n in got.items())))
        rows.append(_row(own["rank"], "FSDP: sizes of %s that differ in number" % function, 0,
                         len([size for size in set(wanted) | set(got)
                              if wanted[size] != got[size]])))
    return rows


def compare(own, records, shown=None):
    """Rows for one rank."""
    comms = _by_comm(records, own["pid"])
    mine = [record for records_of in comms.values() for record in records_of]
    if "calls" in own:
        return sharded_rows(own, mine) + recorder_rows(own, mine)
    explicit = {comm for comm in comms if any(r.count in EXPLICIT_COUNTS for r in comms[comm])}
    rows = [_row(own["rank"], "operations with marked timestamps that are reported as a time",
                 0, sum(r.is_gpu_timed and r.is_untrusted for r in mine))]
    rows += explicit_rows(own, [record for comm in explicit for record in comms[comm]], shown)
    rows += training_rows(own, {c: r for c, r in comms.items() if c not in explicit})
    return rows + recorder_rows(own, mine)
