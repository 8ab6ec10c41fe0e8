#!/usr/bin/env bash
# A job that hung, was killed and started again under the same name: the last run counts, and the others can be asked for.
. "$(dirname "$0")/doctor.sh"
export LC_ALL=C RINGSIDE_BUFFER=1MiB RINGSIDE_JOB=none

begin() { # option...
	"$ringside" sim --nodes 1 --gpus 4 -w ddp --kernel --seconds 600s --mode flight "$@" >"$tap_scratch/sim" 2>&1 &
	sim=$!
	started+=("$sim")
}
end_all() {
	local ours
	mapfile -t ours < <("$ringside" ls --json | grep -oE '"pid_here":[0-9]+' | cut -d: -f2)
	kill -9 "$sim"
	wait "$sim" 2>/dev/null
	kill -9 "${ours[@]}" 2>/dev/null
	until_ok all_dead
}
all_dead() { ! "$ringside" ls --json | grep -q '"alive"'; }
hangs() {
	diagnose --hang 4s
	grep -q '"class":"never_issued"' "$tap_scratch/doctor.json"
}
works() { # processes
	[ "$("$ringside" ls --json | grep -oE '"state":"alive"' | wc -l)" = 4 ] &&
		[ "$("$ringside" ls --json | grep -oE '"issued":[1-9][0-9]' | wc -l)" = "$1" ]
}

begin -f never-arrives:rank=2,at=1s
expect_ok "the first run hangs" until_ok hangs
expect_same "one run needs no column" "$("$ringside" ls -q | grep -c RUN)" 0
expect_ok "but its start, user and command are shown" grep -qE 'STARTED .*USER +COMMAND' <<<"$("$ringside" ls -q)"
end_all
begin
expect_ok "the second one works" until_ok works 8

expect_same "ls groups processes by run" "$("$ringside" ls -q | awk 'NR > 1 { print $2, $4 }' | uniq -c | tr -s ' \n' ' ')" \
	" 4 killed 1/2 4 alive 2/2 "
diagnose --hang 2s
expect_same "the doctor finds nothing wrong with the last run" $? 0
expect_same "it has four ranks" "$(grep -oE '"(jobs|ranks)":[0-9]+' "$tap_scratch/doctor.json" | tr '\n' ' ')" '"jobs":1 "ranks":4 '
expect_ok "and mentions the other" grep -q 'without 1 earlier run of the same name (--run 1 or all)' "$tap_scratch/doctor.json"
diagnose --hang 2s --run 1
expect_same "which can be asked for" "$? $(grep -oE '"class":"never_issued"|"rank":2,' "$tap_scratch/doctor.json" | tr '\n' ' ')" \
	'1 "class":"never_issued" "rank":2, '
"$ringside" report --answer >"$tap_scratch/report" 2>"$tap_scratch/report.err"
expect_ok "the report is of the last run" grep -q '^job none: 4 ranks' "$tap_scratch/report"
expect_ok "and says so" grep -q 'without 1 earlier run' "$tap_scratch/report.err"
expect_same "ps lists operations of the last run" "$("$ringside" ps --json 2>/dev/null | grep -c '"state":"killed"')" 0
"$ringside" doctor --run 5 >/dev/null 2>"$tap_scratch/none.err"
expect_same "a run that does not exist" "$? $(cat "$tap_scratch/none.err")" \
	"3 ringside doctor: no run 5: 'ringside ls' lists the runs of each job"
expect_refusal "a run that is no number" 2 "--run 'first' is neither a number from 1 nor all" "$ringside" doctor --run first

# The next start has higher process IDs or lower ones; its number follows the time.
end_all
begin
expect_ok "the third one works" until_ok works 12
expect_same "runs are numbered by start" "$("$ringside" ls --json | grep -oE '"run":[0-9]+|"state":"[a-z]+"' | paste - - | sort | uniq -c | tr -s ' \t\n' ' ')" \
	' 4 "run":1 "state":"killed" 4 "run":2 "state":"killed" 4 "run":3 "state":"alive" '
end_all
"$ringside" bundle --no-ras -o "$tap_scratch/runs.tar" >/dev/null 2>&1
expect_same "a bundle has all of them" "$(tar tf "$tap_scratch/runs.tar" | grep -c 'snapshots/.*rank')" 12
expect_ok "and its doctor judges the last" grep -q 'without 2 earlier runs' <<<"$(tar xOf "$tap_scratch/runs.tar" ringside-bundle/doctor.txt | tr '\n' ' ')"
tap_done
