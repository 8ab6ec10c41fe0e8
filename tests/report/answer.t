#!/usr/bin/env bash
# The report as people see it: whole texts, compared with those beside this test.
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

expect_output "a job without fault" report-fsdp "$ringside" report "$tap_scratch/fsdp"
expect_output "a slow rank" report-slow "$ringside" report "$tap_scratch/slow"
expect_output "on a terminal of 80 columns" report-80 env COLUMNS=80 "$ringside" report "$tap_scratch/slow"
expect_output "on a narrow terminal" report-narrow env COLUMNS=50 "$ringside" report "$tap_scratch/fsdp"
expect_output "with blocks where the terminal shows them" report-blocks env LC_ALL=C.UTF-8 "$ringside" report \
	--table windows "$tap_scratch/fsdp"
expect_output "a network that becomes slower" report-degraded "$ringside" report --table windows "$tap_scratch/degraded"
expect_output "a job that hangs" report-hung "$ringside" report --answer "$tap_scratch/hung"
expect_output "a rank that was killed" report-killed "$ringside" report --answer "$tap_scratch/killed"
expect_output "several jobs" report-jobs "$ringside" report "$tap_scratch/both"
expect_output "a region of a process that was killed" report-region "$ringside" report "$tap_scratch/stuck"
expect_output "what was lost" report-lossy "$ringside" report --answer "$tap_scratch/lossy"
expect_output "an empty directory" report-empty "$ringside" report "$tap_scratch/empty"
expect_output "another tool's logs" report-foreign "$ringside" report tests/foreign/data/inspector-v4.1.log
expect_output "hundreds of communicators" report-large "$ringside" report "$tap_scratch/large"
expect_output "calls of which some were timed" report-sampled "$ringside" report "$tap_scratch/sampled"
expect_output "calls of which none was timed" report-none "$ringside" report "$tap_scratch/none"
expect_output "all rows" report-all "$ringside" report --all --table rank "$tap_scratch/slow"
expect_output "a table of one's own" report-by "$ringside" report --by name,function,size --op AllReduce --rank 0-7 \
	--since 1s --until 4s "$tap_scratch/slow"

# The answer is a screenful, whatever is wrong.
for job in fsdp slow degraded large hung killed both; do
	env COLUMNS=80 "$ringside" report --answer "$tap_scratch/$job" >"$tap_scratch/answer"
	expect_same "the answer of $job fits 24 lines of 80 columns" \
		"$(awk 'length > 80 { wide++ } END { print (NR <= 24 ? "fits" : NR " lines"), wide + 0 }' "$tap_scratch/answer")" \
		"fits 0"
done
tap_done
