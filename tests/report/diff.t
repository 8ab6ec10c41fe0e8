#!/usr/bin/env bash
# Comparing two runs: what is reported as slower, and what is not.
. "$(dirname "$0")/report.sh"

fsdp() { # name option...
	local name=$1
	shift
	simulate "$name" --nodes 2 --gpus 2 -w fsdp --seconds 8s "$@"
}
fsdp before
fsdp slowed --seed 4 -f degraded-network:factor=1.5
for seed in 2 3 5 6 7; do
	fsdp "noise$seed" --seed "$seed"
done
simulate larger --nodes 4 --gpus 2 -w fsdp --seconds 4s
simulate other --nodes 2 --gpus 2 -w ddp --seconds 2s
make_sampled
diff_of() { # names and options
	local a=$1 b=$2
	shift 2
	"$ringside" diff "$tap_scratch/$a" "$tap_scratch/$b" "$@"
}
code_of() {
	diff_of "$@" >"$tap_scratch/diff.out" 2>&1
	echo $?
}

expect_output "a run compared with itself" diff-same diff_of before before
expect_output "a slowed run" diff-slowed diff_of before slowed
expect_output "a terminal of 80 columns" diff-80 env COLUMNS=80 "$ringside" diff "$tap_scratch/before" "$tap_scratch/slowed"
expect_output "swapped, it is faster" diff-faster diff_of slowed before
expect_output "different operations" diff-other diff_of before other
expect_output "one side with sampled timing" diff-sampled diff_of all sampled
expect_output "one side without timing" diff-none diff_of all none
for seed in 2 3 5 6 7; do
	expect_same "noise is not reported: seed $seed" "$(code_of before "noise$seed")" 0
done
expect_same "more than the threshold: exit 1" "$(code_of before slowed)" 1
expect_same "less than the threshold: exit 0" "$(code_of before slowed --threshold 80%)" 0
expect_same "nothing slower: exit 0" "$(code_of slowed before)" 0
expect_same "by operation alone" "$(code_of before slowed --by function)" 1
expect_same "by kind and size" "$(code_of before slowed --by kind,size --op AllGather)" 1
expect_same "filters apply to both sides" "$(code_of before slowed --op AllReduce)" 0

# Slowdowns that waiting used to hide. Without a fault, jobs of the same kind are the same.
tenth() { # name option...
	local name=$1
	shift
	simulate "$name" --nodes 4 --gpus 4 --seconds 20s "$@"
}
tenth fast -w fsdp
tenth network -w fsdp --seed 2 -f degraded-network:factor=1.1
tenth link -w fsdp --seed 3 -f slow-link:from=5,to=10,factor=1.1
tenth stages -w tp-pp
tenth nvlink -w tp-pp --seed 2 -f slow-nvlink:factor=1.1
tenth one-nvlink -w tp-pp --seed 3 -f slow-nvlink:node=2,factor=1.1
tenth stages-again -w tp-pp --seed 4
tenth experts -w moe
tenth expert-link -w moe --seed 2 -f slow-link:from=1,to=5,factor=1.1
tenth computing -w fsdp --seed 5 -f slow-rank:rank=3,factor=1.3
expect_same "a network 10% slower" "$(code_of fast network)" 1
expect_same "a link 10% slower" "$(code_of fast link)" 1
expect_same "its sender, and no other" "$(diff_of fast link --json |
	json_says 'join " ", sort { $a <=> $b } map { $_->{rank} } grep { $_->{is_slower} } @{$_->{senders}}')" 5
expect_same "NVLink 10% slower" "$(code_of stages nvlink)" 1
expect_same "NVLink of one node 10% slower" "$(code_of stages one-nvlink)" 1
expect_same "in the communicator within that node" "$(diff_of stages one-nvlink --json | json_says 'join " ", map { $_->{name} } grep { $_->{is_slower} } @{$_->{rows}}')" tp-2
expect_same "the same pipeline" "$(code_of stages stages-again)" 0
expect_same "a link of an all-to-all 10% slower" "$(code_of experts expert-link)" 1
expect_same "a straggler makes no transfer slower" "$(diff_of fast computing --json |
	json_says '"$_->{slower} $_->{senders_slower}"')" "0 0"
expect_same "but iterations" "$(diff_of fast computing --json | json_says '"$_->{job}{is_slower} $_->{answer}"')" "1 slower"
expect_same "nothing in common: exit 3" "$(code_of before other --op AllGather)" 3
expect_same "nothing timed on both sides: exit 3" "$(code_of all none)" 3
expect_same "a larger job is not judged: exit 3" "$(code_of before larger)" 3
expect_same "its size is stated" "$(diff_of before larger --json | json_says 'join ", ", map { "$_->{what} $_->{a} $_->{b}" } grep { $_->{what} =~ /ranks|hosts/ } @{$_->{differences}}')" "ranks 4 8, hosts 2 4"
expect_ok "--html writes a page without scripts" sh -c '"$0" diff "$1" "$1" --html -o "$2" && grep -q "no slowdown above 5%" "$2" && ! grep -q "<script" "$2"' \
	"$ringside" "$tap_scratch/before" "$tap_scratch/diff.html"
expect_refusal "--html and --json" 2 "exclude each other" diff_of before before --html --json

