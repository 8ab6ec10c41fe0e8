"""Writes a trace as torch.profiler would have written it beside a recording of Ringside.

    ringside export DIR --format jsonl -o - | make_kineto.py OUT RANK [KEY=VALUE ...]

Every call of NCCL has a record_param_comms, a launch within it and a kernel; between two calls there is a computation
whose first half overlaps the kernel. Keys: shift (us, of the clock), pid and rank (instead of those recorded), hours (of
another time), random=1 (launches anywhere), host=1 (nothing of CUDA), calls=0 (nothing of NCCL), absolute=1 (no base, as
before PyTorch 2.4), array=1 (events alone), pad (bytes of every computation's arguments), times (how often all
computations are repeated)."""

import calendar
import gzip
import json
import random
import sys
from datetime import datetime


def wall_ns(text):
    seconds, fraction = text.split(".")
    return calendar.timegm(datetime.fromisoformat(seconds).timetuple()) * 10**9 + int(fraction)


def microseconds(ns):
    return "%d.%03d" % (ns // 1000, ns % 1000)


def main():
    out, rank = sys.argv[1], int(sys.argv[2])
    keys = dict(argument.split("=") for argument in sys.argv[3:])
    number = {key: int(value) for key, value in keys.items()}
    ops = [op for op in map(json.loads, sys.stdin) if op["rank"] == rank and op["issue_time"] and op["launch_time"]]
    pid = number.get("pid", ops[0]["pid"])
    base = wall_ns(ops[0]["issue_time"]) // 10**9 * 10**9 - 10**9
    shift = number.get("shift", 0) * 1000 + number.get("hours", 0) * 3600 * 10**9
    zero = 0 if number.get("absolute") else base
    chance = random.Random(1)
    span = wall_ns(ops[-1]["issue_time"]) - wall_ns(ops[0]["issue_time"])
    events = []
    free = {7: 0, 20: 0}  # when each stream is

    def kernel(name, stream, start_ns, duration_ns, args):
        start_ns = max(start_ns, free[stream] + 1)
        free[stream] = start_ns + duration_ns
        slice_of("kernel", name, 0, stream, start_ns, duration_ns, args)

    def slice_of(category, name, process, thread, start_ns, duration_ns, args):
        events.append('{"ph": "X", "cat": "%s", "name": "%s", "pid": %d, "tid": %d, "ts": %s, "dur": %s, "args": %s}' % (
            category, name, process, thread, microseconds(start_ns + shift - zero), microseconds(duration_ns),
            json.dumps(args)))

    # Every other thing in a trace that is not a slice.
    events.append('{"ph": "M", "name": "thread_name", "pid": %d, "tid": %d, "ts": 0, "args": {"name": "thread %d (python)"}}' % (
        pid, pid, pid))
    events.append('{"ph": "X", "cat": "Trace", "ts": 1, "dur": 2, "pid": "Spans", "tid": "PyTorch Profiler", "name": "x"}')
    for index, op in enumerate(ops):
        issue, launch = wall_ns(op["issue_time"]), wall_ns(op["launch_time"])
        if number.get("random"):
            issue = launch = wall_ns(ops[0]["issue_time"]) + chance.randrange(span)
        correlation = 1000 + index
        if number.get("calls", 1):
            slice_of("cpu_op", "record_param_comms", pid, pid, issue - 2000, launch - issue + 4000,
                     {"Process Group Name": "0", "Collective name": "allreduce"})
        if number.get("host"):
            continue
        if number.get("calls", 1):
            slice_of("cuda_driver", "cuLaunchKernelEx", pid, pid, issue + (launch - issue) // 4, (launch - issue) // 2,
                     {"correlation": correlation})
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 20, launch + 10000, 40000,
                   {"correlation": correlation, "grid": [8, 1, 1]})
        for again in range(number.get("times", 1)):
            kernel("ampere_sgemm_128x64_nn", 7, launch + 30000 + again, 30000,
                   {"correlation": 9000000 + index, "pad": "x" * number.get("pad", 0)})
    about = '"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": 2}' % number.get("rank", rank)
    text = "[\n" + ",\n".join(events) + "\n]"
    if not number.get("array"):
        text = "{%s, %s\"traceEvents\": %s, \"traceName\": \"x\"}" % (
            about, "" if number.get("absolute") else '"baseTimeNanoseconds": %d, ' % base, text)
    with (gzip.open(out, "wt", compresslevel=1) if out.endswith(".gz") else open(out, "w", encoding="utf-8")) as file:
        file.write(text)


main()
