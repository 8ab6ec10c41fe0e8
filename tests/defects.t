#!/usr/bin/env bash
# Every defect in docs/HACKING.md that concerns the recorder has a test with its name, which passes.
# D33 is about dashboards. What users found in Ringside itself names a test, and the line of it that fails without the fix.
. "$(dirname "$0")/tap.sh"

rows=$(seq 1 32; echo 34)
output=$tap_scratch/output
grep -lE '"D[0-9]+: ' tests/unit/*/test_*.c | sed 's|.*/||; s|\.c$||' >"$tap_scratch/names"
for program in "$BUILD"/tests/unit/*; do
	for name in $("$program" -l | grep -xFf "$tap_scratch/names"); do
		"$program" "$name" 2>"$tap_scratch/errors" >>"$output" ||
			echo "# $name ended with $?" >>"$output"
	done
done
expect_complaint "no test of a defect fails" "^$" grep -E '^not ok|^# .* ended with' "$output"
for row in $rows; do
	if grep -qE "^ok [0-9]+ - D$row: " "$output" && ! grep -qE "^not ok [0-9]+ - D$row: " "$output"; then
		tap_line ok "D$row has a test that passes" ""
	else
		tap_line "not ok" "D$row has a test that passes" "$(grep -E " - D$row: " "$output")"
	fi
	if grep -qE "^\| D$row \|" docs/HACKING.md; then
		tap_line ok "D$row is described" ""
	else
		tap_line "not ok" "D$row is described" "docs/HACKING.md has no row for it"
	fi
done

found=0
while IFS='|' read -r _ what test line _; do
	found=$((found + 1))
	test=${test//[ \`]/}
	line=${line# }
	expect_ok "there is a test:$what" grep -qF -- "${line% }" "tests/$test"
done < <(sed -n '/^| what went wrong | test | its line |$/,/^$/p' docs/HACKING.md | grep '`')
expect_ok "what users found is described" [ "$found" -gt 0 ]
tap_done
