#!/usr/bin/env bash
# Jobs with a fault, while they run: who is named, and for what.
. "$(dirname "$0")/watch.sh"

has() { # sentence name line
	if noticed "$2" | grep -cFx -- "$3" >/dev/null; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "wanted: $3"$'\n'"got: $(noticed "$2")"
	fi
}

follow slow 3000 straggler: --gpus 4 -w ddp --seconds 30s -f slow-rank:rank=2,factor=3
follow missing 3000 missing: --gpus 4 -w ddp --seconds 30s -f never-arrives:rank=3 --at 1s
follow mismatch 3000 mismatch: --gpus 4 -w ddp --seconds 30s -f mismatch:rank=1,what=function --at 1s
follow kill 3000 hang: --gpus 4 -w ddp --seconds 30s -f kill:rank=0 --at 1s
follow stuck 3000 hang: --nodes 2 --gpus 2 -w fsdp --seconds 30s -f stuck-send:rank=1 --at 1s
wait

has "a slow rank is named" slow "straggler: 3 ranks of world wait for rank 2: N % of the time"
has "a rank that never arrives" missing "missing: rank 3 has not called AllReduce N of world; 3 ranks wait"
has "a rank that calls another function" mismatch "mismatch: rank 1 disagrees with 3 ranks on collective N of world: function"
expect_same "nobody is said to be missing there" "$(noticed mismatch | grep -c '^missing')" 0
has "a rank that was killed" kill "dead: rank 0 died; 3 ranks of world are left"
expect_same "sends that are stuck make a hang" \
	"$(noticed stuck | sed -n 's/^\(hang: the network does not complete what rank 1 sends\).*/\1/p')" \
	"hang: the network does not complete what rank 1 sends"
tap_done
