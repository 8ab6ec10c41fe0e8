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
