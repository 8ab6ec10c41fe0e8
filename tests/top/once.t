#!/usr/bin/env bash
# Plain text: --once, pipes, dumb terminals; and errors in the options.
. "$(dirname "$0")/top.sh"

top_needs
ringside=$BUILD/ringside
export LC_ALL=C.UTF-8

once() { # option...
	"$ringside" top --interval 200ms "$@" 2>&1
}

out=$(once)
expect_ok "without recordings it says so" grep -F "No recordings found on this host" <<<"$out"

top_job --nodes 2 --gpus 2 -w tp-pp --seconds 600s
for _ in $(seq 200); do
	out=$(once --once)
	if grep -F '4 ranks alive' <<<"$out" >/dev/null && grep -E 'tp-0 .*GB/s' <<<"$out" >/dev/null; then break; fi
done
expect_ok "all ranks are shown" grep -F "4 ranks alive" <<<"$out"
for name in world tp-0 tp-1 pp-0 pp-1; do
	expect_ok "$name has a row" grep -E "^ .$name +(mixed|nvlink-only|net-only) +[0-9]/[0-9] " <<<"$out"
done
expect_ok "so has each rank of the largest communicator" grep -E '^ +3 +[0-9]+ ' <<<"$out"
expect_same "ranks that make progress run, as on the live page" "$(sed -n '/ STATE$/,/^$/p' <<<"$out" | awk '$1 ~ /^[0-9]+$/ { print $NF }' | sort -u)" running
expect_ok "operations in flight have a title" grep -E 'AGE +COMM +RANK +OPERATION' <<<"$out"
expect_same "no control characters" "$(tr -d '[:print:]\n' <<<"$out" | LC_ALL=C tr -d '\200-\377')" ""
expect_same "no trailing blanks" "$(grep -c ' $' <<<"$out")" 0
out=$(once)
expect_ok "a pipe implies --once" grep -F "4 ranks alive" <<<"$out"
expect_ok "COLUMNS is respected" test "$(COLUMNS=50 once --once | awk '{ if (length > most) most = length } END { print most }')" -le 50
expect_same "the C locale gives ASCII" "$(LC_ALL=C once --once | LC_ALL=C tr -d '[:print:]\n')" ""
empty=$tap_scratch/empty
mkdir "$empty"
expect_ok "--directory reads another directory" grep -F " 0 ranks alive" <<<"$(once --once --directory "$empty")"

on_terminal() { # TERM command...
	script -qec "TERM=$1 ${*:2}" /dev/null </dev/null 2>&1
}
if command -v script >/dev/null; then
	for term in dumb unheard-of-terminal; do
		out=$(on_terminal "$term" "'$ringside'" top --interval 200ms '<' /dev/null)
		expect_ok "TERM=$term, no input: printed once" grep -F "4 ranks alive" <<<"$out"
		out=$(on_terminal "$term" "'$ringside'" top --interval 200ms)
		expect_ok "TERM=$term: one line gives the reason" grep -F "terminal type '$term' (TERM) does not support a live display" <<<"$out"
		expect_ok "TERM=$term: and prints once" grep -F "4 ranks alive" <<<"$out"
	done
fi

expect_complaint "an invalid time" "is not a time like 1s" "$ringside" top --interval soon
expect_complaint "a time below the minimum" "not between 200ms and 60s" "$ringside" top --interval 1ms
expect_complaint "an extra argument" "unexpected argument 'more'" "$ringside" top more
expect_complaint "a misspelled option" "did you mean '--once'" "$ringside" top --onec
"$ringside" top --onec 2>/dev/null
expect_same "wrong usage exits with 2" "$?" 2

cp "$ringside" "$tap_scratch/ringside"
expect_complaint "a missing ringside-top is reported" "no ringside-top beside .*apt install \./ringside_\*\.deb.*scripts/install-deps build" "$tap_scratch/ringside" top
expect_ok "and the help still works" "$tap_scratch/ringside" top --help
tap_done
