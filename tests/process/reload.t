#!/usr/bin/env bash
# Communicators come and go, and the plugin is loaded and unloaded with them: nothing is lost, nothing grows.
. "$(dirname "$0")/process.sh"

churn() { # mode what count [release]
	fresh
	export RINGSIDE_MODE=$1
	shift
	"$BUILD/tests/process/process_churn" "$@" >"$said" 2>"$messages"
	read_facts
}
expect_no_growth() { # sentence [limit]
	local growth
	growth=$(truth growth_kib)
	# A thread's stack and malloc's own ways; a leak of 100 bytes per communicator would be more.
	# Sanitizers keep what was freed.
	if [ "${growth:-9999}" -lt "${2:-400}" ] || [ -n "${SANITIZED:-}" ]; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "grew by ${growth:-?} KiB"$'\n'"$(cat "$messages")"
	fi
	echo "# grew by ${growth:-?} KiB"
}

churn trace reload 1000
expect_facts "1,000 loads and unloads: one process, one file, every operation" \
	processes=1 file_count=1 comms=1000 operations=issued issued=issued lost=0 gaps=0 exact=1 closed=1
# Slots of the table of communicators are first used one by one, until all 512 were in use.
expect_no_growth "and no memory more" 800
expect_same "the plugin stays mapped" "$(truth mapped)" 1

for release in 2.28 2.23; do
	churn trace comms 5000 $release
	expect_facts "5,000 communicators of NCCL $release: every operation, every description" \
		comms=5000 operations=issued issued=issued recorded=issued totals=issued lost=0 gaps=0 exact=1 closed=1
	expect_no_growth "and no memory more"
done
size=$(fact region_bytes)

churn flight comms 5000
expect_facts "without a file the totals have them all" totals=issued lost=0 operations=issued
expect_no_growth "and no memory more"
expect_same "the region is as large as ever" "$(fact region_bytes)" "$size"
expect_same "there is one" "$(find "$RINGSIDE_SHM" -type f | wc -l)" 1
tap_done
