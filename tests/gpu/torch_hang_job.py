"""One rank of a PyTorch job that hangs or is slow: see torch_hangs and agent. A thread writes its Python frames as py-spy would, and then the
Flight Recorder's dump, as pickle and as JSON, and the Python stacks, when the launcher asks for them."""

import faulthandler
import json
import os
import sys
import threading
import time
from datetime import timedelta

SCENE, OUT = sys.argv[1], sys.argv[2]
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

DEVICE = torch.device("cuda", 0)
STEPS = 12
FOREVER_S = 600


def write(name, data):
    path = os.path.join(OUT, name)
    with open(path + ".part", "wb") as file:
        file.write(data)
    os.rename(path + ".part", path)


def write_frames():
    """What `py-spy dump --json` prints; there is no py-spy on the machine."""
    threads = {thread.ident: thread for thread in threading.enumerate()}
    found = []
    for ident, frame in sys._current_frames().items():
        frames = []
        while frame is not None:
            frames.append({"name": frame.f_code.co_name, "filename": frame.f_code.co_filename, "module": None,
                           "short_filename": None, "line": frame.f_lineno or 0, "locals": None, "is_entry": False,
                           "is_shim_entry": False})
            frame = frame.f_back
        thread = threads.get(ident)
        found.append({"pid": os.getpid(), "thread_id": ident, "thread_name": thread.name if thread else None,
                      "os_thread_id": thread.native_id if thread else None, "active": False, "owns_gil": False,
                      "frames": frames, "process_info": None})
    write("frames-%d.json" % RANK, json.dumps(found, indent=2).encode())


def dump_when_asked():
    while not os.path.exists(os.path.join(OUT, "frames-now")):
        time.sleep(0.05)
    write_frames()
    while not os.path.exists(os.path.join(OUT, "dump-now")):
        time.sleep(0.05)
    recorder = torch._C._distributed_c10d
    write("nccl_trace_rank_%d" % RANK, recorder._dump_nccl_trace())
    write("json_rank_%d" % RANK, recorder._dump_nccl_trace_json())
    with open(os.path.join(OUT, "stacks-%d" % RANK), "w", encoding="utf-8") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    write("dumped-%d" % RANK, b"")


def next_batch(step):
    if SCENE == "loader" and RANK == 3 and step == STEPS - 2:
        time.sleep(FOREVER_S)  # a data loader that waits for its storage
    return torch.ones(4099, device=DEVICE) * step


def forward(batch, step):
    if SCENE == "exception" and RANK == 1 and step == STEPS - 2:
        raise ValueError("a batch without labels")
    if SCENE == "fault" and RANK == 1 and step == STEPS - 2:
        fault = torch.cuda._compile_kernel('extern "C" __global__ void fault() { *(volatile int *)0x10 = 1; }', "fault")
        fault(grid=(1, 1, 1), block=(1, 1, 1), args=())
        torch.cuda.synchronize()
    return batch * 2


def save_checkpoint(step):
    if SCENE == "checkpoint" and RANK == 0 and step == STEPS - 3:
        time.sleep(FOREVER_S)  # a file system that does not answer


def reduce_gradients(gradients, step):
    if SCENE == "skip" and RANK == 2 and step == STEPS - 2:
        return
    dist.all_reduce(gradients)
    torch.cuda.synchronize()


def evaluate(step):
    if SCENE == "skip" and RANK == 2 and step == STEPS - 2:
        time.sleep(FOREVER_S)


def exchange(first, second):
    dist.all_reduce(torch.ones(1031, device=DEVICE), group=first)
    torch.cuda.synchronize()
    dist.all_reduce(torch.ones(1033, device=DEVICE), group=second)
    torch.cuda.synchronize()


def train(left, right):
    for step in range(STEPS):
        gradients = forward(next_batch(step), step)
        reduce_gradients(gradients, step)
        evaluate(step)
        save_checkpoint(step)
        if SCENE == "deadlock" and step == STEPS - 2 and RANK % 2 == 1:
            exchange(right, left)
        else:
            exchange(left, right)


def train_slowly():
    """Until somebody ends the job. Rank 1 computes longer than the others unless all are to be even; "ahead": the processor does
    not wait for the GPU in every step, as in most programs."""
    matrix = torch.ones(4096, 4096, device=DEVICE)
    gradients = torch.ones(1 << 20, device=DEVICE)
    write("started-%d" % RANK, b"%d" % os.getpid())
    step = 0
    while True:
        for _ in range(9 if RANK == 1 and "even" not in SCENE else 3):
            torch.mm(matrix, matrix)
        dist.all_reduce(gradients)
        step += 1
        if "ahead" not in SCENE or step % 16 == 0:
            torch.cuda.synchronize()


def main():
    dist.init_process_group("nccl", timeout=timedelta(seconds=FOREVER_S))
    if SCENE.startswith("slow"):
        train_slowly()
    left = dist.new_group(list(range(RANKS)), group_desc="left")
    right = dist.new_group(list(range(RANKS)), group_desc="right")
    threading.Thread(target=dump_when_asked, daemon=True).start()
    write("started-%d" % RANK, b"%d" % os.getpid())
    try:
        train(left, right)
    except (ValueError, RuntimeError) as error:
        print("rank %d: %s" % (RANK, error), flush=True)
        os._exit(1)
    print("rank %d: came to the end" % RANK, flush=True)


main()
