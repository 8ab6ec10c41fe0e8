/*
 * The order on every rank is warm-up, measured calls, then the checks (bench_job.c). Rank 0 decides how many calls
 * there are and informs the others between calls, never within a measured time.
 */
#include "bench/bench_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "recording/recording.h"

/* Where this rank's data is in this cell. */
struct issue_place {
	const char *send;
	char *recv;
	uint64_t part_bytes; /* distance between the parts of two ranks */
	nccl_type type;
	nccl_op op;
};

static void *pointer_of(cuda_address address)
{
	return (void *)(uintptr_t)address;
}

static struct issue_place place_of(const struct job_cell *work)
{
	const struct bench_job *job = work->job;
	uint64_t element_bytes = op_datatype_bytes(work->cell.datatype);
	cuda_address recv = job->recv_memory + JOB_GUARD_BYTES;
	cuda_address send = work->cell.is_in_place ? recv : job->send_memory + JOB_GUARD_BYTES;

	return (struct issue_place){
		.send = pointer_of(send + work->layout.send_at * element_bytes),
		.recv = pointer_of(recv + work->layout.recv_at * element_bytes),
		.part_bytes = work->layout.count * element_bytes,
		.type = nccl_type_of(&job->nccl, work->cell.datatype),
		.op = nccl_op_of(work->cell.redop),
	};
}

static bool issue_is_grouped(const struct bench_job *job, uint8_t function)
{
	switch (function) {
	case OP_ALL_TO_ALL:
		return job->nccl.all_to_all == NULL;
	case OP_GATHER:
		return job->nccl.gather == NULL;
	case OP_SCATTER:
		return job->nccl.scatter == NULL;
	default:
		return false;
	}
}

static nccl_result send_to(const struct job_cell *work, const struct issue_place *place, int peer,
			   uint64_t offset)
{
	const struct bench_job *job = work->job;

	return job->nccl.send(place->send + offset, work->layout.count, place->type, peer,
			      job->comm, job->stream);
}

static nccl_result recv_from(const struct job_cell *work, const struct issue_place *place, int peer,
			     uint64_t offset)
{
	const struct bench_job *job = work->job;

	return job->nccl.recv(place->recv + offset, work->layout.count, place->type, peer,
			      job->comm, job->stream);
}

/* Sends and receives a part to and from every rank, as the function requires. */
static nccl_result parts_move(const struct job_cell *work, const struct issue_place *place)
{
	const struct bench_cell *cell = &work->cell;
	int rank = work->job->place->rank, root = cell->root;
	nccl_result result = 0;

	for (int peer = 0; peer < cell->nranks && result == 0; peer++) {
		uint64_t at = (uint64_t)peer * place->part_bytes;
		bool sends = cell->function == OP_ALL_TO_ALL ||
			     (cell->function == OP_SCATTER && rank == root);
		bool receives = cell->function == OP_ALL_TO_ALL ||
				(cell->function == OP_GATHER && rank == root);

		if (sends)
			result = send_to(work, place, peer, at);
		if (receives && result == 0)
			result = recv_from(work, place, peer, at);
	}
	if (cell->function == OP_GATHER && result == 0)
		result = send_to(work, place, root, 0);
	if (cell->function == OP_SCATTER && result == 0)
		result = recv_from(work, place, root, 0);
	return result;
}

static nccl_result issue_exchange(const struct job_cell *work, const struct issue_place *place)
{
	int rank = work->job->place->rank;
	nccl_result result;

	result = send_to(work, place, layout_send_peer(&work->cell, rank), 0);
	if (result == 0)
		result = recv_from(work, place, layout_recv_peer(&work->cell, rank), 0);
	return result;
}

static nccl_result issue_group(const struct job_cell *work, const struct issue_place *place,
			       const char **what)
{
	const struct nccl *nccl = &work->job->nccl;
	nccl_result result, end;

	*what = "ncclGroupStart";
	result = nccl->group_start();
	if (result)
		return result;
	*what = "ncclSend or ncclRecv";
	result = work->cell.function == OP_SEND_RECV ? issue_exchange(work, place)
						     : parts_move(work, place);
	end = nccl->group_end();
	if (result)
		return result;
	*what = "ncclGroupEnd";
	return end;
}

