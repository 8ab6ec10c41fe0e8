/*
 * GPU times from CUDA events, on the launching thread. Since NCCL 2.28 a KernelLaunch event surrounds each launch and
 * names its stream. For a chosen launch (common/timing.h) an event is recorded on that stream before and after it;
 * times_thread.c reads later how long the GPU needed from one to the other.
 *
 *	API call      is the launch of this group timed?
 *	launch start  claim a pair of events, record the first
 *	launch stop   record the second; the reader may find it from now on
 *	task          the operation joins the pair's list, with a reference to its live slot
 *
 *	pair: free --claim--> recording --launch stop--> launched --taken--> free (next generation)
 *
 * Whoever takes a launched pair (the reader with its time, or the end of a communicator without) closes its list and
 * gives every operation in it the time. An operation that comes later finds the list closed, and the time in the pair
 * as long as its generation is the same.
 *
 * This is the only place where the recorder calls CUDA on a thread of the job. NCCL made its own device current, holds
 * no lock and records events itself around here. Any unexpected answer ends timing for the context. NCCL never learns of
 * it.
 *
 * On a stream that captures a CUDA graph the events become part of the graph, if it has events of NCCL already: then they
 * are allowed there (in the body of a conditional node they are not, nor in a graph that is launched from the device).
 * Each replay records them again. Which launches depends on nothing that can differ when the program captures the same
 * calls again, see common/timing.h.
 */
#include <errno.h>

#include "common/hash.h"
#include "common/op.h"
#include "plugin/recorder.h"
#include "plugin/settings.h"

enum {
	CLAIM_TRIES = 16,
	/* A launch can execute hundreds of Sends and Recvs; each keeps a live slot until it is read. */
	OPS_MOST = 64,
	CAPTURE_TRIES = 16, /* places of a captured call in the table */
	/* Dependencies of a captured launch that are looked at. */
	NODES_MOST = 64,
	/* A request is looked for after so many launches or so much time. */
	REQUEST_LAUNCHES = 256,
	REQUEST_NS = 1000 * 1000 * 1000,
};

#define CAPTURE_CHANGES UINT64_MAX /* the key of a place that is being written */

struct cuda_launching cuda_launching;

/* May operations of this communicator be timed? */
bool hot_times_are_on(const struct comm_state *comm)
{
	const struct times_pool *pool = load_relaxed(&comm->times);

	return pool != NULL && !load_relaxed(&pool->is_off);
}

COLD void times_fail(struct times_pool *pool, int result)
{
	if (swap_relaxed(&pool->is_off, 1))
		return;
	store_relaxed(&recorder.region.header->timing_error, (uint64_t)(unsigned int)result);
	if (add_relaxed(&recorder.timing.pools_on, (uint32_t)-1) != 1)
		return;
	/* Pairs with the fence in times_comm_begin(). */
	fence_full();
	store_relaxed(&recorder.region.header->sampling, SAMPLING_BY_CUDA);
}

/* Serial << 32 | seconds, written by anyone with write access to the region. */
static COLD void look_for_request(uint64_t now)
{
	struct timing *timing = &recorder.timing;
	uint64_t request = load_relaxed(&recorder.region.header->kernel_request);
	uint32_t seconds = (uint32_t)request;

	store_relaxed(&timing->asked_ns, now);
	if (request == load_relaxed(&timing->request))
		return;
	/* Limit the cost, whatever value was written. */
	if (seconds > TIMES_REQUEST_MOST_S)
		seconds = TIMES_REQUEST_MOST_S;
	store_relaxed(&timing->request, request);
	store_relaxed(&timing->until_ns, now + seconds * SECOND_NS);
	store_relaxed(&recorder.region.header->kernel_answer, request);
}

