#!/bin/sh
# Shares, bandwidths and waiting against the simulator's truth: every combination.
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 tests/report/truth.py --all
