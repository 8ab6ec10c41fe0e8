#!/usr/bin/env bash
# Recorded plus counted as lost equals issued, exactly. See docs/BLIND-SPOTS.md.
. "$(dirname "$0")/process.sh"
# With kernel events every operation is seen to end; without, the last ones stay in flight.
export RINGSIDE_EVENTS=kernel

count=${COMPLETENESS_OPERATIONS:-300000}
export RINGSIDE_MODE=trace

RINGSIDE_BUFFER=128MiB run_and_read ops="$count"
expect_facts "with a large buffer everything is in the file" \
	operations=issued in_trace=issued trace_records=issued recorded=issued lost=0 gaps=0 twice=0 disorder=0 \
	exact=1 closed=1 life=ended totals=issued
expect_same "all of $count" "$(truth issued)" "$count"
echo "# $(truth rate) operations a second, $(truth kernel_events) kernel channels, timed $(fact timed)"

seconds=${COMPLETENESS_SECONDS:-1}
RINGSIDE_BUFFER=128MiB run_and_read ops=$((200000 * seconds)) pace=200000 ahead=64
expect_facts "asked for 200,000 operations a second for $seconds s: everything is in the file" \
	operations=issued in_trace=issued trace_records=issued recorded=issued lost=0 gaps=0 exact=1 closed=1
echo "# $(truth rate) operations a second, timed $(fact timed)"

run_and_read ops="$count"
expect_balance "with the default buffer, too, or it is counted"
expect_facts "and the file is closed" closed=1
echo "# lost $(fact lost)"

run_and_read ops=30000 nodes=2
expect_facts "with a network" operations=issued lost=0 gaps=0 exact=1

run_and_read ops=5000 threads=4 comms=3
expect_balance "four user threads with three communicators each"
expect_facts "twelve communicators, none with a gap that is not counted" comms=12 closed=1

for release in 2.23 2.24 2.26 2.27 2.29 2.31; do
	run_and_read ops=10000 nodes=2 release=$release channels=2
	expect_facts "NCCL $release" operations=issued lost=0 gaps=0 exact=1 closed=1
done

RINGSIDE_BUFFER=1MiB run_and_read ops=30000 disk=frozen
expect_balance "the disk is frozen while operations are issued: nothing blocks, losses are counted"
expect_facts "and the file is closed once it thaws" closed=1 lost_ring_overrun\>0

RINGSIDE_BUFFER=1MiB run_and_read ops=30000 disk=frozen disk_room=30000
expect_balance "frozen later, with records in hand"
expect_facts "and closed" closed=1 in_trace\>0

RINGSIDE_BUFFER=1MiB run_and_read ops=30000 disk=stuck end=exit
expect_balance "the disk never answers: the job ends, losses are counted"
RINGSIDE_BUFFER=1MiB run_and_read ops=30000 disk=stuck disk_room=20000 end=exit
expect_balance "never again, with records in hand"
expect_facts "the region has the last ones" in_ring\>0 life=ended

fresh
mkfifo "$tap_scratch/word"
: >"$said" # or the job before would still be heard
RINGSIDE_BUFFER=1MiB run_job ops=3000 disk=stuck_last end=exit <"$tap_scratch/word" &
stuck=$!
exec 8>"$tap_scratch/word"
are_all_written() {
	read_facts
	[ -n "$(truth issued)" ] && [ "$(fact in_trace)" = "$(truth issued)" ]
}
until_ok are_all_written
exec 8>&-
wait $stuck
expect_same "the disk gets stuck in the very last write: the job still ends" "$?" 0
read_facts
expect_facts "and everything but the closing record is in the file" in_trace=issued lost=0 closed=0 life=ended

RINGSIDE_MODE=full RINGSIDE_BUFFER=1MiB run_and_read ops=30000 disk=stuck disk_room=100000 end=exit
expect_balance "the same in mode full"

RINGSIDE_QUOTA=1MiB run_and_read ops=250000
expect_balance "the quota is reached: losses are counted"
expect_facts "and the file still ends with its closing record" closed=1 lost_quota\>0 in_trace\>0
expect_same "within the quota" \
	"$(find "$RINGSIDE_DIR" -name '*.ringside' -size +1048576c)" ""

run_and_read ops=60000 disk=full disk_room=300000
expect_balance "the disk is full: losses are counted"
expect_facts "and the file still ends with its closing record" closed=1 lost_no_space\>0 in_trace\>0

run_and_read ops=60000 disk=broken disk_room=300000
expect_balance "the disk is broken: losses are counted"
expect_facts "and everything before is readable" lost_write_error\>0 in_trace\>0 troubles=0

run_and_read ops=15000 disk_slices=1000
expect_facts "short and interrupted writes lose nothing" operations=issued lost=0 exact=1 closed=1

# Smaller than what the region holds, so that what is lost at the end can be read there, however late the disk is asked.
if mount_small 256k; then
	fresh
	RINGSIDE_DIR=$mounted run_job ops=250000
	RINGSIDE_DIR=$mounted read_facts
	expect_balance "a real disk is full: losses are counted"
	expect_facts "and the file still ends with its closing record" closed=1 lost_no_space\>0 in_trace\>0
	# shellcheck disable=SC2016
	expect_same "verify: what is lost and not in the region either is not readable, the rest is" \
		"$("$BUILD/ringside" verify --json "$mounted" 2>/dev/null | perl -MJSON::PP -0777 -ne '
			my ($p) = @{decode_json($_)->{processes}};
			print $p->{recovered_operations} > 0 ? "some, " : "none, ",
				$p->{readable} + $p->{lost_operations} - $p->{recovered_operations} - $p->{issued}')" "some, 0"
else
	expect_skip "a real disk is full" "needs root, to mount a small one"
fi

for mode in flight profile; do
	RINGSIDE_MODE=$mode run_and_read ops=30000
	expect_facts "mode $mode counts all" issued=issued recorded=issued totals=issued missing=0 lost=0 file_count=0
done
tap_done