void hot_times_choose(struct comm_state *comm, const struct op_record *op, uint64_t group,
		      bool is_first)
{
	struct timing *timing = &recorder.timing;
	uint8_t function = load_relaxed(&op->function);
	uint64_t bytes = load_relaxed(&op->bytes), now = load_relaxed(&op->issue_ns);
	bool is_wanted = timing_is_new(&comm->kinds, function, bytes);
	bool is_collective = op_is_collective(function);
	uint64_t number = load_relaxed(is_collective ? &op->match : &op->number);

	if (is_first) {
		is_wanted |= timing_launch_count(&timing->launches, TIMING_PAUSE_NS, now);
		if (UNLIKELY(load_relaxed(&timing->launches.count) % REQUEST_LAUNCHES == 0 ||
			     now - load_relaxed(&timing->asked_ns) >= REQUEST_NS))
			look_for_request(now);
		is_wanted |= timing_pace_count(&comm->pace, is_collective, number,
					       &timing->launches, now);
		is_wanted |= timing->is_all || now < load_relaxed(&timing->until_ns) ||
			     timing_is_drawn(comm->shared->info.hash, number,
					     timing_share(load_relaxed(&comm->pace.interval_ns),
							  load_relaxed(&comm->pace.own_interval_ns),
							  bytes));
	}
	if (is_wanted)
		store_relaxed(&comm->chosen_group, group);
}

/* Events belong to a context. */
static bool is_in_context(struct times_pool *pool, struct CUstream_st *stream)
{
	struct CUctx_st *context = NULL;
	int result = (uintptr_t)stream < CUDA_STREAMS_WITHOUT_CONTEXT
			     ? cuda_launching.ctx_get_current(&context)
			     : cuda_launching.stream_get_ctx(stream, &context);

	if (result != CUDA_OK)
		times_fail(pool, result);
	return result == CUDA_OK && context == pool->context;
}

/* May an event be recorded on this stream now? */
static bool stream_is_fit(struct times_pool *pool, struct CUstream_st *stream)
{
	int capture = CUDA_CAPTURE_NONE;
	int result = cuda_launching.stream_is_capturing(stream, &capture);

	/* The legacy stream must not be used while another stream captures. */
	if (result == CUDA_CAPTURE_IMPLICIT)
		return false;
	if (result != CUDA_OK) {
		times_fail(pool, result);
		return false;
	}
	return capture == CUDA_CAPTURE_NONE && is_in_context(pool, stream);
}

static struct time_pair *claim(struct times_pool *pool, uint64_t *claimed)
{
	for (int i = 0; i < CLAIM_TRIES; i++) {
		struct time_pair *pair = &pool->pairs[add_relaxed(&pool->cursor, 1) % TIMES_PAIRS];
		uint64_t word = load_relaxed(&pair->word);

		*claimed = PAIR_WORD(PAIR_GENERATION(word) + 1, PAIR_RECORDING);
		/* Pairs with the release in times_free(). */
		if (PAIR_STATE(word) == PAIR_FREE && swap_if_acquire(&pair->word, &word, *claimed))
			return pair;
	}
	return NULL;
}

static void *begin_timing(struct comm_state *comm, struct CUstream_st *stream, const void *parent)
{
	struct times_pool *pool = load_relaxed(&comm->times);
	uint64_t word, began = recorder_now();
	struct time_pair *pair;
	int result;

	if (!stream_is_fit(pool, stream))
		return NULL;
	pair = claim(pool, &word);
	if (pair == NULL) {
		add_relaxed(&recorder.region.header->untimed_launches, 1);
		return NULL;
	}
	store_relaxed(&pair->stream, stream);
	store_relaxed(&pair->group, (uint64_t)(uintptr_t)parent);
	store_relaxed(&pair->comm_slot, (uint64_t)(comm - recorder.comms));
	store_relaxed(&pair->op_count, 0);
	store_relaxed(&pair->start_ns, 0);
	store_relaxed(&pair->stop_ns, 0);
	store_relaxed(&pair->ops, 0);
	store_relaxed(&pair->open_ns, 0);
	store_relaxed(&pair->began_ns, began);
	result = cuda_launching.event_record(pair->before, stream);
	store_relaxed(&pair->recorded_ns, recorder_now());
	add_relaxed(&recorder.region.header->recording_ns,
		    load_relaxed(&pair->recorded_ns) - began);
	if (result != CUDA_OK) {
		times_fail(pool, result);
		times_free(pair, word);
		return NULL;
	}
	return handle_make(
		HANDLE_TIMED, PAIR_GENERATION(word) & HANDLE_GENERATION_MASK,
		(uint32_t)((pool - recorder.timing.pools) * TIMES_PAIRS + (pair - pool->pairs)), 0);
}

