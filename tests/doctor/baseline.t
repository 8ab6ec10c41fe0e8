#!/usr/bin/env bash
# `ringside baseline`: what it saves, shows and rejects.
. "$(dirname "$0")/slowness.sh"

says() { # code pattern command...
	local code=$1 pattern=$2 got
	shift 2
	"$@" >"$tap_scratch/out" 2>"$tap_scratch/err"
	got=$?
	[ "$got" -eq "$code" ] || { echo "ended with $got"; cat "$tap_scratch/err"; return 1; }
	[ "$(wc -l <"$tap_scratch/err")" -le 1 ] || { echo "says more than a line:"; cat "$tap_scratch/err"; return 1; }
	[ -z "$pattern" ] || grep -qE -- "$pattern" "$tap_scratch/out" "$tap_scratch/err" || { cat "$tap_scratch/out" "$tap_scratch/err"; return 1; }
}

simulate job --nodes 2 --gpus 4 -w fsdp --seconds 6s
file=$tap_scratch/good.json
expect_ok "it saves" says 0 "" "$ringside" baseline save "$tap_scratch/job" -o "$file"
expect_ok "and says what it wrote" grep -qx "$file: baseline of [0-9]* kinds of transfers" "$tap_scratch/out"
expect_ok "it shows" says 0 "world .* mixed .* 8  AllGather .* 256 MiB  RING SIMPLE" "$ringside" baseline show "$file"
expect_ok "it shows the job" grep -q "^job sim-1: 8 ranks" "$tap_scratch/out"
"$ringside" baseline show --json "$file" >"$tap_scratch/again.json"
expect_ok "--json is the file itself" cmp "$file" "$tap_scratch/again.json"
"$ringside" baseline save "$tap_scratch/job" -o "$tap_scratch/twice.json" >/dev/null
expect_ok "the same recording gives the same bytes" cmp "$file" "$tap_scratch/twice.json"
"$ringside" baseline save "$tap_scratch/job" -o - >"$tap_scratch/out.json"
expect_ok "- is standard output" cmp "$file" "$tap_scratch/out.json"
echo old >"$tap_scratch/old.json"
"$ringside" baseline save "$tap_scratch/job" -o "$tap_scratch/old.json"
expect_ok "an older file is replaced" cmp "$file" "$tap_scratch/old.json"
expect_ok "one operation only" says 0 "" "$ringside" baseline save "$tap_scratch/job" --op AllReduce -o "$tap_scratch/one.json"
expect_same "is one row" "$(grep -o '"function":"[A-Za-z]*"' "$tap_scratch/one.json")" '"function":"AllReduce"'

simulate other --nodes 2 --gpus 4 -w fsdp --seconds 6s --seed 2
expect_ok "two runs become one baseline" says 0 "" "$ringside" baseline save "$tap_scratch/job" "$tap_scratch/other" -o "$tap_scratch/two.json"
expect_ok "which is shown" says 0 "^2 jobs: 16 ranks" "$ringside" baseline show "$tap_scratch/two.json"
calls() { # file
	python3 -c 'import json, sys
print(sum(row["calls"] for row in json.load(open(sys.argv[1]))["rows"]))' "$1"
}
"$ringside" baseline save "$tap_scratch/other" -o "$tap_scratch/other.json"
expect_same "with the calls of both" "$(calls "$tap_scratch/two.json")" \
	$(($(calls "$file") + $(calls "$tap_scratch/other.json")))

# ---- errors ----------------------------------------------------------------------------------------
expect_ok "nothing to do" says 2 "save or show" "$ringside" baseline
expect_ok "another word" says 2 "'keep' is neither save nor show" "$ringside" baseline keep
expect_ok "save what?" says 2 "nothing to save: pass a PATH" "$ringside" baseline save -o "$file"
expect_ok "save where?" says 2 "no output file: use -o FILE" "$ringside" baseline save "$tap_scratch/job"
expect_ok "show what?" says 2 "show needs one FILE" "$ringside" baseline show
expect_ok "no such recording" says 3 "No such file" "$ringside" baseline save "$tap_scratch/nowhere" -o "$tap_scratch/new.json"
expect_ok "nothing is written then" test ! -e "$tap_scratch/new.json"
expect_ok "no such file" says 3 "No such file" "$ringside" baseline show "$tap_scratch/nowhere"
expect_ok "a directory" says 3 "directory" "$ringside" baseline show "$tap_scratch"
sed 's/"version":1/"version":2/' "$file" >"$tap_scratch/bad.json"
expect_ok "a newer version" says 3 "bad.json is not a baseline: line 1.*version.*newer" "$ringside" baseline show "$tap_scratch/bad.json"
head -c 500 "$file" >"$tap_scratch/bad.json"
expect_ok "half a file" says 3 "bad.json is not a baseline: line 1, byte" "$ringside" baseline show "$tap_scratch/bad.json"
expect_ok "a trace file" says 3 "is not a baseline" "$ringside" baseline show "$tap_scratch"/job/r0-*
sed 's/"samples":[0-9.]*/"samples":"many"/' "$file" >"$tap_scratch/bad.json"
expect_ok "an invalid number" says 3 "samples: is not a number" "$ringside" baseline show "$tap_scratch/bad.json"
expect_ok "the doctor rejects it, too" says 3 "bad.json.*samples" "$ringside" doctor "$tap_scratch/job" --baseline "$tap_scratch/bad.json"
tap_done
