#!/usr/bin/env bash
# Processes of several ranks, whose GPUs NCCL does not show: the right rank is named, or who it can be.
. "$(dirname "$0")/doctor.sh"
export LC_ALL=C RINGSIDE_BUFFER=1MiB
command -v python3 >/dev/null || tap_skip_all "there is no python3"

begin() { # name option...
	export RINGSIDE_SHM=$tap_scratch/$1 RINGSIDE_JOB=$1
	shift
	mkdir -p "$RINGSIDE_SHM"
	"$ringside" sim --seconds 600s "$@" >"$tap_scratch/sim" 2>&1 &
	sim=$!
	started+=("$sim")
}
# The rank, or what is known of it.
named() {
	diagnose --hang 4s
	python3 -c '
import json, sys
found = [v for v in json.load(sys.stdin)["verdicts"] if v["severity"] == "error"]
print("%s %s" % (found[0]["class"], found[0]["rank_label"]) if found else "none")' <"$tap_scratch/doctor.json" 2>/dev/null
}
names() { named | grep -q '^[a-z_]* [0-9]'; }
check() { # what wanted option...
	begin "${1// /-}" "${@:3}"
	until_ok names
	expect_same "$1" "$(named)" "$2"
	kill "$sim"
	wait "$sim" 2>/dev/null
}
# Threads create their communicators in different orders.
for seed in 51 52 53; do
	check "a process per node $seed" "mismatch 6" --node-processes --nodes 2 --gpus 4 -w moe --seed $seed -f mismatch:rank=6 --at 2s
done
check "one process" "mismatch 5" --threads --nodes 1 --gpus 8 -w moe -f mismatch:rank=5 --at 2s
check "groups of all ranks of a process" "never_issued 5" --node-processes --nodes 2 --gpus 4 -w tp-pp --tp 4 -f never-arrives:rank=5 --at 2s

# Ranks 6 and 7 are ranks 3 of pp-0 and pp-1, and NCCL does not show which is which.
begin groups --node-processes --nodes 2 --gpus 4 -w tp-pp --tp 2 -f never-arrives:rank=6 --at 2s
until_ok names
verdict=$(named)
kill "$sim"
expect_ok "no rank is guessed: $verdict" grep -qE "^[a-z_]+ (6|0 of tp-3|3 of pp-0)$" <<<"$verdict"
expect_same "a communicator is named once" "$(grep -oE ' of ([a-z]+-[0-9]+) of \1' "$tap_scratch/doctor.json")" ""
tap_done
