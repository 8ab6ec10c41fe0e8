#!/usr/bin/env bash
# CSV conforms to RFC 4180: Python and DuckDB read the same values as in JSON lines.
. "$(dirname "$0")/export.sh"
build_tool edge_trace

mkdir "$tap_scratch/awkward"
"$tap_scratch/edge_trace" "$tap_scratch/awkward" || exit 1
simulate "$tap_scratch/sim" --nodes 1 --gpus 2 -w fsdp --seconds 2s
for recording in awkward sim; do
	for format in csv jsonl; do
		"$ringside" export "$tap_scratch/$recording" -o "$tap_scratch/$recording.$format" >/dev/null
	done
done

expect_same "lines end with CR LF, which occurs nowhere else" \
	"$(tr -dc '\r\n' <"$tap_scratch/sim.csv" | tr '\r\n' 'rn' | sed 's/rn//g')" ""
expect_same "the first line has the column names" \
	"$(head -n 1 "$tap_scratch/sim.csv" | tr -d '\r' | tr ',' '\n')" \
	"$(head -n 1 "$tap_scratch/sim.jsonl" | grep -oE '"[a-z_]+":' | tr -d '":')"
"$ringside" export "$tap_scratch/sim" -f csv -o - >"$tap_scratch/piped.csv"
expect_ok "standard output has the same bytes" cmp "$tap_scratch/piped.csv" "$tap_scratch/sim.csv"

python_agrees() { # recording
	python3 - "$tap_scratch/$1.csv" "$tap_scratch/$1.jsonl" <<-'END'
		import csv, json, sys
		def text(value):
		    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
		wanted = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
		got = list(csv.DictReader(open(sys.argv[1], encoding="utf-8", newline="")))
		assert len(got) == len(wanted) > 0, (len(got), len(wanted))
		for a, b in zip(got, wanted):
		    b = {name: text(value) for name, value in b.items()}
		    assert a == b, (a, b)
	END
}
if command -v python3 >/dev/null; then
	expect_ok "Python reads the CSV of a simulation" python_agrees sim
	expect_ok "Python reads awkward CSV" python_agrees awkward
else
	tap_line ok "Python reads CSV # SKIP python3 is not installed" ""
fi

if ! has_readers; then
	tap_line ok "DuckDB reads CSV # SKIP $missing_readers" ""
	tap_done
fi
for recording in sim awkward; do
	expect_ok "DuckDB reads the CSV: $recording" \
		node tests/export/csv.mjs "$tap_scratch/$recording.csv" "$tap_scratch/$recording.jsonl"
done
tap_done
