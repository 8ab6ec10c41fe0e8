#!/usr/bin/env bash
# What the plugin must not disturb in a job: errno, signal masks, threads, open files, the log.
. "$(dirname "$0")/process.sh"

# Pass on the results of a program that prints TAP.
expect_all() { # sentence program...
	local sentence=$1 line
	shift
	while read -r line; do
		case $line in
		ok*) tap_line ok "$sentence: ${line#*- }" "" ;;
		not*) tap_line "not ok" "$sentence: ${line#*- }" "" ;;
		'#'*) echo "$line" ;;
		esac
	done < <("$@")
}
manners=$BUILD/tests/process/process_manners
mkdir -p "$RINGSIDE_DIR"
RINGSIDE_MODE=flight expect_all flight "$manners" on
RINGSIDE_MODE=trace expect_all trace "$manners" on

for switch in RINGSIDE_DISABLE=1 RINGSIDE_MODE=off; do
	fresh
	expect_all "$switch" env "$switch" "$manners" off
	expect_same "$switch: no file anywhere" "$(find "$RINGSIDE_SHM" "$RINGSIDE_DIR" -type f 2>/dev/null)" ""
done
tap_done
