#!/usr/bin/env bash
# Three independent readers read a benchmark's Parquet file: every call of every rank, exactly.
. "$(dirname "$0")/bench_files.sh"
need_readers

for kind in empty plain everything many; do
	bench_files "$kind" "$kind"
done
readers=$(node tests/export/readers.mjs "$tap_scratch" empty plain everything many)
while IFS= read -r line; do
	case $line in
	"ok "*) tap_line ok "${line#ok }" "" ;;
	*) tap_line "not ok" "${line#not ok }" "" ;;
	esac
done <<<"$readers"
expect_same "all were checked" "$(wc -l <<<"$readers")" 16

expect_same "a full dictionary starts another row group" \
	"$(query "SELECT count(DISTINCT row_group_id), max(row_group_num_rows) < 262144 FROM parquet_metadata('$tap_scratch/many.parquet')")" "2|true"
expect_same "a query: the median over ranks and calls" \
	"$(query "SELECT function, bytes, in_place, count(*), median(gpu_ns) FROM '$tap_scratch/plain.parquet'
		GROUP BY ALL ORDER BY bytes, in_place LIMIT 2")" \
	"AllReduce|1024|false|8|20365
AllReduce|1024|true|8|19350"

facts() { # file
	query "SELECT decode(key), decode(value) FROM parquet_kv_metadata('$1') WHERE decode(key) <> 'ringside.version' ORDER BY 1"
}
expect_same "the footer has the setup and what is not in the rows" "$(facts "$tap_scratch/everything.parquet")" \
	"ringside.bench_format|1
ringside.command|ringside bench --ranks 2
ringside.cuda_version|13000
ringside.gpu_shared|true
ringside.launcher|self
ringside.mps|true
ringside.nccl_path|/usr/lib/libnccl.so.2
ringside.nccl_version|22809
ringside.nodes|1
ringside.note.0|2 ranks share one GPU	and talk through sockets
ringside.note.1|another note: €
ringside.notes_lost|3
ringside.plugin|libnccl-profiler-\"ü\".so
ringside.ranks|2
ringside.results|13
ringside.results_without_calls|2
ringside.started_ns|1800000000123456789"

# docs/JSON.md: the columns of its table are those of the file, in their order and type.
documented=$(awk '/^#+ / { on = $2 == "Parquet" } on && /^\| `/ { gsub(/[|`]/, " "); print $1, $2, $3 }' docs/JSON.md)
expect_same "docs/JSON.md has every column" "$documented" "$(node tests/export/columns.mjs "$tap_scratch/plain.parquet")"
tap_done
