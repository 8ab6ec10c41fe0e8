# shellcheck shell=bash
# For tests of the HTML report in a real browser: source this after tests/tap.sh.

CHROMIUM=$(command -v chromium || command -v chromium-browser || true)
export CHROMIUM

# Not every machine has what these tests need; those that install it (make check) do.
html_needs() {
	command -v node >/dev/null || tap_skip_all "node is not here"
	[ -n "$CHROMIUM" ] || tap_skip_all "chromium is not here"
	[ -d npm/node_modules/playwright-core ] ||
		tap_skip_all "npm/node_modules/playwright-core is not here: run scripts/install-npm check"
	[ -d npm/node_modules/uplot ] ||
		tap_skip_all "npm/node_modules/uplot is not here: run scripts/install-npm build"
}

# A job with something to see: a rank that is late for a while, then a network that becomes slow.
html_job() { # directory
	"$BUILD/ringside" sim --offline --kernel --nodes 2 --gpus 4 -w loop --sizes 1KiB,1MiB,64MiB --rate 60 \
		-f slow-rank:rank=5,factor=3,at=2s,until=6s -f degraded-network:factor=3,at=9s -o "$1" >/dev/null
}

# The page and the JSON of a recording, beside it.
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

# The rest of the test is a script that drives the browser and prints TAP.
html_run() { # script argument...
	node "tests/html/$1" "${@:2}"
	exit
}
