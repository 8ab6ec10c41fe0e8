/*
 * What can go wrong when a plugin records CUDA events around launches: graphs captured in each mode, captured again to
 * update a graph, in the body of a conditional node, made and destroyed all the time; two threads; a device that is
 * reset; a process that ends in the middle; communicators that do not block. A job must end as it does without a plugin.
 */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

#ifdef DRIVER_HAS_NO_EDGES
int edges_run(const struct options *options)
{
	(void)options;
	die("the fake NCCL has none of this");
}
#else

enum { MIB = 1 << 20, LARGE = 8 * MIB, WARM = 8, CALLS = 20, REPLAYS = 20, GAP_US = 25000 };
enum { UPDATES = 10, CHURNS = 150, THREAD_CALLS = 400, PENDING = 50, ASYNC_CALLS = 200 };

static void all_reduce(struct job *job, struct communicator *on, size_t bytes, cudaStream_t stream)
{
	must_nccl(ncclAllReduce(job->send, job->recv, bytes / 4, ncclFloat32, ncclSum, on->comm,
				stream),
		  "ncclAllReduce");
}

static void synchronize(struct job *job)
{
	must_cuda(cudaStreamSynchronize(job->stream), "cudaStreamSynchronize");
}

static void warm_up(struct job *job, struct communicator *on)
{
	for (int i = 0; i < WARM; i++)
		all_reduce(job, on, LARGE, job->stream);
	synchronize(job);
}

static void broadcast(struct job *job, struct communicator *on)
{
	must_nccl(
		ncclBroadcast(job->send, job->recv, MIB / 4, ncclFloat32, 0, on->comm, job->stream),
		"ncclBroadcast");
}

static cudaGraph_t capture(struct job *job, int mode, int calls)
{
	cudaGraph_t graph;

	must_cuda(cudaStreamBeginCapture(job->stream, (enum cudaStreamCaptureMode)mode),
		  "cudaStreamBeginCapture");
	for (int i = 0; i < calls; i++)
		all_reduce(job, job->main, i % 5 == 4 ? LARGE / 2 : LARGE, job->stream);
	if (job->child) {
		broadcast(job, job->child);
		all_reduce(job, job->child, LARGE, job->stream);
	}
	must_cuda(cudaStreamEndCapture(job->stream, &graph), "cudaStreamEndCapture");
	return graph;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
	cudaGraphExec_t executable;

	must_cuda(cudaGraphInstantiateWithFlags(&executable, graph, 0), "cudaGraphInstantiate");
	return executable;
}

static void replay(struct job *job, cudaGraphExec_t executable, int times, long gap_us)
{
	for (int i = 0; i < times; i++) {
		must_cuda(cudaGraphLaunch(executable, job->stream), "cudaGraphLaunch");
		synchronize(job);
		pause_us(gap_us);
	}
}

static void modes_play(struct job *job)
{
	job->child = job_split(job, job->main, "edges-child");
	warm_up(job, job->child);
	for (int mode = 0; mode < 3; mode++) {
		cudaGraph_t graph = capture(job, mode, CALLS);
		cudaGraphExec_t executable = instantiate(graph);

		replay(job, executable, REPLAYS, GAP_US);
		replay(job, executable, REPLAYS, 0);
		must_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
		must_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
		all_reduce(job, job->main, LARGE, job->stream);
	}
	synchronize(job);
	job_destroy(job, &job->child);
}

