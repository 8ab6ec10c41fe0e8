/*
 * One rank of a job: its GPU and buffers, checking of results, identities of the ranks.
 *
 * Memory on the GPU:
 *
 *	send_memory	guard | room_bytes | guard
 *	recv_memory	guard | room_bytes | guard	in place: both in one
 *	tables		input | low | high | poison | guard | counter | one
 */
#include "bench/bench_job.h"

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"

static int prove_check(struct bench_job *job);

int watch_thread_begin(struct watch_thread *watch, void *(*run)(void *), void *context)
{
	pthread_condattr_t attributes;

	watch->is_over = false;
	pthread_mutex_init(&watch->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&watch->change, &attributes);
	pthread_condattr_destroy(&attributes);
	watch->is_started = pthread_create(&watch->thread, NULL, run, context) == 0;
	return watch->is_started ? 0 : -1;
}

bool watch_thread_is_over_within(struct watch_thread *watch, double seconds)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += (time_t)seconds;
	at.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	while (!watch->is_over)
		if (pthread_cond_timedwait(&watch->change, &watch->lock, &at) != 0)
			break;
	return watch->is_over;
}

void watch_thread_end(struct watch_thread *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->is_over = true;
	pthread_cond_signal(&watch->change);
	pthread_mutex_unlock(&watch->lock);
	if (watch->is_started)
		pthread_join(watch->thread, NULL);
	watch->is_started = false;
	pthread_cond_destroy(&watch->change);
	pthread_mutex_destroy(&watch->lock);
}

/* NCCL may detect a lost peer itself and report more detail, so give it a moment. */
static const double look_seconds = 0.05, grace_seconds = 1;
enum { SILENT_MS = 2000, SILENT_NAMED = 8 };

/* "rank 3", "ranks 3, 5 and more"; returns `to`. */
static const char *name_ranks(char *to, size_t size, const int *ranks, size_t known, size_t count)
{
	text_copy(to, size, text_which(count, "rank", "ranks"));
	for (size_t i = 0; i < known && i < count; i++)
		text_append(to, size, "%s %d", i > 0 ? "," : "", ranks[i]);
	if (count > known)
		text_append(to, size, " and %zu more", count - known);
	return to;
}

void bench_watch_tell(const struct bench_place *place, struct bench_hub *hub)
{
	char names[128], problem[HUB_PROBLEM_BYTES + 192];
	int ranks[SILENT_NAMED];
	size_t silent = hub_silent(hub, SILENT_MS, ranks, SILENT_NAMED);

	/* Rank 0 reports it, unless rank 0 is the one that does not answer. */
	if (place->rank != 0 && silent == 0 && !hub_is_teller(hub))
		return;
	if (silent == 0)
		text_copy(problem, sizeof(problem), hub_problem(hub));
	else
		text_format(problem, sizeof(problem), "%s gave no sign of life; %s",
			    name_ranks(names, sizeof(names), ranks, SILENT_NAMED, silent),
			    hub_problem(hub));
	bench_tell(place, problem);
}

/* The main thread is inside NCCL and will not return. */
static void watch_give_up(const struct bench_watch *watch)
{
	bench_watch_tell(watch->job->place, watch->job->hub);
	bench_place_clean(watch->job->place);
	_exit(CLI_EXIT_UNKNOWN);
}

static void look_at_time(struct bench_watch *watch)
{
	const struct bench_job *job = watch->job;
	uint64_t waited_ns = clock_now_system() - watch->began_ns;

	if (job->plan->patience_s > 0 && (double)waited_ns > job->plan->patience_s * 1e9)
		(void)job_fail(watch->job, "%s did not return within %llu s", watch->what,
			       (unsigned long long)(waited_ns / 1000000000));
}

/* This thread may use the hub while it holds the lock and the call has not returned. */
static void *keep_watch(void *context)
{
	struct bench_watch *watch = context;

	pthread_mutex_lock(&watch->thread.lock);
	while (!watch_thread_is_over_within(&watch->thread, look_seconds)) {
		look_at_time(watch);
		if (hub_poll(watch->job->hub) < 0 &&
		    !watch_thread_is_over_within(&watch->thread, grace_seconds))
			watch_give_up(watch);
	}
	pthread_mutex_unlock(&watch->thread.lock);
	return NULL;
}

