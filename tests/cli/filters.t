#!/usr/bin/env bash
# --job, --rank, --comm, --since and --until: the same rows, errors and meaning in every command that reads recordings.
. "$(dirname "$0")/cli.sh"

"$ringside" sim --offline -o "$tap_scratch/one" --nodes 1 --gpus 4 -w tp-pp --tp 2 --seconds 10s --seed 1 >/dev/null || exit 1
"$ringside" sim --offline -o "$tap_scratch/two" --nodes 1 --gpus 2 -w ddp --seconds 10s --seed 2 >/dev/null || exit 1
jobs=("$tap_scratch/one" "$tap_scratch/two")

arguments() { # command: what else it needs
	case $1 in
	trace) echo "-o $tap_scratch/out.json" ;;
	export) echo "-o $tap_scratch/out.csv" ;;
	bundle) echo "-o $tap_scratch/out.tar" ;;
	baseline) echo "save -o $tap_scratch/out.base" ;;
	diff) echo "$tap_scratch/one" ;;
	record) echo "--times 1s" ;;
	esac
}

# No time limits for commands that show one moment (ps, record) or check or copy whole recordings (verify, bundle).
timeless=" ps record verify bundle "
rows() { # command pattern
	"$ringside" "$1" --list-options | grep -P "^\S\t($2)\t"
}
expect_same "there are five filters" "$(rows report 'job|comm|rank|since|until' | wc -l)" 5
for command in ls ps dump report doctor diff trace export verify bundle baseline record; do
	names='job|comm|rank|since|until'
	[[ $timeless == *" $command "* ]] && names='job|comm|rank'
	expect_same "$command has the filters, with the words of all" "$(rows $command "$names")" "$(rows report "$names")"
	[[ $timeless == *" $command "* ]] && expect_same "$command has no times" "$(rows $command 'since|until')" ""
	read -ra more <<<"$(arguments $command)"
	expect_refusal "$command: no such communicator" 3 \
		"^ringside $command: --comm: no communicator 'nope' here; available: [a-z0-9-]+, [a-z0-9-]+" \
		"$ringside" "$command" "${more[@]}" "$tap_scratch/one" --comm nope
	expect_refusal "$command: no such rank" 3 "^ringside $command: --rank: no rank '77' here; available: 0-3$" \
		"$ringside" "$command" "${more[@]}" "$tap_scratch/one" --rank 77
	expect_refusal "$command: no such job" 3 "^ringside $command: --job: no job 'nope' here; available: sim-1$" \
		"$ringside" "$command" "${more[@]}" "$tap_scratch/one" --job nope
	expect_refusal "$command: no list of ranks" 2 "^ringside $command: --rank 'x' is not a list of ranks like 0-7,12 " \
		"$ringside" "$command" "${more[@]}" "$tap_scratch/one" --rank x
	[[ $timeless == *" $command "* ]] ||
		expect_refusal "$command: no time" 2 "^ringside $command: --since 'x' is not a time like 30s" \
			"$ringside" "$command" "${more[@]}" "$tap_scratch/one" --since x
done
expect_refusal "several jobs are listed" 3 "no job 'x' here; available: sim-1, sim-2$" \
	"$ringside" ls --job x "${jobs[@]}"

