#!/usr/bin/env bash
# Every setting, valid and invalid: an invalid one costs one clear line and falls back to the default.
. "$(dirname "$0")/process.sh"

# A job with these variables ends well, prints one line that matches the pattern, and has these facts.
expect_wrong() { # pattern variable=value fact=value...
	local pattern=$1 setting=$2
	shift 2
	fresh
	env "$setting" "$job" ops=100 >"$said" 2>"$messages"
	expect_same "${setting:0:60}: the job runs to its end" $? 0
	read_facts
	expect_message "${setting:0:60}: one line" "^ringside: ${setting%%=*}=.* is not $pattern"
	[ $# -eq 0 ] || expect_facts "${setting:0:60}: the default" "$@"
}
expect_right() { # variable=value fact=value...
	local setting=$1
	shift
	fresh
	env "$setting" "$job" ops=100 >"$said" 2>"$messages"
	expect_same "$setting: no message" "$?$(cat "$messages")" 0
	read_facts
	expect_facts "$setting" "$@"
}
x600=$(printf 'x%.0s' {1..600})

expect_right RINGSIDE_MODE= mode=flight buffer=8388608 quota=2147483648 job=local rank=x trace=
for mode in flight profile trace full; do
	expect_right RINGSIDE_MODE=$mode mode=$mode
	expect_same "mode $mode: at most 16 MiB" $(($(fact region_bytes) <= 16 << 20)) 1
	echo "# mode $mode: $(fact region_bytes) bytes"
done
expect_right RINGSIDE_MODE=off processes=0
expect_wrong "flight, profile, trace, full or off; using flight" RINGSIDE_MODE=tracing mode=flight
expect_wrong "flight, profile, trace, full or off; using flight" RINGSIDE_MODE=TRACE mode=flight

expect_right RINGSIDE_BUFFER=64KiB buffer=65536 operations=100
expect_right RINGSIDE_BUFFER=1M buffer=1048576
expect_right RINGSIDE_BUFFER=100kB buffer=100000
for wrong in 63KiB 2GiB lots -1 8MiBs 99999999999999999999 "8 MiB"; do
	expect_wrong "a size from 64KiB to 1GiB; using 8MiB" "RINGSIDE_BUFFER=$wrong" buffer=8388608
done

expect_right RINGSIDE_QUOTA=none quota=0
expect_right RINGSIDE_HEARTBEAT=0 heartbeat_ns=0
expect_right RINGSIDE_HEARTBEAT=30 heartbeat_ns=30000000000
expect_wrong "a number of seconds up to 3600; using 1" RINGSIDE_HEARTBEAT=often heartbeat_ns=1000000000
expect_right RINGSIDE_QUOTA=1MiB quota=1048576
for wrong in 0 1023KiB unlimited 16EiB; do
	expect_wrong "a size of at least 1MiB, or none; using 2GiB" "RINGSIDE_QUOTA=$wrong" quota=2147483648
done

kernel=64 steps=16 proxy=8 launch=2048
bits() { # the bits of the mask among these
	echo $(($(truth mask) & (kernel | steps | proxy | launch)))
}
expect_events() { # value wanted-bits
	fresh
	RINGSIDE_EVENTS=$1 run_job ops=10 nodes=2
	expect_same "RINGSIDE_EVENTS=$1: no message" "$(cat "$messages")" ""
	expect_same "RINGSIDE_EVENTS=$1: the events" "$(bits)" "$2"
}
# Kernel events need room in the machine's own /dev/shm.
[ "$(room_kib /dev/shm)" -ge $((160 * 1024)) ] || kernel=0
# Sampling asks for kernel events later, and only now and then.
expect_events auto $((steps | proxy | launch))
expect_events -kernel $((steps | proxy | launch))
expect_events kernel,-launch,auto $((kernel | steps | proxy))
expect_events -steps $((proxy | launch))
expect_events +kernel,-proxy,, $((kernel | launch))
expect_wrong "auto, kernel, -kernel, .* using auto for it" RINGSIDE_EVENTS=kernels,-launch operations=100
expect_same "the other words still count" "$(bits)" $((steps | proxy))
expect_wrong "short enough; using auto" "RINGSIDE_EVENTS=$x600"

expect_right RINGSIDE_JOB=my/job job=my/job
expect_right SLURM_JOB_ID=5 job=5
expect_wrong "short enough" "RINGSIDE_JOB=$x600" job=local

expect_right RINGSIDE_LABELS=team=vision,run_1=a=b label.team=vision label.run_1=a=b
for wrong in team =x a-b=c "a=b,c" "a=$(printf 'b\tc')" "a=$x600"; do
	expect_wrong "" "RINGSIDE_LABELS=$wrong" operations=100 label.a=
done

expect_right RINGSIDE_HANG_AFTER=900 hang_after_s=900
for wrong in 15m 0 -1 604801; do
	expect_wrong "a number of seconds up to 604800; using none" "RINGSIDE_HANG_AFTER=$wrong" hang_after_s=
done

expect_right "RINGSIDE_GROUP=$(id -g)" operations=100
expect_right "RINGSIDE_GROUP=$(id -gn)" operations=100
for wrong in no-such-group-here -5 4294967295; do
	expect_wrong "a group on this host; using none" "RINGSIDE_GROUP=$wrong" operations=100
done

expect_wrong "short enough; using ringside-%j" "RINGSIDE_DIR=$x600"
expect_wrong "short enough; using /dev/shm" "RINGSIDE_SHM=$x600"
# That job went to the real place: nothing of it stays.
rm -f /dev/shm/ringside-"$(id -u)"/"$(truth pid)"-*.region
rmdir /dev/shm/ringside-"$(id -u)" 2>/dev/null

expect_right RINGSIDE_DISABLE=0 operations=100
expect_right RINGSIDE_DISABLE=1 processes=0
expect_wrong "0 or 1; using 1" RINGSIDE_DISABLE=yes processes=0
expect_same "and no events are requested from NCCL" "$(truth mask)" 0

# A value cannot forge a line, and many bad ones are each reported on a whole line.
fresh
RINGSIDE_MODE=$'a\nringside: b\e[1m' run_job ops=1
expect_message "control characters do not get through" '^ringside: RINGSIDE_MODE=a\?ringside: b\?\[1m is not'
fresh
events=$(printf 'wrong%d,' {1..15})
RINGSIDE_MODE=wrong RINGSIDE_BUFFER=wrong RINGSIDE_QUOTA=wrong RINGSIDE_LABELS=wrong RINGSIDE_GROUP=wr0ng \
	RINGSIDE_EVENTS=$events RINGSIDE_JOB=$x600 run_job ops=100
expect_same "everything wrong: the job runs to its end" $? 0
expect_same "every line is whole" "$(grep -vcE '^ringside: RINGSIDE_[A-Z]+=.* is not .*; using .*$' "$messages")" 0
expect_same "one for each" "$(cut -d= -f1 "$messages" | sort -u | wc -l)" 7

# ---- streams -----------------------------------------------------------------------------------

fresh
RINGSIDE_MODE=wrong "$job" ops=1000 >"$said" 2>&-
expect_same "stderr closed: the job runs to its end" $? 0
read_facts
expect_facts "stderr closed: all is recorded" operations=issued exact=1
fresh
RINGSIDE_MODE=trace "$job" ops=1000 noise=1 <&- >&- 2>&-
expect_same "all streams closed: the job runs to its end" $? 0
echo issued=1000 >"$said"
read_facts
expect_facts "and what it prints does not get into the trace" operations=issued in_trace=issued troubles=0 exact=1 closed=1
fresh
RINGSIDE_SHM=$tap_scratch/nowhere RINGSIDE_MODE=trace "$job" ops=1000 noise=1 <&- >&- 2>&-
read_facts
expect_facts "nor into a region in memory" operations=issued in_trace=issued troubles=0 closed=1
fresh
RINGSIDE_MODE=wrong RINGSIDE_BUFFER=wrong perl -e '
	pipe(my $read, my $write); close $read;
	open(STDERR, ">&", $write); close $write;
	$SIG{PIPE} = "DEFAULT"; exec @ARGV' "$job" ops=1000 >"$said"
expect_same "stderr is a pipe without a reader: the job runs to its end" $? 0
read_facts
expect_facts "and all is recorded" operations=issued exact=1
tap_done
