"""A small model trained with DistributedDataParallel on one GPU, and explicit collectives: what a
rank called, counted without the plugin. Started by torchrun; see docs/REAL-NCCL.md.

How it counts:
- explicit calls: it makes them itself, with element counts that nothing else uses, in a process
  group of their own;
- DDP with a communication hook: the hook logs the size of every bucket;
- DDP without a hook: every parameter's gradient is reduced once an iteration, however the buckets
  are cut, so the sum of elements is known;
- beside these, PyTorch's own flight recorder.
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
IS_EAGER = "--eager" in sys.argv[2:]
IS_ONE_NODE = "--one-node" in sys.argv[2:]
ITERATIONS = 8
REPEATS = 5
RECORDER_ENTRIES = "20000"

# Before torch loads NCCL: each rank looks like a separate host, unless NCCL lets ranks share a GPU.
if not IS_ONE_NODE:
    os.environ["NCCL_HOSTID"] = "ringside-%d" % LOCAL_RANK
os.environ.setdefault("TORCH_FR_BUFFER_SIZE", RECORDER_ENTRIES)
os.environ.setdefault("TORCH_NCCL_TRACE_BUFFER_SIZE", RECORDER_ENTRIES)


def say(text):
    print("[%7.2f s] rank %d: %s" % (time.monotonic() - STARTED, RANK, text), flush=True)


with open(os.path.join(OUT, "pid-%d" % RANK), "w", encoding="utf-8") as pid_file:
    pid_file.write("%d\n" % os.getpid())
say("started, pid %d" % os.getpid())

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks  # noqa: E402

say("torch %s loaded" % torch.__version__)
DEVICE = torch.device("cuda", 0)
RESULT = {"rank": RANK, "ranks": RANKS, "pid": os.getpid(), "torch": torch.__version__,
          "is_eager": IS_EAGER, "explicit": [], "buckets": []}


def issued(function, count, datatype, times=1, peer=-1):
    """One NCCL operation of this rank, `times` times."""
    for _ in range(times):
        RESULT["explicit"].append({"function": function, "count": count, "datatype": datatype,
                                   "peer": peer})


def tensor(count, kind=torch.float32):
    return torch.zeros(count, dtype=kind, device=DEVICE)


def collectives(group):
    dist.all_reduce(tensor(1009), group=group)
    issued("AllReduce", 1009, "float32")
    dist.all_reduce(tensor(1013, torch.bfloat16), group=group)
    issued("AllReduce", 1013, "bfloat16")
    dist.all_reduce(tensor(1019, torch.uint8), group=group)
    issued("AllReduce", 1019, "uint8")
    dist.all_gather_into_tensor(tensor(1021 * RANKS), tensor(1021), group=group)
    issued("AllGather", 1021, "float32")
    dist.reduce_scatter_tensor(tensor(1031), tensor(1031 * RANKS), group=group)
    issued("ReduceScatter", 1031, "float32")
    dist.broadcast(tensor(1033), src=0, group=group)
    issued("Broadcast", 1033, "float32")
    dist.reduce(tensor(1039), dst=0, group=group)
    issued("Reduce", 1039, "float32")
    dist.barrier(group=group, device_ids=[0])
    issued("AllReduce", 1, "float32")


def transfers(group):
    """All to all, including itself; then around the ring."""
    dist.all_to_all_single(tensor(1049 * RANKS), tensor(1049 * RANKS), group=group)
    for peer in range(RANKS):
        issued("Send", 1049, "float32", peer=peer)
        issued("Recv", 1049, "float32", peer=peer)
    after, before = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    work = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, tensor(1051), after, group),
        dist.P2POp(dist.irecv, tensor(1051), before, group)])
    for one in work:
        one.wait()
    issued("Send", 1051, "float32", peer=after)
    issued("Recv", 1051, "float32", peer=before)


def model():
    return torch.nn.Sequential(
        torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024),
        torch.nn.ReLU(), torch.nn.Linear(1024, 10)).to(DEVICE)


def train(group, hook=None):
    """The number of elements of all parameters, times the iterations."""
    torch.manual_seed(7)
    wrapped = torch.nn.parallel.DistributedDataParallel(
        model(), device_ids=[0], process_group=group, bucket_cap_mb=1)
    if hook:
        wrapped.register_comm_hook(group, hook)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
    for _ in range(ITERATIONS):
        optimizer.zero_grad(set_to_none=True)
        wrapped(torch.randn(32, 256, device=DEVICE)).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()
    return ITERATIONS * sum(p.numel() for p in wrapped.parameters())


def counting_hook(group, bucket):
    RESULT["buckets"].append(bucket.buffer().numel())
    return default_hooks.allreduce_hook(group, bucket)


def flight_recorder():
    """PyTorch's own count of what it passed to NCCL: {name: entries}, or why not."""
    try:
        import pickle
        from torch._C._distributed_c10d import _dump_nccl_trace
        counts = {}
        entries = pickle.loads(_dump_nccl_trace()).get("entries", [])
        for entry in entries:
            name = str(entry.get("profiling_name", "?"))
            counts[name] = counts.get(name, 0) + 1
        return counts
    except Exception as error:  # its interface is private and can change
        return {"unavailable": str(error)}


def main():
    torch.cuda.set_device(DEVICE)
    options = {"device_id": DEVICE} if IS_EAGER else {}
    dist.init_process_group("nccl", **options)
    RESULT["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    say("process group ready, NCCL %s" % RESULT["nccl"])
    everybody = list(range(RANKS))
    hooked, plain, explicit = (dist.new_group(everybody) for _ in range(3))
    train(hooked, counting_hook)
    say("trained with a hook: %d buckets" % len(RESULT["buckets"]))
    RESULT["plain_elements"] = train(plain)
    say("trained without a hook")
    for index in range(REPEATS):
        collectives(explicit)
        transfers(explicit)
        if index % 2:
            torch.cuda.synchronize()
    # Again after transfers to itself: these timestamps must be rejected.
    collectives(explicit)
    torch.cuda.synchronize()
    say("explicit calls done: %d" % len(RESULT["explicit"]))
    RESULT["flight_recorder"] = flight_recorder()
    with open(os.path.join(OUT, "ddp-%d.json" % RANK), "w", encoding="utf-8") as file:
        json.dump(RESULT, file)
    dist.barrier(device_ids=[0])
    torch.cuda.synchronize()
    dist.destroy_process_group()
    say("done")


main()
