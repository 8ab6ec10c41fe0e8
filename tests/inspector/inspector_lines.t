#!/usr/bin/env bash
# With NCCL Inspector's variables the plugin writes Inspector's log: its location, its contents, every operation.
. "$(dirname "$0")/inspector.sh"
reader=(python3 "$PWD/tests/inspector/inspector_lines.py")
steady=(nodes=2 ahead=32)

# Location.
in_place() { # directory option...
	(cd "$1" && shift && run_on_gpu "$@")
}
unset NCCL_INSPECTOR_DUMP_DIR
for case in "unknown-jobid" "77 SLURM_JOB_ID=77 SLURM_JOBID=78" "78 SLURM_JOBID=78"; do
	read -r directory settings <<<"$case"
	fresh
	rm -rf "$tap_scratch/here" && mkdir "$tap_scratch/here"
	# shellcheck disable=SC2086,SC2163 # none, one or two
	(export PATH $settings && in_place "$tap_scratch/here" ops=500 "${steady[@]}")
	expect_same "D4: with only the switch (${settings:-no job}) there is a log in Inspector's place" \
		"$(cd "$tap_scratch/here" && find . -type f)" \
		"./nccl-inspector-$directory/$(hostname)-pid$(truth pid).log"
	files=$tap_scratch/here/nccl-inspector-$directory
	expect_same "and everything in it" "$(lines)" 500
	expect_same "world-readable" "$(stat -c %a "$(log)")" 644
done
files=$tap_scratch/files
# The shell makes a link under the log's name, then becomes the job.
rm -rf "$files" && mkdir "$files"
real=$job
job=$tap_scratch/linked
# shellcheck disable=SC2016
printf '#!/bin/sh\nln -s %s/victim %s/$(hostname)-pid$$.log\nexec "%s" "$@"\n' "$tap_scratch" "$files" "$real" >"$job"
chmod +x "$job"
NCCL_INSPECTOR_DUMP_DIR=$files run_on_gpu ops=500 "${steady[@]}"
job=$real
expect_same "a link in its place is not followed, and the job runs" "$(find "$tap_scratch/victim" "$files" -type f 2>/dev/null)$(truth issued)" 500
rm -rf "$files"

# Contents.
RINGSIDE_MODE=trace inspect ops=3000 p2p=1 "${steady[@]}"
expect_ok "every line has every field of v4.0, in order" "${reader[@]}" shape "$(log)"
# Lines modeled on Inspector's source, except one with an unknown function.
sed '/Teleport/,$d' tests/foreign/data/inspector-v4.0.log >"$tap_scratch/theirs.log"
expect_ok "the same reader accepts Inspector's lines" "${reader[@]}" shape "$tap_scratch/theirs.log"
expect_ok "and its verbose ones" "${reader[@]}" shape verbose tests/foreign/data/inspector-v4.0-verbose.log
expect_account "every operation is in the log"
expect_same "all of them" "$(lines)" "$(truth issued)"
expect_ok "collectives are numbered as NCCL does" "${reader[@]}" numbers "$(log)"
expect_facts "the recording has them too" operations=issued lost=0 exact=1 closed=1
if [ -x "$tool" ]; then
	expect_ok "ringside export makes a log of the recording" \
		"$tool" export "$RINGSIDE_DIR" --format inspector -o "$tap_scratch/exported/"
	expect_ok "the same lines as ringside export makes of the recording" \
		"${reader[@]}" same "$(log)" "$(find "$tap_scratch/exported" -name '*.log')"
	# What our import finds in it; the time of writing differs.
	read_with_tool() { # log
		"$tool" dump "$1" | sed -E 's/"[a-z_]+_ns":[0-9]+//g; s/"(sequence|path)":[^,}]*//g' | sort
	}
	read_with_tool "$(log)" >"$tap_scratch/ours"
	read_with_tool "$(find "$tap_scratch/exported" -name '*.log')" >"$tap_scratch/theirs"
	expect_same "one reader finds as many in both" "$(wc -l <"$tap_scratch/ours")" "$(truth issued)"
	expect_ok "and the same" diff "$tap_scratch/ours" "$tap_scratch/theirs"
	rm -r "$tap_scratch/exported"
fi
inspect ops=600 name='a "b" \ c' "${steady[@]}"
expect_ok "a name that needs quoting does not break a line" "${reader[@]}" shape "$(log)"
# With a current Broadcast NCCL's counters would drift at the first one, and all later GPU times would be rejected.
RINGSIDE_TIMES=kernel NCCL_ALLGATHERV_ENABLE=0 inspect ops=600 release=2.31 "${steady[@]}"
expect_account "NCCL 2.31: all there"
# Where the machine pauses within an operation, its stamps do not fit its calls and are not used.
expect_ok "with NCCL's own GPU times where they are requested" test "$(grep -c '"kernel_gpu"' "$(log)")" -ge 590

# This job has a CUDA driver: every launch is timed, because Inspector's users expect a line for each call.
if [ -x "$tool" ]; then
	rm -rf "$files"
	RINGSIDE_TIMES=auto NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$files NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=1 "$tool" sim --nodes 1 \
		--gpus 2 -w loop --release 2.30 --seconds 3s -o "$tap_scratch/simulated" >/dev/null 2>&1
	expect_ok "inside a node every call has a GPU time by default" \
		test "$(cat "$files"/*.log | grep -c '"kernel_gpu"')" -ge 100
	rm -rf "$files"
