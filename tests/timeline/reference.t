#!/usr/bin/env bash
# Counts, bytes, times, waiting and quantiles equal those of a slow reference.
. "$(dirname "$0")/timeline.sh"

agrees() { # name
	# It exits with 1 if a recording is truncated, as that of a hung job.
	"$ringside" dump "$tap_scratch/$1" >"$tap_scratch/$1.dump" 2>/dev/null
	"$figures" "$tap_scratch/$1" >"$tap_scratch/$1.figures" &&
		python3 tests/timeline/reference.py "$tap_scratch/$1.dump" "$tap_scratch/$1.figures"
}

job() { # sentence option...
	local sentence=$1
	shift
	simulate job "$@"
	expect_ok "$sentence" agrees job
}

job "data parallel with a slow rank" --nodes 2 --gpus 4 -w ddp --seconds 6s -f slow-rank:rank=5
job "sharded, clocks a second apart" --nodes 2 --gpus 2 -w fsdp --seconds 6s --clock-shift 1s
job "tensor and pipeline parallel" --nodes 4 --gpus 4 -w tp-pp --seconds 4s
job "experts: several sources of time, untrusted stamps" --nodes 2 --gpus 4 -w moe --seconds 3s
job "a rank that never arrives" --nodes 2 --gpus 4 -w fsdp --seconds 6s -f never-arrives:rank=3,at=3s
job "half the count in one call" --nodes 2 --gpus 4 -w fsdp --seconds 6s \
	-f mismatch:rank=3,at=3s,what=count
job "NCCL 2.27, which shows no calls" --nodes 2 --gpus 4 -w ddp --seconds 3s --release 2.27 --no-kernel
job "without GPU times" --nodes 2 --gpus 4 -w fsdp --seconds 3s --no-kernel
job "many small messages" --nodes 1 --gpus 4 -w loop --seconds 2s --sizes 1KiB,3KiB,100KiB

simulate job --nodes 2 --gpus 4 -w ddp --seconds 3s
"$ringside" dump "$tap_scratch/job" >"$tap_scratch/job.dump"
"$figures" "$tap_scratch/job" | sed 's/"wait_ns":\([0-9]*\)/"wait_ns":1\1/' >"$tap_scratch/wrong"
expect_complaint "the reference detects a wrong value" "figures differ" \
	python3 tests/timeline/reference.py "$tap_scratch/job.dump" "$tap_scratch/wrong"
tap_done
