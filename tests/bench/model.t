#!/usr/bin/env bash
# ringside model: predictions from given numbers, textbook values, and measurements with a known model.
. "$(dirname "$0")/bench.sh"

model() { # argument...
	"$ringside" model "$@" >"$tap_scratch/out" 2>"$tap_scratch/err"
	code=$?
}
answer() { # Python expression over answer (the first size's best), answers, document
	python3 -c '
import json, sys
document = json.load(open(sys.argv[2]))
answers = document["sizes"][0]["answers"]
answer = answers[0] if answers else None
print(eval(sys.argv[1]))' "$1" "$tap_scratch/out" 2>&1
}
first_line() {
	head -n 1 "$tap_scratch/out"
}

# ---- by hand -----------------------------------------------------------------------------------------

# 6 hops of 10 us, and 2 * 3/4 of 4 MB at 10 GB/s.
model allreduce 4000000 --ranks 4 --nodes 4 --latency between=10us --bandwidth between=10 --algorithms ring
expect_same "a ring by hand" "$code $(first_line)" \
	"0 AllReduce of 3.8 MiB over 4 ranks on 4 nodes should take 660 us: ring, algbw 6.06 GB/s, busbw 9.09 GB/s."
model allreduce 4000000 --ranks 4 --nodes 4 --latency between=10us --bandwidth between=80Gb/s --call 40us --algorithms ring --json
expect_same "bits per second, and the cost of a call" "$code $(answer 'answer["time_ns"], answer["call_ns"], answer["low_ns"]')" \
	"0 (700000, 40000, None)"
model alltoall 16000000 --ranks 16 --nodes 2 --nics 2 --latency inside=1us,between=10us --bandwidth inside=100GB/s,between=10GB/s --json
expect_same "AlltoAll: 8 ranks send half of theirs through 2 NICs" "$(answer 'answer["algorithm"], round(answer["time_ns"])')" \
	"('direct', 3211000)"
model allreduce 1K,64G --ranks 512 --nodes 64 --latency inside=2us,between=9us --bandwidth inside=300,between=20 --json
expect_same "trees for small sizes, rings for large ones" \
	"$(answer '[size["answers"][0]["algorithm"] for size in document["sizes"]], [a["is_in_nccl"] for a in answers]')" \
	"(['double-tree', 'ring'], [True, True, False])"
model allreduce 1K..1M*4 --ranks 8 --hardware h100-ib
expect_same "a list of sizes is a table" "$code $(grep -cE '^ *[0-9.]+ [KM]iB ' "$tap_scratch/out")" "0 6"

# ---- textbook values ---------------------------------------------------------------------------------

model allreduce 8G --ranks 512 --hardware h100-ib
expect_same "the textbook is named" \
	"$code $(grep -c 'textbook values of h100-ib for everything not measured' "$tap_scratch/out") $(grep -c '64 nodes: 8 ranks per node, as this hardware has' "$tap_scratch/out")" "0 1 1"
expect_same "in one sentence" "$(first_line | sed 's/take .*:/take/')" \
	"AllReduce of 8 GiB over 512 ranks on 64 nodes should take double-tree with Simple, algbw 168.51 GB/s, busbw 336.37 GB/s, based on textbook values of h100-ib, not on measurements."

# ---- measured ----------------------------------------------------------------------------------------

# Rings with LL: hops of 5 us and 3 GB/s, to the nanosecond; nothing else.
export FAKE_GPU_CLOCK=model NCCL_ALGO=Ring NCCL_PROTO=LL
for ranks in 2 4; do
	bench --ranks $ranks allreduce -s 1K..4M*4 -n 3 --warmup 1 --out-of-place -o "$tap_scratch/$ranks.json"
done
unset NCCL_ALGO NCCL_PROTO
model allreduce 3M --ranks 8 --from "$tap_scratch/2.json" --from "$tap_scratch/4.json" --json
expect_same "two numbers of ranks determine everything" \
	"$code $(answer 'round(answer["time_ns"] / 1000), document["nodes"], answer["beyond"]')" \
	"0 (1905, 8, {'ranks': 2, 'nodes': 2, 'bytes': 1, 'doublings': 1})"
expect_same "the parameters are the fake's" \
	"$(answer '[(round(p["latency_between_ns"]["value"] / 1000, 2), round(p["bandwidth_between_gbs"]["value"], 2), p["latency_inside_ns"]["source"]) for p in document["parameters"]]')" \
	"[(5.0, 3.0, 'unknown')]"
expect_same "and so is the error" \
	"$(answer 'document["fit"]["cells_used"], document["fit"]["worst_error"] < 0.001, {c["why_not"] for c in document["fit"]["cells"]}')" \
	"(14, True, {None})"
