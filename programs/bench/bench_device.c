/*
 * The GPU of a rank. Memory:
 *
 *	send_memory	guard | room_bytes | guard
 *	recv_memory	guard | room_bytes | guard	in place: both in one
 *	tables		input | low | high | poison | guard | counter | one
 */
#include <sched.h>
#include <stdlib.h>

#include "programs/bench/bench_inside.h"

enum {
	TABLE_BYTES = PATTERN_PERIOD * sizeof(uint64_t),
	TABLES = 5,
	TABLES_BYTES = TABLES * TABLE_BYTES + 64,
	ROOM_STEP = 1 << 20, /* whole MiB where memory is short */
};

/* NCCL takes memory for its channels, and each other process on the GPU for its context. */
static const double room_share = 0.85;

static int device_choose(struct bench_job *job)
{
	int gpus = 0;
	cuda_result result = job->cuda.device_count(&gpus);

	if (result)
		return job_cuda(job, result, "cuDeviceGetCount");
	if (gpus < 1)
		return job_fail(job,
				"CUDA shows no GPU here: see CUDA_VISIBLE_DEVICES and nvidia-smi");
	job->device_number = job->local_rank % gpus;
	result = job->cuda.device_get(&job->device, job->device_number);
	return result ? job_cuda(job, result, "cuDeviceGet") : 0;
}

static int context_open(struct bench_job *job)
{
	cuda_result result;

	result = job->cuda.primary_retain(&job->context, job->device);
	if (result) {
		job->context = NULL;
		return job_cuda(job, result, "cuDevicePrimaryCtxRetain");
	}
	result = job->cuda.context_set(job->context);
	if (result)
		return job_cuda(job, result, "cuCtxSetCurrent");
	result = job->cuda.stream_create(&job->stream, CUDA_STREAM_NON_BLOCKING);
	if (result) {
		job->stream = NULL;
		return job_cuda(job, result, "cuStreamCreate");
	}
	return 0;
}

static bool is_crowded(const struct bench_job *job)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return true;
	/* NCCL's own threads want a processor, too. */
	return 2 * job->local_ranks > CPU_COUNT(&set);
}

/* Are events in a graph recorded anew by each launch? Tried with a graph of nothing else. */
static bool graph_is_timed(struct bench_job *job)
{
	struct CUgraph_st *graph = NULL;
	struct CUgraphExec_st *exec = NULL;
	float ms;
	bool is_timed;

	if (job->cuda.capture_begin(job->stream, CUDA_CAPTURE_THREAD_LOCAL))
		return false;
	is_timed = job->cuda.event_record_flags(job->events[0], job->stream,
						CUDA_EVENT_RECORD_EXTERNAL) == 0 &&
		   job->cuda.event_record_flags(job->events[1], job->stream,
						CUDA_EVENT_RECORD_EXTERNAL) == 0;
	if (job->cuda.capture_end(job->stream, &graph) || graph == NULL)
		return false;
	is_timed = is_timed && job->cuda.graph_instantiate(&exec, graph, 0) == 0 &&
		   job->cuda.graph_launch(exec, job->stream) == 0 &&
		   job->cuda.stream_wait(job->stream) == 0 &&
		   job->cuda.event_elapsed(&ms, job->events[0], job->events[1]) == 0;
	if (exec)
		(void)job->cuda.graph_free(exec);
	(void)job->cuda.graph_destroy(graph);
	return is_timed;
}

int device_open(struct bench_job *job)
{
	const char *what = "";
	cuda_result result;

	job->is_crowded = is_crowded(job);
	if (device_choose(job) < 0 || context_open(job) < 0)
		return -1;
	result = kernels_load(&job->kernels, &job->cuda, &what);
	if (result)
		return job_cuda(job, result, what);
	if (device_events(job, 2) < 0)
		return -1;
	job->is_graph_timed = graph_is_timed(job);
	return 0;
}