static nccl_result issue_collective(const struct job_cell *work, const struct issue_place *p,
				    const char **what)
{
	const struct bench_job *job = work->job;
	const struct nccl *nccl = &job->nccl;
	uint64_t count = work->layout.count;
	int root = work->cell.root;

	*what = op_function_name(work->cell.function);
	switch (work->cell.function) {
	case OP_ALL_REDUCE:
		return nccl->all_reduce(p->send, p->recv, count, p->type, p->op, job->comm,
					job->stream);
	case OP_ALL_GATHER:
		return nccl->all_gather(p->send, p->recv, count, p->type, job->comm, job->stream);
	case OP_REDUCE_SCATTER:
		return nccl->reduce_scatter(p->send, p->recv, count, p->type, p->op, job->comm,
					    job->stream);
	case OP_BROADCAST:
		return nccl->broadcast(p->send, p->recv, count, p->type, root, job->comm,
				       job->stream);
	case OP_REDUCE:
		return nccl->reduce(p->send, p->recv, count, p->type, p->op, root, job->comm,
				    job->stream);
	case OP_ALL_TO_ALL:
		return nccl->all_to_all(p->send, p->recv, count, p->type, job->comm, job->stream);
	case OP_GATHER:
		return nccl->gather(p->send, p->recv, count, p->type, root, job->comm, job->stream);
	default:
		return nccl->scatter(p->send, p->recv, count, p->type, root, job->comm,
				     job->stream);
	}
}

/* Makes this cell's call on this rank; *what is the function that failed. */
static nccl_result issue_call(const struct job_cell *work, const char **what)
{
	struct issue_place place = place_of(work);

	if (!work->takes_part)
		return 0;
	if (work->cell.function == OP_SEND_RECV || issue_is_grouped(work->job, work->cell.function))
		return issue_group(work, &place, what);
	return issue_collective(work, &place, what);
}

/* An AllReduce of one element. */
static nccl_result issue_align(const struct bench_job *job, const char **what)
{
	void *one = pointer_of(job->one);

	*what = "AllReduce of one element";
	return job->nccl.all_reduce(one, one, 1, nccl_type_of(&job->nccl, OP_INT32),
				    nccl_op_of(BENCH_MAX), job->comm, job->stream);
}

enum { BLOCK_CALLS = JOB_EVENTS_MAX - 1 };

static int call_issue(struct job_cell *work)
{
	const char *what = "";
	nccl_result result = issue_call(work, &what);

	return result ? job_nccl(work->job, result, what) : 0;
}

/* One call, completed, not recorded. */
static int measure_unmeasured(struct job_cell *work)
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

	if (job_cuda(job, job->cuda.event_elapsed(&ms, job->events[index], job->events[index + 1]),
		     "cuEventElapsedTime") < 0)
		return -1;
	*ns = ms > 0 ? (uint64_t)((double)ms * 1e6 + 0.5) : 0;
	return 0;
}

static int measure_align(struct job_cell *work)
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

/* One aligned call, completed; its times in *call. */
static int measure_one(struct job_cell *work, struct bench_call *call)
{
	struct bench_job *job = work->job;
	uint64_t begin_ns, issued_ns;

	if (measure_align(work) < 0)
		return -1;
	call->begin_ns = clock_system_ns(CLOCK_REALTIME);
	if (event_put(job, 0) < 0)
		return -1;
	begin_ns = clock_now_system();
	if (call_issue(work) < 0)
		return -1;
	issued_ns = clock_now_system();
	if (event_put(job, 1) < 0 || wait_stream(work, 1) < 0)
		return -1;
	call->done_ns = clock_now_system() - begin_ns;
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

		calls[i].begin_ns = clock_system_ns(CLOCK_REALTIME);
		begin_ns = clock_now_system();
		if (call_issue(work) < 0)
			return -1;
		calls[i].issue_ns = clock_now_system() - begin_ns;
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

/* As nccl-tests measures: one clock around all calls and their completion. */
static int measure_loop(struct job_cell *work)
{
	uint64_t begin_ns;

	if (hub_meet(work->job->hub) < 0)
		return -1;
	begin_ns = clock_now_system();
	for (uint32_t i = 0; i < work->cell.calls; i++)
		if (call_issue(work) < 0)
			return -1;
	if (wait_stream(work, work->cell.calls) < 0)
		return -1;
	work->cell.loop_ns = (clock_now_system() - begin_ns) / work->cell.calls;
	return 0;
}

/* The first call of a cell: NCCL refuses an unsupported algorithm here and not earlier. */
static int first_call(struct job_cell *work)
{
	struct bench_job *job = work->job;
	const char *what = "";
	struct bench_watch watch;
	nccl_result result;
	int refused;

	bench_watch_begin(&watch, job, "the first call, which sets up connections,");
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
			"%s was refused by %d of %d ranks: NCCL_ALGO or NCCL_PROTO differ between "
			"ranks",
			op_function_name(work->cell.function), refused, job->place->nranks);
}

