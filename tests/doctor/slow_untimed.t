#!/usr/bin/env bash
# Where no call has a duration, the network is judged by the time on the wire, and its cost by iterations.
. "$(dirname "$0")/slowness.sh"

# simulate() without GPU times.
untimed() { # name release option...
	local name=$1 release=$2
	shift 2
	simulate "$name" --release "$release" --times off --nodes 4 --gpus 4 "$@"
}
for release in 2.23 2.27 2.31; do
	untimed fast "$release" -w fsdp --sizes 1GiB --seconds 30s --seed 11
	expect_same "$release: a fast network accuses nobody" "$(found fast)" ""
	untimed slower "$release" -w fsdp --sizes 1GiB --seconds 30s --seed 12 -f degraded-network:factor=8,at=15s
	expect_same "$release: it became slower, and iterations longer" "$(named slower)" "slow_network"
	expect_ok "with the time on the wire" grep -q "transfers are on the wire for" <(value evidence)
	expect_ok "what it costs is what iterations take longer" python3 -c "exit(not 5 < $(value cost_percent) < 80)"
	untimed first "$release" -w fsdp --sizes 1GiB --seconds 30s --seed 13 -f degraded-network:factor=8,until=15s
	expect_same "$release: it was slow at first" "$(named first)" "slow_network"
	untimed hidden "$release" -w ddp --seconds 30s --seed 14 -f degraded-network:factor=3,at=15s
	expect_same "$release: behind compute it costs nothing" "$(named hidden)" ""
	untimed nvlink "$release" -w fsdp --seconds 30s --seed 24 -f slow-nvlink:node=2,factor=4,at=12s
	expect_same "$release: a slow NVLink gives the network less to do, which is no slow network before" "$(found nvlink | grep network)" ""
	save fast >/dev/null
	expect_same "$release: like in the baseline" "$(found fast --baseline "$tap_scratch/fast.json")" ""
	untimed slow "$release" -w fsdp --sizes 1GiB --seconds 30s --seed 15 -f degraded-network:factor=8
	expect_same "$release: slower than in the baseline from the start" \
		"$(named slow --baseline "$tap_scratch/fast.json")" "slow_network"
	"$ringside" doctor "$tap_scratch/slow" --peak net=48 >"$tap_scratch/said"
	expect_same "$release: nothing can be compared with a peak, and that is no answer" "$?" 3
	"$ringside" diff "$tap_scratch/fast" "$tap_scratch/slow" >"$tap_scratch/said"
	expect_same "$release: diff compares the time on the wire" "$? $(grep -c ' wire ' "$tap_scratch/said")" "1 3"
done

# Files of version 0.2 do not say what their durations are.
sed 's/"durations":"gpu",//' "$tap_scratch/fast.json" >"$tap_scratch/old.json"
"$ringside" doctor "$tap_scratch/fast" --baseline "$tap_scratch/old.json" >/dev/null 2>"$tap_scratch/said"
expect_same "an old baseline is refused" "$? $(grep -c 'save it again' "$tap_scratch/said")" "3 1"
simulate timed --release 2.31 --nodes 4 --gpus 4 -w fsdp --sizes 1GiB --seconds 30s --seed 11
"$ringside" diff "$tap_scratch/timed" "$tap_scratch/fast" >"$tap_scratch/said"
expect_same "durations are not compared with time on the wire" "$? $(grep -cE 'not timed *$' "$tap_scratch/said")" "3 3"
tap_done
