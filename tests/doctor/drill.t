#!/bin/sh
# The drill: the right class and culprit for all jobs with a fault, none for healthy ones; and the confusion
# matrix in docs/results is what was measured. Rewrite it with: make drill
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 tests/doctor/drill.py --compare docs/results/doctor-drill.txt