/* Calls in the cell's mode, without times. */
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

/* Keeps the minimum: one slow call must not reduce the number of calls. */
static void measure_expect(struct job_cell *work, double call_ns)
{
	if (work->expected_ns <= 0 || call_ns < work->expected_ns)
		work->expected_ns = call_ns;
}

/* Warm-up calls, timed. */
static int warm_timed(struct job_cell *work, uint32_t count)
{
	uint64_t begin_ns = clock_now_system();

	if (warm_more(work, count) < 0)
		return -1;
	measure_expect(work, (double)(clock_now_system() - begin_ns) / count);
	return 0;
}

/* The remaining warm-up calls; rank 0 decides how many. */
static int warm_rest(struct job_cell *work)
{
	struct bench_job *job = work->job;
	uint32_t more =
		budget_warmups(job->plan, work->cell.warmups, work->expected_ns, work->expected_ns);

	if (hub_share(job->hub, &more, sizeof(more)) < 0)
		return -1;
	return more ? warm_timed(work, more) : 0;
}

/*
 * The first call sets up connections and can take a thousand times longer than the next: nothing is planned from
 * it, and it does not count against the time budget. A graph has its own warm-up, but connections must not be set
 * up during capture, and the number of calls per graph must be known.
 */
static int warm_up(struct job_cell *work)
{
	const struct bench_plan *plan = work->job->plan;
	uint64_t begin_ns = clock_now_system();
	bool is_graph = work->cell.mode == BENCH_GRAPH, is_budget = plan->seconds > 0;
	int status;

	if (plan->warmups == 0 && !is_budget && !work->job->is_forced && !is_graph)
		return 0;
	status = first_call(work);
	if (status != 0)
		return status;
	work->cell.warmups = 1;
	work->expected_ns = (double)(clock_now_system() - begin_ns);
	if ((is_budget || (plan->warmups > 1 && !is_graph)) && warm_timed(work, 1) < 0)
		return -1;
	return is_graph ? 0 : warm_rest(work);
}

/* Sets the number of measured calls from the time of one call; same on all ranks afterwards. */
static int measure_plan_calls(struct job_cell *work, double call_ns)
{
	struct bench_job *job = work->job;
	struct {
		double call_ns;
		uint32_t calls;
	} said = { call_ns, budget_calls(job->plan, call_ns, job->place->nranks) };

	if (said.calls == budget_calls_limit(job->place->nranks) && said.calls != job->plan->calls)
		job_note(job, "at most %u calls are measured per cell", said.calls);
	if (hub_share(job->hub, &said, sizeof(said)) < 0)
		return -1;
	work->cell.calls = said.calls;
	work->expected_ns = said.call_ns;
	return 0;
}

static int measure_calls_alloc(struct job_cell *work)
{
	work->calls = calloc(work->cell.calls, sizeof(*work->calls));
	return work->calls ? 0 : job_fail(work->job, "out of memory");
}

/*
 * Calls in a CUDA graph. Events between the calls are recorded inside the graph by each launch, so every replayed
 * call has its own time:
 *
 *	event 0 | call | event 1 | call | event 2 ...
 *
 * If the driver does not support this, the time of the launch is divided by the calls, with a note.
 */

struct graph {
	struct CUgraph_st *graph;
	struct CUgraphExec_st *exec;
	uint32_t calls; /* per graph */
};