/* ---- launches in CUDA graphs ------------------------------------------------------------------ */

void hot_times_capture(struct comm_state *comm, const struct op_record *op, bool is_first)
{
	struct comm_graph *graph = &comm->graph;
	uint64_t bytes = load_relaxed(&op->bytes);

	if (load_relaxed(&recorder.timing.graphs) == GRAPHS_NONE ||
	    load_relaxed(&graph->verdict) == GRAPH_LEFT_ALONE)
		return;
	if (is_first) {
		words_copy(&graph->first, op, OP_RECORD_WORDS);
		store_relaxed(&graph->calls, 0);
		store_relaxed(&graph->bytes, 0);
	}
	bump_relaxed(&graph->calls, 1);
	bump_relaxed(&graph->bytes, bytes != OP_BYTES_UNKNOWN ? bytes : 0);
}

/*
 * Decided at the first capture, because the graphs of a communicator must not change: is there only one GPU in this
 * process (NCCL warns that launches of graphs may block each other), and did events work on it?
 */
static bool times_graphs(struct comm_state *comm, const struct times_pool *pool)
{
	uint64_t verdict = load_relaxed(&comm->graph.verdict);

	if (verdict == GRAPH_UNDECIDED) {
		verdict = load_relaxed(&recorder.timing.pools_used) == 1 &&
					  load_relaxed(&pool->has_recorded) &&
					  cuda_launching.event_record_with_flags != NULL &&
					  cuda_launching.stream_get_capture_info != NULL &&
					  cuda_launching.graph_node_get_type != NULL
				  ? GRAPH_TIMED
				  : GRAPH_LEFT_ALONE;
		store_relaxed(&comm->graph.verdict, verdict);
	}
	return verdict == GRAPH_TIMED;
}

static bool has_events(struct CUgraphNode_st *const *nodes, size_t count)
{
	for (size_t i = 0; i < count && i < NODES_MOST; i++) {
		int type = 0;

		if (cuda_launching.graph_node_get_type(nodes[i], &type) == CUDA_OK &&
		    (type == CUDA_NODE_EVENT_WAIT || type == CUDA_NODE_EVENT_RECORD))
			return true;
	}
	return false;
}

/* Are events allowed in the graph that this stream captures? In doubt it is left alone. */
static bool graph_is_open(struct comm_state *comm, struct CUstream_st *stream)
{
	struct comm_graph *graph = &comm->graph;
	struct CUgraphNode_st *const *nodes = NULL;
	struct CUgraph_st *unused = NULL;
	int state = CUDA_CAPTURE_NONE;
	uint64_t capture = 0;
	size_t count = 0;

	if (cuda_launching.stream_get_capture_info(stream, &state, &capture, &unused, &nodes,
						   &count) != CUDA_OK ||
	    state != CUDA_CAPTURE_ACTIVE)
		return false;
	if (load_relaxed(&graph->capture) != capture) {
		store_relaxed(&graph->capture, capture);
		store_relaxed(&graph->is_open, 0);
		store_relaxed(&graph->credit_ns, 0);
	}
	if (!load_relaxed(&graph->is_open) && nodes != NULL && has_events(nodes, count))
		store_relaxed(&graph->is_open, 1);
	return load_relaxed(&graph->is_open);
}

