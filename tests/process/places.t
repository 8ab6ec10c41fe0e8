#!/usr/bin/env bash
# Where regions and traces go, and what happens if they cannot go there: the job always runs to its
# end, and the fallback is visible.
. "$(dirname "$0")/process.sh"

user=$(id -u)
host=$(uname -n)
is_root() { [ "$user" -eq 0 ]; }

# Run a job and inspect it through /proc while it lives: the region may be only in its memory.
live_job() { # option...
	local pid
	rm -f "$tap_scratch/hold"
	mkfifo "$tap_scratch/hold"
	: >"$said" # or the job before would still be heard
	"$job" "$@" end=hold <"$tap_scratch/hold" >"$said" 2>"$messages" &
	pid=$!
	exec 8>"$tap_scratch/hold"
	# It is done when it says how long it took, or dead.
	until grep -q '^us=' "$said" || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
	"$facts" "@$pid" >"$found" 2>&1
	listing=
	[ ! -x "$BUILD/ringside" ] || listing=$("$BUILD/ringside" ls "@$pid" 2>&1)
	exec 8>&-
	wait $pid
}
expect_fallback() { # sentence kind reason
	local sentence=$1 kind=$2 reason=$3
	live_job ops=1000
	expect_same "$sentence: the job runs to its end" $? 0
	expect_facts "$sentence: the region is $kind" region_kind="$kind" operations=issued missing=0
	if grep -qE "$reason" <<<"$(fact region_reason)"; then
		tap_line ok "$sentence: and says why" ""
	else
		tap_line "not ok" "$sentence: and says why" "wanted '$reason', got '$(fact region_reason)'"
	fi
	[ -z "$listing" ] || expect_ok "$sentence: ringside ls shows it" grep -qE "$kind.*$reason" <<<"$listing"
	expect_same "$sentence: no message" "$(cat "$messages")" ""
}
modes() { stat -c '%a %g' "$@" | tr '\n' ',' ; }

# ---- the region --------------------------------------------------------------------------------

umask 000
fresh
run_job ops=10
directory=$RINGSIDE_SHM/ringside-$user
expect_same "a region is private to its user" "$(stat -c %a "$directory" "$directory"/*.region | tr '\n' ' ')" "700 600 "
chmod 755 "$directory"
run_job ops=10
expect_same "also in a directory that was open before" "$(stat -c %a "$directory")" 700

fresh
(cd "$RINGSIDE_SHM" && mkdir here && RINGSIDE_SHM=here run_job ops=10)
RINGSIDE_SHM=$RINGSIDE_SHM/here read_facts
expect_same "a relative directory becomes absolute" \
	"$(fact region)" "$(find "$RINGSIDE_SHM/here" -name '*.region')"

fresh
long=$RINGSIDE_SHM/$(printf 'a%.0s' {1..80})/$(printf 'b%.0s' {1..80})
mkdir -p "$long"
RINGSIDE_SHM=$long run_job ops=10
RINGSIDE_SHM=$long read_facts
expect_same "a long directory's name is not cut" "$(fact region)" "$(find "$long" -name '*.region')"

fresh
for _ in {1..20}; do run_job ops=1; done
expect_same "at most 15 dead regions are kept besides the own one" "$(find "$RINGSIDE_SHM" -name '*.region' | wc -l)" 16
truncate -s 100000 "$directory/99999999-1.region"
run_job ops=1
expect_ok "a region that is being created is not removed" test -e "$directory/99999999-1.region"
touch -d '2 hours ago' "$directory/99999999-1.region"
run_job ops=1
expect_ok "one that was never completed is removed" test ! -e "$directory/99999999-1.region"

