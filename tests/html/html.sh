# shellcheck shell=bash
# For tests of the HTML report in a real browser: source this after tests/tap.sh.

# Chromium without windows draws the same pages, and starts in half the time.
CHROMIUM=$(command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || true)
export CHROMIUM

# Skip the test on machines without a browser; make check installs what is needed.
html_needs() {
	command -v node >/dev/null || tap_skip_all "node is not installed"
	[ -n "$CHROMIUM" ] || tap_skip_all "there is no chromium-headless-shell (scripts/install-deps check)"
	[ -d npm/node_modules/playwright-core ] ||
		tap_skip_all "npm/node_modules/playwright-core is missing: run scripts/install-npm check"
	[ -d npm/node_modules/uplot ] ||
		tap_skip_all "npm/node_modules/uplot is missing: run scripts/install-npm build"
}

# A job with a temporary straggler, then a slow network.
html_job() { # directory
	"$BUILD/ringside" sim --offline --kernel --nodes 2 --gpus 4 -w loop --sizes 1KiB,1MiB,64MiB --rate 60 \
		-f slow-rank:rank=5,factor=3,at=2s,until=6s -f degraded-network:factor=3,at=9s -o "$1" >/dev/null
}

# Writes the page and the JSON of a recording.
html_page() { # directory [option...]
	local directory=$1
	shift
	"$BUILD/ringside" report "$directory" "$@" --html "$directory.html" >/dev/null
	"$BUILD/ringside" report "$directory" "$@" --json >"$directory.json"
	if ! [ -s "$directory.html" ] || ! [ -s "$directory.json" ]; then
		echo "Bail out! ringside report wrote no page or no JSON of $directory"
		exit 1
	fi
}

# Runs a script that drives the browser and prints TAP.
html_run() { # script argument...
	node "tests/html/$1" "${@:2}"
	exit
}
