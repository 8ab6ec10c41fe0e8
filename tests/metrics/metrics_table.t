#!/usr/bin/env bash
# The table in docs/METRICS.md equals the one in the program: names, types, labels and help.
. "$(dirname "$0")/metrics.sh"
build_tool metrics_sample

# | `name` | type | `label` `label` | meaning |
documented() { # file
	sed -n 's/^| `\([a-z_]*\)` | \([a-z]*\) | \([a-z_` ]*\) | \(.*\) |$/\1\t\2\t\3\t\4/p' "$1" |
		awk -F '\t' -v OFS='\t' '{ gsub(/`/, "", $3); gsub(/ +/, ",", $3); sub(/,$/, "", $3); sub(/^,/, "", $3); print }' |
		sort
}
in_program() {
	"$tap_scratch/metrics_sample" names | sort
}

expect_same "docs/METRICS.md lists all metrics" "$(documented docs/METRICS.md)" "$(in_program)"
sed '/^| `nccl_wait_seconds_total`/d' docs/METRICS.md >"$tap_scratch/less.md"
expect_same "a missing metric is detected" "$(diff <(documented "$tap_scratch/less.md") <(in_program) | grep -c '^>')" 1
tap_done
