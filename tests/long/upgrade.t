#!/usr/bin/env bash
# Upgrading while jobs run: programs built from older commits together with those of this tree. An old plugin is read by
# the new tool and agent, and the new plugin by old ones; of the last release, trace files, too, and jobs that CUDA events time.
. "$(dirname "$0")/../tap.sh"
export LC_ALL=C
git rev-parse --git-dir >/dev/null 2>&1 || tap_skip_all "no git history here"
command -v curl >/dev/null || tap_skip_all "curl is not installed"
for program in tests/process/process_job ringside ringside-agent ringside-sim; do
	[ -x "$BUILD/$program" ] || tap_skip_all "$program is not built"
done
unset "${!RINGSIDE_@}" "${!NCCL_@}" MAKEFLAGS MFLAGS

# The last commit of each version of the region's format, and the last release, 0.2.0. The first has no agent.
releases='
1.0  8efbaf80  all
1.1  0ec2a88d^ agent
1.2  7586bbfa^ agent
1.3  f4a2f517  release
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

# The jobs and their files below this directory: operations called, lost and missing, as this tool counts them.
recorded() { # ringside path
	"$1" verify --json "$2" |
		python3 -c 'import json, sys; print([[p[key] for key in ("rank", "issued", "recorded", "missing")] for p in sorted(json.load(sys.stdin)["processes"], key=lambda p: p["rank"])])'
}
# A whole job of two ranks that write trace files.
write_traces() { # plugin directory
	local rank
	for rank in 0 1; do
		env PLUGIN="$1" RINGSIDE_SHM="$shm" RINGSIDE_MODE=trace RINGSIDE_DIR="$2" RINGSIDE_JOB=upgrade RANK="$rank" \
			"$BUILD/tests/process/process_job" ops=200 nodes=2 rank=$rank ranks=2 >/dev/null || return 1
	done
}
# What one version of the programs makes of trace files of another. The report, because it is the longest way through them.
expect_readable() { # words ringside path calls
	expect_same "$1: everything is there" "$(recorded "$2" "$3")" "$4"
	expect_ok "$1: it can be reported" "$2" report "$3"
	expect_same "$1: each operation can be dumped" "$("$2" dump "$3" | grep -c '"record":"operation"')" \
		"$(python3 -c 'import sys; print(sum(row[1] for row in eval(sys.argv[1])))' "$4")"
}
# Every sample of these families that an agent exports for one job, without values.
samples() { # agent families
	local log=$tap_scratch/agent.log url
	"$1" --directory "$shm" --listen 127.0.0.1:0 >/dev/null 2>"$log" &
	started+=($!)
	until_ok grep -q 'listening on' "$log"
	url=$(sed -n 's|.*listening on \(http://[^,/ ]*\).*|\1|p' "$log" | head -n 1)
	until_ok eval "curl -s $url/metrics | grep -q '^nccl_operation_bus_bytes_total.*AllReduce'"
	curl -s "$url/metrics" | grep -E "^($2)\{" | sed 's/ [^ ]*$//' | sort
	kill "${started[-1]}"
}

check_release() { # folder of its programs
	local old=$1 rank='[[0, 200, 200, 0], [1, 200, 200, 0]]' calls figures sim
	expect_ok "the last release writes trace files" write_traces "$old/libnccl-profiler-ringside.so" "$tap_scratch/by-release"
	expect_readable "trace files of the release, tool of today" "$BUILD/ringside" "$tap_scratch/by-release" "$rank"
	expect_ok "today's plugin writes trace files" write_traces "$BUILD/libnccl-profiler-ringside.so" "$tap_scratch/by-today"
	expect_readable "trace files of today, tool of the release" "$old/ringside" "$tap_scratch/by-today" "$rank"

	# Sends and Recvs of an all-to-all share the time of one launch.
	"$BUILD/ringside" sim --offline --times all --nodes 2 --gpus 2 -w moe --iterations 6 -o "$tap_scratch/timed" >/dev/null
	calls=$(recorded "$BUILD/ringside" "$tap_scratch/timed")
	expect_readable "a job timed by CUDA events, tool of the release" "$old/ringside" "$tap_scratch/timed" "$calls"
	"$old/ringside" sim --offline --kernel --nodes 2 --gpus 2 -w fsdp --iterations 6 -o "$tap_scratch/kernels" >/dev/null
	calls=$(recorded "$old/ringside" "$tap_scratch/kernels")
	expect_readable "one timed by kernel events of the release, tool of today" "$BUILD/ringside" "$tap_scratch/kernels" "$calls"

	# The same while it runs: what both agents know has the same series, and no bandwidth of operations that share a time.
	rm -rf "$shm" && mkdir "$shm"
	env RINGSIDE_SHM="$shm" "$BUILD/ringside" sim --plugin "$BUILD/libnccl-profiler-ringside.so" -m flight --times all --nodes 1 --gpus 2 \
		-w moe --seconds 600s >/dev/null 2>&1 &
	sim=$!
	started+=("$sim")
	figures='nccl_operations_total|nccl_operation_seconds_total|nccl_operation_bus_bytes_total|nccl_timed_operations_total'
	samples "$old/ringside-agent" "$figures" >"$tap_scratch/old.series"
	samples "$BUILD/ringside-agent" "$figures" >"$tap_scratch/new.series"
	expect_same "a running job timed by CUDA events: both agents export the same series" \
		"$(cat "$tap_scratch/old.series")" "$(cat "$tap_scratch/new.series")"
	expect_same "with a bandwidth of AllReduce, and none of Send" \
		"$(grep -oE 'bus_bytes.*function="(AllReduce|Send)"' "$tap_scratch/old.series" | grep -oE 'AllReduce|Send' | sort -u)" AllReduce
	kill "$sim" && wait "$sim" 2>/dev/null
}

while read -r format commit target; do
	[ -n "$format" ] || continue
	tree=$tap_scratch/$format
	mkdir -p "$tree"
	if ! git archive "$commit" 2>/dev/null | tar -x -C "$tree" 2>/dev/null; then
		tap_line ok "format $format # SKIP no commit $commit here" ""
		continue
	fi
	kind=$target
	case $kind in
	agent) target='build/ringside build/ringside-agent' ;;
	release) target='build/ringside build/ringside-agent build/ringside-sim' ;;
	esac
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
	[ "$kind" != release ] || check_release "$old"
done <<<"$releases"
tap_done
