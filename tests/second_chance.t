#!/usr/bin/env bash
# scripts/run-tests: a script that simulates a job may fail once on a busy machine; nothing else may. scripts/busy-tests finds those.
. "$(dirname "$0")/tap.sh"
run_tests=$PWD/scripts/run-tests
busy_tests=$PWD/scripts/busy-tests
alone=$PWD/scripts/alone
cd "$tap_scratch" || exit 1
mkdir -p tests/lint scripts
cp "$alone" scripts/

make_test() { # name what-it-does
	printf '#!/bin/sh\n%s\necho 1..1\n' "$2" >"$1"
	chmod +x "$1"
}
good='echo ok 1'
bad='echo not ok 1'
unsteady="if [ -e \$0.ran ]; then $good; else $bad; fi; : >\$0.ran"

expect_run() { # sentence exit-code pattern test...
	local code
	rm -f tests/*.ran tests/lint/*.ran
	env -u HARNESS_RULESFILE "$run_tests" state/of -j2 --exec sh -- "${@:4}" >out 2>&1
	code=$?
	if [ "$code" -eq "$2" ] && grep -qE -- "$3" out; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "exit $code, wanted $2 and: $3"$'\n'"$(cat out)"
	fi
}

expect_one_chance() { # sentence test...
	expect_run "$1" 1 "^Result: FAIL" "${@:2}"
	expect_same "$1: nothing ran again" "$(grep -c "once more alone" out)" 0
}

for name in good bad unsteady; do
	make_test "tests/$name.t" "${!name}"
done
for name in a b c; do
	make_test "tests/unsteady_$name.t" "$unsteady"
done
make_test tests/unit "$unsteady"
make_test tests/lint/unsteady.t "$unsteady"

expect_run "all tests pass" 0 "Files=1," tests/good.t
expect_run "a script that fails once is reported and runs again alone" 0 "once more alone: tests/unsteady.t\$" \
	tests/good.t tests/unsteady.t
expect_run "the end is prove's summary" 0 "^Result: PASS" tests/good.t tests/unsteady.t
expect_run "one that fails twice has failed" 1 "^Result: FAIL" tests/good.t tests/bad.t
expect_run "two may" 0 "alone: tests/unsteady_[ab].t tests/unsteady_[ab].t\$" tests/unsteady_a.t tests/unsteady_b.t
expect_one_chance "three are too many" tests/unsteady_a.t tests/unsteady_b.t tests/unsteady_c.t
expect_one_chance "a unit test has one chance" tests/unit
expect_one_chance "also beside a script" tests/unit tests/unsteady.t
expect_one_chance "and lint" tests/lint/unsteady.t

make_test tests/compiler.t '"$CC" --version >/dev/null && echo ok 1'
CC="env A=b ${CC:-cc}" expect_run "a compiler of several words is one word for tests" 0 "^Result: PASS" tests/compiler.t

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
