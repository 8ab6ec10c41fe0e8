# shellcheck shell=bash
# For tests of src/analysis on simulated jobs: source this instead of tap.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
ringside=$BUILD/ringside
figures=$tap_scratch/figures
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -O2 -o "$figures" tests/timeline/figures.c \
	"$BUILD/libringside.a" -lzstd -lz -lpthread -ldl -lm || exit 1

# A simulated job in the scratch directory; offline: only files are written.
simulate() { # name option...
	local name=$1
	shift
	rm -rf "${tap_scratch:?}/$name"
	"$ringside" sim --offline --kernel -o "$tap_scratch/$name" "$@" >/dev/null
}

# The stragglers of a job: "slow_rank 5", "slow_link 7", "network -"; nothing if there are none.
named() { # name
	"$figures" "$tap_scratch/$1" brief |
		sed -n 's/^{"straggler":"\([a-z_]*\)".*"rank":"\([^"]*\)".*/\1 \2/p'
}