/* From the first that is free; NULL: none. */
static struct graph_pair *claim_in_graph(struct times_pool *pool, unsigned int from,
					 unsigned int to, uint64_t *claimed)
{
	for (unsigned int i = from; i < to; i++) {
		struct graph_pair *pair = &pool->graphs[i];
		uint64_t word = load_relaxed(&pair->word);

		*claimed = PAIR_WORD(PAIR_GENERATION(word) + 1, PAIR_RECORDING);
		/* Pairs with the release in times_comm_end(). */
		if (PAIR_STATE(word) == PAIR_FREE && swap_if_acquire(&pair->word, &word, *claimed))
			return pair;
	}
	return NULL;
}

static uint64_t capture_key(const struct comm_state *comm, uint64_t number)
{
	return (uint64_t)comm->shared->info.id << 40 ^ number;
}

static struct timed_capture *timed_capture(uint64_t key, uint64_t try)
{
	return &recorder.timed_captures[(hash_word(key, key) + try) % TIMED_CAPTURES];
}

/* Is the launch of the calls that were captured last one of the chosen? */
static bool is_chosen_in_graph(struct comm_state *comm, struct times_pool *pool,
			       struct CUstream_st *stream)
{
	uint64_t bytes = load_relaxed(&comm->graph.bytes);
	bool is_all = load_relaxed(&recorder.timing.graphs) == GRAPHS_ALL;

	if ((!is_all && bytes < TIMING_GRAPH_LEAST_BYTES) ||
	    !op_is_collective(load_relaxed(&comm->graph.first.function)) ||
	    !times_graphs(comm, pool))
		return false;
	if (!graph_is_open(comm, stream) || !is_in_context(pool, stream)) {
		add_relaxed(&recorder.region.header->closed_captures, 1);
		return false;
	}
	return is_all || timing_graph_choose(&comm->graph.credit_ns, bytes);
}

static COLD void *begin_in_graph(struct comm_state *comm, struct CUstream_st *stream,
				 const void *parent)
{
	struct times_pool *pool = load_relaxed(&comm->times);
	uint64_t word, calls = load_relaxed(&comm->graph.calls), began = recorder_now();
	struct graph_pair *pair;
	int result;

	/* A group of several launches has its calls in the first. */
	store_relaxed(&comm->graph.calls, 0);
	if (!is_chosen_in_graph(comm, pool, stream))
		return NULL;
	pair = claim_in_graph(pool, 0, GRAPH_PAIRS, &word);
	if (pair == NULL)
		pair = claim_in_graph(pool, GRAPH_PAIRS, GRAPH_PAIRS + GRAPH_SINKS, &word);
	if (pair == NULL)
		return NULL;
	store_relaxed(&pair->stream, stream);
	store_relaxed(&pair->group, (uint64_t)(uintptr_t)parent);
	store_relaxed(&pair->comm_slot, (uint64_t)(comm - recorder.comms));
	store_relaxed(&pair->calls, calls);
	words_copy(&pair->call, &comm->graph.first, OP_RECORD_WORDS);
	store_relaxed(&pair->replays[0], 0);
	store_relaxed(&pair->replays[1], 0);
	result = cuda_launching.event_record_with_flags(pair->before, stream, CUDA_RECORD_EXTERNAL);
	add_relaxed(&recorder.region.header->recording_ns, recorder_now() - began);
	if (result != CUDA_OK) {
		times_fail(pool, result);
		store_release(&pair->word, PAIR_WORD(PAIR_GENERATION(word), PAIR_FREE));
		return NULL;
	}
	return handle_make(HANDLE_IN_GRAPH, PAIR_GENERATION(word) & HANDLE_GENERATION_MASK,
			   (uint32_t)((pool - recorder.timing.pools) * (GRAPH_PAIRS + GRAPH_SINKS) +
				      (pair - pool->graphs)),
			   0);
}

/* NULL: the pair has a new owner. */
static struct graph_pair *pair_in_graph(uint64_t slot, uint32_t generation,
					struct times_pool **pool)
{
	struct graph_pair *pair;

