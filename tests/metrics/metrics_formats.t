#!/usr/bin/env bash
# Text, OpenMetrics and protocol buffers say the same, whatever names users choose, and other people's
# readers take them.
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

expect_lint "promtool takes the text and has no advice" "$tap_scratch/text"
expect_lint "promtool takes a textfile" "$tap_scratch/first.prom"
expect_ok "strict parsers read all three, and they say the same" same
families=$(wc -l <"$tap_scratch/names")
expect_same "the sample has every family" "$(same | sed 's/.*samples, //')" "$families of $families families"
expect_ok "no series is in two textfiles" check once "$tap_scratch/first.prom" "$tap_scratch/second.prom"
expect_complaint "and if one were, it would be seen" "is in" check once "$tap_scratch/text" "$tap_scratch/first.prom"

# The comparison can fail.
cp "$tap_scratch/text" "$tap_scratch/text.kept"
sed -i 's/^\(nccl_operations_total{.*size="4KiB"} \)9$/\110/' "$tap_scratch/text"
expect_complaint "another value is seen" "openmetrics: .*nccl_operations_total" same
cp "$tap_scratch/text.kept" "$tap_scratch/text"
sed -i 's/^# HELP nccl_lost_details_total .*/# HELP nccl_lost_details_total x/' "$tap_scratch/text"
expect_complaint "another HELP is seen" "HELP is not the table's" same
cp "$tap_scratch/text.kept" "$tap_scratch/text"
sed -i '/^# EOF$/d' "$tap_scratch/openmetrics"
expect_complaint "OpenMetrics without its end is seen" "EOF" same
tap_done
