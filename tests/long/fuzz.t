#!/usr/bin/env bash
# Every fuzz target for LONG_SECONDS with each engine that was built: our driver under ASan+UBSan and
# under TSan, and clang's libFuzzer. The seed is new each time and is printed.
. "$(dirname "$0")/../tap.sh"

: "${LONG_SECONDS:=60}"
seed=${SEED:-$(date +%s)}
mapfile -t sources < <(find fuzz -name 'fuzz_*.c' ! -name fuzz_main.c | sort)
[ ${#sources[@]} -gt 0 ] || tap_skip_all "there is no fuzz target"
echo "# SEED=$seed"

for source in "${sources[@]}"; do
	name=$(basename "$source" .c)
	corpus=fuzz/corpus/${name#fuzz_}
	# libFuzzer writes its findings into the first directory.
	mkdir -p "$tap_scratch/$name"
	[ ! -d "$corpus" ] || cp "$corpus"/* "$tap_scratch/$name/"
	for engine in asan tsan; do
		expect_ok "$name under $engine" "$BUILD/$engine/fuzz/$name" \
			-seconds="$LONG_SECONDS" -seed="$seed" "$tap_scratch/$name"
	done
	if [ -x "$BUILD/libfuzzer/fuzz/$name" ]; then
		expect_ok "$name under libFuzzer" "$BUILD/libfuzzer/fuzz/$name" -seed="$seed" \
			-max_total_time="$LONG_SECONDS" -artifact_prefix="$BUILD/libfuzzer/" \
			"$tap_scratch/$name"
	else
		tap_line ok "$name under libFuzzer # SKIP clang has none here" ""
	fi
done
tap_done
