#!/usr/bin/env bash
# What the documents show of the doctor is what it prints: the commands of a sample are run, and its lines are the first ones
# of what they print; all of them where the document does not say "cut short". Simulated jobs are the same everywhere.
. "$(dirname "$0")/../tap.sh"

# The block with this command: commands as lines "$ ...", and what they print.
block_with() { # document command
	awk -v wanted="\$ $2" '
		/^```/ { if (has) { printf "%s", block; exit } block = ""; is_in = !is_in; next }
		is_in { block = block $0 "\n"; has = has || $0 == wanted }' "$1"
}

expect_sample() { # document whole|cut command
	local document=$1 extent=$2 command=$3 block shown printed line words
	block=$(block_with "$document" "$command")
	shown=$(sed -n '/^\$ ringside doctor /,$p' <<<"$block" | tail -n +2)
	printed=$(
		cd "$tap_scratch" && mkdir -p build || exit
		while read -r line; do
			read -ra words <<<"${line#\$ ringside }"
			[ "${words[0]}" = sim ] && rm -rf "${words[-1]}"
			"$BUILD/ringside" "${words[@]}" >said 2>&1
		done < <(grep '^\$ ringside ' <<<"$block")
		cat said
	)
	[ "$extent" = whole ] || printed=$(head -n "$(wc -l <<<"$shown")" <<<"$printed")
	expect_same "$document: $command" "$shown" "$printed"
}

expect_ok "there are samples" test -n "$(block_with docs/DOCTOR.md 'ringside doctor ok')"
expect_sample docs/DOCTOR.md whole "ringside doctor --hang 5s demo-hung"
expect_sample docs/DOCTOR.md whole "ringside doctor ok"
expect_sample README.md cut "ringside doctor --hang 5s build/demo-hung"
tap_done
