#!/usr/bin/env bash
# Where processes are in their program: real processes in known places, a stand-in for py-spy (fake_py_spy) or one that
# misbehaves, and processes that must not be touched.
. "$(dirname "$0")/doctor.sh"
command -v "${CC:-gcc}" >/dev/null || tap_skip_all "there is no compiler"
job=$tap_scratch/stacks_job
"${CC:-gcc}" -D_GNU_SOURCE -O0 -o "$job" tests/doctor/stacks_job.c -lpthread || exit 1
tools=$tap_scratch/tools
mkdir "$tools"
# Only what a test puts there: other machines may have eu-stack, gdb and py-spy.
sane=$tools:$tap_scratch/none

start() { # what: in $pid
	rm -f "$tap_scratch/out"
	"$job" "$@" >"$tap_scratch/out" &
	pid=$!
	started+=("$pid")
	until_ok test -s "$tap_scratch/out"
}
stop() {
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
}
stacks() { # option...
	PATH=$sane "$ringside" stacks "$@"
}
is_in() { # pattern [option...]: the process comes to be there
	grep -qE "^pid $pid: $1$" <(stacks --brief "${@:2}" "@$pid")
}
state() {
	sed -E 's/.*\) (.).*/\1/' "/proc/$pid/stat"
}
tool() { # name < script
	{ echo '#!/bin/sh'; echo 'PATH=/usr/bin:/bin'; cat; } >"$tools/$1"
	chmod +x "$tools/$1"
}

# ---- /proc alone

start sleep
expect_ok "a process that sleeps" until_ok is_in 'asleep in clock_nanosleep'
expect_ok "by its number alone, too" grep -q "^pid $pid: asleep" <(stacks --brief "$pid")
expect_same "in JSON" "$(stacks --json "@$pid" | python3 -c '
import json, sys
process = json.load(sys.stdin)["processes"][0]
thread = process["threads"][0]
print(process["place"], "|", thread["state"], thread["syscall"], thread["is_main"], thread["frames"], process["problem"])')" \
	"asleep in clock_nanosleep | S clock_nanosleep True [] None"
stop
start read
expect_ok "one that reads from a pipe" until_ok is_in 'asleep in read from a pipe'
stop
start futex
expect_ok "one that waits for a lock" until_ok is_in 'asleep in futex'
expect_same "all threads are listed" "$(stacks "@$pid" | grep -c '^  thread ')" 2
stop
start threads
expect_same "at most 1024, and how many more there are" "$(stacks "@$pid" | grep -E '^  [0-9]+ more threads$')" "  76 more threads"
stop
start socket
port=$(sed -n 's/^port //p' "$tap_scratch/out")
expect_ok "one that waits for a peer, and who that is" until_ok is_in "asleep in read from a socket to 127.0.0.1:$port"
stop
start spin
expect_ok "one that computes" until_ok is_in running
stop
expect_ok "a process that is gone" grep -q "^pid $pid: could not tell: no such process$" <(stacks --brief "@$pid")
expect_same "exit code: could not tell" "$(stacks "@$pid" >/dev/null; echo $?)" 3
expect_refusal "not a process" 2 "'x' is not a process: use @PID" "$ringside" stacks x

# ---- who may

start sleep
expect_ok "RINGSIDE_STACKS=0 here" grep -q ': could not tell: RINGSIDE_STACKS=0$' <(RINGSIDE_STACKS=0 stacks --brief "@$pid")
stop
RINGSIDE_STACKS=0 start sleep
expect_ok "RINGSIDE_STACKS=0 in its environment" \
	grep -q ': could not tell: RINGSIDE_STACKS=0 in its environment$' <(stacks --brief "@$pid")
stop
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$tap_scratch" "$job"
	start sleep
	cp "$ringside" "$tap_scratch/tool"
	expect_ok "another user's process is not read" grep -q ': could not tell: it belongs to another user$' \
		<(cd / && RINGSIDE_SHM=/nowhere setpriv --reuid 65534 --regid 65534 --clear-groups "$tap_scratch/tool" stacks --brief "@$pid")
	stop
	as_nobody() { # option...
		rm -f "$tap_scratch/out"
		setpriv "$@" "$job" sleep >"$tap_scratch/out" &
		pid=$!
		started+=("$pid")
		until_ok test -s "$tap_scratch/out"
	}
	as_nobody --reuid 65534 --regid 65534 --clear-groups
	expect_ok "not even by root" grep -q ': could not tell: it belongs to another user (--any-user reads it)$' <(stacks --brief "@$pid")
	expect_ok "unless root asks for it" until_ok is_in 'asleep in clock_nanosleep' --any-user
	stop
	as_nobody --euid 65534
	expect_ok "a process that changed its rights is not read" grep -q 'it belongs to another user' <(stacks --brief "@$pid")
	stop
fi

# ---- py-spy

