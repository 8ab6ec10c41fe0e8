#!/usr/bin/env bash
# The scanner agrees with another strict JSON reader.
. "$(dirname "$0")/../tap.sh"

perl -MJSON::PP -e 1 2>/dev/null || tap_skip_all "perl has no JSON::PP here"
again=$tap_scratch/json_again
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -O1 -o "$again" tests/foreign/json_again.c "$BUILD/libringside.a" -lz -lm || exit 1

for seed in 1 2 3; do
	perl tests/foreign/json_reference.pl make $seed 2000 >"$tap_scratch/texts"
	"$again" <"$tap_scratch/texts" >"$tap_scratch/again"
	expect_ok "random texts, seed $seed" perl tests/foreign/json_reference.pl compare "$tap_scratch/texts" "$tap_scratch/again"
done

# The test can fail: a reader that accepts everything is detected.
sed 's/^refused$/null/' "$tap_scratch/again" >"$tap_scratch/lenient"
expect_complaint "a lenient reader is detected" "[1-9][0-9]* wrong" \
	perl tests/foreign/json_reference.pl compare "$tap_scratch/texts" "$tap_scratch/lenient"
cat tests/foreign/data/inspector-v4.*.log tests/foreign/data/inspector-mixed.jsonl tests/foreign/data/comma-latency.txt |
	grep . >"$tap_scratch/texts"
"$again" <"$tap_scratch/texts" >"$tap_scratch/again"
expect_same "and so are the sample logs" \
	"$(perl tests/foreign/json_reference.pl compare "$tap_scratch/texts" "$tap_scratch/again")" \
	"$(wc -l <"$tap_scratch/texts") lines, 0 refused, 0 wrong"
tap_done
