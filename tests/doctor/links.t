#!/usr/bin/env bash
# Both ends of a slow link are reported in every mode: from files, from regions of a running job, through agents (snapshots).
. "$(dirname "$0")/slowness.sh"

background=()
clean_up() {
	local pid
	for pid in "${background[@]}"; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	rm -rf "$tap_scratch"
}
trap clean_up EXIT

# ---- files ----------------------------------------------------------------------------------------
# Links that are slow from the beginning; the second sender also sends tiny messages to others, the last two send large ones to several ranks.
while read -r from to options; do
	for mode in trace full; do
		# shellcheck disable=SC2086 # options are several
		simulate link $options -m "$mode" -f "slow-link:from=$from,to=$to,factor=4"
		expect_same "$options, mode $mode: $from to $to" "$(named link)" "slow_link $from>$to"
	done
done <<'JOBS'
3 4 --nodes 4 --gpus 4 --seconds 8s -w fsdp --seed 3
4 1 --nodes 2 --gpus 4 --seconds 8s -w fsdp --seed 4
7 8 --nodes 2 --gpus 8 --seconds 8s -w fsdp --seed 9
1 0 --nodes 2 --gpus 1 --seconds 8s -w fsdp --seed 5
3 4 --nodes 4 --gpus 4 --seconds 8s -w ddp --seed 3
3 7 --nodes 4 --gpus 4 --seconds 8s -w tp-pp --seed 3
3 4 --nodes 4 --gpus 4 --seconds 8s -w moe --seed 3
8 0 --nodes 4 --gpus 8 --seconds 8s -w ddp --seed 35
15 7 --nodes 8 --gpus 4 --channels 8 --seconds 8s -w ddp --seed 21
JOBS

simulate link --nodes 4 --gpus 4 --seconds 8s -w fsdp --seed 3 -f slow-link:from=3,to=4
named link >/dev/null
expect_ok "the only peer is very likely: either end may be the cause" python3 -c "exit(not 0.85 < $(value confidence) <= 0.9)"
expect_ok "and its transfers are counted" grep -q "sends only to rank 4 of world: .* transfers since the process started" \
	<(value evidence)
expect_same "with its host" "$(value peer_host)" node0001
expect_ok "without its channel" grep -q "The channel is unknown" <(value missing)

simulate late --nodes 8 --gpus 4 --channels 16 --seconds 12s -w ddp --seed 2 -f slow-link:from=2,to=6,factor=4,at=9s
expect_same "one of several peers, slow since recently" "$(found late)" "slow_link 2>6"
expect_ok "is less certain" python3 -c "exit(not 0.5 < $(value confidence) < 0.9)"
expect_ok "with the reason" grep -q "Totals per peer count from the process start" <(value missing)

# ---- a running job --------------------------------------------------------------------------------
# The ends of slow links that the doctor reports, once they are these: some hundred collectives are needed, and on a busy machine
# other links may be slow as well, for a while. A slow agent is not a dead one, either.
are_ends() { # wanted option...
	local wanted=$1
	shift
	"$ringside" doctor --json "$@" >"$tap_scratch/named.json" 2>"$tap_scratch/doctor.err"
	python3 -c 'import json, sys
for v in json.load(open(sys.argv[1]))["verdicts"]:
    if v["class"] == "slow_link":
        print("%s>%s" % (v["rank"], v["peer"]))' "$tap_scratch/named.json" >"$tap_scratch/ends" 2>/dev/null
	[ "$(cat "$tap_scratch/ends")" = "$wanted" ]
}
ends() { # wanted option...
	until_ok are_ends "$@"
	cat "$tap_scratch/ends"
}
unset RANK WORLD_SIZE LOCAL_RANK SLURM_JOB_ID SLURM_JOBID SLURM_PROCID TORCHELASTIC_RUN_ID
mkdir "$tap_scratch/live"
"$ringside" sim --kernel --plugin "$BUILD/libnccl-profiler-ringside.so" -m flight --node-regions "$tap_scratch/live" --seconds 600s \
	--nodes 2 --gpus 4 --rate 1 -w fsdp --sizes 16MiB -f slow-link:from=3,to=4,factor=32 >"$tap_scratch/sim.out" 2>&1 &
background+=($!)
expect_same "regions in mode flight" "$(ends "3>4" "$tap_scratch/live")" "3>4"

if [ -x "$BUILD/ringside-fetch" ]; then
	addresses=()
	for node in 0 1; do
		"$BUILD/ringside-agent" --listen 127.0.0.1:0 --directory "$tap_scratch/live/node000$node" --interval 1s \
			>"$tap_scratch/agent$node" 2>&1 &
		background+=($!)
		until_ok grep -q "listening on" "$tap_scratch/agent$node"
		addresses+=("$(sed -n 's|.*listening on http://||p' "$tap_scratch/agent$node")")
	done
	unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY
	expect_same "the same through agents, which return snapshots" "$(ends "3>4" --timeout 30s --agents "${addresses[0]},${addresses[1]}")" "3>4"
else
	echo "# no agents: ringside-fetch was not built"
fi

# ---- recorded links -------------------------------------------------------------------------------
sums() { # name
	"$ringside" export -f csv -o "$tap_scratch/$1.csv" "$tap_scratch/$1" >/dev/null
	python3 tests/doctor/links.py "$tap_scratch/$1" "$tap_scratch/$1.csv"
}
"$ringside" sim --kernel --plugin "$BUILD/libnccl-profiler-ringside.so" -m trace -o "$tap_scratch/traces" --iterations 5 --nodes 2 --gpus 2 \
	-w fsdp --sizes 16MiB >"$tap_scratch/sim.out" 2>&1
expect_same "the recorder's link totals match what its operations moved" "$(sums traces)" "4 files, all the same"
expect_same "and so do those of a simulation" "$(sums late)" "32 files, all the same"

tap_done
