/*
 * A job of one rank that acts like NCCL 2.28: loads the plugin of NCCL_PROFILER_PLUGIN, finishes some AllReduces over
 * the network, and then hangs in one because its peer sends nothing. Prints "ready", and exits normally when it reads
 * a line.
 *
 *	stuck_job [OPERATIONS]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin/abi_v5.h"

static struct abi_plugin_v5 *plugin;
static void *context;

static uint64_t gpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *begin(struct abi_descr_v5 *event, uint64_t type, void *parent)
{
	void *handle = NULL;

	event->type = type;
	event->parent = parent;
	plugin->start_event(context, &handle, event);
	return handle;
}

static void say(void *handle, int state, uint64_t value)
{
	union abi_args_v5 args;

	memset(&args, 0, sizeof(args));
	memcpy(&args, &value, sizeof(value));
	plugin->record_event_state(handle, state, &args);
}

static void *call(void **launch_group)
{
	struct abi_descr_v5 group = { .type = 0 }, api = { .type = 0 }, launch = { .type = 0 };
	void *handle, *launched;

	*launch_group = begin(&group, ABI_GROUP_API, NULL);
	api.coll_api.function = "AllReduce";
	api.coll_api.count = 1 << 20;
	api.coll_api.datatype = "ncclBfloat16";
	api.coll_api.stream = &plugin;
	handle = begin(&api, ABI_COLL_API, *launch_group);
	plugin->stop_event(handle);
	launch.kernel_launch.stream = &plugin;
	launched = begin(&launch, ABI_KERNEL_LAUNCH, *launch_group);
	plugin->stop_event(launched);
	return handle;
}

static void *task(void *api, uint64_t sequence)
{
	struct abi_descr_v5 event = { .type = 0 };
	void *handle;

	event.coll.sequence = sequence;
	event.coll.function = "AllReduce";
	event.coll.count = 1 << 20;
	event.coll.datatype = "ncclBfloat16";
	event.coll.channels = 1;
	event.coll.warps = 16;
	event.coll.algorithm = "RING";
	event.coll.protocol = "SIMPLE";
	handle = begin(&event, ABI_COLL, api);
	plugin->stop_event(handle);
	return handle;
}

static void *receive(void *coll)
{
	struct abi_descr_v5 event = { .type = 0 };
	void *handle;

	event.proxy_op.pid = getpid();
	event.proxy_op.channel = 0;
	event.proxy_op.peer = 1;
	event.proxy_op.steps = 4;
	event.proxy_op.chunk_bytes = 524288;
	handle = begin(&event, ABI_PROXY_OP, coll);
	say(handle, ABI_OP_IN_PROGRESS, 0);
	return handle;
}

/* Runs a step up to the state `last`; it is done if that is past all states. */
static void step(void *proxy, int number, int last)
{
	struct abi_descr_v5 event = { .type = 0 };
	void *handle;

	event.proxy_step.step = number;
	handle = begin(&event, ABI_PROXY_STEP, proxy);
	for (int state = ABI_STEP_RECV_WAIT; state <= last && state <= ABI_STEP_RECV_GPU_WAIT;
	     state++)
		say(handle, state, 524288);
	if (last > ABI_STEP_RECV_GPU_WAIT)
		plugin->stop_event(handle);
}

static void *kernel(void *coll)
{
	struct abi_descr_v5 event = { .type = 0 };

	event.kernel_ch.channel = 0;
	event.kernel_ch.gpu_ns = gpu_now();
	return begin(&event, ABI_KERNEL_CH, coll);
}

static void operation(uint64_t number, int is_stuck)
{
	void *group, *api = call(&group);
	void *coll = task(api, number);
	void *running = kernel(coll);
	void *proxy = receive(coll);

	plugin->stop_event(group);
	for (int i = 0; i < (is_stuck ? 1 : 4); i++)
		step(proxy, i, ABI_STEP_RECV_GPU_WAIT + 1);
	if (is_stuck) {
		step(proxy, 1, ABI_STEP_RECV_WAIT);
		return;
	}
	plugin->stop_event(proxy);
	say(running, ABI_KERNEL_CH_STOP, gpu_now());
	plugin->stop_event(running);
}

int main(int argc, char **argv)
{
	const char *name = getenv("NCCL_PROFILER_PLUGIN");
	void *library = dlopen(name ? name : "", RTLD_NOW | RTLD_LOCAL);
	long operations = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
	int mask = 0;
	char line[8];

	plugin = library ? dlsym(library, "ncclProfiler_v5") : NULL;
	if (plugin == NULL) {
		fprintf(stderr, "stuck_job: %s\n", dlerror());
		return 1;
	}
	plugin->init(&context, 0x1234abcd, &mask, "world", 2, 2, 0, NULL);
	for (long i = 0; i < operations; i++)
		operation((uint64_t)i, 0);
	operation((uint64_t)operations, 1);
	printf("ready\n");
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == NULL)
		return 1;
	plugin->finalize(context);
	dlclose(library);
	return 0;
}
