#!/usr/bin/env bash
# No verdict on jobs with nothing but jitter, compared with a baseline of another seed.
# HEALTHY_JOBS sets their number; tests/long/doctor_healthy.t runs more.
. "$(dirname "${BASH_SOURCE[0]}")/slowness.sh"

: "${HEALTHY_JOBS:=20}"
# Workload, nodes, GPUs per node.
jobs=("ddp 2 4" "fsdp 4 4" "tp-pp 4 4" "moe 2 4" "loop 2 2" "fsdp 1 8" "ddp 8 2" "tp-pp 8 4" "moe 4 2" "fsdp 8 1")
for ((i = 0; i < HEALTHY_JOBS; i++)); do
	read -r workload nodes gpus <<<"${jobs[i % ${#jobs[@]}]}"
	jitter=$((i * 3 % 16))
	seconds=$((4 + i * 7 % 20))
	seed=$((100 + 2 * i))
	what=(--nodes "$nodes" --gpus "$gpus" -w "$workload" --jitter "$jitter" --seconds "${seconds}s")
	simulate before "${what[@]}" --seed "$seed"
	simulate after "${what[@]}" --seed $((seed + 1))
	save before
	expect_same "no verdict: ${what[*]} --seed $((seed + 1))" \
		"$(named after --baseline "$tap_scratch/before.json")" ""
done
tap_done
