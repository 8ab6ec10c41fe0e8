/*
 * Cost of the recorder's callbacks compared with a plugin that does nothing, in one run.
 *
 * Each round runs BATCH AllReduces of 8 channels through one plugin and then the other, so that a busy host affects
 * both alike; the result is the median over the rounds. The callbacks of the calling thread and of the proxy thread
 * are measured separately:
 *
 *	calling	GroupApi, CollApi, KernelLaunch, Group, Coll and their stops and states: 12 calls
 *	proxy	per channel a send and a receive of one step, and the kernel: 19 calls, so 152
 *
 * The host's own part (filling NCCL's descriptors, the indirect call) is included in both. Usage: perf_callbacks
 * EMPTY.so PLUGIN.so; prints one "name value" line per result.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "sim/host_event.h"

enum { CHANNELS = 8, BATCH = 64, ROUNDS = 400, WARM_UP = 20, BYTES = 1 << 20 };

struct subject {
	struct host_plugin plugin;
	struct host_call call;
	int mask;
	void *tasks[BATCH];
	double calling_ns[ROUNDS]; /* per operation */
	double proxy_ns[ROUNDS];
	uint64_t worst_ns;
};

static struct clock_source clock_source;
static pid_t pid;

static uint64_t now(void)
{
	return clock_now(&clock_source);
}

static void load(struct subject *subject, const char *path)
{
	struct host_identity who = { .hash = 1, .nnodes = 2, .nranks = 2 };
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		fprintf(stderr, "perf_callbacks: %s\n", dlerror());
		exit(1);
	}
	subject->plugin.version = 5;
	subject->plugin.release = HOST_NCCL_2_28;
	subject->plugin.v5 = dlsym(library, "ncclProfiler_v5");
	if (subject->plugin.v5 == NULL) {
		fprintf(stderr, "perf_callbacks: %s has no ncclProfiler_v5\n", path);
		exit(1);
	}
	host_init(&subject->plugin, &subject->call.context, &subject->mask, &who);
}

/* The calls of one AllReduce on the calling thread; returns the Coll event's handle. */
static void *call_one(const struct host_plugin *plugin, struct host_call call, uint64_t sequence)
{
	struct host_api api = { .function = "AllReduce",
				.datatype = "ncclFloat32",
				.count = BYTES / 4 };
	struct host_coll coll = { .sequence = sequence,
				  .function = "AllReduce",
				  .datatype = "ncclFloat32",
				  .algorithm = "RING",
				  .protocol = "SIMPLE",
				  .count = BYTES / 4,
				  .channels = CHANNELS,
				  .warps = 16 };
	void *group_api = NULL, *coll_api = NULL, *launch = NULL, *group = NULL, *task = NULL;

	host_start_group_api(plugin, call, &group_api, false, 1);
	host_state_null(plugin, group_api, ABI_GROUP_START_API_STOP);
	api.parent = group_api;
	host_start_coll_api(plugin, call, &coll_api, &api);
	host_stop(plugin, coll_api);
	host_state_null(plugin, group_api, ABI_GROUP_END_API_START);
	host_start_kernel_launch(plugin, call, &launch, group_api, NULL);
	host_stop(plugin, launch);
	host_start_group(plugin, call, &group);
	coll.parent_api = coll_api;
	coll.parent_group = group;
	host_start_coll(plugin, call, &task, &coll);
	host_stop(plugin, task);
	host_stop(plugin, group);
	host_stop(plugin, group_api);
	return task;
}

static void transfer(const struct host_plugin *plugin, struct host_call call, void *proxy,
		     bool is_send)
{
	static const enum abi_state states[2][3] = {
		{ ABI_STEP_RECV_WAIT, ABI_STEP_RECV_FLUSH_WAIT, ABI_STEP_RECV_GPU_WAIT },
		{ ABI_STEP_SEND_GPU_WAIT, ABI_STEP_SEND_PEER_WAIT, ABI_STEP_SEND_WAIT },
	};
	void *step = NULL;

	host_state_proxy_op(plugin, proxy, ABI_OP_IN_PROGRESS);
	host_start_proxy_step(plugin, call, &step, proxy, 0);
	for (int i = 0; i < 3; i++)
		host_state_proxy_step(plugin, step, states[is_send][i], BYTES / CHANNELS);
	host_stop(plugin, step);
	host_stop(plugin, proxy);
}

