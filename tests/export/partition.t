#!/usr/bin/env bash
# DuckDB reads a directory partitioned by job, host and rank as one table.
. "$(dirname "$0")/export.sh"
build_tool edge_trace
mkdir "$tap_scratch/awkward"
"$tap_scratch/edge_trace" "$tap_scratch/awkward" || exit 1
simulate "$tap_scratch/sim" --nodes 2 --gpus 2 -w fsdp --seconds 2s
lake=$tap_scratch/lake

files() { # directory
	(cd "$1" && find . -type f | LC_ALL=C sort | sed 's|^\./||')
}

said=$("$ringside" export "$tap_scratch/sim" -o "$lake/")
expect_same "a directory for each job, host and rank" "$(files "$lake")" \
	"job=sim-1/host=node0000/rank=0/part-0.parquet
job=sim-1/host=node0000/rank=1/part-0.parquet
job=sim-1/host=node0001/rank=2/part-0.parquet
job=sim-1/host=node0001/rank=3/part-0.parquet"
expect_same "the summary of the export" "$(sed 's/([^(]*)/(...)/; s/^[0-9,]* //' <<<"$said" | tidy)" \
	"operations of 4 processes in TMP/lake/ (...)"
expect_refusal "a directory that is not empty is rejected" 3 "lake is not empty: choose another directory, or add --force" \
	"$ringside" export "$tap_scratch/sim" -o "$lake/"

# Smaller files into the same directory replace all older ones.
"$ringside" export "$tap_scratch/sim" --force --rows 1 --format csv -o "$lake" >/dev/null
expect_same "--force replaces files of a rank in any format" \
	"$(files "$lake" | grep -c 'parquet$')" 0
"$ringside" export "$tap_scratch/awkward" --force -o "$lake" >/dev/null
expect_same "--force keeps files of other jobs" "$(files "$lake" | grep -c 'csv$')" 4
rm -r "$lake"

"$ringside" export "$tap_scratch/awkward" -o "$lake/" --rows 5000 >/dev/null
expect_same "names are escaped, unknown values are Hive's null, many rows take several files" "$(files "$lake")" \
	"job=1/host=h/rank=1/part-0.parquet
job=1/host=h/rank=7/part-0.parquet
job=1/host=h/rank=7/part-1.parquet
job=1/host=h/rank=7/part-2.parquet
job=1/host=h/rank=7/part-3.parquet
job=__HIVE_DEFAULT_PARTITION__/host=__HIVE_DEFAULT_PARTITION__/rank=__HIVE_DEFAULT_PARTITION__/part-0.parquet
job=a %22job%22, or %27two%27/host=node%2F1%3Da%25b grüß/rank=0/part-0.parquet"
expect_same "--partition makes a directory of any name" \
	"$("$ringside" export "$tap_scratch/sim" --partition -f jsonl -o "$tap_scratch/named" >/dev/null && files "$tap_scratch/named" | head -n 1)" \
	"job=sim-1/host=node0000/rank=0/part-0.jsonl"
expect_same "lines do not repeat columns of the path" \
	"$(grep -cE '"(job|host|rank)":' "$tap_scratch/named/job=sim-1/host=node0000/rank=0/part-0.jsonl")" 0
"$ringside" export "$tap_scratch/sim" --json -o "$tap_scratch/summary/" >"$tap_scratch/summary.json"
expect_same "--json describes the export" \
	"$(json_says '"$_->{format} $_->{files} $_->{processes} $_->{is_complete} " . ($_->{operations} == $_->{issued})' "$tap_scratch/summary.json")" \
	"parquet 4 4 1 1"

if ! has_readers; then
	tap_line ok "DuckDB reads it # SKIP $missing_readers" ""
	tap_done
fi
table="read_parquet('$lake/**/*.parquet', hive_partitioning = true, hive_types_autocast = false)"
"$ringside" export "$tap_scratch/awkward" -o "$tap_scratch/one.parquet" >/dev/null
expect_same "DuckDB finds the rows of a single file" \
	"$(query "SELECT count(*) FROM (SELECT job, host, rank::BIGINT, * EXCLUDE (job, host, rank) FROM $table
		INTERSECT ALL SELECT * FROM '$tap_scratch/one.parquet')")" \
	"$(query "SELECT count(*) FROM '$tap_scratch/one.parquet'")"
expect_same "DuckDB reads escaped names" \
	"$(query "SELECT DISTINCT job, host, rank FROM $table WHERE pid = 1")" "a \"job\", or 'two'|node/1=a%b grüß|0"
expect_same "metadata matches the path" \
	"$(query "SELECT decode(value) FROM parquet_kv_metadata('$lake/*/*/rank=0/part-0.parquet') WHERE decode(key) IN ('ringside.job', 'ringside.host', 'ringside.rank') ORDER BY decode(key)")" \
	"node/1=a%b grüß
a \"job\", or 'two'
0"
tap_done