fresh
RINGSIDE_SHM=$tap_scratch/nowhere expect_fallback "no such directory" memfd "parent directory does not exist"
touch "$directory"
expect_fallback "a file in the way" memfd "link or not a directory"
expect_same "which stays as it was" "$(stat -c '%F %s' "$directory")" "regular empty file 0"
rm "$directory"
mkdir "$tap_scratch/elsewhere"
ln -s "$tap_scratch/elsewhere" "$directory"
expect_fallback "a link in the way" memfd "link or not a directory"
expect_same "which is not followed" "$(find "$tap_scratch/elsewhere" -mindepth 1)" ""
rm "$directory"
if is_root; then
	mkdir "$directory"
	chown 12345 "$directory"
	expect_fallback "another user's directory in the way" memfd "owned by another user"
	rmdir "$directory"
else
	expect_skip "another user's directory in the way" "needs root"
	chmod 555 "$RINGSIDE_SHM"
	expect_fallback "a directory that cannot be written to" memfd "cannot be created"
	chmod 755 "$RINGSIDE_SHM"
fi

# Nothing can be written anywhere: private memory, and no signal.
fresh
expect_same "files may not grow: the job runs to its end" \
	"$(ulimit -f 0; RINGSIDE_MODE=trace "$job" ops=1000 2>&1 | grep -cE '^issued=1000|without a trace file')" 2

fresh
for most in 4 5 6; do
	(
		ulimit -n $most
		RINGSIDE_MODE=trace exec "$job" ops=1000
	) >"$said" 2>"$messages"
	expect_same "at most $most open files: the job runs to its end" "$?$(truth issued)" 01000
done

if is_root && mount_small 1m; then
	for size in 1m 4m 64m 1g 0; do
		mount_small $size
		case $size in
		1m | 4m) kind=memfd reason="too little space" ;;
		64m) kind=shm-small reason="too little space" ;;
		*) kind=shm reason="" ;;
		esac
		RINGSIDE_SHM=$mounted expect_fallback "$size of shared memory" $kind "$reason"
		echo "# $size: $(fact region_kind), $(fact region_bytes) bytes"
	done
	mount_small 64m
	head -c 60M /dev/zero >"$mounted/full"
	RINGSIDE_SHM=$mounted expect_fallback "full shared memory" memfd "too little space"
	mount -o remount,ro "$mounted"
	RINGSIDE_SHM=$mounted expect_fallback "read-only shared memory" memfd "read-only"
else
	expect_skip "small, full and read-only shared memory" "needs root, to mount some"
fi

# ---- the trace ---------------------------------------------------------------------------------

fresh
export RINGSIDE_MODE=trace
RINGSIDE_DIR=$tap_scratch/new/deep/traces run_job ops=10
expect_same "missing directories are created, private to the user" \
	"$(stat -c %a "$tap_scratch"/new "$tap_scratch"/new/deep/traces "$tap_scratch"/new/deep/traces/* | tr '\n' ' ')" \
	"700 700 600 "

RANK=3 SLURM_JOB_ID=77/8 RINGSIDE_DIR=$tap_scratch/%%-%h-%j-%r-%p run_job ops=10
expect_same "%h %j %r %p in its name, and the rank in the file's" \
	"$(cd "$tap_scratch/%-$host-77_8-3-$(truth pid)" && find . -name "r3-$host-$(truth pid)-*.ringside" | wc -l)" 1