place='in torch/utils/data/dataloader.py:1130 in __next__ < /home/u/train.py:88 in step < /home/u/train.py:120 in <module>'
start sleep
tool py-spy <<END
echo "\$@" >$tap_scratch/words
exec '$PWD/tests/doctor/fake_py_spy' "\$@"
END
expect_ok "Python frames: the innermost one that is not only waiting" until_ok is_in "$place \(asleep in clock_nanosleep\)"
expect_same "py-spy runs without stopping the process" "$(cat "$tap_scratch/words")" "dump --json --nonblocking --pid $pid"
stop
start futex
until_ok is_in "$place \(asleep in futex\)"
threads() { # version of Python
	PYTHON=$1 stacks --json "@$pid" | python3 -c '
import json, sys
for thread in json.load(sys.stdin)["processes"][0]["threads"]:
    print(thread["tid"] == int(sys.argv[1]), thread["is_main"], thread["state"], thread["name"] or "?", (thread["frames"] or [{}])[0].get("function"))' "$pid" | sort
}
expect_same "two threads, by their ids" "$(threads 3.12)" "False False S loader get
True True S MainThread wait"
expect_same "without ids, only the main thread is known by its name" "$(threads 3.10)" "False False None loader get
False False S stacks_job None
True True S MainThread wait"
expect_same "without names, by its place in the list" "$(threads 2.7)" "False False None ? get
False False S stacks_job None
True True S stacks_job wait"
expect_ok "a thread that has neither" grep -q '^  thread (unknown): ?$' <(PYTHON=2.7 stacks "@$pid")
stop
if unshare -pf true 2>/dev/null; then
	rm "$tap_scratch/out"
	unshare -pf --kill-child "$job" futex >"$tap_scratch/out" 2>/dev/null &
	started+=($!)
	until_ok test -s "$tap_scratch/out"
	pid=$(pgrep -P $!)
	until_ok is_in "$place \(asleep in futex\)"
	expect_same "in a container, by their ids there" "$(threads 3.12)" "False False S loader get
True True S MainThread wait"
	kill -9 "$pid"
fi
start sleep
broken() { # sentence complaint < script
	tool py-spy
	PATH=$tools:/usr/bin:/bin "$ringside" stacks --no-stop "@$pid" >"$tap_scratch/said" 2>&1
	expect_ok "$1" grep -qF "($2)" "$tap_scratch/said"
	expect_ok "and /proc is still there" grep -q "^pid $pid: asleep in clock_nanosleep$" "$tap_scratch/said"
}
broken "a py-spy that fails" "py-spy failed" <<'END'
exit 1
END
broken "one that says why" "py-spy failed: Permission Denied: Try running again" <<'END'
printf 'Error: Permission Denied: Try running again\nReason: two\n' >&2
exit 1
END
broken "with what no terminal may get" "py-spy failed: a?[31mb" <<'END'
printf 'a\033[31mb' >&2
exit 1
END
broken "one that complains without end" "py-spy failed: $(yes complaint | tr '\n' ' ' | head -c 95)" <<'END'
yes complaint | tr '\n' ' ' | head -c 300000 >&2
exit 1
END
tool py-spy <<END
echo >>'$tap_scratch/tries'
[ "\$(wc -l <'$tap_scratch/tries')" -gt 3 ] || exit 1
exec '$PWD/tests/doctor/fake_py_spy' "\$@"
END
# A busy machine may have no time for so many.
tried() { # times pattern
	rm -f "$tap_scratch/tries"
	is_in "$2" --no-stop && [ "$(wc -l <"$tap_scratch/tries")" = "$1" ]
}
expect_ok "one that fails three times" until_ok tried 4 "$place \(asleep in clock_nanosleep\)"
tool py-spy <<END
echo >>'$tap_scratch/tries'
exit 1
END
expect_ok "one that always fails: five times" until_ok tried 5 'asleep in clock_nanosleep'
tool py-spy <<END
echo >>'$tap_scratch/tries'
kill -9 \$\$
END
expect_ok "one that is killed: once" tried 1 'asleep in clock_nanosleep'
broken "one that prints something else" "py-spy shows no frames" <<'END'
echo '{"frames": [}'
END
broken "one that never stops printing" "py-spy wrote too much" <<'END'
exec yes '[{"thread_name": "MainThread"},'
END
broken "one that hangs, with a child that holds its output open" "py-spy took too long" <<'END'
sleep 1000 &
exec sleep 1000
END
broken "one that closes its output and hangs" "py-spy took too long" <<'END'
exec >/dev/null
exec sleep 1000
END
expect_same "and leaves nothing behind" "$(pgrep -cf '^sleep 1000$')" 0
broken "one that is killed" "py-spy failed" <<'END'
kill -9 $$
END
tool py-spy <<END
kill -9 $pid
exec '$PWD/tests/doctor/fake_py_spy' "\$@"
END
expect_ok "the process dies meanwhile: nothing is shown" grep -q ": could not tell: the process has ended$" \
	<(PATH=$tools:/usr/bin:/bin "$ringside" stacks --brief --no-stop "@$pid")
