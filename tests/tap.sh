# shellcheck shell=bash
# For tests that are shell scripts: source this, state expectations, end with tap_done.
# A test runs in the root of the tree and finds the build in $BUILD.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
: "${BUILD:=$PWD/build}"
# These run beside tests that must not be slowed down: see testrules.yml.
case $0 in
tests/lint/* | tests/fuzz_quick.t | tests/export/parquet.t | tests/deploy/rules.t | tests/doctor/slow.t) renice -n 19 $$ >/dev/null ;;
esac
tap_count=0
tap_failed=0
# The same length as mktemp's own in /tmp, because output is wrapped depending on the length of paths.
tap_scratch=$(mktemp -d "$([ "${TMPDIR:-/tmp}" = /dev/shm ] && echo /dev/shm/r.XXXXXXXX || echo "${TMPDIR:-/tmp}/tmp.XXXXXXXXXX")")
trap 'rm -rf "$tap_scratch"' EXIT

# Print "ok" or "not ok", followed by the output of the command as a comment.
tap_line() { # ok|"not ok" sentence output
	tap_count=$((tap_count + 1))
	echo "$1 $tap_count - $2"
	if [ "$1" != ok ]; then
		tap_failed=$((tap_failed + 1))
		[ -z "$3" ] || printf '%s\n' "$3" | sed 's/^/#   /'
	fi
}

# The command succeeds.
expect_ok() { # sentence command...
	local sentence=$1 output
	shift
	if output=$("$@" 2>&1); then
		tap_line ok "$sentence" ""
	else
		tap_line "not ok" "$sentence" "$output"
	fi
}

# The command fails with output that matches the pattern.
expect_complaint() { # sentence pattern command...
	local sentence=$1 pattern=$2 output
	shift 2
	if output=$("$@" 2>&1); then
		tap_line "not ok" "$sentence" "it passed, wanted a complaint like: $pattern"
	elif ! grep -qE -- "$pattern" <<<"$output"; then
		tap_line "not ok" "$sentence" "wanted: $pattern"$'\n'"got: $output"
	else
		tap_line ok "$sentence" ""
	fi
}

# Two texts are the same.
expect_same() { # sentence got wanted
	if [ "$2" = "$3" ]; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "$(diff -u <(printf '%s\n' "$3") <(printf '%s\n' "$2") | tail -n +3)"
	fi
}

# Wait until a command succeeds. Five minutes are generous for a busy machine. The longer it takes, the more rarely the command
# runs: one that asks a server costs more than what it waits for.
until_ok() { # command...
	local end=$((SECONDS + 300)) ms=20
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep "$(printf '0.%03d' "$ms")"
		ms=$((ms < 400 ? ms + ms / 4 : 500))
	done
}

# A process has begun to write into a directory: a file that has no name yet, or a temporary one.
is_writing() { # pid directory
	compgen -G "$2/.ringside-*" >/dev/null || [ -n "$(find "/proc/$1/fd" -lname "$2/*" 2>/dev/null)" ]
}

# Write standard input to a file below the scratch directory, and print its path.
sample() { # path
	mkdir -p "$(dirname "$tap_scratch/$1")"
	cat >"$tap_scratch/$1"
	echo "$tap_scratch/$1"
}

# An installation command of the README or of a guide, as written there. Which test runs which: tests/dist/documented.t.
as_written() { # pattern
	local found
	found=$(scripts/installation-commands | cut -f 2 | grep -E -- "$1" | sort -u)
	[ -n "$found" ] && [ "$(wc -l <<<"$found")" -eq 1 ] || found="false # not one command of the documents is like $1: $found"
	echo "$found"
}

tap_skip_all() { # why
	echo "1..0 # SKIP $1"
	exit 0
}

tap_done() {
	echo "1..$tap_count"
	[ "$tap_failed" -eq 0 ]
	exit
}