	if (slot >= TIMES_POOLS * (GRAPH_PAIRS + GRAPH_SINKS))
		return NULL;
	*pool = &recorder.timing.pools[slot / (GRAPH_PAIRS + GRAPH_SINKS)];
	pair = &(*pool)->graphs[slot % (GRAPH_PAIRS + GRAPH_SINKS)];
	if ((PAIR_GENERATION(load_relaxed(&pair->word)) & HANDLE_GENERATION_MASK) != generation)
		return NULL;
	return pair;
}

/* Its replays would be recorded twice if they did not find it, so others keep their places. */
static void remember_capture(uint64_t key, uint64_t slot_and_generation)
{
	struct timed_capture *capture = timed_capture(key, 0);

	for (uint64_t try = 0; try < CAPTURE_TRIES; try++) {
		struct timed_capture *at = timed_capture(key, try);
		uint64_t found = load_relaxed(&at->key), pair = load_relaxed(&at->pair);
		struct times_pool *pool;

		/* Free, or its pair belongs to another by now. */
		if ((found == 0 ||
		     (found != CAPTURE_CHANGES &&
		      pair_in_graph((uint32_t)pair, (uint32_t)(pair >> 32), &pool) == NULL)) &&
		    swap_if_acquire(&at->key, &found, CAPTURE_CHANGES)) {
			capture = at;
			break;
		}
	}
	store_relaxed(&capture->key, CAPTURE_CHANGES);
	store_release(&capture->pair, slot_and_generation);
	store_release(&capture->key, key);
}

static COLD void *end_in_graph(struct handle handle)
{
	int saved_errno = errno;
	struct times_pool *pool;
	struct graph_pair *pair =
		pair_in_graph(handle_slot(handle), handle_generation(handle), &pool);
	uint64_t word = pair != NULL ? load_relaxed(&pair->word) : 0;
	struct region_header *header = recorder.region.header;
	void *group;
	int result;

	if (pair == NULL || PAIR_STATE(word) != PAIR_RECORDING) {
		count_odd(pair == NULL ? ODD_STALE_HANDLE : ODD_REPEATED_STOP);
		return NULL;
	}
	group = (void *)(uintptr_t)load_relaxed(&pair->group);
	result = cuda_launching.event_record_with_flags(pair->after, load_relaxed(&pair->stream),
							CUDA_RECORD_EXTERNAL);
	errno = saved_errno;
	if (result != CUDA_OK)
		times_fail(pool, result);
	if (result != CUDA_OK || pair >= &pool->graphs[GRAPH_PAIRS]) {
		if (result == CUDA_OK)
			add_relaxed(&header->untimed_captures, 1);
		store_release(&pair->word, PAIR_WORD(PAIR_GENERATION(word), PAIR_FREE));
		return group;
	}
	remember_capture(capture_key(&recorder.comms[load_relaxed(&pair->comm_slot)],
				     load_relaxed(&pair->call.number)),
			 (uint64_t)handle_generation(handle) << 32 | handle_slot(handle));
	store_relaxed(&recorder.timing.has_graphs, 1);
	add_relaxed(&header->timed_captures, 1);
	/* Pairs with the acquire in read_graphs(). */
	store_release(&pair->word, PAIR_WORD(PAIR_GENERATION(word), PAIR_LAUNCHED));
	return group;
}

/* NCCL shows this replay: the time will belong to it. */
void hot_times_replay(const struct comm_state *comm, uint64_t captured_number,
		      uint64_t slot_and_generation)
{
	uint64_t key = capture_key(comm, captured_number), found = 0;
	const struct timed_capture *capture = NULL;
	struct times_pool *pool;
	struct graph_pair *pair;

	/* Pair with the releases in remember_capture(). Places are never free again. */
	for (uint64_t try = 0; try < CAPTURE_TRIES && found != key; try++) {
		capture = timed_capture(key, try);
		found = load_acquire(&capture->key);
		if (found == 0)
			return;
	}
	if (found != key)
		return;
	found = load_acquire(&capture->pair);
	pair = pair_in_graph((uint32_t)found, (uint32_t)(found >> 32), &pool);
	if (load_relaxed(&capture->key) != key || pair == NULL)
		return;
	store_relaxed(&pair->replays[1], load_relaxed(&pair->replays[0]));
	store_relaxed(&pair->replays[0], slot_and_generation);
}

