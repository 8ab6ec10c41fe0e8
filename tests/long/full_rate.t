#!/usr/bin/env bash
# Completeness with as many operations as a process issues in ten seconds at 200,000 a second.
COMPLETENESS_OPERATIONS=2000000 exec "$(dirname "$0")/../process/completeness.t"
