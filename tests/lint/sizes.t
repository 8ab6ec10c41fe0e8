#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "long functions are looked for" scripts/check-size
scripts/check-size | sed 's/^/# /'

function_of() { # lines
	echo "int long_one(int x)"
	echo "{"
	for ((i = 0; i < $1; i++)); do echo "	x++;"; done
	echo "}"
}
function_of 101 | sample src/common/long.c >/dev/null
expect_ok "101 lines are remarked upon" \
	bash -c "scripts/check-size '$tap_scratch' | grep -q 'long.c:2: remark: long_one is 101 lines'"
function_of 100 | sample src/common/long.c >/dev/null
expect_same "100 lines are fine" "$(scripts/check-size "$tap_scratch")" ""
tap_done
