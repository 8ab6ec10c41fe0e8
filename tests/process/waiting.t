#!/usr/bin/env bash
# Disks and group databases that do not answer, and a stderr that is not read: init does not wait for
# them. Whatever is dead here comes back after init or never, so a job that waited would hang and fail.
. "$(dirname "$0")/process.sh"

# ---- the trace file ----------------------------------------------------------------------------

export RINGSIDE_MODE=trace
fresh
run_job ops=1000 dead="$RINGSIDE_DIR"
expect_same "a trace directory that answers late: the job runs to its end" $? 0
read_facts
expect_facts "and the trace has everything" processes=1 mode=trace operations=issued in_trace=issued closed=1 exact=1 lost=0
expect_same "with nothing to say" "$(cat "$messages")" ""

fresh
run_job ops=1000 dead="$RINGSIDE_DIR" until=never end=exit
expect_same "one that never answers: the job runs to its end" $? 0
read_facts
expect_facts "and the region has everything" processes=1 operations=issued in_trace=0 missing=0

fresh
RINGSIDE_DIR=/proc/no/such run_job ops=1000 dead=/proc/no
expect_same "one that answers late, with an error: the job runs to its end" $? 0
read_facts
expect_message "it is reported" "cannot be written \\(No such file or directory\\); recording without a trace file"
expect_facts "it continues in mode flight, and the region has everything" processes=1 region_mode=1 operations=issued lost=0 exact=1
expect_same "which says why" "$(fact message.1)" "$(cat "$messages")"

fresh
run_job ops=100 comms=16 threads=8 dead="$RINGSIDE_DIR" until=never end=exit
expect_same "many communicators do not wait either" "$?$(truth issued)" 012800

# ---- slots of communicators --------------------------------------------------------------------

fresh
timeout -k 5 120 "$BUILD/tests/process/process_churn" comms 1200 2.28 stuck >"$said" 2>"$messages"
expect_same "communicators beyond the 512 slots, none of them in the file: the job runs to its end" "$?$(truth made)" 01200
read_facts
# On a busy machine records leave the full buffer before the disk is given up: they are still in the ring.
expect_facts "and every operation is recorded" processes=1 operations=issued missing=0 "lost=$(fact recovered)"

# ---- NCCL Inspector's files --------------------------------------------------------------------

fresh
RINGSIDE_MODE=flight NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=0 \
	NCCL_INSPECTOR_DUMP_DIR=$tap_scratch/inspector run_job ops=1000 dead="$tap_scratch/inspector" until=never end=exit
expect_same "Inspector's directory never answers: the job runs to its end" $? 0
read_facts
expect_facts "and the region has everything" operations=issued

# ---- the region --------------------------------------------------------------------------------

fresh
# Not below /dev/shm, which always answers.
elsewhere=$(mktemp -d "$BUILD/waiting.XXXXXXXX")
RINGSIDE_SHM=$elsewhere run_job ops=1000 dead="$elsewhere" until=never
expect_same "shared memory that never answers: the job runs to its end" $? 0
rmdir "$elsewhere"
read_facts
expect_facts "the region is memory, and the trace has everything" region_kind=memfd operations=issued in_trace=issued
if grep -q "the file system does not answer" <<<"$(fact region_reason)"; then
	tap_line ok "and says why" ""
else
	tap_line "not ok" "and says why" "$(cat "$found")"
fi

# ---- groups ------------------------------------------------------------------------------------

fresh
RINGSIDE_GROUP=staff run_job ops=1000 dead_groups=1 until=never
expect_same "a group database that does not answer: the job runs to its end" $? 0
read_facts
expect_message "one line" "RINGSIDE_GROUP=staff is not a group that was found in time \\(use its number\\); using none"
expect_facts "all is recorded" operations=issued in_trace=issued

# ---- stderr ------------------------------------------------------------------------------------

# A full pipe that is open but not read.
with_full_stderr() { # command...
	perl -e '
		use Fcntl;
		pipe(my $read, my $write);
		my $flags = fcntl($write, F_GETFL, 0);
		fcntl($write, F_SETFL, $flags | O_NONBLOCK);
		1 while defined syswrite($write, "x" x 4096);
		1 while defined syswrite($write, "x");
		fcntl($write, F_SETFL, $flags);
		fcntl($read, F_SETFD, 0);
		open(STDERR, ">&", $write);
		exec @ARGV' "$@"
}
for setting in RINGSIDE_BUFFER=junk RINGSIDE_DIR=/proc/no/such; do
	fresh
	env "$setting" bash -c "$(declare -f with_full_stderr); with_full_stderr timeout -k 5 60 '$job' ops=1000" >"$said" 2>/dev/null
	expect_same "stderr is full, $setting: the job runs to its end" $? 0
	read_facts
	expect_facts "$setting: all is recorded" operations=issued
	if "$BUILD/ringside" verify "$RINGSIDE_SHM" 2>&1 | grep -q "message: ringside: .*\(junk\|cannot be written\)"; then
		tap_line ok "$setting: verify shows what could not be printed" ""
	else
		tap_line "not ok" "$setting: verify shows what could not be printed" "$("$BUILD/ringside" verify "$RINGSIDE_SHM" 2>&1)"
	fi
done
tap_done
