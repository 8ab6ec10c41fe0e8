"""One rank of a PyTorch job that communicates with and without overlap, under torch.profiler and the recorder: see
exposed. The profiler's trace of the middle iterations is written to OUT/kineto-RANK.json.gz."""

import os
import sys

SCENE, OUT = sys.argv[1], sys.argv[2]
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

# Before torch loads NCCL: each rank looks like a separate host.
os.environ["NCCL_HOSTID"] = "ringside-%d" % RANK

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402

DEVICE = torch.device("cuda", 0)
LAYERS, WIDTH, BATCH = 6, 2048, 16384
BEFORE, PROFILED, AFTER = 6, 6, 6


class Pause(torch.autograd.Function):
    """Waits for the GPU. Without it the host runs ahead, and the next layer is gathered behind this one's computation."""

    @staticmethod
    def forward(context, values):
        torch.cuda.synchronize()
        return values.clone()

    @staticmethod
    def backward(context, gradient):
        torch.cuda.synchronize()
        return gradient


class Activation(torch.nn.Module):
    def __init__(self, has_pause):
        super().__init__()
        self.has_pause = has_pause

    def forward(self, values):
        values = torch.nn.functional.relu(values)
        return Pause.apply(values) if self.has_pause else values


def model(has_pauses=False):
    torch.manual_seed(7)
    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH, bias=False), Activation(has_pauses)]
    return torch.nn.Sequential(*layers).to(DEVICE)


def with_ddp(bucket_mb):
    return torch.nn.parallel.DistributedDataParallel(model(), device_ids=[0], bucket_cap_mb=bucket_mb,
                                                     gradient_as_bucket_view=True)


def with_fsdp(has_overlap):
    from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel
    options = {"device_id": DEVICE, "limit_all_gathers": not has_overlap, "forward_prefetch": has_overlap,
               "backward_prefetch": BackwardPrefetch.BACKWARD_PRE if has_overlap else None}
    inner = model(not has_overlap)
    for index in range(0, 2 * LAYERS, 2):
        inner[index] = FullyShardedDataParallel(inner[index], **options)
    return FullyShardedDataParallel(inner, **options)


def prepare():
    if SCENE.startswith("ddp-overlap"):
        return with_ddp(16)
    if SCENE.startswith("ddp-none"):
        return with_ddp(1000)
    if SCENE.startswith("fsdp"):
        return with_fsdp("overlap" in SCENE)
    return model()


def train(trained, optimizer, batch, loss_sum):
    optimizer.zero_grad(set_to_none=True)
    loss = trained(batch).square().mean()
    loss.backward()
    if SCENE.startswith("manual"):
        for parameter in trained.parameters():
            dist.all_reduce(parameter.grad)
    optimizer.step()
    loss_sum.copy_(loss.detach())
    dist.all_reduce(loss_sum)


def main():
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", device_id=DEVICE)
    trained = prepare()
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.01)
    batch = torch.randn(BATCH, WIDTH, device=DEVICE)
    loss_sum = torch.zeros(1, device=DEVICE)
    profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=False, with_stack=False)
    for iteration in range(BEFORE + PROFILED + AFTER):
        if iteration == BEFORE:
            torch.cuda.synchronize()
            profiler.start()
        if iteration == BEFORE + PROFILED:
            torch.cuda.synchronize()
            profiler.stop()
        with record_function("iteration %d" % iteration):
            train(trained, optimizer, batch, loss_sum)
    torch.cuda.synchronize()
    profiler.export_chrome_trace(os.path.join(OUT, "kineto-%d.json.gz" % RANK))
    print("rank %d: torch %s, NCCL %s, done" % (RANK, torch.__version__, torch.cuda.nccl.version()), flush=True)
    dist.barrier(device_ids=[0])
    torch.cuda.synchronize()
    dist.destroy_process_group()


main()
