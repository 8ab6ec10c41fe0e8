#!/usr/bin/env bash
# The tests with real processes again, with job and plugin built with sanitizers.
. "$(dirname "$0")/../tap.sh"

# Leaks: the plugin keeps its memory until the process is gone, as it must.
export ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=1 SANITIZED=1 COMPLETENESS_OPERATIONS=60000
# TSan does not support threads after a fork.
declare -A tests=([asan]="completeness ending kill reload fork fork_trace manners settings places"
	[tsan]="completeness ending reload manners")

passes() { # engine test
	local output
	output=$(BUILD="$BUILD/$1" "tests/process/$2.t" 2>&1) && ! grep -q '^not ok' <<<"$output" && return
	printf '%s\n' "$output" | grep -v '^ok' | head -n 200
	return 1
}
for engine in asan tsan; do
	for test in ${tests[$engine]}; do
		expect_ok "$test under $engine" passes $engine "$test"
	done
done
tap_done
