#!/usr/bin/env bash
# Results of a real GPU are kept as JSON; the text and pages beside it are generated from it.
# REWRITE=1 updates them.
. "$(dirname "$0")/../tap.sh"

# The command, the name, the extensions that are kept.
check() {
	local command=$1 name=$2 ending made
	shift 2
	for ending; do
		made=$tap_scratch/$name.$ending
		"$BUILD/ringside" bench "$command" --from "docs/results/$name.json" -o "$made" >"$tap_scratch/output"
		[ -z "${REWRITE:-}" ] || cp "$made" "docs/results/$name.$ending"
		expect_ok "$name.$ending matches its JSON" cmp "$made" "docs/results/$name.$ending"
	done
}

check profilers profilers-h200 txt html
check profilers profilers-others-h200 txt
check profilers profilers-training-h200 txt html
check profilers profilers-late-h200 txt
check health bench-health-h200 txt
check crossover crossover-h200 txt html
tap_done
