#!/bin/sh
# What an agent keeps of the past shows what all operations show: random jobs.
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 tests/long/past_drill.py
