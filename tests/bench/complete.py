"""Checks that every operation of the benchmark was recorded: complete.py RUN.json DUMP.jsonl prints a line per difference."""
import collections
import json
import sys

PAIRS = ("AlltoAll", "SendRecv", "Gather", "Scatter")


def operations(cell, rank, ranks):
    """The operations of one step of this cell on this rank, by NCCL's names."""
    function, is_root = cell["function"], rank == cell["root"]
    if function not in PAIRS:
        return {function: 1}
    if function == "SendRecv":
        return {"Send": 1, "Recv": 1}
    if function == "AlltoAll":
        return {"Send": ranks, "Recv": ranks}
    sends, receives = (1, ranks if is_root else 0)
    if function == "Scatter":
        sends, receives = receives, sends
    return {"Send": sends, "Recv": receives}


def main():
    run = json.load(open(sys.argv[1], encoding="utf-8"))
    wanted, found, captured = (collections.Counter() for _ in range(3))
    for cell in run["results"]:
        steps = cell["warmups"] + cell["calls"] + cell["checks"]
        for rank in range(run["ranks"]):
            wanted[rank, "AllReduce"] += cell["aligns"]
            for name, count in operations(cell, rank, run["ranks"]).items():
                wanted[rank, name] += steps * count
    for line in open(sys.argv[2], encoding="utf-8"):
        record = json.loads(line)
        if record["record"] != "operation":
            continue
        key = record["comm_rank"], record["function"]
        (captured if record["state"] == "captured" else found)[key] += 1
    for key in sorted(wanted.keys() | found.keys()):
        if wanted[key] != found[key]:
            print("rank %d: %s" % key, "called", wanted[key], "recorded", found[key], "and captured", captured[key])
    if any(cell["mode"] == "graph" for cell in run["results"]) and not captured:
        print("nothing was captured")


main()