mkdir -p "$tap_scratch/inside/r"
for rank in /../../escaped 0/8; do
	RANK=$rank RINGSIDE_DIR=$tap_scratch/inside run_job ops=10
	expect_same "RANK=$rank: the trace is where it belongs" \
		"$(find "$tap_scratch/inside" -maxdepth 1 -name "r${rank//\//_}-$host-$(truth pid)-*.ringside" | wc -l)" 1
done
expect_same "and nothing is elsewhere" "$(find "$tap_scratch" -maxdepth 1 -name 'escaped*')" ""

expect_without_trace() { # sentence message
	expect_message "$1: one line" "$2.*recording without a trace file"
	expect_facts "$1: the region has it all" processes=1 mode=flight region_mode=1 trace= operations=issued lost=0
}
for bad in '/tmp/%x' "$(printf '%%j%.0s' {1..100})$(printf 'x%.0s' {1..300})"; do
	fresh
	RINGSIDE_JOB=$(printf 'j%.0s' {1..100}) RINGSIDE_DIR=$bad run_job ops=1000
	expect_same "an invalid name: the job runs to its end" $? 0
	read_facts
	expect_without_trace "an invalid name" "RINGSIDE_DIR=.* is not a usable path"
done
fresh
touch "$tap_scratch/file"
RINGSIDE_DIR=$tap_scratch/file/traces run_job ops=1000
expect_same "a file in the way: the job runs to its end" $? 0
read_facts
expect_without_trace "a file in the way" "cannot be written \(Not a directory\)"
fresh
RINGSIDE_DIR=/proc/no/such run_job ops=1000
read_facts
expect_without_trace "a directory where nothing can be created" "cannot be written \(No such file or directory\)"
if mount_small 16k; then
	fresh
	head -c 16k /dev/zero >"$mounted/full" 2>/dev/null
	RINGSIDE_DIR=$mounted run_job ops=1000
	read_facts
	expect_without_trace "a full disk" "cannot be written \(no room\)"
	expect_same "and no empty file stays" "$(find "$mounted" -name '*.ringside')" ""
else
	expect_skip "a full disk" "needs root, to mount one"
fi

# A name that is taken. The shell creates it, then becomes the job: same pid, same start time.
taken() { # command with %s for the name
	# shellcheck disable=SC2016
	bash -c 'start=$(cut -d " " -f 22 /proc/$$/stat)
		mkdir -p "$RINGSIDE_DIR"
		name=$RINGSIDE_DIR/rx-$(uname -n)-$$-$start.ringside
		'"$1"'
		exec "$0" ops=1000' "$job" >"$said" 2>"$messages"
	read_facts
}
fresh
taken 'echo precious >"$name"'
expect_facts "a file of that name stays, the trace gets another" \
	processes=1 operations=issued in_trace=issued closed=1 exact=1
expect_same "with what is in it" "$(grep -rlx precious "$RINGSIDE_DIR" | wc -l)" 1
fresh
taken 'ln -s "$RINGSIDE_SHM/victim" "$name"'
expect_facts "a link of that name is not followed" processes=1 operations=issued closed=1
expect_ok "its target was not made" test ! -e "$RINGSIDE_SHM/victim"
fresh
taken '"$0" ops=500 >/dev/null 2>&1; (exec "$0" ops=500 >/dev/null 2>&1); :'
expect_same "processes one after the other have files of their own" \
	"$(find "$RINGSIDE_DIR" -name '*.ringside' | wc -l)" 3

# ---- a group -----------------------------------------------------------------------------------

group=$(id -G | awk '{ print $NF }')
is_root && group=12345
umask 077
fresh
RINGSIDE_GROUP=$group RINGSIDE_DIR=$tap_scratch/grouped/traces run_job ops=10
expect_same "a group may read regions" \
	"$(modes "$directory" "$directory"/*.region)" "750 $group,640 $group,"
expect_same "and traces" "$(modes "$tap_scratch/grouped/traces" "$tap_scratch"/grouped/traces/*)" \
	"750 $group,640 $group,"
if is_root && command -v setpriv >/dev/null; then
	fresh
	chmod 777 "$RINGSIDE_SHM"
	chmod 755 "$process_shm" "$tap_scratch"
	mkdir -m 777 "$tap_scratch/nobodys"
	cp "$job" "$PLUGIN" "$tap_scratch/"
	chmod 755 "$tap_scratch/process_job" "$tap_scratch/libnccl-profiler-ringside.so"
	RINGSIDE_GROUP=12345 RINGSIDE_DIR=$tap_scratch/nobodys PLUGIN=$tap_scratch/libnccl-profiler-ringside.so \
		setpriv --reuid=65534 --regid=65534 --clear-groups "$tap_scratch/process_job" ops=10 >"$said" 2>"$messages"
	expect_same "a group that the user is not in gets no access" \
		"$(stat -c %a "$RINGSIDE_SHM/ringside-65534" "$RINGSIDE_SHM"/ringside-65534/* "$tap_scratch"/nobodys/* | tr '\n' ' ')" \
		"700 600 600 "
fi
tap_done
