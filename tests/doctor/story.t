#!/bin/sh
# 512 ranks hang because of rank 247's second link: diagnosed from files and through 64 agents.
command -v python3 >/dev/null || {
	echo "1..0 # SKIP no python3"
	exit 0
}
exec python3 "$(dirname "$0")/story.py"
