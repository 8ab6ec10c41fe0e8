#!/usr/bin/env bash
# A few of the pairs of jobs whose comparison is measured in docs/results/diff-power.txt.
. "$(dirname "$0")/../tap.sh"

expect_ok "equal jobs are the same, and slowdowns of 10% are found" python3 tests/report/diff_power.py --runs 4 --parity even --verbose
tap_done
