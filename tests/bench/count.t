#!/usr/bin/env bash
# libringside-count.so counts the NCCL calls of a program.
. "$(dirname "$0")/../tap.sh"

CC=${CC:-cc}
# LD_PRELOAD cannot name a path with a space.
counter=$tap_scratch/libringside-count.so
cp "$BUILD/libringside-count.so" "$counter"
build() { # output flags... (of one of the two sources)
	local output=$1
	shift
	$CC -std=gnu11 -fPIC -g "$@" -o "$tap_scratch/$output"
}
build libnccl.so.2 -shared -Wl,-soname,libnccl.so.2 tests/bench/count_nccl.c
build linked -DLINKED tests/bench/count_program.c "$tap_scratch/libnccl.so.2" -lpthread -Wl,-rpath,"$tap_scratch"
build module.so -shared -DMODULE tests/bench/count_program.c "$tap_scratch/libnccl.so.2" -Wl,-rpath,"$tap_scratch"
build plain tests/bench/count_program.c -ldl

# Runs a program with its calls counted below the scratch directory.
counted() { # directory command...
	local directory=$tap_scratch/$1
	shift
	mkdir -p "$directory"
	RANK=3 RINGSIDE_COUNT_DIR=$directory LD_PRELOAD=$counter "$@"
}
# "AllReduce 11 1 40000": calls, failures and bytes of each function, from the JSON of all processes in order.
counted_calls() { # directory
	cat "$tap_scratch/$1"/*.json |
		sed -n 's/^{"function":"\([A-Za-z]*\)","calls":\([1-9][0-9]*\),"failed":\([0-9]*\),.*"bytes":\([0-9]*\)}.*/\1 \2 \3 \4/p'
}
all='AllReduce 11 1 40000
Broadcast 1 0 200
Send 2 0 8
GroupStart 1 0 0
GroupEnd 1 0 0'

expect_ok "a program runs unchanged, including errno and errors" counted calls "$tap_scratch/linked" calls
expect_same "every call is counted once, NCCL's internal ones are not" "$(counted_calls calls)" "$all"
expect_same "the rank is the launcher's" "$(grep -o '"rank":[0-9]*' "$tap_scratch"/calls/*.json)" '"rank":3'
expect_ok "the JSON is JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$tap_scratch"/calls/*.json

expect_ok "threads share their counts" counted threads "$tap_scratch/linked" threads
expect_same "no call is lost" "$(counted_calls threads)" "AllReduce 20000 0 80000"

expect_ok "a child has its own counts" counted fork "$tap_scratch/linked" fork
expect_same "two processes have two files" "$(find "$tap_scratch/fork" -name '*.count' | wc -l)" 2
expect_same "the parent's counts do not include the child's" "$(counted_calls fork)" "$all"

(counted killed "$tap_scratch/linked" killed) 2>/dev/null
expect_same "a killed process leaves no JSON" "$(find "$tap_scratch/killed" -name '*.json' | wc -l)" 0
calls() { # directory: of AllReduce, in the mapped files
	for file in "$tap_scratch/$1"/*.count; do od -A n -t u8 -j 104 -N 8 "$file" | tr -d ' '; done
}
expect_same "but its counts are in the mapped file" "$(calls killed)" 11

expect_ok "a separately opened library finds its NCCL" counted module "$tap_scratch/plain" "$tap_scratch/module.so"
expect_same "and is counted" "$(counted_calls module)" "AllReduce 3 0 12"

expect_ok "a program without NCCL is left alone" counted nothing "$tap_scratch/plain" nothing
expect_same "and leaves no file" "$(find "$tap_scratch/nothing" -type f | wc -l)" 0
expect_ok "without a directory nothing is counted" env LD_PRELOAD="$counter" "$tap_scratch/linked" calls
expect_ok "a missing directory is harmless" \
	env RINGSIDE_COUNT_DIR=/nonexistent LD_PRELOAD="$counter" "$tap_scratch/linked" calls
expect_same "but is reported once" \
	"$(RINGSIDE_COUNT_DIR=/nonexistent LD_PRELOAD=$counter "$tap_scratch/linked" calls 2>&1 | grep -c 'calls are not counted')" 1
limited=$( (ulimit -f 0 && counted limited "$tap_scratch/linked" calls) 2>&1)
expect_same "if no file can be written, that is reported, the program continues, and no empty file is left" \
	"$? $(grep -c 'File too large; calls are not counted' <<<"$limited") $(find "$tap_scratch/limited" -type f | wc -l)" "0 1 0"

expect_ok "it only needs libc and stays loaded" scripts/check-linkage "$counter"
expect_ok "it loads with glibc 2.28" scripts/check-glibc-floor "$counter"
expect_same "it exports NCCL's names and nothing else" \
	"$(nm -D --defined-only --format=posix "$counter" | awk '$1 !~ /^nccl[A-Z]/' | wc -l)" 0
tap_done
