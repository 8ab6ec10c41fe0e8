#!/usr/bin/env bash
# Asking running processes to time everything for a while, with the real plugin.
. "$(dirname "$0")/cli.sh"

unset RANK WORLD_SIZE LOCAL_RANK SLURM_JOB_ID SLURM_JOBID SLURM_PROCID TORCHELASTIC_RUN_ID
export RINGSIDE_SHM=$tap_scratch/shm
mkdir "$RINGSIDE_SHM"

expect_refusal "nothing to do" 2 "use --times TIME" "$ringside" record
expect_refusal "no such time" 2 "not a time like 30s" "$ringside" record --times soon
expect_refusal "no process is running" 3 "no recordings found on this host" \
	"$ringside" record --times 10s --job sim-5

# Numbers of operations so far, over the processes of a job: recorded, and timed.
so_far() { # job
	"$ringside" verify --json | json_says 'my ($n, $timed) = (0, 0); for my $p (@{$_->{processes}}) {
		next if $p->{job} ne "'"$1"'"; $n += $p->{recorded}; $timed += $p->{timed} } "$n $timed"'
}
# Of the next thousand operations of a job, is less than this percentage not timed?
are_timed() { # job percent
	local recorded timed before_recorded before_timed
	read -r before_recorded before_timed <<<"$(so_far "$1")"
	for _ in $(seq 600); do
		read -r recorded timed <<<"$(so_far "$1")"
		[ $((recorded - before_recorded)) -ge 1000 ] && break
		sleep 0.1
	done
	[ $((100 * (recorded - before_recorded - timed + before_timed))) -lt $(($2 * (recorded - before_recorded))) ]
}
play() { # seed option... : a job of two ranks in one node; waits until it communicates
	local seed=$1
	shift
	RINGSIDE_JOB=job-$seed "$ringside" sim --nodes 1 --gpus 2 -w loop --seed "$seed" --seconds 120s \
		-o "$tap_scratch/t$seed" "$@" >/dev/null 2>&1 &
	jobs_of+=($!)
	for _ in $(seq 600); do
		[ "$("$ringside" ls --json 2>/dev/null | json_says 'scalar grep { $_->{job} eq "job-'"$seed"'" &&
			$_->{recorded} > 20 } @{$_->{processes}}')" = 2 ] && break
		sleep 0.1
	done
}
jobs_of=()
trap 'kill "${jobs_of[@]}" 2>/dev/null; rm -rf "$tap_scratch"' EXIT

play 1
expect_same "only a share is timed before more is asked for" "$(are_timed job-1 5 && echo all)" ""
"$ringside" record --times 60m --job job-1 --wait 60s >"$tap_scratch/said"
expect_same "both processes comply" "$? $(grep -c 'every launch is timed for' "$tap_scratch/said")" "0 2"
expect_ok "every operation is timed now" are_timed job-1 5

RINGSIDE_TIMES=off play 2
expect_same "a process that times nothing refuses, and says why" \
	"$("$ringside" record --times 10s --job job-2 --json | json_says 'join " ", map {
		"$_->{answer} $_->{reason}" } @{$_->{processes}}')" \
	"refused switched off by RINGSIDE_TIMES refused switched off by RINGSIDE_TIMES"
"$ringside" record --times 10s --job job-2 >/dev/null 2>"$tap_scratch/advice"
expect_same "that is an exit code" $? 3
expect_ok "and the command that works is printed" grep -q 'ringside run --times all -- COMMAND' "$tap_scratch/advice"
tap_done