void bench_watch_begin(struct bench_watch *watch, struct bench_job *job, const char *what)
{
	*watch = (struct bench_watch){ .job = job, .what = what, .began_ns = clock_now_system() };
	/* Without a thread the call is simply not watched. */
	(void)watch_thread_begin(&watch->thread, keep_watch, watch);
}

void bench_watch_end(struct bench_watch *watch)
{
	watch_thread_end(&watch->thread);
}

enum {
	TABLE_BYTES = PATTERN_PERIOD * sizeof(uint64_t),
	TABLES = 5,
	TABLES_BYTES = TABLES * TABLE_BYTES + 64,
	ROOM_STEP = 1 << 20, /* whole MiB where memory is short */
};

/* NCCL needs memory for its channels, and every other process on the GPU for its context. */
static const double room_share = 0.85;

static int device_choose(struct bench_job *job)
{
	int gpus = 0;

	if (job_cuda(job, job->cuda.device_count(&gpus), "cuDeviceGetCount") < 0)
		return -1;
	if (gpus < 1)
		return job_fail(job,
				"CUDA found no GPU: check CUDA_VISIBLE_DEVICES and nvidia-smi");
	job->device_number = job->local_rank % gpus;
	return job_cuda(job, job->cuda.device_get(&job->device, job->device_number), "cuDeviceGet");
}

static int context_open(struct bench_job *job)
{
	if (job_cuda(job, job->cuda.primary_retain(&job->context, job->device),
		     "cuDevicePrimaryCtxRetain") < 0) {
		job->context = NULL;
		return -1;
	}
	if (job_cuda(job, job->cuda.context_set(job->context), "cuCtxSetCurrent") < 0)
		return -1;
	if (job_cuda(job, job->cuda.stream_create(&job->stream, CUDA_STREAM_NON_BLOCKING),
		     "cuStreamCreate") < 0) {
		job->stream = NULL;
		return -1;
	}
	return 0;
}

static bool is_crowded(const struct bench_job *job)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return true;
	/* NCCL's own threads need a CPU, too. */
	return 2 * job->local_ranks > CPU_COUNT(&set);
}

/* Whether each launch of a graph records its events again. Tested with a graph of events only. */
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

static int device_open(struct bench_job *job)
{
	const char *what = "";
	cuda_result result;

	job->is_crowded = is_crowded(job);
	if (device_choose(job) < 0 || context_open(job) < 0)
		return -1;
	result = kernels_load(&job->kernels, &job->cuda, &what);
	if (job_cuda(job, result, what) < 0 || device_events(job, 2) < 0)
		return -1;
	job->is_graph_timed = graph_is_timed(job);
	return 0;
}

/* Free memory now, for two buffers and the tables: the maximum size of one buffer. */
static int device_room(struct bench_job *job, uint64_t *room_bytes)
{
	size_t free_bytes = 0, total_bytes = 0;
	double room;

	if (job_cuda(job, job->cuda.memory_info(&free_bytes, &total_bytes), "cuMemGetInfo_v2") < 0)
		return -1;
	room = (double)free_bytes * room_share - TABLES_BYTES - 4.0 * JOB_GUARD_BYTES;
	*room_bytes = room > 0 ? (uint64_t)room / 2 : 0;
	return 0;
}

static int memory_take(struct bench_job *job, cuda_address *address, size_t bytes)
{
	if (job_cuda(job, job->cuda.memory_alloc(address, bytes), "cuMemAlloc_v2") == 0)
		return 0;
	*address = 0;
	return -1;
}

static int table_copy(struct bench_job *job, cuda_address to, const uint64_t *from)
{
	return job_cuda(job, job->cuda.copy_to_device(to, from, TABLE_BYTES), "cuMemcpyHtoD_v2");
}

static int device_memory_open(struct bench_job *job)
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
	pattern_move(job->pattern, 1);
	if (table_copy(job, tables->guard, job->pattern->input) < 0)
		return -1;
	result = job->cuda.memory_set(job->one, 0, 16, job->stream);
	if (result == 0)
		result = job->cuda.stream_wait(job->stream);
	return job_cuda(job, result, "cuMemsetD8Async") < 0 ? -1 : prove_check(job);
}

