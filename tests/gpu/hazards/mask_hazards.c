/*
 * Does ncclCommDestroy() return if kernel events are switched while a job runs? Each scenario is a job of two ranks
 * on one GPU, which is killed if it has not ended after some seconds.
 *
 *	mask_hazards PLUGIN [SCENE...]
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NCCL(call)                                                      \
	do {                                                            \
		ncclResult_t result_ = (call);                          \
		if (result_ != ncclSuccess)                             \
			give_up(ncclGetErrorString(result_), __LINE__); \
	} while (0)
#define CUDA(call)                                                      \
	do {                                                            \
		cudaError_t result_ = (call);                           \
		if (result_ != cudaSuccess)                             \
			give_up(cudaGetErrorString(result_), __LINE__); \
	} while (0)

enum { RANKS = 2, COUNT = 1024, LIMIT_MS = 8000, GRAPHS = 8 };
/* Coll and P2p, without and with KernelCh. */
enum { OFF = 0x06, ON = 0x46 };
enum stage { STAGE_STARTED = 0, STAGE_READY = 1, STAGE_PLAYED = 2, STAGE_DESTROYED = 3 };

static struct shared {
	ncclUniqueId id;
	volatile int is_ready;
	volatile int stage[RANKS];
	volatile long kernels[RANKS];
} * shared;

static int rank;
static float *from, *to;
static cudaStream_t stream;
static ncclComm_t comm;
static void (*mask_set)(int events);
static long (*mask_kernels)(void);
static cudaGraph_t graphs[GRAPHS];
static cudaGraphExec_t executables[GRAPHS];
static int graph_count;

static void give_up(const char *why, int line)
{
	fprintf(stderr, "rank %d: %s (line %d)\n", rank, why, line);
	_exit(3);
}

static void all_reduce(int times)
{
	for (int i = 0; i < times; i++)
		NCCL(ncclAllReduce(from, to, COUNT, ncclFloat, ncclSum, comm, stream));
}

static void broadcast(void)
{
	NCCL(ncclBroadcast(from, to, COUNT, ncclFloat, 0, comm, stream));
}

static void wait_for_gpu(void)
{
	CUDA(cudaStreamSynchronize(stream));
}

static cudaGraphExec_t capture(void (*calls)(void))
{
	cudaGraph_t *graph = &graphs[graph_count];
	cudaGraphExec_t *executable = &executables[graph_count++];

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	calls();
	CUDA(cudaStreamEndCapture(stream, graph));
	CUDA(cudaGraphInstantiate(executable, *graph, 0));
	return *executable;
}

static void replay(cudaGraphExec_t executable, int times)
{
	for (int i = 0; i < times; i++)
		CUDA(cudaGraphLaunch(executable, stream));
	wait_for_gpu();
}

static void one(void)
{
	all_reduce(1);
}

static void half_with_events(void)
{
	mask_set(ON);
	all_reduce(1);
	mask_set(OFF);
	all_reduce(1);
}

static void with_broadcast(void)
{
	all_reduce(1);
	broadcast();
}

static void exchange(int peer, int for_send, int for_receive)
{
	NCCL(ncclGroupStart());
	mask_set(for_send);
	NCCL(ncclSend(from, COUNT, ncclFloat, peer, comm, stream));
	mask_set(for_receive);
	NCCL(ncclRecv(to, COUNT, ncclFloat, peer, comm, stream));
	NCCL(ncclGroupEnd());
}

static void send_to_itself(int events)
{
	exchange(rank, events, events);
}

static void grouped_broadcasts(void)
{
	NCCL(ncclGroupStart());
	for (int root = 0; root < RANKS; root++)
		NCCL(ncclBroadcast(from, to + root * COUNT, COUNT, ncclFloat, root, comm, stream));
	NCCL(ncclGroupEnd());
}

static void timed_for_a_while(void)
{
	mask_set(ON);
	all_reduce(3);
	mask_set(OFF);
}

