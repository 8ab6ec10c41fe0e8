#!/usr/bin/env bash
# A hub and four agents: a job that does not hang but has a slow rank. Log, hook, metrics and doctor name it.
. "$(dirname "$0")/../tap.sh"

command -v python3 >/dev/null || tap_skip_all "there is no python3"
exec python3 tests/agent/hub_cluster.py 4 slow
