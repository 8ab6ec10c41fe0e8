#!/usr/bin/env bash
# A benchmark's JSON or table can be used as expected bandwidth: equal times give the same results as an nccl-tests file.
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
expect_same "an nccl-tests file has expectations for several sizes" "$([ "$(wc -l <<<"$wanted")" -gt 3 ] && echo yes)" yes
expect_same "a benchmark's JSON gives the same, without wrong or forced results" "$(diff_against "$tap_scratch/bench.json")" "$wanted"

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
expect_same "doctor finds a slow size with the nccl-tests file" "${by_tests%%:*}" slow_size
expect_same "and the same with the benchmark's JSON" "$(found "$tap_scratch/bench.json")" "$by_tests"

# Unusable files are rejected with a reason.
perl -pe 's/"wrong":(0|null|\d+)/"wrong":3/g' "$tap_scratch/bench.json" >"$tap_scratch/wrong.json"
expect_complaint "nothing but wrong results" "no usable expected bandwidth: a test with wrong results" \
	"$ringside" diff "$tap_scratch/wrong.json" "$tap_scratch/loop"
perl -pe 's/"algorithm":(null|"TREE")/"algorithm":"RING"/g' "$tap_scratch/bench.json" >"$tap_scratch/forced.json"
expect_complaint "nothing but forced algorithms" "an algorithm or protocol that NCCL did not choose" \
	"$ringside" doctor --expected "$tap_scratch/forced.json" "$tap_scratch/loop"
perl -pe 's/"version":1,/"version":2,/' "$tap_scratch/bench.json" >"$tap_scratch/newer.json"
expect_complaint "a newer version" "newer" "$ringside" diff "$tap_scratch/newer.json" "$tap_scratch/loop"
head -c 300 "$tap_scratch/bench.json" >"$tap_scratch/cut.json"
expect_complaint "a file truncated before its results" "no usable expected bandwidth" \
	"$ringside" diff "$tap_scratch/cut.json" "$tap_scratch/loop"

# A health check's JSON contains its measurement. A note says that ranks on one GPU do not measure links.
{ printf '{"format":"ringside-health","version":1,"verdict":"healthy","run":' && tr -d '\n' <"$tap_scratch/bench.json" && echo '}'; } \
	>"$tap_scratch/health.json"
expect_same "the JSON of bench health can be used, too" "$(diff_against "$tap_scratch/health.json")" "$wanted"
perl -pe 's/"gpu_shared":false/"gpu_shared":true/' "$tap_scratch/bench.json" >"$tap_scratch/shared.json"
expect_same "ranks that shared a GPU are reported" \
	"$("$ringside" diff "$tap_scratch/shared.json" "$tap_scratch/loop" 2>&1 >/dev/null | grep -c 'its ranks shared a GPU')" 1
expect_same "others are not" \
	"$("$ringside" diff "$tap_scratch/bench.json" "$tap_scratch/loop" 2>&1 >/dev/null | grep -c 'shared a GPU')" 0
tap_done