# All commands select the same processes as `ls`.
ranks() { # option...
	"$ringside" ls --json "${jobs[@]}" "$@" | json_says 'join " ", map { "$_->{job}:$_->{rank}" } @{$_->{processes}}'
}
expect_same "ls --job" "$(ranks --job sim-2)" "sim-2:0 sim-2:1"
expect_same "ls --rank" "$(ranks --rank 1,3)" "sim-1:1 sim-1:3 sim-2:1"
expect_same "ls --job --rank" "$(ranks --job sim-1 --rank 1-2)" "sim-1:1 sim-1:2"
comm=$("$ringside" ls --json "$tap_scratch/one" | json_says 'my %n; $n{$_->{comm_name}}++ for map { @{$_->{communicators}} } @{$_->{processes}};
	(grep { $n{$_} == 2 } sort keys %n)[0]')
members=$("$ringside" ls --json "$tap_scratch/one" | json_says 'join " ", map { "$_->{job}:$_->{rank}" }
	grep { grep { $_->{comm_name} eq "'"$comm"'" } @{$_->{communicators}} } @{$_->{processes}}')
expect_same "ls --comm: its ranks" "$(ranks --job sim-1 --comm "$comm")" "$members"
expect_refusal "ls --until before the start: nothing" 3 \
	"^ringside ls: nothing recorded matches --since, --until, --rank and --comm together$" \
	"$ringside" ls "${jobs[@]}" --until 2000-01-01
expect_same "ls --since 1s: still running then" "$(ranks --job sim-2 --since 1s)" "sim-2:0 sim-2:1"

for option in "--rank 1" "--comm $comm" "--since 2s --until 4s" "--rank 0-1 --since -3s" "--op AllReduce"; do
	read -ra words <<<"$option"
	rm -f "$tap_scratch/rows.csv"
	"$ringside" export "$tap_scratch/one" "${words[@]}" -o "$tap_scratch/rows.csv" >/dev/null
	expect_same "dump and export agree on $option" \
		"$("$ringside" dump "$tap_scratch/one" "${words[@]}" | wc -l)" "$(($(wc -l <"$tap_scratch/rows.csv") - 1))"
done
all=$("$ringside" dump "$tap_scratch/one" | wc -l)
some=$("$ringside" dump "$tap_scratch/one" --since 2s --until 4s | wc -l)
expect_ok "times leave something out, and not everything" [ "$some" -gt 0 -a "$some" -lt "$all" ]

"$ringside" bundle "${jobs[@]}" --job sim-2 --rank 1 --no-ras -o "$tap_scratch/one.tar" >/dev/null
expect_same "bundle contains the selected processes" \
	"$("$ringside" ls --json "$tap_scratch/one.tar" | json_says 'join " ", map { "$_->{job}:$_->{rank}" } @{$_->{processes}}')" sim-2:1
expect_same "verify checks what was chosen" \
	"$("$ringside" verify --json "${jobs[@]}" --job sim-1 --rank 2 | json_says 'join " ", map { $_->{rank} } @{$_->{processes}}')" 2

# The doctor always judges all ranks; the filters select verdicts.
"$ringside" sim --offline -o "$tap_scratch/slow" --nodes 1 --gpus 4 -w ddp --seconds 60s --seed 1 \
	-f slow-rank:rank=2,factor=3 --at 30s >/dev/null || exit 1
verdicts() { # option...
	"$ringside" doctor --json "$tap_scratch/slow" "$@" | json_says 'join " ", map { "$_->{class}:" . ($_->{rank} // "") }
		grep { $_->{severity} ne "note" } @{$_->{verdicts}}'
}
expect_same "doctor --rank: a verdict about it" "$(verdicts --rank 2)" "slow_rank:2"
expect_same "doctor --rank: none about another" "$(verdicts --rank 1)" ""
expect_same "doctor --until: before it became slow" "$(verdicts --until 25s)" ""
expect_same "doctor --since: after it became slow" "$(verdicts --since 31s)" "slow_rank:2"
expect_refusal "doctor: Prometheus has another window" 2 "with --prometheus use --window" \
	"$ringside" doctor --prometheus http://127.0.0.1:1 --since 5s

# ps: rows of the communicator and the ranks; missing ranks are counted over all.
"$ringside" sim --offline -o "$tap_scratch/hung" --nodes 1 --gpus 8 -w fsdp --seconds 30s --seed 1 \
	-f never-arrives:rank=5 --at 5s >/dev/null || exit 1
ps_ranks() { # option...
	"$ringside" ps --json "$tap_scratch/hung" "$@" | json_says 'my %r; $r{$_->{rank}}++ for @{$_->{operations}}; join ",", sort keys %r'
}
expect_same "ps --rank" "$(ps_ranks --rank 1-2,7)" "1,2,7"
expect_same "ps --comm" "$(ps_ranks --comm world)" "$(ps_ranks)"
expect_same "baseline save prints a summary" \
	"$("$ringside" baseline save "$tap_scratch/slow" -o "$tap_scratch/b.json" | sed 's|.*/||; s/[0-9]\+/N/')" "b.json: baseline of N kinds of transfers"
expect_same "baseline save -q prints nothing" "$("$ringside" baseline save -q "$tap_scratch/slow" -o "$tap_scratch/b.json" 2>&1)" ""
tap_done
