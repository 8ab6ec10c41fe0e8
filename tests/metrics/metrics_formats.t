#!/usr/bin/env bash
# Text, OpenMetrics and protocol buffers have the same contents, whatever names users choose, and are accepted
# by independent parsers.
. "$(dirname "$0")/metrics.sh"
needs_readers
build_tool metrics_sample
sample=$tap_scratch/metrics_sample
for format in text openmetrics protobuf names; do
	"$sample" "$format" >"$tap_scratch/$format" || exit 1
done
"$sample" text 0 >"$tap_scratch/first.prom"
"$sample" text 1 >"$tap_scratch/second.prom"

same() {
	check same "$tap_scratch/text" "$tap_scratch/openmetrics" "$tap_scratch/protobuf" \
		"$tap_scratch/names"
}

expect_lint "promtool accepts the text without advice" "$tap_scratch/text"
expect_lint "promtool accepts a textfile" "$tap_scratch/first.prom"
expect_ok "strict parsers read all three formats, with equal contents" same
families=$(wc -l <"$tap_scratch/names")
expect_same "the sample contains every family" "$(same | sed 's/.*samples, //')" "$families of $families families"
expect_ok "no series is in two textfiles" check once "$tap_scratch/first.prom" "$tap_scratch/second.prom"
expect_complaint "a duplicate would be detected" "is in" check once "$tap_scratch/text" "$tap_scratch/first.prom"

# The comparison can fail.
cp "$tap_scratch/text" "$tap_scratch/text.kept"
sed -i 's/^\(nccl_operations_total{.*size="4KiB"} \)9$/\110/' "$tap_scratch/text"
expect_complaint "a different value is detected" "openmetrics: .*nccl_operations_total" same
cp "$tap_scratch/text.kept" "$tap_scratch/text"
sed -i 's/^# HELP nccl_lost_details_total .*/# HELP nccl_lost_details_total x/' "$tap_scratch/text"
expect_complaint "a different HELP is detected" "HELP differs from the table" same
cp "$tap_scratch/text.kept" "$tap_scratch/text"
sed -i '/^# EOF$/d' "$tap_scratch/openmetrics"
expect_complaint "truncated OpenMetrics is detected" "EOF" same
tap_done
