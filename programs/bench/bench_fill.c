/*
 * Before: everything that must be received is filled with what it must not be, then come the inputs (in
 * place they are in the same buffer), and guards in front of and behind the receive buffer. After: the
 * received parts are checked, the guards, and that the send buffer is what it was.
 */
#include "common/op.h"
#include "programs/bench/bench_inside.h"

enum { TABLE_BYTES = PATTERN_PERIOD * sizeof(uint64_t), GUARDS = 2 };

static int tables_copy(struct bench_job *job)
{
	const struct {
		cuda_address to;
		const uint64_t *from;
	} copies[] = {
		{ job->tables.input, job->pattern->input },
		{ job->tables.low, job->pattern->low },
		{ job->tables.high, job->pattern->high },
		{ job->tables.poison, job->pattern->poison },
	};
	cuda_result result;

	for (size_t i = 0; i < ARRAY_LENGTH(copies); i++) {
		result = job->cuda.copy_to_device(copies[i].to, copies[i].from, TABLE_BYTES);
		if (result)
			return job_cuda(job, result, "cuMemcpyHtoD_v2");
	}
	return 0;
}

/* The tables of this cell; they mostly are those of the one before. */
static int tables_make(struct bench_job *job, const struct bench_cell *cell)
{
	struct job_tables *tables = &job->tables;
	bool is_reduction = layout_is_reduction(cell->function);

	if (tables->datatype == cell->datatype && tables->is_reduction == is_reduction &&
	    (tables->redop == cell->redop || !is_reduction))
		return 0;
	tables->datatype = 0;
	if (!is_reduction)
		pattern_move(job->pattern, op_datatype_bytes(cell->datatype));
	else if (!pattern_reduce(job->pattern, cell->datatype, cell->redop, job->place->rank,
				 cell->nranks))
		return job_fail(job, "no results are known for %s of %s",
				bench_redop_name(cell->redop), op_datatype_name(cell->datatype));
	if (tables_copy(job) < 0)
		return -1;
	tables->datatype = cell->datatype;
	tables->redop = cell->redop;
	tables->is_reduction = is_reduction;
	return 0;
}

static struct kernel_span span_of(const struct job_cell *work, cuda_address buffer,
				  const struct layout_part *part)
{
	unsigned int element_bytes = op_datatype_bytes(work->cell.datatype);

	return (struct kernel_span){
		.buffer = buffer + JOB_GUARD_BYTES + part->at * element_bytes,
		.count = part->count,
		.element_bytes = element_bytes,
		.period = PATTERN_PERIOD,
		.phase = part->phase,
	};
}

/* Right in front of and right behind what this cell has of the receive buffer. */
static struct kernel_span guard_of(const struct job_cell *work, int which)
{
	const struct bench_layout *layout = &work->layout;
	uint64_t count = work->cell.is_in_place ? layout->whole_count : layout->recv_count;
	uint64_t bytes = count * op_datatype_bytes(work->cell.datatype);
	cuda_address memory = work->job->recv_memory;

	return (struct kernel_span){
		.buffer = which == 0 ? memory : memory + JOB_GUARD_BYTES + bytes,
		.count = JOB_GUARD_BYTES,
		.element_bytes = 1,
		.period = PATTERN_PERIOD,
	};
}

static cuda_address input_buffer(const struct job_cell *work)
{
	return work->cell.is_in_place ? work->job->recv_memory : work->job->send_memory;
}

static cuda_result fill_all(struct job_cell *work)
{
	struct bench_job *job = work->job;
	int rank = job->place->rank;
	struct kernel_span span;
	struct layout_part part;
	cuda_result result = 0;

	for (int i = 0; i < GUARDS && result == 0; i++) {
		span = guard_of(work, i);
		result = kernels_fill(&job->kernels, &job->cuda, job->stream, &span,
				      job->tables.guard);
	}
	for (int i = 0; result == 0 && layout_expected(&work->layout, &work->cell, rank, i, &part);
	     i++) {
		span = span_of(work, job->recv_memory, &part);
		result = kernels_fill(&job->kernels, &job->cuda, job->stream, &span,
				      job->tables.poison);
	}
	if (result == 0 && layout_input(&work->layout, &work->cell, rank, &part)) {
		span = span_of(work, input_buffer(work), &part);
		result = kernels_fill(&job->kernels, &job->cuda, job->stream, &span,
				      job->tables.input);
	}
	return result;
}

int fill_buffers(struct job_cell *work)
{
	cuda_result result;

	if (tables_make(work->job, &work->cell) < 0)
		return -1;
	result = fill_all(work);
	if (result)
		return job_cuda(work->job, result, "cuLaunchKernel of " KERNEL_FILL);
	return wait_stream(work, 0);
}

static cuda_result check_span(struct bench_job *job, const struct kernel_span *span,
			      cuda_address low, cuda_address high)
{
	return kernels_check(&job->kernels, &job->cuda, job->stream, span, low, high,
			     job->tables.counter);
}

static cuda_result check_all(struct job_cell *work)
{
	struct bench_job *job = work->job;
	int rank = job->place->rank;
	struct kernel_span span;
	struct layout_part part;
	cuda_result result = 0;

	for (int i = 0; i < GUARDS && result == 0; i++) {
		span = guard_of(work, i);
		result = check_span(job, &span, job->tables.guard, job->tables.guard);
	}
	for (int i = 0; result == 0 && layout_expected(&work->layout, &work->cell, rank, i, &part);
	     i++) {
		span = span_of(work, job->recv_memory, &part);
		result = check_span(job, &span, job->tables.low, job->tables.high);
	}
	if (result == 0 && !work->cell.is_in_place &&
	    layout_input(&work->layout, &work->cell, rank, &part)) {
		span = span_of(work, job->send_memory, &part);
		result = check_span(job, &span, job->tables.input, job->tables.input);
	}
	return result;
}

int fill_check(struct job_cell *work, uint64_t *wrong)
{
	struct bench_job *job = work->job;
	cuda_result result;

	result = job->cuda.memory_set(job->tables.counter, 0, sizeof(*wrong), job->stream);
	if (result)
		return job_cuda(job, result, "cuMemsetD8Async");
	result = check_all(work);
	if (result)
		return job_cuda(job, result, "cuLaunchKernel of " KERNEL_CHECK);
	if (wait_stream(work, 0) < 0)
		return -1;
	result = job->cuda.copy_to_host(wrong, job->tables.counter, sizeof(*wrong));
	return result ? job_cuda(job, result, "cuMemcpyDtoH_v2") : 0;
}
