#!/usr/bin/env bash
# Three independent Parquet readers find exactly the same values.
. "$(dirname "$0")/export.sh"
need_readers
build_tool parquet_sample
build_tool edge_trace

for kind in empty one edge pages groups; do
	"$tap_scratch/parquet_sample" "$kind" "$tap_scratch/$kind.parquet" "$tap_scratch/$kind.jsonl" || exit 1
done

# Recordings as Parquet, JSON lines and dump.
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
expect_same "all readers ran" "$(wc -l <<<"$readers")" 35

shape() { # file: row groups, and columns that changed from a dictionary to differences on the way
	query "SELECT count(DISTINCT row_group_id), count(*) FILTER (encodings LIKE '%DICT%' AND encodings LIKE '%DELTA%')
		FROM parquet_metadata('$tap_scratch/$1.parquet')"
}
expect_same "several row groups" "$(shape groups)" "4|0"
expect_same "pages with different encodings" "$(shape pages)" "1|1"
expect_same "too many kinds of operations start another row group" "$(shape awkward)" "2|0"

# A file of several row groups has the same rows as one file per rank.
simulate "$tap_scratch/large" --nodes 4 --gpus 2 -w tp-pp --seconds 700s
"$ringside" export "$tap_scratch/large" -o "$tap_scratch/large.parquet" >/dev/null
"$ringside" export "$tap_scratch/large" -o "$tap_scratch/large.lake/" >/dev/null
sums="count(*), sum(hash(o) % 1099511627776)"
expect_same "a large file has the rows of all ranks" \
	"$(query "SELECT $sums FROM '$tap_scratch/large.parquet' o")" \
	"$(query "SELECT $sums FROM (SELECT job, host, rank, * EXCLUDE (job, host, rank)
		FROM read_parquet('$tap_scratch/large.lake/**/*.parquet')) o")"
expect_same "it has several row groups" "$(shape large | cut -d'|' -f1)" 2

"$ringside" export "$tap_scratch/sim" -f parquet -o - >"$tap_scratch/piped.parquet"
expect_ok "a pipe has the same bytes as a file" cmp "$tap_scratch/piped.parquet" "$tap_scratch/sim.parquet"

# Metadata of the footer.
facts() { # file
	query "SELECT decode(key), decode(value) FROM parquet_kv_metadata('$1') ORDER BY 1"
}
operations=$(wc -l <"$tap_scratch/sim.dump")
expect_same "the footer has the completeness" "$(facts "$tap_scratch/sim.parquet")" \
	"ringside.damaged|0
ringside.format|1
ringside.issued|$operations
ringside.lost|0
ringside.operations|$operations
ringside.version|$("$ringside" version | cut -d' ' -f2)"
expect_same "times keep nanoseconds" \
	"$(query "SELECT DISTINCT column_type FROM (DESCRIBE SELECT * FROM '$tap_scratch/sim.parquet') WHERE column_name LIKE '%_time' ORDER BY 1")" \
	TIMESTAMP_NS

# docs/EXPORT.md lists the columns of the file, with order and type.
documented=$(awk '/^## / { on = $2 == "Columns" } on && /^\| `/ { gsub(/[|`]/, " "); print $1, $2, $3 }' docs/EXPORT.md)
exported=$(node tests/export/columns.mjs "$tap_scratch/sim.parquet")
expect_same "docs/EXPORT.md has every column" "$documented" "$exported"
tap_done
