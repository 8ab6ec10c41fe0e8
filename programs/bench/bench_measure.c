/*
 * A cell is measured in this order on every rank: warm-up, measured calls; checks come behind them
 * (bench_job.c). Rank 0 decides how many there are and tells the others between calls, never inside a
 * time that is taken.
 */
#include <stdlib.h>

#include "common/op.h"
#include "programs/bench/bench_budget.h"
#include "programs/bench/bench_inside.h"
#include "programs/bench/bench_watch.h"

enum { BLOCK_CALLS = JOB_EVENTS_MAX - 1 };

static int call_issue(struct job_cell *work)
{
	const char *what = "";
	nccl_result result = issue_call(work, &what);

	return result ? job_nccl(work->job, result, what) : 0;
}

int measure_unmeasured(struct job_cell *work)
{
	return call_issue(work) < 0 ? -1 : wait_stream(work, 1);
}

static int event_put(struct bench_job *job, size_t index)
{
	cuda_result result = job->cuda.event_record(job->events[index], job->stream);

	return result ? job_cuda(job, result, "cuEventRecord") : 0;
}

static int event_between(struct bench_job *job, size_t index, uint64_t *ns)
{
	float ms = 0;
	cuda_result result;

	result = job->cuda.event_elapsed(&ms, job->events[index], job->events[index + 1]);
	if (result)
		return job_cuda(job, result, "cuEventElapsedTime");
	*ns = ms > 0 ? (uint64_t)((double)ms * 1e6 + 0.5) : 0;
	return 0;
}

int measure_align(struct job_cell *work)
{
	struct bench_job *job = work->job;
	const char *what = "";
	nccl_result result;

	switch (job->plan->align) {
	case PLAN_ALIGN_HUB:
		return hub_meet(job->hub);
	case PLAN_ALIGN_NCCL:
		result = issue_align(job, &what);
		if (result)
			return job_nccl(job, result, what);
		work->cell.aligns++;
		return 0;
	default:
		return 0;
	}
}

int measure_one(struct job_cell *work, struct bench_call *call)
{
	struct bench_job *job = work->job;
	uint64_t begin_ns, issued_ns;

	if (measure_align(work) < 0)
		return -1;
	call->begin_ns = job_wall();
	if (event_put(job, 0) < 0)
		return -1;
	begin_ns = job_now();
	if (call_issue(work) < 0)
		return -1;
	issued_ns = job_now();
	if (event_put(job, 1) < 0 || wait_stream(work, 1) < 0)
		return -1;
	call->done_ns = job_now() - begin_ns;
	call->issue_ns = issued_ns - begin_ns;
	if (event_between(job, 0, &call->gpu_ns) < 0)
		return -1;
	if (!work->takes_part)
		*call = (struct bench_call){ 0 };
	return 0;
}

static int measure_blocking(struct job_cell *work)
{
	for (uint32_t i = 0; i < work->cell.calls; i++)
		if (measure_one(work, &work->calls[i]) < 0)
			return -1;
	return 0;
}

static int block_issue(struct job_cell *work, struct bench_call *calls, uint32_t count)
{
	struct bench_job *job = work->job;

	if (measure_align(work) < 0 || event_put(job, 0) < 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t begin_ns;

		calls[i].begin_ns = job_wall();
		begin_ns = job_now();
		if (call_issue(work) < 0)
			return -1;
		calls[i].issue_ns = job_now() - begin_ns;
		if (event_put(job, i + 1) < 0)
			return -1;
	}
	return wait_stream(work, count);
}

static int measure_back_to_back(struct job_cell *work)
{
	uint32_t left = work->cell.calls, count;

	for (struct bench_call *calls = work->calls; left > 0; calls += count, left -= count) {
		count = left < BLOCK_CALLS ? left : BLOCK_CALLS;
		if (device_events(work->job, count + 1) < 0 || block_issue(work, calls, count) < 0)
			return -1;
		for (uint32_t i = 0; i < count; i++) {
			if (event_between(work->job, i, &calls[i].gpu_ns) < 0)
				return -1;
			if (!work->takes_part)
				calls[i] = (struct bench_call){ 0 };
		}
	}
	return 0;
}

/* As nccl-tests takes its time: one clock around all calls and the wait for them. */
static int measure_loop(struct job_cell *work)
{
	uint64_t begin_ns;

	if (hub_meet(work->job->hub) < 0)
		return -1;
	begin_ns = job_now();
	for (uint32_t i = 0; i < work->cell.calls; i++)
		if (call_issue(work) < 0)
			return -1;
	if (wait_stream(work, work->cell.calls) < 0)
		return -1;
	work->cell.loop_ns = (job_now() - begin_ns) / work->cell.calls;
	return 0;
}

