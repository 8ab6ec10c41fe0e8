/*
 * Calls in a CUDA graph. Events between them are recorded inside the graph, by each launch anew, so every
 * replayed call has a time of its own:
 *
 *	event 0 | call | event 1 | call | event 2 ...
 *
 * Where a driver cannot do that, the time of the launch is divided, and a note says so.
 */
#include <stdlib.h>

#include "programs/bench/bench_inside.h"

struct graph {
	struct CUgraph_st *graph;
	struct CUgraphExec_st *exec;
	uint32_t calls; /* in it */
};

static int graph_event(struct job_cell *work, uint32_t index)
{
	struct bench_job *job = work->job;
	cuda_result result;

	if (!job->is_graph_timed)
		return 0;
	result = job->cuda.event_record_flags(job->events[index], job->stream,
					      CUDA_EVENT_RECORD_EXTERNAL);
	return result ? job_cuda(job, result, "cuEventRecordWithFlags") : 0;
}

static int graph_calls(struct job_cell *work, uint32_t count)
{
	const char *what = "";
	nccl_result result;

	if (graph_event(work, 0) < 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		result = issue_call(work, &what);
		if (result)
			return job_nccl(work->job, result, what);
		if (graph_event(work, i + 1) < 0)
			return -1;
	}
	return 0;
}

static int graph_capture(struct job_cell *work, struct graph *graph)
{
	struct bench_job *job = work->job;
	cuda_result result;
	int status;

	result = job->cuda.capture_begin(job->stream, CUDA_CAPTURE_THREAD_LOCAL);
	if (result)
		return job_cuda(job, result, "cuStreamBeginCapture_v2");
	status = graph_calls(work, graph->calls);
	result = job->cuda.capture_end(job->stream, &graph->graph);
	if (status < 0)
		return -1;
	if (result)
		return job_cuda(job, result, "cuStreamEndCapture");
	result = job->cuda.graph_instantiate(&graph->exec, graph->graph, 0);
	return result ? job_cuda(job, result, "cuGraphInstantiateWithFlags") : 0;
}

static void graph_release(struct bench_job *job, struct graph *graph)
{
	if (graph->exec)
		(void)job->cuda.graph_free(graph->exec);
	if (graph->graph)
		(void)job->cuda.graph_destroy(graph->graph);
}

static int times_take(struct job_cell *work, struct bench_call *calls, uint32_t count)
{
	struct bench_job *job = work->job;
	uint32_t parts = job->is_graph_timed ? count : 1;
	float ms = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = job->is_graph_timed ? i : 0;
		cuda_result result =
			job->cuda.event_elapsed(&ms, job->events[from], job->events[from + 1]);

		if (result)
			return job_cuda(job, result, "cuEventElapsedTime");
		calls[i].gpu_ns = (uint64_t)((double)ms * 1e6 * parts / count + 0.5);
	}
	return 0;
}

/* Around the launch, where events inside are not to be had. */
static int outer_event(struct bench_job *job, size_t index)
{
	cuda_result result = 0;

	if (!job->is_graph_timed)
		result = job->cuda.event_record(job->events[index], job->stream);
	return result ? job_cuda(job, result, "cuEventRecord") : 0;
}

static int graph_launch(struct job_cell *work, const struct graph *graph, struct bench_call *calls)
{
	struct bench_job *job = work->job;
	uint64_t wall_ns, begin_ns, issued_ns;
	cuda_result result;

	if (measure_align(work) < 0 || outer_event(job, 0) < 0)
		return -1;
	wall_ns = job_wall();
	begin_ns = job_now();
	result = job->cuda.graph_launch(graph->exec, job->stream);
	if (result)
		return job_cuda(job, result, "cuGraphLaunch");
	issued_ns = (job_now() - begin_ns) / graph->calls;
	if (outer_event(job, 1) < 0 || wait_stream(work, graph->calls) < 0)
		return -1;
	if (calls == NULL || !work->takes_part)
		return 0;
	for (uint32_t i = 0; i < graph->calls; i++) {
		calls[i].begin_ns = wall_ns;
		calls[i].issue_ns = issued_ns;
	}
	return times_take(work, calls, graph->calls);
}

/* So many launches, and what one call of them took. */
static int graph_launches(struct job_cell *work, const struct graph *graph, uint32_t count)
{
	uint64_t begin_ns = job_now();

	for (uint32_t i = 0; i < count; i++)
		if (graph_launch(work, graph, NULL) < 0)
			return -1;
	work->cell.warmups += count * graph->calls;
	measure_expect(work, (double)(job_now() - begin_ns) / ((double)count * graph->calls));
	return 0;
}

/* Launches before those that are measured. The first brings the graph to the GPU, so a time budget is
 * planned from a second one; but not when one takes long. */
static int graph_warm(struct job_cell *work, const struct graph *graph)
{
	const struct bench_plan *plan = work->job->plan;
	uint64_t begin_ns = job_now();
	uint32_t launches = (plan->warmups + graph->calls - 1) / graph->calls, more;

	if (graph_launches(work, graph, 1) < 0)
		return -1;
	if (plan->seconds > 0 && launches < 2)
		launches = 2;
	if (plan->seconds > 0 && (double)(job_now() - begin_ns) > plan->seconds * 1e9 / 4)
		launches = 1;
	more = launches > 1 ? launches - 1 : 0;
	if (hub_share(work->job->hub, &more, sizeof(more)) < 0)
		return -1;
	if (more > 0 && graph_launches(work, graph, more) < 0)
		return -1;
	return measure_plan_calls(work, work->expected_ns);
}

static int graph_run(struct job_cell *work, const struct graph *graph)
{
	uint32_t launches;

	if (graph_warm(work, graph) < 0)
		return -1;
	launches = (work->cell.calls + graph->calls - 1) / graph->calls;
	work->cell.calls = launches * graph->calls;
	work->cell.captured = graph->calls;
	if (measure_calls_alloc(work) < 0)
		return -1;
	for (uint32_t i = 0; i < launches; i++)
		if (graph_launch(work, graph, work->calls + (size_t)i * graph->calls) < 0)
			return -1;
	return 0;
}

/* As many as the plan says, but no more than are to be measured, than there are events for, and than take
 * a quarter of the time budget. */
static uint32_t graph_size(const struct job_cell *work)
{
	const struct bench_plan *plan = work->job->plan;
	uint32_t calls = plan->graph_calls ? plan->graph_calls : 1;
	double fitting = plan->seconds * 1e9 / 4;

	if (plan->calls && calls > plan->calls)
		calls = plan->calls;
	if (calls > JOB_EVENTS_MAX - 1)
		calls = JOB_EVENTS_MAX - 1;
	if (fitting > 0 && work->expected_ns * calls > fitting)
		calls = (uint32_t)(fitting / work->expected_ns);
	return calls ? calls : 1;
}

int measure_graph(struct job_cell *work)
{
	struct bench_job *job = work->job;
	struct graph graph = { .calls = graph_size(work) };
	int status;

	if (hub_share(job->hub, &graph.calls, sizeof(graph.calls)) < 0)
		return -1;
	if (device_events(job, (size_t)graph.calls + 1) < 0)
		return -1;
	if (!job->is_graph_timed)
		job_note(job, "this CUDA records no events inside graphs: the time of a graph is "
			      "divided by its calls, single calls are not told apart");
	status = graph_capture(work, &graph);
	if (status == 0)
		status = graph_run(work, &graph);
	graph_release(job, &graph);
	return status;
}
