#!/usr/bin/env bash
# Logs of other tools give the same result, imported or read directly.
. "$(dirname "$0")/../cli/cli.sh"

data=$PWD/tests/foreign/data
logs=$tap_scratch/nccl-inspector-77
mkdir "$logs"
cp "$data"/inspector-v4.[0-4].log "$data/inspector-v4.0-verbose.log" "$logs"
gzip -n "$logs/inspector-v4.3.log"

said "$ringside" import "$logs" -o "$tap_scratch/traces" >"$tap_scratch/import"
expect_same "an import reports what it did and what is missing" "$(tidy <"$tap_scratch/import")" "44 operations of 6 processes, 2 communicators, from 6 logs to TMP/traces
  16 details of channels and transfers
  12 operations are missing: their recorder dropped them
  5 details are missing: their recorder dropped them
  39 operations have no exact end time; they ended before they were written
  not known: algorithms and protocols; when they were issued; datatypes, counts, roots
exit 0"
expect_same "there is a trace file per process" "$(find "$tap_scratch/traces" -name '*.ringside' | wc -l)" 6
expect_same "imported or not, there are the same operations and details" \
	"$("$ringside" dump --details "$tap_scratch/traces" | sort)" "$("$ringside" dump --details "$logs" | sort)"
expect_same "the job's name is that of the directory" \
	"$("$ringside" dump "$tap_scratch/traces" | perl -ne '/"job":("[^"]*"|null)/ and print "$1\n"' | sort -u)" '"77"'
said "$ringside" verify "$tap_scratch/traces" >"$tap_scratch/verify"
expect_same "an import adds up" "$(grep -cE 'neither recorded|cannot be read|without its closing' "$tap_scratch/verify")" 0

# The logs of the ranks of one communicator.
"$ringside" sim --offline --kernel -o "$tap_scratch/ranks" --nodes 1 --gpus 4 -w ddp --seconds 2s >/dev/null || exit 1
mkdir "$tap_scratch/logs"
for rank in 0 1 2 3; do
	"$ringside" export "$tap_scratch/ranks"/r$rank-* --format inspector -o "$tap_scratch/logs/$rank.log" >/dev/null || exit 1
done
expect_same "a communicator counts once, whatever the number of its ranks" "$("$ringside" import "$tap_scratch/logs" -o "$tap_scratch/four" |
	sed -n '1s/.* of \(.*\) to .*/\1/p')" "4 processes, 1 communicator, from 4 logs"

# Damaged logs.
expect_same "lines that cannot be read are named and skipped" \
	"$(said "$ringside" import "$data/inspector-damaged.log" -o "$tap_scratch/damaged" | tidy | head -n 8)" \
	"6 operations of 1 process, 1 communicator, from 1 log to TMP/damaged
  9 operations are missing: NCCL counted them, their recorder did not write them (too small, not finished, or lost)
  6 operations have no exact end time; they ended before they were written
  13 lines could not be read
  not known: algorithms and protocols; when they were issued; datatypes, counts, roots
stderr: ringside import: HERE/tests/foreign/data/inspector-damaged.log:2: skipped: not a JSON value
stderr: ringside import: HERE/tests/foreign/data/inspector-damaged.log:3: skipped: unexpected end
stderr: ringside import: HERE/tests/foreign/data/inspector-damaged.log:4: skipped: trailing text after the value"
expect_complaint "and the exit code shows it" "8 more lines" \
	"$ringside" import "$data/inspector-damaged.log" -o "$tap_scratch/damaged2"
expect_ok "the rest is imported" test -s "$tap_scratch/damaged2/alpha-pid4100.ringside"
expect_complaint "--strict refuses" "nothing written: 13 lines cannot be read" \
	"$ringside" import --strict "$data/inspector-damaged.log" -o "$tap_scratch/strict"
expect_ok "and leaves nothing behind" test ! -e "$tap_scratch/strict"
expect_same "reading commands skip and name them, too" \
	"$(said "$ringside" dump "$data/inspector-damaged.log" | grep -c '^{')" 6
gzip -nc "$data/inspector-v4.0.log" | head -c 800 >"$tap_scratch/cut.gz"
expect_complaint "compressed and truncated: the available part is imported" "gzip data truncated" \
	"$ringside" import "$tap_scratch/cut.gz" -o "$tap_scratch/cut"
expect_ok "as a file" test -s "$tap_scratch/cut/alpha-pid4100.ringside"

# Not a log.
expect_refusal "results of nccl-tests have no operations" 3 "nccl-tests' output: contains no operations" \
	"$ringside" import "$data/nccl-tests-all-reduce.txt" -o "$tap_scratch/none"
expect_refusal "our own files need no import" 3 "no log of another tool" \
	"$ringside" import "$tap_scratch/traces" -o "$tap_scratch/none"
expect_refusal "a path that does not exist" 3 "cannot be read" "$ringside" import "$tap_scratch/nowhere" -o "$tap_scratch/none"
expect_refusal "no directory" 2 "-o DIR" "$ringside" import "$logs"
expect_refusal "no log" 2 "no log: pass a PATH" "$ringside" import -o "$tap_scratch/none"
expect_refusal "a directory with files is left alone" 3 "not empty" "$ringside" import "$logs" -o "$tap_scratch/traces"
expect_ok "unless --force is given" "$ringside" import --force "$logs" -o "$tap_scratch/traces"
expect_ok "nothing is left of a rejected import" test ! -e "$tap_scratch/none"

# One file of several processes, and the JSON.
cat "$data/inspector-mixed.jsonl" "$data/inspector-v4.2.log" >"$tap_scratch/all.jsonl"
"$ringside" import --json "$tap_scratch/all.jsonl" -o "$tap_scratch/all" >"$tap_scratch/all.json"
# shellcheck disable=SC2016
expect_same "a file of two processes becomes two" \
	"$(json_says '"$_->{logs} $_->{files} $_->{operations} $_->{ignored_lines} $_->{damaged_lines}"' "$tap_scratch/all.json")" "1 2 7 1 0"
expect_same "and reads like the original" "$("$ringside" dump "$tap_scratch/all" | sort)" "$("$ringside" dump "$tap_scratch/all.jsonl" | sort)"
"$ringside" import "$data/comma-latency.txt" -o "$tap_scratch/comma" >/dev/null
expect_same "CoMMA's file, too" "$("$ringside" dump --details "$tap_scratch/comma" | sort)" \
	"$("$ringside" dump --details "$data/comma-latency.txt" | sort)"
tap_done
