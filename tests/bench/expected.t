#!/usr/bin/env bash
# What a benchmark wrote, JSON or table, is taken as expected bandwidth: with the times of nccl-tests' file it says the same.
. "$(dirname "$0")/bench_files.sh"

measured=tests/foreign/data/nccl-tests-all-reduce.txt
bench_files "like:$measured" bench
simulate "$tap_scratch/loop" --nodes 1 --gpus 8 -w loop --seconds 3s

diff_against() { # file
	"$ringside" diff "$1" "$tap_scratch/loop" --json 2>/dev/null |
		perl -MJSON::PP -e 'local $/; my $diff = JSON::PP->new->decode(<STDIN>);
			for my $row (@{$diff->{rows}}) { printf "%s %s %.6g %.6g %.6g\n", $row->{function}, $row->{size},
				$row->{a}{mean_ns}, $row->{a}{busbw_bytes_per_second}, $row->{ratio} // 0 }'
}
wanted=$(diff_against "$measured")
expect_same "nccl-tests' file is an expectation of several sizes" "$([ "$(wc -l <<<"$wanted")" -gt 3 ] && echo yes)" yes
expect_same "a benchmark's JSON says the same; what was wrong or forced is not in it" "$(diff_against "$tap_scratch/bench.json")" "$wanted"

# The table rounds its times as nccl-tests does; the ratio to the run is compared to three digits.
rounded() { # file
	diff_against "$1" | awk '{ for (i = NF - 2; i <= NF; i++) $i = sprintf("%.3g", $i); print }'
}
expect_same "so does its table" "$(rounded "$tap_scratch/bench.txt")" "$(rounded "$measured")"

found() { # file
	"$ringside" doctor --json --expected "$1" "$tap_scratch/loop" 2>/dev/null |
		perl -MJSON::PP -e 'local $/; my $case = JSON::PP->new->decode(<STDIN>);
			print join "\n", map { "$_->{class}: $_->{title}" } grep { $_->{class} ne "setup" } @{$case->{verdicts}}'
}
by_tests=$(found "$measured")
expect_same "the doctor finds a slow size by nccl-tests' file" "${by_tests%%:*}" slow_size
expect_same "and the same by the benchmark's JSON" "$(found "$tap_scratch/bench.json")" "$by_tests"

# Files that cannot be used are refused, with the reason.
perl -pe 's/"wrong":(0|null|\d+)/"wrong":3/g' "$tap_scratch/bench.json" >"$tap_scratch/wrong.json"
expect_complaint "nothing but wrong results" "no expected bandwidth that can be used: a test with wrong results" \
	"$ringside" diff "$tap_scratch/wrong.json" "$tap_scratch/loop"
perl -pe 's/"algorithm":(null|"TREE")/"algorithm":"RING"/g' "$tap_scratch/bench.json" >"$tap_scratch/forced.json"
expect_complaint "nothing but forced algorithms" "an algorithm or protocol that NCCL did not choose" \
	"$ringside" doctor --expected "$tap_scratch/forced.json" "$tap_scratch/loop"
perl -pe 's/"version":1,/"version":2,/' "$tap_scratch/bench.json" >"$tap_scratch/newer.json"
expect_complaint "a newer version" "newer" "$ringside" diff "$tap_scratch/newer.json" "$tap_scratch/loop"
head -c 300 "$tap_scratch/bench.json" >"$tap_scratch/cut.json"
expect_complaint "a file that was cut before its results" "no expected bandwidth that can be used" \
	"$ringside" diff "$tap_scratch/cut.json" "$tap_scratch/loop"

# What judges a measurement has it in its own file. Ranks on one GPU are no measure for links: that is said.
{ printf '{"format":"ringside-health","version":1,"verdict":"healthy","run":' && tr -d '\n' <"$tap_scratch/bench.json" && echo '}'; } \
	>"$tap_scratch/health.json"
expect_same "the file of bench health is taken, too" "$(diff_against "$tap_scratch/health.json")" "$wanted"
perl -pe 's/"gpu_shared":false/"gpu_shared":true/' "$tap_scratch/bench.json" >"$tap_scratch/shared.json"
expect_same "ranks that shared a GPU are told" \
	"$("$ringside" diff "$tap_scratch/shared.json" "$tap_scratch/loop" 2>&1 >/dev/null | grep -c 'its ranks shared a GPU')" 1
expect_same "others are not" \
	"$("$ringside" diff "$tap_scratch/bench.json" "$tap_scratch/loop" 2>&1 >/dev/null | grep -c 'shared a GPU')" 0
tap_done
