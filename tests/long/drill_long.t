#!/bin/sh
# The drill with many seeds and more workloads: the same must hold.
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 tests/doctor/drill.py --long --seeds 12
