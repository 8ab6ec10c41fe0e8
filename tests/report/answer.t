#!/usr/bin/env bash
# Text output of the report, compared with the files beside this test (REWRITE=1 rewrites them).
. "$(dirname "$0")/report.sh"

simulate fsdp --nodes 2 --gpus 2 -w fsdp --seconds 6s
simulate slow --nodes 3 --gpus 8 -w tp-pp -f slow-rank:rank=5 --seconds 8s
simulate degraded --nodes 4 --gpus 2 -w fsdp -f degraded-network:factor=1.5 --at 8s --seconds 16s
simulate large --nodes 8 --gpus 8 -w tp-pp --tp 4 --seconds 2s
simulate hung --nodes 2 --gpus 4 -w moe -f stuck-send:rank=3 --at 2s
simulate killed --nodes 2 --gpus 2 -w ddp -f kill:rank=3 --at 2s
make_samples
mkdir "$tap_scratch/both" "$tap_scratch/empty"
simulate both/a --nodes 1 --gpus 2 -w ddp --seconds 2s
simulate both/b --nodes 1 --gpus 2 -w fsdp --seconds 2s --seed 9
make_sampled

expect_output "a healthy job" report-fsdp "$ringside" report "$tap_scratch/fsdp"
expect_output "a slow rank" report-slow "$ringside" report "$tap_scratch/slow"
expect_output "a terminal of 80 columns" report-80 env COLUMNS=80 "$ringside" report "$tap_scratch/slow"
expect_output "a narrow terminal" report-narrow env COLUMNS=50 "$ringside" report "$tap_scratch/fsdp"
expect_output "charts of blocks on a UTF-8 terminal" report-blocks env LC_ALL=C.UTF-8 "$ringside" report \
	--table windows "$tap_scratch/fsdp"
expect_output "a network that becomes slow" report-degraded "$ringside" report --table windows "$tap_scratch/degraded"
expect_output "a job that hangs" report-hung "$ringside" report --answer "$tap_scratch/hung"
expect_output "a killed rank" report-killed "$ringside" report --answer "$tap_scratch/killed"
expect_output "several jobs" report-jobs "$ringside" report "$tap_scratch/both"
expect_output "the region of a killed process" report-region "$ringside" report "$tap_scratch/stuck"
expect_output "lost operations" report-lossy "$ringside" report --answer "$tap_scratch/lossy"
expect_output "an empty directory" report-empty "$ringside" report "$tap_scratch/empty"
expect_output "a log of NCCL Inspector" report-foreign "$ringside" report tests/foreign/data/inspector-v4.1.log
expect_output "hundreds of communicators" report-large "$ringside" report "$tap_scratch/large"
expect_output "sampled timing" report-sampled "$ringside" report "$tap_scratch/sampled"
expect_output "no timing" report-none "$ringside" report "$tap_scratch/none"
expect_output "all rows" report-all "$ringside" report --all --table rank "$tap_scratch/slow"
expect_output "--by and filters" report-by "$ringside" report --by name,function,size --op AllReduce --rank 0-7 \
	--since 1s --until 4s "$tap_scratch/slow"

# The verdict of a hang is the doctor's, and its time counts.
simulate long --nodes 2 --gpus 4 -w fsdp -f never-arrives:rank=5 --at 2s --seconds 40s
"$ringside" doctor --json "$tap_scratch/long" >"$tap_scratch/doctor.json"
"$ringside" report --json "$tap_scratch/long" >"$tap_scratch/report.json"
first_of() { # key file
	json_says "\$_->{$1}[0]{title}" "$tap_scratch/$2.json"
}
expect_same "the report names the culprit of a hang as the doctor does" "$(first_of findings report)" "$(first_of verdicts doctor)"
expect_same "rank 5" "$(first_of findings report | grep -o '^rank 5 ')" "rank 5 "
expect_same "and counts its GPU time" "$(json_says '$_->{gpu_hours_hung} * 3600 > 8 * 37 ? "yes" : "no"' "$tap_scratch/report.json")" yes
expect_ok "in text" grep -q '^hang: .* GPU-seconds lost at the end' <("$ringside" report --answer "$tap_scratch/long")

head -c 200 "$(find "$tap_scratch/fsdp" -type f | head -n 1)" >"$tap_scratch/stump"
"$ringside" report "$tap_scratch/stump" >"$tap_scratch/answer"
expect_same "a file from which nothing could be read: could not tell" "$? $(grep -c 'nothing to report' "$tap_scratch/answer")" "3 1"

# Waiting that no rank causes is no fault of a healthy job: a note, with its share of the run time and not of the collectives alone.
simulate calm --nodes 1 --gpus 4 -w ddp --seconds 4s
"$ringside" report --json "$tap_scratch/calm" >"$tap_scratch/report.json"
share=$(json_says 'sprintf "%.2g%%", 100 * $_->{gpu_hours_lost} / $_->{gpu_hours}' "$tap_scratch/report.json")
expect_same "a healthy job has notes and no findings" \
	"$("$ringside" report --answer "$tap_scratch/calm" | grep -oE '^[A-Z][a-z ]+:$|^- .* of run time')" \
	"Notes:
- ranks wait for each other $share of run time"

# Plain text shows neither names of JSON nor numbers that only the program understands.
comma=tests/foreign/data/comma-latency.txt
expect_same "reasons for losses are words" \
	"$({ "$ringside" report --answer "$comma"; "$ringside" report --answer "$tap_scratch/lossy"; } 2>/dev/null | grep -oE '\b[a-z]+_[a-z_]+\b' | sort -u)" ""
expect_same "operations have the number of their log" "$("$ringside" report "$comma" | grep -oE 'Broadcast #?[0-9]+' | sort -u)" "Broadcast #2"
expect_same "bus bandwidth has one name" "$("$ringside" report "$tap_scratch/fsdp" | grep -owE '(GB/s )?BUS(BW)?' | sort -u)" BUSBW
expect_same "small numbers are written out" "$("$ringside" report "$tap_scratch/both/a" | grep -oE '[0-9]e-[0-9]+ .*')" ""

# The summary fits a screen, whatever the findings are.
for job in fsdp slow degraded large hung killed both; do
	env COLUMNS=80 "$ringside" report --answer "$tap_scratch/$job" >"$tap_scratch/answer"
	expect_same "the summary of $job fits 24 lines of 80 columns" \
		"$(awk 'length > 80 { wide++ } END { print (NR <= 24 ? "fits" : NR " lines"), wide + 0 }' "$tap_scratch/answer")" \
		"fits 0"
done

# Logs of other tools do not mark their end, so a missing mark says nothing.
for log in tests/foreign/data/inspector-v4.1.log tests/foreign/data/comma-latency.txt; do
	expect_same "$(basename "$log"): not reported as truncated" "$("$ringside" report "$log" 2>/dev/null | grep -c "truncated\|never ended")" 0
done
tap_done
