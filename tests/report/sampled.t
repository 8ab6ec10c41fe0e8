#!/usr/bin/env bash
# Jobs with some or no timed calls: every output has the number of timed calls, and unknown values are never numbers.
. "$(dirname "$0")/report.sh"
make_sampled

says() { # file expression
	json_says "$2" "$tap_scratch/$1"
}
for mode in all sampled none; do
	"$ringside" report --json "$tap_scratch/$mode" >"$tap_scratch/$mode.json"
done

expect_same "the number of calls does not depend on timing" "$(says sampled.json '$_->{total}{calls}')" "$(says all.json '$_->{total}{calls}')"
expect_same "timed, estimated and not timed calls add up" \
	"$(says sampled.json 'join " ", map { $_->{timed} + $_->{estimated} + $_->{not_timed} - $_->{calls} } $_->{total}, map { @{$_->{rows}} } values %{$_->{tables}}' | tr ' ' '\n' | sort -u)" 0
# The total excludes the Broadcasts, which were never timed, so the estimate of AllReduce is compared.
near='my ($row) = grep { $_->{function} eq "AllReduce" } @{$_->{tables}{function}{rows}}; "$row->{total_ns} $row->{total_wait_ns}"'
read -r time waiting <<<"$(says sampled.json "$near")"
read -r true_time true_waiting <<<"$(says all.json "$near")"
expect_same "estimated time is within 1% of the true one, waiting within 10%" \
	"$(awk -v a="$time" -v b="$true_time" -v c="$waiting" -v d="$true_waiting" \
		'BEGIN { print (a > 0.99 * b && a < 1.01 * b), (c > 0.9 * d && c < 1.1 * d) }')" "1 1"
expect_same "kinds that were never timed are listed" \
	"$(says sampled.json 'join ",", map { "$_->{function} $_->{size_least} $_->{calls}" } @{$_->{not_timed}}')" "Broadcast 4096 1200"
figures='join ",", map { defined $_ ? $_ : "null" } @{$_->{total}}{qw(sum_ns total_ns min_ns median_ns mean_ns p99_ns max_ns
	algbw_bytes_per_second busbw_bytes_per_second wait_ns total_wait_ns wait_share gpu_hours_lost)}, $_->{busy_share}'
expect_same "without timed calls every figure is null" "$(says none.json "$figures" | tr ',' '\n' | sort -u)" null
expect_same "and every CSV cell is empty" \
	"$("$ringside" report --csv --table size "$tap_scratch/none" | tr -d "\r" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) name[i] = $i }
		NR > 1 { for (i = 1; i <= NF; i++) if (name[i] ~ /_ns$|per_second|gpu_hours/ && $i != "") print name[i], $i }')" ""

export_of() { # mode format
	"$ringside" export "$tap_scratch/$1" --format "$2" -o "$tap_scratch/$1.$2" | tail -n 1
}
expect_same "an export reports the number of timed operations" "$(export_of sampled csv)" "timed: 1,552 of 15,600 operations"
expect_same "but not if all were timed" "$(export_of all csv | grep -c timed:)" 0
expect_same "JSON always has it" \
	"$("$ringside" export "$tap_scratch/all" --format csv -o "$tap_scratch/x.csv" --json | grep -o '"timed":[0-9]*')" '"timed":15600'
expect_same "Inspector output has timed operations only" \
	"$(export_of sampled inspector; wc -l <"$tap_scratch/sampled.inspector")" \
	"timed: 1,552 of 15,600 operations; those without a time have no line
1552"
expect_same "none of them with a time or bandwidth of 0" "$(grep -cE 'exec_time_us":0,|bw_gbs":(0\.0+|inf|nan)' "$tap_scratch/sampled.inspector")" 0
expect_same "no lines without timed operations" "$(export_of none inspector >/dev/null; wc -c <"$tap_scratch/none.inspector")" 0

"$ringside" trace "$tap_scratch/sampled" -o "$tap_scratch/sampled.trace.json" 2>"$tap_scratch/said"
expect_same "a timeline reports it" "$(grep '^timed' "$tap_scratch/said")" "timed: 1,552 of 15,600 operations; the others show their call"
expect_same "its counter covers timed operations only, without 0" \
	"$(grep -o '"ph":"C"[^}]*}' "$tap_scratch/sampled.trace.json" | grep -c '"busbw of timed operations"' | awk '{ print ($1 > 100) }') $(
		grep '"ph":"C"' "$tap_scratch/sampled.trace.json" | grep -cE '"GB/s":0[,}]')" "1 0"
expect_same "operations that were not timed have no duration there" \
	"$(grep -o '"name":"Broadcast[^}]*' "$tap_scratch/sampled.trace.json" | grep -c 'duration_ns\|busbw')" 0
expect_same "nor in a dump" \
	"$("$ringside" dump "$tap_scratch/none" | grep '"record":"operation"' | grep -vc '"duration_ns":null,"time_source":"none"')" 0
expect_same "verify has a column for them" \
	"$("$ringside" verify "$tap_scratch/sampled" | awk '$3 == "world" { print $5, $6 }' | sort -u)" "3,900 388"
tap_done
