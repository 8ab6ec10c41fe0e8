#!/usr/bin/env bash
# Results are written as measured: table, JSON, Parquet, by calls and by seconds, whatever NCCL prints.
. "$(dirname "$0")/bench.sh"

# 3 ranks: 4 hops of 5 us, and 4/3 of the bytes at 3 GB/s (LL). Times come from the model, so the values are known.
export FAKE_GPU_CLOCK=model NCCL_ALGO=Ring NCCL_PROTO=LL
bench --ranks 3 -s 3000,30000 -n 4 --warmup 2
expect_same "the table has nccl-tests' shape" "$code $(grep -v '^#' "$tap_scratch/out")" \
	"0         3000           750     float     sum      -1    21.33    0.14    0.19       0    21.33    0.14    0.19       0
       30000          7500     float     sum      -1    33.33    0.90    1.20       0    33.33    0.90    1.20       0"
expect_same "with its titles" "$(grep -E '^#  +(size|\(B\))' "$tap_scratch/out" | tr -s ' ')" \
	"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s) "
bench --ranks 3 -s 3000 -n 4 --out-of-place --percentiles --histogram
expect_same "percentiles are shown" "$code $(grep -c '^#.* p50 .* p99 ' "$tap_scratch/out")" "0 1"
expect_same "but not with too few calls" \
	"$(grep 'Too few calls' "$tap_scratch/out") $(grep -c '^ *3000 .* N/A  *N/A  *[0-9.]*  *[0-9.]* ' "$tap_scratch/out")" \
	"# Too few calls        : 2 percentiles; p90 needs 10 calls, p99 100 1"

bench_json --ranks 3 -s 3000 -n 7 --warmup 2 --modes blocking,back-to-back,graph --graph-calls 3 --in-place
expect_same "JSON has every call of every rank" \
	"$code $(value '[(cell["mode"], cell["calls"], [len(rank["gpu_ns"]) for rank in cell["per_rank"]] == [cell["calls"]] * 3) for cell in cells]')" \
	"0 ('blocking', 7, True) ('back-to-back', 7, True) ('graph', $(value 'cells[2]["calls"]'), True)"
expect_same "and its time" "$(value '{round(ns / 1000, 2) for cell in cells[:1] for rank in cell["per_rank"] for ns in rank["gpu_ns"]}')" "{21.33}"
expect_same "a graph has at least as many calls as requested, in whole graphs" \
	"$(value 'cells[2]["calls"] >= 7 and cells[2]["captured"] > 0')" True
expect_same "calls follow each other" \
	"$(value 'all(rank["begin_ns"] == sorted(rank["begin_ns"]) for cell in cells for rank in cell["per_rank"])')" True
expect_same "blocking calls have completion times" "$(value 'min(rank_done for rank in cells[0]["per_rank"] for rank_done in rank["done_ns"]) > 0')" True

# How many fit depends on the host: a busy one gets more time.
for seconds in 0.2 2 20; do
	bench_json --ranks 2 -s 1000 --seconds-per-cell $seconds --warmup 2 --out-of-place
	[ "$(value 'cells[0]["calls"] > 20')" = False ] || break
done
expect_same "by time: more than by number" "$code $(value 'cells[0]["calls"] > 20')" "0 True"
bench_json --ranks 2 -s 1000 --seconds-per-cell 20 -n 6 --out-of-place
expect_same "both: whichever comes first" "$code $(value 'cells[0]["calls"]')" "0 6"
bench_json --ranks 2 -s 1000 --seconds-per-cell 0.001 --least-calls 300 --out-of-place
expect_same "never fewer than the minimum" "$code $(value 'cells[0]["calls"]')" "0 300"

for seconds in 0.4 4 40; do
	bench_json --ranks 2 -s 1000,2000 allreduce alltoall --seconds $seconds --least-calls 1
	[ "$(value 'min(cell["calls"] for cell in cells) > 1')" = False ] || break
done
expect_same "a total time: each of six cells gets its share" \
	"$code $(value "len(cells), all(2 <= cell['calls'] <= $seconds / 6 / 1e-6 for cell in cells)")" "0 6 True"
bench --ranks 2 --seconds 1 --seconds-per-cell 1
expect_trouble "a total time and one per cell" 2 "only one of"

NCCL_DEBUG=INFO bench_json --ranks 2 -s 1000 -n 2
expect_same "NCCL's output does not get into results" "$code $(value 'len(cells)')" "0 2"
expect_same "and is not lost" "$(grep -c 'NCCL INFO' "$tap_scratch/err")" 2

bench --ranks 3 allgather gather -s 3000 -n 5 -o "$tap_scratch/a.json" -o "$tap_scratch/a.parquet" -o "$tap_scratch/a.txt"
expect_same "files in addition to the table" "$code $(value 'len(cells)' "$tap_scratch/a.json")" "0 4"
expect_same "text is the table" "$(grep -v '^#' "$tap_scratch/a.txt")" "$(grep -v '^#' "$tap_scratch/out")"
cp "$tap_scratch/out" "$tap_scratch/first"
bench --from "$tap_scratch/a.json" -o "$tap_scratch/b.json"
expect_same "an earlier measurement is shown again" "$code $(cat "$tap_scratch/out")" "0 $(cat "$tap_scratch/first")"
expect_same "and written again" "$(value '[cell["per_rank"] for cell in cells]' "$tap_scratch/b.json")" \
	"$(value '[cell["per_rank"] for cell in cells]' "$tap_scratch/a.json")"
bench --from "$tap_scratch/a.json" -s 1K
expect_same "measuring options are rejected with --from" "$code $(cat "$tap_scratch/err")" \
	"2 ringside bench: --sizes cannot be used with --from, which measures nothing (see 'ringside bench --help')"
if command -v node >/dev/null && [ -d npm/node_modules/@duckdb ]; then
	rows=$(node tests/export/query.mjs "SELECT count(*), count(DISTINCT rank) FROM '$tap_scratch/a.parquet'")
	expect_same "Parquet has one row per call and rank" "$rows" "$((4 * 3 * 5))|3"
fi
expect_nothing_left "nothing is left behind"
tap_done
