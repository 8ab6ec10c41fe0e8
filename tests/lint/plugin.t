#!/usr/bin/env bash
# What the linker made of the plugins. Needs them built.
. "$(dirname "$0")/../tap.sh"

CC=${CC:-cc}
plugin=$BUILD/libnccl-profiler-ringside.so
tape=$BUILD/libnccl-profiler-tape.so

# Builds a library from standard input with the rules of the real one, but for what is given.
library() { # name flags...
	local name=$1
	shift
	$CC -shared -fPIC -x c - -o "$tap_scratch/$name.so" "$@"
	echo "$tap_scratch/$name.so"
}
good=(-Wl,-z,nodelete -Wl,-z,now -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2)
structs=$(printf 'void *ncclProfiler_v%d[8];\n' 1 2 3 4 5 6 7)

for built in "$plugin" "$tape"; do
	[ -e "$built" ] || continue
	name=$(basename "$built")
	expect_ok "$name exports what NCCL looks for and nothing else" scripts/check-exports "$built"
	expect_ok "$name needs libc alone and stays loaded" scripts/check-linkage "$built"
	expect_ok "$name loads with glibc 2.28" scripts/check-glibc-floor "$built"
done

sample_library=$(library exact "${good[@]}" <<<"$structs")
expect_ok "a library with the seven structs is fine" scripts/check-exports "$sample_library"
expect_ok "a library linked like the plugin is fine" scripts/check-linkage "$sample_library"
expect_complaint "an extra export is found" "too much: +stray" \
	scripts/check-exports "$(library stray <<<"$structs int stray;")"
expect_complaint "a missing export is found" "missing: +ncclProfiler_v7" \
	scripts/check-exports "$(library six <<<"$(head -n 6 <<<"$structs")")"
expect_complaint "a struct that is too small is found" "ncclProfiler_v7 is not a struct of at least 64" \
	scripts/check-exports "$(library small <<<"$(head -n 6 <<<"$structs") void *ncclProfiler_v7[6];")"

expect_complaint "a needed library is found" "needs libm.so.6" \
	scripts/check-linkage "$(library math "${good[@]}" -lm <<<"$structs")"
expect_complaint "a library that can be unloaded is found" "can be unloaded" \
	scripts/check-linkage "$(library loose "${good[@]:1}" <<<"$structs")"
expect_complaint "late binding is found" "resolves symbols lazily" \
	scripts/check-linkage "$(library lazy -Wl,-z,nodelete -Wl,-z,lazy "${good[@]:2}" <<<"$structs")"

caller='#include <unistd.h>
int call(void) { return getpid(); }'
expect_complaint "a symbol above the floor is found" "getpid@GLIBC_2[0-9.]+ is newer than GLIBC_2.1" \
	scripts/check-glibc-floor "$(library new <<<"$caller")" 2.1

threads='#include <pthread.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static void *run(void *x) { return x; }
int call(const char *path)
{
	struct stat st;
	pthread_t thread;

	if (pthread_create(&thread, 0, run, 0) || pthread_join(thread, 0))
		return -1;
	if (stat(path, &st) || lstat(path, &st) || fstat(0, &st))
		return -2;
	return !dlopen(path, RTLD_NOW) + (int)strtol(path, 0, 10) + (int)gettid();
}'
expect_ok "threads, dlopen, stat and strtol stay below the floor with glibc_floor.h" \
	scripts/check-glibc-floor \
	"$(library pinned -std=gnu11 -D_GNU_SOURCE -include src/common/glibc_floor.h "${good[@]}" <<<"$threads")"
tap_done
