#!/usr/bin/env bash
# Files of other users, made to mislead root: each affects only itself.
. "$(dirname "$0")/cli.sh"
[ "$(id -u)" = 0 ] || tap_skip_all "needs root, to have files of other users"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
make_samples
template=$(find "$tap_scratch/stuck" -type f | head -n 1)
shm=$tap_scratch/shm
mkdir -p "$shm/ringside-0" "$shm/ringside-1000"
cp "$template" "$shm/ringside-0/good.region"
bad=$shm/ringside-1000/bad.region
export RINGSIDE_SHM=$shm
forge() { python3 tests/cli/forge.py "$template" "$@"; }

# Runs a command on the directory with 4 GiB of memory and ten seconds, which is far more than it needs.
limited() { # command...
	(ulimit -v $((4 << 20)) && exec timeout -s KILL 10 unshare --kill-child -pf --mount-proc "$@")
}
# The command ends, names the bad file in one line, shows the other one, and its exit code says so.
expect_only_itself() { # sentence reason command...
	local sentence=$1 reason=$2 code
	shift 2
	limited "$ringside" "$@" >"$tap_scratch/out" 2>"$tap_scratch/err"
	code=$?
	if { [ "$code" -eq 1 ] || [ "$code" -eq 3 ]; } &&
		[ "$(cat "$tap_scratch/err" "$tap_scratch/out" | grep -cE -- "$reason")" -eq 1 ] &&
		! grep -q "cannot read:" "$tap_scratch/err" && grep -q '999999990\|tp' "$tap_scratch/out"; then
		tap_line ok "$sentence" ""
	else
		tap_line "not ok" "$sentence" "exit $code, wanted 1 or 3, and one line like: $reason
$(cat "$tap_scratch/err" "$tap_scratch/out" | head -n 20)"
	fi
}

forge "$bad" part:proxies=524288*65536 word:912=524288 key:rank=6 owner=1000
expect_same "a region of 34 GB has a few KiB" "$(($(stat -c %b "$bad") < 64))" 1
for command in ls "ps --dead" verify "dump --json"; do
	# shellcheck disable=SC2086
	expect_only_itself "$command: a sparse region of 34 GB" "bad.region: not read: it consists of holes" $command
done
forge "$bad" part:live=8193*528 owner=1000
expect_only_itself "a table larger than any recorder creates" "bad.region: tables larger than any" ls
forge "$bad" part:live=64*65536 owner=1000
expect_only_itself "slots larger than any recorder creates" "bad.region: tables larger than any" ls

# What a region names as its trace. The good one has the same process, so a copy of it would be joined.
trace=$tap_scratch/named.ringside
leads_to() { # path
	forge "$bad" "key:trace=$1" key:rank=6 owner=1000
}
sample=$(find "$tap_scratch/open" -type f | head -n 1)
cp "$sample" "$trace"
truncate -s 4E "$trace" 2>/dev/null || truncate -s 1T "$trace"
chown 1000 "$trace"
leads_to "$trace"
for command in verify report "dump --json"; do
	# shellcheck disable=SC2086
	expect_only_itself "$command: a sparse trace as large as can be" "not read as the trace of process.*holes" $command
done
limited "$ringside" bundle --no-ras -o "$tap_scratch/bundle.tar" >/dev/null 2>"$tap_scratch/err"
expect_same "bundle ends, too" "$?" 3
leads_to /etc/shadow
expect_only_itself "a file of root" "/etc/shadow: not read as the trace of process.*another user" verify
chown 0 "$trace"
truncate -s 4096 "$trace"
leads_to "$trace"
expect_only_itself "a trace of root" "named.ringside: not read as the trace.*another user" verify
chown 1000 "$trace"
ln -s "$trace" "$tap_scratch/link"
leads_to "$tap_scratch/link"
expect_only_itself "a link" "link: not read as the trace of process.*symbolic link" verify
ln -s "$tap_scratch" "$shm/way"
leads_to "$shm/way/named.ringside"
expect_only_itself "a link on the way" "not read as the trace of process.*symbolic link" verify
mkfifo "$tap_scratch/pipe"
chown 1000 "$tap_scratch/pipe"
leads_to "$tap_scratch/pipe"
expect_only_itself "a pipe" "pipe: not read as the trace of process.*not a regular file" verify
sleep 60 &
sleeper=$!
for path in /proc/kmsg /proc/$sleeper/environ /sys/kernel/notes; do
	leads_to "$path"
	if command -v strace >/dev/null; then
		strace -f -e trace=openat,openat2,open -o "$tap_scratch/strace" timeout -s KILL 10 "$ringside" verify >/dev/null 2>&1
		expect_same "$path is not opened, only examined" \
			"$(grep -F "\"$path\"" "$tap_scratch/strace" | grep -vc O_PATH)" 0
	fi
