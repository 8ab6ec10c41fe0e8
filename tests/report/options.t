#!/usr/bin/env bash
# What can be asked of the report, what is refused, and what happens to files.
. "$(dirname "$0")/report.sh"

simulate job --nodes 2 --gpus 2 -w tp-pp --pp 2 --seconds 3s
job=$tap_scratch/job

# ---- wrong usage ----------------------------------------------------------------------------------------
report() { "$ringside" report "$@"; }
expect_refusal "--by with a typing error" 2 "unknown word 'funktion', did you mean 'function'" report "$job" --by comm,funktion
expect_refusal "--by with another word" 2 "unknown word 'nonsense'; allowed are comm, .*function" report "$job" --by nonsense
expect_refusal "--by with nothing" 2 "unknown word ''" report "$job" --by ''
expect_refusal "--by with a word that is near none" 2 "--by: unknown word 'foo'; allowed are comm" report "$job" --by foo
expect_refusal "--table with a typing error" 2 "there is no 'ranks', did you mean 'rank'" report "$job" --table ranks
expect_refusal "--table and --by" 2 "one too many" report "$job" --table rank --by rank
expect_refusal "--json and --csv" 2 "one too many" report "$job" --json --csv
expect_refusal "--answer and a table" 2 "has no table" report "$job" --answer --by rank
expect_refusal "--answer as JSON" 2 "is text" report "$job" --answer --json
expect_refusal "--rank that is none" 2 "no list of ranks" report "$job" --rank 3-1-2
expect_refusal "--since that is no time" 2 "no time like 30s" report "$job" --since yesterday
expect_refusal "--tag that is no number" 2 "no whole number" report "$job" --tag -1
expect_refusal "--op with a typing error" 2 "unknown operation 'AlReduce', did you mean 'AllReduce'" report "$job" --op AlReduce
expect_refusal "--op with a name missing" 2 "a name is missing" report "$job" --op AllReduce,
expect_refusal "a communicator that is not there" 3 "no communicator 'dp'.*there is world, .*tp-0" report "$job" --comm dp
expect_refusal "a rank that is not there" 3 "none of these ranks is recorded" report "$job" --rank 100-200
expect_refusal "an output without a name" 2 "no name of a file" report "$job" -o ''
expect_refusal "a directory that is not there" 3 "nowhere" report "$tap_scratch/nowhere"

# ---- choosing -------------------------------------------------------------------------------------------
calls() { # option...
	report --json "$job" "$@" | json_says '$_->{total}{calls}'
}
all=$(calls)
expect_same "names of operations are the same in lower case" "$(calls --op allreduce)" "$(calls --op AllReduce)"
expect_same "operations add up" "$(($(calls --op AllReduce) + $(calls --op Send,Recv)))" "$all"
expect_same "communicators add up" "$(calls --comm world --comm tp-0 --comm tp-1 --comm pp-0 --comm pp-1)" "$all"
expect_same "a communicator by its hash" "$(calls --comm "$(report --json "$job" |
	json_says '(grep { $_->{name} eq "tp-0" } @{$_->{communicators}})[0]{hash}')")" "$(calls --comm tp-0)"
expect_same "before and after add up" "$(($(calls --until 1s) + $(calls --since 1s)))" "$all"
expect_same "nothing passes" "$(calls --since 1h)" 0
expect_same "where nothing passes there is no bandwidth and no time" \
	"$(report --json "$job" --since 1h | json_says 'join ",", map { defined $_ ? $_ : "null" }
		@{$_->{total}}{qw(sum_ns median_ns algbw_bytes_per_second wait_ns)}')" "null,null,null,null"
expect_same "ranks that are not shown are marked" \
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
	expect_ok "CSV reads back as the same numbers as JSON" python3 tests/report/csv_same.py \
		"$tap_scratch/by.csv" "$tap_scratch/by.json"
	sed -i '2s/,[0-9]*,/,1,/' "$tap_scratch/by.csv"
	expect_complaint "and a wrong number is found" "is" python3 tests/report/csv_same.py \
		"$tap_scratch/by.csv" "$tap_scratch/by.json"
