#!/usr/bin/env bash
# Completeness at 200,000 operations per second for ten seconds, and with as many at full speed.
COMPLETENESS_OPERATIONS=2000000 COMPLETENESS_SECONDS=10 exec "$(dirname "$0")/../process/completeness.t"
