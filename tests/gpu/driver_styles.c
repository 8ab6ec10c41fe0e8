/* How calls follow each other: synchronized, back to back, or from a CUDA graph. */
#include "driver.h"

#include <cuda_runtime.h>

static uint64_t events_ns(struct job *job)
{
	float ms = 0;

	must_cuda(cudaEventElapsedTime(&ms, job->before, job->after), "cudaEventElapsedTime");
	return ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
}

void style_sync(struct job *job, const struct kind *kind, const struct shape *shape, int calls,
		int gap_ms)
{
	for (int i = 0; i < calls; i++) {
		size_t first = job->call_count;
		uint64_t begin_ns, issued_ns, end_ns;

		must_cuda(cudaEventRecord(job->before, job->stream), "cudaEventRecord");
		begin_ns = now_ns();
		kind->issue(job, shape);
		issued_ns = now_ns();
		must_cuda(cudaEventRecord(job->after, job->stream), "cudaEventRecord");
		must_cuda(cudaStreamSynchronize(job->stream), "cudaStreamSynchronize");
		end_ns = now_ns();
		log_times(job, first, begin_ns, end_ns, issued_ns - begin_ns, events_ns(job));
		pause_us(1000L * gap_ms);
	}
}

void style_burst(struct job *job, const struct kind *kind, const struct shape *shape, int calls)
{
	size_t first = job->call_count;
	uint64_t begin_ns, issued_ns, end_ns;

	begin_ns = now_ns();
	for (int i = 0; i < calls; i++)
		kind->issue(job, shape);
	issued_ns = now_ns();
	must_cuda(cudaStreamSynchronize(job->stream), "cudaStreamSynchronize");
	end_ns = now_ns();
	log_times(job, first, begin_ns, end_ns, (issued_ns - begin_ns) / (uint64_t)calls, 0);
}

/* Captures the calls into a graph; style_replay() runs them. */
cudaGraphExec_t style_capture(struct job *job, const struct kind *kind, const struct shape *shape,
			      int calls, size_t *first, size_t *count)
{
	cudaGraphExec_t executable;
	cudaGraph_t graph;
	uint64_t begin_ns = now_ns();

	*first = job->call_count;
	must_cuda(cudaStreamBeginCapture(job->stream, cudaStreamCaptureModeThreadLocal),
		  "cudaStreamBeginCapture");
	job->is_capturing = 1;
	for (int i = 0; i < calls; i++)
		kind->issue(job, shape);
	job->is_capturing = 0;
	must_cuda(cudaStreamEndCapture(job->stream, &graph), "cudaStreamEndCapture");
	must_cuda(cudaGraphInstantiateWithFlags(&executable, graph, 0), "cudaGraphInstantiate");
	must_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
	*count = job->call_count - *first;
	log_times(job, *first, begin_ns, now_ns(), 0, 0);
	return executable;
}

void style_replay(struct job *job, cudaGraphExec_t graph, size_t first, size_t count, int replays,
		  int is_synchronised, int gap_ms)
{
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < replays; i++) {
		if (is_synchronised)
			begin_ns = now_ns();
		must_cuda(cudaEventRecord(job->before, job->stream), "cudaEventRecord");
		must_cuda(cudaGraphLaunch(graph, job->stream), "cudaGraphLaunch");
		must_cuda(cudaEventRecord(job->after, job->stream), "cudaEventRecord");
		if (!is_synchronised)
			continue;
		must_cuda(cudaStreamSynchronize(job->stream), "cudaStreamSynchronize");
		log_replay(job, first, count, begin_ns, now_ns(), events_ns(job));
		pause_us(1000L * gap_ms);
	}
	if (is_synchronised)
		return;
	must_cuda(cudaStreamSynchronize(job->stream), "cudaStreamSynchronize");
	for (int i = 0; i < replays; i++)
		log_replay(job, first, count, begin_ns, now_ns(), 0);
}
