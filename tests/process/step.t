#!/usr/bin/env bash
# Killed after any single instruction of a call, a process leaves every operation that it has counted.
. "$(dirname "$0")/process.sh"
"$BUILD/tests/process/process_step"
