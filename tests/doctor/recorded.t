#!/bin/sh
# Recordings of real hung NCCL jobs: the doctor finds the true cause.
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 "$(dirname "$0")/recorded.py"