int device_events(struct bench_job *job, size_t count)
{
	if (job->events == NULL)
		job->events = calloc(JOB_EVENTS_MAX, sizeof(job->events[0]));
	if (job->events == NULL || count > JOB_EVENTS_MAX)
		return job_fail(job, "out of memory");
	for (; job->event_count < count; job->event_count++)
		if (job_cuda(job,
			     job->cuda.event_create(&job->events[job->event_count],
						    CUDA_EVENT_DEFAULT),
			     "cuEventCreate") < 0)
			return -1;
	return 0;
}

static void memory_give(struct bench_job *job, cuda_address *address)
{
	if (*address)
		(void)job->cuda.memory_free(*address);
	*address = 0;
}

static void device_close(struct bench_job *job)
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

enum { POLL_MS = 20, CAUSE_MS = 1000 };

int job_fail(struct bench_job *job, const char *format, ...)
{
	char problem[HUB_PROBLEM_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, sizeof(problem), format, arguments);
	va_end(arguments);
	/*
	 * The failure of another rank may be the cause of this one; then report that. If rank 0 is gone, another
	 * rank must know that in order to report anything.
	 */
	(void)hub_poll(job->hub);
	hub_fail(job->hub, problem);
	return -1;
}

int job_cuda(struct bench_job *job, cuda_result result, const char *what)
{
	char problem[HUB_PROBLEM_BYTES];

	if (result == 0)
		return 0;
	return job_fail(job, "%s",
			cuda_explain(&job->cuda, result, what, problem, sizeof(problem)));
}

/*
 * NCCL may notice that a peer is gone before the hub does. Give the cause a moment to arrive, so that the cause is
 * reported and not its consequences.
 */
static void wait_for_cause(struct bench_job *job)
{
	for (int waited = 0; waited < CAUSE_MS && hub_poll(job->hub) == 0; waited += POLL_MS)
		poll(NULL, 0, POLL_MS);
}

int job_nccl(struct bench_job *job, nccl_result result, const char *what)
{
	char problem[HUB_PROBLEM_BYTES];

	if (result == 0)
		return 0;
	wait_for_cause(job);
	return job_fail(job, "%s",
			nccl_explain(&job->nccl, result, what, problem, sizeof(problem)));
}

