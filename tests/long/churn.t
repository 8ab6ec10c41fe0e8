#!/usr/bin/env bash
# Communicators come and go for a long time: memory does not grow.
. "$(dirname "$0")/../process/process.sh"

for mode in flight trace; do
	for what in "comms 50000" "reload 10000"; do
		fresh
		# shellcheck disable=SC2086
		RINGSIDE_MODE=$mode "$BUILD/tests/process/process_churn" $what >"$said" 2>"$messages"
		read_facts
		expect_facts "mode $mode, $what: all is counted" totals=issued lost=0
		[ "$mode" = flight ] || expect_facts "mode $mode, $what: all is recorded" \
			operations=issued issued=issued exact=1 gaps=0 closed=1 comms="${what#* }"
		expect_same "mode $mode, $what: less than 1 MiB more" $(($(truth growth_kib) < 1024)) 1
		echo "# grew by $(truth growth_kib) KiB"
	done
done
tap_done
