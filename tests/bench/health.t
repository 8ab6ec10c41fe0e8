#!/usr/bin/env bash
# ringside bench health: reports what is slow, wrong or stuck, and nothing else.
. "$(dirname "$0")/bench.sh"
export FAKE_GPU_CLOCK=model FAKE_GPUS=8
# Messages of 1 MiB: the fake GPU computes on the CPU. Enough time for everything on a busy host.
quick=(--sizes 1M --seconds 30)

health() { # argument...
	bench health "${quick[@]}" "$@"
}
health_json() { # argument...
	health --json "$@"
	mv "$tap_scratch/out" "$tap_scratch/run.json"
}
first_line() {
	head -n 1 "$tap_scratch/out"
}
# A Python expression over the document: d.
says() { # expression [file]
	python3 -c '
import json, sys
d = json.load(open(sys.argv[2]))
print(eval(sys.argv[1]))' "$1" "${2:-$tap_scratch/run.json}" 2>&1
}
expect_verdict() { # sentence code pattern
	if [ "$code" -eq "$2" ] && [[ $(first_line) =~ $3 ]]; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "exit $code, wanted $2 and a first line like: $3"$'\n'"$(said)"
	fi
}

health --ranks 4 -o "$tap_scratch/good-day.json"
expect_verdict "healthy links are healthy" 0 "^healthy: 6 pairs inside a node: median .* results are correct$"
expect_same "there are no findings" "$(grep -c FINDINGS "$tap_scratch/out")" 0
bench health --from "$tap_scratch/good-day.json" --quiet
expect_same "--quiet prints one line" "$(wc -l <"$tap_scratch/out") $code" "1 0"

FAKE_NCCL_SLOW=2-3:10 health_json --ranks 4 -o "$tap_scratch/slow.txt" -o "$tap_scratch/slow.json"
expect_same "a slow pair fails the check" "$code" 1
expect_same "it is the only finding" "$(says '[(f["kind"], f["rank"], f["peer"]) for f in d["findings"]]')" \
	"[('slow_pair', 2, 3)]"
expect_same "its kind of link lists it" "$(says 'd["links"][0]["slowest"], d["links"][0]["slow_pairs"]')" "([2, 3], 1)"
expect_same "all pairs were measured in both directions, large and small" \
	"$(says 'len(d["pairs"]), d["pairs_all"], all(p["bandwidth_gbs"] and p["latency_ns"] for p in d["pairs"])')" "(6, 6, True)"
expect_same "every result was checked" \
	"$(says 'd["is_checked"], sum(r["wrong"] for r in d["run"]["results"])')" "(True, 0)"
expect_same "a text file starts with the verdict" "$(head -c 38 "$tap_scratch/slow.txt")" \
	"slow: the link between rank 2 (host $(says 'd["run"]["members"][2]["host"]' | head -c 3)"
expect_same "a JSON file has everything" "$(says 'd["verdict"]' "$tap_scratch/slow.json")" slow

FAKE_NCCL_SLOW=1-0:8,1-2:8,1-3:8,1-4:8 health_json --ranks 5
expect_same "a rank whose links are all slow is reported instead of its links" \
	"$(says '[(f["kind"], f["rank"]) for f in d["findings"]], d["exit_code"]')" "([('slow_rank', 1)], 1)"

FAKE_NCCL_WRONG=AllReduce:1 health --ranks 2
expect_verdict "wrong results are reported first" 1 "^wrong results: AllReduce"
FAKE_NCCL_WRONG=Recv:1 health --ranks 2 --quiet
expect_verdict "also those of a pair" 1 "^wrong results: "

# ---- too little to judge ----
health --ranks 2 -o "$tap_scratch/two.json"
expect_verdict "a single pair is not judged" 0 "^not judged: "
expect_same "with the reason" "$(grep -c 'too few to compare' "$tap_scratch/out")" 2
bench health --from "$tap_scratch/two.json" --strict --quiet
expect_verdict "which fails with --strict" 3 "^not judged: "
bench health --from "$tap_scratch/two.json" --expect inside=9 --quiet
expect_verdict "with an expectation it is judged" 0 "^healthy: "
FAKE_GPUS=1 health --ranks 2 --no-mps
expect_same "shared GPUs are reported" "$(grep -c 'ranks share GPUs' "$tap_scratch/out")" 1

