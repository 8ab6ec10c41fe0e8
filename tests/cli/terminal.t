#!/usr/bin/env bash
# On a terminal: colors, the pager, wrapping between words. Otherwise none of these.
. "$(dirname "$0")/cli.sh"
make_samples
unset NO_COLOR PAGER RINGSIDE_PAGER
export TERM=xterm

on_terminal() { # rows columns command...
	python3 tests/cli/on_terminal.py "$@"
}
has_color() {
	grep -q $'\e\[' && echo color || echo plain
}

"$ringside" sim --offline -o "$tap_scratch/hung" --nodes 2 --gpus 8 -w fsdp --seconds 30s --seed 1 \
	-f never-arrives:rank=5 --at 5s >/dev/null || exit 1
for command in ls ps report doctor verify; do
	expect_same "$command: colors on a terminal" "$(on_terminal 500 200 "$ringside" $command "$tap_scratch/hung" | has_color)" color
	expect_same "$command: none in a pipe" "$("$ringside" $command "$tap_scratch/hung" | has_color)" plain
	expect_same "$command: none with NO_COLOR" \
		"$(NO_COLOR=1 on_terminal 500 200 "$ringside" $command "$tap_scratch/hung" | has_color)" plain
	expect_same "$command: --color never" \
		"$(on_terminal 500 200 "$ringside" $command --color never "$tap_scratch/hung" | has_color)" plain
	expect_same "$command: --color always, in a pipe and with NO_COLOR" \
		"$(NO_COLOR=1 "$ringside" $command --color=always "$tap_scratch/hung" | has_color)" color
	expect_same "$command: the same text with colors and without" \
		"$("$ringside" $command --color=always "$tap_scratch/hung" | sed $'s/\e\\[[0-9;]*m//g')" \
		"$("$ringside" $command "$tap_scratch/hung")"
	expect_refusal "$command: another color" 2 "^ringside $command: --color 'red' is not auto, always or never" \
		"$ringside" $command --color red "$tap_scratch/hung"
	expect_same "$command: JSON has no colors" "$("$ringside" $command --json --color always "$tap_scratch/hung" | has_color)" plain
done

# The pager prints a marker line before its input.
printf '#!/bin/sh\necho "paged by $0"\ncat\n' >"$tap_scratch/pager"
chmod +x "$tap_scratch/pager"
cp "$tap_scratch/pager" "$tap_scratch/other"
paged() { # rows option...
	on_terminal "$1" 200 "$ringside" report "$tap_scratch/hung" "${@:2}" | sed -n "s|^paged by $tap_scratch/||p"
}
expect_same "long output goes through PAGER" "$(PAGER=$tap_scratch/pager paged 10)" pager
expect_same "RINGSIDE_PAGER takes precedence" "$(PAGER=$tap_scratch/pager RINGSIDE_PAGER=$tap_scratch/other paged 10)" other
expect_same "not with --no-pager" "$(PAGER=$tap_scratch/pager paged 10 --no-pager)" ""
expect_same "not when it fits" "$(PAGER=$tap_scratch/pager paged 1000)" ""
expect_same "not into a pipe" "$(PAGER=$tap_scratch/pager "$ringside" report "$tap_scratch/hung" | grep -c '^paged by')" 0
expect_same "the pager gets everything" \
	"$(PAGER=$tap_scratch/pager NO_COLOR=1 on_terminal 10 200 "$ringside" report "$tap_scratch/hung" | grep -v '^paged by')" \
	"$(NO_COLOR=1 on_terminal 10 200 "$ringside" report --no-pager "$tap_scratch/hung")"
plain=$(NO_COLOR=1 on_terminal 10 200 "$ringside" verify --no-pager "$tap_scratch/lossy")
for none in '' cat "$tap_scratch/no-such-pager" 'no-such-pager -x'; do
	expect_same "no pager with '${none##*/}', and no error" \
		"$(PAGER=$none NO_COLOR=1 on_terminal 10 200 "$ringside" verify "$tap_scratch/lossy" | grep -v 'not found')" "$plain"
done
PAGER=$tap_scratch/pager on_terminal 10 200 "$ringside" verify "$tap_scratch/lossy" >/dev/null
expect_same "the exit code is the command's" $? 1
PAGER=true on_terminal 10 200 "$ringside" verify "$tap_scratch/lossy" >/dev/null
expect_same "also if the reader stops early" $? 1

# Ranks in the same operation and state are one row.
rows=$("$ringside" ps "$tap_scratch/hung" 2>/dev/null | grep -c ' AllGather \| ReduceScatter ')
expect_ok "ps groups ranks" [ "$rows" -lt 16 ]
expect_ok "with their number" grep -q ' 15 ranks ' <("$ringside" ps "$tap_scratch/hung" 2>/dev/null)
expect_ok "and their list" grep -q '^ *ranks 0-4,6-15 of 16$' <("$ringside" ps "$tap_scratch/hung" 2>/dev/null)
expect_same "ps --all has a row for every rank" \
	"$("$ringside" ps --all "$tap_scratch/hung" 2>/dev/null | grep -c ' [0-9]*/16 ')" \
	"$("$ringside" ps --json --all "$tap_scratch/hung" 2>/dev/null | json_says 'scalar @{$_->{operations}}')"
for columns in 60 80 100; do
	# Cut words would differ from those of a wide terminal.
	expect_same "ps wraps notes between words at $columns columns" \
		"$(NO_COLOR=1 on_terminal 5000 $columns "$ringside" ps "$tap_scratch/hung" | grep '^ *[a-z]' | tr -s ' \n' '\n' | sort -u |
			grep -vxFf <("$ringside" ps "$tap_scratch/hung" 2>&1 | tr -s ' \n' '\n'))" ""
	expect_same "no line is longer than $columns" \
		"$(NO_COLOR=1 on_terminal 5000 $columns "$ringside" ps -q "$tap_scratch/hung" |
			awk -v most=$columns 'length > most; / AllGather / { rows++ } END { if (!rows) print "no operations" }')" ""
done
expect_same "-q: no remarks" "$("$ringside" ps -q "$tap_scratch/hung" 2>&1 >/dev/null)" ""
tap_done
