#!/usr/bin/env bash
# Forked children do not touch the parent's recording.
. "$(dirname "$0")/process.sh"
# Whether a child writes is seen by comparing bytes: the parent must not beat in between.
export RINGSIDE_HEARTBEAT=3600
mkdir -p "$RINGSIDE_DIR"
# Without the trace thread every byte has to stay as it was.
RINGSIDE_MODE=flight "$BUILD/tests/process/process_fork"
