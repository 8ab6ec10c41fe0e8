#!/usr/bin/env bash
# Progress of long work is shown on terminals only.
. "$(dirname "$0")/export.sh"
build_tool progress_play src/cli/cli.c
play=$tap_scratch/progress_play

lines() { tr '\r' '\n' | sed 's/\x1b\[K$/|/' | grep -v '^$'; }
"$play" | lines >"$tap_scratch/lines"
expect_same "no progress in the first second" "$(head -n 1 "$tap_scratch/lines")" \
	"  export  10%  1,000,000 of 10,000,000 operations, 10 s left|"
expect_same "then five updates per second" "$(wc -l <"$tap_scratch/lines")" 47
expect_same "the last line is erased" "$(tail -n 1 "$tap_scratch/lines")" "|"
expect_same "an unknown total" "$("$play" endless | lines | head -n 1)" "  export  1,000,000 operations|"
expect_same "no progress without a terminal" "$("$play" quiet)" ""

simulate "$tap_scratch/small" --nodes 1 --gpus 2 -w fsdp --seconds 1s
expect_same "no progress for an export into a pipe" \
	"$("$ringside" export "$tap_scratch/small" -f csv -o - 2>&1 >/dev/null)" ""
tap_done