static int graph_event(struct job_cell *work, uint32_t index)
{
	struct bench_job *job = work->job;

	if (!job->is_graph_timed)
		return 0;
	return job_cuda(job,
			job->cuda.event_record_flags(job->events[index], job->stream,
						     CUDA_EVENT_RECORD_EXTERNAL),
			"cuEventRecordWithFlags");
}

static int graph_calls(struct job_cell *work, uint32_t count)
{
	if (graph_event(work, 0) < 0)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		if (call_issue(work) < 0 || graph_event(work, i + 1) < 0)
			return -1;
	return 0;
}

static int graph_capture(struct job_cell *work, struct graph *graph)
{
	struct bench_job *job = work->job;
	cuda_result result;
	int status;

	if (job_cuda(job, job->cuda.capture_begin(job->stream, CUDA_CAPTURE_THREAD_LOCAL),
		     "cuStreamBeginCapture_v2") < 0)
		return -1;
	status = graph_calls(work, graph->calls);
	result = job->cuda.capture_end(job->stream, &graph->graph);
	if (status < 0 || job_cuda(job, result, "cuStreamEndCapture") < 0)
		return -1;
	return job_cuda(job, job->cuda.graph_instantiate(&graph->exec, graph->graph, 0),
			"cuGraphInstantiateWithFlags");
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
		/* Below 0 only if the driver is wrong: unknown. */
		calls[i].gpu_ns = units_whole((double)ms * 1e6 * parts / count + 0.5);
	}
	return 0;
}

static int graph_launch(struct job_cell *work, const struct graph *graph, struct bench_call *calls)
{
	struct bench_job *job = work->job;
	uint64_t wall_ns, begin_ns, issued_ns;
	cuda_result result;

	/* Around the launch, if events inside the graph are not supported. */
	if (measure_align(work) < 0 || (!job->is_graph_timed && event_put(job, 0) < 0))
		return -1;
	wall_ns = clock_system_ns(CLOCK_REALTIME);
	begin_ns = clock_now_system();
	result = job->cuda.graph_launch(graph->exec, job->stream);
	if (result)
		return job_cuda(job, result, "cuGraphLaunch");
	issued_ns = (clock_now_system() - begin_ns) / graph->calls;
	if ((!job->is_graph_timed && event_put(job, 1) < 0) || wait_stream(work, graph->calls) < 0)
		return -1;
	if (calls == NULL || !work->takes_part)
		return 0;
	for (uint32_t i = 0; i < graph->calls; i++) {
		calls[i].begin_ns = wall_ns;
		calls[i].issue_ns = issued_ns;
	}
	return times_take(work, calls, graph->calls);
}

/* Launches the graph repeatedly and returns the time per call. */
static int graph_launches(struct job_cell *work, const struct graph *graph, uint32_t count)
{
	uint64_t begin_ns = clock_now_system();

	for (uint32_t i = 0; i < count; i++)
		if (graph_launch(work, graph, NULL) < 0)
			return -1;
	work->cell.warmups += count * graph->calls;
	measure_expect(work,
		       (double)(clock_now_system() - begin_ns) / ((double)count * graph->calls));
	return 0;
}

/*
 * Warm-up launches. The first one uploads the graph to the GPU, so the time budget is planned from a second one,
 * unless launches take long.
 */
