#!/usr/bin/env bash
# Options of the report, usage errors, output files and damaged input.
. "$(dirname "$0")/report.sh"

simulate job --nodes 2 --gpus 2 -w tp-pp --pp 2 --seconds 3s
job=$tap_scratch/job

# ---- wrong usage ----------------------------------------------------------------------------------------
report() { "$ringside" report "$@"; }
expect_refusal "--by with a typo" 2 "unknown word 'funktion', did you mean 'function'" report "$job" --by comm,funktion
expect_refusal "--by with an unknown word" 2 "unknown word 'nonsense'; allowed are comm, .*function" report "$job" --by nonsense
expect_refusal "--by with an empty word" 2 "unknown word ''" report "$job" --by ''
expect_refusal "--by with a word close to none" 2 "--by: unknown word 'foo'; allowed are comm" report "$job" --by foo
expect_refusal "--table with a typo" 2 "unknown table 'ranks', did you mean 'rank'" report "$job" --table ranks
expect_refusal "--table and --by" 2 "exclude each other" report "$job" --table rank --by rank
expect_refusal "--json and --csv" 2 "exclude each other" report "$job" --json --csv
expect_refusal "--answer and a table" 2 "has no table" report "$job" --answer --by rank
expect_refusal "--answer as JSON" 2 "is text" report "$job" --answer --json
expect_refusal "--rank that is none" 2 "not a list of ranks" report "$job" --rank 3-1-2
expect_refusal "--since that is no time" 2 "not a time like 30s" report "$job" --since yesterday
expect_refusal "--tag that is no number" 2 "not a whole number" report "$job" --tag -1
expect_refusal "--op with a typing error" 2 "unknown operation 'AlReduce', did you mean 'AllReduce'" report "$job" --op AlReduce
expect_refusal "--op with a name missing" 2 "a name is missing" report "$job" --op AllReduce,
expect_refusal "a communicator that is not there" 3 "no communicator 'dp'.*available: world, .*tp-0" report "$job" --comm dp
expect_refusal "a rank that is not there" 3 "no rank '100-200' here; available: 0-3" report "$job" --rank 100-200
expect_refusal "an output without a name" 2 "the file name is empty" report "$job" -o ''
expect_refusal "a directory that is not there" 3 "nowhere" report "$tap_scratch/nowhere"

# ---- filters --------------------------------------------------------------------------------------------
calls() { # option...
	report --json "$job" "$@" | json_says '$_->{total}{calls}'
}
all=$(calls)
expect_same "operation names may be lower case" "$(calls --op allreduce)" "$(calls --op AllReduce)"
expect_same "filters by operation add up" "$(($(calls --op AllReduce) + $(calls --op Send,Recv)))" "$all"
expect_same "filters by communicator add up" "$(calls --comm world --comm tp-0 --comm tp-1 --comm pp-0 --comm pp-1)" "$all"
expect_same "a communicator by its hash" "$(calls --comm "$(report --json "$job" |
	json_says '(grep { $_->{name} eq "tp-0" } @{$_->{communicators}})[0]{hash}')")" "$(calls --comm tp-0)"
expect_same "filters by time add up" "$(($(calls --until 1s) + $(calls --since 1s)))" "$all"
# The clock of one host begins on the day before.
expect_same "times of day add up, too" "$(($(calls --until 00:00:01) + $(calls --since 00:00:01)))" "$all"
expect_ok "a time of day leaves something out" [ "$(calls --since 00:00:01)" -lt "$all" ]
expect_same "nothing matches" "$(calls --since 1h)" 0
expect_same "bandwidth and times are null if nothing matches" \
	"$(report --json "$job" --since 1h | json_says 'join ",", map { defined $_ ? $_ : "null" }
		@{$_->{total}}{qw(sum_ns median_ns algbw_bytes_per_second wait_ns)}')" "null,null,null,null"
expect_same "ranks excluded by the filter are marked" \
	"$(report --json "$job" --rank 1 | json_says 'join ",", map { $_->{is_shown} ? 1 : 0 } @{$_->{ranks}}')" "0,1,0,0"

# ---- tables ---------------------------------------------------------------------------------------------
for table in name comm kind function size algorithm rank source windows iterations; do
	expect_ok "--table $table as text" report "$job" --table "$table"
	expect_ok "--table $table as CSV" report "$job" --table "$table" --csv