void *hot_times_begin(struct comm_state *comm, void *stream, const void *parent)
{
	bool is_in_graph = load_relaxed(&comm->graph.calls) > 0 &&
			   load_relaxed(&comm->capture_group) == (uint64_t)(uintptr_t)parent;
	int saved_errno;
	void *handle;

	/* All tasks of the launch before this one have come. */
	store_relaxed(&comm->timed_launch, 0);
	if (LIKELY(load_relaxed(&comm->chosen_group) != (uint64_t)(uintptr_t)parent &&
		   !is_in_graph) ||
	    parent == NULL || !hot_times_are_on(comm))
		return NULL;
	saved_errno = errno;
	handle = is_in_graph ? begin_in_graph(comm, stream, parent)
			     : begin_timing(comm, stream, parent);
	errno = saved_errno;
	return handle;
}

/* NULL: not a pair's handle, or the pair has a new owner. *pool: whose pair it is. */
static struct time_pair *pair_find(struct handle handle, struct times_pool **pool)
{
	struct time_pair *pair;

	if (handle_kind(handle) != HANDLE_TIMED || handle_slot(handle) >= TIMES_POOLS * TIMES_PAIRS)
		return NULL;
	*pool = &recorder.timing.pools[handle_slot(handle) / TIMES_PAIRS];
	pair = &(*pool)->pairs[handle_slot(handle) % TIMES_PAIRS];
	if ((PAIR_GENERATION(load_relaxed(&pair->word)) & HANDLE_GENERATION_MASK) !=
	    handle_generation(handle))
		return NULL;
	return pair;
}

static int record_after(struct time_pair *pair)
{
	int saved_errno = errno;
	uint64_t began = recorder_now();
	int result = cuda_launching.event_record(pair->after, load_relaxed(&pair->stream));

	store_relaxed(&pair->gap_ns, began - load_relaxed(&pair->recorded_ns));
	add_relaxed(&recorder.region.header->recording_ns, recorder_now() - began);
	errno = saved_errno;
	return result;
}

/* The group's handle, for the time of its launch; NULL if the handle is stale or stops again. */
void *hot_times_end(struct handle handle)
{
	struct times_pool *pool;
	struct time_pair *pair = pair_find(handle, &pool);
	uint64_t word = pair != NULL ? load_relaxed(&pair->word) : 0, slot;
	void *group;
	int result;

	if (UNLIKELY(handle_kind(handle) == HANDLE_IN_GRAPH))
		return end_in_graph(handle);
	if (pair == NULL || PAIR_STATE(word) != PAIR_RECORDING) {
		count_odd(pair == NULL ? ODD_STALE_HANDLE : ODD_REPEATED_STOP);
		return NULL;
	}
	group = (void *)(uintptr_t)load_relaxed(&pair->group);
	slot = load_relaxed(&pair->comm_slot);
	result = load_relaxed(&pool->is_off) ? CUDA_DEINITIALIZED : record_after(pair);
	if (result != CUDA_OK) {
		times_fail(pool, result);
		times_free(pair, word);
		return group;
	}
	store_relaxed(&recorder.comms[slot].timed_launch, handle.raw);
	store_relaxed(&pool->has_recorded, 1);
	add_relaxed(&recorder.region.header->timed_launches, 1);
	/* Pairs with the acquire in times_take(). */
	store_release(&pair->word, PAIR_WORD(PAIR_GENERATION(word), PAIR_LAUNCHED));
	return group;
}

/* Its calls before the first task: all of them have come by then. */
static bool is_one_of_several(const struct comm_state *comm, const struct op_record *op)
{
	uint64_t calls = load_relaxed(&comm->shared->counts.issued) -
			 load_relaxed(&comm->current[0].first) + 1;

	/* A Send and its Recv run at the same time. */
	return calls > (op_is_collective(load_relaxed(&op->function)) ? 1 : 2);
}

