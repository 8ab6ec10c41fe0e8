"""One rank of a PyTorch job that captures a training step with torch.cuda.graph and replays it: see torch_graphs. DDP's own
AllReduce of its buckets is in the graph, and collectives beside it. Ends with 1 if a result is wrong."""

import os
import sys

import torch
import torch.distributed as dist

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
MODES, WARM, REPLAYS, GAP_S = ("global", "thread_local", "relaxed"), 11, 30, 0.03
FLOATS = 4 << 20


def main():
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2048, 2048).cuda(), device_ids=[0])
        data, ones = torch.randn(64, 2048, device="cuda"), torch.ones(FLOATS, device="cuda")

        def step():
            model.zero_grad(set_to_none=True)
            model(data).sum().backward()
            dist.all_reduce(ones)
            ones.div_(RANKS)
            for _ in range(16):
                dist.all_reduce(ones, op=dist.ReduceOp.AVG)

        for _ in range(WARM):
            step()
    torch.cuda.synchronize()
    wrong = 0
    for mode in MODES:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
            step()
        for _ in range(REPLAYS):
            graph.replay()
            torch.cuda.synchronize()
            torch.cuda._sleep(int(GAP_S * 1.5e9))
            torch.cuda.synchronize()
        wrong += not torch.allclose(ones, torch.ones_like(ones))
        with torch.cuda.stream(stream):
            step()
        torch.cuda.synchronize()
        del graph
    print("rank %d: %d of %d results are wrong" % (RANK, wrong, len(MODES)))
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()
    sys.exit(1 if wrong else 0)


main()