static int graph_warm(struct job_cell *work, const struct graph *graph)
{
	const struct bench_plan *plan = work->job->plan;
	uint64_t begin_ns = clock_now_system();
	uint32_t launches = (plan->warmups + graph->calls - 1) / graph->calls, more;

	if (graph_launches(work, graph, 1) < 0)
		return -1;
	if (plan->seconds > 0 && launches < 2)
		launches = 2;
	if (plan->seconds > 0 && (double)(clock_now_system() - begin_ns) > plan->seconds * 1e9 / 4)
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

/* As the plan says, limited by the calls to measure, the number of events, and a quarter of the time budget. */
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

static int measure_graph(struct job_cell *work)
{
	struct bench_job *job = work->job;
	struct graph graph = { .calls = graph_size(work) };
	int status;

	if (hub_share(job->hub, &graph.calls, sizeof(graph.calls)) < 0)
		return -1;
	if (device_events(job, (size_t)graph.calls + 1) < 0)
		return -1;
	if (!job->is_graph_timed)
		job_note(job,
			 "this CUDA does not record events inside graphs: the time of a graph "
			 "is divided by its calls, and single calls have no times of their own");
	status = graph_capture(work, &graph);
	if (status == 0)
		status = graph_run(work, &graph);
	graph_release(job, &graph);
	return status;
}

/*
 * Warms up and measures in cell.mode: sets cell.warmups, calls, aligns, captured, loop_ns (of this rank), and
 * work->calls. 1: NCCL refused the first call on all ranks, with a forced algorithm or protocol.
 */
static int measure_cell(struct job_cell *work)
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

/*
 * NCCL's choice, from our own plugin: if it is loaded into this process, its region has the latest operations with
 * their algorithm and protocol. Takes the most frequent pair for each cell's function, size and type on the newest
 * communicator.
 */

struct choice {
	uint32_t counts[OP_ALGORITHMS][OP_PROTOCOLS];
};

struct choices {
	struct bench_cell *cells;
	struct choice *list; /* one per cell */
	size_t count;
	uint32_t comm; /* the newest one with operations */
};

static bool cell_fits(const struct bench_cell *cell, const struct op_record *op)
{
	if (cell->function != op->function || cell->bytes != op->bytes)
		return false;
	return op->datatype == OP_DATATYPE_UNKNOWN || op->datatype == cell->datatype;
}

static bool op_count(const struct op_record *op, enum recording_place place, void *context)
{
	struct choices *choices = context;

	(void)place;
	if (op->algorithm == OP_ALGORITHM_UNKNOWN || op->algorithm >= OP_ALGORITHMS ||
	    op->protocol >= OP_PROTOCOLS || op->comm < choices->comm)
		return true;
	if (op->comm > choices->comm) {
		choices->comm = op->comm;
		memset(choices->list, 0, choices->count * sizeof(*choices->list));
	}
	for (size_t i = 0; i < choices->count; i++)
		if (cell_fits(&choices->cells[i], op))
			choices->list[i].counts[op->algorithm][op->protocol]++;
	return true;
}

static void choice_take(const struct choice *choice, struct bench_cell *cell)
{
	uint32_t most = 0;

	for (uint8_t algorithm = 0; algorithm < OP_ALGORITHMS; algorithm++)
		for (uint8_t protocol = 0; protocol < OP_PROTOCOLS; protocol++)
			if (choice->counts[algorithm][protocol] > most) {
				most = choice->counts[algorithm][protocol];
				cell->chosen_algorithm = algorithm;
				cell->chosen_protocol = protocol;
			}
}

static void region_read(struct choices *choices)
{
	struct recording recording;
	char path[32];

	recording_init(&recording);
	recording.directory = getenv("RINGSIDE_SHM");
	text_format(path, sizeof(path), "@%d", (int)getpid());
	if (recording_add(&recording, path, 0) == OK && recording_finish(&recording) == OK)
		for (size_t i = 0; i < recording.count; i++)
			(void)recording_each_op(recording.processes[i], op_count, choices, NULL);
	recording_release(&recording);
}

void bench_job_choices(struct bench_job *job)
{
	struct bench_run *run = job->run;
	struct choices choices = { 0 };

	if (run == NULL || run->plugin[0] == '\0' || run->cell_count <= job->first_cell)
		return;
	choices.cells = run->cells + job->first_cell;
	choices.count = run->cell_count - job->first_cell;
	choices.list = calloc(choices.count, sizeof(*choices.list));
	if (choices.list == NULL)
		return;
	region_read(&choices);
	for (size_t i = 0; i < choices.count; i++)
		choice_take(&choices.list[i], &choices.cells[i]);
	free(choices.list);
}

/* Runs the cells in order: which can be measured, and what rank 0 keeps. */

enum { FLOAT8_MAJOR = 9 };

static bool is_float8(uint8_t datatype)
{
	return datatype == OP_FLOAT8_E4M3 || datatype == OP_FLOAT8_E5M2;
}

/* Whether the cell can be measured; same on all ranks. A note has the reason if not. */
static bool is_possible(struct bench_job *job, const struct bench_cell *cell,
			const struct bench_layout *layout, bool has_layout)
{
	const char *function = op_function_name(cell->function);
	const char *datatype = op_datatype_name(cell->datatype);
	char size[UNITS_TEXT];

	if (nccl_type_of(&job->nccl, cell->datatype) < 0) {
		job_note(job, "skipped: this NCCL does not support %s", datatype);
		return false;
	}
	if (is_float8(cell->datatype) && layout_is_reduction(cell->function) &&
	    job->least_major < FLOAT8_MAJOR) {
		job_note(job, "skipped: NCCL reduces %s only on Hopper and newer GPUs", datatype);
		return false;
	}
	if (cell->is_in_place && !layout_has_in_place(cell->function)) {
		job_note(job, "skipped: %s has no in-place form", function);
		return false;
	}
	if (!has_layout) {
		job_note(job, "skipped: %s of %s is less than one element per rank", function,
			 units_bytes(size, cell->bytes));
		return false;
	}
	if (layout->whole_count * op_datatype_bytes(cell->datatype) <= job->room_bytes)
		return true;
	job_note(job, "skipped: sizes above %s, which do not fit into the buffers",
		 units_bytes(size, job->room_bytes));
	return false;
}

static int work_init(struct job_cell *work, struct bench_job *job, const struct bench_cell *like)
{
	int rank = job->place->rank;
	struct bench_cell *cell = &work->cell;
	bool has_layout;

	*work = (struct job_cell){ .job = job, .cell = *like, .takes_part = true };
	cell->nranks = job->place->nranks;
	cell->calls_of = NULL;
	cell->wrong = BENCH_UNCHECKED;
	cell->warmups = cell->calls = cell->checks = cell->aligns = cell->captured = 0;
	cell->loop_ns = 0;
	cell->chosen_algorithm = cell->chosen_protocol = 0;
	if (!layout_is_reduction(cell->function))
		cell->redop = BENCH_NO_REDOP;
	if (!layout_is_rooted(cell->function))
		cell->root = -1;
	else if (cell->root < 0 || cell->root >= cell->nranks)
		return job_fail(job, "root %d is not one of %d ranks", cell->root, cell->nranks);
	has_layout = layout_of(&work->layout, cell, rank);
	if (!is_possible(job, cell, &work->layout, has_layout))
		return 1;
	if (cell->function == OP_SEND_RECV)
		work->takes_part = layout_send_peer(cell, rank) >= 0;
	cell->count = work->layout.count;
	cell->bytes = work->layout.bytes;
	cell->is_grouped_sends = issue_is_grouped(job, cell->function);
	if (cell->is_grouped_sends)
		job_note(job, "this NCCL has no %s: using grouped Sends and Recvs",
			 op_function_name(cell->function));
	return 0;
}

/* Checks the results of the measured calls if they are still intact; otherwise makes one more call. */
static int work_check(struct job_cell *work)
{
	uint64_t wrong = 0, more = 0;

	if (!work->job->plan->is_checked)
		return 0;
	if (layout_is_repeatable(&work->cell) && fill_check(work, &wrong) < 0)
		return -1;
	if (fill_buffers(work) < 0 || hub_meet(work->job->hub) < 0)
		return -1;
	if (measure_unmeasured(work) < 0 || fill_check(work, &more) < 0)
		return -1;
	work->cell.checks = 1;
	work->cell.wrong = wrong > more ? wrong : more;
	return 0;
}

/* What each rank reports about its cell besides its calls. */
struct cell_share {
	uint64_t wrong;
	uint64_t loop_ns;
};

static void shares_add(struct bench_cell *cell, const struct cell_share *shares, int nranks)
{
	uint64_t loop_ns = 0;

	cell->wrong = BENCH_UNCHECKED;
	for (int i = 0; i < nranks; i++) {
		loop_ns += shares[i].loop_ns;
		if (shares[i].wrong != BENCH_UNCHECKED)
			cell->wrong = (cell->wrong == BENCH_UNCHECKED ? 0 : cell->wrong) +
				      shares[i].wrong;
	}
	cell->loop_ns = loop_ns / (uint64_t)nranks;
}

/* The rank with wrong results is more useful than the count. */
static void wrong_note(struct bench_job *job, const struct bench_cell *cell,
		       const struct cell_share *shares)
{
	int first = -1, ranks = 0;
	char size[UNITS_TEXT], others[32] = "";

	for (int i = 0; i < cell->nranks; i++)
		if (shares[i].wrong != 0 && shares[i].wrong != BENCH_UNCHECKED) {
			first = first < 0 ? i : first;
			ranks++;
		}
	if (ranks == 0)
		return;
	if (ranks > 1)
		text_format(others, sizeof(others), " and %d more", ranks - 1);
	job_note(job, "wrong results on rank %d%s: %s of %s %s", first, others,
		 op_function_name(cell->function), units_bytes(size, cell->bytes),
		 op_datatype_name(cell->datatype));
}

static int gather_shares(struct job_cell *work)
{
	struct bench_job *job = work->job;
	struct cell_share share = { work->cell.wrong, work->cell.loop_ns }, *shares = NULL;
	int status;

	if (job->run) {
		shares = calloc((size_t)job->place->nranks, sizeof(*shares));
		if (shares == NULL)
			return job_fail(job, "out of memory");
	}
	status = hub_gather(job->hub, &share, sizeof(share), shares);
	if (status == 0 && shares) {
		shares_add(&work->cell, shares, job->place->nranks);
		wrong_note(job, &work->cell, shares);
	}
	free(shares);
	return status;
}

static int gather_all(struct job_cell *work)
{
	struct bench_job *job = work->job;
	struct bench_cell *kept = NULL;
	uint32_t calls = work->cell.mode == BENCH_LOOP ? 0 : work->cell.calls;

	if (gather_shares(work) < 0)
		return -1;
	if (job->run) {
		kept = bench_run_add_cell(job->run, &work->cell);
		if (kept == NULL)
			return job_fail(job, "out of memory for %u calls of %d ranks", calls,
					job->place->nranks);
	}
	if (calls == 0)
		return 0;
	return hub_gather(job->hub, work->calls, calls * sizeof(*work->calls),
			  kept ? kept->calls_of : NULL);
}

int bench_job_measure(struct bench_job *job, const struct bench_cell *cell)
{
	struct job_cell work;
	int status = work_init(&work, job, cell);

	if (status != 0)
		return status < 0 ? -1 : 0;
	if (job->comm == NULL)
		return job_fail(job, "no communicator to measure with");
	status = fill_buffers(&work) < 0 || hub_meet(job->hub) < 0 ? -1 : measure_cell(&work);
	if (status == 0 && (work_check(&work) < 0 || gather_all(&work) < 0))
		status = -1;
	free(work.calls);
	return status;
}

static int measure_function(struct bench_job *job, uint8_t function, bench_progress_fn progress,
			    void *context)
{
	const struct bench_plan *plan = job->plan;
	/* A function without a reduction is measured once, whatever the list of reductions. */
	size_t redops = layout_is_reduction(function) ? plan->redop_count : 1;
	size_t cells = plan->datatype_count * redops * plan->mode_count * plan->size_count * 2;

	/* In place changes with every cell, then the size, the mode, the reduction, and last the datatype. */
	for (size_t i = 0; i < cells; i++) {
		size_t size = i / 2, mode = size / plan->size_count,
		       redop = mode / plan->mode_count;
		struct bench_cell cell = {
			.function = function,
			.root = plan->root,
			.datatype = plan->datatypes[redop / redops],
			.redop = plan->redops[redop % redops],
			.mode = plan->modes[mode % plan->mode_count],
			.bytes = plan->sizes[size % plan->size_count],
			.is_in_place = i % 2,
		};
		size_t before = job->run ? job->run->cell_count : 0;
		int status;

		if (!(plan->places & (cell.is_in_place ? PLAN_IN_PLACE : PLAN_OUT_OF_PLACE)))
			continue;
		status = bench_job_measure(job, &cell);
		if (status < 0)
			return -1;
		if (status > 0)
			job_note(job,
				 "skipped: %s, which NCCL refuses with this algorithm or protocol",
				 op_function_name(function));
		if (progress && job->run && job->run->cell_count > before)
			progress(context, job->run);
	}
	return 0;
}

int bench_job_measure_all(struct bench_job *job, bench_progress_fn progress, void *context)
{
	for (size_t i = 0; i < job->plan->function_count; i++)
		if (measure_function(job, job->plan->functions[i], progress, context) < 0)
			return -1;
	bench_job_choices(job);
	return 0;
}