void job_note(struct bench_job *job, const char *format, ...)
{
	char note[BENCH_TEXT_BYTES];
	va_list arguments;

	if (job->run == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(note, sizeof(note), format, arguments);
	va_end(arguments);
	bench_run_note(job->run, "%s", note);
}

static int variable_keep(struct bench_job *job, struct job_variable *variable, const char *name)
{
	const char *value = getenv(name);

	variable->is_set = value != NULL;
	if (value && !text_copy(variable->value, sizeof(variable->value), value))
		return job_fail(job, "%s is longer than %zu bytes", name, sizeof(variable->value));
	return 0;
}

static void run_describe(struct bench_job *job)
{
	struct bench_run *run = job->run;
	const char *plugin = getenv("NCCL_PROFILER_PLUGIN");
	int version = 0;

	if (job->cuda.driver_version(&version) == 0)
		run->cuda_version = version;
	run->nccl_version = job->nccl.version;
	run->nranks = job->place->nranks;
	run->started_ns = clock_system_ns(CLOCK_REALTIME);
	text_copy(run->launcher, sizeof(run->launcher), job->place->launcher);
	text_copy(run->plugin, sizeof(run->plugin), plugin);
	text_copy(run->nccl_path, sizeof(run->nccl_path), job->nccl.path);
}

static int libraries_open(struct bench_job *job)
{
	char problem[HUB_PROBLEM_BYTES];
	const char *path = job->plan->nccl_path;

	if (cuda_open(&job->cuda, problem, sizeof(problem)) < 0) {
		job->cuda.library = NULL;
		return job_fail(job, "%s", problem);
	}
	if (nccl_open(&job->nccl, path[0] ? path : NULL, problem, sizeof(problem)) < 0)
		return job_fail(job, "%s", problem);
	return 0;
}

static void comm_close(struct bench_job *job)
{
	if (job->comm)
		(void)job->nccl.comm_destroy(job->comm);
	job->comm = NULL;
}

/* NCCL kernels may wait for a peer that is gone: only an abort ends them. */
static void comm_give_up(struct bench_job *job)
{
	if (job->comm)
		(void)job->nccl.comm_abort(job->comm);
	job->comm = NULL;
}

void bench_job_close(struct bench_job *job)
{
	bool has_failed;

	if (job == NULL)
		return;
	/*
	 * A failed job may have GPU operations that never end. An abort usually ends them; freeing their memory
	 * would wait for them, so process exit does that.
	 */
	has_failed = hub_problem(job->hub)[0] != '\0';
	if (has_failed)
		comm_give_up(job);
	comm_close(job);
	if (job->cuda.library && !has_failed)
		device_close(job);
	free(job->events);
	free(job->pattern);
	/* The libraries stay loaded: both have their own threads and handlers. */
	free(job);
}

static void variable_set(struct bench_job *job, const char *name, const char *value,
			 const struct job_variable *before)
{
	if (value)
		setenv(name, value, 1);
	else if (before->is_set) {
		setenv(name, before->value, 1);
		job_note(job, "measured with %s=%s set", name, before->value);
	} else
		unsetenv(name);
}

int job_agree(struct bench_job *job, int32_t state)
{
	int32_t *states = NULL, others = 0;

	if (job->place->rank == 0) {
		states = calloc((size_t)job->place->nranks, sizeof(*states));
		if (states == NULL)
			return job_fail(job, "out of memory");
	}
	if (hub_gather(job->hub, &state, sizeof(state), states) < 0) {
		free(states);
		return -1;
	}
	for (int i = 0; states && i < job->place->nranks; i++)
		others += states[i] != 0;
	free(states);
	return hub_share(job->hub, &others, sizeof(others)) < 0 ? -1 : others;
}

/*
 * If an algorithm does not support a function here, its first call is refused, not this one: see
 * bench_job_measure().
 */
static int comm_new(struct bench_job *job)
{
	struct nccl_unique_id id = { { 0 } };
	const char *what = "ncclGetUniqueId";
	struct bench_watch watch;
	nccl_result result = 0;
	int refused;

	if (job->place->rank == 0 && job_nccl(job, job->nccl.get_unique_id(&id), what) < 0)
		return -1;
	if (hub_share(job->hub, &id, sizeof(id)) < 0)
		return -1;
	what = "ncclCommInitRank";
	bench_watch_begin(&watch, job, what);
	result = job->nccl.comm_init(&job->comm, job->place->nranks, id, job->place->rank);
	bench_watch_end(&watch);
	if (result)
		job->comm = NULL;
	if (result && !job->is_forced)
		return job_nccl(job, result, what);
	refused = job_agree(job, (int32_t)result);
	if (refused > 0)
		comm_give_up(job);
	if (refused > 0 && !job->is_forced)
		return -1;
	return refused > 0 ? 1 : refused;
}

int bench_job_connect(struct bench_job *job, const char *algorithm, const char *protocol)
{
	comm_close(job);
	job->is_forced = algorithm || protocol;
	job->first_cell = job->run ? job->run->cell_count : 0;
	variable_set(job, "NCCL_ALGO", algorithm, &job->algorithm);
	variable_set(job, "NCCL_PROTO", protocol, &job->protocol);
	return comm_new(job);
}

/*
 * Polls the GPU instead of calling cuStreamSynchronize(), which would wait forever if a peer died. Tight polling at
 * first keeps host times accurate; after that, NCCL and the hub are checked every few milliseconds for failures.
 */

enum { FIRST_LOOK_NS = 2000000, LOOK_NS = 5000000 };

static int look_around(const struct job_cell *work)
{
	struct bench_job *job = work->job;
	nccl_result error = 0, result;

	if (hub_poll(job->hub) < 0) {
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

/* " with rank 3", if the cell has pairs. */
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
	(void)job_fail(job, "%s of %s%s did not return within %llu s",
		       op_function_name(work->cell.function), units_bytes(size, work->layout.bytes),
		       partner_of(work, partner, sizeof(partner)),
		       (unsigned long long)(waited_ns / 1000000000));
	comm_give_up(job);
	return -1;
}

int wait_stream(const struct job_cell *work, uint64_t calls)
{
	struct bench_job *job = work->job;
	uint64_t begin_ns = clock_now_system(), look_ns = begin_ns + FIRST_LOOK_NS;

	for (;;) {
		cuda_result result = job->cuda.stream_query(job->stream);
		uint64_t now_ns;

		if (result == 0)
			return 0;
		if (result != CUDA_NOT_READY)
			return job_cuda(job, result, op_function_name(work->cell.function));
		if (job->is_crowded)
			sched_yield();
		now_ns = clock_now_system();
		if (now_ns < look_ns)
			continue;
		look_ns = now_ns + LOOK_NS;
		if (look_around(work) < 0 || is_too_long(work, now_ns - begin_ns, calls) < 0)
			return -1;
	}
}

/*
 * Before the calls: everything to be received is filled with wrong values, then the inputs are written (in place
 * they are in the same buffer), and guards around the receive buffer. After: the received parts, the guards and the
 * unchanged send buffer are checked.
 */

enum { GUARDS = 2 };

/* The tables of this cell; usually the same as for the previous one. */
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
		return job_fail(job, "no expected results for %s of %s",
				bench_redop_name(cell->redop), op_datatype_name(cell->datatype));
	if (table_copy(job, tables->input, job->pattern->input) < 0 ||
	    table_copy(job, tables->low, job->pattern->low) < 0 ||
	    table_copy(job, tables->high, job->pattern->high) < 0 ||
	    table_copy(job, tables->poison, job->pattern->poison) < 0)
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

/* Immediately before and after this cell's part of the receive buffer. */
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

/* Fills the span with the values in `low`, or counts the elements outside [low, high]. */
static cuda_result span_visit(struct bench_job *job, const struct kernel_span *span, bool is_check,
			      cuda_address low, cuda_address high)
{
	if (is_check)
		return kernels_check(&job->kernels, &job->cuda, job->stream, span, low, high,
				     job->tables.counter);
	return kernels_fill(&job->kernels, &job->cuda, job->stream, span, low);
}

static cuda_result spans_visit(struct job_cell *work, bool is_check)
{
	struct bench_job *job = work->job;
	const struct job_tables *tables = &job->tables;
	const struct bench_cell *cell = &work->cell;
	int rank = job->place->rank;
	struct kernel_span span;
	struct layout_part part;
	cuda_result result = 0;

	for (int i = 0; i < GUARDS && result == 0; i++) {
		span = guard_of(work, i);
		result = span_visit(job, &span, is_check, tables->guard, tables->guard);
	}
	for (int i = 0; result == 0 && layout_expected(&work->layout, cell, rank, i, &part); i++) {
		span = span_of(work, job->recv_memory, &part);
		result = span_visit(job, &span, is_check, is_check ? tables->low : tables->poison,
				    tables->high);
	}
	/* In place, the results have replaced the inputs. */
	if (result == 0 && !(is_check && cell->is_in_place) &&
	    layout_input(&work->layout, cell, rank, &part)) {
		span = span_of(work, cell->is_in_place ? job->recv_memory : job->send_memory,
			       &part);
		result = span_visit(job, &span, is_check, tables->input, tables->input);
	}
	return result;
}

int fill_buffers(struct job_cell *work)
{
	if (tables_make(work->job, &work->cell) < 0 ||
	    job_cuda(work->job, spans_visit(work, false), "cuLaunchKernel of " KERNEL_FILL) < 0)
		return -1;
	return wait_stream(work, 0);
}

static int counter_clear(struct bench_job *job)
{
	return job_cuda(job,
			job->cuda.memory_set(job->tables.counter, 0, sizeof(uint64_t), job->stream),
			"cuMemsetD8Async");
}

static int counter_read(struct bench_job *job, uint64_t *wrong)
{
	return job_cuda(job, job->cuda.copy_to_host(wrong, job->tables.counter, sizeof(*wrong)),
			"cuMemcpyDtoH_v2");
}

int fill_check(struct job_cell *work, uint64_t *wrong)
{
	struct bench_job *job = work->job;

	if (counter_clear(job) < 0 ||
	    job_cuda(job, spans_visit(work, true), "cuLaunchKernel of " KERNEL_CHECK) < 0 ||
	    wait_stream(work, 0) < 0)
		return -1;
	return counter_read(job, wrong);
}

/*
 * If no errors are found, are the results right or is the check broken? Before measuring, the check must find no
 * error in a buffer it filled itself, and every single one when it expects the neighbouring values.
 */

/* Fits into the two guards of a buffer, at 8 bytes each; the phase makes it wrap around the end of the table. */
enum { ELEMENTS = 1000, PHASE = 8000 };

static uint64_t pattern_differences(const struct bench_pattern *pattern)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < ELEMENTS; i++)
		count += pattern->input[pattern_advance(PHASE, i)] !=
			 pattern->input[pattern_advance(PHASE + 1, i)];
	return count;
}

