#!/usr/bin/env bash
# Two faults at once: both are named, the more expensive one first, and nobody else.
. "$(dirname "$0")/slowness.sh"

# ---- two stragglers: the one that is later hides the other ------------------------------------------
two() { # name workload nodes gpus seed rank factor rank factor option...
	simulate "$1" -w "$2" --nodes "$3" --gpus "$4" --seed "$5" --seconds 40s -f "slow-rank:rank=$6,factor=$7,at=15s" \
		-f "slow-rank:rank=$8,factor=$9,at=15s" "${@:10}"
}
lines() { printf '%s\n' "$@"; }

two ranks fsdp 1 8 11 2 1.15 5 1.05 --jitter 1
expect_same "two ranks of a host" "$(named ranks)" "$(lines "slow_rank 2" "slow_rank 5")"
expect_ok "the title says what hides it" grep -q '"straggler: rank 5 on node0000, hidden by rank 2 (would cost' "$tap_scratch/named.json"
expect_ok "nobody waits for it so far" python3 -c 'import json, sys
second = json.load(open(sys.argv[1]))["verdicts"][1]
sys.exit(second["victims"] or second["gpu_hours"] or second["confidence"] > 0.9)' "$tap_scratch/named.json"
two ranks ddp 4 4 12 9 1.6 2 1.3
expect_same "ranks of two hosts" "$(named ranks)" "$(lines "slow_rank 9" "slow_rank 2")"
two ranks loop 8 2 13 7 1.15 12 1.3 --jitter 2
expect_same "the more expensive one first" "$(named ranks)" "$(lines "slow_rank 12" "slow_rank 7")"
two ranks fsdp 2 8 14 3 3 12 1.15 --jitter 1
expect_same "one that hardly shows is a note" "$(found ranks)" "$(lines "slow_rank 3" "slow_rank 12")"
two ranks moe 1 8 15 6 1.3 1 1.15
expect_same "experts: by their time outside of communication" "$(named ranks)" "$(lines "slow_rank 6" "slow_rank 1")"
two ranks fsdp 1 8 11 2 1.15 5 1.05 --jitter 1
"$ringside" report --all "$tap_scratch/ranks" >"$tap_scratch/report"
expect_ok "the report has both" grep -q "straggler: rank 5 on node0000, hidden by a later one" "$tap_scratch/report"
for seed in 21 22 23 24; do
	simulate alone -w fsdp --nodes 2 --gpus 4 --seed "$seed" --seconds 40s --jitter "$((seed % 5))" --noise gpus:percent=1.5 \
		-f slow-rank:rank=5,factor=1.6,at=15s
	expect_same "GPUs that differ a little are not hidden stragglers: seed $seed" "$(found alone)" "slow_rank 5"
done
host=()
for rank in 4 5 6 7; do host+=(-f "slow-rank:rank=$rank,factor=1.1,at=15s"); done
simulate host -w fsdp --nodes 4 --gpus 4 --seed 31 --seconds 40s "${host[@]}" -f slow-rank:rank=6,factor=1.12,at=15s
expect_same "a host is not hidden by the last of its ranks" "$(found host)" "slow_host @node0001"
simulate pair -w fsdp --nodes 2 --gpus 1 --seed 32 --seconds 40s -f slow-rank:rank=1,factor=1.6,at=15s
expect_same "of two ranks one is slow" "$(named pair)" "slow_rank 1"
expect_ok "a caveat says that the other one is not judged" grep -q "too few other ranks" <(value missing)

# ---- a straggler and slow transfers: waiting is not part of their time, so it does not explain them ---
simulate nvlink -w fsdp --nodes 1 --gpus 8 --seed 41 --seconds 40s -f slow-rank:rank=1,factor=1.3,at=15s \
	-f slow-nvlink:node=0,factor=6,at=15s
expect_same "a straggler and NVLink" "$(named nvlink)" "$(lines "slow_rank 1" "slow_nvlink @node0000")"
expect_ok "which may have one cause" grep -q "A throttled GPU computes and copies more slowly" "$tap_scratch/named.json"
simulate nvlink -w tp-pp --nodes 2 --gpus 8 --seed 42 --seconds 40s -f slow-rank:rank=12,factor=1.3,at=15s \
	-f slow-link:from=2,to=3,factor=16,at=15s
expect_same "in two hosts" "$(named nvlink | sort)" "$(lines "slow_nvlink @node0000" "slow_rank 12")"
simulate nvlink -w fsdp --nodes 1 --gpus 8 --seed 43 --seconds 40s -f slow-rank:rank=1,factor=1.6,at=15s
expect_same "a straggler alone" "$(found nvlink)" "slow_rank 1"

# ---- slow before a hang ------------------------------------------------------------------------------
simulate hang -w loop --nodes 4 --gpus 2 --rate 20 --seed 51 --seconds 60s -f degraded-network:factor=6,at=5s \
	-f mismatch:rank=3,what=datatype,at=20s
expect_same "a network that was slow before ranks disagreed" "$(named hang)" "$(lines "mismatch 3>0" "slow_network")"
expect_ok "changes since then are not judged" grep -q "changes in transfer speed since a mismatch" "$tap_scratch/named.json"
simulate hang -w loop --nodes 4 --gpus 2 --rate 20 --seed 52 --seconds 60s -f mismatch:rank=3,what=count,at=20s
expect_same "ranks that disagreed alone" "$(found hang)" "mismatch 3>0"
simulate hang -w fsdp --nodes 2 --gpus 8 --seed 53 --seconds 70s -f slow-rank:rank=10,factor=1.3,at=10s \
	-f gpu-stuck:rank=10,what=not-launched,at=40s
expect_same "a rank that was slow, and hung later" "$(named hang)" "$(lines "not_launched 10" "slow_rank 10")"
simulate hang -w ddp --nodes 2 --gpus 4 --seed 54 --seconds 60s -f slow-rank:rank=6,factor=1.6,at=8s \
	-f never-arrives:rank=1,at=30s
expect_same "another rank" "$(named hang)" "$(lines "never_issued 1" "slow_rank 6")"
simulate hang -w fsdp --nodes 2 --gpus 8 --seed 55 --seconds 70s -f gpu-stuck:rank=10,what=not-launched,at=40s
expect_same "a rank that hung and was not slow" "$(found hang)" "not_launched 10"
simulate hang -w fsdp --nodes 32 --gpus 4 --seed 25 --jitter 2 --clock-shift 1ms --noise thermal:percent=4,every=2s \
	--noise loader:every=10s,for=100ms -f mismatch:rank=36,what=datatype,at=10s --seconds 100s
expect_same "a warm host that is seldom the last is none" "$(named hang)" "mismatch 36>0"
tap_done
