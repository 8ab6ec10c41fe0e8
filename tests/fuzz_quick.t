#!/usr/bin/env bash
# Every fuzz target survives its corpus and a few thousand generated inputs, under ASan and UBSan.
# `make check-long` runs longer.
. "$(dirname "$0")/tap.sh"

mapfile -t sources < <(find fuzz -name 'fuzz_*.c' ! -name fuzz_main.c | sort)
[ ${#sources[@]} -gt 0 ] || tap_skip_all "there is no fuzz target"

for source in "${sources[@]}"; do
	name=$(basename "$source" .c)
	corpus=()
	[ ! -d "fuzz/corpus/${name#fuzz_}" ] || corpus=("fuzz/corpus/${name#fuzz_}")
	expect_ok "$name survives any bytes" \
		"$BUILD/asan/fuzz/$name" -runs=2000 -seed=1 "${corpus[@]}"
done
tap_done
