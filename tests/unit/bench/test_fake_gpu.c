/*
 * The fake libcuda and libnccl that the benchmark is tested with: they must be correct before they can be used to
 * test anything. Ranks are forked processes, as in the benchmark.
 */
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench_gpu.h"
#include "bench/bench_result.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "tests/event_times.h"
#include "tests/tap.h"

enum { COUNT = 1000, RANKS = 3, BUFFER_BYTES = 8 * COUNT * RANKS };

struct rank {
	struct cuda cuda;
	struct nccl nccl;
	struct CUstream_st *stream;
	struct ncclComm *comm;
	struct bench_kernels kernels;
	cuda_address send;
	cuda_address recv;
	int rank;
	int nranks;
};

static char folder[3500];

static void libraries_name(const char *nccl)
{
	char path[4096], *slash;
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	folder[length > 0 ? length : 0] = '\0';
	/* .../tests/unit/bench */
	for (int i = 0; i < 2 && (slash = strrchr(folder, '/')) != NULL; i++)
		*slash = '\0';
	text_format(path, sizeof(path), "%s/fake_gpu/libcuda.so.1", folder);
	setenv("RINGSIDE_CUDA", path, 1);
	text_format(path, sizeof(path), "%s/fake_gpu/%s", folder, nccl);
	setenv("RINGSIDE_NCCL", path, 1);
	setenv("NCCL_PROFILER_PLUGIN", "none", 0); /* a plugin that is named is loaded */
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

static int gpu_open(struct rank *self)
{
	char problem[512];
	struct CUctx_st *context;
	const char *what;

	if (cuda_open(&self->cuda, problem, sizeof(problem)) != 0 ||
	    nccl_open(&self->nccl, NULL, problem, sizeof(problem)) != 0) {
		printf("# %s\n", problem);
		return -1;
	}
	return self->cuda.primary_retain(&context, 0) || self->cuda.context_set(context) ||
	       self->cuda.stream_create(&self->stream, CUDA_STREAM_NON_BLOCKING) ||
	       self->cuda.memory_alloc(&self->send, BUFFER_BYTES) ||
	       self->cuda.memory_alloc(&self->recv, BUFFER_BYTES) ||
	       kernels_load(&self->kernels, &self->cuda, &what);
}

static void gpu_close(struct rank *self)
{
	kernels_unload(&self->kernels, &self->cuda);
	self->cuda.memory_free(self->send);
	self->cuda.memory_free(self->recv);
	self->cuda.stream_destroy(self->stream);
}

static void test_missing(void)
{
	struct cuda cuda;
	char problem[512];

	setenv("FAKE_GPUS", "0", 1);
	EXPECT_THAT("no GPU is found at cuInit", cuda_open(&cuda, problem, sizeof(problem)) == -1);
	unsetenv("FAKE_GPUS");
}

static void test_memory(struct rank *self)
{
	cuda_address address;
	size_t free_bytes, total;
	unsigned char byte;
	int status;

	EXPECT_EQUAL(self->cuda.memory_info(&free_bytes, &total), 0);
	EXPECT_EQUAL(self->cuda.memory_alloc(&address, free_bytes + 1), 2);
	EXPECT_EQUAL(self->cuda.memory_alloc(&address, 10), 0);
	EXPECT_EQUAL(self->cuda.copy_to_host(&byte, address, 1), 0);
	EXPECT_THAT("new memory is filled with garbage", byte != 0);
	EXPECT_EQUAL(self->cuda.copy_to_host(&byte, address + 10, 1), 1);
	if (fork() == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		((unsigned char *)(uintptr_t)address)[10] = 0;
		self->cuda.memory_free(address);
		_exit(0);
	}
	EXPECT_THAT("writing past the end is detected",
		    wait(&status) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	EXPECT_EQUAL(self->cuda.memory_free(address), 0);
	EXPECT_EQUAL(self->cuda.memory_free(address), 1);
	setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2:2:2,cuMemGetInfo_v2", 1);
	EXPECT_EQUAL(self->cuda.memory_alloc(&address, 10), 0);
	EXPECT_EQUAL(self->cuda.memory_free(address), 0);
	EXPECT_EQUAL(self->cuda.memory_alloc(&address, 10), 2);
	EXPECT_EQUAL(self->cuda.memory_info(&free_bytes, &total), 719);
	unsetenv("FAKE_CUDA_FAIL");
}

static void test_kernels(struct rank *self)
{
	uint64_t table[2] = { 0x11223344, 0x55667788 }, wrong[2] = { 0x11223344, 0 };
	uint64_t counted;
	struct kernel_span span = {
		.buffer = self->send, .count = COUNT, .element_bytes = 4, .period = 2, .phase = 1
	};
	cuda_address tables, counter;
	uint32_t first[2];

	EXPECT_EQUAL(self->cuda.memory_alloc(&tables, 64), 0);
	counter = tables + 32;
	EXPECT_EQUAL(self->cuda.copy_to_device(tables, table, 16), 0);
	EXPECT_EQUAL(self->cuda.copy_to_device(tables + 16, wrong, 16), 0);
	EXPECT_EQUAL(self->cuda.memory_set(counter, 0, 8, self->stream), 0);
	EXPECT_EQUAL(kernels_fill(&self->kernels, &self->cuda, self->stream, &span, tables), 0);
	EXPECT_EQUAL(kernels_check(&self->kernels, &self->cuda, self->stream, &span, tables, tables,
				   counter),
		     0);
	EXPECT_EQUAL(self->cuda.stream_wait(self->stream), 0);
	EXPECT_EQUAL(self->cuda.copy_to_host(&counted, counter, 8), 0);
	EXPECT_EQUAL(self->cuda.copy_to_host(first, self->send, 8), 0);
	EXPECT_THAT("fill starts at its phase", first[0] == table[1] && first[1] == table[0]);
	EXPECT_EQUAL(counted, 0);
	kernels_check(&self->kernels, &self->cuda, self->stream, &span, tables + 16, tables + 16,
		      counter);
	EXPECT_EQUAL(self->cuda.stream_wait(self->stream), 0);
	EXPECT_EQUAL(self->cuda.copy_to_host(&counted, counter, 8), 0);
	EXPECT_EQUAL(counted, COUNT / 2);
	EXPECT_EQUAL(self->cuda.memory_free(tables), 0);
}

static void test_capture_broken(struct rank *self)
{
	const struct cuda *cuda = &self->cuda;
	struct CUgraph_st *graph;

	cuda->capture_begin(self->stream, CUDA_CAPTURE_THREAD_LOCAL);
	EXPECT_THAT("a stream that is being captured cannot be synchronized",
		    cuda->stream_wait(self->stream) == 900 &&
			    cuda->memory_alloc(&(cuda_address){ 0 }, 8) == 900);
	EXPECT_EQUAL(cuda->capture_end(self->stream, &graph), 901);
}

static void test_graph(struct rank *self)
{
	const struct cuda *cuda = &self->cuda;
	struct CUevent_st *begin, *end, *plain;
	struct CUgraph_st *graph;
	struct CUgraphExec_st *exec;
	unsigned char byte;
	float ms = -1;

	cuda->event_create(&begin, CUDA_EVENT_DEFAULT);
	cuda->event_create(&end, CUDA_EVENT_DEFAULT);
	cuda->event_create(&plain, CUDA_EVENT_DEFAULT);
	cuda->memory_set(self->send, 1, 8, self->stream);
	cuda->stream_wait(self->stream);
	EXPECT_EQUAL(cuda->capture_begin(self->stream, CUDA_CAPTURE_THREAD_LOCAL), 0);
	cuda->event_record_flags(begin, self->stream, CUDA_EVENT_RECORD_EXTERNAL);
	cuda->memory_set(self->send, 2, 8, self->stream);
	cuda->event_record_flags(end, self->stream, CUDA_EVENT_RECORD_EXTERNAL);
	cuda->event_record(plain, self->stream);
	EXPECT_EQUAL(cuda->capture_end(self->stream, &graph), 0);
	EXPECT_EQUAL(cuda->stream_wait(self->stream), 0);
	cuda->copy_to_host(&byte, self->send, 1);
	EXPECT_THAT("captured calls do not run", byte == 1);
	EXPECT_EQUAL(cuda->graph_instantiate(&exec, graph, 0), 0);
	EXPECT_EQUAL(cuda->graph_destroy(graph), 0);
	EXPECT_THAT("a captured event has no time yet",
		    cuda->event_elapsed(&ms, begin, end) == 400 &&
			    cuda->event_elapsed(&ms, plain, end) == 1);
	EXPECT_EQUAL(cuda->graph_launch(exec, self->stream), 0);
	EXPECT_EQUAL(cuda->graph_launch(exec, self->stream), 0);
	EXPECT_EQUAL(cuda->graph_free(exec), 0);
	EXPECT_EQUAL(cuda->stream_wait(self->stream), 0);
	cuda->copy_to_host(&byte, self->send, 1);
	EXPECT_THAT("a launched graph runs", byte == 2);
	EXPECT_EQUAL(cuda->event_elapsed(&ms, begin, end), 0);
	EXPECT_THAT("time has passed", ms > 0);
	EXPECT_EQUAL(cuda->event_destroy(begin) | cuda->event_destroy(end) |
			     cuda->event_destroy(plain),
		     0);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

typedef int (*rank_fn)(struct rank *self);

static int rank_main(int rank, int nranks, struct nccl_unique_id *id, int ids[2], rank_fn body)
{
	struct rank self = { .rank = rank, .nranks = nranks };
	bool is_ok = true;

	if (gpu_open(&self) != 0)
		return 1;
	if (rank == 0) {
		is_ok = self.nccl.get_unique_id(id) == 0;
		for (int i = 1; i < nranks; i++)
			is_ok = is_ok && write(ids[1], id, sizeof(*id)) == (ssize_t)sizeof(*id);
	} else {
		is_ok = read(ids[0], id, sizeof(*id)) == (ssize_t)sizeof(*id);
	}
	if (!is_ok || self.nccl.comm_init(&self.comm, nranks, *id, rank) != 0)
		return 2;
	if (body(&self) != 0)
		return 3;
	gpu_close(&self);
	return self.comm != NULL && self.nccl.comm_destroy(self.comm) != 0 ? 4 : 0;
}

/* Ranks 0 to nranks - 1, each in its own process; returns the sum of their exit codes. */
static int ranks_run(int nranks, rank_fn body)
{
	struct nccl_unique_id id;
	int ids[2], sum = 0, status;

	if (pipe(ids) != 0)
		return -1;
	fflush(stdout);
	for (int rank = 0; rank < nranks; rank++) {
		if (fork() == 0)
			_exit(rank_main(rank, nranks, &id, ids, body));
	}
	close(ids[0]);
	close(ids[1]);
	for (int rank = 0; rank < nranks; rank++) {
		if (wait(&status) < 0)
			return -1;
		sum += WIFEXITED(status) ? WEXITSTATUS(status) : 100;
	}
	return sum;
}

/* Rank r has r + 1 everywhere; element i of part p also has p. All are small whole numbers: exact in any type. */
static void value_write(uint8_t type, cuda_address to, size_t i, int value)
{
	void *at = (void *)(uintptr_t)(to + i * op_datatype_bytes(type));
	float real = (float)value;
	uint32_t bits;

	memcpy(&bits, &real, sizeof(bits));
	if (type == OP_FLOAT32)
		memcpy(at, &real, 4);
	else if (type == OP_FLOAT64)
		memcpy(at, &(double){ value }, 8);
	else if (type == OP_BFLOAT16)
		memcpy(at, &(uint16_t){ (uint16_t)(bits >> 16) }, 2);
	else if (type == OP_FLOAT16)
		memcpy(at,
		       &(uint16_t){
			       (uint16_t)(value == 0 ? 0 : (bits >> 13) - ((127 - 15) << 10)) },
		       2);
	else if (type == OP_FLOAT8_E5M2)
		*(uint8_t *)at = (uint8_t)(value == 0 ? 0 : (bits >> 21) - ((127 - 15) << 2));
	else if (type == OP_FLOAT8_E4M3)
		*(uint8_t *)at = (uint8_t)(value == 0 ? 0 : (bits >> 20) - ((127 - 7) << 3));
	else
		memcpy(at, &(int64_t){ value }, op_datatype_bytes(type));
}

static int folded(unsigned int redop, int nranks)
{
	int sum = 0, product = 1;

	for (int i = 1; i <= nranks; i++) {
		sum += i;
		product *= i;
	}
	switch (redop) {
	case BENCH_SUM:
		return sum;
	case BENCH_PROD:
		return product;
	case BENCH_MAX:
		return nranks;
	case BENCH_MIN:
		return 1;
	default:
		return sum / nranks;
	}
}

static int reduced_check(struct rank *self, uint8_t type, unsigned int redop)
{
	size_t width = op_datatype_bytes(type);
	bool is_exact = redop != BENCH_AVG || type < OP_FLOAT16;
	int wrong = 0;

	for (size_t i = 0; i < COUNT; i++)
		value_write(type, self->send, i, self->rank + 1);
	if (self->nccl.all_reduce((void *)(uintptr_t)self->send, (void *)(uintptr_t)self->recv,
				  COUNT, nccl_type_of(&self->nccl, type), nccl_op_of(redop),
				  self->comm, self->stream) != 0 ||
	    self->cuda.stream_wait(self->stream) != 0)
		return 1;
	value_write(type, self->send, 0, folded(redop, self->nranks));
	for (size_t i = 0; i < COUNT && is_exact; i++)
		wrong += memcmp((void *)(uintptr_t)self->send,
				(char *)(uintptr_t)self->recv + i * width, width) != 0;
	/* 1/3 is rounded: close is enough. */
	if (!is_exact && type == OP_FLOAT32)
		wrong += fabsf(*(float *)(uintptr_t)self->recv - 2) > 1e-6F;
	return wrong;
}

static int all_types(struct rank *self)
{
	int wrong = 0;

	for (uint8_t type = OP_INT8; type < OP_DATATYPES; type++) {
		for (unsigned int redop = BENCH_SUM; redop < BENCH_REDOPS; redop++)
			wrong += reduced_check(self, type, redop) != 0;
	}
	return wrong;
}

/* Byte i of part p of rank r's buffer. */
static unsigned char pattern(int rank, int part, size_t i)
{
	return (unsigned char)(17 * rank + 5 * part + (int)(i % 3));
}

static void pattern_write(const struct rank *self)
{
	unsigned char *send = (unsigned char *)(uintptr_t)self->send;

	for (int part = 0; part < self->nranks; part++) {
		for (size_t i = 0; i < COUNT; i++)
			send[(size_t)part * COUNT + i] = pattern(self->rank, part, i);
	}
	memset((void *)(uintptr_t)self->recv, 0, BUFFER_BYTES);
}

static int pattern_wrong(const struct rank *self, int part, int rank, int part_of_rank)
{
	const unsigned char *recv =
		(const unsigned char *)(uintptr_t)self->recv + (size_t)part * COUNT;
	int wrong = 0;

	for (size_t i = 0; i < COUNT; i++)
		wrong += recv[i] != pattern(rank, part_of_rank, i);
	return wrong;
}

static int all_moves(struct rank *self)
{
	void *send = (void *)(uintptr_t)self->send, *recv = (void *)(uintptr_t)self->recv;
	int wrong = 0, type = nccl_type_of(&self->nccl, OP_UINT8), root = 1;

	pattern_write(self);
	wrong += self->nccl.all_gather(send, recv, COUNT, type, self->comm, self->stream);
	wrong += self->cuda.stream_wait(self->stream);
	for (int peer = 0; peer < self->nranks; peer++)
		wrong += pattern_wrong(self, peer, peer, 0);
	pattern_write(self);
	wrong += self->nccl.broadcast(send, recv, COUNT, type, root, self->comm, self->stream);
	wrong += self->cuda.stream_wait(self->stream) + pattern_wrong(self, 0, root, 0);
	if (self->nccl.all_to_all == NULL)
		return wrong;
	pattern_write(self);
	wrong += self->nccl.all_to_all(send, recv, COUNT, type, self->comm, self->stream);
	wrong += self->cuda.stream_wait(self->stream);
	for (int peer = 0; peer < self->nranks; peer++)
		wrong += pattern_wrong(self, peer, peer, self->rank);
	pattern_write(self);
	wrong += self->nccl.gather(send, recv, COUNT, type, root, self->comm, self->stream);
	wrong += self->cuda.stream_wait(self->stream);
	for (int peer = 0; peer < self->nranks && self->rank == root; peer++)
		wrong += pattern_wrong(self, peer, peer, 0);
	pattern_write(self);
	wrong += self->nccl.scatter(send, recv, COUNT, type, root, self->comm, self->stream);
	wrong += self->cuda.stream_wait(self->stream) + pattern_wrong(self, 0, root, self->rank);
	return wrong;
}

static int all_pairs(struct rank *self)
{
	void *send = (void *)(uintptr_t)self->send, *recv = (void *)(uintptr_t)self->recv;
	int next = (self->rank + 1) % self->nranks,
	    before = (self->rank + self->nranks - 1) % self->nranks;
	int wrong = 0, type = nccl_type_of(&self->nccl, OP_UINT8);

	pattern_write(self);
	wrong += self->nccl.group_start();
	wrong += self->nccl.send(send, COUNT, type, next, self->comm, self->stream);
	wrong += self->nccl.recv(recv, COUNT, type, before, self->comm, self->stream);
	wrong += self->nccl.group_end() + self->cuda.stream_wait(self->stream);
	wrong += pattern_wrong(self, 0, before, 0);
	pattern_write(self);
	wrong += self->nccl.reduce_scatter(send, recv, COUNT, type, nccl_op_of(BENCH_MAX),
					   self->comm, self->stream);
	wrong += self->cuda.stream_wait(self->stream);
	wrong += pattern_wrong(self, 0, self->nranks - 1, self->rank);
	pattern_write(self);
	wrong += self->nccl.reduce(send, recv, COUNT, type, nccl_op_of(BENCH_MIN), 1, self->comm,
				   self->stream);
	wrong += self->cuda.stream_wait(self->stream);
	wrong += self->rank == 1 ? pattern_wrong(self, 0, 0, 0) : 0;
	return wrong;
}

static int ten_in_a_graph(struct rank *self)
{
	void *both = (void *)(uintptr_t)self->send;
	struct CUgraph_st *graph;
	struct CUgraphExec_st *exec;
	int32_t expected = 1, wrong = 0;

	*(int32_t *)both = 1;
	wrong += self->cuda.capture_begin(self->stream, CUDA_CAPTURE_THREAD_LOCAL);
	for (int i = 0; i < 10; i++)
		wrong += self->nccl.all_reduce(both, both, 1, nccl_type_of(&self->nccl, OP_INT32),
					       nccl_op_of(BENCH_SUM), self->comm, self->stream);
	wrong += self->cuda.capture_end(self->stream, &graph);
	wrong += self->cuda.graph_instantiate(&exec, graph, 0) + self->cuda.graph_destroy(graph);
	wrong += self->cuda.graph_launch(exec, self->stream);
	wrong += self->cuda.stream_wait(self->stream) + self->cuda.graph_free(exec);
	for (int i = 0; i < 10; i++)
		expected *= self->nranks;
	return wrong + (*(int32_t *)both != expected);
}

/* One rank's kernel hangs: no rank's kernel ends until the communicator is aborted. */
static int abort_ends_it(struct rank *self)
{
	void *both = (void *)(uintptr_t)self->send;
	int wrong = 0;

	wrong += self->nccl.all_reduce(both, both, COUNT, nccl_type_of(&self->nccl, OP_INT32),
				       nccl_op_of(BENCH_SUM), self->comm, self->stream);
	for (int i = 0; i < 2000; i++) {
		wrong += self->cuda.stream_query(self->stream) != CUDA_NOT_READY;
		sched_yield();
	}
	wrong += self->nccl.comm_abort(self->comm);
	self->comm = NULL;
	return wrong + self->cuda.stream_wait(self->stream);
}

static int is_refused(struct rank *self)
{
	void *both = (void *)(uintptr_t)self->send;
	int type = nccl_type_of(&self->nccl, OP_INT32), sum = nccl_op_of(BENCH_SUM);

	return self->nccl.all_reduce(both, both, COUNT, type, sum, self->comm, self->stream) != 5 ||
	       self->nccl.all_reduce(both, both, BUFFER_BYTES, type, sum, self->comm,
				     self->stream) != 4;
}

/* 2 (n - 1) hops of 1 us, and 2 (n - 1) / n times the bytes at 0.3 of 1 GB/s. */
static int is_as_modelled(struct rank *self)
{
	void *both = (void *)(uintptr_t)self->send;
	struct CUevent_st *begin, *end;
	float ms = 0;

	self->cuda.event_create(&begin, CUDA_EVENT_DEFAULT);
	self->cuda.event_create(&end, CUDA_EVENT_DEFAULT);
	self->cuda.event_record(begin, self->stream);
	self->nccl.all_reduce(both, both, 1500, nccl_type_of(&self->nccl, OP_INT32),
			      nccl_op_of(BENCH_SUM), self->comm, self->stream);
	self->cuda.event_record(end, self->stream);
	self->cuda.stream_wait(self->stream);
	self->cuda.event_elapsed(&ms, begin, end);
	self->cuda.event_destroy(begin);
	self->cuda.event_destroy(end);
	return fabsf(ms * 1000 - (4 + 8000 / 300.0F)) > 0.01F;
}

/* ---- what a profiler sees ----------------------------------------------------------------------- */

static const struct event_times *event_times_find(void)
{
	void *plugin = dlopen(getenv("NCCL_PROFILER_PLUGIN"), RTLD_NOLOAD | RTLD_NOW);

	return plugin != NULL ? dlsym(plugin, "event_times") : NULL;
}

static int reduce_once(struct rank *self)
{
	void *both = (void *)(uintptr_t)self->send;

	return self->nccl.all_reduce(both, both, 1500, nccl_type_of(&self->nccl, OP_INT32),
				     nccl_op_of(BENCH_SUM), self->comm, self->stream);
}

/* Of is_as_modelled(). */
static int launch_wrong(const struct rank *self, const struct event_times *times, unsigned int nth)
{
	const struct event_times_launch *launch = &times->launches[nth];
	float ms = 0;

	return launch->stream != self->stream || launch->thread != gettid() ||
	       !launch->is_stopped ||
	       times->driver.event_elapsed(&ms, launch->before, launch->after) != 0 ||
	       fabsf(ms * 1000 - (4 + 8000 / 300.0F)) > 0.01F;
}

static int launches_are_timed(struct rank *self)
{
	const struct event_times *times = event_times_find();
	int wrong = reduce_once(self) + reduce_once(self);

	wrong += self->cuda.stream_wait(self->stream);
	if (times == NULL || times->count != 2)
		return 1;
	return wrong + launch_wrong(self, times, 0) + launch_wrong(self, times, 1);
}

static int captured(struct rank *self, struct CUgraph_st **graph)
{
	int wrong = self->cuda.capture_begin(self->stream, CUDA_CAPTURE_THREAD_LOCAL);

	wrong += reduce_once(self) + reduce_once(self);
	return wrong + self->cuda.capture_end(self->stream, graph);
}

static int replays_are_timed(struct rank *self)
{
	const struct event_times *times = event_times_find();
	struct CUgraph_st *graph;
	struct CUgraphExec_st *exec;
	int wrong = captured(self, &graph);

	if (times == NULL || times->count != 2)
		return 1;
	wrong += times->launches[0].waits != 1 || times->launches[0].records != 0;
	wrong += times->launches[1].waits != 0 || times->launches[1].records != 2;
	wrong += self->cuda.graph_instantiate(&exec, graph, 0);
	for (int i = 0; i < 2; i++) {
		wrong += self->cuda.graph_launch(exec, self->stream);
		wrong += self->cuda.stream_wait(self->stream);
		wrong += launch_wrong(self, times, 0) + launch_wrong(self, times, 1);
	}
	return wrong + self->cuda.graph_free(exec) + self->cuda.graph_destroy(graph);
}

/* NCCL_GRAPH_MIXING_SUPPORT=0: the second one depends on the event that the plugin itself has added. */
static int nothing_is_mixed(struct rank *self)
{
	const struct event_times *times = event_times_find();
	struct CUgraph_st *graph;
	int wrong = captured(self, &graph);

	if (times == NULL || times->count != 2)
		return 1;
	wrong += times->launches[0].waits + times->launches[0].records != 0;
	wrong += times->launches[1].waits != 0 || times->launches[1].records != 1;
	return wrong + self->cuda.graph_destroy(graph);
}

static int a_launch_fails(struct rank *self)
{
	const struct event_times *times = event_times_find();

	if (reduce_once(self) != 1 || times == NULL || times->count != 1)
		return 1;
	return !times->launches[0].is_stopped || self->cuda.stream_wait(self->stream) != 0;
}

static void test_profiler(void)
{
	char path[4096];

	text_format(path, sizeof(path), "%s/event_times_plugin.so", folder);
	setenv("NCCL_PROFILER_PLUGIN", path, 1);
	EXPECT_THAT("events around a launch have the kernel's time",
		    ranks_run(RANKS, launches_are_timed) == 0);
	EXPECT_THAT("also when a graph is replayed, behind event nodes of NCCL",
		    ranks_run(RANKS, replays_are_timed) == 0);
	setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
	EXPECT_THAT("which it does not add if it is set not to",
		    ranks_run(RANKS, nothing_is_mixed) == 0);
	unsetenv("NCCL_GRAPH_MIXING_SUPPORT");
	setenv("FAKE_CUDA_FAIL", "cuLaunchKernelEx:1", 1);
	EXPECT_THAT("a launch that fails stops, too", ranks_run(RANKS, a_launch_fails) == 0);
	unsetenv("FAKE_CUDA_FAIL");
	setenv("NCCL_PROFILER_PLUGIN", "none", 1);
}

static void test_trouble(void)
{
	setenv("FAKE_NCCL_WRONG", "AllGather:1", 1);
	EXPECT_EQUAL(ranks_run(RANKS, all_moves), 3);
	unsetenv("FAKE_NCCL_WRONG");
	setenv("FAKE_NCCL_HANG", "2:1", 1);
	EXPECT_EQUAL(ranks_run(RANKS, abort_ends_it), 0);
	unsetenv("FAKE_NCCL_HANG");
	setenv("NCCL_ALGO", "NVLS", 1);
	EXPECT_EQUAL(ranks_run(RANKS, is_refused), 0);
	setenv("NCCL_ALGO", "Star", 1);
	EXPECT_EQUAL(ranks_run(RANKS, all_moves), 2 * RANKS);
	setenv("NCCL_ALGO", "Ring", 1);
	setenv("NCCL_PROTO", "LL", 1);
	setenv("FAKE_GPU_CLOCK", "model", 1);
	setenv("FAKE_NCCL_LATENCY_US", "1", 1);
	setenv("FAKE_NCCL_GBPS", "1", 1);
	EXPECT_EQUAL(ranks_run(RANKS, is_as_modelled), 0);
	test_profiler();
	unsetenv("FAKE_GPU_CLOCK");
	unsetenv("NCCL_ALGO");
	unsetenv("NCCL_PROTO");
}

int main(void)
{
	struct rank self = { .rank = 0 };

	libraries_name("libnccl.so.2");
	EXPECT_THAT("every type and operation is correct on every rank",
		    ranks_run(RANKS, all_types) == 0);
	EXPECT_THAT("data is moved to the right place", ranks_run(RANKS, all_moves) == 0);
	EXPECT_THAT("also on two ranks", ranks_run(2, all_moves) == 0);
	EXPECT_THAT("pairs and parts are correct", ranks_run(RANKS, all_pairs) == 0);
	EXPECT_THAT("calls in a graph run when it is launched",
		    ranks_run(RANKS, ten_in_a_graph) == 0);
	test_trouble();
	libraries_name("libnccl-old.so.2");
	EXPECT_THAT("an older NCCL works without the newer functions",
		    ranks_run(2, all_moves) == 0);
	libraries_name("libnccl.so.2");
	test_missing();
	if (!EXPECT_THAT("the libraries are complete", gpu_open(&self) == 0))
		return tap_done();
	test_memory(&self);
	test_kernels(&self);
	test_capture_broken(&self);
	test_graph(&self);
	gpu_close(&self);
	return tap_done();
}
