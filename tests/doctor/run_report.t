#!/usr/bin/env bash
# What `ringside run` says about its job, and that the job does not notice.
. "$(dirname "$0")/doctor.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"
sim=("$ringside" sim --gpus 3 -w loop -m flight)
lines() { # pattern
	grep -cE "$1" "$tap_scratch/err"
}
is_over() { # no reporter is left, and so is no file of theirs
	! pgrep -f "^$1 " >/dev/null && ! compgen -G "$RINGSIDE_SHM/.ringside-report-*" >/dev/null
}
# A copy of the program, so that its reporters can be found.
tool=$tap_scratch/run-it/ringside
mkdir "$tap_scratch/run-it"
ln "$ringside" "$tool" 2>/dev/null || cp "$ringside" "$tool"
run=("$tool" run --plugin "$BUILD/libnccl-profiler-ringside.so")
start="^ringside run: recording 3 of 3 ranks of job sim-1 here \(mode flight, NCCL profiler interface v5, a share of the calls timed by CUDA events\) in $RINGSIDE_SHM/ringside-[0-9]+$"

# ---- a job that ends well

# What was printed; its start has a number that differs.
printed() { sed -E "s|$start|what is recorded|" "$tap_scratch/err"; }
has_said() { # pattern
	[ "$(lines "$1")" -gt 0 ]
}
# A job that ends well, but not before it was reported: on a busy machine that takes a while.
play_until_reported() { # how it is run...
	local pid
	: >"$tap_scratch/err"
	rm -f "$tap_scratch/enough"
	# shellcheck disable=SC2016 # bash expands it
	"$@" -- bash -c '"${@:2}" & until [ -e "$1" ]; do sleep 0.1; done; kill -TERM $!; wait $!; exit 6' bash "$tap_scratch/enough" \
		"${sim[@]}" --seconds 600s >/dev/null 2>"$tap_scratch/err" &
	pid=$!
	started+=("$pid")
	until_ok has_said '^ringside run: recording'
	: >"$tap_scratch/enough"
	wait "$pid"
}
play_until_reported "${run[@]}"
expect_same "the exit code" $? 6
expect_ok "the reporter ends" until_ok is_over "$tool"
expect_same "one line says what is recorded, and nothing else is printed" "$(printed)" "what is recorded"
play_until_reported "${run[@]}" -- "${run[@]}"
until_ok is_over "$tool"
expect_same "two reporters for one job: one line" "$(printed)" "what is recorded"
for off in "RINGSIDE_REPORT=0" "RINGSIDE_MODE=off"; do
	env "$off" "${run[@]}" -- "${sim[@]}" --seconds 3s >/dev/null 2>"$tap_scratch/err"
	until_ok is_over "$tool"
	expect_same "$off: not a word" "$(cat "$tap_scratch/err")" ""
done
"${run[@]}" --no-report -- "${sim[@]}" --seconds 3s >/dev/null 2>"$tap_scratch/err"
expect_same "--no-report: not a word" "$(cat "$tap_scratch/err")" ""
expect_same "a command without NCCL: not a word" "$("${run[@]}" -- sh -c 'echo out; exit 7' 2>&1; echo $?)" "out
7"

# ---- the job does not notice

expect_same "it has no child that it did not start" "$("${run[@]}" -- python3 -c '
import os
try:
    print("a child:", os.wait())
except ChildProcessError:
    print("none")' 2>&1)" none
expect_same "and no file that it did not open" "$("${run[@]}" -- sh -c 'ls /proc/self/fd')" "$(sh -c 'ls /proc/self/fd')"
"${run[@]}" -- sleep 1000 &
pid=$!
until_ok grep -q '^sleep$' "/proc/$pid/comm"
kill -TERM "$pid"
wait "$pid"
expect_same "a signal ends the command" $? 143
expect_same "its output is closed when it ends" "$(timeout 20 "${run[@]}" -- echo "the end")" "the end"
cat >"$tap_scratch/full.py" <<'END'
import fcntl, os, subprocess, sys
read, write = os.pipe()
fcntl.fcntl(write, fcntl.F_SETFL, os.O_NONBLOCK)
try:
    while True:
        os.write(write, b"x" * 4096)
