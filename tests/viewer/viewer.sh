# shellcheck shell=bash
# For tests of `ringside trace`: source this instead of tap.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
# shellcheck disable=SC2034
ringside=$BUILD/ringside
export LC_ALL=C RINGSIDE_SHM=$tap_scratch/shm
mkdir -p "$RINGSIDE_SHM"

# A simulated job and its dump.
make_job() { # name option...
	local name=$1
	shift
	"$ringside" sim --offline --kernel -o "$tap_scratch/$name" "$@" >"$tap_scratch/$name.sim" 2>&1 || exit 1
	"$ringside" dump "$tap_scratch/$name" >"$tap_scratch/$name.dump" 2>/dev/null
}

# Writes a timeline; prints messages only if it fails.
trace() { # file path option...
	local file=$1
	shift
	"$ringside" trace -o "$file" "$@" 2>"$tap_scratch/trace.err" || {
		cat "$tap_scratch/trace.err"
		return 1
	}
}

# A value of the summary.
summary() { # key option...
	local key=$1
	shift
	"$ringside" trace --json "$@" 2>/dev/null |
		perl -MJSON::PP -e 'local $/; print decode_json(<STDIN>)->{$ARGV[0]}' "$key"
}
