#!/usr/bin/env bash
# A stopped rank does not answer: it is named and all ranks end, wherever it was. Its parent kills it.
. "$(dirname "$0")/bench.sh"
export FAKE_GPU_CLOCK=model FAKE_GPUS=4

stopped_in() { # function argument...
	FAKE_GPU_STOP=$1:2 timeout 300 "$ringside" bench "${@:2}" --ranks 3 >"$tap_scratch/out.$case" 2>"$tap_scratch/err.$case"
	echo $? >"$tap_scratch/code.$case"
}
expect_named() { # case sentence
	code=$(cat "$tap_scratch/code.$1")
	mv "$tap_scratch/out.$1" "$tap_scratch/out"
	mv "$tap_scratch/err.$1" "$tap_scratch/err"
	expect_trouble "$2" 3 "rank 2( on [^ ]+)? (gave no sign of life|did not answer)"
}

# In parallel: they only wait.
for case in cuInit ncclCommInitRank ncclAllReduce; do
	stopped_in "$case" health --sizes 16M --seconds 4 &
done
case=bench stopped_in cuInit -s 4K --stuck 4 &
wait
for case in cuInit ncclCommInitRank ncclAllReduce; do
	expect_named "$case" "health: stopped in $case"
done
expect_named bench "bench: stopped in cuInit"
tap_done
