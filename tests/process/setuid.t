#!/usr/bin/env bash
# A setuid program, or one with file capabilities: whoever starts it chooses the environment, but not where its owner writes.
. "$(dirname "$0")/process.sh"
[ "$(id -u)" = 0 ] || tap_skip_all "only root can make a program of another user setuid"
command -v setpriv unshare >/dev/null || tap_skip_all "setpriv and unshare are not installed"

user=65534
owner=54321
# Everybody may use it, and no option of a mount takes the bits away.
place=$(mktemp -d /tmp/setuid.XXXXXX)
trap 'rm -rf "$place"; clean_up' EXIT
chmod 755 "$place"
cp "$job" "$place/job"
cp "$PLUGIN" "$place/plugin.so"
chmod 755 "$place/plugin.so"
mkdir -m 777 "$place/own" "$place/away"

# A user starts the program in a directory that both can write to, with settings that name files. Its own /dev/shm.
start() { # setting...
	rm -rf "$place/own"/* "$place/away"/* "$place/shm.txt"
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare -m bash -c 'mount -t tmpfs -o mode=1777 none /dev/shm && cd "$1/own" || exit 99
		setpriv --reuid "$2" --regid "$2" --clear-groups \
			env -u RINGSIDE_SHM -u RINGSIDE_DIR PLUGIN="$1/plugin.so" "${@:3}" "$1/job" ops=100
		code=$?
		find /dev/shm -type f -printf "%U %p\n" >"$1/shm.txt"
		exit $code' start "$place" "$user" "$@" >"$said" 2>"$messages"
	code=$?
}
files_of() { find "$place/own" "$place/away" -mindepth 1 -printf '%U %P\n' | grep -c "^$1 "; }
unshare -m true 2>/dev/null || tap_skip_all "no mount namespaces here"

settings=(RINGSIDE_MODE=trace RINGSIDE_DIR="$place/away/traces" RINGSIDE_SHM="$place/away" RINGSIDE_GROUP="$user"
	NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$place/away/inspector")
chmod 755 "$place/job"
start "${settings[@]}"
expect_same "without the bit the settings count" "$code $([ "$(files_of "$user")" -ge 3 ] && echo files)" "0 files"

check_owner() { # sentence uid
	expect_same "$1: the job runs" "$code $(truth issued)" "0 100"
	expect_same "$1: nothing is written where the user says" "$(files_of "$2") $(files_of "$user")" "0 0"
	expect_message "$1: a line says so" '^ringside: this program has more rights than its user '
	expect_same "$1: the region belongs to the owner" "$(cut -d/ -f1-3 "$place/shm.txt")" "$2 /dev/shm"
}
for who in "$owner" 0; do
	chown "$who" "$place/job"
	chmod 4755 "$place/job"
	start "${settings[@]}"
	check_owner "setuid, $who" "$who"
done
start RINGSIDE_MODE=full
check_owner "the default directory is the working directory" 0
start NCCL_INSPECTOR_ENABLE=1
check_owner "so is Inspector's" 0
start RINGSIDE_SHM="$place/own"
check_owner "a place for regions" 0
start RINGSIDE_GROUP="$user"
check_owner "a group" 0
start RINGSIDE_BUFFER=1MiB
expect_same "other settings count, without a line" "$code $(cat "$messages")" "0 "
start RINGSIDE_DISABLE=1
expect_same "and it can be switched off" "$code $(cat "$messages" "$place/shm.txt")" "0 "
if command -v setcap >/dev/null; then
	chown "$owner" "$place/job"
	chmod 755 "$place/job"
	if setcap cap_dac_override+ep "$place/job" 2>/dev/null; then
		start "${settings[@]}"
		check_owner "file capabilities" "$user"
	else
		expect_skip "file capabilities" "this file system has none"
	fi
fi
tap_done
