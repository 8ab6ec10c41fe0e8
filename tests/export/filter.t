#!/usr/bin/env bash
# Filters: `export` writes the operations that `report` counts. On jobs with known figures.
. "$(dirname "$0")/export.sh"
build_tool tagged_trace

mkdir "$tap_scratch/tagged"
"$tap_scratch/tagged_trace" "$tap_scratch/tagged" || exit 1
simulate "$tap_scratch/sim" --nodes 2 --gpus 2 -w tp-pp --pp 2 --seconds 3s

rows() { # recording option...
	"$ringside" export "$tap_scratch/$1" -f csv -o - "${@:2}" | tail -n +2 | wc -l | tr -d ' '
}
figure() { # what recording option...
	"$ringside" report --json "$tap_scratch/$2" "${@:3}" | json_says "$1"
}
calls() { # recording option...
	figure '$_->{total}{calls}' "$@"
}

# ---- tags ---------------------------------------------------------------------------------------------------
expect_same "operations of a tag are counted" "$(calls tagged --tag 2)" 260
expect_same "and exported" "$(rows tagged --tag 2)" 260
expect_same "tags may be hexadecimal" "$(rows tagged --tag 0x2)" 260
expect_same "a tag and an operation" "$(rows tagged --tag 2 --op AllReduce)" 200
expect_same "an unused tag" "$(rows tagged --tag 9),$(calls tagged --tag 9)" "0,0"
expect_same "all rows have the tag" "$("$ringside" export "$tap_scratch/tagged" --tag 3 -f jsonl -o - |
	grep -c '"user_tag":3,')" 200
expect_same "a table by tag" "$("$ringside" report --json "$tap_scratch/tagged" --by tag |
	json_says 'join ",", sort map { "$_->{tag}:$_->{calls}" } @{$_->{custom}[0]{rows}}')" "1:200,2:260,3:200"
expect_same "waiting of one tag" "$(figure '$_->{total}{wait_ns}' tagged --tag 1)" 100000
expect_same "and of all" "$(figure '$_->{total}{wait_ns}' tagged)" 300000

# ---- unmatched calls ----------------------------------------------------------------------------------------
expect_same "calls without other recorded ranks are not matched" "$(figure '$_->{total}{joined}' tagged)" 600
expect_same "their waiting is unknown" "$(figure 'join ",", map { defined $_ ? $_ : "null" }
	@{(grep { $_->{function} eq "AllGather" } @{$_->{tables}{function}{rows}})[0]}{qw(joined wait_ns wait_share)}' \
	tagged)" "0,null,null"
expect_same "also for the rank" "$(figure 'join ",", map { defined $_ ? $_ : "null" }
	@{$_->{ranks}[2]}{qw(joined wait_ns)}' tagged)" "0,null"
expect_same "too few collectives are counted" "$(figure 'join ",", map { 0 + $_ }
	@{$_->{stragglers}}{qw(has_enough meetings least_meetings)}' tagged --until 1006ms)" "0,59,128"

# ---- everything else ----------------------------------------------------------------------------------------
all=$(rows sim)
expect_same "without a filter all are exported" "$all" "$(calls sim)"
while read -r options; do
	read -ra chosen <<<"$options"
	expect_same "export $options matches the report" "$(rows sim "${chosen[@]}")" \
		"$(figure '$_->{completeness}{looked_at}' sim "${chosen[@]}")"
	[ "$(rows sim "${chosen[@]}")" -lt "$all" ] || tap_line "not ok" "and is a subset" "$options"
done <<'END'
--rank 1
--rank 0,2-3
--comm tp-0
--comm tp-0 --comm pp-1
--op Send,Recv
--op allreduce --rank 2
--since 1s
--until 1s
--since 1s --until 2s --rank 1 --op AllReduce
--since -1s
END

mkdir "$tap_scratch/lake"
"$ringside" export "$tap_scratch/sim" --rank 1 -o "$tap_scratch/lake/" >/dev/null
expect_same "excluded ranks have no file" "$(cd "$tap_scratch/lake" && find . -type f | grep -vc 'rank=1/')" 0
"$ringside" export "$tap_scratch/sim" --rank 1 --json -o "$tap_scratch/one.parquet" >"$tap_scratch/summary.json"
expect_same "a filter does not make the export incomplete" \
	"$(json_says '$_->{is_complete} ? "complete" : "not", $_->{processes}' <"$tap_scratch/summary.json" | tr -d '\n')" "complete1"

export_() { "$ringside" export "$tap_scratch/sim" -o "$tap_scratch/no.csv" "$@"; }
expect_refusal "an operation with a typing error" 2 "unknown operation 'AlReduce', did you mean 'AllReduce'" export_ --op AlReduce
expect_refusal "a communicator that is not there" 3 "no communicator 'dp'" export_ --comm dp
expect_refusal "a rank that is not there" 3 "no rank .100. here; available: 0-3" export_ --rank 100
expect_refusal "a time that is none" 2 "not a time like 30s" export_ --since yesterday
tap_done
