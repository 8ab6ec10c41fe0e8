/*
 * Nothing wrong was found: are results right, or does the check not look? Before anything is measured it
 * must find nothing in a buffer that it filled itself, and every single difference when it is told to
 * expect the neighbours.
 */
#include "programs/bench/bench_inside.h"

/* What fits into the two guards of a buffer, at 8 bytes each; the phase lets it run over the end of the table. */
enum { ELEMENTS = 1000, PHASE = 8000 };

static uint64_t differences(const struct bench_pattern *pattern)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < ELEMENTS; i++)
		count += pattern->input[pattern_advance(PHASE, i)] !=
			 pattern->input[pattern_advance(PHASE + 1, i)];
	return count;
}

static int check_count(struct bench_job *job, const struct kernel_span *span, uint64_t *wrong)
{
	struct job_tables *tables = &job->tables;
	cuda_result result;

	result = job->cuda.memory_set(tables->counter, 0, sizeof(*wrong), job->stream);
	if (result)
		return job_cuda(job, result, "cuMemsetD8Async");
	result = kernels_check(&job->kernels, &job->cuda, job->stream, span, tables->guard,
			       tables->guard, tables->counter);
	if (result)
		return job_cuda(job, result, "cuLaunchKernel of " KERNEL_CHECK);
	result = job->cuda.stream_wait(job->stream);
	if (result)
		return job_cuda(job, result, KERNEL_CHECK);
	result = job->cuda.copy_to_host(wrong, tables->counter, sizeof(*wrong));
	return result ? job_cuda(job, result, "cuMemcpyDtoH_v2") : 0;
}

int prove_check(struct bench_job *job)
{
	uint64_t right = 0, wrong = 0, wanted = differences(job->pattern);

	for (uint32_t element_bytes = 1; element_bytes <= 8; element_bytes *= 2) {
		struct kernel_span span = {
			.buffer = job->recv_memory,
			.count = ELEMENTS,
			.element_bytes = element_bytes,
			.period = PATTERN_PERIOD,
			.phase = PHASE,
			.blocks = 1, /* fewer threads than elements: their loop runs, too */
		};
		cuda_result result = kernels_fill(&job->kernels, &job->cuda, job->stream, &span,
						  job->tables.guard);

		if (result)
			return job_cuda(job, result, "cuLaunchKernel of " KERNEL_FILL);
		if (check_count(job, &span, &right) < 0)
			return -1;
		span.phase++;
		if (check_count(job, &span, &wrong) < 0)
			return -1;
		if (right != 0 || wrong != wanted)
			return job_fail(
				job,
				"results cannot be checked on this GPU: of %d elements of "
				"%u bytes %llu are told to be wrong where none is, and %llu "
				"where %llu are",
				ELEMENTS, element_bytes, (unsigned long long)right,
				(unsigned long long)wrong, (unsigned long long)wanted);
	}
	return 0;
}
