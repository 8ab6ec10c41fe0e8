#!/usr/bin/env bash
# Needs objects of the product, of tests, fuzzers and benchmarks: make lint builds them.
. "$(dirname "$0")/../tap.sh"

CC=${CC:-cc}
expect_ok "what a file exports is called by another one" scripts/check-callers . "$BUILD"

# A source of a small tree, and its object.
source_file() { # path text
	local object=build/$1
	case $1 in tests/unit/*) object=build/${1#tests/} ;; esac
	mkdir -p "$tap_scratch/tree/$(dirname "$1")" "$tap_scratch/tree/$(dirname "$object")"
	printf '%s\n' "$2" >"$tap_scratch/tree/$1"
	$CC -c "$tap_scratch/tree/$1" -o "$tap_scratch/tree/${object%.c}.o"
}
check() { scripts/check-callers "$tap_scratch/tree" build; }

source_file src/common/x.c 'static int own(void) { return 1; } int used(void) { return own(); }'
source_file src/cmds/main.c 'int used(void); int main(void) { return used(); }'
expect_ok "main() and static functions need no caller elsewhere" check

source_file src/common/y.c 'int lonely(void); int lonely(void) { return 1; } int other(void) { return lonely(); }'
expect_complaint "a caller in the same file does not count" "src/common/y.c: no other file calls lonely\(\)" check
expect_complaint "each one is reported" "src/common/y.c: no other file calls other\(\)" check
source_file tests/unit/common/test_y.c 'int other(void); int test_y_main(void) { return other(); }'
source_file fuzz/fuzz_y.c 'int lonely(void); int (*fuzz_y)(void) = lonely;'
expect_ok "tests and fuzzers are callers, by address too" check

rm "$tap_scratch/tree/build/fuzz/fuzz_y.o"
expect_complaint "a missing object is reported" "fuzz/fuzz_y.c: build/fuzz/fuzz_y.o is not built" check
rm -r "$tap_scratch/tree/fuzz"
mkdir -p "$tap_scratch/tree/tests/cli"
echo 'int lonely(void); int main(void) { return lonely(); }' >"$tap_scratch/tree/tests/cli/samples.c"
expect_ok "so are programs that a script compiles" check
rm -r "$tap_scratch/tree/build"
expect_complaint "and a tree without objects is refused" "run .make lint." check
tap_done
