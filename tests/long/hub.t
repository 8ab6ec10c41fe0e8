#!/usr/bin/env bash
# 16 nodes with an agent each and a hub, once without and once with a real Prometheus; two agents die.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
command -v python3 >/dev/null || tap_skip_all "there is no python3"
exec python3 tests/agent/hub_cluster.py 16 poll prometheus
