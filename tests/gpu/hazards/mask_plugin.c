/* A profiler plugin for mask_hazards.c: gives the test access to NCCL's event mask and counts kernel events. */
#include <stdint.h>

#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"

static int *mask;
static long kernels;

__attribute__((visibility("default"))) void mask_set(int events)
{
	__atomic_store_n(mask, events, __ATOMIC_RELAXED);
}

__attribute__((visibility("default"))) long mask_kernels(void)
{
	return __atomic_load_n(&kernels, __ATOMIC_RELAXED);
}

static int begin(void **context, uint64_t hash, int *events, const char *name, int nnodes,
		 int nranks, int rank, abi_log_fn log)
{
	static char contexts[64];
	static unsigned int used;

	(void)hash, (void)name, (void)nnodes, (void)nranks, (void)rank, (void)log;
	*context = &contexts[__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) % sizeof(contexts)];
	mask = events;
	*events = 0;
	return 0;
}

/* Nothing is kept: any handle except NULL works. */
static int count(void **handle, uint64_t type)
{
	static char anything;

	if (type == ABI_KERNEL_CH)
		__atomic_fetch_add(&kernels, 1, __ATOMIC_RELAXED);
	*handle = &anything;
	return 0;
}

static int start_v5(void *context, void **handle, struct abi_descr_v5 *descr)
{
	(void)context;
	return count(handle, descr->type);
}

static int start_v6(void *context, void **handle, struct abi_descr_v6 *descr)
{
	(void)context;
	return count(handle, descr->type);
}

static int stop(void *handle)
{
	(void)handle;
	return 0;
}

static int state_v5(void *handle, int state, union abi_args_v5 *args)
{
	(void)handle, (void)state, (void)args;
	return 0;
}

static int state_v6(void *handle, int state, union abi_args_v6 *args)
{
	(void)handle, (void)state, (void)args;
	return 0;
}

__attribute__((visibility("default"))) const struct abi_plugin_v5 ncclProfiler_v5 = {
	"mask", begin, start_v5, stop, state_v5, stop,
};
__attribute__((visibility("default"))) const struct abi_plugin_v6 ncclProfiler_v6 = {
	"mask", begin, start_v6, stop, state_v6, stop,
};
