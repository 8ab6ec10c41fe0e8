#!/usr/bin/env bash
# Processes start, run, die and are forgotten; invalid and hostile files in the same directory.
. "$(dirname "$0")/agent.sh"

processes() { fetch /healthz | sed 's/.*"processes":\([0-9]*\).*/\1/'; }
has_processes() { [ "$(processes)" = "$1" ]; }
state_is() { [ "$(fetch /metrics | sed -n 's/^nccl_process_info{.*state="\([a-z]*\)".*/\1/p' | sort | tr '\n' ' ')" = "$1 " ]; }
value_of() { fetch /metrics | sed -n "s/^$1 //p"; }

# One agent keeps ended processes for a long time, another one forgets them soon.
start_agent --keep 10m
remembers=$url
start_agent --keep 1s
forgets=$url
expect_ok "no process at first" has_processes 0
start_job ops=1000000 comms=3 pace=1000
expect_soon "a new process is found" has_processes 1
expect_soon "its state is alive" state_is alive
finished() { fetch /metrics | awk '/^nccl_operations_finished_total\{/ { sum += $2 } END { print sum + 0 }'; }
has_finished() { [ "$(finished)" -ge "$1" ]; }
expect_soon "its operations are counted" has_finished 100
so_far=$(finished)
expect_soon "and the count grows" has_finished $((so_far + 100))
communicators() { fetch /api/v1/now | perl -MJSON::PP -e 'local $/; print scalar @{decode_json(<>)->{communicators}}'; }
expect_same "its communicators are in the JSON" "$(communicators)" 3
expect_soon "a second agent sees the same" eval 'url=$remembers has_processes 1'
kill -9 "$job_pid"
url=$remembers
expect_soon "its death is detected" state_is killed
url=$forgets
expect_soon "and it is forgotten later" has_processes 0
expect_same "its metrics are gone" "$(fetch /metrics | grep -c '^nccl_operations_finished_total')" 0

# Hostile files beside a good one.
region=$(find "$shm" -name '*.region' | head -n 1)
user=$(dirname "$region")
good=$tap_scratch/good.region
cp "$region" "$good"
start_job ops=100000 comms=1 pace=1000
expect_soon "another process is found" has_processes 1
: >"$user/1-1.region"
head -c 100 "$good" >"$user/2-2.region"
head -c 5000 "$good" >"$user/3-3.region"
head -c 1000000 /dev/urandom >"$user/4-4.region"
ln -s /etc/passwd "$user/5-5.region"
ln -s "$user" "$user/6-6.region"
mkdir "$user/7-7.region"
mkfifo "$user/8-8.region"
truncate -s 10G "$user/9-9.region"
perl -e 'local $/; my $bytes = <STDIN>; substr($bytes, 64 + $_ * 37 % 4000, 8) = "\xff" x 8 for 0 .. 200; print $bytes' \
	<"$good" >"$user/10-10.region"
printf 'x' >"$user/..region"
expect_soon "invalid files are counted" eval '[ "$(value_of ringside_agent_refused_files)" -ge 3 ]'
expect_ok "the agent is running" is_running
expect_code "and answers" 200 /metrics
expect_ok "and still sees real processes" shows '^nccl_process_info{.*state="alive"'

# A region that is truncated while it is read.
cp "$good" "$user/11-11.region"
for size in 900000 70000 5000 4096 100 0; do
	truncate -s "$size" "$user/11-11.region"
	fetch /metrics >/dev/null
done
for ((i = 0; i < 40; i++)); do
	cp "$good" "$user/12-$i.region"
	truncate -s $((i * 4000)) "$user/12-$i.region"
done
expect_code "files truncated while read" 200 /metrics
expect_ok "the agent is still running" is_running
rm -rf "$user"
expect_code "all files removed at once" 200 /metrics
expect_soon "the agent survives that" is_running
kill -9 "$job_pid"

# A job of another host in the same directory is ignored.
stop_agent
expect_same "it exits with 0" "$?" 0
start_agent --host somebody-else
start_job ops=10 comms=1
regions() { find "$shm" -name '*.region' | wc -l; }
expect_soon "a process starts" eval '[ "$(regions)" = 1 ]'
looks() { fetch /healthz | sed 's/.*"looks":\([0-9]*\).*/\1/'; }
so_far=$(looks)
expect_soon "it is scanned" eval '[ "$(looks)" -gt $((so_far + 4)) ]'
expect_ok "and ignored because of its other host name" has_processes 0
expect_same "which the log says once" "$(grep -c "are ignored: --host says that this is somebody-else" "$log")" 1
kill -9 "$job_pid"
stop_agent

# No memory for a scan: the agent reports it and recovers.
rm -rf "${shm:?}"/ringside-*
start_agent
if prlimit --pid "$agent_pid" --as=1000000: --data=1: 2>/dev/null; then
	start_job ops=1000 comms=10 threads=2
	expect_soon "the health check fails without memory" answers 503 /healthz
	expect_code "metrics of the last scan are still served" 200 /metrics
	prlimit --pid "$agent_pid" --as=unlimited: --data=unlimited:
	expect_soon "it recovers with memory" answers 200 /healthz
	expect_soon "and sees the new process" has_processes 1
	expect_same "each is logged once" \
		"$(times_said 'cannot scan processes') $(times_said 'scanning processes works again')" "1 1"
	kill -9 "$job_pid"
fi
stop_agent
tap_done
