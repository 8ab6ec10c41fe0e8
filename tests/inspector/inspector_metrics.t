#!/usr/bin/env bash
# NCCL_INSPECTOR_PROM_DUMP=1: one file of metrics per GPU and process, for node-exporter's collector.
. "$(dirname "$0")/inspector.sh"
reader=(python3 "$PWD/tests/inspector/inspector_metrics.py")
export NCCL_INSPECTOR_PROM_DUMP=1 NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=300000
# Slow enough to be observed, and running until it is ended.
# A release that reports the GPU times of all of these throughout.
steady=(nodes=2 ahead=32 p2p=1 duration=20000 pace=3000 ops=1000000 release=2.27)
jobs=()

start_job() { # gpu device option...
	local gpu=$1 device=$2
	shift 2
	FAKE_CUDA_GPU=$gpu FAKE_CUDA_DEVICE=$device LD_LIBRARY_PATH=$tap_scratch/lib LD_PRELOAD=libcuda.so.1 \
		"$job" "${steady[@]}" "$@" >"$said" 2>>"$messages" &
	jobs+=($!)
}
kill_jobs() {
	[ ${#jobs[@]} -eq 0 ] || kill -9 "${jobs[@]}" 2>/dev/null
	[ ${#jobs[@]} -eq 0 ] || wait "${jobs[@]}" 2>/dev/null
	jobs=()
}
trap 'kill_jobs; clean_up' EXIT

# Wait until this many files have samples of every function; copy each, so that it does not change.
copies=$tap_scratch/copies
has_all() { # file
	local function
	for function in AllReduce AllGather ReduceScatter Send Recv; do
		grep -q "\"$function\"" "$1" || return 1
	done
}
have_metrics() { # files
	local file whole=0
	rm -rf "$copies" && mkdir -p "$copies"
	for file in "$files"/*.prom; do
		cp "$file" "$copies/" 2>/dev/null || continue
		! has_all "$copies/${file##*/}" || whole=$((whole + 1))
	done
	[ "$whole" -ge "$1" ]
}
await_metrics() { # files
	until_ok have_metrics "$1"
}
names() { (cd "$files" && find . -type f ! -name '.*' | sort); }

# One process.
fresh_files
export SLURM_JOBID=4711
umask 077
start_job 1 0 name='DP "0" \ x'
await_metrics 1
expect_same "one file, named by the GPU as Inspector names it" "$(names)" "./nccl_inspector_metrics_${uuid}01.prom"
expect_same "world-readable, whatever the umask" "$(stat -c %a "$files"/*.prom)" 644
umask 022
expect_ok "names, labels and their order, HELP and TYPE; D23: quotes in a name" "${reader[@]}" check "$copies"/*
expect_ok "D34: what NVIDIA's dashboard asks for, by SLURM_JOBID, too" "${reader[@]}" dashboard 4711 "$copies"/*
expect_same "the name is whole" "$("${reader[@]}" label comm_name "$copies"/*)" 'DP \"0\" \\ x'
expect_same "GPU, as Inspector numbers it, and which process's number it is" \
	"$("${reader[@]}" label gpu "$copies"/*) $("${reader[@]}" label gpu_uuid "$copies"/*)" "GPU0 GPU-${uuid}01"
expect_same "D24: few size classes" "$(($("${reader[@]}" label message_size "$copies"/* | wc -l) <= 30))" 1
if type promtool >/dev/null 2>&1; then
	expect_same "promtool finds nothing but Inspector's unit" "$(promtool check metrics <"$(echo "$copies"/*)" 2>&1 | sort)" \
		'nccl_collective_exec_time_microseconds use base unit "seconds" instead of "microseconds"
nccl_p2p_exec_time_microseconds use base unit "seconds" instead of "microseconds"'
else
	expect_skip "promtool finds nothing but Inspector's unit" "no promtool"
fi

# Two on the same GPU, and one on another GPU that is GPU0 in its process as well.
start_job 1 0
start_job 2 0
await_metrics 3
expect_same "D21: each process has its file" "$(names)" "./nccl_inspector_metrics_${uuid}01.prom
./nccl_inspector_metrics_${uuid}01_2.prom
./nccl_inspector_metrics_${uuid}02.prom"
expect_ok "the same HELP and TYPE in all" "${reader[@]}" check "$copies"/*
expect_ok "D21: no series twice" "${reader[@]}" unique "$copies"/*
expect_same "the second one on a GPU has a number" "$("${reader[@]}" label process "$copies"/*01_2.prom)" 2
if type prometheus-node-exporter >/dev/null 2>&1; then
	# It takes no port of the system's choice: try a few.
	for _ in {1..20}; do
		port=$((10000 + RANDOM % 22000))
		prometheus-node-exporter --collector.disable-defaults --collector.textfile \
			--collector.textfile.directory="$files" --web.listen-address="127.0.0.1:$port" >"$tap_scratch/exporter" 2>&1 &
		exporter=$!
		until_ok eval '"${reader[@]}" scrape "$port" || ! kill -0 "$exporter"'
		kill -0 $exporter 2>/dev/null && break
	done
	expect_ok "node-exporter reads the directory without an error" "${reader[@]}" scrape "$port"
	# A job that was idle for an interval shows nothing for it.
	has_series() { [ "$("${reader[@]}" scrape "$port")" -ge $((3 * 4)) ]; }
	expect_ok "and has their series" until_ok has_series
	for _ in 1 2 3 4 5 6; do
		"${reader[@]}" scrape "$port" >"$tap_scratch/scraped" || break
	done
	expect_same "repeatedly, while they are being written" "$(grep -c . "$tap_scratch/scraped") $(
		grep -ciE 'level=error|collected (before|metric)' "$tap_scratch/exporter")" "1 0"
	kill "$exporter"
	wait "$exporter" 2>/dev/null
else
	expect_skip "node-exporter reads the directory without an error" "no prometheus-node-exporter"
fi
whole=0
for _ in $(seq 150); do
	tail -c 1 "$files"/*02.prom | cmp -s - <(echo) && whole=$((whole + 1))
done
expect_same "D21: a file is complete at any moment" "$whole" 150

# Killed processes leave their files; the next process removes them and takes the free number.
kill -9 "${jobs[0]}" "${jobs[2]}"
wait "${jobs[0]}" "${jobs[2]}" 2>/dev/null
jobs=("${jobs[1]}")
expect_same "D22: kill -9 leaves files" "$(names | wc -l)" 3
# One of another host, whose lock does not hold here.
printf elsewhere >"$files/.nccl_inspector_metrics_other.lock"
echo "# theirs" >"$files/nccl_inspector_metrics_other.prom"
written=$(stat -c '%i %y' "$files/nccl_inspector_metrics_${uuid}01.prom")
is_its_own() {
	local now
	now=$(stat -c '%i %y' "$files/nccl_inspector_metrics_${uuid}01.prom") && [ "$now" != "$written" ]
}
start_job 1 0
until_ok is_its_own
expect_same "D22: the next process on this host removes them, but not those of another host" "$(names)" \
	"./nccl_inspector_metrics_${uuid}01.prom
./nccl_inspector_metrics_${uuid}01_2.prom
./nccl_inspector_metrics_other.prom"
rm "$files/nccl_inspector_metrics_other.prom" "$files/.nccl_inspector_metrics_other.lock"
await_metrics 2
expect_ok "and has the number that is free" "${reader[@]}" unique "$copies"/*
kill_jobs

# A normal end leaves nothing behind.
fresh_files
: >"$messages"
steady=(nodes=2 ahead=32 p2p=1)
NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=600000000 \
	timeout 120 "$job" "${steady[@]}" ops=1000 >"$said" 2>"$messages"
expect_same "D5: an interval of ten minutes does not delay the end" $? 0
expect_same "and the summary is printed" "$(reported operations) $(reported 'since the last metrics') $(reported lost)" "1000 1000 0"
run_on_gpu "${steady[@]}" ops=3000 pace=3000
read_facts
expect_same "nothing is left at the end" "$(find "$files" -type f)" ""
expect_same "all are accounted for" "$(($(reported 'in metrics') + $(reported 'since the last metrics')))" 3000

# Idle: the file is still updated but has no samples.
fresh_files
mkfifo "$tap_scratch/hold"
run_on_gpu "${steady[@]}" ops=500 end=hold <"$tap_scratch/hold" &
running=$!
exec 9>"$tap_scratch/hold"
until_ok eval '[ "$(grep -vc "^#" "$files/nccl_inspector_metrics_${uuid}01.prom")" = 0 ]'
expect_same "D22: a job that does nothing shows nothing" "$(grep -vc '^#' "$files"/*.prom)" 0
before=$(stat -c %y "$files"/*.prom)
is_young() { [ "$(stat -c %y "$files"/*.prom)" != "$before" ]; }
expect_ok "and its file is still updated" until_ok is_young
exec 9>&-
wait $running

# Trouble.
fresh_files
NCCL_INSPECTOR_DUMP_DIR=/dev/null/x run_on_gpu "${steady[@]}" ops=3000 pace=3000
read_facts
expect_same "no directory: one line, and losses are counted" \
	"$(grep -c 'cannot write files' "$messages") $(($(reported lost) > 0)) $(reported lost)" \
	"1 1 $(fact lost_not_in_inspector_file)"
inspect "${steady[@]}" ops=3000 pace=3000 disk=full disk_room=300
expect_same "a full disk: losses are counted, and no partial file is left" \
	"$(($(reported lost) > 0)) $(find "$files" -type f)" "1 "
inspect "${steady[@]}" ops=3000 pace=3000 disk=stuck end=exit
expect_same "a disk that never answers: the job ends" $? 0
NCCL_INSPECTOR_ENABLE_P2P=0 inspect "${steady[@]}" ops=300
expect_same "ENABLE_P2P=0" "$(reported 'Send and Recv')" 200
tap_done
