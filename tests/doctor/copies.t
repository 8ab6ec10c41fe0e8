#!/usr/bin/env bash
# Regions that were copied while their processes ran are judged as of their last heartbeat, not as of now.
. "$(dirname "$0")/../tap.sh"
ringside=$BUILD/ringside

mkdir "$tap_scratch/shm" "$tap_scratch/copy" "$tap_scratch/late"
RINGSIDE_SHM=$tap_scratch/shm "$ringside" sim --nodes 1 --gpus 3 -w loop --rate 4 --seconds 30s >/dev/null 2>&1 &
job=$!
trap 'kill $job 2>/dev/null' EXIT
for _ in {1..100}; do
	(($(cat "$tap_scratch"/shm/ringside-*/*.region 2>/dev/null | wc -c) > 3000000)) && break
	sleep 0.1
done
sleep 3
cp "$tap_scratch"/shm/ringside-*/*.region "$tap_scratch/copy"
sleep 5
"$ringside" doctor --hang 2s "$tap_scratch/copy" >"$tap_scratch/said"
expect_same "a copy of a calm job hangs no more than the job" "$?" 0
expect_same "no verdict" "$(grep -cE '^(error|warning|not judged|dead)' "$tap_scratch/said")" 0
expect_ok "the last operation is as old as it was" grep -qE "last operation was [0-9.]+ (ms|us|ns) ago" \
	<(tr -s '\n ' ' ' <"$tap_scratch/said")
"$ringside" doctor --hang 2s "$tap_scratch/shm" >/dev/null
expect_same "nor does the job" "$?" 0
rank=$(basename "$(find "$tap_scratch/shm" -name '*.region' | head -1)")
kill -STOP "${rank%%-*}"
sleep 3
"$ringside" doctor --json --hang 2s "$tap_scratch/shm" >"$tap_scratch/said"
expect_ok "the file itself is judged as of now" grep -q '"class":"process_stopped"' "$tap_scratch/said"
kill -KILL "${rank%%-*}"
tap_done
