#!/usr/bin/env bash
# Long work shows how far it has come, on a terminal; nobody else ever sees it.
. "$(dirname "$0")/export.sh"
build_tool progress_play src/cmds/cli.c
play=$tap_scratch/progress_play

lines() { tr '\r' '\n' | sed 's/\x1b\[K$/|/' | grep -v '^$'; }
"$play" | lines >"$tap_scratch/lines"
expect_same "nothing in the first second" "$(head -n 1 "$tap_scratch/lines")" \
	"  export  10 %  1,000,000 of 10,000,000 operations, 10 s left|"
expect_same "then five times a second" "$(wc -l <"$tap_scratch/lines")" 47
expect_same "the last line is taken away" "$(tail -n 1 "$tap_scratch/lines")" "|"
expect_same "an end that nobody knows" "$("$play" endless | lines | head -n 1)" "  export  1,000,000 operations|"
expect_same "without a terminal, nothing" "$("$play" quiet)" ""

simulate "$tap_scratch/small" --nodes 1 --gpus 2 -w fsdp --seconds 1s
expect_same "an export into a pipe says nothing on the way" \
	"$("$ringside" export "$tap_scratch/small" -f csv -o - 2>&1 >/dev/null)" ""
tap_done
