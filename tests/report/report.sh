# shellcheck shell=bash
# For tests of the report: source this. Simulated jobs are deterministic.

. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
# shellcheck disable=SC2034
expected_dir=$PWD/tests/report

# Simulates a job into its own directory.
simulate() { # name option...
	local name=$1
	shift
	"$ringside" sim --offline --kernel -o "$tap_scratch/$name" "$@" >"$tap_scratch/sim.out" 2>&1 || {
		cat "$tap_scratch/sim.out" >&2
		exit 1
	}
}

# Four ranks with all, some and no calls timed: see sampled_trace.c.
make_sampled() {
	local mode
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -O1 -o "$tap_scratch/sampled_trace" tests/report/sampled_trace.c \
		"$BUILD/libringside.a" -lzstd -lz -lm || exit 1
	for mode in all sampled none; do
		mkdir -p "$tap_scratch/$mode"
		"$tap_scratch/sampled_trace" "$tap_scratch/$mode" "$mode" || exit 1
	done
}
