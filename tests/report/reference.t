#!/usr/bin/env bash
# Compares every figure of `report --json` with a second, simple implementation that reads `ringside dump`.
. "$(dirname "$0")/report.sh"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"

dumped=
# Compares report and dump of a path. After --, the filter in the syntax of reference.py.
agrees() { # sentence path [option...] [-- filter...]
	local sentence=$1 path=$2 options=() said
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	if [ "$path" != "$dumped" ]; then
		"$ringside" dump "$path" >"$tap_scratch/dump.jsonl" 2>/dev/null
		dumped=$path
	fi
	"$ringside" report --json "$path" "${options[@]}" >"$tap_scratch/report.json" 2>"$tap_scratch/report.err"
	if said=$(python3 tests/report/reference.py "$tap_scratch/report.json" "$tap_scratch/dump.jsonl" "$@" 2>&1); then
		tap_line ok "$sentence: $said" ""
	else
		tap_line "not ok" "$sentence" "$(tail -n 12 <<<"$said"; head -n 5 "$tap_scratch/report.err")"
	fi
}

simulate fsdp --nodes 2 --gpus 4 -w fsdp --seconds 3s
simulate slow --nodes 2 --gpus 6 -w tp-pp --pp 2 -f slow-rank:rank=5 --clock-shift 1s --seconds 2s
simulate moe --nodes 2 --gpus 4 -w moe --seed 3 --seconds 1s --release 2.31 --tag ep=7
simulate old --nodes 2 --gpus 2 -w ddp --release 2.26 --no-kernel --seconds 2s
simulate newer --nodes 2 --gpus 2 -w fsdp --release 2.29 --seconds 2s
simulate hung --nodes 2 --gpus 4 -w moe -f stuck-send:rank=3 --at 1s
simulate killed --nodes 2 --gpus 4 -w ddp -f kill:rank=3 --at 1s
simulate apart --nodes 2 --gpus 4 -w fsdp -f mismatch:rank=2,what=count --at 1s
make_samples
make_sampled

agrees "sharded data parallel" "$tap_scratch/fsdp"
agrees "--since and --until" "$tap_scratch/fsdp" --since 1s --until -1s
agrees "tensor and pipeline parallel, clocks a second apart" "$tap_scratch/slow"
agrees "--op" "$tap_scratch/slow" --op AllReduce,Send -- op=AllReduce,Send
agrees "--rank" "$tap_scratch/slow" --rank 3-9 -- rank=3-9
agrees "--comm" "$tap_scratch/slow" --comm tp-0 --by name,size,rank -- comm=tp-0
agrees "--by comm,function" "$tap_scratch/slow" --by comm,function
agrees "mixture of experts, with sends to self" "$tap_scratch/moe"
agrees "--tag" "$tap_scratch/moe" --tag 7 -- tag=7
agrees "--by with everything" "$tap_scratch/moe" \
	--by comm,name,kind,function,size,datatype,algorithm,protocol,rank,host,tag,source,job
agrees "a hung job" "$tap_scratch/hung"
agrees "--by source,size" "$tap_scratch/hung" --by source,size
agrees "a release that does not report sizes of communicators" "$tap_scratch/old"
agrees "a release that does not report Broadcast" "$tap_scratch/newer"
agrees "a killed rank" "$tap_scratch/killed"
agrees "ranks that disagree" "$tap_scratch/apart"
agrees "sampled timing" "$tap_scratch/sampled"
agrees "the same by rank and size" "$tap_scratch/sampled" --by rank,function,size
agrees "the same by source" "$tap_scratch/sampled" --by source,function
agrees "no timing" "$tap_scratch/none"
agrees "two ranks written by a test" "$tap_scratch/traces"
agrees "the region of a killed process" "$tap_scratch/stuck"
agrees "a region and a trace of one process" "$tap_scratch/ended"
agrees "a log of NCCL Inspector" tests/foreign/data/inspector-v4.1.log

# The comparison can fail: with the dump of another run, and with one changed figure.
"$ringside" dump "$tap_scratch/fsdp" >"$tap_scratch/dump.jsonl"
"$ringside" report --json "$tap_scratch/newer" >"$tap_scratch/report.json"
expect_complaint "figures of another run differ" "keys is|calls is" \
	python3 tests/report/reference.py "$tap_scratch/report.json" "$tap_scratch/dump.jsonl"
"$ringside" report --json "$tap_scratch/fsdp" |
	perl -pe 's/"wait_ns":(\d+)/q("wait_ns":) . ($1 + 1)/e' >"$tap_scratch/report.json"
expect_complaint "a difference of one nanosecond is found" "[1-9] differ" \
	python3 tests/report/reference.py "$tap_scratch/report.json" "$tap_scratch/dump.jsonl"
tap_done
