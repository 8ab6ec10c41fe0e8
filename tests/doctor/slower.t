#!/usr/bin/env bash
# A job that became slower is never healthy: the cause if it is visible, else what was ruled out and how to see the rest.
. "$(dirname "$0")/slowness.sh"

# As recorded by default on a release.
play() { # name release option...
	local name=$1 release=$2
	shift 2
	rm -rf "${tap_scratch:?}/$name"
	"$ringside" sim --offline -o "$tap_scratch/$name" --release "$release" "$@" >/dev/null
}

answer() { # name option...: "trouble 1"
	local name=$1
	shift
	"$ringside" doctor --json "$tap_scratch/$name" "$@" >"$tap_scratch/answer.json"
	local code=$?
	echo "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["answer"])' "$tap_scratch/answer.json") $code"
}

# ---- nothing is timed: nobody can be named --------------------------------------------------------
for release in 2.23 2.27; do
	play slower "$release" --nodes 2 --gpus 8 -w fsdp --seed 71 --seconds 60s -f slow-rank:rank=6,factor=1.6,at=20s
	expect_same "$release: longer iterations are trouble" "$(answer slower)" "trouble 1"
	expect_same "$release: nobody is named" "$(named slower)" "below_expected"
	expect_ok "$release: with what it costs" python3 -c "exit(not 33 < $(value cost_percent) < 41)"
	expect_ok "$release: and since when" grep -q "since 00:00:\(19\|20\|21\)" <(value evidence)
	[[ $release == 2.23 ]] || expect_ok "$release: transfers between nodes are not the cause" grep -q "Ruled out: slower transfers between nodes" <(value evidence)
	"$ringside" report "$tap_scratch/slower" >"$tap_scratch/said"
	expect_ok "$release: the report says so, too" grep -q "warning: iterations take 5.% longer" "$tap_scratch/said"
	expect_ok "$release: in JSON as a finding" grep -q '"kind": *"slower"' <("$ringside" report --json "$tap_scratch/slower")
	expect_same "$release: not in a report of some operations, which has no whole iterations" \
		"$("$ringside" report --json --op AllGather "$tap_scratch/slower" | grep -c '"kind": *"slower"')" 0
	"$ringside" bundle "$tap_scratch/slower" -o "$tap_scratch/slower.tar.gz" >/dev/null 2>&1
	expect_same "$release: and what is in a bundle" "$(answer slower.tar.gz)" "trouble 1"
	play over "$release" --nodes 2 --gpus 8 -w fsdp --seed 72 --seconds 60s -f slow-rank:rank=6,factor=1.6,at=20s,until=45s
	expect_same "$release: slower for a while" "$(named over)" "below_expected"
	expect_ok "$release: with start and end" grep -q "between 00:00:[12]. and 00:00:4" <(value evidence)
done
named slower >/dev/null
expect_same "2.27: kernel events show why" "$(value advice | grep -o -- '--times [a-z]* -- COMMAND')" "--times kernel -- COMMAND"
play slower 2.23 --nodes 2 --gpus 8 -w ddp --seed 73 --seconds 60s -f slow-rank:rank=6,factor=1.6,at=20s
named slower >/dev/null
expect_ok "2.23: nothing does, and nothing is advised that fails" grep -vq "ringside" <(value advice)
for release in 2.28 2.31; do
	"$ringside" sim --offline -o "$tap_scratch/off" --times off --release "$release" --nodes 2 --gpus 8 -w fsdp --seed 74 \
		--seconds 60s -f slow-rank:rank=6,factor=1.6,at=20s >/dev/null
	expect_same "$release, not timed" "$(named off)" "below_expected"
	expect_same "$release: launches can be timed" "$(value advice | grep -o -- '--times [a-z]* -- COMMAND')" "--times all -- COMMAND"
	rm -rf "$tap_scratch/off"
	play timed "$release" --nodes 2 --gpus 8 -w fsdp --seed 75 --seconds 60s -f slow-rank:rank=6,factor=1.6,at=20s
	expect_same "$release: timed by default, it has a name" "$(named timed)" "slow_rank 6"
	expect_ok "$release: and costs what iterations take longer" python3 -c "exit(not 33 < $(value cost_percent) < 41)"
done

# ---- not slower -----------------------------------------------------------------------------------
play noisy 2.27 --nodes 2 --gpus 8 -w fsdp --seed 76 --seconds 90s --noise evaluation:every=20s,for=6s --noise checkpoint:every=30s,for=2s \
	--noise batches:percent=30 --noise thermal
expect_same "evaluations, checkpoints and batches of other sizes" "$(named noisy)" ""
play small 2.27 --nodes 2 --gpus 8 -w fsdp --seed 77 --seconds 60s -f slow-rank:rank=6,factor=1.08,at=25s
expect_same "a small rise is a note" "$(answer small) $(found small)" "nothing_wrong 0 below_expected"

# ---- pipelines: Sends on the wire -----------------------------------------------------------------
for release in 2.23 2.27 2.28 2.31; do
	play pipe "$release" --nodes 4 -w tp-pp --network 12 --seed 81 --seconds 60s -f degraded-network:factor=4,at=28s
	expect_same "$release: Sends of a pipeline over a slow network" "$(named pipe)" "slow_network"
	expect_ok "$release: with their time on the wire" grep -q "Send of .* transfers are on the wire for" <(value evidence)
	expect_ok "$release: and what it costs" python3 -c "exit(not 5 < $(value cost_percent) < 16)"
	play pipe "$release" --nodes 4 -w tp-pp --network 12 --seed 82 --seconds 60s
	expect_same "$release: a network that stays as it is" "$(named pipe)" ""
done
simulate pipe --nodes 4 -w tp-pp --network 12 --seed 83 --seconds 60s -f degraded-network:factor=4,at=28s
expect_same "kernels timed: the same" "$(named pipe)" "slow_network"

# ---- cables from the start ------------------------------------------------------------------------
for release in 2.23 2.27 2.31; do
	play cable "$release" --nodes 4 -w ddp --sizes 256MiB --channels 16 --seed 84 --seconds 30s -f slow-link:from=7,to=8,factor=10
	expect_same "$release: a slow cable, compared with the others" "$(named cable)" "slow_link 7>8"
done
play many 2.28 --nodes 32 --gpus 8 -w fsdp --sizes 1GiB --channels 16 --seed 85 --seconds 16s -f slow-link:from=119,to=120,factor=10
expect_same "one of 256 ranks, in a short recording" "$(named many)" "slow_link 119>120"

# ---- baselines ------------------------------------------------------------------------------------
play good 2.27 --nodes 2 --gpus 8 -w fsdp --sizes 1GiB --seed 91 --seconds 40s
save good >/dev/null
play bad 2.27 --nodes 2 --gpus 8 -w fsdp --sizes 1GiB --seed 92 --seconds 40s -f slow-rank:rank=3,factor=1.5
expect_same "slower than the baseline from the start" "$(named bad --baseline "$tap_scratch/good.json")" "below_expected"
expect_ok "communication is cleared of nothing that was not compared" grep -q "cause not visible" <(value title)
expect_ok "with what it costs" python3 -c "exit(not 28 < $(value cost_percent) < 38)"
expect_same "the same job again" "$(answer good --baseline "$tap_scratch/good.json")" "nothing_wrong 0"
play other 2.27 --nodes 2 --gpus 8 -w ddp --seed 93 --seconds 20s
expect_same "another job: nothing could be compared" "$(answer other --baseline "$tap_scratch/good.json")" "could_not_tell 3"
tap_done