/* The calls of the same operation on the proxy thread. */
static void progress_one(const struct host_plugin *plugin, struct host_call call, void *task,
			 uint64_t gpu_ns)
{
	void *proxies[CHANNELS][2], *kernels[CHANNELS];
	struct host_proxy_op op = {
		.parent = task, .pid = pid, .peer = 1, .steps = 1, .chunk_bytes = BYTES / CHANNELS
	};

	for (int i = 0; i < CHANNELS; i++)
		for (int is_send = 0; is_send < 2; is_send++) {
			op.channel = (uint8_t)i;
			op.is_send = is_send;
			host_start_proxy_op(plugin, call, &proxies[i][is_send], &op);
		}
	for (int i = 0; i < CHANNELS; i++)
		host_start_kernel_ch(plugin, call, &kernels[i], task, (uint8_t)i, gpu_ns);
	for (int i = 0; i < CHANNELS; i++)
		for (int is_send = 0; is_send < 2; is_send++)
			transfer(plugin, call, proxies[i][is_send], is_send);
	for (int i = 0; i < CHANNELS; i++) {
		host_state_kernel_ch(plugin, kernels[i], gpu_ns + 1000);
		host_stop(plugin, kernels[i]);
	}
}

/* CPU time: not affected by other processes. */
static uint64_t thread_ns(void)
{
	return clock_system_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void play_round(struct subject *subject, int round, uint64_t sequence)
{
	uint64_t begin = thread_ns(), middle;

	for (int i = 0; i < BATCH; i++)
		subject->tasks[i] =
			call_one(&subject->plugin, subject->call, sequence + (uint64_t)i);
	middle = thread_ns();
	for (int i = 0; i < BATCH; i++)
		progress_one(&subject->plugin, subject->call, subject->tasks[i], now());
	if (round < 0)
		return;
	subject->calling_ns[round] = (double)(middle - begin) / BATCH;
	subject->proxy_ns[round] = (double)(thread_ns() - middle) / BATCH;
}

/* The longest single operation, with only the callbacks of both threads timed. */
static void find_worst(struct subject *subject)
{
	for (int i = 0; i < ROUNDS * BATCH; i++) {
		uint64_t begin = now(), took;
		void *task = call_one(&subject->plugin, subject->call, (uint64_t)i);

		progress_one(&subject->plugin, subject->call, task, begin);
		took = now() - begin;
		if (took > subject->worst_ns)
			subject->worst_ns = took;
	}
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_value);
	return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	static struct subject empty, ours;
	double empty_calling, empty_proxy, our_calling, our_proxy;

	if (argc != 3) {
		fprintf(stderr, "usage: perf_callbacks EMPTY.so PLUGIN.so\n");
		return 2;
	}
	pid = getpid();
	clock_source_init(&clock_source, clock_sample_take());
	load(&empty, argv[1]);
	load(&ours, argv[2]);
	for (int round = -WARM_UP; round < ROUNDS; round++) {
		uint64_t sequence = (uint64_t)(round + WARM_UP) * BATCH;

		play_round(&empty, round, sequence);
		play_round(&ours, round, sequence);
	}
	find_worst(&empty);
	find_worst(&ours);
	empty_calling = median(empty.calling_ns);
	empty_proxy = median(empty.proxy_ns);
	our_calling = median(ours.calling_ns);
	our_proxy = median(ours.proxy_ns);
	printf("calling_empty_ns %.1f\ncalling_ns %.1f\ncalling_ratio %.2f\n", empty_calling,
	       our_calling, our_calling / empty_calling);
	printf("proxy_empty_ns %.1f\nproxy_ns %.1f\nproxy_ratio %.2f\n", empty_proxy, our_proxy,
	       our_proxy / empty_proxy);
	printf("worst_operation_empty_ns %llu\nworst_operation_ns %llu\n",
	       (unsigned long long)empty.worst_ns, (unsigned long long)ours.worst_ns);
	return 0;
}
