#!/usr/bin/env bash
# A hub and four agents, two of which die: log, hook, metrics, doctor and the page in a real browser name one cause.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
command -v python3 >/dev/null || tap_skip_all "there is no python3"
exec python3 tests/agent/hub_cluster.py 4 poll