# ---- compared with expectations ----
health --ranks 2 --expect inside=40 --quiet
expect_verdict "a kind of link below the expectation" 1 "^slow: links inside a node: .* 40\.00 GB/s expected"
bench health --from "$tap_scratch/two.json" --expect inside=40 --tolerance 0.1 --quiet
expect_verdict "is healthy with enough tolerance" 0 "^healthy: "
bench --ranks 2 -s 1M -n 3 --out-of-place allreduce -o "$tap_scratch/good.json"
health --ranks 2 --expected "$tap_scratch/good.json" --quiet
expect_verdict "as fast as on a good day" 0 "^(healthy|not judged): "
FAKE_NCCL_GBPS=2 health --ranks 2 --expected "$tap_scratch/good.json" --quiet
expect_verdict "slower than on a good day" 1 "^slow: AllReduce"

# ---- an earlier measurement ----
bench health --from "$tap_scratch/slow.json" --quiet
expect_verdict "an earlier measurement gives the same verdict" 1 "^slow: the link between rank 2 "
bench health --from "$tap_scratch/slow.json" --expect inside=100 --json
mv "$tap_scratch/out" "$tap_scratch/run.json"
expect_same "or with another expectation" \
	"$(says '[f["kind"] for f in d["findings"]]')" "['slow_pair', 'below_expected']"
bench health --from tests/bench/health.json
if [ "${REWRITE:-0}" = 1 ]; then cp "$tap_scratch/out" tests/bench/health.expected; fi
expect_same "the expected text" "$(cat "$tap_scratch/out")" "$(cat tests/bench/health.expected)"
bench health --from tests/bench/health.t
expect_trouble "no measurement" 3 "health.t: not a JSON result of"
bench health --from "$tap_scratch/nothing"
expect_trouble "no file" 3 "nothing: No such file"
head -c 20000 "$tap_scratch/slow.json" >"$tap_scratch/cut.json"
bench health --from "$tap_scratch/cut.json"
expect_trouble "a truncated measurement" 3 "cut.json, line [0-9]+: "

# ---- under a launcher: rank 0 writes, and its exit code is the verdict ----
for rank in 1 2 3 0; do
	FAKE_NCCL_SLOW=0-3:10 RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=4 \
		timeout 300 "$ringside" bench health "${quick[@]}" --quiet --meet "$tap_scratch/met" \
		>"$tap_scratch/out.$rank" 2>&1 &
	pids[rank]=$!
done
codes=
for rank in 0 1 2 3; do
	wait "${pids[rank]}"
	codes+="$?"
done
expect_same "only rank 0 prints a line and returns the verdict" "$codes $(cat "$tap_scratch"/out.[0-3] | cut -c 1-29)" \
	"1000 slow: the link between rank 0"

# ---- failures ----
never="(did not return within|not finished after) [0-9]+ s"
FAKE_NCCL_HANG=2:9 until_reported "$never" --seconds bench health --sizes 1M --ranks 4
expect_trouble "a hang is ended and reported" 3 "$never"
FAKE_NCCL_DIE=1:9 health --ranks 3
expect_trouble "a rank that dies is reported" 3 "rank 1 "
RINGSIDE_CUDA=$tap_scratch/none health --ranks 2
expect_trouble "no driver" 3 "CUDA"
health --ranks 2 -o "$tap_scratch/no/such.json"
expect_trouble "a file that cannot be written, before anything is measured" 3 "cannot write .*no/such.json"
for wrong in "--expect inside" "--expect outside=3" "--expect inside=-1" "--expect inside=1,"; do
	# shellcheck disable=SC2086
	health $wrong
	expect_trouble "$wrong" 2 "expected inside, between or shared"
done
health --seconds 0
expect_trouble "no time" 2 "expected 1 to 86400"
health --sizes 1K
expect_trouble "a size that is too small" 2 "one size from 1M to 1G"
health --sizes 4M,8M
expect_trouble "several sizes" 2 "--sizes '4M,8M': only one value is allowed here"
health --tolerance 2
expect_trouble "an invalid tolerance" 2 "expected a fraction"
health --json --quiet
expect_trouble "two output formats" 2 "only one of"
health --expected tests/bench/health.t
expect_trouble "an invalid expectation" 3 "neither nccl-tests output"
health sideways
expect_trouble "an unexpected operand" 2 "unrecognized option 'sideways'"
tap_done
