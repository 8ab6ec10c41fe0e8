#!/usr/bin/env bash
# scripts/run-tests: what fails once has failed. scripts/busy-tests: what fails on a busy machine, and how often.
. "$(dirname "$0")/tap.sh"
run_tests=$PWD/scripts/run-tests
busy_tests=$PWD/scripts/busy-tests
alone=$PWD/scripts/alone
cd "$tap_scratch" || exit 1
mkdir -p tests scripts
cp "$alone" scripts/

make_test() { # name what-it-does
	printf '#!/bin/sh\n%s\necho 1..1\n' "$2" >"$1"
	chmod +x "$1"
}
good='echo ok 1'
bad='echo not ok 1'
make_test tests/good.t "$good"
make_test tests/bad.t "$bad"
make_test tests/unsteady.t "if [ -e \$0.ran ]; then $good; else $bad; fi; : >\$0.ran"

expect_run() { # sentence exit-code last-line test...
	env -u HARNESS_RULESFILE "$run_tests" state -j2 --exec sh "${@:4}" >out 2>&1
	expect_same "$1" "$? $(tail -n 1 out)" "$2 $3"
}

expect_run "all tests pass" 0 "Result: PASS" tests/good.t
expect_run "a test that fails once has failed, whatever it would do next time" 1 "Result: FAIL" tests/good.t tests/unsteady.t
expect_ok "it would pass" sh tests/unsteady.t
make_test tests/compiler.t '"$CC" --version >/dev/null && echo ok 1'
CC="env A=b ${CC:-cc}" expect_run "a compiler of several words is one word for tests" 0 "Result: PASS" tests/compiler.t

rm -f tests/*.ran
env -u HARNESS_RULESFILE "$busy_tests" 2 2 tests/good.t tests/bad.t tests/unsteady.t >out 2>&1
expect_same "copies and rounds: which fail, and how often" "$? $(sed -n '/^4 runs/,$p' out)" "1 4 runs of 3 tests; failed:
      4 tests/bad.t
      2 tests/unsteady.t
busy-tests: 0 of 4 passed"
env -u HARNESS_RULESFILE "$busy_tests" 1 1 tests/good.t >out 2>&1
expect_same "none" "$? $(tail -n 1 out)" "0 1 run of 1 test"
rm scripts/alone
env -u HARNESS_RULESFILE "$busy_tests" 1 1 tests/good.t >out 2>&1
expect_same "a run that does not begin has not passed" "$? $(tail -n 1 out)" "1 busy-tests: 0 of 1 passed"
tap_done
