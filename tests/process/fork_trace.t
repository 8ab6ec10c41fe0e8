#!/usr/bin/env bash
# A parent that writes a trace continues after its children.
. "$(dirname "$0")/process.sh"

fresh
mkdir -p "$RINGSIDE_DIR"
RINGSIDE_MODE=trace "$BUILD/tests/process/process_fork" >"$said" 2>&1
echo issued=200 >>"$said"
read_facts
expect_facts "everything of the parent and nothing of its children" \
	processes=1 file_count=1 operations=issued issued=issued comms=1 lost=0 gaps=0 exact=1 closed=1 life=ended
expect_same "one file" "$(find "$RINGSIDE_DIR" -type f | wc -l)" 1
expect_same "no child hung or failed" "$(grep 'not ok' "$said" | grep -v 'as it was\|recording')" ""
tap_done
