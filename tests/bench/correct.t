#!/usr/bin/env bash
# Every function, type, reduction, mode and place gives correct results: on few ranks, odd numbers of ranks, odd sizes.
. "$(dirname "$0")/bench.sh"

# 12 types; AllReduce, ReduceScatter and Reduce by 5 reductions and 2 places, AllGather, Broadcast, Gather and
# Scatter by 2 places, AlltoAll and SendRecv in one: 40 cells for a type and mode.
bench_json --ranks 2 all -t all -r all --modes all -s 1000 -n 2 --warmup 1 --graph-calls 2
expect_same "two ranks: it finishes" "$code $(cat "$tap_scratch/err")" "0 "
expect_same "every function, type, reduction, mode and place has a cell" "$(value 'len(cells)')" $((12 * 40 * 4))
expect_same "all were checked and are correct" "$(value '{cell["wrong"] for cell in cells}')" "{0}"
expect_same "functions" "$(value 'different("function")')" \
	"AllGather AllReduce AlltoAll Broadcast Gather Reduce ReduceScatter Scatter SendRecv"
expect_same "modes" "$(value 'different("mode")')" "back-to-back blocking graph loop"
expect_same "reductions" "$(value 'different("redop")')" "avg max min none prod sum"
expect_same "places" "$(value 'different("in_place")')" "False True"
expect_same "every measured call has a time" \
	"$(value 'min(ns for cell in cells for rank in cell["per_rank"] for ns in rank["gpu_ns"]) > 0')" True
expect_same "loops have their own time" "$(value 'min(cell["loop_ns"] for cell in cells if cell["mode"] == "loop") > 0')" True

for ranks in 3 5; do
	bench_json --ranks $ranks all -t all --modes blocking,graph -s 1000 --root 1 -n 2 --warmup 1 --graph-calls 2
	expect_same "$ranks ranks: all are correct with another root" \
		"$code $(value '{cell["wrong"] for cell in cells}') $(value 'different("root")')" "0 {0} -1 1"
done
bench_json --ranks 3 all -t int32,uint8 -s 100,1M --root 2 -n 2 --warmup 1
expect_same "large and small sizes are correct" "$code $(value '{cell["wrong"] for cell in cells}')" "0 {0}"
expect_same "sizes are as requested, rounded to whole elements for every rank" \
	"$(value 'min(1 - cell["bytes"] / (100 if cell["bytes"] < 101 else 1 << 20) for cell in cells) >= 0')" True

# Fewer elements than ranks, and a single one.
bench_json --ranks 3 allreduce reduce broadcast sendrecv -s 4,8 -t float32,int8 --modes all -n 2 --warmup 0
expect_same "one element is correct" "$code $(value '{cell["wrong"] for cell in cells}')" "0 {0}"
bench_json --ranks 1 allreduce allgather broadcast -s 4K -n 3
expect_same "a single rank" "$code $(value '{cell["wrong"] for cell in cells}')" "0 {0}"
bench_json --ranks 2 --no-check -s 4K -n 3
expect_same "unchecked results are unknown" "$code $(value 'different("wrong")')" "0 None"
tap_done
