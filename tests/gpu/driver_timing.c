/*
 * Blocks of AllReduce on command: "STYLE BYTES CALLS" on standard input, one line of JSON back.
 * Between blocks the job sleeps, so that several jobs can take turns on the GPU in one run.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

enum { CALLS_MAX = 10000, LINE_BYTES = 256 };

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static uint64_t median_of(uint64_t *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void all_reduce(struct job *job, size_t bytes)
{
	must_nccl(ncclAllReduce(job->send, job->recv, bytes / 4, ncclFloat32, ncclSum,
				job->main->comm, job->stream),
		  "ncclAllReduce");
}

/* Median over the calls: all of it, and the part spent inside the call. */
static void block_sync(struct job *job, size_t bytes, int calls, uint64_t *call_ns,
		       uint64_t *host_ns)
{
	static uint64_t whole[CALLS_MAX], host[CALLS_MAX];

	for (int i = 0; i < calls; i++) {
		uint64_t begin_ns = now_ns();

		all_reduce(job, bytes);
		host[i] = now_ns() - begin_ns;
		must_cuda(cudaStreamSynchronize(job->stream), "cudaStreamSynchronize");
		whole[i] = now_ns() - begin_ns;
	}
	*call_ns = median_of(whole, calls);
	*host_ns = median_of(host, calls);
}

/* The block's time over its calls; the calls themselves by their median. */
static void block_burst(struct job *job, size_t bytes, int calls, uint64_t *call_ns,
			uint64_t *host_ns)
{
	static uint64_t host[CALLS_MAX];
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < calls; i++) {
		uint64_t at_ns = now_ns();

		all_reduce(job, bytes);
		host[i] = now_ns() - at_ns;
	}
	must_cuda(cudaStreamSynchronize(job->stream), "cudaStreamSynchronize");
	*call_ns = (now_ns() - begin_ns) / (uint64_t)calls;
	*host_ns = median_of(host, calls);
}

static void block_run(struct job *job, const char *style, size_t bytes, int calls)
{
	uint64_t call_ns, host_ns;

	if (calls < 1 || calls > CALLS_MAX || bytes < 4 || bytes > job->buffer_bytes)
		die("a block of %d calls of %zu bytes is not possible", calls, bytes);
	if (strcmp(style, "sync") == 0)
		block_sync(job, bytes, calls, &call_ns, &host_ns);
	else
		block_burst(job, bytes, calls, &call_ns, &host_ns);
	printf("{\"rank\":%d,\"style\":\"%s\",\"bytes\":%zu,\"calls\":%d,\"call_ns\":%llu,"
	       "\"host_ns\":%llu}\n",
	       job->options.rank, style, bytes, calls, (unsigned long long)call_ns,
	       (unsigned long long)host_ns);
	fflush(stdout);
}

int timing_serve(const struct options *options)
{
	char line[LINE_BYTES], style[16];
	unsigned long long issued = 0;
	struct job job;

	job_open(&job, options);
	job.main = job_communicator(&job, "timing");
	while (fgets(line, sizeof(line), stdin)) {
		size_t bytes;
		int calls;

		if (sscanf(line, "%15s %zu %d", style, &bytes, &calls) != 3)
			break;
		block_run(&job, style, bytes, calls);
		issued += (unsigned long long)calls;
	}
	job_destroy(&job, &job.main);
	printf("{\"rank\":%d,\"pid\":%d,\"issued\":%llu}\n", options->rank, (int)getpid(), issued);
	fflush(stdout);
	job_close(&job);
	return 0;
}
