/*
 * Waiting for the GPU by asking, not by cuStreamSynchronize(): a rank whose peer died would wait for
 * ever there. A moment of plain polling keeps the host's times sharp; then, every few milliseconds, NCCL
 * and the hub are asked whether somebody failed.
 */
#include <sched.h>
#include <stdlib.h>

#include "common/op.h"
#include "common/text.h"
#include "programs/bench/bench_inside.h"

enum { FIRST_LOOK_NS = 2000000, LOOK_NS = 5000000 };

/* NCCL's kernels may wait for a peer that is gone: only an abort ends them. */
static void comm_give_up(struct bench_job *job)
{
	if (job->comm)
		(void)job->nccl.comm_abort(job->comm);
	job->comm = NULL;
}

static int look_around(const struct job_cell *work)
{
	struct bench_job *job = work->job;
	nccl_result error = 0, result;

	if (hub_look(job->hub) < 0) {
		comm_give_up(job);
		return -1;
	}
	result = job->nccl.comm_async_error(job->comm, &error);
	if (result == 0)
		result = error;
	if (result == 0 || result == NCCL_IN_PROGRESS)
		return 0;
	(void)job_nccl(job, result, op_function_name(work->cell.function));
	comm_give_up(job);
	return -1;
}

/* " with rank 3", where a cell has pairs. */
static const char *partner_of(const struct job_cell *work, char *text, size_t size)
{
	int rank = work->job->place->rank;

	text[0] = '\0';
	if (work->cell.peers && work->cell.peers[rank] >= 0)
		text_format(text, size, " with rank %d", work->cell.peers[rank]);
	return text;
}

static int is_too_long(const struct job_cell *work, uint64_t waited_ns, uint64_t calls)
{
	struct bench_job *job = work->job;
	char size[UNITS_TEXT], partner[32];
	double allowed_ns = job->plan->patience_s * 1e9 + 3 * work->expected_ns * (double)calls;

	if (job->plan->patience_s <= 0 || (double)waited_ns < allowed_ns)
		return 0;
	(void)job_fail(job, "%s of %s%s did not come back within %llu s",
		       op_function_name(work->cell.function), units_bytes(size, work->layout.bytes),
		       partner_of(work, partner, sizeof(partner)),
		       (unsigned long long)(waited_ns / 1000000000));
	comm_give_up(job);
	return -1;
}

int wait_stream(const struct job_cell *work, uint64_t calls)
{
	struct bench_job *job = work->job;
	uint64_t begin_ns = job_now(), look_ns = begin_ns + FIRST_LOOK_NS;

	for (;;) {
		cuda_result result = job->cuda.stream_query(job->stream);
		uint64_t now_ns;

		if (result == 0)
			return 0;
		if (result != CUDA_NOT_READY)
			return job_cuda(job, result, op_function_name(work->cell.function));
		if (job->is_crowded)
			sched_yield();
		now_ns = job_now();
		if (now_ns < look_ns)
			continue;
		look_ns = now_ns + LOOK_NS;
		if (look_around(work) < 0 || is_too_long(work, now_ns - begin_ns, calls) < 0)
			return -1;
	}
}
