/*
 * Loading as NCCL does it: with the first communicator, newest symbol first; unloading with the last
 * one; and a failure is for life.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"
#include "programs/sim/host_inside.h"

enum status host_plugin_find(struct host_plugin *plugin, int release, int newest,
			     const struct host_linked *linked)
{
	const void *const found[] = { NULL,	  linked->v1, linked->v2, linked->v3,
				      linked->v4, linked->v5, linked->v6, linked->v7 };

	if (newest <= 0 || newest > host_release_native(release))
		newest = host_release_native(release);
	for (int version = newest; version > 0; version--) {
		if (found[version] == NULL)
			continue;
		*plugin = (struct host_plugin){ .version = version, .release = release };
		/* All members of the union are pointers to structs of one shape. */
		plugin->v1 = found[version];
		return OK;
	}
	return ERR_UNKNOWN;
}

static void symbols_read(void *library, struct host_linked *linked)
{
	linked->v1 = dlsym(library, "ncclProfiler_v1");
	linked->v2 = dlsym(library, "ncclProfiler_v2");
	linked->v3 = dlsym(library, "ncclProfiler_v3");
	linked->v4 = dlsym(library, "ncclProfiler_v4");
	linked->v5 = dlsym(library, "ncclProfiler_v5");
	linked->v6 = dlsym(library, "ncclProfiler_v6");
	linked->v7 = dlsym(library, "ncclProfiler_v7");
}

/* The first of the names that opens, or NULL with host->error set. */
static void *library_open(struct host *host)
{
	char(*names)[HOST_NAME_SIZE] = calloc(HOST_NAMES, sizeof(*names));
	void *library = NULL;
	size_t count;

	if (names == NULL) {
		text_copy(host->error, sizeof(host->error), "out of memory");
		return NULL;
	}
	count = host_plugin_names(host->config.release, host->config.plugin, names);
	if (count == 0)
		text_copy(host->error, sizeof(host->error), "switched off by the name \"none\"");
	for (size_t i = 0; i < count && library == NULL; i++) {
		library = dlopen(names[i][0] ? names[i] : NULL, RTLD_NOW | RTLD_LOCAL);
		if (library == NULL)
			text_copy(host->error, sizeof(host->error), dlerror());
	}
	free(names);
	return library;
}

static void load_from_library(struct host *host)
{
	struct host_linked linked;

	host->library = library_open(host);
	if (host->library == NULL) {
		host->has_failed = true;
		return;
	}
	symbols_read(host->library, &linked);
	if (host_plugin_find(&host->plugin, host->config.release, host->config.newest, &linked) ==
	    OK)
		return;
	text_copy(host->error, sizeof(host->error),
		  "the library has no ncclProfiler_v* for this "
		  "release");
	dlclose(host->library);
	host->library = NULL;
	host->has_failed = true;
}

void host_load(struct host *host)
{
	if (host->references++ > 0 || host->has_failed)
		return;
	host->error[0] = '\0';
	if (host->config.linked == NULL) {
		load_from_library(host);
	} else if (host_plugin_find(&host->plugin, host->config.release, host->config.newest,
				    host->config.linked) != OK) {
		text_copy(host->error, sizeof(host->error), "nothing is linked for this release");
		host->has_failed = true;
	}
}

void host_unload(struct host *host)
{
	if (--host->references > 0)
		return;
	host->plugin = (struct host_plugin){ .release = host->config.release };
	if (host->library)
		dlclose(host->library);
	host->library = NULL;
}
