# shellcheck shell=bash
# For tests of the live page in a real browser: source this after tests/tap.sh and tests/html/html.sh.

# The page's files and the scenes, as an agent would serve them.
page_scenes() { # directory
	mkdir -p "$1"
	if ! "$BUILD/tests/unit/output" test_live_json "$1" || ! "$BUILD/tests/unit/output" test_live_page "$1"; then
		echo "Bail out! test_live_json or test_live_page wrote nothing"
		exit 1
	fi
}

# The rest of the test is a script that drives the browser and prints TAP.
page_run() { # script argument...
	node "tests/page/$1" "${@:2}"
	exit
}
