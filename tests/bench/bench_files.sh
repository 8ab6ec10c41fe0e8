# shellcheck shell=bash
# For tests of the files of `ringside bench`: source this. Files come from bench_files.c, not from a GPU.

. "$(dirname "${BASH_SOURCE[0]}")/../export/export.sh"

# PREFIX.json, .parquet, .jsonl (its rows) and .txt (the table).
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -O1 -o "$tap_scratch/bench_files" tests/bench/bench_files.c \
	"$BUILD/libbench.a" "$BUILD/libringside.a" -lzstd -lz -lm || exit 1
bench_files() { # kind name
	"$tap_scratch/bench_files" "$1" "$tap_scratch/$2" || exit 1
}
