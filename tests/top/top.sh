# shellcheck shell=bash
# For tests of `ringside top` in a real terminal: source this instead of tap.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"

# Skip where the tools for these tests are missing.
top_needs() {
	[ -x "$BUILD/ringside-top" ] || tap_skip_all "ringside-top was not built (no ncurses)"
	command -v node >/dev/null || tap_skip_all "node is not installed"
	command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
	[ -d npm/node_modules/@xterm/headless ] ||
		tap_skip_all "npm/node_modules/@xterm/headless is not installed: run scripts/install-npm check"
	export RINGSIDE_SHM=$tap_scratch/shm
	mkdir -p "$RINGSIDE_SHM"
	unset COLUMNS LINES NO_COLOR
}

# Runs a job in the background until the test ends.
top_job() { # option...
	"$BUILD/ringside" sim --kernel "$@" >"$tap_scratch/sim" 2>&1 &
	top_job_pid=$!
	trap 'kill "$top_job_pid" 2>/dev/null; wait "$top_job_pid" 2>/dev/null; rm -rf "$tap_scratch"' EXIT
}

# The rest of the test is a script that drives the terminal and prints TAP.
top_run() { # script argument...
	node "tests/top/$1" "$BUILD/ringside" "${@:2}"
	exit
}
