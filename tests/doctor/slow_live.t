#!/bin/sh
# A straggler in a running job, in flight mode: found in the regions of its nodes, and through their agents.
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 "$(dirname "$0")/slow_live.py"
