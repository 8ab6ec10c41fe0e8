#!/bin/sh
# Jobs that were played and the same ones computed have the same records: every combination.
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 tests/report/alike.py --all
