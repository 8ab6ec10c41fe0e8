#!/usr/bin/env bash
# Every function, type, reduction and place is correct on four and eight ranks, and with an NCCL without AlltoAll.
. "$(dirname "$0")/bench.sh"

bench_json --ranks 8 all -t all -r all -s 2000 -n 1 --warmup 0
expect_same "eight ranks: every cell is correct" "$code $(value '{cell["wrong"] for cell in cells}') $(value 'len(cells)')" \
	"0 {0} $((12 * 40))"
bench_json --ranks 8 all -t bfloat16,int32 --modes back-to-back,graph,loop -s 40000 -n 2 --warmup 1
expect_same "in the other modes" "$code $(value '{cell["wrong"] for cell in cells}')" "0 {0}"
bench_json --ranks 4 all -t all --modes back-to-back,graph -s 100K -n 2 --warmup 1
expect_same "four ranks" "$code $(value '{cell["wrong"] for cell in cells}') $(value 'len(cells)')" "0 {0} $((12 * 16 * 2))"

RINGSIDE_NCCL=$fake/libnccl-old.so.2 bench_json --ranks 4 all -s 64K --modes all -n 2 --root 2
expect_same "an older NCCL: AlltoAll, Gather and Scatter use Sends and Recvs" \
	"$code $(value '{cell["wrong"] for cell in cells}') $(value '{cell["function"] for cell in cells if cell["grouped_sends"]} == {"AlltoAll", "Gather", "Scatter"}')" \
	"0 {0} True"
expect_same "and a note says so" "$(value 'sum("Send" in note and "Recv" in note for note in run["notes"]) > 0')" True
tap_done
