/* A plugin that does nothing: the cost of the calls themselves. */
#include "common/attributes.h"
#include "plugin/abi_v5.h"

static int init(void **context, uint64_t comm_hash, int *mask, const char *comm_name, int nnodes,
		int nranks, int rank, abi_log_fn log)
{
	(void)comm_hash, (void)comm_name, (void)nnodes, (void)nranks, (void)rank, (void)log;
	*context = mask;
	*mask = 0xfff;
	return NCCL_SUCCESS;
}

static int start_event(void *context, void **handle, struct abi_descr_v5 *descr)
{
	(void)descr;
	*handle = context;
	return NCCL_SUCCESS;
}

static int stop_event(void *handle)
{
	(void)handle;
	return NCCL_SUCCESS;
}

static int record_event_state(void *handle, int state, union abi_args_v5 *args)
{
	(void)handle, (void)state, (void)args;
	return NCCL_SUCCESS;
}

static int finalize(void *context)
{
	(void)context;
	return NCCL_SUCCESS;
}

EXPORTED extern const struct abi_plugin_v5 ncclProfiler_v5;
const struct abi_plugin_v5 ncclProfiler_v5 = {
	.name = "empty",
	.init = init,
	.start_event = start_event,
	.stop_event = stop_event,
	.record_event_state = record_event_state,
	.finalize = finalize,
};
