#!/usr/bin/env bash
# How the runner of unit tests handles files that pass, fail, crash, skip, or end too early.
. "$(dirname "$0")/tap.sh"

CC=${CC:-cc}
file() { # name body
	printf '#include <stdlib.h>\n#include "tests/tap.h"\nint main(void)\n{\n%s\n}\n' "$2" >"$tap_scratch/$1.c"
}
# A program of these files, built as make does.
program() { # name...
	local name objects=() sources=()
	for name in "$@"; do
		$CC -I. "-Dmain=${name}_main" -c "$tap_scratch/$name.c" -o "$tap_scratch/$name.o" || return 1
		objects+=("$tap_scratch/$name.o")
		sources+=("$tap_scratch/$name.c")
	done
	scripts/unit-table "${sources[@]}" >"$tap_scratch/table.c" &&
		$CC -D_GNU_SOURCE -I. -o "$tap_scratch/program" "${objects[@]}" "$tap_scratch/table.c" tests/support/runner.c
}
# Its output without what differs, and its exit code.
run() { # argument...
	"$tap_scratch/program" "$@" 2>&1 | sed 's|^# failed at .*/|# failed at |'
	echo "exit ${PIPESTATUS[0]}"
}

file test_a 'EXPECT_THAT("one", 1); EXPECT_THAT("two", 1); return tap_done();'
file test_b 'EXPECT_THAT("three", 1); return tap_done();'
file test_fails 'EXPECT_THAT("wrong", 0); return tap_done();'
file test_crashes 'EXPECT_THAT("before", 1); abort();'
file test_skips 'return tap_skip_all("no disk");'
file test_leaves 'EXPECT_THAT("before", 1); exit(0);'
file test_lies 'printf("1..2\n"); return 0;'
file test_code 'tap_done(); return 3;'
printf '#include <stdio.h>\nint main(int argc, char **argv)\n{\n\tprintf("%%d %%s\\n1..0\\n", argc, argv[argc - 1]);\n\treturn 0;\n}\n' \
	>"$tap_scratch/test_words.c"

program test_a test_b
expect_same "lines are numbered consecutively, with one plan at the end" "$(run)" "# test_a
ok 1 - one
ok 2 - two
# test_b
ok 3 - three
1..3
exit 0"
expect_same "one file runs alone" "$(run test_b)" "ok 1 - three
1..1
exit 0"
expect_same "files are listed" "$(run -l)" "test_a
test_b
exit 0"
expect_same "a missing file is wrong usage" "$(run test_c | sed 's|.*: no file|no file|')" \
	"no file test_c here: -l lists them
exit 2"

program test_fails test_a
expect_same "one that fails is a failure, and the others run" "$(run)" "# test_fails
not ok 1 - wrong
# failed at test_fails.c:5
# test_a
ok 2 - one
ok 3 - two
1..3
exit 1"

program test_crashes test_b
expect_same "one that crashes is reported, and the others run" "$(run)" "# test_crashes
ok 1 - before
not ok 2 - test_crashes: ended without a plan, after tests: 1
not ok 3 - test_crashes: was ended by signal 6
# test_b
ok 4 - three
1..4
exit 1"

program test_skips test_leaves
expect_same "a file may be skipped, but not end before its plan" "$(run)" "# test_skips
ok 1 - test_skips # SKIP no disk
# test_leaves
ok 2 - before
not ok 3 - test_leaves: ended without a plan, after tests: 1
1..3
exit 1"

program test_lies test_code
expect_same "a wrong plan and an exit code without a reason are failures" "$(run)" "# test_lies
not ok 1 - test_lies: has a plan that is not what came: 2
# test_code
not ok 2 - test_code: failed with exit code 3
1..2
exit 1"

program test_words
expect_same "a file that runs alone gets its arguments" "$(run test_words here)" "2 here
1..0
exit 0"
tap_done
