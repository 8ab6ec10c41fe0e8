#!/usr/bin/env bash
# GPU times on demand: a job that may be hung is asked to time every operation for a while. Requests
# and answers are logged and counted.
. "$(dirname "$0")/agent.sh"

unset RANK WORLD_SIZE LOCAL_RANK SLURM_JOB_ID SLURM_JOBID SLURM_PROCID TORCHELASTIC_RUN_ID
[ -x "$BUILD/ringside" ] || tap_skip_all "ringside is not built"
sims=()
clean_up_sims() {
	local pid
	for pid in "${sims[@]}"; do
		kill -9 -- "-$pid" 2>/dev/null
	done
	clean_up
}
trap clean_up_sims EXIT
# Another user may not be able to enter the build folder.
cp "$BUILD"/ringside "$BUILD"/ringside-sim "$BUILD"/libnccl-profiler-ringside.so "$tap_scratch"
# A job with two ranks on one node, in its own process group. It calls so often that few operations are timed: of most it
# is not known whether they are over.
play() { # name times command... : a command that executes the job
	local name=$1 times=$2
	shift 2
	RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB RINGSIDE_JOB=$name RINGSIDE_TIMES=$times \
		setsid "$@" "$tap_scratch/ringside" sim --nodes 1 --gpus 2 -w loop --sizes 4KiB --rate 4000 --seconds 600s -m flight >/dev/null 2>&1 &
	sims+=("$!")
}
counts() { # event least
	[ "$(fetch /metrics | sed -n "s/^ringside_agent_kernel_requests_total{event=\"$1\"} //p")" -ge "$2" ]
}
# Both ranks of each job make calls.
are_running() { # job...
	local metrics name
	metrics=$(fetch /metrics)
	for name in "$@"; do
		[ "$(grep -c "^nccl_operations_issued_total{nccl_job=\"$name\".*} [1-9]" <<<"$metrics")" -ge 2 ] || return 1
	done
}
# Learning the usual speed of a job takes some scans, from when it runs.
scans() { fetch /metrics | sed -n 's/^ringside_agent_looks_total //p'; }
knows_its_past() { [ "$(scans)" -ge $((so_far + 15)) ]; }

expect_refusal "an invalid time" 2 "--kernel-time 2m is more than 1m" "$agent" --kernel-time 2m

# In parallel: jobs that comply, that refuse, and of another user.
start_agent --lag 2s --hang 600s --kernel-on-demand --kernel-time 7s
play willing auto
play unwilling off
is_root=$([ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && echo yes)
if [ -n "$is_root" ]; then
	chmod 1777 "$shm"
	chmod 755 "$tap_scratch"
	play foreign auto setpriv --reuid 65534 --regid 65534 --clear-groups
fi
until_ok are_running willing unwilling ${is_root:+foreign}
so_far=$(scans)
expect_soon "the agent has seen how they go" knows_its_past
# One that was stopped inside a call is not asked: it is judged by that call. Then it has to stop again, for longer than it
# ever did.
are_asked() {
	local job
	for job in willing unwilling ${is_root:+foreign}; do
		says "job $job: asked 2 processes to time every operation for 7 s: no calls on world.* for [0-9]+ s" || return 1
	done
}
signal_all() { # signal
	local pid
	for pid in "${sims[@]}"; do
		kill "-$1" -- "-$pid"
	done
}
for seconds in 10 30 100; do
	signal_all STOP
	end=$((SECONDS + seconds))
	until are_asked || [ $SECONDS -ge $end ]; do sleep 0.1; done
	! are_asked || break
	signal_all CONT
	sleep 1
done
expect_ok "jobs without calls are asked, also one of another user if the agent is root" are_asked
expect_soon "a job that must not be timed refuses, with a reason" \
	says 'job unwilling: 2 of 2 processes cannot time every operation: refused: switched off by RINGSIDE_TIMES'
signal_all CONT
expect_soon "a job that may be timed complies when it continues" says 'job willing: [12] of 2 processes time every operation for 7 s'
expect_soon "requests and answers are counted" eval 'counts asked 4 && counts granted 2 && counts refused 2'
if [ -n "$is_root" ]; then
	expect_soon "so does the job of another user" says 'job foreign: [12] of 2 processes time every operation for 7 s'
fi
expect_same "each job was asked once" "$(times_said 'job willing: asked')" 1
stop_agent
tap_done
