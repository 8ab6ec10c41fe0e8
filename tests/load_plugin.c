/*
 * A plugin that reports through a pipe when it is mapped and unmapped and which functions are
 * called, for tests of loading. Exports only v2 and v4.
 */
#include <stdlib.h>
#include <unistd.h>

#include "common/attributes.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v4.h"

static void tell(char what)
{
	const char *fd = getenv("LOAD_PLUGIN_FD");

	if (fd && write(atoi(fd), &what, 1) != 1)
		abort();
}

__attribute__((constructor)) static void mapped(void)
{
	tell('m');
}

__attribute__((destructor)) static void unmapped(void)
{
	tell('u');
}

static int init_v2(void **context, int *mask)
{
	tell('2');
	*context = &unmapped;
	*mask = ABI_COLL;
	return 0;
}

static int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nnodes,
		   int nranks, int rank, abi_log_fn log)
{
	(void)name;
	(void)hash;
	(void)nnodes;
	(void)nranks;
	(void)rank;
	(void)log;
	tell('4');
	*context = &unmapped;
	*mask = ABI_COLL;
	return 0;
}

static int start_v2(void *context, void **handle, struct abi_descr_v2 *d)
{
	(void)d;
	*handle = context;
	return 0;
}

static int start_v4(void *context, void **handle, struct abi_descr_v4 *d)
{
	(void)d;
	*handle = context;
	return 0;
}

static int stop(void *handle)
{
	(void)handle;
	return 0;
}

static int state_v2(void *handle, int state, union abi_args_v2 *args)
{
	(void)handle;
	(void)state;
	(void)args;
	return 0;
}

static int state_v4(void *handle, int state, union abi_args_v4 *args)
{
	(void)handle;
	(void)state;
	(void)args;
	return 0;
}

static int finalize(void *context)
{
	(void)context;
	tell('f');
	return 0;
}

EXPORTED extern const struct abi_plugin_v2 ncclProfiler_v2;
EXPORTED extern const struct abi_plugin_v4 ncclProfiler_v4;
const struct abi_plugin_v2 ncclProfiler_v2 = {
	"load", init_v2, start_v2, stop, state_v2, finalize
};
const struct abi_plugin_v4 ncclProfiler_v4 = {
	"load", init_v4, start_v4, stop, state_v4, finalize
};
