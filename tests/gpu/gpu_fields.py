"""The output of `ringside dump` and `ringside verify --json`, by the names this check uses.

The right-hand names are the only place where the check knows the tool's fields; docs/JSON.md is
their specification.
"""

import json

OPERATION = {
    "pid": "pid",
    "comm": "comm_id",
    "comm_name": "comm_name",
    "comm_hash": "comm_hash",
    "comm_rank": "comm_rank",
    "comm_ranks": "comm_ranks",
    "number": "number",
    "match": "match",
    "signature": "signature",
    "function": "function",
    "datatype": "datatype",
    "count": "count",
    "bytes": "bytes",
    "root": "root",
    "peer": "peer",
    "state": "state",
    "time_source": "time_source",
    "duration_ns": "duration_ns",
    "issue_ns": "issue_ns",
    "gpu_start_ns": "gpu_start_ns",
    "gpu_stop_ns": "gpu_stop_ns",
    "flags": "flags",
    "captured_number": "captured_number",
    "kernels_started": "kernels_started",
    "algorithm": "algorithm",
    "protocol": "protocol",
}

# Kind of a line: other kinds are details.
KIND_FIELD, KIND_OPERATION = "record", "operation"
# Flags of a rejected GPU timestamp.
UNTRUSTED_FLAGS = {"stamp_zero", "stamp_reversed", "stamp_stale", "stamp_overrun", "stamp_channel"}
FLAG_REPLAY = "replay"
FLAG_REPLAY_READ = "replay_read"  # NCCL did not show it; some of them are missed
FLAG_ASKED = "kernels_asked"  # sampling chose this operation
FLAG_ROUGH = "place_rough"  # where its time lies is not known well enough for clocks
STATE_CAPTURED = "captured"
SOURCES_GPU = ("kernel_gpu", "cuda_event")
SOURCES_TIMED = {"kernel_gpu", "cuda_event", "proxy"}


class Record:
    """One recorded operation. A missing field is None."""

    __slots__ = tuple(OPERATION)

    def __init__(self, fields):
        for ours, theirs in OPERATION.items():
            setattr(self, ours, fields.get(theirs))
        self.flags = set(self.flags or ())

    @property
    def is_replay(self):
        return FLAG_REPLAY in self.flags

    @property
    def is_replay_read(self):
        return FLAG_REPLAY_READ in self.flags

    @property
    def is_captured(self):
        return self.state == STATE_CAPTURED

    @property
    def is_gpu_timed(self):
        return self.time_source in SOURCES_GPU

    @property
    def is_sampled(self):
        """Kernel events were on for it."""
        return FLAG_ASKED in self.flags or self.is_gpu_timed or bool(self.kernels_started)

    @property
    def has_rough_place(self):
        return FLAG_ROUGH in self.flags

    @property
    def is_untrusted(self):
        return bool(self.flags & UNTRUSTED_FLAGS)

    @property
    def gpu_duration_ns(self):
        if self.duration_ns is not None:
            return self.duration_ns
        if self.gpu_start_ns and self.gpu_stop_ns:
            return self.gpu_stop_ns - self.gpu_start_ns
        return None


def read_dump(text):
    """Records of a dump; other lines are skipped."""
    records = []
    for line in text.splitlines():
        line = line.strip()
        if not line:
            continue
        fields = json.loads(line)
        if fields.get(KIND_FIELD) == KIND_OPERATION:
            records.append(Record(fields))
    return records


def missing_fields(text):
    """Names above that the first operation of a dump lacks."""
    for line in text.splitlines():
        if line.strip():
            fields = json.loads(line)
            if fields.get(KIND_FIELD) != KIND_OPERATION:
                return [KIND_FIELD]
            return sorted(name for name in OPERATION.values() if name not in fields)
    return []


def _processes(text):
    try:
        return json.loads(text).get("processes", [])
    except ValueError:
        return []


def lost_operations(text):
    """Losses counted by the plugin, by reason, over all processes of a verify."""
    lost = {}
    for process in _processes(text):
        for reason, count in process.get("lost", {}).items():
            lost[reason] = lost.get(reason, 0) + count
    return lost


def verified_counts(text):
    """{pid: (issued, recorded or in flight, lost)} from verify."""
    return {process.get("pid"): (process.get("issued"),
                                 process.get("recorded", 0) + process.get("in_flight", 0),
                                 process.get("lost_operations"))
            for process in _processes(text)}


def kernel_events(text):
    """{"on: reason": processes}"""
    told = {}
    for process in _processes(text):
        key = "%s: %s" % (process.get("kernel_events"), process.get("kernel_events_reason"))
        told[key] = told.get(key, 0) + 1
    return told


def interfaces(text):
    """Versions of the profiler interface used by NCCL."""
    return sorted({process.get("interface") for process in _processes(text)}, key=str)


def kernel_state(text):
    """"on", "sampled", "off", or None if processes differ or it is unknown."""
    told = set()
    for process in _processes(text):
        word = str(process.get("kernel_events"))
        told.add("sampled" if "sampl" in word else "off" if word == "none" else word)
    return told.pop() if len(told) == 1 and told <= {"on", "off", "sampled"} else None


def timed_share(text):
    """Recorded operations with a time."""
    recorded = sum(process.get("recorded") or 0 for process in _processes(text))
    timed = sum(process.get("timed") or 0 for process in _processes(text))
    return timed / recorded if recorded else None


def odd_events(text):
    """Unexpected events from NCCL, by reason, over all processes."""
    odd = {}
    for process in _processes(text):
        for reason, count in process.get("odd", {}).items():
            odd[reason] = odd.get(reason, 0) + count
    return odd
