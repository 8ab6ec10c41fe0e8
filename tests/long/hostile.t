#!/usr/bin/env bash
# One user attacks the agent in ten ways at once, beside three healthy jobs and a hung one of other users: for ten minutes
# (LONG_SECONDS times ten) the agent answers, shows all of their jobs with their own processes alone, and names the stuck rank.
if [ -z "$HOSTILE_INSIDE" ]; then
	[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP other users need root" && exit; }
	way=(--mount --propagation private --pid --fork --kill-child --mount-proc)
	unshare "${way[@]}" true 2>/dev/null || { echo "1..0 # SKIP no permission for namespaces" && exit; }
	HOSTILE_INSIDE=yes exec unshare "${way[@]}" sh -c '"$@"; exit $?' sh "$0" "$@"
fi
BUILD=$(realpath "${BUILD:-build}")
mount -t tmpfs -o size=1g,mode=1777 none /tmp && mount -t tmpfs -o size=3g,mode=1777 none /dev/shm && mkdir /tmp/tree && mount --bind . /tmp/tree &&
	mount --bind "$BUILD" /mnt || exit 1
export BUILD=/mnt TMPDIR=/tmp
. "$(dirname "$0")/../agent/agent.sh"
[ -x /usr/bin/python3 ] || tap_skip_all "python3 of the system is not installed"
chmod 755 "$tap_scratch"
seconds=$((${LONG_SECONDS:-60} * 10))
shm=/dev/shm
for program in "silent_files tests/cli/silent_files.c" "stuck_job tests/cli/stuck_job.c -ldl" "silent.so tests/agent/silent_environment.c -shared -fPIC -pthread"; do
	read -r name source <<<"$program"
	# shellcheck disable=SC2086
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -o "$tap_scratch/$name" $source || exit 1
done

# Four jobs of four users, two ranks each.
begin_job() { # uid name option...
	local uid=$1 name=$2
	shift 2
	RINGSIDE_JOB=$name RINGSIDE_BUFFER=4MiB setpriv --reuid "$uid" --regid "$uid" --clear-groups "$BUILD/ringside" sim --plugin "$BUILD/libnccl-profiler-ringside.so" \
		-m flight --gpus 2 --rate 20 --seconds $((seconds + 300))s "$@" >"$tap_scratch/$name" 2>&1 &
	started+=("$!")
}
begin_job 2001 well-1
begin_job 2002 well-2 -w fsdp
begin_job 2003 well-3 -w tp-pp
has_regions() { [ "$(find /dev/shm -name '*.region' | wc -l)" -ge 6 ]; }
until_ok has_regions
cp "$(find /dev/shm/ringside-2001 -name '*.region' | head -n 1)" "$tap_scratch/template" && chmod 644 "$tap_scratch/template"
start_agent_at --listen 127.0.0.1:0 --hang 5s
python3 /tmp/tree/tests/agent/attackers.py 1000 /dev/shm "$tap_scratch/template" "${url##*:}" "$tap_scratch/silent_files" "$tap_scratch/stuck_job" \
	"$tap_scratch/silent.so" >"$tap_scratch/attacks" 2>&1 &
started+=("$!")
# It begins when the attackers are at work.
begin_job 2004 hung -f never-arrives:rank=1,at=20s
HOSTILE_SECONDS=$seconds python3 tests/long/hostile_watch.py "${url##*:}" "$agent_pid" >"$tap_scratch/watch" 2>&1
attacks=(churn clients crowd descriptors files forged locked mounts names silent)
expect_same "all attacks were made" "$(sort -u "$tap_scratch/attacks" | xargs)" "${attacks[*]}"
expect_same "each job is there with its own processes, and only the hung one is accused" "$(grep -v '^time ' "$tap_scratch/watch")" \
	"well-1 of 2001: 2 of its own, 0 others, no verdict
well-2 of 2002: 2 of its own, 0 others, no verdict
well-3 of 2003: 2 of its own, 0 others, no verdict
hung of 2004: 2 of its own, 0 others, never_issued: rank 1"
sed -n 's/^time /# /p' "$tap_scratch/watch"
kill -9 "$agent_pid"
tap_done
