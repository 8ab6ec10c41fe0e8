#!/usr/bin/env bash
# SIGKILL at random moments, KILL_ROUNDS times; the seed is printed.
. "$(dirname "$0")/process.sh"
mkdir -p "$RINGSIDE_DIR"
"$BUILD/tests/process/process_kill" "${KILL_ROUNDS:-30}" ${KILL_SEED:+"$KILL_SEED"}
