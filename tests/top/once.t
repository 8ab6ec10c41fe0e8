#!/usr/bin/env bash
# Plain text: --once, pipes, terminals that can do no more; and what is refused.
. "$(dirname "$0")/top.sh"

top_needs
ringside=$BUILD/ringside
export LC_ALL=C.UTF-8

once() { # option...
	"$ringside" top --interval 200ms "$@" 2>&1
}

out=$(once)
expect_ok "nobody records: it says so" grep -F "No process of this machine records" <<<"$out"

top_job --nodes 2 --gpus 2 -w tp-pp --seconds 600s
for _ in $(seq 200); do
	out=$(once --once)
	if grep -F '4 ranks alive' <<<"$out" >/dev/null && grep -E 'tp-0 .*GB/s' <<<"$out" >/dev/null; then break; fi
done
expect_ok "all ranks are there" grep -F "4 ranks alive" <<<"$out"
for name in world tp-0 tp-1 pp-0 pp-1; do
	expect_ok "$name has a row" grep -E "^ .$name +(mixed|nvlink-only|net-only) +[0-9]/[0-9] " <<<"$out"
done
expect_ok "so has each rank of the largest" grep -E '^ +3 +[0-9]+ ' <<<"$out"
expect_ok "and what is in flight has a title" grep -E 'AGE +COMM +RANK +OPERATION' <<<"$out"
expect_same "there is nothing for a terminal in it" "$(tr -d '[:print:]\n' <<<"$out" | LC_ALL=C tr -d '\200-\377')" ""
expect_same "no line ends with a blank" "$(grep -c ' $' <<<"$out")" 0
out=$(once)
expect_ok "into a pipe it is the same without --once" grep -F "4 ranks alive" <<<"$out"
expect_ok "COLUMNS is respected" test "$(COLUMNS=50 once --once | awk '{ if (length > most) most = length } END { print most }')" -le 50
expect_same "in the C locale all is ASCII" "$(LC_ALL=C once --once | LC_ALL=C tr -d '[:print:]\n')" ""
empty=$tap_scratch/empty
mkdir "$empty"
expect_ok "--directory looks elsewhere" grep -F " 0 ranks alive" <<<"$(once --once --directory "$empty")"

on_terminal() { # TERM command...
	script -qec "TERM=$1 ${*:2}" /dev/null </dev/null 2>&1
}
if command -v script >/dev/null; then
	for term in dumb unheard-of-terminal; do
		out=$(on_terminal "$term" "$ringside" top --interval 200ms '<' /dev/null)
		expect_ok "TERM=$term, no input: one look" grep -F "4 ranks alive" <<<"$out"
		out=$(on_terminal "$term" "$ringside" top --interval 200ms)
		expect_ok "TERM=$term: one line says why" grep -F "a terminal of type '$term' cannot show this live" <<<"$out"
		expect_ok "TERM=$term: and one look is shown" grep -F "4 ranks alive" <<<"$out"
	done
fi

expect_complaint "a time that is none" "is not a time like 1s" "$ringside" top --interval soon
expect_complaint "a time that is too short" "not between 200ms and 60s" "$ringside" top --interval 1ms
expect_complaint "a word too many" "'more' is not expected" "$ringside" top more
expect_complaint "a typing error" "did you mean '--once'" "$ringside" top --onec
"$ringside" top --onec 2>/dev/null
expect_same "wrong usage is 2" "$?" 2

cp "$ringside" "$tap_scratch/ringside"
expect_complaint "without ringside-top one line says so" "no ringside-top beside .*built without ncurses" "$tap_scratch/ringside" top
expect_ok "and the help is still there" "$tap_scratch/ringside" top --help
tap_done
