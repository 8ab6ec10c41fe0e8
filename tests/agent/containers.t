#!/usr/bin/env bash
# Jobs in containers: each in its own user, pid, ipc, mount and host name namespace, with the host's /dev/shm or its own. The
# agent and the tool run outside.
. "$(dirname "$0")/agent.sh"

job=$BUILD/tests/process/process_job
ringside=$BUILD/ringside
[ -x "$job" ] || tap_skip_all "process_job is not built: make tests"
namespaces=(unshare --user --map-root-user --mount --pid --ipc --uts --fork --kill-child --mount-proc)
"${namespaces[@]}" mount -t tmpfs none /mnt 2>/dev/null ||
	tap_skip_all "no permission for user, pid, ipc and mount namespaces"

# Run a job in a container: the commands first prepare it, as its root. Sets the pid on the host.
start_container() { # host-name commands option...
	local host=$1 commands=$2
	shift 2
	PLUGIN=$BUILD/libnccl-profiler-ringside.so RINGSIDE_SHM=$shm RINGSIDE_DIR=$tap_scratch/traces RINGSIDE_BUFFER=4MiB \
		"${namespaces[@]}" bash -c "hostname $host; $commands"'; shift; exec "$@"' - - "$job" end=hold "$@" \
		>"$tap_scratch/job.$host" 2>&1 <&9 &
	started+=("$!")
	disown "$!"
	until_ok eval '[ -s "$tap_scratch/job.$host" ]'
	container_pid=$(pgrep -P "${started[-1]}")
}
stop_container() { kill -9 "$container_pid"; }
own_shm="mount -t tmpfs -o size=64m none $shm"

listed() { RINGSIDE_SHM=$shm "$ringside" ls --json 2>/dev/null; }
lists() { # pattern: ls has such a process
	grep -qE -- "$1" <<<"$(listed)"
}

# Its own /dev/shm: found through /proc, read, and named with both pids.
export POD_NAME=llama-worker-1 POD_NAMESPACE=team-a CONTAINER_NAME=pytorch KUBERNETES_SERVICE_HOST=10.0.0.1
start_container own-shm "$own_shm" ops=1000 comms=1
unset POD_NAME POD_NAMESPACE CONTAINER_NAME KUBERNETES_SERVICE_HOST
own_pid=$container_pid
expect_same "nothing of it is in the host's directory" "$(find "$shm" -type f | wc -l)" 0
expect_ok "ls finds its region, with its pid here and there" lists "\"host\":\"own-shm\",\"pid\":1,\"pid_here\":$own_pid,"
expect_ok "and says so as text" grep -qE "in a container.*, as pid 1$" <(RINGSIDE_SHM=$shm "$ringside" ls)
expect_ok "it can be asked for by its pid on the host" grep -q own-shm <(RINGSIDE_SHM=$shm "$ringside" ls "@$own_pid")

# The host's directory, under its own pid.
start_container host-shm : ops=1000 comms=1
host_pid=$container_pid
start_agent --keep 10m
state_of() { fetch /metrics | sed -n "s/^nccl_process_info{.*host=\"$1\".*state=\"\([a-z]*\)\".*/\1/p"; }
state_is() { [ "$(state_of "$1")" = "$2" ]; }
expect_soon "the agent finds the process with its own /dev/shm" state_is own-shm alive
expect_soon "and the one with that of the host" state_is host-shm alive
expect_ok "both pids are labels" shows "^nccl_process_info\{.*host=\"own-shm\".*host_pid=\"$own_pid\""
expect_ok "of both" shows "^nccl_process_info\{.*pid=\"1\".*host=\"host-shm\".*host_pid=\"$host_pid\""
finished() { fetch /metrics | awk '/^nccl_operations_issued_total\{/ { sum += $2 } END { print sum + 0 }'; }
expect_soon "their operations are counted" eval '[ "$(finished)" = 2000 ]'
expect_ok "pod, namespace and container are labels of the job" shows \
	'^nccl_job_info\{nccl_job="team-a/llama",.*pod="llama-worker-1",namespace="team-a",container="pytorch"'
container_pid=$own_pid stop_container
expect_soon "the death of the first is seen" state_is own-shm killed
container_pid=$host_pid stop_container
expect_soon "and that of the second" state_is host-shm killed
expect_ok "the memory of the first is gone with it" eval '! lists own-shm'
expect_ok "the second can still be read" lists '"host":"host-shm","pid":1,"pid_here":null'
stop_agent

# An agent in a container of its own sees neither pids nor other mounts. Locks say which processes live.
rm -rf "${shm:?}"/*
start_container locked : ops=10 comms=1
before=("${namespaces[@]}")
start_agent --keep 10m
before=()
expect_soon "an agent in another pid namespace reads it" shows '^nccl_process_info\{.*host="locked"'
expect_ok "and does not take it for dead" eval '! state_is locked killed'
stop_container
expect_soon "its death is seen by its lock" state_is locked killed
pkill -TERM -P "$agent_pid"
wait "$agent_pid"

# Hostile containers. What their links and mounts lead to is on the host, and is not theirs to show.
secret=$tap_scratch/secret
cp -r "$shm" "$secret"
rm -rf "${shm:?}"/*
region=$(find "$secret" -name '*.region' | head -n 1)
expect_ok "there is something to steal" [ -s "$region" ]
hidden=$(dirname "$region")
start_container link-shm "mount -t tmpfs none $tap_scratch; ln -s $secret $shm; RINGSIDE_SHM=$tap_scratch" ops=1 comms=1
expect_same "a directory that is a link is not followed" "$(listed | grep -o '"processes":\[\]')" '"processes":[]'
stop_container
# The copy has the inode of another file, so its process counts as unknown: it would be listed.
start_container inner-links "$own_shm && cd $shm && ln -s $hidden ringside-1 &&
	mkdir ringside-2 ringside-3 && mount --bind $hidden ringside-2 && ln -s $region ringside-3/1-1.region &&
	touch ringside-3/2-2.region && mount --bind $region ringside-3/2-2.region && mkfifo ringside-3/3-3.region; cd /" \
	ops=1 comms=1
expect_ok "a container with links and mounts below its directory is read" lists '"host":"inner-links"'
expect_same "but what they lead to is not" "$(listed | grep -o '"host":"[^"]*"' | tr '\n' ' ')" '"host":"inner-links" '
stop_container

# Any other file system could block whoever asks it. The region is written there all the same.
disk=$(mktemp -d "$BUILD/containers.XXXXXXXX")
chmod 755 "$disk"
if [ "$(stat -f -c %T "$disk")" != tmpfs ]; then
	start_container disk-shm "mount --bind '$disk' $shm" ops=1 comms=1
	expect_ok "a container whose directory is on a disk has a region there" test -n "$(find "$disk" -name '*.region')"
	expect_same "which is not read" "$(listed | grep -o '"processes":\[\]')" '"processes":[]'
	stop_container
fi
rm -rf "$disk"

# Regions that ended containers left in a shared directory: capped, whatever pid namespace they were of.
for ((i = 0; i < 20; i++)); do
	start_container "serial-$i" : ops=1 comms=1
	stop_container
	until_ok eval '! kill -0 $container_pid 2>/dev/null'
done
expect_same "no more than 16 regions of dead containers stay" "$(find "$shm" -name '*.region' | wc -l)" 16
tap_done
