#!/usr/bin/env bash
# The demo runs, ends by itself and finds both faults.
. "$(dirname "$0")/tap.sh"

expect_ok "the demo succeeds" sh -c "scripts/demo '$BUILD' >'$tap_scratch/said' 2>&1 || { cat '$tap_scratch/said'; exit 1; }"
expect_ok "all eight ranks were seen alive" sh -c "[ \$(grep -c ' alive ' '$tap_scratch/said') -eq 8 ]"
expect_ok "nothing is missing" grep -q "nothing is missing: 8 processes" "$tap_scratch/said"
# On a busy machine a job in real time says nothing about links; then the demo says so.
expect_named() { # sentence command...
	if grep -q '^Could not show which link is slow: .*too busy' "$tap_scratch/said"; then
		tap_line ok "$1 # SKIP the machine is too busy" ""
	else
		expect_ok "$@"
	fi
}
expect_named "it names the slow link" grep -q "the link out of rank 3 is slow" "$tap_scratch/said"
expect_ok "the report says that the recording is complete" grep -qE "^recording complete \(.* operations\)" "$tap_scratch/said"
expect_named "the doctor names the slow link" grep -qE "^warning .*slow link: .*rank 3 " "$tap_scratch/said"
expect_ok "the doctor names the stuck send among 512 ranks" grep -qE "^error .*rank 247 .*; 511 ranks blocked" "$tap_scratch/said"
expect_complaint "it fails without a build" "run .make. first" scripts/demo "$tap_scratch/nothing"
tap_done
