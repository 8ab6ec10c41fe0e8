#!/usr/bin/env bash
# What a real GPU showed is kept as JSON; the text and the pages beside it are what the tool makes of it.
# REWRITE=1 makes them anew.
. "$(dirname "$0")/../tap.sh"

# What made it, its name, endings that are kept.
check() {
	local command=$1 name=$2 ending made
	shift 2
	for ending; do
		made=$tap_scratch/$name.$ending
		"$BUILD/ringside" bench "$command" --from "docs/results/$name.json" -o "$made" >"$tap_scratch/output"
		[ -z "${REWRITE:-}" ] || cp "$made" "docs/results/$name.$ending"
		expect_ok "$name.$ending is what the tool makes of its JSON" cmp "$made" "docs/results/$name.$ending"
	done
}

check profilers profilers-h200 txt html
check profilers profilers-others-h200 txt
check profilers profilers-training-h200 txt html
check profilers profilers-late-h200 txt
check health bench-health-h200 txt
check crossover crossover-h200 txt html
tap_done
