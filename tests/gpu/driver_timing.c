/*
 * Measures on command: one line on standard input, one line of JSON back:
 *
 *	sync|burst|graph BYTES CALLS [LEAD]	a block of AllReduce: synchronized, back to back, or from a graph; LEAD
 *					calls before it, as if the program went on from there
 *	comms N				N more communicators with their first operation; how long each took
 *	close				destroys those communicators
 *	memory				the process's current memory
 *
 * Between commands the job sleeps, so that several jobs can take turns on the GPU in one run.
 */
#include "driver.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

enum { CALLS_MAX = 10000, LINE_BYTES = 256, GRAPHS_MAX = 8, GRAPH_CALLS = 10, MORE_MAX = 32 };
enum { LARGE_BYTES = 4 << 20 }; /* so slow that one call is enough for a graph */
enum { WORD_BYTES = 32, FIRST_BYTES = 1 << 10 };

struct kept_graph {
	size_t bytes;
	cudaGraphExec_t graph;
};

struct served {
	struct job job;
	struct kept_graph graphs[GRAPHS_MAX];
	int graph_count;
	struct communicator *more[MORE_MAX];
	int more_count;
	int more_made;
	unsigned long long eager, captured, replayed;
};

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

static void all_reduce_on(struct job *job, struct communicator *on, size_t bytes)
{
	must_nccl(ncclAllReduce(job->send, job->recv, bytes / 4, ncclFloat32, ncclSum, on->comm,
				job->stream),
		  "ncclAllReduce");
}

static void all_reduce(struct job *job, size_t bytes)
{
	all_reduce_on(job, job->main, bytes);
}

static void synchronize(struct job *job)
{
	must_cuda(cudaStreamSynchronize(job->stream), "cudaStreamSynchronize");
}

/* Median over the calls: total, and inside the call. */
static void block_sync(struct job *job, size_t bytes, int calls, uint64_t *call_ns,
		       uint64_t *host_ns)
{
	static uint64_t whole[CALLS_MAX], host[CALLS_MAX];

	for (int i = 0; i < calls; i++) {
		uint64_t begin_ns = now_ns();

		all_reduce(job, bytes);
		host[i] = now_ns() - begin_ns;
		synchronize(job);
		whole[i] = now_ns() - begin_ns;
	}
	*call_ns = median_of(whole, calls);
	*host_ns = median_of(host, calls);
}

/* The block's time divided by its calls; the median time inside the call. */
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
	synchronize(job);
	*call_ns = (now_ns() - begin_ns) / (uint64_t)calls;
	*host_ns = median_of(host, calls);
}

static int graph_calls(size_t bytes)
{
	return bytes < LARGE_BYTES ? GRAPH_CALLS : 1;
}

static cudaGraphExec_t graph_of(struct served *served, size_t bytes)
{
	struct job *job = &served->job;
	struct kept_graph *kept;
	cudaGraph_t graph;

	for (int i = 0; i < served->graph_count; i++)
		if (served->graphs[i].bytes == bytes)
			return served->graphs[i].graph;
	if (served->graph_count == GRAPHS_MAX)
		die("no room for another graph");
	kept = &served->graphs[served->graph_count++];
	kept->bytes = bytes;
	must_cuda(cudaStreamBeginCapture(job->stream, cudaStreamCaptureModeThreadLocal),
		  "cudaStreamBeginCapture");
	for (int i = 0; i < graph_calls(bytes); i++)
		all_reduce(job, bytes);
	must_cuda(cudaStreamEndCapture(job->stream, &graph), "cudaStreamEndCapture");
	must_cuda(cudaGraphInstantiateWithFlags(&kept->graph, graph, 0), "cudaGraphInstantiate");
	must_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
	served->captured += (unsigned long long)graph_calls(bytes);
	return kept->graph;
}

/* The block's time divided by its calls; a launch has several of them. */
static void block_graph(struct served *served, size_t bytes, int calls, uint64_t *call_ns,
			uint64_t *host_ns)
{
	static uint64_t host[CALLS_MAX];
	cudaGraphExec_t graph = graph_of(served, bytes);
	int each = graph_calls(bytes), launches = (calls + each - 1) / each;
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < launches; i++) {
		uint64_t at_ns = now_ns();

		must_cuda(cudaGraphLaunch(graph, served->job.stream), "cudaGraphLaunch");
		host[i] = (now_ns() - at_ns) / (uint64_t)each;
	}
	synchronize(&served->job);
	*call_ns = (now_ns() - begin_ns) / (uint64_t)(launches * each);
	*host_ns = median_of(host, launches);
	served->replayed += (unsigned long long)(launches * each);
}

