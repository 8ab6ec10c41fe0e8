#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "file names are unique" scripts/check-names

sample src/common/text.c </dev/null >/dev/null
expect_ok "one of a name is fine" scripts/check-names "$tap_scratch"
sample src/output/text.c </dev/null >/dev/null
expect_complaint "two of a name are not" "src/common/text.c exists already" \
	scripts/check-names "$tap_scratch"
rm "$tap_scratch/src/output/text.c"
sample src/output/Text.c </dev/null >/dev/null
expect_complaint "capitals are not" "lower case" scripts/check-names "$tap_scratch"
rm "$tap_scratch/src/output/Text.c"

sample tests/unit/common/test_text.c </dev/null >/dev/null
expect_ok "a unit test in its room is fine" scripts/check-names "$tap_scratch"
for path in tests/test_hash.c tests/unit/test_hash.c tests/unit/cellar/test_hash.c; do
	sample "$path" </dev/null >/dev/null
	expect_complaint "not in $path" "$path: unit tests belong in tests/unit/ROOM" scripts/check-names "$tap_scratch"
	rm "$tap_scratch/$path"
done
tap_done
