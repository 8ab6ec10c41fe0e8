#!/usr/bin/env bash
# Containers that share /dev/shm, each with its own pid namespace, do not fill it with what dead processes left.
. "$(dirname "$0")/process.sh"
unshare -pf --mount-proc true 2>/dev/null || tap_skip_all "needs the right to make pid namespaces"
regions() { find "$RINGSIDE_SHM" -name '*.region' | wc -l; }
containers=60 ranks=4

export RINGSIDE_BUFFER=64KiB
failed=0 most=0
others=()
for ((i = 0; i < containers; i++)); do
	# Another container that stays: numbers of namespaces are not used again.
	unshare -pf --kill-child sleep 600 &
	others+=("$!")
	# shellcheck disable=SC2016
	unshare -pf --mount-proc bash -c '
		for ((rank = 0; rank < $1; rank++)); do "$0" ops=5 >/dev/null 2>&1 & ranks+=("$!"); done
		for rank in "${ranks[@]}"; do wait "$rank" || exit 1; done' "$job" "$ranks" || failed=$((failed + 1))
	now=$(regions)
	[ "$now" -le "$most" ] || most=$now
done
{ kill -KILL "${others[@]}" && wait "${others[@]}"; } 2>/dev/null
expect_same "$containers jobs of $ranks ranks run to their end" "$failed" 0
expect_ok "at least the last one can be read" test "$(regions)" -ge "$ranks"
# 15 of dead processes stay, and those of a job that starts at once sweep before they create theirs.
expect_ok "at no time more regions than 15 and those of two jobs ($most of $((containers * ranks)))" test "$most" -le $((15 + 2 * ranks))
"$BUILD/ringside" ls -q "$RINGSIDE_SHM" >"$tap_scratch/listed" 2>/dev/null
expect_same "all that is left can be read" "$(grep -c "^ *[0-9]" "$tap_scratch/listed")" "$(regions)"
tap_done
