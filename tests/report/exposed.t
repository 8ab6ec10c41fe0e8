#!/usr/bin/env bash
# Exposed communication of real jobs on a GPU equals what torch.profiler says, and lies within the bounds that are known
# without it. docs/results/exposed-h200.md is this comparison.
. "$(dirname "$0")/../cli/cli.sh"
data=tests/gpu/recorded/exposed

while read -r result; do
	case $result in
	"ok "*) tap_line ok "${result#* - }" "" ;;
	"not ok "*) tap_line "not ok" "${result#* - }" "" ;;
	"1.."*) compared=${result#1..} ;;
	*) echo "# $result" ;;
	esac
done < <(python3 tests/report/exposed.py "$ringside" $data 2>&1)
expect_same "all scenes were compared" "${compared:-none}" 28
expect_same "the page has these figures" \
	"$(python3 tests/report/exposed.py --page "$ringside" $data)" "$(cat docs/results/exposed-h200.md)"

shown() { # scene option...
	"$ringside" report "$data/$1/trace" --table iterations "${@:2}" 2>"$tap_scratch/err" | tr -s ' \n' ' '
}
expect_ok "bounds in the text" grep -qE "Exposed communication: [0-9.]+ us to [0-9.]+ ms of the median iteration" <(shown ddp-overlap)
expect_same "none from network spans" "$(shown ddp-overlap-proxy | grep -c "Exposed communication")" 0
expect_ok "a measured value" grep -qE "Exposed communication: [0-9.]+ ms of the median iteration, measured in 5 of 1[0-9]" \
	<(shown ddp-overlap --merge $data/ddp-overlap/kineto-0.json.gz)
expect_same "of a rank without a trace there is no value, and a remark" \
	"$(shown ddp-overlap --rank 1 --merge $data/ddp-overlap/kineto-0.json.gz | grep -c measured) $(grep -c "those of rank 1: its trace is needed" "$tap_scratch/err")" "0 1"
expect_refusal "a trace of another run is refused" 3 "process [0-9]+: another run" \
	"$ringside" report $data/manual/trace --merge $data/ddp-none/kineto-0.json.gz

difference() { # option...
	"$ringside" diff $data/manual/trace $data/ddp-overlap/trace "$@" 2>"$tap_scratch/err" | grep '^exposed' | tr -s ' '
}
expect_ok "diff has bounds, and does not judge them if they overlap" \
	grep -qE "^exposed communication [0-9.]+ ms to [0-9.]+ ms [0-9.]+ us to [0-9.]+ ms - - not judged: bounds overlap" <(difference)
expect_ok "traces of both runs find their side: with overlap less is exposed" \
	grep -qE "^exposed communication [0-9.]+ ms [0-9.]+ ms - - less" \
	<(difference --merge $data/ddp-overlap/kineto-0.json.gz --merge $data/manual)
expect_same "the same as JSON" "$("$ringside" diff --json $data/manual/trace $data/ddp-overlap/trace --merge $data/ddp-overlap --merge $data/manual |
	python3 -c 'import json, sys; found = json.load(sys.stdin)["job"]["exposed"]; print(found["is_more"], found["is_less"], found["a_low_ns"] == found["a_high_ns"])')" \
	"False True True"
expect_refusal "a trace of neither run is refused" 3 "of no process of either run" \
	"$ringside" diff $data/manual/trace $data/ddp-overlap/trace --merge $data/ddp-none

# PyTorch 2.11 gives NCCL no name.
expect_same "without the trace the communicator has no name" \
	"$("$ringside" report $data/fsdp-none/trace --by group --csv | sed -n 2p | cut -d, -f1,2)" '"(2 ranks, 2 nodes)"'
expect_same "with it, that of the process group, on all ranks" \
	"$("$ringside" report $data/fsdp-none/trace --by group,rank --csv --merge $data/fsdp-none | sed 1d | cut -d, -f1 | sort | uniq -c | tr -s ' ')" " 2 default_pg"
expect_ok "it can be chosen by that name" "$ringside" report $data/fsdp-none/trace --comm default_pg --merge $data/fsdp-none

# Nothing timed, no number.
"$ringside" sim --offline --no-kernel --nodes 1 --gpus 2 -w ddp --seconds 3s --seed 7 -o "$tap_scratch/untimed" >/dev/null 2>&1
"$ringside" report --json "$tap_scratch/untimed" | python3 -c '
import json, sys
found = json.load(sys.stdin)["iterations"]
print(found["regular"] > 5, found["exposed"], found["exposed_low_ns"], found["exposed_high_ns"], found["list"][0]["exposed_high_ns"])' >"$tap_scratch/said"
expect_same "no number where nothing is timed" "$(cat "$tap_scratch/said")" "True 0 None None None"
tap_done