done
leads_to /proc/kmsg
expect_complaint "and it is reported" "/proc/kmsg: not read as the trace of process.*kernel" limited "$ringside" verify
kill "$sleeper"
rm "$bad"

expect_same "one path that gives an error does not hide the others" \
	"$("$ringside" ls -q "$tap_scratch/ended" /proc/self/mem 2>"$tap_scratch/err")" "$("$ringside" ls -q "$tap_scratch/ended")"
expect_ok "it is named" grep -q '/proc/self/mem: cannot be read' "$tap_scratch/err"
"$ringside" ls -q "$tap_scratch/ended" /proc/self/mem >/dev/null 2>&1
expect_same "and the exit code says so" "$?" 3
cat tests/foreign/data/inspector-v4.1.log >"$tap_scratch/sparse.log"
truncate -s 1T "$tap_scratch/sparse.log"
expect_complaint "a sparse log of 1 TB" "sparse.log: not read: it consists of holes" timeout -s KILL 10 "$ringside" ls "$tap_scratch/sparse.log"

# Names must not control the terminal of whoever reads them.
evil='\xc2\x9d0;OWNED\xc2\x9c\xc2\x9b2J\xc2\x9bHall is well\xc2\x9b8m\xe2\x80\xae\x9b2J\xe2\x80\x8b'
rm -f "$bad"
forge "$shm/ringside-1000/$(printf 'a\xc2\x9b2J\xc2\x9d0;OWNED\xc2\x9c.region')" part:live=9000*528 owner=1000
forge "$shm/ringside-1000/b.region" "key:job=$evil" "key:host=$evil" "key:label.$evil=$evil" owner=1000
if command -v node >/dev/null && [ -e npm/node_modules/@xterm/headless ]; then
	for command in ls "ls --json" "ps --dead" verify report "report --json" doctor "dump --json"; do
		# shellcheck disable=SC2086
		limited "$ringside" $command >"$tap_scratch/screen" 2>&1
		expect_same "$command: hostile names change neither title nor screen" \
			"$(node tests/cli/hostile_terminal.mjs "$tap_scratch/screen")" "title before
first FIRST LINE
hidden false"
	done
