#!/usr/bin/env bash
# Every query of docs/EXPORT.md runs and gives the documented result.
. "$(dirname "$0")/export.sh"
need_readers

prepare() { # name option...
	local name=$1
	shift
	simulate "$tap_scratch/$name.traces" "$@"
	mkdir "$tap_scratch/$name"
	"$ringside" export "$tap_scratch/$name.traces" -o "$tap_scratch/$name/operations.parquet" >/dev/null 2>&1
}
answer() { # name heading
	node tests/export/queries.mjs docs/EXPORT.md "$tap_scratch/$1" "$2"
}

prepare slow --nodes 2 --gpus 4 --tp 2 --pp 2 -w tp-pp --iterations 10 -f slow-rank:rank=3,factor=2
prepare stuck --nodes 1 --gpus 4 -w fsdp --iterations 6 -f never-arrives:rank=2 --at 1s --hang 1s
prepare wrong --nodes 1 --gpus 4 -w ddp --iterations 6 -f mismatch:rank=1 --at 1s --hang 1s

all=$(node tests/export/queries.mjs docs/EXPORT.md "$tap_scratch/slow")
while IFS= read -r line; do
	case $line in
	"ok "*) tap_line ok "${line#ok }" "" ;;
	*) tap_line "not ok" "${line#not ok }" "" ;;
	esac
done <<<"$all"
expect_same "every query of the page ran" "$(wc -l <<<"$all")" "$(grep -cxF '```sql' docs/EXPORT.md)"
expect_same "queries for problems find none in a healthy job" \
	"$(grep -E ': 0 rows$' <<<"$all" | cut -d: -f1)" \
	"ok Ranks that disagree
ok Operations that did not end"

expect_same "the slow rank is found" \
	"$(answer slow "Waiting and stragglers" | head -n 1 | cut -d'|' -f1)" 3
expect_same "it lost most GPU-hours" "$(answer slow "GPU-hours lost" | head -n 1 | cut -d'|' -f3)" 3
expect_same "every Send has its Recv" "$(answer slow "Send and Recv" | cut -d'|' -f5 | sort -u)" 0
expect_same "ten iterations, and the operations before them" "$(answer slow "Per iteration" | wc -l)" 11
expect_same "nothing is missing" "$(query "SELECT sum(c) FROM (SELECT max(sequence) - count(sequence) AS c FROM '$tap_scratch/slow/operations.parquet' GROUP BY rank)")" 0
expect_same "ranks stuck in a collective are found, without the missing one" \
	"$(answer stuck "Operations that did not end" | cut -d'|' -f1 | sort -u | tr '\n' ' ')" "0 1 3 "
expect_same "a mismatched call is found" "$(answer wrong "Ranks that disagree" | wc -l)" 1
tap_done