int device_room(struct bench_job *job, uint64_t *room_bytes)
{
	size_t free_bytes = 0, total_bytes = 0;
	cuda_result result = job->cuda.memory_info(&free_bytes, &total_bytes);
	double room;

	if (result)
		return job_cuda(job, result, "cuMemGetInfo_v2");
	room = (double)free_bytes * room_share - TABLES_BYTES - 4.0 * JOB_GUARD_BYTES;
	*room_bytes = room > 0 ? (uint64_t)room / 2 : 0;
	return 0;
}

static int memory_take(struct bench_job *job, cuda_address *address, size_t bytes)
{
	cuda_result result = job->cuda.memory_alloc(address, bytes);

	if (result == 0)
		return 0;
	*address = 0;
	return job_cuda(job, result, "cuMemAlloc_v2");
}

static int guard_table_copy(struct bench_job *job)
{
	cuda_result result;

	pattern_move(job->pattern, 1);
	result = job->cuda.copy_to_device(job->tables.guard, job->pattern->input, TABLE_BYTES);
	return result ? job_cuda(job, result, "cuMemcpyHtoD_v2") : 0;
}

int device_memory_open(struct bench_job *job)
{
	size_t bytes;
	struct job_tables *tables = &job->tables;
	cuda_result result;

	if (job->room_bytes > ROOM_STEP)
		job->room_bytes -= job->room_bytes % 16;
	bytes = job->room_bytes + 2 * (size_t)JOB_GUARD_BYTES;
	job->pattern = malloc(sizeof(*job->pattern));
	if (job->pattern == NULL)
		return job_fail(job, "out of memory");
	if (memory_take(job, &job->send_memory, bytes) < 0 ||
	    memory_take(job, &job->recv_memory, bytes) < 0 ||
	    memory_take(job, &tables->memory, TABLES_BYTES) < 0)
		return -1;
	tables->input = tables->memory;
	tables->low = tables->input + TABLE_BYTES;
	tables->high = tables->low + TABLE_BYTES;
	tables->poison = tables->high + TABLE_BYTES;
	tables->guard = tables->poison + TABLE_BYTES;
	tables->counter = tables->guard + TABLE_BYTES;
	job->one = tables->counter + 16;
	if (guard_table_copy(job) < 0)
		return -1;
	result = job->cuda.memory_set(job->one, 0, 16, job->stream);
	if (result == 0)
		result = job->cuda.stream_wait(job->stream);
	return result ? job_cuda(job, result, "cuMemsetD8Async") : prove_check(job);
}

int device_events(struct bench_job *job, size_t count)
{
	cuda_result result;

	if (job->events == NULL)
		job->events = calloc(JOB_EVENTS_MAX, sizeof(job->events[0]));
	if (job->events == NULL || count > JOB_EVENTS_MAX)
		return job_fail(job, "out of memory");
	while (job->event_count < count) {
		result = job->cuda.event_create(&job->events[job->event_count], CUDA_EVENT_DEFAULT);
		if (result)
			return job_cuda(job, result, "cuEventCreate");
		job->event_count++;
	}
	return 0;
}

static void memory_give(struct bench_job *job, cuda_address *address)
{
	if (*address)
		(void)job->cuda.memory_free(*address);
	*address = 0;
}

void device_close(struct bench_job *job)
{
	for (size_t i = 0; i < job->event_count; i++)
		(void)job->cuda.event_destroy(job->events[i]);
	free(job->events);
	job->events = NULL;
	job->event_count = 0;
	memory_give(job, &job->tables.memory);
	memory_give(job, &job->recv_memory);
	memory_give(job, &job->send_memory);
	free(job->pattern);
	job->pattern = NULL;
	kernels_unload(&job->kernels, &job->cuda);
	if (job->stream)
		(void)job->cuda.stream_destroy(job->stream);
	job->stream = NULL;
	if (job->context)
		(void)job->cuda.primary_release(job->device);
	job->context = NULL;
}
