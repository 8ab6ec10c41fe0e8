#!/usr/bin/env bash
# The straggler is named correctly, and none if there is none, whatever the clocks show.
. "$(dirname "$0")/timeline.sh"

for size in "2 4" "8 8"; do
	read -r nodes gpus <<<"$size"
	ranks=$((nodes * gpus))
	where=(--nodes "$nodes" --gpus "$gpus" --clock-shift 1s --seconds 10s)
	for workload in ddp fsdp loop; do
		simulate none "${where[@]}" -w "$workload"
		expect_same "$ranks ranks, $workload, nothing wrong: no straggler" "$(named none)" ""
		simulate rank "${where[@]}" -w "$workload" -f slow-rank:rank=5,factor=1.2
		expect_same "$ranks ranks, $workload: a slow rank" "$(named rank)" "slow_rank 5"
		simulate network "${where[@]}" -w "$workload" -f degraded-network:factor=2,at=5s
		expect_same "$ranks ranks, $workload: a degraded network" "$(named network)" "network -"
	done
	# Small rings are not used if trees are faster: an AllReduce avoids the link.
	for workload in fsdp loop; do
		simulate link "${where[@]}" -w "$workload" -f "slow-link:from=$((gpus - 1)),to=$gpus"
		expect_same "$ranks ranks, $workload: a slow link" "$(named link)" "slow_link $((gpus - 1))"
	done
done

# The same job with synchronized clocks. (GPU timestamps are rounded to 32 ns, so durations differ by that.)
for shift in 0s 1s; do
	simulate "shift-$shift" --nodes 2 --gpus 4 -w fsdp --seconds 10s --clock-shift "$shift" \
		-f slow-rank:rank=5,factor=1.3,at=4s,until=8s
	"$figures" "$tap_scratch/shift-$shift" brief | grep -E '"(straggler|change|finding|iterations)"' |
		sed -E 's/"(first|last|at)_s":(-?[0-9]+\.[0-9])[0-9]*/"\1_s":\2/g' \
			>"$tap_scratch/shift-$shift.figures"
done
expect_same "clocks a second apart change no conclusion" "$(cat "$tap_scratch/shift-1s.figures")" \
	"$(cat "$tap_scratch/shift-0s.figures")"
expect_same "a rank that is slow for a while is named" "$(named shift-1s)" "slow_rank 5"
expect_ok "with the time" grep -E '"straggler":"slow_rank","pattern":"bursts"' "$tap_scratch/shift-1s.figures"

simulate moe --nodes 2 --gpus 4 -w moe --seconds 10s -f slow-link:from=3,to=4
expect_ok "Sends show both ends of a slow link" grep -E '"slow_link".*"rank":"3".*"peer":"4"' \
	<("$figures" "$tap_scratch/moe" brief)
simulate full --nodes 2 --gpus 2 -w fsdp --seconds 5s -m full -f slow-link:from=1,to=2
expect_ok "full mode shows both ends for collectives, too" grep -E '"slow_link".*"rank":"1".*"peer":"2"' \
	<("$figures" "$tap_scratch/full" brief)

simulate pipeline --nodes 8 --gpus 4 -w tp-pp --seconds 20s
expect_same "stages of a pipeline arrive one after the other: no straggler" "$(named pipeline)" ""
simulate pipeline --nodes 8 --gpus 4 -w tp-pp --seconds 20s -f slow-rank:rank=9,factor=1.3
expect_same "a straggler in a tensor group is named, not the ranks that wait for it" "$(named pipeline)" \
	"slow_rank 9"
tap_done