wait "$pid" 2>/dev/null
rm "$tools/py-spy"

# ---- native frames: the process is stopped, and goes on

for name in eu-stack gdb; do
	path=$(command -v $name) || continue
	ln -s "$path" "$tools/$name"
	start sleep
	stacks "@$pid" >"$tap_scratch/said"
	expect_ok "$name: frames, or it was ended in time" grep -qE 'in .*clock_nanosleep.* < .*main.* \(asleep in|would have stopped it for too long' "$tap_scratch/said"
	# A busy machine may be too slow for the time limit once, and gdb always.
	has_frames() {
		grep -qE '^ {6}.*main' <(stacks "@$pid")
	}
	[ $name = gdb ] || expect_ok "$name: frames, at the latest when the machine has time" until_ok has_frames
	expect_ok "$name: the process goes on" until_ok test "$(state)" = S
	expect_same "--no-stop: it is not run" "$(stacks --no-stop "@$pid" | grep -cE "^ {6}|$name")" 0
	kill -STOP "$pid"
	until_ok grep -q ') T ' "/proc/$pid/stat"
	expect_ok "$name is not run on a stopped process" grep -q 'not stopped for its native frames: a thread is in state T' <(stacks "@$pid")
	expect_same "which stays stopped" "$(state)" T
	stop
	rm "$tools/$name"
done
tool eu-stack <<END
exec $job attach \$(echo "\$@" | grep -oE '[0-9]+\$')
END
start spin
stacks "@$pid" >"$tap_scratch/said"
expect_ok "a tool that does not let go is killed" grep -q "eu-stack would have stopped it for too long" "$tap_scratch/said"
is_running() {
	[ "$(state)" = R ] && grep -q '^TracerPid:.0$' "/proc/$pid/status"
}
expect_ok "and the process runs" until_ok is_running
stop
start vfork
expect_ok "a process in uninterruptible sleep" until_ok grep -q ') D ' "/proc/$pid/stat"
expect_ok "is not stopped" grep -q 'not stopped for its native frames: a thread is in state D' <(stacks "@$pid")
pkill -9 -P "$pid"
rm "$tools/eu-stack"

# ---- in the verdict

cp tests/doctor/fake_py_spy "$tools/py-spy"
"$ringside" sim --gpus 3 -w loop -f never-arrives:rank=1 --at 1s --seconds 300s -m flight >/dev/null 2>&1 &
started+=($!)
hung() {
	PATH=$tools:$PATH "$ringside" doctor --hang 1s "$@" | tr -s ' \n' ' '
}
is_hung() {
	grep -qE 'error (1\. )?rank 1 has not called' <(hung)
}
expect_ok "a hung job" until_ok is_hung
# Simulated ranks wake up now and then, and are running for that moment.
are_asleep() {
	hung >"$tap_scratch/line"
	[ "$(grep -o 'asleep in clock_nanosleep' "$tap_scratch/line" | wc -l)" -eq 2 ]
}
until_ok are_asleep
expect_ok "the rank that did not call: where it is" \
	grep -qF -e "- Rank 1 is $place (asleep in clock_nanosleep), " "$tap_scratch/line"
expect_ok "those that wait, in one line" grep -qF -e "- Ranks 0, 2 are $place (asleep in clock_nanosleep)." "$tap_scratch/line"
expect_same "not with --no-stacks" "$(hung --no-stacks | grep -c dataloader)" 0
expect_same "nor with RINGSIDE_STACKS=0" "$(RINGSIDE_STACKS=0 hung | grep -c dataloader)" 0
expect_ok "one line for each rank" grep -qE "^pid [0-9]+, rank 2 of sim-1: $place" <(PATH=$tools:$PATH "$ringside" stacks --brief --rank 2)
is_bundled_asleep() {
	PATH=$tools:$PATH "$ringside" bundle --no-ras -o "$tap_scratch/bundle.tar" >/dev/null 2>&1
	grep -qE "^pid [0-9]+, rank 1 of sim-1: .*asleep" <(tar -xOf "$tap_scratch/bundle.tar" ringside-bundle/stacks.txt)
}
until_ok is_bundled_asleep
expect_ok "a bundle has them" grep -qE "^pid [0-9]+, rank 1 of sim-1: $place" <(tar -xOf "$tap_scratch/bundle.tar" ringside-bundle/stacks.txt)
expect_ok "and so has the doctor that reads it elsewhere" \
	grep -qF -e "- Rank 1 is $place (asleep in clock_nanosleep), " <("$ringside" doctor --hang 1s "$tap_scratch/bundle.tar" | tr -s ' \n' ' ')
tap_done
