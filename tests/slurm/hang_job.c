/*
 * A rank of a job of two nodes that hangs, as NCCL 2.28 with the recorder would call it: collectives on two communicators,
 * until one of them never ends.
 *
 *	hang_job hang|stop|deadlock|none OPERATIONS
 *
 *	hang      rank 2 does not make its next call
 *	stop      rank 2 stops itself (SIGSTOP)
 *	deadlock  ranks 1 and 2 call the two communicators in opposite order
 *	none      all of it ends well
 *
 * The rank is SLURM_PROCID, of SLURM_NTASKS.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin/abi_v5.h"

enum { COMMS = 2 };

static struct abi_plugin_v5 *plugin;
static struct comm {
	const char *name;
	void *context;
	uint64_t calls;
} comms[COMMS] = { { "first", NULL, 0 }, { "second", NULL, 0 } };

static uint64_t gpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *begin(struct comm *comm, struct abi_descr_v5 *event, uint64_t type, void *parent)
{
	void *handle = NULL;

	event->type = type;
	event->parent = parent;
	plugin->start_event(comm->context, &handle, event);
	return handle;
}

static void all_reduce(struct comm *comm, int ends)
{
	struct abi_descr_v5 group = { .type = 0 }, api = { .type = 0 }, launch = { .type = 0 },
			    coll = { .type = 0 }, channel = { .type = 0 };
	union abi_args_v5 args;
	void *grouped = begin(comm, &group, ABI_GROUP_API, NULL), *called, *launched, *task,
	     *running;
	uint64_t now_ns;

	api.coll_api.function = "AllReduce";
	api.coll_api.count = 1 << 20;
	api.coll_api.datatype = "ncclBfloat16";
	api.coll_api.stream = comm;
	called = begin(comm, &api, ABI_COLL_API, grouped);
	plugin->stop_event(called);
	launch.kernel_launch.stream = comm;
	launched = begin(comm, &launch, ABI_KERNEL_LAUNCH, grouped);
	plugin->stop_event(launched);
	coll.coll.sequence = comm->calls++;
	coll.coll.function = "AllReduce";
	coll.coll.count = 1 << 20;
	coll.coll.datatype = "ncclBfloat16";
	coll.coll.channels = 1;
	coll.coll.warps = 16;
	coll.coll.algorithm = "RING";
	coll.coll.protocol = "SIMPLE";
	task = begin(comm, &coll, ABI_COLL, called);
	plugin->stop_event(task);
	channel.kernel_ch.gpu_ns = gpu_now();
	running = begin(comm, &channel, ABI_KERNEL_CH, task);
	plugin->stop_event(grouped);
	if (!ends)
		return;
	now_ns = gpu_now();
	memset(&args, 0, sizeof(args));
	memcpy(&args, &now_ns, sizeof(now_ns));
	plugin->record_event_state(running, ABI_KERNEL_CH_STOP, &args);
	plugin->stop_event(running);
}

static int number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text != NULL ? atoi(text) : 0;
}

int main(int argc, char **argv)
{
	const char *name = getenv("NCCL_PROFILER_PLUGIN"), *fault = argc > 2 ? argv[1] : "none";
	void *library = dlopen(name ? name : "", RTLD_NOW | RTLD_LOCAL);
	long operations = argc > 2 ? strtol(argv[2], NULL, 10) : 100;
	int mask = 0, rank = number_of("SLURM_PROCID"), ranks = number_of("SLURM_NTASKS");
	int is_second_first = strcmp(fault, "deadlock") == 0 && rank >= 2;

	plugin = library ? dlsym(library, "ncclProfiler_v5") : NULL;
	if (plugin == NULL) {
		fprintf(stderr, "hang_job: %s\n", dlerror());
		return 1;
	}
	for (uint64_t c = 0; c < COMMS; c++)
		plugin->init(&comms[c].context, 0x1234abcd + c, &mask, comms[c].name, 2, ranks,
			     rank, NULL);
	for (long i = 0; i < operations; i++) {
		all_reduce(&comms[i % COMMS], 1);
		usleep(10000);
	}
	if (strcmp(fault, "none") != 0) {
		printf("hangs\n");
		fflush(stdout);
		if (rank == 2 && strcmp(fault, "stop") == 0)
			raise(SIGSTOP);
		if (rank != 2 || strcmp(fault, "hang") != 0)
			all_reduce(&comms[is_second_first], 0);
		while (1)
			pause();
	}
	for (int c = 0; c < COMMS; c++)
		plugin->finalize(comms[c].context);
	dlclose(library);
	return 0;
}
