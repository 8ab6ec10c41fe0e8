# shellcheck shell=bash
# For tests that follow simulated jobs: source this instead of tap.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
ringside=$BUILD/ringside
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -O2 -o "$tap_scratch/watch_notices" tests/watch/watch_notices.c \
	"$BUILD/libringside.a" -lzstd -lz -lpthread -ldl -lm || exit 1
unset RINGSIDE_DIR RINGSIDE_MODE RINGSIDE_EVENTS RINGSIDE_DISABLE RANK WORLD_SIZE LOCAL_RANK

# Run a job and follow it, in the background, until all wanted notices came: lines, with * for what may differ. The
# notices are in NAME.out, the output of the job in NAME.job.
follow() { # name limit_ms [wanted...] -- option...
	local name=$1 limit=$2 wanted=()
	shift 2
	while [ "$1" != -- ]; do
		wanted+=("$1")
		shift
	done
	shift
	mkdir "$tap_scratch/$name"
	(
		export RINGSIDE_SHM=$tap_scratch/$name RINGSIDE_JOB=$name
		"$ringside" sim --kernel --processes -m flight "$@" >"$tap_scratch/$name.job" 2>&1 &
		job=$!
		"$tap_scratch/watch_notices" "$tap_scratch/$name" "$name" "$limit" "${wanted[@]}" >"$tap_scratch/$name.out" 2>&1
		# The first process of the job turns this into an orderly end.
		kill "$job" 2>/dev/null
		wait "$job"
	) &
}

# The notices.
noticed() { # name
	sed '/^operations/d' "$tap_scratch/$1.out"
}
