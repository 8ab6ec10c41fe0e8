#!/usr/bin/env bash
# Output files are complete or absent, with no leftovers, however the command ends. Both ways: unnamed files (O_TMPFILE),
# and temporary names if the file system does not support these.
. "$(dirname "$0")/cli.sh"

# A preloaded library that replaces system calls. SHIM_NAMED: unnamed files are not supported. SHIM_REFUSED: they are, but
# naming them fails. SHIM_MASKLESS: the umask does not apply to them. SHIM_END: raises this signal when the file is complete
# but not yet named. SHIM_TOLD: log of these actions.
"${CC:-cc}" -shared -fPIC -D_GNU_SOURCE -x c -o "$tap_scratch/shim.so" - <<'END' || exit 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void end(void) { if (getenv("SHIM_END")) raise(atoi(getenv("SHIM_END"))); }
static void tell(const char *what)
{
	int fd = getenv("SHIM_TOLD") ? (int)syscall(SYS_openat, AT_FDCWD, getenv("SHIM_TOLD"), O_WRONLY | O_APPEND) : -1;

	if (fd != -1 && write(fd, what, strlen(what)) > 0)
		close(fd);
}
int open(const char *path, int flags, ...)
{
	int is_nameless = (flags & O_TMPFILE) == O_TMPFILE, fd;
	mode_t mask = umask(0), mode = 0;
	va_list list;

	va_start(list, flags);
	if (is_nameless || (flags & O_CREAT))
		mode = va_arg(list, mode_t);
	va_end(list);
	if (!is_nameless || !getenv("SHIM_MASKLESS"))
		umask(mask);
	if (is_nameless && getenv("SHIM_NAMED"))
		return errno = EOPNOTSUPP, -1;
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	umask(mask);
	return fd;
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int fsync(int fd)
{
	tell("disk ");
	return (int)syscall(SYS_fsync, fd);
}
int linkat(int from, const char *path, int to, const char *name, int flags)
{
	end();
	if (getenv("SHIM_REFUSED"))
		return errno = EPERM, -1;
	tell("link ");
	return (int)syscall(SYS_linkat, from, path, to, name, flags);
}
int rename(const char *path, const char *name)
{
	end();
	tell("rename ");
	return (int)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, name, 0);
}
END
kept=$PWD/tests/bench/data/h200-shared.json
here=$tap_scratch/here

