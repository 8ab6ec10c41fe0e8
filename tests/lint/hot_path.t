#!/usr/bin/env bash
# Nothing that blocks is reachable from a callback. Needs the plugin's objects.
. "$(dirname "$0")/../tap.sh"

CC=${CC:-cc}
mapfile -t objects < <(find "$BUILD/plugin/src" -name '*.o')
expect_ok "the callbacks reach nothing that allocates, locks, waits or makes a system call" \
	scripts/check-hot-path "${objects[@]}"

# Compiles what has callbacks and, if a second program is given, that as cold.o.
reaches() { # source [cold-source]
	local flags=(-O2 -fPIC -ffunction-sections -fdata-sections -x c -c -)
	rm -f "$tap_scratch"/*.o
	$CC "${flags[@]}" -include src/common/attributes.h -o "$tap_scratch/hot.o" <<<"$1"
	[ $# -lt 2 ] || $CC "${flags[@]}" -o "$tap_scratch/cold.o" <<<"$2"
	scripts/check-hot-path "$tap_scratch"/*.o
}

expect_complaint "malloc is found" "callback -> malloc" reaches \
	'#include <stdlib.h>
	CALLBACK void *start(void) { return malloc(64); }'
expect_complaint "a lock behind another file is found, with the call path" \
	"callback -> helper -> pthread_mutex_lock" reaches \
	'void helper(void); CALLBACK void start(void) { helper(); }' \
	'#include <pthread.h>
	pthread_mutex_t m; void helper(void) { pthread_mutex_lock(&m); }'
expect_complaint "a call through a table is found" "callback -> .*table -> write_it -> write" reaches \
	'extern long (*const table[2])(int); CALLBACK long start(int x) { return table[x & 1](x); }' \
	'#include <unistd.h>
	static long write_it(int x) { return write(x, "", 0); }
	static long other(int x) { return x; }
	long (*const table[2])(int) = { write_it, other };'
expect_complaint "a thread-local word is found" "first touch may allocate" reaches \
	'extern __thread int word; CALLBACK int start(void) { return word++; }'
expect_complaint "CUDA called from anywhere but hot_times.c is found" "callback -> .*cuda_launching: only hot_times.c" reaches \
	'extern struct { int (*event_record)(void *, void *); } cuda_launching;
	CALLBACK int start(void *e) { return cuda_launching.event_record(e, 0); }'
$CC -x c -c - -o "$tap_scratch/cool.o" <<<'int x;'
expect_complaint "an empty check is refused" "nothing was checked" \
	scripts/check-hot-path "$tap_scratch/cool.o"
expect_ok "memcpy, atomics and the clock are fine" reaches \
	'#include <string.h>
	#include <time.h>
	unsigned long n; struct timespec t; char to[999];
	CALLBACK void start(const char *from) { clock_gettime(CLOCK_MONOTONIC, &t);
		__atomic_fetch_add(&n, 1, __ATOMIC_RELAXED); memcpy(to, from, sizeof(to)); }'
expect_ok "init and finalize may do anything" reaches \
	'#include <stdlib.h>
	static void *init(void) { return malloc(1); } static void finalize(void *p) { free(p); }
	static CALLBACK int start(int x) { return x; }
	const struct { void *(*i)(void); void (*f)(void *); int (*s)(int); } plugin = { init, finalize, start };'
expect_ok "other functions of the same file do not matter" reaches \
	'int helper(int); CALLBACK int start(int x) { return helper(x); }' \
	'#include <stdlib.h>
	int helper(int x) { return x + 1; } void *unused(void) { return malloc(1); }'
tap_done