fi

# ---- files ----------------------------------------------------------------------------------------------
expect_ok "-o writes a file" report "$job" --json -o "$tap_scratch/report.json"
expect_same "which is what standard output gets" "$(cat "$tap_scratch/report.json")" "$(report "$job" --json)"
expect_same "and nothing else is printed" "$(report "$job" -o "$tap_scratch/report.txt" 2>&1)" ""
expect_ok "text in a file is not cut" env COLUMNS=40 "$ringside" report "$job" -o "$tap_scratch/narrow.txt"
expect_ok "whatever the terminal" cmp "$tap_scratch/report.txt" "$tap_scratch/narrow.txt"
expect_refusal "where no file can be" 3 "nodir/x" report "$job" -o "$tap_scratch/nodir/x"
echo before >"$tap_scratch/kept"
expect_refusal "what cannot be made leaves the old file" 3 "no communicator" report "$job" --comm none -o "$tap_scratch/kept"
expect_same "as it was" "$(cat "$tap_scratch/kept")" before
expect_same "no half file is left behind" "$(find "$tap_scratch" -name '*.part' | wc -l)" 0
expect_refusal "a full disk is said" 3 "No space left" sh -c '"$0" report "$1" >/dev/full' "$ringside" "$job"
report "$job" 2>"$tap_scratch/err" | true
expect_same "a closed pipe is quiet" "$(cat "$tap_scratch/err")" ""

# ---- trouble --------------------------------------------------------------------------------------------
cp -r "$job" "$tap_scratch/damaged"
victim=$(find "$tap_scratch/damaged" -name 'r1-*')
printf 'xxxxxxxx' | dd of="$victim" bs=1 seek=$(($(stat -c %s "$victim") / 2)) conv=notrunc status=none
expect_same "a damaged file is named, the rest is reported, the exit code is 3" \
	"$(said "$ringside" report --answer "$tap_scratch/damaged" | tidy |
		sed -n -e '/^stderr.*\/r1-/s/.*\(damage\|unreadable\|cannot be read\).*/\1/p' -e '/^job/s/:.*//p' -e '/^exit/p')" \
	"job sim-1
damage
exit 3"
said "$ringside" report --strict "$tap_scratch/damaged" >"$tap_scratch/strict"
expect_same "--strict says the trouble and nothing else" "$(grep -vc '^stderr: ' "$tap_scratch/strict")" 1
expect_same "with exit code 3" "$(tail -n 1 "$tap_scratch/strict")" "exit 3"
cp -r "$job" "$tap_scratch/foreign"
echo "just a note" >"$tap_scratch/foreign/README"
expect_ok "a file of somebody else in a directory is no trouble" report "$tap_scratch/foreign"
expect_complaint "but for --strict" "README" report --strict "$tap_scratch/foreign"
cp -r "$job" "$tap_scratch/cut"
victim=$(find "$tap_scratch/cut" -name 'r1-*')
truncate -s $(($(stat -c %s "$victim") * 2 / 3)) "$victim"
report --json "$tap_scratch/cut" >"$tap_scratch/cut.json" 2>/dev/null
expect_same "a file that ends early counts as not ended" "$(json_says '$_->{completeness}{unknown_end}' "$tap_scratch/cut.json")" 1
expect_complaint "--strict refuses it" "r1-" report --strict "$tap_scratch/cut"
expect_same "strict or not, a good recording is the same" "$(report --strict "$job")" "$(report "$job")"

# ---- the page -------------------------------------------------------------------------------------------
if "$ringside" report "$job" --html "$tap_scratch/page.html" >"$tap_scratch/answer" 2>"$tap_scratch/err"; then
	expect_ok "--html writes a page" grep -qi '<!doctype html>' "$tap_scratch/page.html"
	expect_same "and prints the answer" "$(cat "$tap_scratch/answer")" "$(report --answer "$job")"
	expect_refusal "a page and JSON both on standard output" 2 "both want standard output" report "$job" --html - --json
else
	expect_ok "a program without charts says so" grep -q -- '--html: ' "$tap_scratch/err"
fi
tap_done