static uint32_t rough_flag(uint64_t is_rough)
{
	return is_rough ? OP_FLAG_PLACE_ROUGH : 0;
}

/* The reader was faster than the task. */
static void take_late(const struct time_pair *pair, struct handle launch, struct region_live *live,
		      uint32_t generation)
{
	uint64_t start = load_relaxed(&pair->start_ns), stop = load_relaxed(&pair->stop_ns);

	/* Pairs with the acquire in claim(): a new owner changes the generation first. */
	fence_acquire();
	if ((PAIR_GENERATION(load_relaxed(&pair->word)) & HANDLE_GENERATION_MASK) !=
	    handle_generation(launch))
		start = stop = 0;
	live_time_end(live, generation, rough_flag(load_relaxed(&pair->is_rough)), start, stop);
}

static APART void join(struct comm_state *comm, struct region_live *live, struct handle op)
{
	struct handle launch = { load_relaxed(&comm->timed_launch) };
	uint64_t link = (uint64_t)handle_generation(op) << 32 | (handle_slot(op) + 1), head;
	struct times_pool *pool;
	struct time_pair *pair = pair_find(launch, &pool);

	if (pair == NULL || load_relaxed(&pair->op_count) >= OPS_MOST ||
	    !live_child_begin(live, handle_generation(op)))
		return;
	bump_relaxed(&pair->op_count, 1);
	and_relaxed(&live->op.flags, ~(uint32_t)OP_FLAG_NOT_SAMPLED);
	or_relaxed(&live->op.flags,
		   OP_FLAG_CUDA_EVENT |
			   (is_one_of_several(comm, &live->op) ? OP_FLAG_SHARED_TIME : 0));
	head = load_acquire(&pair->ops);
	do {
		if (head == PAIR_CLOSED) {
			take_late(pair, launch, live, handle_generation(op));
			return;
		}
		store_relaxed(&recorder.timed_next[handle_slot(op)], head);
		/* Pairs with the swap in times_take(). */
	} while (!swap_if_acq_rel(&pair->ops, &head, link));
}

void hot_times_join(struct comm_state *comm, struct region_live *live, struct handle op,
		    uint8_t algorithm)
{
	if (UNLIKELY(algorithm == OP_SYMMETRIC)) {
		/* Such kernels may overlap with their neighbours in the stream; events would prevent that. */
		store_relaxed(&comm->times, NULL);
		return;
	}
	if (UNLIKELY(load_relaxed(&comm->timed_launch) != 0))
		join(comm, live, op);
}

/* ---- taking a pair: the reader, and the end of a communicator --------------------------------- */

void times_free(struct time_pair *pair, uint64_t word)
{
	/* Pairs with the acquire in claim(). */
	store_release(&pair->word, PAIR_WORD(PAIR_GENERATION(word), PAIR_FREE));
}

bool times_take(struct time_pair *pair, uint64_t word, uint64_t start_ns, uint64_t stop_ns)
{
	uint64_t link;

	/* Pairs with the release in hot_times_end(). */
	if (PAIR_STATE(word) != PAIR_LAUNCHED ||
	    !swap_if_acquire(&pair->word, &word, PAIR_WORD(PAIR_GENERATION(word), PAIR_TAKEN)))
		return false;
	store_relaxed(&pair->start_ns, start_ns);
	store_relaxed(&pair->stop_ns, stop_ns);
	/* Pairs with the acquire in hot_times_join(). */
	link = swap_acq_rel(&pair->ops, PAIR_CLOSED);
	while (link != 0) {
		uint32_t slot = (uint32_t)link - 1, generation = (uint32_t)(link >> 32);

		link = load_relaxed(&recorder.timed_next[slot]);
		live_time_end(&recorder.region.live[slot], generation,
			      rough_flag(load_relaxed(&pair->is_rough)), start_ns, stop_ns);
	}
	return true;
}

/* ---- a replay was read ------------------------------------------------------------------------ */

