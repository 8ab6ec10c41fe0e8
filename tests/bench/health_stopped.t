#!/usr/bin/env bash
# A rank that is stopped answers nobody: health names it and ends, and does not wait for ever.
. "$(dirname "$0")/bench.sh"
export FAKE_GPU_CLOCK=model FAKE_GPUS=4

# Stop the last rank as soon as it has the GPU open; the others get stuck with it. Its parent kills it in the end.
"$ringside" bench health --ranks 3 --size 16M --seconds 2 >"$tap_scratch/out" 2>"$tap_scratch/err" &
parent=$!
for ((tries = 0; tries < 400; tries++)); do
	mapfile -t ranks < <(pgrep -P "$parent")
	[ "${#ranks[@]}" -eq 3 ] && grep -qs libnccl "/proc/${ranks[2]}/maps" && kill -STOP "${ranks[2]}" && break
	sleep 0.02
done
wait "$parent"
code=$?
expect_trouble "a stopped rank is named" 1 "rank 2( on [^ ]+)? (gave no sign of life|did not answer)"
tap_done
