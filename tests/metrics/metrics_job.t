#!/usr/bin/env bash
# Metrics of a recorded job agree with `ringside report` of the same run.
. "$(dirname "$0")/metrics.sh"
needs_readers
build_tool metrics_sample
build_tool metrics_dump
"$tap_scratch/metrics_sample" names >"$tap_scratch/names"
unset "${!RINGSIDE_@}" "${!SLURM_@}"
export RINGSIDE_SHM=$tap_scratch/shm

simulate() { # option...
	rm -rf "$tap_scratch/shm" "$tap_scratch/traces"
	mkdir -p "$tap_scratch/shm"
	"$ringside" sim --kernel -o "$tap_scratch/traces" "$@" >"$tap_scratch/sim.out" 2>&1
}
dump() { # format
	"$tap_scratch/metrics_dump" "$1" "$tap_scratch/shm"
}
same() {
	local format
	for format in text openmetrics protobuf; do
		dump "$format" >"$tap_scratch/$format" || return 1
	done
	check same "$tap_scratch/text" "$tap_scratch/openmetrics" "$tap_scratch/protobuf" "$tap_scratch/names"
}
reported() {
	"$ringside" report --json --by comm,rank,function,size,source "$tap_scratch/traces" >"$tap_scratch/report.json" ||
		return 1
	check report "$tap_scratch/text" "$tap_scratch/report.json"
}

# Scrape while it runs: after the first operations, and again when there are more.
operations() { # file
	dump text >"$tap_scratch/$1" 2>/dev/null
	check sum "$tap_scratch/$1" nccl_operations_total
}
simulate --nodes 2 --gpus 2 -w moe --seconds 600s &
has_begun() { [ "$(operations early)" != none ]; }
has_more() { [ "$(operations later)" != "$(check sum "$tap_scratch/early" nccl_operations_total)" ]; }
until_ok has_begun
until_ok has_more
pkill -TERM -P $!
wait
expect_ok "the three formats of a job have the same contents" same
expect_lint "promtool accepts the metrics of a job" "$tap_scratch/text"
expect_ok "operations, bytes, times and histograms agree with the report" reported
expect_ok "no counter decreased" check grows "$tap_scratch/early" "$tap_scratch/text"
expect_complaint "a decreasing counter is detected" "decreased" check grows "$tap_scratch/text" "$tap_scratch/early"
expect_same "transfers were recorded" "$(check sum "$tap_scratch/text" nccl_proxy_transfers_total | grep -c '^[1-9]')" 1
expect_same "all processes ended" "$(check sum "$tap_scratch/text" ringside_agent_processes state=ended)" 4

simulate --nodes 1 --gpus 4 -w tp-pp --tp 2 --pp 2 --seconds 1s --threads
expect_ok "ranks as threads of one process: the formats have the same contents" same
expect_ok "and agree with the report" reported
tap_done
