#!/usr/bin/env bash
# Every fuzz target survives its corpus and 2,000 generated inputs, under ASan and UBSan; 500, where an input takes milliseconds,
# because it is several recordings or is read several times. `make check-long` runs longer.
. "$(dirname "$0")/tap.sh"

mapfile -t sources < <(find fuzz -name 'fuzz_*.c' ! -name fuzz_main.c | sort)
[ ${#sources[@]} -gt 0 ] || tap_skip_all "there is no fuzz target"

for source in "${sources[@]}"; do
	name=$(basename "$source" .c)
	corpus=()
	case $name in
	fuzz_live | fuzz_metrics | fuzz_prom | fuzz_slow | fuzz_snapshot | fuzz_trace_columns | fuzz_viewer) runs=500 ;;
	*) runs=2000 ;;
	esac
	[ ! -d "fuzz/corpus/${name#fuzz_}" ] || corpus=("fuzz/corpus/${name#fuzz_}")
	expect_ok "$name survives any bytes" \
		"$BUILD/asan/fuzz/$name" -runs="$runs" -seed=1 "${corpus[@]}"
done
tap_done