static void scene_none(void)
{
	replay(capture(one), 50);
	all_reduce(1);
	replay(capture(with_broadcast), 20);
	send_to_itself(OFF);
}

static void scene_switched(void)
{
	for (int i = 0; i < 200; i++) {
		mask_set(i % 7 < 2 ? ON : OFF);
		all_reduce(1);
	}
}

static void scene_switched_in_group(void)
{
	NCCL(ncclGroupStart());
	half_with_events();
	mask_set(ON);
	all_reduce(1);
	NCCL(ncclGroupEnd());
}

static void scene_switched_broadcast(void)
{
	for (int i = 0; i < 60; i++) {
		mask_set(i % 5 < 2 ? ON : OFF);
		all_reduce(1);
		broadcast();
	}
}

static void scene_on_graph(void)
{
	cudaGraphExec_t executable;

	mask_set(ON);
	executable = capture(one);
	replay(executable, 9);
	all_reduce(1);
	replay(executable, 9);
	all_reduce(1);
}

static void scene_off_before_graph(void)
{
	timed_for_a_while();
	replay(capture(one), 50);
	all_reduce(1);
}

static void scene_half_graph(void)
{
	replay(capture(half_with_events), 10);
}

static void scene_graph_then_on(void)
{
	replay(capture(one), 5);
	timed_for_a_while();
}

static void scene_unused_graph_then_on(void)
{
	capture(one);
	timed_for_a_while();
}

static void scene_self_then_on(void)
{
	for (int i = 0; i < 3; i++)
		send_to_itself(OFF);
	timed_for_a_while();
}

static void scene_self_while_on(void)
{
	mask_set(ON);
	all_reduce(1);
	send_to_itself(ON);
	all_reduce(2);
}

static void scene_send_on(void)
{
	exchange(1 - rank, ON, OFF);
}

static void scene_receive_on(void)
{
	exchange(1 - rank, OFF, ON);
}

static void scene_broadcast_graph(void)
{
	mask_set(ON);
	replay(capture(with_broadcast), 20);
}

static void scene_grouped_broadcasts_then_on(void)
{
	for (int i = 0; i < 3; i++)
		grouped_broadcasts();
	timed_for_a_while();
}

static void scene_on_for_good(void)
{
	cudaGraphExec_t executable;

	mask_set(ON);
	executable = capture(one);
	for (int i = 0; i < 5; i++) {
		all_reduce(1);
		replay(executable, 3);
	}
	replay(capture(with_broadcast), 20);
	send_to_itself(ON);
	all_reduce(1);
	replay(executable, 5);
}

static const struct scene {
	const char *name;
	void (*play)(void);
	const char *what;
} scenes[] = {
	{ "none", scene_none, "no kernel events: graphs, sends to itself, Broadcast" },
	{ "switched", scene_switched, "switched between collectives" },
	{ "in-group", scene_switched_in_group, "switched between collectives of one group" },
	{ "broadcast", scene_switched_broadcast, "switched between AllReduce and Broadcast" },
	{ "on-graph", scene_on_graph, "on, one graph captured and replayed" },
	{ "off-before-graph", scene_off_before_graph,
	  "on, then off, then a graph captured and replayed" },
	{ "half-graph", scene_half_graph, "graph of which a part was captured with events" },
	{ "graph-then-on", scene_graph_then_on, "graph captured without, replayed, then on" },
	{ "unused-graph-then-on", scene_unused_graph_then_on,
	  "graph captured without, never replayed, then on" },
	{ "self-then-on", scene_self_then_on, "sends to itself, then on" },
	{ "self-while-on", scene_self_while_on, "on, then sends to itself, then off" },
	{ "send-on", scene_send_on, "on for Send, off for the Recv of the same group" },
	{ "receive-on", scene_receive_on, "off for Send, on for the Recv of the same group" },
	{ "broadcast-graph", scene_broadcast_graph, "on, graph with AllReduce and Broadcast" },
	{ "grouped-broadcasts", scene_grouped_broadcasts_then_on,
	  "Broadcasts of several roots in a group, then on" },
	{ "on-for-good", scene_on_for_good, "on for good, graphs, Broadcast, sends to itself" },
};
enum { SCENES = sizeof(scenes) / sizeof(scenes[0]) };

