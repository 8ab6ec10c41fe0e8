#!/usr/bin/env bash
# A recording of which a large part is missing is no healthy job, and what could not be read is named.
. "$(dirname "${BASH_SOURCE[0]}")/slowness.sh"

without() { # name ranks
	local name=$1 rank

	shift
	for rank; do rm "$tap_scratch/$name/r$rank-"*; done
}
answer() { # name: exit code, and the first word
	"$ringside" doctor "$tap_scratch/$1" >"$tap_scratch/said"
	echo "$? $(sed -n '/^$/{n;s/  .*//p;q}' "$tap_scratch/said")"
}

simulate most --nodes 4 --gpus 4 -w fsdp --seconds 20s --seed 5
without most 0 3 5 6 9 10 11 13 14
expect_same "nine of 16 ranks are missing: not judged" "$(answer most)" "3 not judged"
expect_ok "a warning says so" grep -q "^warning .*9 of 16 ranks are not visible" "$tap_scratch/said"
"$ringside" report "$tap_scratch/most" >"$tap_scratch/said"
expect_ok "the report does not call it complete" grep -q "^recordings of 7 of 16 ranks complete" "$tap_scratch/said"
simulate few --nodes 4 --gpus 4 -w fsdp --seconds 20s --seed 6
without few 2 7
expect_same "two of 16: a note" "$(answer few)" "0 no hang"
simulate third --nodes 3 --gpus 1 -w ddp --seconds 20s --seed 7 --release 2.26
without third 1
expect_same "one of three: a note" "$(answer third | cut -c1)" "0"
without third 2
expect_same "two of three: not judged" "$(answer third)" "3 not judged"
simulate hung --nodes 2 --gpus 4 -w ddp --seconds 60s --seed 8 -f never-arrives:rank=1,at=20s
without hung 2 4 6 7
expect_same "a hang is still found" "$(answer hung)" "1 error"

simulate empty --nodes 2 --gpus 2 -w loop --seconds 10s --seed 9
: >"$(echo "$tap_scratch"/empty/r2-*)"
expect_same "an empty trace" "$(answer empty)" "3 not judged"
expect_ok "is named" grep -q "r2-.*: empty: copied" <(tr -s '\n ' ' ' <"$tap_scratch/said")
simulate killed --nodes 140 --gpus 8 -w loop --rate 1 --seconds 30s --seed 10 -f never-arrives:rank=77,at=5s
damaged=$(echo "$tap_scratch"/killed/r999-*)
printf 'xxxxxxxxxxxxxxxx' | dd of="$damaged" bs=1 seek=1000 conv=notrunc status=none
expect_same "one damaged file among 1,120 truncated ones" "$(answer killed)" "1 error"
expect_ok "is named" grep -q "1 recording file could not be fully read" "$tap_scratch/said"
"$ringside" report --all "$tap_scratch/killed" >"$tap_scratch/said" 2>/dev/null
expect_ok "truncated ones are no files with errors" grep -q "1 file with errors" <(tr -s '\n ' ' ' <"$tap_scratch/said")
tap_done