/* The first call of a cell: NCCL refuses an algorithm that cannot do it here and not before. */
static int first_call(struct job_cell *work)
{
	struct bench_job *job = work->job;
	const char *what = "";
	struct bench_watch watch;
	nccl_result result;
	int refused;

	bench_watch_begin(&watch, job, "the first call, which makes connections,");
	result = issue_call(work, &what);
	bench_watch_end(&watch);
	if (!job->is_forced)
		return result ? job_nccl(job, result, what) : wait_stream(work, 1);
	refused = job_agree(job, (int32_t)result);
	if (refused <= 0)
		return refused < 0 ? -1 : wait_stream(work, 1);
	if (refused == job->place->nranks)
		return 1;
	return job_fail(job,
			"%s is refused by %d of %d ranks: they disagree about NCCL_ALGO or "
			"NCCL_PROTO",
			op_function_name(work->cell.function), refused, job->place->nranks);
}

/* So many calls in the cell's own way, without their times. */
static int warm_more(struct job_cell *work, uint32_t count)
{
	struct bench_call unused;

	for (uint32_t i = 0; i < count; i++) {
		bool is_waited = work->cell.mode == BENCH_BLOCKING || i % BLOCK_CALLS == 0;

		if (is_waited ? measure_one(work, &unused) < 0 : call_issue(work) < 0)
			return -1;
	}
	work->cell.warmups += count;
	return wait_stream(work, count);
}

void measure_expect(struct job_cell *work, double call_ns)
{
	if (work->expected_ns <= 0 || call_ns < work->expected_ns)
		work->expected_ns = call_ns;
}

/* So many more, and what one of them took. */
static int warm_timed(struct job_cell *work, uint32_t count)
{
	uint64_t begin_ns = job_now();

	if (warm_more(work, count) < 0)
		return -1;
	measure_expect(work, (double)(job_now() - begin_ns) / count);
	return 0;
}

/* The rest of them, as many as rank 0 says. */
static int warm_rest(struct job_cell *work)
{
	struct bench_job *job = work->job;
	uint32_t more =
		budget_warmups(job->plan, work->cell.warmups, work->expected_ns, work->expected_ns);

	if (hub_share(job->hub, &more, sizeof(more)) < 0)
		return -1;
	return more ? warm_timed(work, more) : 0;
}

/* Connections are made by the first call, which may take a thousand times as long as the next: nothing is
 * planned from it, and it does not count against a time budget. A graph warms itself; but connections are
 * not to be made while it is captured, and how many calls fit into it must be known. */
static int warm_up(struct job_cell *work)
{
	const struct bench_plan *plan = work->job->plan;
	uint64_t begin_ns = job_now();
	bool is_graph = work->cell.mode == BENCH_GRAPH, is_budget = plan->seconds > 0;
	int status;

	if (plan->warmups == 0 && !is_budget && !work->job->is_forced && !is_graph)
		return 0;
	status = first_call(work);
	if (status != 0)
		return status;
	work->cell.warmups = 1;
	work->expected_ns = (double)(job_now() - begin_ns);
	if ((is_budget || (plan->warmups > 1 && !is_graph)) && warm_timed(work, 1) < 0)
		return -1;
	return is_graph ? 0 : warm_rest(work);
}

int measure_plan_calls(struct job_cell *work, double call_ns)
{
	struct bench_job *job = work->job;
	struct {
		double call_ns;
		uint32_t calls;
	} said = { call_ns, budget_calls(job->plan, call_ns, job->place->nranks) };

	if (said.calls == budget_calls_limit(job->place->nranks) && said.calls != job->plan->calls)
		job_note(job, "%u calls of a cell are measured at the most", said.calls);
	if (hub_share(job->hub, &said, sizeof(said)) < 0)
		return -1;
	work->cell.calls = said.calls;
	work->expected_ns = said.call_ns;
	return 0;
}

int measure_calls_alloc(struct job_cell *work)
{
	work->calls = calloc(work->cell.calls, sizeof(*work->calls));
	return work->calls ? 0 : job_fail(work->job, "out of memory");
}

int measure_cell(struct job_cell *work)
{
	int status = warm_up(work);

	if (status != 0)
		return status;
	if (work->cell.mode == BENCH_GRAPH)
		return measure_graph(work);
	if (measure_plan_calls(work, work->expected_ns) < 0)
		return -1;
	if (work->cell.mode == BENCH_LOOP)
		return measure_loop(work);
	if (measure_calls_alloc(work) < 0)
		return -1;
	return work->cell.mode == BENCH_BLOCKING ? measure_blocking(work)
						 : measure_back_to_back(work);
}
