#!/usr/bin/env bash
# A failure ends the whole job with one line that says what and where, and leaves nothing behind.
. "$(dirname "$0")/bench.sh"
few=(--ranks 3 -s 4K -n 3)

FAKE_NCCL_WRONG=AllReduce:1 bench_json "${few[@]}"
expect_same "a wrong result is found: one element in every cell" "$code $(value 'different("wrong")')" "1 1"
expect_same "and is reported in one line" "$(grep -c 'wrong' "$tap_scratch/err")" 1
FAKE_NCCL_WRONG=Scatter:2 bench_json --ranks 3 -s 4K -n 3 all
expect_same "only where it is wrong" "$code $(value '{cell["function"] for cell in cells if cell["wrong"]}')" "1 {'Scatter'}"

for rank in 0 2; do
	FAKE_NCCL_DIE=$rank:4 bench "${few[@]}"
	expect_trouble "rank $rank dies" 3 "rank $rank was killed by signal 9"
done
FAKE_NCCL_DIE=1:5 bench --ranks 2 -s 4K --modes graph
expect_trouble "a rank dies while a graph is captured" 3 "rank 1 was killed by signal 9"
FAKE_NCCL_DIE=1:0 bench "${few[@]}"
expect_trouble "a rank dies while communicators are created" 3 'rank 1 (was killed by signal 9|on .* ended unexpectedly)'
never='rank [0-2] on .*: ncclCommInitRank did not return within [0-9]+ s'
FAKE_NCCL_HANG=1:0 until_reported "$never" --stuck bench "${few[@]}"
expect_trouble "a communicator that is never created" 3 "$never"
never='rank [0-2] on .*: AllReduce of 4 KiB did not return within [0-9]+ s'
FAKE_NCCL_HANG=1:4 until_reported "$never" --stuck bench "${few[@]}"
expect_trouble "a call that never ends" 3 "$never"
FAKE_NCCL_HANG=1:4 FAKE_NCCL_FAIL=ncclCommGetAsyncError:1:6 bench "${few[@]}"
expect_trouble "NCCL reports that a peer is gone" 3 'rank [0-2] on .*: AllReduce failed: remote process exited'

FAKE_NCCL_FAIL=ncclAllReduce:4:3 bench "${few[@]}"
expect_trouble "an NCCL call fails" 3 'rank [0-2] on .*: .*AllReduce failed: internal error'
FAKE_NCCL_FAIL=ncclCommInitRank:1:2 bench "${few[@]}"
expect_trouble "no communicator" 3 'rank [0-2] on .*: ncclCommInitRank failed: unhandled system error'
NCCL_ALGO=NVLS bench "${few[@]}"
expect_trouble "an unsupported algorithm" 3 'no algorithm/protocol available for function AllReduce'
for call in cuDevicePrimaryCtxRetain cuStreamCreate cuEventCreate cuModuleLoadData cuMemcpyHtoD_v2 cuLaunchKernel cuEventRecord; do
	FAKE_CUDA_FAIL=$call:0 bench "${few[@]}"
	expect_trouble "$call fails" 3 "rank [0-2] on .*$call.* failed: CUDA_ERROR_LAUNCH_FAILED"
done
FAKE_CUDA_FAIL=cuStreamQuery:9:700 bench "${few[@]}"
expect_trouble "a kernel reads an invalid address" 3 'rank [0-2] on .*: AllReduce failed: CUDA_ERROR_ILLEGAL_ADDRESS'
# The first capture tests what this CUDA supports in graphs.
for call in cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphInstantiateWithFlags cuGraphLaunch; do
	FAKE_CUDA_FAIL=$call:2 bench "${few[@]}" --modes graph
	expect_trouble "$call fails" 3 "rank [0-2] on .*$call.* failed: CUDA_ERROR_LAUNCH_FAILED"
done
FAKE_GPU_MEMORY=1K bench "${few[@]}"
expect_trouble "too little memory" 3 'rank [0-2] on .*out of memory'

FAKE_GPUS=0 bench "${few[@]}"
expect_trouble "no GPU" 3 'needs a GPU'
RINGSIDE_CUDA=$tap_scratch/nowhere.so bench "${few[@]}"
expect_trouble "no CUDA" 3 "cannot load the CUDA driver .*nowhere.so"
RINGSIDE_NCCL=$tap_scratch/nowhere.so bench "${few[@]}"
expect_trouble "no NCCL" 3 "cannot load NCCL from .*nowhere.so.*--nccl"
echo 'int ncclGetVersion(int *version); int ncclGetVersion(int *version) { *version = 2604; return 0; }' |
	"${CC:-cc}" -shared -fPIC -x c -o "$tap_scratch/ancient.so" - || exit 1
bench "${few[@]}" --nccl "$tap_scratch/ancient.so"
expect_trouble "NCCL is too old" 3 'ancient.so has no nccl[A-Za-z]*: .*2\.7 or newer'
# Whatever ends the parent ends its ranks.
for signal in INT TERM KILL; do
	# Background processes of a script ignore SIGINT.
	FAKE_NCCL_HANG=1:4 env --default-signal=INT "$ringside" bench "${few[@]}" >"$tap_scratch/out" 2>"$tap_scratch/err" &
	started=$!
	running=()
	while [ ${#running[@]} -lt 4 ] && kill -0 $started 2>/dev/null; do # it and its ranks
		mapfile -t running < <(left_running)
	done
	kill -$signal $started
	wait $started 2>/dev/null
	expect_same "SIG$signal: it ends" "$(($? > 0)) $(cat "$tap_scratch/out")" "1 "
	expect_nothing_left "SIG$signal: nothing is left behind"
done
bench --ranks 3 allreduces
expect_trouble "an unknown function" 2 'allreduces'
tap_done
