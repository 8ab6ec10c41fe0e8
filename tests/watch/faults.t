#!/usr/bin/env bash
# Running jobs with a fault: which rank is named, and for what.
. "$(dirname "$0")/watch.sh"

has() { # sentence name wanted
	local line

	while read -r line; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $line != $3 ]] || break
	done < <(noticed "$2")
	# shellcheck disable=SC2053
	if [[ $line == $3 ]]; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "wanted: $3"$'\n'"got: $(noticed "$2")"
	fi
}

slow="straggler: 3 ranks of world wait for rank 2: [0-9]*% of the time"
missing="missing: rank 3 has not called AllReduce #[0-9]* of world; 3 ranks wait"
mismatch="mismatch: rank 1 disagrees with 3 ranks on collective #[0-9]* of world: different function"
dead="dead: rank 0 died; 3 ranks of world are left"
hang="hang: rank 0 is dead; 3 ranks wait in AllReduce #[0-9]* of world"
stuck="hang: network send* stuck: *rank 1*"

follow slow 3000 "$slow" -- --gpus 4 -w ddp --seconds 30s -f slow-rank:rank=2,factor=3
follow missing 3000 "$missing" -- --gpus 4 -w ddp --seconds 30s -f never-arrives:rank=3 --at 1s
follow mismatch 3000 "$mismatch" -- --gpus 4 -w ddp --seconds 30s -f mismatch:rank=1,what=function --at 1s
follow kill 3000 "$dead" "$hang" -- --gpus 4 -w ddp --seconds 30s -f kill:rank=0 --at 1s
follow stuck 3000 "$stuck" -- --nodes 2 --gpus 2 -w fsdp --seconds 30s -f stuck-send:rank=1 --at 1s
wait

has "a slow rank is named" slow "$slow"
has "a rank that never arrives" missing "$missing"
has "a rank that calls another function" mismatch "$mismatch"
# On a busy machine ranks may be late elsewhere.
number=$(noticed mismatch | sed -n 's/^mismatch: .* on collective #\([0-9]*\) of world: .*/\1/p' | head -n 1)
expect_same "no rank is reported missing there" "$(noticed mismatch | grep -c "^missing: .* #${number:-.*} of world; ")" 0
has "a rank that was killed" kill "$dead"
has "the others hang because of it" kill "$hang"
has "sends that are stuck make a hang" stuck "$stuck"
tap_done