write() { # file [variable...]
	local file=$1
	shift
	{
		env --default-signal=INT "$@" LD_PRELOAD="$tap_scratch/shim.so" "$ringside" bench --from "$kept" -o "$file" >/dev/null 2>"$tap_scratch/err"
		code=$?
	} 2>/dev/null # the shell tells of signals
}
left() {
	(cd "$here" && find . -mindepth 1 | sort | tr '\n' ' ')
}
fresh() {
	rm -rf "$here"
	mkdir "$here"
}
fresh
has_nameless=$(python3 -c 'import os, sys
try: os.close(os.open(sys.argv[1], os.O_TMPFILE | os.O_WRONLY)); print(1)
except OSError: print(0)' "$here" 2>/dev/null)

for way in NAMELESS NAMED; do
	fresh
	write "$here/a.json" SHIM_$way=1
	expect_same "$way: a new file" "$code $(left)" "0 ./a.json "
	size=$(stat -c %s "$here/a.json")
	expect_same "$way: permissions follow the umask" "$(stat -c %a "$here/a.json")" "$(printf '%o' $((0666 & ~$(umask))))"
	echo old >"$here/a.json"
	chmod 640 "$here/a.json"
	ln -s a.json "$here/link.json"
	write "$here/link.json" SHIM_$way=1
	expect_same "$way: replaces a file through a link and keeps its permissions" \
		"$code $(left)$(stat -c '%a %s' "$here/a.json") $(readlink "$here/link.json")" "0 ./a.json ./link.json 640 $size a.json"
	(cd "$here" && env LD_PRELOAD="$tap_scratch/shim.so" SHIM_$way=1 "$ringside" bench --from "$kept" -o plain.json >/dev/null)
	expect_same "$way: replaces a file" "$(left)" "./a.json ./link.json ./plain.json "
	fresh
	echo old >"$here/a.json"
	(
		echo its >"$here/.ringside-$BASHPID-0.part"
		exec env LD_PRELOAD="$tap_scratch/shim.so" SHIM_$way=1 "$ringside" bench --from "$kept" -o "$here/a.json" >/dev/null 2>"$tap_scratch/err"
	)
	expect_same "$way: leftovers of a killed process with the same pid do no harm" \
		"$? $(cat "$here"/.ringside-*-0.part) $(stat -c %s "$here/a.json")" "0 its $size"
	fresh
	for signal in 2 15 1; do
		write "$here/a.json" SHIM_$way=1 SHIM_END=$signal
		expect_same "$way: signal $signal leaves nothing" "$code $(left)" "$((128 + signal)) "
	done
	echo old >"$here/a.json"
	write "$here/a.json" SHIM_$way=1 SHIM_END=15
	expect_same "$way: and the old file stays" "$code $(left)$(cat "$here/a.json")" "143 ./a.json old"
	fresh
	(ulimit -f 8 && write "$here/a.json" SHIM_$way=1 && exit $code)
	expect_same "$way: a file size limit is reported" "$? $(left)$(grep -c 'cannot write .*: File too large' "$tap_scratch/err")" "3 1"
done
steps() { # file [variable...]: what was done to it, in turn
	: >"$tap_scratch/steps"
	write "$@" SHIM_TOLD="$tap_scratch/steps"
	echo "$code $(cat "$tap_scratch/steps")"
}
fresh
expect_same "what takes its place is on the disk" "$(steps "$here/a.json" SHIM_NAMED=1)" "0 disk rename "
if [ "$has_nameless" = 1 ]; then
	fresh
	write "$here/a.json" SHIM_END=9
	expect_same "SIGKILL leaves nothing" "$code $(left)" "137 "
	expect_same "what has a name is on the disk" "$(steps "$here/a.json")" "0 disk link "
	expect_same "also if it replaces a file" "$(steps "$here/a.json")" "0 disk link link rename "
	fresh
	expect_same "a file that cannot be named is copied and flushed to disk" \
		"$(steps "$here/a.json" SHIM_REFUSED=1) $(left)$(stat -c %s "$here/a.json")" "0 disk disk rename  ./a.json $size"
	expect_same "permissions follow the umask, and one line reports it" \
		"$(stat -c %a "$here/a.json") $(grep -c . "$tap_scratch/err") $(grep -c 'a.json was written as a copy, .*: Operation not permitted' "$tap_scratch/err")" \
		"$(printf '%o' $((0666 & ~$(umask)))) 1 1"
	echo old >"$here/a.json"
	chmod 640 "$here/a.json"
	write "$here/a.json" SHIM_REFUSED=1
	expect_same "also if it replaces a file" "$code $(left)$(stat -c '%a %s' "$here/a.json")" "0 ./a.json 640 $size"
	fresh
	(umask 027 && write "$here/a.json" SHIM_MASKLESS=1)
	expect_same "the umask counts where the kernel forgets it" "$(stat -c %a "$here/a.json")" 640
fi

fresh
mkfifo "$here/pipe"
timeout 60 sh -c 'wc -c <"$1"' - "$here/pipe" >"$tap_scratch/bytes" &
reader=$!
timeout 60 "$ringside" bench --from "$kept" -o "$here/pipe" >/dev/null
code=$?
wait $reader
expect_same "whoever reads a pipe gets all of it" "$code $(($(cat "$tap_scratch/bytes") > 100))" "0 1"
expect_same "by a link that has no path, too" "$("$ringside" bench --from "$kept" -o >(cat >/dev/null) 2>&1 >/dev/null; echo $?)" 0
expect_complaint "a directory that is not there" "cannot write .*nowhere/a.json: No such file" \
	"$ringside" bench --from "$kept" -o "$here/nowhere/a.json"
tap_done
