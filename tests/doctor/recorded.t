#!/bin/sh
# Recordings of real NCCL jobs that hang: the doctor says of them what is true.
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 "$(dirname "$0")/recorded.py"