static int check_count(struct bench_job *job, const struct kernel_span *span, uint64_t *wrong)
{
	cuda_address guard = job->tables.guard;

	if (counter_clear(job) < 0 ||
	    job_cuda(job, span_visit(job, span, true, guard, guard),
		     "cuLaunchKernel of " KERNEL_CHECK) < 0 ||
	    job_cuda(job, job->cuda.stream_wait(job->stream), KERNEL_CHECK) < 0)
		return -1;
	return counter_read(job, wrong);
}

/*
 * Whether filling and checking work on this GPU. Fails if correct values are reported as wrong or wrong ones as
 * correct. job->pattern is the guards' table.
 */
static int prove_check(struct bench_job *job)
{
	uint64_t right = 0, wrong = 0, wanted = pattern_differences(job->pattern);

	for (uint32_t element_bytes = 1; element_bytes <= 8; element_bytes *= 2) {
		struct kernel_span span = {
			.buffer = job->recv_memory,
			.count = ELEMENTS,
			.element_bytes = element_bytes,
			.period = PATTERN_PERIOD,
			.phase = PHASE,
			.blocks =
				1, /* fewer threads than elements, so that the loop is tested, too */
		};

		if (job_cuda(job,
			     span_visit(job, &span, false, job->tables.guard, job->tables.guard),
			     "cuLaunchKernel of " KERNEL_FILL) < 0 ||
		    check_count(job, &span, &right) < 0)
			return -1;
		span.phase++;
		if (check_count(job, &span, &wrong) < 0)
			return -1;
		if (right != 0 || wrong != wanted)
			return job_fail(
				job,
				"cannot check results on this GPU: of %d elements of %u bytes, "
				"%llu were reported wrong where none is, and %llu where %llu are",
				ELEMENTS, element_bytes, (unsigned long long)right,
				(unsigned long long)wrong, (unsigned long long)wanted);
	}
	return 0;
}

