#!/usr/bin/env bash
# The recorder records every operation of the benchmark, on every rank, in every mode.
. "$(dirname "$0")/bench.sh"
export NCCL_PROFILER_PLUGIN=$BUILD/libnccl-profiler-ringside.so RINGSIDE_MODE=trace
# Inside a node, graph replays are only shown with these.
export RINGSIDE_EVENTS=kernel

record() { # name bench-argument...
	export RINGSIDE_DIR=$tap_scratch/$1
	mkdir "$RINGSIDE_DIR"
	bench_json "${@:2}"
	expect_same "$1: it finishes" "$code $(cat "$tap_scratch/err")" "0 "
	expect_ok "$1: nothing is missing" "$ringside" verify "$RINGSIDE_DIR"
	"$ringside" dump "$RINGSIDE_DIR" >"$tap_scratch/dump.jsonl"
	python3 tests/bench/complete.py "$tap_scratch/run.json" "$tap_scratch/dump.jsonl" >"$tap_scratch/complete" 2>&1
	expect_same "$1: every operation is recorded" "$(cat "$tap_scratch/complete")" ""
}

record collectives --ranks 3 allreduce allgather reducescatter broadcast reduce -s 1K,64K --modes all -n 5
expect_same "NCCL's choice is read back" \
	"$(value '{(cell["chosen_algorithm"], cell["chosen_protocol"]) for cell in cells} <= {(a, p) for a in ("RING", "TREE") for p in ("LL", "LL128", "SIMPLE")}')" True
record pairs --ranks 4 alltoall sendrecv gather scatter -s 1K,64K --modes all -n 5 --root 1 --out-of-place
# In place, the root's own part is a Send and a Recv that do nothing; NCCL shows them for calls, not for replays.
record in_place --ranks 3 gather scatter -s 1K,64K --modes blocking,back-to-back,loop -n 5 --root 1 --in-place
record aligned --ranks 2 -s 1K,32K --modes all -n 5 --align nccl
RINGSIDE_NCCL=$fake/libnccl-old.so.2 record older --ranks 3 alltoall gather scatter -s 1K --modes all -n 5 --out-of-place

# The recorded time equals the measured one: both come from the model.
FAKE_GPU_CLOCK=model NCCL_ALGO=Ring NCCL_PROTO=LL record exact --ranks 3 -s 3000 -n 20 --out-of-place --modes blocking,back-to-back
expect_same "recorded times equal measured ones" \
	"$(python3 -c 'import json, sys
print({round(json.loads(line)["duration_ns"] / 1000, 2) for line in open(sys.argv[1])})' "$tap_scratch/dump.jsonl")" "{21.33}"
expect_nothing_left "nothing is left behind"
tap_done
