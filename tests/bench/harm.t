#!/usr/bin/env bash
# What the benchmark must never do to a host or user: hang on unusual descriptors and signals, leave MPS behind, remove
# other files.
. "$(dirname "$0")/bench.sh"

few=(--ranks 2 -s 1K -n 2)

# ---- closed descriptors --------------------------------------------------------------------------

timeout 300 "$ringside" bench "${few[@]}" <&- >"$tap_scratch/out" 2>"$tap_scratch/err"
expect_same "without stdin" "$? $(grep -c all_reduce_perf "$tap_scratch/out")" "0 2"
timeout 300 "$ringside" bench "${few[@]}" >&- 2>"$tap_scratch/err"
expect_same "without stdout it fails with a message" "$? $(cat "$tap_scratch/err")" \
	"3 ringside bench: cannot write the output: Bad file descriptor"
timeout 300 "$ringside" bench "${few[@]}" >"$tap_scratch/out" 2>&-
expect_same "without stderr" "$? $(grep -c all_reduce_perf "$tap_scratch/out")" "0 2"
timeout 300 "$ringside" bench "${few[@]}" -o "$tap_scratch/f.json" <&- >&- 2>&-
expect_same "without any of them, files are written" "$? $(value 'len(cells)' "$tap_scratch/f.json")" "3 2"
expect_nothing_left "nothing is left behind"

# ---- nothing fails silently -----------------------------------------------------------------------

bench --ranks 2 -s 1
expect_same "measuring nothing is a failure" "$code $(cat "$tap_scratch/err")" \
	"3 ringside bench: nothing was measured; see the notes in the results"
rings=$(printf 'Ring,%.0s' {1..60})Ring
NCCL_ALGO=$rings bench_json "${few[@]}"
expect_same "a long NCCL_ALGO reaches NCCL unchanged" "$code $(cat "$tap_scratch/err")" "0 "

# ---- ignored signals -----------------------------------------------------------------------------

# Starts a job that hangs and waits until all ranks are inside.
hanging() { # command...
	FAKE_NCCL_HANG=1:4 "$@" "$ringside" bench "${few[@]}" --stuck 2 >"$tap_scratch/out" 2>"$tap_scratch/err" &
	started=$!
	until are_inside 2 || ! kill -0 $started 2>/dev/null; do :; done
}
hanging nohup
kill -HUP $started
wait $started
expect_same "under nohup SIGHUP does not end it" "$?" 3
expect_ok "it ends with its own message" grep -qE 'did not (return within|answer in time)' "$tap_scratch/err"
expect_nothing_left "nothing is left behind under nohup"

timeout 300 python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$ringside" bench "${few[@]}" >"$tap_scratch/out" 2>"$tap_scratch/err"
expect_same "ranks can be started with SIGCHLD ignored" "$? $(cat "$tap_scratch/err")" "0 "

# ---- incomplete files -----------------------------------------------------------------------------

mkdir "$tap_scratch/kept"
unfinished() { # target of the signal (started process, its first rank, all), signal
	local targets
	# Its first child is a rank only if it starts no MPS.
	FAKE_NCCL_HANG=1:4 env --default-signal=INT "$ringside" bench "${few[@]}" --no-mps -o "$tap_scratch/kept/f.json" \
		>"$tap_scratch/out" 2>"$tap_scratch/err" &
	started=$!
	until [ "$(pgrep -c -P $started)" -ge 2 ] || ! kill -0 $started 2>/dev/null; do :; done
	mapfile -t targets < <(pgrep -P $started)
	case $1 in
	started) targets=("$started") ;;
	rank) targets=("${targets[0]}") ;;
	*) targets+=("$started") ;;
	esac
	kill -"$2" "${targets[@]}" 2>/dev/null
	wait $started 2>/dev/null
	expect_nothing_left "SIG$2 to $1: no process is left"
	expect_same "SIG$2 to $1: no partial file is left" "$(ls -A "$tap_scratch/kept")" ""
}
for signal in INT TERM KILL; do
	for target in started rank all; do
		unfinished $target $signal
	done
done

# ---- MPS -----------------------------------------------------------------------------------------

# Behaves like NVIDIA's, as far as visible from outside.
mkdir "$tap_scratch/bin"
cat >"$tap_scratch/bin/nvidia-cuda-mps-control" <<'END'
#!/bin/bash
case $1 in
-d)
	echo "$CUDA_MPS_PIPE_DIRECTORY" >>"$BENCH_TEST_MARK/mps"
	"$0" daemon >/dev/null 2>&1 </dev/null &
	;;
daemon)
	echo $$ >"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
	trap 'exit 0' TERM
	while :; do sleep 0.05; done
	;;
*)
	read -r word
	[ "$word" = quit ] && kill "$(cat "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid")"
	;;
esac
END
chmod +x "$tap_scratch/bin/nvidia-cuda-mps-control"
mps_left() {
	local pipe
	while read -r pipe; do [ ! -e "${pipe%/pipe}" ] || echo -n "$pipe "; done <"$tap_scratch/mps"
}
directories_left() {
	until_ok eval '[ -z "$(mps_left)" ]'
	echo "$(wc -l <"$tap_scratch/mps") started, left: $(mps_left)"
}
PATH=$tap_scratch/bin:$PATH
bench_json "${few[@]}"
expect_same "MPS is started for ranks that share a GPU" "$code $(value "run['mps']")" "0 True"
expect_same "and stopped" "$(directories_left)" "1 started, left: "
expect_nothing_left "MPS: nothing is left behind"
hanging env
kill -KILL $started
wait $started 2>/dev/null
expect_same "a killed benchmark leaves no MPS behind" "$(directories_left)" "2 started, left: "
expect_nothing_left "killed: nothing is left behind"

# ---- memory --------------------------------------------------------------------------------------

regions_left() {
	until_ok eval '[ -z "$(ls "$RINGSIDE_SHM")" ]'
	ls "$RINGSIDE_SHM"
}
FAKE_NCCL_HANG=1:4 "$ringside" bench crossover --ranks 2 -s 1K --no-mps >"$tap_scratch/out" 2>"$tap_scratch/err" &
started=$!
until [ -n "$(find "$RINGSIDE_SHM" -type f)" ] || ! kill -0 $started 2>/dev/null; do sleep 0.02; done
expect_same "crossover records into memory" "$(find "$RINGSIDE_SHM" -mindepth 1 -maxdepth 1 | wc -l)" 1
kill -KILL $started
wait $started 2>/dev/null
expect_same "which is freed when it is killed" "$(regions_left)" ""
expect_nothing_left "a killed crossover: nothing is left behind"
tap_done
