#!/usr/bin/env bash
# Healthy jobs: nothing is reported, and every operation is counted.
. "$(dirname "$0")/watch.sh"

follow ddp 10000 -- --gpus 4 -w ddp --seconds 4s
follow fsdp 10000 -- --gpus 4 -w fsdp --seconds 4s
follow tp-pp 10000 -- --nodes 2 --gpus 4 -w tp-pp --seconds 4s
follow moe 10000 -- --nodes 2 --gpus 2 -w moe --seconds 4s
wait

for job in ddp fsdp tp-pp moe; do
	expect_same "$job: nothing is reported" "$(noticed "$job")" ""
	expect_same "$job: all its operations were seen" \
		"$(sed -n 's/^operations //p' "$tap_scratch/$job.out")" \
		"$(sed -n 's/^\([0-9,]*\) operations.*/\1/p' "$tap_scratch/$job.job" | tr -d ,)"
done
tap_done
