#!/usr/bin/env bash
# A user whose process does not answer when the system is asked about it: the agent answers everybody else.
. "$(dirname "$0")/../support/silent.sh"
silent_enter "$@"
. "$(dirname "$0")/agent.sh"
silent_begin "$tap_scratch/silent"
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -pthread -shared -fPIC -o "$tap_scratch/silent.so" tests/agent/silent_environment.c || exit 1
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -o "$tap_scratch/stuck_job" tests/cli/stuck_job.c -ldl || exit 1
SILENT_GO=$tap_scratch/go SILENT_FILE=$tap_scratch/silent/read LD_PRELOAD=$tap_scratch/silent.so RINGSIDE_SHM=$shm \
	NCCL_PROFILER_PLUGIN=$BUILD/libnccl-profiler-ringside.so RANK=3 WORLD_SIZE=4 RINGSIDE_JOB=quiet RINGSIDE_HOSTS=n1,n2 \
	"$tap_scratch/stuck_job" 50 <&9 >"$tap_scratch/job" 2>&1 &
job=$!
started+=("$job")
until_ok test -s "$tap_scratch/job"
: >"$tap_scratch/go"
sleep 1
timeout 1 cat "/proc/$job/environ" >/dev/null 2>&1
expect_same "reading its environment does not end" "$?" 124
python3 tests/agent/silent_descriptor.py "$tap_scratch/silent_files" "$silent_fuse" "$tap_scratch/overlay" >"$tap_scratch/descriptor" 2>&1 &
holder=$!
started+=("$holder")
until_ok test -s "$tap_scratch/descriptor"
descriptor=$(cat "$tap_scratch/descriptor")
if [ "$descriptor" -gt 0 ] 2>/dev/null; then
	expect_same "a descriptor is shown as memory" "$(readlink "/proc/$holder/fd/$descriptor")" "/memfd:ringside"
	{ timeout -k 1 1 stat -L "/proc/$holder/fd/$descriptor"; } >/dev/null 2>&1
	expect_same "and whoever asks about its file never gets an answer" "$?" 137
else
	echo "# without a descriptor that never answers: $descriptor"
fi
start_agent --hang 1s
expect_soon "its hang is found" shows '^nccl_verdict_info\{nccl_job="quiet"'
expect_soon "and who does not answer" shows '^ringside_agent_user_left_out\{user="[0-9]*",what="answers"\} 1'
expect_ok "the agent still answers" fetch /healthz
ringside=$BUILD/ringside
patient() { RINGSIDE_SHM=$shm timeout -k 1 30 "$ringside" "$@" 2>&1; }
expect_ok "ls shows it" grep -q quiet <(patient ls)
expect_ok "ps shows what it waits for" grep -q AllReduce <(patient ps "@$job")
expect_ok "doctor ends" grep -q quiet <(patient doctor "@$job")
stop_agent
kill -9 "$job" "$holder"
silent_end "$tap_scratch/silent"
{ wait "$job" "$holder"; } 2>/dev/null
tap_done