static uint32_t replay_flags(const struct graph_pair *pair)
{
	return (load_relaxed(&pair->calls) > 1 ? OP_FLAG_SHARED_TIME : 0) |
	       rough_flag(load_relaxed(&pair->is_rough));
}

/*
 * Its place in time can be wrong by the pause between two replays, so it also has to be over as far as the network
 * shows: NCCL shows a replay when its graph is launched, perhaps long before its kernel starts, and that can hang.
 */
static bool may_be_over(const struct region_live *live)
{
	const struct comm_state *comm = comm_of_live(live);

	return LIVE_OPEN(load_relaxed(&live->word)) == 0 &&
	       (live_has_proxies(live) || comm == NULL ||
		!(load_relaxed(&comm->shared->info.flags) & COMM_FLAG_SEES_PROXIES));
}

/* Of the last two replays that NCCL showed, the one that ran then. */
static bool give_to_replay(struct graph_pair *pair, uint64_t start_ns, uint64_t stop_ns,
			   uint64_t error_ns)
{
	for (unsigned int i = 0; i < ARRAY_LENGTH(pair->replays); i++) {
		uint64_t replay = load_relaxed(&pair->replays[i]);
		struct region_live *live;

		if (replay == 0)
			return false;
		live = &recorder.region.live[(uint32_t)replay - 1];
		if (REGION_GENERATION(load_relaxed(&live->word)) != (uint32_t)(replay >> 32))
			continue;
		/* NCCL shows it before its kernel starts. */
		if (load_relaxed(&live->op.issue_ns) > start_ns + error_ns || !may_be_over(live))
			continue;
		/* It has a time already: this is that of another replay. */
		return !(load_relaxed(&live->op.flags) & OP_FLAG_CUDA_EVENT) &&
		       live_time_replay(live, (uint32_t)(replay >> 32) & HANDLE_GENERATION_MASK,
					replay_flags(pair), start_ns, stop_ns);
	}
	return false;
}

/* NCCL does not show it: it becomes known by its time. */
static void record_replay(struct comm_state *comm, const struct graph_pair *pair, uint64_t start_ns,
			  uint64_t stop_ns)
{
	struct comm_counts *counts = &comm->shared->counts;
	struct op_record op;

	words_copy(&op, &pair->call, OP_RECORD_WORDS);
	op.captured_number = op.number;
	op.match = op.signature = 0;
	op.flags = OP_FLAG_REPLAY | OP_FLAG_REPLAY_READ | OP_FLAG_CUDA_EVENT | replay_flags(pair);
	op.state = OP_DONE;
	op.issue_ns = op.launch_ns = op.task_ns = op.active_ns = op.gpu_start_ns = start_ns;
	op.done_ns = op.gpu_stop_ns = stop_ns;
	op.time_source = op_choose_time_source(&op);
	op.number = add_relaxed(&counts->issued, 1) + 1;
	if (start_ns > load_relaxed(&counts->last_issue_ns))
		store_relaxed(&counts->last_issue_ns, start_ns);
	record_push(comm, &op);
}

bool times_replayed(struct graph_pair *pair, uint64_t word, uint64_t start_ns, uint64_t stop_ns,
		    uint64_t error_ns)
{
	uint64_t taken = PAIR_WORD(PAIR_GENERATION(word), PAIR_TAKEN);
	struct comm_state *comm;
	bool is_given = true;

	/* Pairs with the acquire in times_comm_end(): the communicator lives until it is given back. */
	if (PAIR_STATE(word) != PAIR_LAUNCHED || !swap_if_acquire(&pair->word, &word, taken))
		return false;
	comm = &recorder.comms[load_relaxed(&pair->comm_slot)];
	if (load_relaxed(&pair->replays[0]) != 0)
		is_given = give_to_replay(pair, start_ns, stop_ns, error_ns);
	else if (load_relaxed(&comm->shared->counts.replays) == 0)
		record_replay(comm, pair, start_ns, stop_ns);
	else
		is_given =
			false; /* NCCL shows those of this communicator, and this one was not found */
	store_release(&pair->word, word);
	return is_given;
}
