#!/usr/bin/env bash
# Stragglers in jobs of 512 ranks, and a report over 4,096.
. "$(dirname "$0")/../timeline/timeline.sh"

where=(--nodes 64 --gpus 8 --clock-shift 1s --seconds 10s)
for workload in ddp fsdp; do
	simulate none "${where[@]}" -w "$workload"
	expect_same "512 ranks, $workload, nothing wrong: no rank is named" "$(named none)" ""
	simulate rank "${where[@]}" -w "$workload" -f slow-rank:rank=300,factor=1.2
	expect_same "512 ranks, $workload: a slow rank" "$(named rank)" "slow_rank 300"
	simulate network "${where[@]}" -w "$workload" -f degraded-network:factor=2,at=5s
	expect_same "512 ranks, $workload: a degraded network" "$(named network)" "network -"
done
simulate link "${where[@]}" -w fsdp -f slow-link:from=7,to=8
expect_same "512 ranks: a slow link" "$(named link)" "slow_link 7"

for seed in $(seq 1 20); do
	simulate none --nodes 4 --gpus 8 -w fsdp --seconds 12s --seed "$seed"
	expect_same "no rank is named by chance, seed $seed" "$(named none)" ""
done

simulate many --nodes 512 --gpus 8 -w fsdp --seconds 4s -f slow-rank:rank=77,factor=1.5
expect_same "4,096 ranks: a slow rank" "$(named many)" "slow_rank 77"
tap_done