model allreduce 3M --ranks 8 --from "$tap_scratch/4.json"
expect_same "one number of ranks does not, and a note says so" \
	"$code $(grep -c 'cannot separate call overhead' "$tap_scratch/out") $(grep -c 'from "all fixed time is in the call"' "$tap_scratch/out")" "0 1 1"
expect_same "the sentence has the error of the fit and the distance from the measured range" \
	"$(first_line | grep -cE 'based on a fit with a median error of [0-9.]+%, extrapolated to 2x the ranks, 2x the nodes of the measured range')" 1
expect_same "a note says that ranks on one GPU do not measure a network" "$(grep -c 'loopback, not a network' "$tap_scratch/out")" 1
model allreduce 3M --ranks 8 --nodes 2 --from "$tap_scratch/4.json"
expect_same "what was not measured is not guessed" "$code $(first_line)" \
	"3 no prediction for AllReduce of 3 MiB over 8 ranks on 2 nodes: the latency inside a node was neither measured nor given."
model allreduce 3M --ranks 8 --nodes 2 --from "$tap_scratch/4.json" --latency inside=1us --bandwidth inside=100 --json
expect_same "but can be given" "$code $(answer '[p["latency_inside_ns"]["source"] for p in document["parameters"]]')" "0 ['hand']"
model allreduce 3M --ranks 8 --from - --json <"$tap_scratch/4.json"
expect_same "a file from standard input" "$code $(answer 'document["fit"]["files"]')" "0 ['-']"

# ---- trouble -----------------------------------------------------------------------------------------

refused() { # sentence code pattern argument...
	local sentence=$1 wanted=$2 pattern=$3
	shift 3
	model "$@"
	expect_trouble "$sentence" "$wanted" "$pattern"
}
refused "no parameters" 2 "no parameters: use --from FILE .*--latency and --bandwidth, or --hardware NAME" allreduce 8G --ranks 8
refused "no ranks" 2 "use --ranks N" allreduce 8G --hardware h100-ib
refused "no nodes" 2 "use --nodes N" allreduce 8G --ranks 8 --latency inside=1us --bandwidth inside=1
refused "more nodes than ranks" 2 "9 nodes for only 8 ranks" allreduce 8G --ranks 8 --nodes 9 --hardware h100-ib
refused "no such hardware" 2 "'h100ib': expected one of a100-ib, h100-ib, b200-ib, pcie4-eth" allreduce 8G --ranks 8 --hardware h100ib
refused "no function" 2 "expected a function and a size" --ranks 8 --hardware h100-ib
refused "no such function" 2 "allreduec" allreduec 8G --ranks 8 --hardware h100-ib
refused "two functions" 2 "name only one function" allreduce,reduce 8G --ranks 8 --hardware h100-ib
refused "no such size" 2 "8Q" allreduce 8Q --ranks 8 --hardware h100-ib
refused "one operand too many" 2 "unexpected operand '9G'" allreduce 8G 9G --ranks 8 --hardware h100-ib
refused "a latency without unit" 2 "'inside=3' is not a latency" allreduce 8G --ranks 8 --latency inside=3
refused "an unknown link" 2 "'beside=3us' is not a latency" allreduce 8G --ranks 8 --latency beside=3us
refused "a bandwidth of nothing" 2 "'inside=0' is not a bandwidth" allreduce 8G --ranks 8 --bandwidth inside=0
refused "no such algorithm" 2 "expected ring, tree" allreduce 8G --ranks 8 --hardware h100-ib --algorithms star
refused "no such protocol" 2 "expected LL, LL128" allreduce 8G --ranks 8 --hardware h100-ib --protocols LL64
refused "several algorithms" 2 "--algorithms 'ring,tree': only one value is allowed here" allreduce 8G --ranks 8 --hardware h100-ib --algorithms ring,tree
refused "several protocols" 2 "--protocols 'LL,LL128': only one value is allowed here" allreduce 8G --ranks 8 --hardware h100-ib --protocols LL,LL128
refused "several modes" 2 "--modes 'all': only one value is allowed here" allreduce 8G --ranks 8 --hardware h100-ib --modes all
refused "no such file" 3 "nowhere.json: No such file" allreduce 8G --ranks 8 --from nowhere.json
echo '{"format":"other"}' >"$tap_scratch/other.json"
refused "a file of something else" 3 "other.json.*not a JSON result" allreduce 8G --ranks 8 --from "$tap_scratch/other.json"
bench --ranks 2 allreduce -s 1K,2K -n 3 -o "$tap_scratch/few.json"
refused "too few sizes" 3 "few.json: nothing to fit: need 3 sizes" allreduce 8G --ranks 8 --from "$tap_scratch/few.json"
model allgather 8G --ranks 8 --hardware h100-ib --algorithms tree
expect_same "a function without this algorithm" "$code $(first_line | sed 's/.*: //')" "3 this function has no such algorithm."
tap_done