/* Identities of all ranks: each fills a card, rank 0 gathers them and distributes the conclusions. */

enum { ATTRIBUTE_MAJOR = 75, BOOT_ID_BYTES = 40 };
#define MPS_DIRECTORY "/tmp/nvidia-mps"

struct rank_card {
	struct bench_rank rank;
	char boot_id[BOOT_ID_BYTES]; /* different hosts may have the same name */
	uint64_t room_bytes;
	int32_t major;
	int32_t is_mps;
	int32_t nccl_version;
};

/* What all ranks must agree on. */
struct rank_verdict {
	int32_t sharers;
	int32_t least_major;
	uint64_t room_bytes;
};

static void boot_id_read(char boot_id[BOOT_ID_BYTES])
{
	(void)file_read_text("/proc/sys/kernel/random/boot_id", boot_id, BOOT_ID_BYTES);
	boot_id[strcspn(boot_id, "\n")] = '\0';
}

static uint64_t machine_number(void)
{
	char text[256 + BOOT_ID_BYTES], boot_id[BOOT_ID_BYTES], host[256] = "";

	if (gethostname(host, sizeof(host) - 1) == -1)
		host[0] = '\0';
	boot_id_read(boot_id);
	text_format(text, sizeof(text), "%s %s", host, boot_id);
	return hash_bytes(text, strlen(text));
}

/* The index of each rank on its host. */
static int ranks_count(struct bench_job *job)
{
	const struct bench_place *place = job->place;
	size_t nranks = (size_t)place->nranks;
	uint64_t machine = machine_number(), *machines = calloc(nranks, sizeof(*machines));
	int status = -1;

	if (machines == NULL)
		return job_fail(job, "out of memory for %d ranks", place->nranks);
	if (hub_gather(job->hub, &machine, sizeof(machine), machines) == 0 &&
	    hub_share(job->hub, machines, nranks * sizeof(*machines)) == 0)
		status = 0;
	for (size_t i = 0; status == 0 && i < nranks; i++) {
		bool is_here = machines[i] == machine;

		job->local_rank += is_here && i < (size_t)place->rank;
		job->local_ranks += is_here;
	}
	if (place->local_rank >= 0)
		job->local_rank = place->local_rank;
	free(machines);
	return status;
}

