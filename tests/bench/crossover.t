#!/usr/bin/env bash
# ringside bench crossover: finds the crossings of the fake's curves, NCCL's choice, and what NCCL refuses.
. "$(dirname "$0")/bench.sh"
export FAKE_GPU_CLOCK=model FAKE_GPUS=4

crossover() { # argument...
	bench crossover --warmup 1 --seconds 0 "$@"
}
says() { # expression [file]
	python3 -c '
import json, sys
d = json.load(open(sys.argv[2]))
c = d["crossovers"][0]
def crossing(first, second):
	return [x for x in c["crossings"] if {x["first"], x["second"]} == {first, second}][0]
print(eval(sys.argv[1]))' "$1" "${2:-$tap_scratch/run.json}" 2>&1
}

# ---- ring against tree ----
crossover --ranks 4 --rounds 2 -n 4 -s 1K..4M*4 --algorithms ring,tree,nvls -o "$tap_scratch/run.json" -o "$tap_scratch/page.html"
expect_same "it measures" "$code" 0
cp "$tap_scratch/out" "$tap_scratch/text"
# The fake's model: a tree has 4 hops and carries 2.2 of the message, a ring 6 and 1.5.
expect_same "tree below, ring above" "$(says 'crossing("Tree", "Ring")["answer"], crossing("Tree", "Ring")["first"]')" "('crosses', 'Tree')"
expect_same "between measured sizes" \
	"$(says '65536 < crossing("Tree", "Ring")["low_bytes"] <= crossing("Tree", "Ring")["bytes"] <= crossing("Tree", "Ring")["high_bytes"] < 262144')" True
expect_same "LL below, Simple above" "$(says 'crossing("Ring+LL", "Ring+Simple")["first"]')" "Ring+LL"
expect_same "six curves, two envelopes, NCCL's choice" \
	"$(says 'sum(not x["is_own"] and not x["is_envelope"] for x in c["curves"]), sum(x["is_envelope"] for x in c["curves"]), sum(x["is_own"] for x in c["curves"])')" "(6, 2, 1)"
expect_same "calls of all rounds are combined" "$(says '{p["calls"] for x in c["curves"] for p in x["points"]}')" "{8}"
expect_same "NCCL's choice is known at every size" \
	"$(says '[s["own_algorithm"] + "+" + s["own_protocol"] for s in c["sizes"]]')" \
	"['TREE+LL', 'TREE+LL', 'TREE+LL', 'TREE+LL128', 'RING+LL128', 'RING+LL128', 'RING+SIMPLE']"
expect_same "and was the best" "$(says 'c["worst_regret"], [a["kind"] for a in c["advice"]][0]')" "(1, 'leave')"
expect_same "what NCCL refuses is reported" "$(grep -c 'not available here: AllReduce with NVLS and Simple' "$tap_scratch/text")" 1
expect_same "the model of the ring fits" "$(says 'max(x["model_worst_error"] for x in c["curves"] if x["algorithm"] == "RING" and not x["is_envelope"]) < 0.02')" True
expect_same "the plugin leaves nothing behind" "$(find "$RINGSIDE_SHM" -mindepth 1)" ""
expect_same "the page has no scripts" "$(grep -c '<script' "$tap_scratch/page.html") $(grep -c '<svg' "$tap_scratch/page.html")" "0 4"

bench crossover --from "$tap_scratch/run.json" -o "$tap_scratch/again.html" -o "$tap_scratch/again.json"
expect_same "shown again, the text is the same" "$(cat "$tap_scratch/out")" "$(cat "$tap_scratch/text")"
expect_same "so is the page" "$(cmp "$tap_scratch/again.html" "$tap_scratch/page.html" 2>&1)" ""
expect_same "so is JSON" "$(cmp "$tap_scratch/again.json" "$tap_scratch/run.json" 2>&1)" ""
bench crossover --from tests/bench/crossover.json --ascii
# Without the model: its fit is not tested here.
sed '/^MODEL/,/^NOTES/d' "$tap_scratch/out" >"$tap_scratch/text-without-model"
if [ "${REWRITE:-0}" = 1 ]; then cp "$tap_scratch/text-without-model" tests/bench/crossover.expected; fi
expect_same "the expected text" "$(cat "$tap_scratch/text-without-model")" "$(cat tests/bench/crossover.expected)"
expect_same "all six curves have a model" "$(grep -c ': median error [0-9]*%, worst' "$tap_scratch/out")" 6

