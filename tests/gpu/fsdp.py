"""A small model sharded over several ranks on one GPU, with both PyTorch APIs (FullyShardedDataParallel and
fully_shard): what a rank called, counted without the plugin. Started by torchrun; see docs/REAL-NCCL.md.

Both pass their collectives through functions of torch.distributed, which are wrapped here and counted.
With --backend gloo it runs without a GPU, to test the counting.
"""

import json
import os
import sys
import time

STARTED = time.monotonic()
RANK = int(os.environ["RANK"])
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", RANK))
RANKS = int(os.environ["WORLD_SIZE"])
OUT = sys.argv[1]
IS_ONE_NODE = "--one-node" in sys.argv[2:]
IS_GLOO = "gloo" in sys.argv[2:]
ITERATIONS = 6

# Before torch loads NCCL: each rank looks like a separate host, unless NCCL lets ranks share a GPU.
if not IS_ONE_NODE:
    os.environ["NCCL_HOSTID"] = "ringside-%d" % LOCAL_RANK


def say(text):
    print("[%7.2f s] rank %d: %s" % (time.monotonic() - STARTED, RANK, text), flush=True)


with open(os.path.join(OUT, "pid-%d" % RANK), "w", encoding="utf-8") as pid_file:
    pid_file.write("%d\n" % os.getpid())
say("started, pid %d" % os.getpid())

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

say("torch %s loaded" % torch.__version__)
DEVICE = torch.device("cpu") if IS_GLOO else torch.device("cuda", 0)
RESULT = {"rank": RANK, "ranks": RANKS, "pid": os.getpid(), "torch": torch.__version__, "calls": [],
          "ways": []}


def counted(name, function, whole):
    """Wraps the function of torch.distributed with this name and counts its calls."""
    original = getattr(dist, name)

    def wrapper(*arguments, **named):
        # (output, input, ...): the larger of the two is the whole buffer.
        tensor = named.get(whole[1], arguments[whole[0]] if len(arguments) > whole[0] else None)
        RESULT["calls"].append({"function": function,
                                "bytes": tensor.numel() * tensor.element_size()})
        return original(*arguments, **named)

    setattr(dist, name, wrapper)


def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 16)).to(DEVICE)


def train(sharded):
    optimizer = torch.optim.SGD(sharded.parameters(), lr=0.01)
    for _ in range(ITERATIONS):
        optimizer.zero_grad(set_to_none=True)
        sharded(torch.randn(32, 256, device=DEVICE)).square().mean().backward()
        optimizer.step()
    if not IS_GLOO:
        torch.cuda.synchronize()


def wrapped():
    from torch.distributed.fsdp import FullyShardedDataParallel
    inner = model()
    for index in (0, 2, 4):
        inner[index] = FullyShardedDataParallel(inner[index], device_id=DEVICE)
    train(FullyShardedDataParallel(inner, device_id=DEVICE))


def per_parameter():
    from torch.distributed.fsdp import fully_shard
    inner = model()
    for index in (0, 2, 4):
        fully_shard(inner[index])
    fully_shard(inner)
    train(inner)


def flight_recorder():
    """PyTorch's own count of what it passed to NCCL, as in ddp.py."""
    try:
        import pickle
        from torch._C._distributed_c10d import _dump_nccl_trace
        counts = {}
        for entry in pickle.loads(_dump_nccl_trace()).get("entries", []):
            name = str(entry.get("profiling_name", "?"))
            counts[name] = counts.get(name, 0) + 1
        return counts
    except Exception as error:  # its interface is private and can change
        return {"unavailable": str(error)}


def main():
    if IS_GLOO:
        dist.init_process_group("gloo")
    else:
        torch.cuda.set_device(DEVICE)
        dist.init_process_group("nccl", device_id=DEVICE)
        RESULT["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        say("process group ready, NCCL %s" % RESULT["nccl"])
    counted("all_gather_into_tensor", "AllGather", (0, "output_tensor"))
    counted("reduce_scatter_tensor", "ReduceScatter", (1, "input"))
    for way in (wrapped, per_parameter):
        before = len(RESULT["calls"])
        try:
            way()
        except ImportError as error:
            say("%s is not in this PyTorch: %s" % (way.__name__, error))
            continue
        RESULT["ways"].append(way.__name__)
        say("trained, %s: %d calls" % (way.__name__, len(RESULT["calls"]) - before))
    RESULT["flight_recorder"] = flight_recorder()
    with open(os.path.join(OUT, "ddp-%d.json" % RANK), "w", encoding="utf-8") as file:
        json.dump(RESULT, file)
    if not IS_GLOO:
        dist.barrier(device_ids=[0])
        torch.cuda.synchronize()
    dist.destroy_process_group()
    say("done")


main()
