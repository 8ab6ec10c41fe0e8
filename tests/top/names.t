#!/usr/bin/env bash
# Hostile communicator names stay within their columns.
. "$(dirname "$0")/top.sh"

top_needs
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -o "$tap_scratch/odd_names" tests/top/odd_names.c -ldl || exit 1
coproc job { exec env RANK=2 WORLD_SIZE=4 "$BUILD/ringside" run --job odd -- "$tap_scratch/odd_names"; }
job_pid=$!
read -r -u "${job[0]}" line
[ "$line" = ready ] || exit 1
node tests/top/names.mjs "$BUILD/ringside"
code=$?
kill "$job_pid"
wait
exit "$code"
