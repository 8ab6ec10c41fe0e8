#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "every function fits on a screen" scripts/check-size
scripts/check-size | grep remark | sed 's/^/# /'

function_of() { # lines
	echo "int long_one(int x)"
	echo "{"
	for ((i = 0; i < $1; i++)); do echo "	x++;"; done
	echo "}"
}
function_of 61 | sample src/base/long.c >/dev/null
expect_complaint "61 lines are too many" "long.c:2: long_one is 61 lines" scripts/check-size "$tap_scratch"
function_of 60 | sample src/base/long.c >/dev/null
expect_ok "60 lines are fine" scripts/check-size "$tap_scratch"
for ((i = 0; i < 601; i++)); do echo "int x$i;"; done | sample src/base/long.c >/dev/null
expect_ok "a long file does not fail" scripts/check-size "$tap_scratch"
expect_ok "a long file is remarked upon" \
	bash -c "scripts/check-size '$tap_scratch' | grep -q 'remark: 601 lines'"
tap_done
