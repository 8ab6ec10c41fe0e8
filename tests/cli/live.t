#!/usr/bin/env bash
# The commands on a running process, on one that was killed, and on one that ended, with the real plugin.
. "$(dirname "$0")/cli.sh"

unset RANK WORLD_SIZE LOCAL_RANK SLURM_JOB_ID SLURM_JOBID SLURM_PROCID TORCHELASTIC_RUN_ID
export RINGSIDE_SHM=$tap_scratch/shm
mkdir "$RINGSIDE_SHM"
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -o "$tap_scratch/stuck_job" tests/cli/stuck_job.c -ldl || exit 1

start() { # option... : a job that stands in its 51st operation; $pid is it
	coproc job { exec env RANK=3 WORLD_SIZE=4 "$ringside" run --job live "$@" -- "$tap_scratch/stuck_job" 50; }
	# shellcheck disable=SC2154
	pid=$job_PID
	read -r -u "${job[0]}" ready
}
json() { # expression command...
	local expression=$1
	shift
	"$ringside" "$@" --json | json_says "$expression"
}
# Other tests may run at the same time: select only this process.
ls_line() { # awk-expression
	"$ringside" ls -q | awk -v pid="$pid" "\$1 == pid { print $1 }"
}
counts='join " ", map { @{$_}{qw(issued recorded in_flight missing)} } @{$_->{processes}}'

start -m trace -o "$tap_scratch/killed"
expect_same "the job is there" "$ready" ready
expect_same "ls shows it" "$(ls_line '$2, $3, $4, $7, $8, $9, $10')" \
	"alive live 3/4 1/1 51 0 trace"
expect_same "@PID is the same" \
	"$("$ringside" ls -q "@$pid" | awk 'NR == 2 { print $2, $3, $4, $7, $8, $9, $10 }')" \
	"alive live 3/4 1/1 51 0 trace"
expect_same "ps shows what it waits for" \
	"$(json 'join " ", map { $_->{number}, $_->{state}, $_->{comm_name}, map { @{$_}{qw(reason peer steps_done steps)} }
		@{$_->{waits}} } @{$_->{operations}}' ps "@$pid")" "51 running world recv_net 1 1 4"
age() {
	json '$_->{operations}[0]{age_ns}' ps "@$pid"
}
first=$(age)
second=$(age)
expect_ok "its age grows" test "$second" -gt "$first"
"$ringside" verify "@$pid" >"$tap_scratch/out"
expect_same "verify finds nothing missing so far" "$? $(head -n 1 "$tap_scratch/out")" \
	"0 nothing is missing so far: 1 process, 51 operations issued, 50 recorded, 1 in flight"
expect_same "dump has everything" "$("$ringside" dump "@$pid" | wc -l)" 51

{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null
expect_same "killed is shown" "$(ls_line '$2, $8')" "killed 51"
expect_same "its counts still add up" "$(json "$counts" verify "$tap_scratch/killed")" "51 50 1 0"
expect_same "trace and region together have everything" \
	"$("$ringside" dump "$tap_scratch/killed" | sort -u | wc -l)" 51
its_waits="join ' ', map { \$_->{waits}[0]{reason} } grep { \$_->{pid} == $pid } @{\$_->{operations}}"
expect_same "ps leaves out dead processes" "$(json "$its_waits" ps)" ""
expect_same "unless asked" "$(json "$its_waits" ps --dead)" recv_net
expect_refusal "a process that is not recorded" 3 "@999999999: no readable recording" "$ringside" ps @999999999

rm -r "$RINGSIDE_SHM"
expect_same "without its region the trace was cut" \
	"$("$ringside" verify "$tap_scratch/killed" >/dev/null; echo $?)" 1

mkdir "$RINGSIDE_SHM"
start -m flight
echo >&"${job[1]}"
wait "$pid"
expect_same "ended is shown" "$(ls_line '$2, $7, $8')" "ended 0/1 51"
expect_same "what was in flight is abandoned" \
	"$("$ringside" dump "$RINGSIDE_SHM" | perl -MJSON::PP -ne '$n{decode_json($_)->{state}}++; END {
		print join " ", map { "$_ $n{$_}" } sort keys %n }')" "abandoned 1 done 50"
expect_same "all of it recorded" "$(json "$counts" verify "$RINGSIDE_SHM")" "51 51 0 0"

start --shm "$tap_scratch/no/such/place"
expect_same "a region that fell back is found, and says why" \
	"$(json "join ' ', map { @{\$_}{qw(state region_kind region_reason)} } grep { \$_->{pid} == $pid } @{\$_->{processes}}" ls)" \
	"alive memfd $tap_scratch/no/such/place/ringside-$(id -u): the parent directory does not exist"
{ kill "$pid" && wait "$pid"; } 2>/dev/null
tap_done
