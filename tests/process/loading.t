#!/usr/bin/env bash
# The plugin loads into a program that has only libc, and stays loaded when it is closed.
. "$(dirname "$0")/process.sh"

cat >"$tap_scratch/load.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int is_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	int found = 0;

	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, "libnccl-profiler-ringside.so") != NULL;
	return found;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	void *first;
	char name[32];

	if (!library)
		return puts(dlerror()), 1;
	for (int i = 1; i <= 7; i++) {
		snprintf(name, sizeof(name), "ncclProfiler_v%d", i);
		if (!dlsym(library, name))
			return puts(dlerror()), 1;
	}
	first = dlsym(library, "ncclProfiler_v5");
	if (dlsym(RTLD_DEFAULT, "ncclProfiler_v5"))
		return puts("its symbols are everybody's"), 1;
	dlclose(library);
	if (!is_mapped())
		return puts("it was unmapped"), 1;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library || dlsym(library, "ncclProfiler_v5") != first)
		return puts("it was loaded twice"), 1;
	return 0;
}
END
expect_ok "a program with only libc compiles" \
	"${CC:-cc}" -o "$tap_scratch/load" "$tap_scratch/load.c" -ldl
expect_ok "it loads the plugin, finds all seven versions, and cannot unload it" \
	"$tap_scratch/load" "$PLUGIN"
expect_same "exactly seven symbols are exported" \
	"$(nm -D --defined-only "$PLUGIN" | awk '{ print $3 }' | sort | tr '\n' ' ')" \
	"$(printf 'ncclProfiler_v%d ' 1 2 3 4 5 6 7)"
expect_same "loading alone leaves nothing behind" "$(find "$RINGSIDE_SHM" -mindepth 1)" ""

# Thread-local variables of the program are on every thread's stack, including the plugin's threads.
cat >"$tap_scratch/large.c" <<'END'
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static __thread char large[4 << 20];

struct plugin {
	const char *name;
	int (*init)(void **context, uint64_t hash, int *mask, const char *comm, int nodes, int ranks, int rank, void *log);
	void *callbacks[3];
	int (*finalize)(void *context);
};

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	struct plugin *plugin = library ? dlsym(library, "ncclProfiler_v5") : NULL;
	void *context = NULL;
	int mask = 0;

	if (!plugin)
		return puts(dlerror()), 1;
	plugin->init(&context, 1, &mask, NULL, 1, 2, 0, NULL);
	plugin->finalize(context);
	return large[argc] + (mask == 0);
}
END
expect_ok "a program with large thread-local variables compiles" \
	"${CC:-cc}" -o "$tap_scratch/large" "$tap_scratch/large.c" -ldl
expect_ok "it runs" env RINGSIDE_MODE=trace "$tap_scratch/large" "$PLUGIN"
read_facts
expect_facts "and its trace is written" mode=trace file_count=1 closed=1
tap_done
