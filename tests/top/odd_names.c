/*
 * A process with communicators whose names try to break a screen. Loads the plugin of
 * NCCL_PROFILER_PLUGIN, prints "ready", and exits at the end of its input.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin/abi_v5.h"

static const char *const names[] = {
	"plain",
	"\xe8\xa8\x93\xe7\xb7\xb4-\xe4\xb8\xa6\xe5\x88\x97", /* wide */
	"e\xcc\x81\xcc\x82\xcc\x83\xcc\x84-marks",
	"\x1b[2J\x1b[31mred\x07",
	"it\xe2\x80\xaeleft-to-right",
	"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80-joined",
	"\xff\xfe-bytes",
	"\xc2\x9b"
	"1A-c1",
	"%s%n%d",
	"so-long-a-name-that-no-column-of-any-window-has-room-for-it-and-all-that-comes-after-it-x",
};

int main(void)
{
	const char *library_name = getenv("NCCL_PROFILER_PLUGIN");
	void *library = dlopen(library_name ? library_name : "", RTLD_NOW | RTLD_LOCAL);
	const struct abi_plugin_v5 *plugin = library ? dlsym(library, "ncclProfiler_v5") : NULL;
	int mask = 0;

	if (plugin == NULL) {
		fprintf(stderr, "odd_names: %s\n", dlerror());
		return 1;
	}
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *context;

		plugin->init(&context, 1000 + i, &mask, names[i], 2, 4, 0, NULL);
	}
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
