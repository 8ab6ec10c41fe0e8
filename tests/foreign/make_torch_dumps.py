"""Dumps of PyTorch's Flight Recorder for a job (four ranks, 18 calls) whose rank 2 has not made its last call.

    make_torch_dumps.py DIR KIND [SECONDS_AGO [RANKS CALLS]]

KIND: pickle2 to pickle5, json, torchcomms (JSON, ranks without brackets), coalesced (a batch of Send and Recv that is not
over), wrapped (the first calls were overwritten), calm (all are over), asked (of a job that works: rank 2 was asked first),
both (all are in the last call), hostile (a pickle that calls a function)."""

import json
import os
import pickle
import sys
import time

RANKS, CALLS = [int(word) for word in sys.argv[4:6]] or (4, 18)
directory, kind = sys.argv[1], sys.argv[2]
ago_s = float(sys.argv[3]) if len(sys.argv) > 3 else 300
begin_ns = time.time_ns() - int(ago_s * 1e9)


class Hostile:
    def __reduce__(self):
        return os.system, ("touch %s/executed" % directory,)


def frame(file, line, name):
    return {"name": name, "filename": file, "line": line}


TORCH = frame("/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py", 2696, "all_reduce")


def entry(number, rank, is_open, name="nccl:all_reduce", is_p2p=False, is_end_of_group=False):
    created_ns = begin_ns + number * 100_000_000
    caller = frame("/home/user/data.py", 41, "next_batch") if number == CALLS - 1 and rank == 2 else \
        frame("/home/user/train.py", 88, "step")
    found = {
        "frames": [TORCH, caller, frame("/home/user/train.py", 120, "main")], "record_id": number, "pg_id": 0,
        "process_group": ("0", "default_pg"), "collective_seq_id": 0 if is_p2p else number,
        "p2p_seq_id": number if is_p2p else 0, "op_id": number, "profiling_name": name, "time_created_ns": created_ns,
        "input_sizes": [[512, 1024]], "input_dtypes": ["BFloat16"], "output_sizes": [[512, 1024]],
        "output_dtypes": ["BFloat16"], "state": "scheduled" if is_open else "completed",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None if is_open else created_ns + 3_000_000, "retired": not is_open,
        "timeout_ms": 600000, "is_p2p": is_p2p}
    if is_end_of_group:
        found["frames"] = []
    return found


def entries(rank):
    if kind == "coalesced":
        found = [entry(number, rank, False) for number in range(1, CALLS - 1)]
        after, before = (rank + 1) % RANKS, (rank - 1) % RANKS
        # Parts of a batch never get a state of their own.
        found.append(entry(CALLS - 1, rank, True, "nccl:send %d->%d" % (rank, after), True))
        found.append(entry(CALLS - 1, rank, True, "nccl:recv %d<-%d" % (rank, before), True))
        found.append(entry(CALLS - 1, rank, False, "nccl:coalesced", True, True))
        return found
    if kind == "asked":
        return [entry(number, rank, number == CALLS) for number in range(1, CALLS + 1 if rank != 2 else CALLS - 5)]
    if kind == "both":
        return [entry(number, rank, number == CALLS) for number in range(1, CALLS + 1)]
    last = CALLS - 1 if rank == 2 else CALLS
    return [entry(number, rank, number == CALLS and kind != "calm")
            for number in range(11 if kind == "wrapped" else 1, last + (0 if kind == "calm" and rank != 2 else 1))]


os.makedirs(directory, exist_ok=True)
for rank in range(RANKS):
    listed = ",".join(map(str, range(RANKS))) if kind == "torchcomms" else str(list(range(RANKS)))
    dump = {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": listed}},
            "entries": entries(rank), "comm_lib_version": "2.28.9"}
    if kind == "hostile":
        dump["more"] = Hostile()
    is_json = kind in ("json", "torchcomms")
    with open("%s/nccl_trace_rank_%d%s" % (directory, rank, ".json" if is_json else ""), "wb") as file:
        if is_json:
            file.write(json.dumps(dump).encode())
        else:
            pickle.dump(dump, file, protocol=int(kind[6:]) if kind.startswith("pickle") else 2)