# ---- a bad choice ----
NCCL_PROFILER_PLUGIN=/opt/other.so NCCL_ALGO=Ring NCCL_PROTO=Simple crossover --ranks 4 --rounds 1 -n 6 -s 1K,16K,1M --json
mv "$tap_scratch/out" "$tap_scratch/bad.json"
expect_same "a bad choice is found" "$(says '{s["own_algorithm"] for s in c["sizes"]}, c["sizes"][0]["is_regret_clear"]' "$tap_scratch/bad.json")" "({'RING'}, True)"
expect_same "and a change is advised" "$(says '[(a["kind"], a["curve"]) for a in c["advice"]][0]' "$tap_scratch/bad.json")" "('change', 'Tree+LL')"

expect_same "a plugin that was replaced is reported" \
	"$(says '[n for n in d["run"]["notes"] if "NCCL_PROFILER_PLUGIN" in n]' "$tap_scratch/bad.json")" \
	'["the plugin named in NCCL_PROFILER_PLUGIN was not loaded: Ringside'"'"'s plugin replaced it"]'

# ---- other functions, all algorithms ----
crossover --ranks 3 --rounds 1 -n 3 -s 4K,64K,1M -f allgather,broadcast --algorithms all --protocols ll,simple --json
mv "$tap_scratch/out" "$tap_scratch/two.json"
expect_same "two functions" "$(says '[x["function"] for x in d["crossovers"]]' "$tap_scratch/two.json")" "['AllGather', 'Broadcast']"
expect_same "tree supports neither, ring both" \
	"$(says '[sorted({y["algorithm"] for y in x["curves"] if y["algorithm"]}) for x in d["crossovers"]]' "$tap_scratch/two.json")" "[['RING'], ['RING']]"
expect_same "combinations that are not available here are reported" \
	"$(says '[n for n in d["run"]["notes"] if n.startswith("not available")]' "$tap_scratch/two.json")" \
	"['not available here: AllGather with NVLS and Simple', 'not available here: AllGather with CollNetDirect and Simple', 'not available here: AllGather with PAT and Simple']"

# ---- little time ----
crossover --ranks 2 --rounds 60 -n 50 -s 4K,64K --seconds 1 --json
mv "$tap_scratch/out" "$tap_scratch/short.json"
expect_same "rounds that do not fit are skipped and reported" \
	"$code $(says 'sum(" of 60 rounds fit into --seconds 1" in n for n in d["run"]["notes"])' "$tap_scratch/short.json")" "0 1"
expect_same "every algorithm was measured equally often" \
	"$(says 'len({sum(r["algorithm"] == a and r["protocol"] == p for r in d["run"]["results"]) for a in ("RING", "TREE") for p in ("LL", "LL128", "SIMPLE")})' "$tap_scratch/short.json")" 1

# ---- trouble ----
FAKE_NCCL_WRONG=AllReduce:1 crossover --ranks 2 --rounds 1 -n 2 -s 4K,64K
expect_same "wrong results fail" "$code $(grep -c 'result elements are wrong' "$tap_scratch/err")" "1 1"
mkdir "$tap_scratch/alone"
cp "$ringside" "$ringside-bench" "$tap_scratch/alone/"
timeout 300 "$tap_scratch/alone/ringside" bench crossover --ranks 2 --rounds 1 -n 2 -s 4K,64K,1M >"$tap_scratch/out" 2>"$tap_scratch/err"
expect_same "without the plugin NCCL's choice is unknown, and a note says so" \
	"$? $(grep -c 'choice is unknown: plugin' "$tap_scratch/out")" "0 1"
RINGSIDE_CUDA=$tap_scratch/none crossover --ranks 2
expect_trouble "no driver" 3 "CUDA"
expect_same "no directory is left behind then" "$(find "$RINGSIDE_SHM" -mindepth 1)" ""
crossover --algorithms rings
expect_trouble "an unknown algorithm" 2 "'rings': expected ring, tree"
crossover --protocols fast
expect_trouble "an unknown protocol" 2 "'fast': expected ll"
crossover -f sendrecv
expect_trouble "a function without a choice" 2 "only one algorithm for SendRecv"
crossover --modes loop
expect_trouble "a mode without single times" 2 "loop does not time single calls"
crossover --modes blocking,graph
expect_trouble "several modes" 2 "--modes 'blocking,graph': only one value is allowed here"
crossover --types all
expect_trouble "several types" 2 "--types 'all': only one value is allowed here"
crossover --rounds 0
expect_trouble "no rounds" 2 "expected a number from 1 to 100"
crossover -o -
expect_trouble "standard output as a file" 2 "results go to standard output anyway"
bench crossover --from "$tap_scratch/run.json" -s 1K
expect_same "measuring options are rejected with --from" "$code $(cat "$tap_scratch/err")" \
	"2 ringside bench crossover: --sizes cannot be used with --from, which measures nothing (see 'ringside bench crossover --help')"
bench crossover --from tests/bench/crossover.t
expect_trouble "no measurement" 3 "crossover.t: not a JSON result of"
tap_done
