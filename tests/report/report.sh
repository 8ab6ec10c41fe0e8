# shellcheck shell=bash
# For tests of the report: source this. Simulated jobs are the same bytes on every machine.

. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
# shellcheck disable=SC2034
expected_dir=$PWD/tests/report

# A simulated job in a directory of its own.
simulate() { # name option...
	local name=$1
	shift
	"$ringside" sim --offline --kernel -o "$tap_scratch/$name" "$@" >"$tap_scratch/sim.out" 2>&1 || {
		cat "$tap_scratch/sim.out" >&2
		exit 1
	}
}
