/*
 * A profiler that records CUDA events around each kernel launch, without any care: to test that the fake NCCL launches
 * kernels between these calls. A test reads what it found from the struct that it exports.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

#include "common/attributes.h"
#include "plugin/abi_v5.h"
#include "tests/event_times.h"

EXPORTED struct event_times event_times;

static int init(void **context, uint64_t comm_hash, int *mask, const char *comm_name, int nnodes,
		int nranks, int rank, abi_log_fn log)
{
	struct cuda_driver *driver = &event_times.driver;
	void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);

	(void)comm_hash, (void)comm_name, (void)nnodes, (void)nranks, (void)rank, (void)log;
#define FIND(member, name, parameters) *(void **)&driver->member = dlsym(library, #name);
	CUDA_TIMING_FUNCTIONS(FIND)
	CUDA_TIMING_FUNCTIONS_NEWER(FIND)
#undef FIND
	*context = &event_times;
	*mask = ABI_COLL_API | ABI_P2P_API | ABI_COLL | ABI_P2P | ABI_KERNEL_LAUNCH;
	return 0;
}

static void dependencies_count(struct event_times_launch *launch)
{
	struct CUgraphNode_st *const *nodes;
	struct CUgraph_st *graph;
	size_t count = 0;
	uint64_t id;
	int type;

	(void)event_times.driver.stream_get_capture_info(launch->stream, &launch->state, &id,
							 &graph, &nodes, &count);
	for (size_t i = 0; i < count; i++) {
		(void)event_times.driver.graph_node_get_type(nodes[i], &type);
		launch->waits += type == CUDA_NODE_EVENT_WAIT;
		launch->records += type == CUDA_NODE_EVENT_RECORD;
	}
}

static void record(const struct event_times_launch *launch, struct CUevent_st *event)
{
	if (launch->state == CUDA_CAPTURE_ACTIVE)
		(void)event_times.driver.event_record_with_flags(event, launch->stream,
								 CUDA_RECORD_EXTERNAL);
	else
		(void)event_times.driver.event_record(event, launch->stream);
}

static int start_event(void *context, void **handle, struct abi_descr_v5 *descr)
{
	struct event_times_launch *launch = &event_times.launches[event_times.count];

	(void)context;
	*handle = NULL;
	if (descr->type != ABI_KERNEL_LAUNCH || event_times.count == EVENT_TIMES_MAX)
		return 0;
	event_times.count++;
	launch->stream = descr->kernel_launch.stream;
	launch->thread = (int)gettid();
	dependencies_count(launch);
	(void)event_times.driver.event_create(&launch->before, 0);
	(void)event_times.driver.event_create(&launch->after, 0);
	record(launch, launch->before);
	*handle = launch;
	return 0;
}

static int stop_event(void *handle)
{
	struct event_times_launch *launch = handle;

	if (launch == NULL)
		return 0;
	record(launch, launch->after);
	launch->is_stopped = true;
	return 0;
}

static int record_event_state(void *handle, int state, union abi_args_v5 *args)
{
	(void)handle, (void)state, (void)args;
	return 0;
}

static int finalize(void *context)
{
	(void)context;
	return 0;
}

EXPORTED const struct abi_plugin_v5 ncclProfiler_v5 = {
	.name = "event_times",
	.init = init,
	.start_event = start_event,
	.stop_event = stop_event,
	.record_event_state = record_event_state,
	.finalize = finalize,
};