says() { # expression
	json_says "$1" "$tap_scratch/diff.json"
}
diff_of before slowed --json >"$tap_scratch/diff.json"
expect_same "--json has the same exit code" "$?" 1
expect_same "--json has the threshold and the keys" "$(says '"$_->{threshold} @{$_->{by}}"')" "0.05 name function size"
expect_same "--json counts" "$(says '$_->{slower} >= 1 && $_->{faster} == 0 && $_->{only_a} == 0 ? "yes" : "no"')" yes
expect_same "the most important row comes first" "$(says '"$_->{rows}[0]{function} $_->{rows}[0]{verdict}"')" "AllGather slower"
expect_same "the interval has the ratio in it" \
	"$(says 'join ",", map { $_->{ratio_low} <= $_->{ratio} && $_->{ratio} <= $_->{ratio_high} ? 1 : 0 } @{$_->{rows}}')" "1,1,1"
expect_same "both sides have their completeness" "$(says '$_->{a}{completeness}{is_complete} + $_->{b}{completeness}{is_complete}')" 2
"$ringside" report --json "$tap_scratch/before" >"$tap_scratch/report.json"
expect_same "figures match the report" "$(says 'join ",", sort map { $_->{a}{sum_ns} } @{$_->{rows}}')" \
	"$(json_says 'join ",", sort map { $_->{sum_ns} } @{$_->{tables}{size}{rows}}' "$tap_scratch/report.json")"
diff_of all none --json >"$tap_scratch/diff.json"
expect_same "operations not timed on both sides have null ratios" \
	"$(says 'join ",", map { defined $_->{median_ratio} || defined $_->{ratio} || defined $_->{b}{sum_ns} ||
		defined $_->{b}{median_ns} || defined $_->{b}{busbw_bytes_per_second} ? "figure" : $_->{verdict} } @{$_->{rows}}')" \
	"not timed,not timed,not timed"
expect_same "and are counted" "$(says '$_->{not_timed}')" 3
diff_of before larger --json --by function,size >"$tap_scratch/diff.json"
expect_same "different number of ranks: bandwidths are compared" \
	"$(says 'join ",", map { defined $_->{busbw_ratio} ? 1 : 0 } @{$_->{rows}}')" "1,1,1"
expect_ok "-o writes a file" sh -c '"$0" diff "$1" "$1" -o "$2" && grep -q "^3 kinds of operations compared: none" "$2"' "$ringside" \
	"$tap_scratch/before" "$tap_scratch/diff.txt"

# Results of nccl-tests instead of a run.
measured=tests/foreign/data/nccl-tests-all-reduce.txt
simulate loop --nodes 1 --gpus 8 -w loop --seconds 3s
expect_output "expected bandwidths" diff-expected "$ringside" diff "$measured" "$tap_scratch/loop"
"$ringside" diff "$measured" "$tap_scratch/loop" --json >"$tap_scratch/diff.json" 2>/dev/null
expect_same "measured bandwidth against transfers without waiting" \
	"$(says '(map { sprintf "%.2f %s", $_->{a}{busbw_bytes_per_second} / 1e9, $_->{b}{mean_ns} < $_->{b}{median_ns} ? "below" : "above" }
		grep { $_->{size} =~ /^1 KiB/ } @{$_->{rows}})[0]')" "0.16 below"
"$ringside" diff "$tap_scratch/loop" "$measured" --json >"$tap_scratch/turned.json" 2>/dev/null
expect_same "swapped, the ratio is inverted" \
	"$(json_says 'sprintf "%.6f", (grep { $_->{size} =~ /^1 KiB/ } @{$_->{rows}})[0]{ratio}' "$tap_scratch/turned.json")" \
	"$(says 'sprintf "%.6f", 1 / (grep { $_->{size} =~ /^1 KiB/ } @{$_->{rows}})[0]{ratio}')"
expect_refusal "two expectations" 3 "one must be a run" "$ringside" diff "$measured" "$measured"
expect_refusal "old output that does not name its operation" 3 "no usable expected bandwidth" \
	"$ringside" diff tests/foreign/data/nccl-tests-old.txt "$tap_scratch/loop"
cp tests/foreign/data/nccl-tests-old.txt "$tap_scratch/all_gather_perf.txt"
expect_same "unless its file name does" "$("$ringside" diff "$tap_scratch/all_gather_perf.txt" "$tap_scratch/loop" --json 2>/dev/null |
	json_says 'join ",", keys %{{ map { $_->{function} => 1 } @{$_->{rows}} }}')" AllGather

expect_refusal "one side only" 2 "pass A and B" "$ringside" diff "$tap_scratch/before"
expect_refusal "three sides" 2 "only two runs can be compared" diff_of before before "$tap_scratch/before"
expect_refusal "an invalid threshold" 2 "not a percentage like 5%" diff_of before before --threshold much
expect_refusal "a negative threshold" 2 "not a percentage like 5%" diff_of before before --threshold -5%
expect_refusal "--by job" 2 "two jobs" diff_of before before --by job
expect_refusal "too many parts" 2 "more than 9 parts" diff_of before before \
	--by comm,name,kind,function,size,datatype,algorithm,protocol,rank,host
expect_refusal "a missing path" 3 "nowhere" diff_of nowhere before
tap_done