static void block_play(struct served *served, const char *style, size_t bytes, int calls,
		       uint64_t *call_ns, uint64_t *host_ns)
{
	if (strcmp(style, "graph") == 0) {
		block_graph(served, bytes, calls, call_ns, host_ns);
		return;
	}
	if (strcmp(style, "sync") == 0)
		block_sync(&served->job, bytes, calls, call_ns, host_ns);
	else
		block_burst(&served->job, bytes, calls, call_ns, host_ns);
	served->eager += (unsigned long long)calls;
}

static void block_run(struct served *served, const char *style, size_t bytes, int calls, int lead)
{
	struct job *job = &served->job;
	uint64_t call_ns, host_ns;

	if (calls < 1 || calls > CALLS_MAX || lead < 0 || lead > CALLS_MAX || bytes < 4 ||
	    bytes > job->buffer_bytes)
		die("a block of %d calls of %zu bytes after %d is not possible", calls, bytes,
		    lead);
	if (lead > 0)
		block_play(served, style, bytes, lead, &call_ns, &host_ns);
	block_play(served, style, bytes, calls, &call_ns, &host_ns);
	printf("{\"rank\":%d,\"style\":\"%s\",\"bytes\":%zu,\"calls\":%d,\"call_ns\":%llu,"
	       "\"host_ns\":%llu}\n",
	       job->options.rank, style, bytes, calls, (unsigned long long)call_ns,
	       (unsigned long long)host_ns);
}

/* NCCL connects at a communicator's first operation, and the plugin's events add connections. */
static void comms_run(struct served *served, int count)
{
	uint64_t created[MORE_MAX], first[MORE_MAX];
	struct job *job = &served->job;
	char name[COMM_NAME_BYTES];

	if (count < 1 || served->more_count + count > MORE_MAX)
		die("%d communicators are too many", count);
	for (int i = 0; i < count; i++) {
		struct communicator *own;
		uint64_t begin_ns = now_ns(), made_ns;

		snprintf(name, sizeof(name), "more-%d", ++served->more_made);
		own = job_communicator(job, name);
		made_ns = now_ns();
		all_reduce_on(job, own, FIRST_BYTES);
		synchronize(job);
		created[i] = made_ns - begin_ns;
		first[i] = now_ns() - made_ns;
		served->more[served->more_count++] = own;
		served->eager++;
	}
	printf("{\"rank\":%d,\"comms\":%d,\"create_ns\":%llu,\"first_ns\":%llu}\n",
	       job->options.rank, count, (unsigned long long)median_of(created, count),
	       (unsigned long long)median_of(first, count));
}

static void comms_close(struct served *served)
{
	while (served->more_count > 0)
		job_destroy(&served->job, &served->more[--served->more_count]);
	printf("{\"rank\":%d,\"comms\":0}\n", served->job.options.rank);
}

static unsigned long long status_kib(const char *field)
{
	char line[LINE_BYTES];
	unsigned long long kib = 0;
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, field, strlen(field)) == 0)
			kib = strtoull(line + strlen(field), NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

static void memory_tell(const struct served *served)
{
	struct mallinfo2 heap = mallinfo2();

	printf("{\"rank\":%d,\"pid\":%d,\"rss_bytes\":%llu,\"anonymous_bytes\":%llu,"
	       "\"heap_bytes\":%zu,\"threads\":%llu}\n",
	       served->job.options.rank, (int)getpid(), status_kib("VmRSS:") << 10,
	       status_kib("RssAnon:") << 10, heap.uordblks + heap.hblkhd, status_kib("Threads:"));
}

static int command_run(struct served *served, const char *line)
{
	char word[WORD_BYTES];
	size_t first;
	int second, lead = 0, found = sscanf(line, "%31s %zu %d %d", word, &first, &second, &lead);

	if (found >= 3)
		block_run(served, word, first, second, lead);
	else if (found == 2 && strcmp(word, "comms") == 0)
		comms_run(served, (int)first);
	else if (found == 1 && strcmp(word, "close") == 0)
		comms_close(served);
	else if (found == 1 && strcmp(word, "memory") == 0)
		memory_tell(served);
	else
		return -1;
	fflush(stdout);
	return 0;
}

int timing_serve(const struct options *options)
{
	static struct served served;
	struct job *job = &served.job;
	char line[LINE_BYTES];

	job_open(job, options);
	job->main = job_communicator(job, "timing");
	while (fgets(line, sizeof(line), stdin))
		if (command_run(&served, line) != 0)
			break;
	for (int i = 0; i < served.graph_count; i++)
		must_cuda(cudaGraphExecDestroy(served.graphs[i].graph), "cudaGraphExecDestroy");
	while (served.more_count > 0)
		job_destroy(job, &served.more[--served.more_count]);
	job_destroy(job, &job->main);
	printf("{\"rank\":%d,\"pid\":%d,\"issued\":%llu,\"captured\":%llu,\"replayed\":%llu}\n",
	       options->rank, (int)getpid(), served.eager, served.captured, served.replayed);
	fflush(stdout);
	job_close(job);
	return 0;
}