fi
rm "$shm"/ringside-1000/*

# Where root writes, another user may have put something.
common=$tap_scratch/common
mkdir -m 1777 "$common"
refused() { # sentence reason file [command...]
	local sentence=$1 reason=$2 file=$3
	shift 3
	expect_refusal "$sentence" 2 "cannot write .*: $reason" timeout -s KILL 20 "$ringside" "${@:-bundle}" "$tap_scratch/ended" -o "$file"
}
echo theirs >"$common/x.tar"
chmod 666 "$common/x.tar"
chown 1000 "$common/x.tar"
refused "bundle: another user's file" "it belongs to another user" "$common/x.tar"
expect_same "it is unchanged" "$(stat -c '%u %a' "$common/x.tar") $(cat "$common/x.tar")" "1000 666 theirs"
mkfifo "$common/pipe.tar"
chown 1000 "$common/pipe.tar"
refused "another user's pipe" "it belongs to another user" "$common/pipe.tar"
ln -s "$tap_scratch/target.tar" "$common/link.tar"
chown -h 1000 "$common/link.tar"
refused "another user's link to nothing" "it is a symbolic link in a place" "$common/link.tar"
echo mine >"$tap_scratch/target.tar"
refused "another user's link to a file of root" "it is a symbolic link in a place" "$common/link.tar"
mkdir -m 777 "$common/open"
ln -s "$tap_scratch/target.tar" "$common/open/link.tar"
refused "root's link where anybody can replace it" "it is a symbolic link in a place" "$common/open/link.tar"
mkdir "$common/theirs"
ln -s "$tap_scratch/target.tar" "$common/theirs/link.tar"
chown 1000 "$common/theirs"
refused "root's link in another user's directory" "it is a symbolic link in a place" "$common/theirs/link.tar"
expect_same "no target was replaced" "$(cat "$tap_scratch/target.tar")" mine
chown 1000 "$tap_scratch/target.tar"
ln -s "$tap_scratch/target.tar" "$common/own.tar"
refused "root's link to another user's file" "it belongs to another user" "$common/own.tar"
refused "a device" "it is a device" /dev/zero export -f csv
expect_refusal "report --html" 2 "it belongs to another user" "$ringside" report "$tap_scratch/ended" -o /dev/null --html "$common/x.tar"
for command in report "report --json" "report --csv" "trace --format json" "export -f csv" "export -f parquet"; do
	# shellcheck disable=SC2086
	refused "$command" "it belongs to another user" "$common/x.tar" $command
done
refused "a directory of another user" "it belongs to another user" "$common/theirs/" export -f csv --force
chown 0 "$tap_scratch/target.tar"
"$ringside" bundle --no-ras "$tap_scratch/ended" -o "$common/own.tar" >/dev/null 2>&1
expect_ok "root's own link in a sticky directory is followed" tar -tf "$tap_scratch/target.tar"
"$ringside" bundle --no-ras "$tap_scratch/ended" -o "$common/new.tar" >/dev/null 2>&1
expect_same "a new bundle is for its owner alone" "$(stat -c '%u %a' "$common/new.tar")" "0 600"
"$ringside" bundle --no-ras "$tap_scratch/ended" -o "$common/theirs/new.tar" >/dev/null 2>&1
expect_same "also in a directory of another user" "$(stat -c '%u %a' "$common/theirs/new.tar")" "0 600"

# The same job and communicator, another user: joined, it could turn the verdict on a job of root.
jobs() { # option...
	limited "$ringside" ls --json "$@" 2>/dev/null | json_says 'join " | ", sort map { $_->{job} } @{$_->{processes}}'
}
job=$("$ringside" ls --json "$template" | json_says '$_->{processes}[0]{job}')
forge "$bad" key:rank=6 word:288=999999980 owner=1000
expect_same "processes of different users are not of one job" "$(jobs)" "$job | $job (uid 1000)"
expect_same "unless that is asked for" "$(jobs --any-owner)" "$job | $job"
expect_ok "it is reported" grep -q "different users have jobs of the same name" <(limited "$ringside" ls 2>&1)
forge "$shm/ringside-0/other.region" key:rank=7 word:288=999999981 "key:job=$job (uid 1000)"
expect_same "whatever names they choose" "$(jobs)" "$job | $job (uid 1000) | $job (uid 1000) (uid 0)"
rm "$shm/ringside-0/other.region"
limited "$ringside" bundle --no-ras -o "$tap_scratch/users.tar" >/dev/null 2>&1
expect_same "nor in a bundle" \
	"$("$ringside" ls --json "$tap_scratch/users.tar" 2>/dev/null | json_says 'join " | ", sort map { $_->{job} } @{$_->{processes}}')" \
	"$job | $job (uid 1000)"
# A region of uid 1000 that claims to be of this script, a process of root.
start=$(cut -d' ' -f22 "/proc/$$/stat")
namespace=$(stat -Lc %i /proc/self/ns/pid)
forge "$bad" "word:288=$$" "word:296=$namespace" "word:304=$start" owner=1000
expect_ok "a region that claims to be of another user's process is refused" \
	grep -q "bad.region: claims to be of a process of another user" <("$ringside" ls 2>&1)
tap_done