/* The graph of each capture must look like the first one, or the update fails. */
static void update_play(struct job *job)
{
	cudaGraph_t graph = capture(job, cudaStreamCaptureModeThreadLocal, CALLS);
	cudaGraphExec_t executable = instantiate(graph);

	for (int i = 0; i < UPDATES; i++) {
		cudaGraph_t again = capture(job, cudaStreamCaptureModeThreadLocal, CALLS);
		cudaGraphExecUpdateResultInfo info;

		must_cuda(cudaGraphExecUpdate(executable, again, &info), "cudaGraphExecUpdate");
		replay(job, executable, REPLAYS / 4, GAP_US);
		must_cuda(cudaGraphDestroy(again), "cudaGraphDestroy");
		for (int n = 0; n < i; n++)
			all_reduce(job, job->main, n % 2 ? 1024 : LARGE, job->stream);
		synchronize(job);
	}
	must_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
	must_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

static void churn_play(struct job *job)
{
	for (int i = 0; i < CHURNS; i++) {
		cudaGraph_t graph = capture(job, cudaStreamCaptureModeRelaxed, CALLS);
		cudaGraphExec_t executable = instantiate(graph);

		must_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
		replay(job, executable, 2, 0);
		must_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
	}
}

/* Event nodes are not allowed in the body; without graph mixing NCCL adds none. */
static void conditional_play(struct job *job)
{
	struct cudaGraphNodeParams params = { .type = cudaGraphNodeTypeConditional };
	cudaGraphExec_t executable;
	cudaGraphNode_t node;
	cudaGraph_t graph, body, same;

	must_cuda(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
	must_cuda(cudaGraphConditionalHandleCreate(&params.conditional.handle, graph, 1,
						   cudaGraphCondAssignDefault),
		  "cudaGraphConditionalHandleCreate");
	params.conditional.type = cudaGraphCondTypeIf;
	params.conditional.size = 1;
#if CUDART_VERSION >= 13000
	must_cuda(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params), "cudaGraphAddNode");
#else
	must_cuda(cudaGraphAddNode(&node, graph, NULL, 0, &params), "cudaGraphAddNode");
#endif
	body = params.conditional.phGraph_out[0];
	must_cuda(cudaStreamBeginCaptureToGraph(job->stream, body, NULL, NULL, 0,
						cudaStreamCaptureModeRelaxed),
		  "cudaStreamBeginCaptureToGraph");
	for (int i = 0; i < CALLS; i++)
		all_reduce(job, job->main, LARGE, job->stream);
	must_cuda(cudaStreamEndCapture(job->stream, &same), "cudaStreamEndCapture");
	executable = instantiate(graph);
	replay(job, executable, REPLAYS, GAP_US);
	must_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
	must_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

struct thread_play {
	struct job *job;
	struct communicator *on;
	cudaStream_t stream;
	char *buffer;
};

static void *thread_main(void *argument)
{
	struct thread_play *play = argument;

	must_cuda(cudaSetDevice(0), "cudaSetDevice");
	for (int i = 0; i < THREAD_CALLS; i++)
		must_nccl(ncclAllReduce(play->buffer, play->buffer, (i % 3 ? 1024 : LARGE) / 4,
					ncclFloat32, ncclSum, play->on->comm, play->stream),
			  "ncclAllReduce");
	must_cuda(cudaStreamSynchronize(play->stream), "cudaStreamSynchronize");
	return NULL;
}

static void threads_play(struct job *job)
{
	struct thread_play first = { job, job->main, job->stream, job->send }, second = first;
	pthread_t thread;

	job->other = job_communicator(job, "edges-other");
	second.on = job->other;
	second.stream = job->other_stream;
	second.buffer = job->recv;
	if (pthread_create(&thread, NULL, thread_main, &second) != 0)
		die("cannot start a thread");
	thread_main(&first);
	pthread_join(thread, NULL);
	job_destroy(job, &job->other);
}

/* Times are pending when the context goes. NCCL's communicator cannot be destroyed any more. */
static void reset_play(struct job *job)
{
	for (int i = 0; i < PENDING; i++)
		all_reduce(job, job->main, LARGE, job->stream);
	synchronize(job);
	must_cuda(cudaDeviceReset(), "cudaDeviceReset");
	pause_us(300 * 1000);
	exit(0);
}

static void exit_play(struct job *job)
{
	for (int i = 0; i < PENDING; i++)
		all_reduce(job, job->main, LARGE, job->stream);
	synchronize(job);
	all_reduce(job, job->main, LARGE, job->stream);
	exit(0);
}

static void wait_for(ncclComm_t comm, ncclResult_t result)
{
	while (result == ncclInProgress)
		must_nccl(ncclCommGetAsyncError(comm, &result), "ncclCommGetAsyncError");
	must_nccl(result, "a call that does not block");
}

static void nonblocking_play(struct job *job)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t child = NULL;

	config.blocking = 0;
	must_nccl(ncclGroupStart(), "ncclGroupStart");
	must_nccl(ncclCommSplit(job->main->comm, 0, job->main->rank, &child, &config),
		  "ncclCommSplit");
	must_nccl(ncclGroupEnd(), "ncclGroupEnd");
	wait_for(child, ncclInProgress);
	for (int i = 0; i < ASYNC_CALLS; i++)
		wait_for(child, ncclAllReduce(job->send, job->recv, (i % 2 ? 1024 : LARGE) / 4,
					      ncclFloat32, ncclSum, child, job->stream));
	synchronize(job);
	wait_for(child, ncclCommFinalize(child));
	must_nccl(ncclCommDestroy(child), "ncclCommDestroy");
}

static const struct {
	const char *name;
	void (*play)(struct job *job);
} scenes[] = {
	{ "modes", modes_play },     { "update", update_play },
	{ "churn", churn_play },     { "conditional", conditional_play },
	{ "threads", threads_play }, { "reset", reset_play },
	{ "exit", exit_play },	     { "nonblocking", nonblocking_play },
};

int edges_run(const struct options *options)
{
	struct job job;

	job_open(&job, options);
	job.kind = "edges";
	job.style = "mixed";
	job.main = job_communicator(&job, "edges");
	warm_up(&job, job.main);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
		if (options->scene && strcmp(scenes[i].name, options->scene) == 0)
			scenes[i].play(&job);
	synchronize(&job);
	job_destroy(&job, &job.main);
	job_close(&job);
	return 0;
}
#endif