static void set_up(const char *plugin)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	char host[32];
	void *library;

	/* Two hosts, as far as NCCL knows: otherwise it refuses two ranks on one GPU. */
	snprintf(host, sizeof(host), "hazard%d", rank);
	setenv("NCCL_HOSTID", host, 1);
	setenv("NCCL_PROFILER_PLUGIN", plugin, 1);
	CUDA(cudaSetDevice(0));
	CUDA(cudaMalloc((void **)&from, RANKS * COUNT * sizeof(*from)));
	CUDA(cudaMalloc((void **)&to, RANKS * COUNT * sizeof(*to)));
	CUDA(cudaStreamCreate(&stream));
	if (rank == 0) {
		NCCL(ncclGetUniqueId(&shared->id));
		__sync_synchronize();
		shared->is_ready = 1;
	}
	while (!shared->is_ready)
		usleep(1000);
	config.maxCTAs = 2;
	NCCL(ncclCommInitRankConfig(&comm, RANKS, shared->id, rank, &config));
	library = dlopen(plugin, RTLD_NOW);
	mask_set = (void (*)(int))dlsym(library, "mask_set");
	mask_kernels = (long (*)(void))dlsym(library, "mask_kernels");
	if (mask_set == NULL || mask_kernels == NULL)
		give_up("the plugin is not mask_plugin.c", __LINE__);
}

static void run_rank(const struct scene *scene, const char *plugin)
{
	set_up(plugin);
	shared->stage[rank] = STAGE_READY;
	mask_set(OFF);
	all_reduce(3);
	wait_for_gpu();
	scene->play();
	wait_for_gpu();
	mask_set(OFF);
	/* NCCL waits for graphs, too. */
	for (int i = 0; i < graph_count; i++) {
		cudaGraphExecDestroy(executables[i]);
		cudaGraphDestroy(graphs[i]);
	}
	all_reduce(1);
	wait_for_gpu();
	shared->stage[rank] = STAGE_PLAYED;
	usleep(300000);
	shared->kernels[rank] = mask_kernels();
	NCCL(ncclCommDestroy(comm));
	shared->stage[rank] = STAGE_DESTROYED;
	_exit(0);
}

static int ended(void)
{
	int count = 0;

	for (int i = 0; i < RANKS; i++)
		count += shared->stage[i] == STAGE_DESTROYED;
	return count;
}

static void run_scene(const struct scene *scene, const char *plugin)
{
	pid_t ranks[RANKS];

	memset(shared, 0, sizeof(*shared));
	for (int i = 0; i < RANKS; i++) {
		ranks[i] = fork();
		if (ranks[i] == 0) {
			rank = i;
			run_rank(scene, plugin);
		}
	}
	for (int ms = 0; ms < LIMIT_MS && ended() < RANKS; ms += 50)
		usleep(50000);
	printf("%-56s  %s (%ld)\n", scene->what,
	       ended() == RANKS			 ? "ends"
	       : shared->stage[0] < STAGE_PLAYED ? "FAILS"
						 : "HANGS",
	       shared->kernels[0]);
	fflush(stdout);
	for (int i = 0; i < RANKS; i++) {
		kill(ranks[i], SIGKILL);
		waitpid(ranks[i], NULL, 0);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: mask_hazards PLUGIN [SCENE...]\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	for (int i = 0; i < SCENES; i++)
		for (int j = 2; j <= argc; j++)
			if (j == argc ? argc == 2 : strcmp(argv[j], scenes[i].name) == 0)
				run_scene(&scenes[i], argv[1]);
	return 0;
}
