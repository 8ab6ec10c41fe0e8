#!/usr/bin/env bash
# A rank that is stopped answers nobody: health names it and ends, and does not wait for ever.
. "$(dirname "$0")/bench.sh"
export FAKE_GPU_CLOCK=model FAKE_GPUS=4

# Stop the last rank as soon as it has the GPU open; the others get stuck with it. Its parent kills it in the end.
"$ringside" bench health --ranks 3 --sizes 16M --seconds 2 >"$tap_scratch/out" 2>"$tap_scratch/err" &
parent=$!
while kill -0 "$parent" 2>/dev/null; do
	mapfile -t ranks < <(pgrep -P "$parent")
	[ "${#ranks[@]}" -eq 3 ] && grep -qs libnccl "/proc/${ranks[2]}/maps" && kill -STOP "${ranks[2]}" && break
done
wait "$parent"
code=$?
expect_trouble "a stopped rank is named" 1 "rank 2( on [^ ]+)? (gave no sign of life|did not answer)"
tap_done
