#!/bin/sh
# The fixed drill: the right class and culprit for all jobs with a fault, none for healthy ones. The random one is
# drill_random.t.
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 tests/doctor/drill.py