fi

RINGSIDE_TIMES=kernel NCCL_INSPECTOR_DUMP_VERBOSE=1 inspect ops=1500 channels=3 p2p=1 "${steady[@]}"
expect_ok "verbose: with events of each channel, if kernel events are requested" "${reader[@]}" shape verbose "$(log)"
expect_account "verbose: all there"

# What is omitted.
NCCL_INSPECTOR_ENABLE_P2P=0 inspect ops=900 p2p=1 "${steady[@]}"
expect_same "ENABLE_P2P=0: no Send, no Recv" "$(lines) $(grep -c p2p_perf "$(log)")" "300 0"
expect_same "and that is reported" "$(reported 'Send and Recv')" 600
NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=8192 inspect ops=1100 "${steady[@]}"
expect_account "MIN_SIZE_BYTES=8192: the small ones are reported"
expect_same "and omitted" "$(reported 'below the minimum size') $(grep -cE 'msg_size_bytes":[0-9]{1,3},|:4096,' "$(log)")" "100 0"
NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=1 RINGSIDE_TIMES=off inspect ops=500 "${steady[@]}"
expect_same "REQUIRE_KERNEL_TIMING=1: nothing timed by the host" "$(lines) $(reported 'timed by the host only')" "0 500"
RINGSIDE_TIMES=off inspect ops=500 "${steady[@]}"
expect_same "nor without it" "$(lines) $(reported 'timed by the host only')" "0 500"
NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=0 RINGSIDE_TIMES=off inspect ops=500 "${steady[@]}"
expect_same "REQUIRE_KERNEL_TIMING=0: with their source" "$(lines) $(grep -c '"kernel_cpu"' "$(log)")" "500 500"
RINGSIDE_TIMES=kernel NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=0 inspect ops=20000
expect_account "REQUIRE_KERNEL_TIMING=0, too many at once for NCCL's stamps: all there or reported"
echo "# $(lines) lines, $(grep -c collective_cpu "$(log)") of them bounds"

# Combined with the recorder's own settings.
for mode in flight profile trace full; do
	RINGSIDE_MODE=$mode inspect ops=1000 "${steady[@]}"
	expect_same "mode $mode: all lines" "$(lines)" 1000
	expect_facts "mode $mode: nothing is taken away" totals=issued lost=0
done
RINGSIDE_DISABLE=1 inspect ops=10
expect_same "RINGSIDE_DISABLE wins" "$(lines)" 0
for off in NCCL_INSPECTOR_ENABLE NCCL_INSPECTOR_DUMP_THREAD_ENABLE; do
	(export "$off=0" && inspect ops=10)
	expect_same "$off=0: no file" "$(find "$files" -type f | wc -l)" 0
done
RINGSIDE_QUOTA=1MiB inspect ops=8000 "${steady[@]}"
expect_account "RINGSIDE_QUOTA applies to the log: the rest is counted as lost"
expect_same "and the log is within it" "$(($(reported lost) > 0 && $(stat -c %s "$(log)") <= 1048576))" 1

# Wrong values.
for wrong in ENABLE_P2P=yes DUMP_VERBOSE=x PROM_DUMP=maybe DUMP_MIN_SIZE_BYTES=-1 DUMP_MIN_SIZE_BYTES=8k \
	DUMP_THREAD_INTERVAL_MICROSECONDS=soon REQUIRE_KERNEL_TIMING=1.5; do
	(export "NCCL_INSPECTOR_$wrong" && inspect ops=100 "${steady[@]}")
	expect_same "$wrong: one line, and the default" "$(grep -c "NCCL_INSPECTOR_${wrong%%=*}=${wrong#*=} is not" "$messages") $(lines)" "1 100"
done

# Intervals: until the end, or at once.
NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=-1 inspect ops=1000 "${steady[@]}" end=exit
expect_same "interval -1: all there at the end" "$(lines)" 1000
mkfifo "$tap_scratch/hold"
fresh_files
NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 run_on_gpu ops=1000 "${steady[@]}" end=hold <"$tap_scratch/hold" &
running=$!
exec 9>"$tap_scratch/hold"
until_ok eval '[ "$(lines)" = 1000 ]'
expect_same "interval 500: all there while the job lives, including the last ones" "$(lines)" 1000
exec 9>&-
wait $running
expect_same "and not once more at the end" "$(lines)" 1000

# An existing log: of another process with this name, in another container.
if [ -z "${SANITIZED:-}" ] && unshare -pf true 2>/dev/null; then
	fresh_files
	job_alone() {
		LD_LIBRARY_PATH=$tap_scratch/lib LD_PRELOAD=libcuda.so.1 unshare -pf "$job" ops=100 "${steady[@]}" \
			>"$said" 2>"$messages"
	}
	job_alone
	printf torn >>"$(log)"
	cp "$(log)" "$tap_scratch/before"
	job_alone
	expect_same "existing content is not overwritten" \
		"$(head -c "$(stat -c %s "$tap_scratch/before")" "$(log)" | cmp - "$tap_scratch/before" 2>&1)" ""
	expect_same "a torn line ends there, and the next one is whole" "$(lines) $(grep -c '^{.*}$' "$(log)")" "201 200"
else
	expect_skip "existing content is not overwritten" "no namespaces"
fi
tap_done
