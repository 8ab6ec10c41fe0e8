#!/usr/bin/env bash
# Upgrading while jobs run: programs built from older commits together with those of this tree. An old plugin is read by
# the new tool and agent, and the new plugin by old ones.
. "$(dirname "$0")/../tap.sh"
export LC_ALL=C
git rev-parse --git-dir >/dev/null 2>&1 || tap_skip_all "no git history here"
command -v curl >/dev/null || tap_skip_all "curl is not installed"
for program in tests/process/process_job ringside ringside-agent; do
	[ -x "$BUILD/$program" ] || tap_skip_all "$program is not built"
done
unset "${!RINGSIDE_@}" "${!NCCL_@}" MAKEFLAGS MFLAGS

# The last commit of each version of the region's format. The first has no agent.
releases='
1.0  8efbaf80  all
1.1  0ec2a88d^ agent
1.2  7586bbfa^ agent
'
started=()
clean_up() {
	local pid
	for pid in "${started[@]}"; do
		kill -9 "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	rm -rf "$tap_scratch" "$shm"
}
shm=$(mktemp -d /dev/shm/upgrade.XXXXXX)
trap clean_up EXIT

# Two ranks that have called 200 operations each and live on, with this plugin.
start_job() { # plugin
	local rank
	rm -rf "$shm" && mkdir "$shm"
	mkfifo "$shm/hold"
	exec 8<>"$shm/hold"
	for rank in 0 1; do
		env PLUGIN="$1" RINGSIDE_SHM="$shm" RINGSIDE_JOB=upgrade RANK=$rank "$BUILD/tests/process/process_job" \
			ops=200 nodes=2 rank=$rank ranks=2 end=hold <"$shm/hold" >"$shm/said.$rank" 2>&1 &
		started+=($!)
	done
	until_ok grep -q issued=200 "$shm/said.0" && until_ok grep -q issued=200 "$shm/said.1"
}
# Finished operations of both ranks as this agent reports them.
agent_counts() { # agent
	local log=$tap_scratch/agent.log url
	"$1" --directory "$shm" --listen 127.0.0.1:0 >/dev/null 2>"$log" &
	started+=($!)
	until_ok grep -q 'listening on' "$log"
	url=$(sed -n 's|.*listening on \(http://[^,/ ]*\).*|\1|p' "$log" | head -n 1)
	until_ok eval "curl -s $url/metrics | grep -q '^nccl_operations_issued_total.* 200\$'"
	curl -s "$url/metrics" | awk '/^nccl_operations_issued_total/ { sum += $NF; ranks++ } END { print ranks + 0, sum + 0 }'
	kill "${started[-1]}"
}
tool_counts() { # ringside
	"$1" verify --json "$shm/ringside-$(id -u)" |
		python3 -c 'import json, sys; found = json.load(sys.stdin)["processes"]; print(len(found), sum(p["issued"] for p in found))'
}

while read -r format commit target; do
	[ -n "$format" ] || continue
	tree=$tap_scratch/$format
	mkdir -p "$tree"
	if ! git archive "$commit" 2>/dev/null | tar -x -C "$tree" 2>/dev/null; then
		tap_line ok "format $format # SKIP no commit $commit here" ""
		continue
	fi
	[ "$target" = all ] || target='build/ringside build/ringside-agent'
	# shellcheck disable=SC2086 # several targets
	expect_ok "programs with format $format build" make -s -C "$tree" -j"$(nproc)" BUILD=build CC="${CC:-cc}" plugin $target
	old=$tree/build
	start_job "$old/libnccl-profiler-ringside.so"
	expect_same "a running job with an old plugin ($format): the new tool" "$(tool_counts "$BUILD/ringside")" "2 400"
	expect_same "and the new agent" "$(agent_counts "$BUILD/ringside-agent")" "2 400"
	start_job "$BUILD/libnccl-profiler-ringside.so"
	expect_same "a running job with the new plugin: the old tool ($format)" "$(tool_counts "$old/ringside")" "2 400"
	[ ! -x "$old/ringside-agent" ] ||
		expect_same "and the old agent" "$(agent_counts "$old/ringside-agent")" "2 400"
done <<<"$releases"
tap_done
