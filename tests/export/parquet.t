#!/usr/bin/env bash
# Parquet files are read by three readers that others wrote, and all find the same, to the last digit.
. "$(dirname "$0")/export.sh"
need_readers
build_tool parquet_sample
build_tool edge_trace

for kind in empty one edge pages groups; do
	"$tap_scratch/parquet_sample" "$kind" "$tap_scratch/$kind.parquet" "$tap_scratch/$kind.jsonl" || exit 1
done

# Recordings, as Parquet, as JSON lines, and dumped.
mkdir "$tap_scratch/awkward"
"$tap_scratch/edge_trace" "$tap_scratch/awkward" || exit 1
simulate "$tap_scratch/sim" --nodes 2 --gpus 2 -w tp-pp --seconds 3s
simulate "$tap_scratch/moe" --nodes 2 --gpus 2 -w moe --seconds 1s --release 2.26 --no-kernel -m full
for recording in awkward sim moe; do
	"$ringside" export "$tap_scratch/$recording" -o "$tap_scratch/$recording.parquet" >/dev/null
	"$ringside" export "$tap_scratch/$recording" -o "$tap_scratch/$recording.jsonl" >/dev/null
	"$ringside" dump "$tap_scratch/$recording" >"$tap_scratch/$recording.dump"
done

readers=$(node tests/export/readers.mjs "$tap_scratch" empty one edge pages groups awkward sim moe)
while IFS= read -r line; do
	case $line in
	"ok "*) tap_line ok "${line#ok }" "" ;;
	*) tap_line "not ok" "${line#not ok }" "" ;;
	esac
done <<<"$readers"
expect_same "all were looked at" "$(wc -l <<<"$readers")" 35

shape() { # file: row groups, and columns that changed from a dictionary to differences on the way
	query "SELECT count(DISTINCT row_group_id), count(*) FILTER (encodings LIKE '%DICT%' AND encodings LIKE '%DELTA%')
		FROM parquet_metadata('$tap_scratch/$1.parquet')"
}
expect_same "several row groups are several" "$(shape groups)" "4|0"
expect_same "pages differ in how they are packed" "$(shape pages)" "1|1"
expect_same "more kinds than there is room for take another row group" "$(shape awkward)" "2|0"

# More than a row group, by what each rank wrote alone: other pages and other groups, the same rows.
simulate "$tap_scratch/large" --nodes 4 --gpus 2 -w tp-pp --seconds 700s
"$ringside" export "$tap_scratch/large" -o "$tap_scratch/large.parquet" >/dev/null
"$ringside" export "$tap_scratch/large" -o "$tap_scratch/large.lake/" >/dev/null
sums="count(*), sum(hash(o) % 1099511627776)"
expect_same "a large file has the rows that its ranks have" \
	"$(query "SELECT $sums FROM '$tap_scratch/large.parquet' o")" \
	"$(query "SELECT $sums FROM (SELECT job, host, rank, * EXCLUDE (job, host, rank)
		FROM read_parquet('$tap_scratch/large.lake/**/*.parquet')) o")"
expect_same "it has several row groups" "$(shape large | cut -d'|' -f1)" 2

"$ringside" export "$tap_scratch/sim" -f parquet -o - >"$tap_scratch/piped.parquet"
expect_ok "a pipe gets the same bytes as a file" cmp "$tap_scratch/piped.parquet" "$tap_scratch/sim.parquet"

# The facts of the footer.
facts() { # file
	query "SELECT decode(key), decode(value) FROM parquet_kv_metadata('$1') ORDER BY 1"
}
operations=$(wc -l <"$tap_scratch/sim.dump")
expect_same "the footer says how complete the file is" "$(facts "$tap_scratch/sim.parquet")" \
	"ringside.damaged|0
ringside.format|1
ringside.issued|$operations
ringside.lost|0
ringside.operations|$operations
ringside.version|$("$ringside" version | cut -d' ' -f2)"
expect_same "nobody turns nanoseconds into less" \
	"$(query "SELECT DISTINCT column_type FROM (DESCRIBE SELECT * FROM '$tap_scratch/sim.parquet') WHERE column_name LIKE '%_time' ORDER BY 1")" \
	TIMESTAMP_NS

# docs/EXPORT.md: the columns of its table are those of the file, in their order and type.
documented=$(awk '/^## / { on = $2 == "Columns" } on && /^\| `/ { gsub(/[|`]/, " "); print $1, $2, $3 }' docs/EXPORT.md)
exported=$(node tests/export/columns.mjs "$tap_scratch/sim.parquet")
expect_same "docs/EXPORT.md has every column" "$documented" "$exported"
tap_done
