#!/usr/bin/env bash
# A job chooses its name, its communicators and its variables. None of it controls what others see, wherever it is shown.
. "$(dirname "$0")/../agent/agent.sh"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
ringside=$BUILD/ringside
# C1 as UTF-8 and as bytes, a change of direction, no width, tags, invalid bytes, a line break.
# U+200C is in the path only.
evil=$(printf 'e\xc2\x9d0;OWNED\xc2\x9c\xc2\x9b2J\x9b2J\xe2\x80\xaeb\xe2\x80\x8bc\xf3\xa0\x81\x81d\xff\x1b[2J\ne')
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -o "$tap_scratch/odd_names" tests/top/odd_names.c -ldl || exit 1
# A path is shown clean, and opened as it is.
traces=$tap_scratch/$(printf 'tr\xe9sors\xe2\x80\x8c')
mkdir "$traces"
coproc job {
	exec env RANK=2 WORLD_SIZE=4 RINGSIDE_SHM="$shm" RINGSIDE_JOB="$evil" RINGSIDE_MODE=trace \
		RINGSIDE_DIR="$traces/%j" NCCL_DEBUG_FILE="/x/$evil" SLURM_JOB_PARTITION="$evil" SLURM_JOB_USER="$evil" \
		NCCL_PROFILER_PLUGIN="$BUILD/libnccl-profiler-ringside.so" "$tap_scratch/odd_names"
}
read -r -u "${job[0]}" line
expect_same "the job runs" "$line" ready

mkdir "$tap_scratch/shown" "$tap_scratch/textfile"
start_agent --textfile "$tap_scratch/textfile"
expect_soon "the agent shows it" shows 'nccl_.*OWNED'
until_ok eval 'ls "$tap_scratch"/textfile/*.prom >/dev/null 2>&1'
cp "$tap_scratch"/textfile/*.prom "$tap_scratch/shown/textfile"
fetch /metrics >"$tap_scratch/shown/metrics"
fetch / >"$tap_scratch/shown/page"
for answer in now history summary; do
	fetch "/api/v1/$answer" >"$tap_scratch/shown/$answer.json"
done
stop_agent
cp "$log" "$tap_scratch/shown/log"

export RINGSIDE_SHM=$shm
show() { # name command...
	local name=$1
	shift
	"$ringside" "$@" >"$tap_scratch/shown/$name" 2>&1
}
path=$(find "$shm" -name '*.region')
for command in ls ps verify report doctor dump; do
	show "$command" "$command" "$path"
	"$ringside" "$command" --json "$path" >"$tap_scratch/shown/$command.json" 2>/dev/null
done
show top top --once --directory "$shm"
show report.csv report --table comm --csv "$path"
show report.html report --html - "$path"
show export.csv export -f csv -o - "$path"
"$ringside" export -f jsonl -o - "$path" >"$tap_scratch/shown/export.json" 2>/dev/null
"$ringside" bundle --no-ras -o "$tap_scratch/bundle.tar" "$path" >/dev/null 2>"$tap_scratch/shown/bundle-says"
mkdir "$tap_scratch/bundle"
tar -xf "$tap_scratch/bundle.tar" -C "$tap_scratch/bundle"
find "$tap_scratch/bundle" -name '*.txt' -exec cat {} + >"$tap_scratch/shown/bundle"
expect_ok "a bundle has texts" grep -q OWNED "$tap_scratch/shown/bundle"
eval "exec ${job[1]}>&-"
wait

for file in "$tap_scratch"/shown/*; do
	[ -s "$file" ] || continue
	expect_same "${file##*/}: nothing unseen" "$(python3 tests/cli/unseen.py "$file")" ""
	# A path is escaped, so that a program can open it.
	[ "${file%.json}" = "$file" ] ||
		expect_same "${file##*/}: not even escaped, but in the path" "$(python3 tests/cli/unseen.py --json "$file" | grep -v 'U+200C$')" ""
done
expect_ok "the name is recognizable" grep -q 'e?0;OWNED??2J?2J?b?c?d??\[2J?e' "$tap_scratch/shown/ls"
expect_ok "the trace is found" grep -q 'trace: .*/tr?sors?/.*KiB$' "$tap_scratch/shown/ls"
expect_ok "and read" grep -q '"sources":\["region","trace"\]\|"files":\[{' "$tap_scratch/shown/verify.json"
tap_done