except BlockingIOError:
    pass
fcntl.fcntl(write, fcntl.F_SETFL, 0)
print(subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=write, check=False).returncode)
END
expect_same "standard error is full: the job ends all the same" \
	"$(timeout 100 python3 "$tap_scratch/full.py" "${run[@]}" -- "${sim[@]}" --seconds 5s)" 0
expect_ok "and so does the reporter" until_ok is_over "$tool"

# ---- a job that hangs, and is then killed

"${run[@]}" -- "${run[@]}" -- "${sim[@]}" -f never-arrives:rank=1 --at 1s --seconds 600s >/dev/null 2>"$tap_scratch/err" &
pid=$!
started+=("$pid")
# It has a number if there is another: on a busy machine the job was slow, too.
expect_ok "a hang: the verdict appears" until_ok has_said '^error +(1\. )?rank 1 has not called'
# It sleeps most of the time. The verdict is printed once, at whatever moment that is.
expect_ok "with the place of the rank" until_ok has_said '^ +- Rank 1 is (asleep in clock_nanosleep|running)'
kill -TERM "$pid"
wait "$pid"
expect_ok "the reporter ends" until_ok is_over "$tool"
expect_same "it appeared once" "$(lines '^error ') $(lines '^ringside run: the job may hang:$') $(lines '^ringside run: ')" "1 1 2"

# ---- a rank that dies, and a command that dies with its ranks

"${run[@]}" -- sh -c '"$@"; exit 5' sh "${sim[@]}" -f kill:rank=2 --at 3s --seconds 60s >/dev/null 2>"$tap_scratch/err"
code=$?
expect_same "a rank dies: the exit code of the command" "$code" 5
until_ok is_over "$tool"
# Where the machine is so busy that the reporter gets nothing of it in a minute, it says so at the end, and may have missed a rank.
summary() {
	sed -nE "s|${start/3 of/[23] of}|what is recorded|
		s/^ringside run: (the job may hang|the command has ended, and .* did not end by themselves(; [^:]*)?):/a verdict/
		s/^error +(1\. )?(rank 2 is dead);.*/\2/
		/^(what is recorded|a verdict|rank 2 is dead|ringside .*|error .*|dead .*)\$/p" "$tap_scratch/err"
}
expect_same "one verdict" "$(summary)" $'what is recorded\na verdict\nrank 2 is dead'

# A launcher ends the other ranks right after one has died, faster than heartbeats show.
cat >"$tap_scratch/launcher" <<'END'
"${@:2}" & sim=$!
until [ -e "$1" ]; do sleep 0.1; done
mapfile -t ranks < <("$2" ls -q --json | python3 -c 'import json, sys
for process in sorted(json.load(sys.stdin)["processes"], key=lambda one: one["rank"]):
    if process["state"] == "alive":
        print(process["pid"])')
kill -STOP $sim
kill -SEGV "${ranks[2]}"
sleep 0.3
kill -9 "${ranks[0]}" "${ranks[1]}" $sim
sleep 1
END
: >"$tap_scratch/err"
rm -f "$tap_scratch/enough"
"${run[@]}" -- bash "$tap_scratch/launcher" "$tap_scratch/enough" "${sim[@]}" --seconds 600s >/dev/null 2>"$tap_scratch/err" &
started+=($!)
until_ok has_said '^ringside run: recording'
: >"$tap_scratch/enough"
wait $!
until_ok is_over "$tool"
expect_ok "who died first, though the others were ended at once" \
	grep -qE "did not end by themselves; rank 2 \(pid [0-9]+\) ended first, [0-9.]+ (ms|s) before the others:$" "$tap_scratch/err"
tap_done