done
report "$job" --csv >"$tap_scratch/size.csv"
report "$job" --csv --table size >"$tap_scratch/size2.csv"
expect_ok "--csv alone is the table size" cmp "$tap_scratch/size.csv" "$tap_scratch/size2.csv"
if command -v python3 >/dev/null; then
	report "$job" --csv --by function,size,rank >"$tap_scratch/by.csv"
	report "$job" --json --by function,size,rank >"$tap_scratch/by.json"
	expect_ok "CSV has the same numbers as JSON" python3 tests/report/csv_same.py \
		"$tap_scratch/by.csv" "$tap_scratch/by.json"
	sed -i '2s/,[0-9]*,/,1,/' "$tap_scratch/by.csv"
	expect_complaint "the check finds a wrong number" "is" python3 tests/report/csv_same.py \
		"$tap_scratch/by.csv" "$tap_scratch/by.json"
fi

# ---- files ----------------------------------------------------------------------------------------------
expect_ok "-o writes a file" report "$job" --json -o "$tap_scratch/report.json"
expect_same "with the same content as standard output" "$(cat "$tap_scratch/report.json")" "$(report "$job" --json)"
expect_same "and prints nothing" "$(report "$job" -o "$tap_scratch/report.txt" 2>&1)" ""
expect_ok "text in a file ignores the width of the terminal" env COLUMNS=40 "$ringside" report "$job" -o "$tap_scratch/narrow.txt"
expect_ok "so it is the same for a narrow one" cmp "$tap_scratch/report.txt" "$tap_scratch/narrow.txt"
expect_refusal "an output that cannot be created" 3 "nodir/x" report "$job" -o "$tap_scratch/nodir/x"
echo before >"$tap_scratch/kept"
expect_refusal "a failed report keeps the old file" 3 "no communicator" report "$job" --comm none -o "$tap_scratch/kept"
expect_same "unchanged" "$(cat "$tap_scratch/kept")" before
expect_same "no temporary file remains" "$(find "$tap_scratch" -name '*.part' | wc -l)" 0
expect_refusal "a full disk is an error" 3 "No space left" sh -c '"$0" report "$1" >/dev/full' "$ringside" "$job"
report "$job" 2>"$tap_scratch/err" | true
expect_same "a closed pipe is quiet" "$(cat "$tap_scratch/err")" ""

# ---- damaged input --------------------------------------------------------------------------------------------
cp -r "$job" "$tap_scratch/damaged"
victim=$(find "$tap_scratch/damaged" -name 'r1-*')
printf 'xxxxxxxx' | dd of="$victim" bs=1 seek=$(($(stat -c %s "$victim") / 2)) conv=notrunc status=none
expect_same "a damaged file is named, the rest is reported, exit code 3" \
	"$(said "$ringside" report --answer "$tap_scratch/damaged" | tidy |
		sed -n -e '/^stderr.*\/r1-/s/.*\(damage\|unreadable\|cannot be read\).*/\1/p' -e '/^job/s/:.*//p' -e '/^exit/p')" \
	"job sim-1
damage
exit 3"
said "$ringside" report --strict "$tap_scratch/damaged" >"$tap_scratch/strict"
expect_same "--strict prints only the error" "$(grep -vc '^stderr: ' "$tap_scratch/strict")" 1
expect_same "with exit code 3" "$(tail -n 1 "$tap_scratch/strict")" "exit 3"
cp -r "$job" "$tap_scratch/foreign"
echo "just a note" >"$tap_scratch/foreign/README"
expect_ok "an unrelated file in a directory is ignored" report "$tap_scratch/foreign"
expect_complaint "unless --strict" "README" report --strict "$tap_scratch/foreign"
cp -r "$job" "$tap_scratch/cut"
victim=$(find "$tap_scratch/cut" -name 'r1-*')
truncate -s $(($(stat -c %s "$victim") * 2 / 3)) "$victim"
report --json "$tap_scratch/cut" >"$tap_scratch/cut.json" 2>/dev/null
expect_same "a truncated file is counted as truncated" "$(json_says '$_->{completeness}{unknown_end}' "$tap_scratch/cut.json")" 1
expect_complaint "--strict rejects it" "r1-" report --strict "$tap_scratch/cut"
expect_same "--strict changes nothing for a good recording" "$(report --strict "$job")" "$(report "$job")"

# ---- HTML -----------------------------------------------------------------------------------------------
if "$ringside" report "$job" --html "$tap_scratch/page.html" >"$tap_scratch/answer" 2>"$tap_scratch/err"; then
	expect_ok "--html writes a page" grep -qi '<!doctype html>' "$tap_scratch/page.html"
	expect_same "and prints the summary" "$(cat "$tap_scratch/answer")" "$(report --answer "$job")"
	expect_refusal "HTML and JSON both on standard output" 2 "cannot both use standard output" report "$job" --html - --json
else
	expect_ok "a program without charts says what is missing" grep -q -- '--html: ' "$tap_scratch/err"
fi
tap_done