static bool is_mps_here(const struct bench_place *place)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[4096];

	if (place->is_mps)
		return true;
	if (directory == NULL || directory[0] == '\0')
		directory = MPS_DIRECTORY;
	return text_format(path, sizeof(path), "%s/control", directory) && access(path, F_OK) == 0;
}

static void uuid_write(char *text, size_t size, const struct cuda_uuid *uuid)
{
	const unsigned char *b = uuid->bytes;

	text_format(text, size,
		    "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		    b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		    b[13], b[14], b[15]);
}

static int gpu_describe(struct bench_job *job, struct rank_card *card)
{
	struct bench_rank *rank = &card->rank;
	const struct cuda *cuda = &job->cuda;
	struct cuda_uuid uuid;
	size_t bytes = 0;
	int major = 0;

	if (job_cuda(job, cuda->device_name(rank->gpu_name, sizeof(rank->gpu_name), job->device),
		     "cuDeviceGetName") < 0 ||
	    job_cuda(job, cuda->device_uuid(&uuid, job->device), "cuDeviceGetUuid") < 0 ||
	    job_cuda(job, cuda->device_pci(rank->pci, sizeof(rank->pci), job->device),
		     "cuDeviceGetPCIBusId") < 0 ||
	    job_cuda(job, cuda->device_memory(&bytes, job->device), "cuDeviceTotalMem_v2") < 0 ||
	    job_cuda(job, cuda->device_attribute(&major, ATTRIBUTE_MAJOR, job->device),
		     "cuDeviceGetAttribute") < 0)
		return -1;
	uuid_write(rank->gpu_uuid, sizeof(rank->gpu_uuid), &uuid);
	rank->memory_bytes = bytes;
	card->major = major;
	return 0;
}

static int card_write(struct bench_job *job, struct rank_card *card)
{
	char host[256] = "";

	memset(card, 0, sizeof(*card));
	if (gethostname(host, sizeof(host) - 1) == -1)
		text_copy(host, sizeof(host), "?");
	text_copy(card->rank.host, sizeof(card->rank.host), host);
	boot_id_read(card->boot_id);
	card->rank.device = job->device_number;
	card->rank.pid = (int32_t)getpid();
	card->is_mps = is_mps_here(job->place);
	card->nccl_version = job->nccl.version;
	if (gpu_describe(job, card) < 0)
		return -1;
	/* All contexts must exist before free memory is queried. */
	if (hub_meet(job->hub) < 0)
		return -1;
	return device_room(job, &card->room_bytes);
}

static bool is_same_machine(const struct rank_card *a, const struct rank_card *b)
{
	return strcmp(a->rank.host, b->rank.host) == 0 && strcmp(a->boot_id, b->boot_id) == 0;
}

static int sharers_of(const struct rank_card *cards, int nranks, int rank)
{
	int sharers = 0;

	for (int i = 0; i < nranks; i++)
		sharers += is_same_machine(&cards[i], &cards[rank]) &&
			   strcmp(cards[i].rank.gpu_uuid, cards[rank].rank.gpu_uuid) == 0;
	return sharers;
}

static void machines_number(struct bench_run *run, const struct rank_card *cards, int nranks)
{
	run->nodes = 0;
	for (int i = 0; i < nranks; i++) {
		int first = 0;

		while (!is_same_machine(&cards[first], &cards[i]))
			first++;
		run->ranks[i].node = first == i ? run->nodes++ : run->ranks[first].node;
	}
}

static void sharing_note(struct bench_job *job, const struct rank_verdict *verdict, bool is_mps)
{
	if (verdict->sharers < 2)
		return;
	job->run->is_gpu_shared = true;
	job->run->is_mps = is_mps;
	job_note(job,
		 "%d ranks share one GPU and communicate over loopback sockets; this does not "
		 "measure NVLink or the network",
		 verdict->sharers);
	if (is_mps)
		job_note(job, "MPS is running: kernels of these ranks run concurrently");
	else
		job_note(job, "MPS is not running: kernels of these ranks are time-sliced, a few "
			      "milliseconds each");
}

static int verdict_find(struct bench_job *job, const struct rank_card *cards,
			struct rank_verdict *verdict)
{
	int nranks = job->place->nranks;
	bool is_mps = true;

	*verdict = (struct rank_verdict){ .least_major = cards[0].major, .room_bytes = UINT64_MAX };
	if (bench_run_set_ranks(job->run, nranks) != OK)
		return job_fail(job, "out of memory for %d ranks", nranks);
	for (int i = 0; i < nranks; i++) {
		int sharers = sharers_of(cards, nranks, i);
		uint64_t room = cards[i].room_bytes / (uint64_t)sharers;

		job->run->ranks[i] = cards[i].rank;
		is_mps = is_mps && cards[i].is_mps;
		if (sharers > verdict->sharers)
			verdict->sharers = sharers;
		if (room < verdict->room_bytes)
			verdict->room_bytes = room;
		if (cards[i].major < verdict->least_major)
			verdict->least_major = cards[i].major;
		if (cards[i].nccl_version != cards[0].nccl_version)
			return job_fail(job, "rank %d has NCCL %d and rank 0 has %d", i,
					cards[i].nccl_version, cards[0].nccl_version);
	}
	machines_number(job->run, cards, nranks);
	sharing_note(job, verdict, is_mps);
	return 0;
}

static uint64_t largest_size(const struct bench_plan *plan)
{
	uint64_t most = 0;

	for (size_t i = 0; i < plan->size_count; i++)
		if (plan->sizes[i] > most)
			most = plan->sizes[i];
	return most;
}

static void verdict_take(struct bench_job *job, const struct rank_verdict *verdict)
{
	uint64_t most = largest_size(job->plan);
	char size[UNITS_TEXT];

	job->sharers = verdict->sharers;
	job->least_major = verdict->least_major;
	job->room_bytes = most < verdict->room_bytes ? most : verdict->room_bytes;
	if (job->room_bytes < most)
		job_note(job,
			 "buffers are limited to %s: not enough free GPU memory for two larger "
			 "ones per rank",
			 units_bytes(size, job->room_bytes));
	if (job->sharers > 1 && !job->place->is_gpu_shared)
		bench_share_environment(job->place->rank, job->sharers);
}

/* Fills run's ranks, sharers and least_major on all ranks. */
static int ranks_meet(struct bench_job *job)
{
	struct rank_card card, *cards = NULL;
	struct rank_verdict verdict = { 0 };
	int status = -1;

	if (card_write(job, &card) < 0)
		return -1;
	if (job->run) {
		cards = calloc((size_t)job->place->nranks, sizeof(*cards));
		if (cards == NULL)
			return job_fail(job, "out of memory for %d ranks", job->place->nranks);
	}
	if (hub_gather(job->hub, &card, sizeof(card), cards) < 0)
		goto out;
	if (job->run && verdict_find(job, cards, &verdict) < 0)
		goto out;
	if (hub_share(job->hub, &verdict, sizeof(verdict)) < 0)
		goto out;
	verdict_take(job, &verdict);
	status = 0;
out:
	free(cards);
	return status;
}

int bench_job_open(struct bench_job **job, const struct bench_place *place, struct bench_hub *hub,
		   const struct bench_plan *plan, struct bench_run *run)
{
	struct bench_job *new = calloc(1, sizeof(*new));

	*job = NULL;
	if (new == NULL) {
		hub_fail(hub, "out of memory");
		return -1;
	}
	new->place = place;
	new->hub = hub;
	new->plan = plan;
	new->run = place->rank == 0 ? run : NULL;
	if (variable_keep(new, &new->algorithm, "NCCL_ALGO") < 0 ||
	    variable_keep(new, &new->protocol, "NCCL_PROTO") < 0 || libraries_open(new) < 0 ||
	    ranks_count(new) < 0 || device_open(new) < 0 || ranks_meet(new) < 0 ||
	    device_memory_open(new) < 0) {
		bench_job_close(new);
		return -1;
	}
	if (new->run)
		run_describe(new);
	*job = new;
	return 0;
}
