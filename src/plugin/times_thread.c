/*
 * The thread that reads CUDA events: how long the GPU needed for a timed launch, and when that was.
 *
 * It may be blocked in the driver for minutes, behind a kernel that hangs, and nobody ever waits for it: it holds no
 * lock, and what it has not read is recorded without a time. It asks little: of each stream only the oldest launch that
 * is open, every few milliseconds while there is one.
 *
 * An elapsed time has no place of its own. Between two events of one context it is exact, so all launches have a place
 * relative to a reference event. The time of the reference lies between two bounds: an event fires after the call that
 * recorded it and after it was asked in vain, and before it is seen. Each launch narrows them, and they widen with the
 * drift of the two clocks. The middle is used, and half the distance is the stated error. All of this is on the system's
 * clock, whose rate is right to a few parts in 100,000; that of the recorder's clock was measured in a few milliseconds
 * and is not. A float of milliseconds loses precision with time, so a new reference is chosen every few seconds.
 *
 * Events in a CUDA graph are recorded again by each replay, so only the last replay can be read, and whether there was a
 * new one shows in its place. They are asked less often, a few of them at a time, as long as their communicator lives.
 */
#include "plugin/threads.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/order.h"
#include "plugin/recorder.h"

enum {
	PASS_LEAST_MS = 2,
	PASS_MOST_MS = 50,
	MANY = TIMES_PAIRS / 4, /* open launches of a context: read them soon */
	EXIT_MS = 20,		/* at exit: longest wait for a call of the driver to return */
	REACHED_NS = 500 * 1000 * 1000, /* after this time: has the GPU reached it at all? */
	LOST_NS = 2000 * 1000 * 1000,	/* the thread that launched never came back */
	TAKEN_TRIES = 10000,
	VISIBLE_NS = 5 * 1000, /* from an event's time until the host can see it */
	GAP_NS = 20 * 1000,    /* between recording the two events */
	GAP_SHARE = 50,	       /* ... and this part of the result: it may be the host's */
	DRIFT_SHIFT = 13,      /* of the GPU's clock and the system's: 122 ppm */
	RATE_LEAST_NS =
		50 * 1000 * 1000, /* from here on the rate of the recorder's clock is known */
	RATE_BRACKET_NS = 2000,
	ROUGH_NS = 1000 * 1000, /* a place with a greater error is marked */
	REFERENCE_NS = 4000u * 1000 * 1000,
	GRAPH_PASS_MS = 10,    /* between asking launches in graphs ... */
	GRAPH_PASS_PAIRS = 16, /* ... so many of them at once */
	GRAPH_MOVED_NS = 2000, /* a replay moves the first event by more than this */
	FLOAT_BITS = 23,
};

#define DRIVER_MEMBER(member, name, parameters) \
	{ #name, offsetof(struct cuda_driver, member), true },
#define DRIVER_MEMBER_NEWER(member, name, parameters) \
	{ #name, offsetof(struct cuda_driver, member), false },
static const struct {
	const char *name;
	size_t offset;
	bool is_needed;
} driver_names[] = { CUDA_TIMING_FUNCTIONS(DRIVER_MEMBER)
			     CUDA_TIMING_FUNCTIONS_NEWER(DRIVER_MEMBER_NEWER) };

/* The place of a context's launches in time. Only the thread uses it. */
struct place {
	struct CUevent_st *spare;     /* takes the place of an event that becomes the reference */
	struct CUevent_st *reference; /* NULL: none yet */
	uint64_t reference_ns;	      /* roughly, for its age */
	int64_t least_ns, most_ns;    /* bounds of its time ... */
	uint64_t at_ns;		      /* ... as known then */
	int64_t moved_ns;	      /* from the first reference to this one */
};

/* A launch in a graph, as it was asked last. */
struct replayed {
	uint64_t word;	   /* of its pair; another one: nothing is known yet */
	int64_t at_ns;	   /* its first event, from the first reference; 0: it has not run */
	uint64_t asked_ns; /* later replays began after this */
};

/* The recorder's clock and the system's, at the same moments. */
struct clocks {
	uint64_t first_ns, first_system_ns; /* 0: none yet */
	uint64_t ns, system_ns;		    /* the latest */
	double rate;			    /* system's per recorder's */
};

static struct {
	struct cuda_driver driver;
	struct place places[TIMES_POOLS];
	struct replayed replayed[TIMES_POOLS][GRAPH_PAIRS];
	struct clocks clocks;
	uint64_t graphs_asked_ns;
	unsigned int graph_cursor;
	bool is_loaded, is_tried;
	bool is_running; /* the thread was started */
	uint32_t is_over, is_calling;
	struct CUctx_st *current;
	pthread_cond_t unused;
} times;

/* ---- the driver, in init ---------------------------------------------------------------------- */

/*
 * Only a driver that the process has loaded already. A program can also provide these functions itself, as the
 * simulator does.
 */
static bool load_driver(struct cuda_driver *driver)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
	void *from = library != NULL ? library : RTLD_DEFAULT;

	for (size_t i = 0; i < ARRAY_LENGTH(driver_names); i++) {
		void *found = dlsym(from, driver_names[i].name);

		if (found == NULL && driver_names[i].is_needed)
			return false;
		/* POSIX requires the detour: dlsym returns an object pointer. The handle stays open. */
		*(void **)((char *)driver + driver_names[i].offset) = found;
	}
	return true;
}

static void stop_at_exit(void)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };

	store_relaxed(&times.is_over, 1);
	/* Pairs with the fence in may_call(). */
	fence_full();
	for (int i = 0; i < EXIT_MS && load_relaxed(&times.is_calling); i++)
		nanosleep(&pause, NULL);
}

/*
 * True: the thread is about to call the driver, and the end of the process waits for it a little. The driver's own
 * cleanup runs after ours, because it registered its own before.
 */
static bool may_call(void)
{
	store_relaxed(&times.is_calling, 1);
	/* Pairs with the fence in stop_at_exit(). */
	fence_full();
	if (!load_relaxed(&times.is_over) && load_relaxed(&recorder.is_on))
		return true;
	store_relaxed(&times.is_calling, 0);
	return false;
}

static int called(int result)
{
	store_relaxed(&times.is_calling, 0);
	return result;
}

#define CALL(function, ...) \
	(may_call() ? called(times.driver.function(__VA_ARGS__)) : CUDA_DEINITIALIZED)

static bool create_events(struct times_pool *pool, struct place *place)
{
	for (unsigned int i = 0; i < TIMES_PAIRS; i++)
		if (times.driver.event_create(&pool->pairs[i].before, 0) != CUDA_OK ||
		    times.driver.event_create(&pool->pairs[i].after, 0) != CUDA_OK)
			return false;
	for (unsigned int i = 0; i < GRAPH_PAIRS + GRAPH_SINKS; i++)
		if (times.driver.event_create(&pool->graphs[i].before, 0) != CUDA_OK ||
		    times.driver.event_create(&pool->graphs[i].after, 0) != CUDA_OK)
			return false;
	return times.driver.event_create(&place->spare, 0) == CUDA_OK;
}

static unsigned long long id_of(struct CUctx_st *context)
{
	unsigned long long id = 0;

	if (times.driver.ctx_get_id == NULL || times.driver.ctx_get_id(context, &id) != CUDA_OK)
		return 0;
	return id;
}

/*
 * The pool of a context, perhaps a new one. NCCL uses primary contexts, and of these the driver tells whether they
 * live; to ask about another one that was destroyed crashed the process. A context that was destroyed takes its events along, and a new one can have
 * its address: without an id of contexts a pool is not used again once its last communicator has ended.
 */
static struct times_pool *pool_for(struct CUctx_st *context)
{
	unsigned long long id = id_of(context);
	uint32_t used = recorder.timing.pools_used;
	struct times_pool *pool;
	unsigned int flags;
	int is_active = 0;

	for (uint32_t i = 0; i < used; i++) {
		pool = &recorder.timing.pools[i];
		if (pool->context == context && pool->context_id == id && !pool->is_off &&
		    (id != 0 || pool->comms > 0))
			return pool;
	}
	if (used == TIMES_POOLS)
		return NULL;
	pool = &recorder.timing.pools[used];
	pool->context = context;
	pool->context_id = id;
	if (times.driver.ctx_get_device(&pool->device) != CUDA_OK ||
	    times.driver.primary_ctx_get_state(pool->device, &flags, &is_active) != CUDA_OK ||
	    !is_active || !create_events(pool, &times.places[used]))
		return NULL;
	add_relaxed(&recorder.timing.pools_on, 1);
	/* Pairs with the acquire in read_all(). */
	store_release(&recorder.timing.pools_used, used + 1);
	return pool;
}

static void *read_times(void *unused);

static enum sampling_state start(struct comm_state *comm)
{
	struct CUctx_st *context = NULL;
	struct times_pool *pool;

	if (!times.is_tried) {
		times.is_tried = true;
		times.is_loaded = load_driver(&times.driver);
		cuda_launching = (struct cuda_launching){
			.stream_is_capturing = times.driver.stream_is_capturing,
			.stream_get_ctx = times.driver.stream_get_ctx,
			.ctx_get_current = times.driver.ctx_get_current,
			.event_record = times.driver.event_record,
			.event_record_with_flags = times.driver.event_record_with_flags,
			.stream_get_capture_info = times.driver.stream_get_capture_info,
			.graph_node_get_type = times.driver.graph_node_get_type,
		};
	}
	if (!times.is_loaded)
		return SAMPLING_NO_DRIVER;
	if (times.driver.ctx_get_current(&context) != CUDA_OK || context == NULL)
		return SAMPLING_NO_CONTEXT;
	pool = pool_for(context);
	if (pool == NULL)
		return SAMPLING_NO_CONTEXT;
	if (!times.is_running &&
	    (atexit(stop_at_exit) != 0 || own_thread_start(read_times, NULL, &times.unused) != OK))
		return SAMPLING_NO_THREAD;
	times.is_running = true;
	add_relaxed(&pool->comms, 1);
	/* The places of its times are on the recorder's clock already. */
	store_relaxed(&comm->shared->info.gpu_offset_ns, 0);
	store_relaxed(&comm->shared->info.gpu_offset_at_ns, comm->shared->info.init_ns);
	store_release(&comm->times, pool);
	return SAMPLING_ACTIVE;
}

void times_comm_begin(struct comm_state *comm, bool is_all, uint32_t graphs)
{
	enum sampling_state state = start(comm);

	recorder.timing.is_all = is_all;
	recorder.timing.graphs = graphs;
	/* One that is timed says more than one that is not. */
	if (state == SAMPLING_ACTIVE ||
	    load_relaxed(&recorder.region.header->sampling) != SAMPLING_ACTIVE)
		store_relaxed(&recorder.region.header->sampling, state);
	/* The thread may have met an error already. Pairs with the order of stores in times_fail(). */
	fence_full();
	if (state == SAMPLING_ACTIVE && load_relaxed(&recorder.timing.pools_on) == 0)
		store_relaxed(&recorder.region.header->sampling, SAMPLING_BY_CUDA);
}

/* Its operations are recorded without a time. */
static void drop(struct time_pair *pair, uint64_t word)
{
	if (!times_take(pair, word, 0, 0))
		return;
	add_relaxed(&recorder.region.header->times_dropped, 1);
	times_free(pair, word);
}

/* NCCL has waited for the end of its graphs: nothing records these events any more. */
static void free_graphs(struct times_pool *pool, uint64_t slot)
{
	for (unsigned int i = 0; i < GRAPH_PAIRS; i++) {
		struct graph_pair *pair = &pool->graphs[i];
		uint64_t word = load_relaxed(&pair->word);

		if (PAIR_STATE(word) == PAIR_FREE || load_relaxed(&pair->comm_slot) != slot)
			continue;
		/* The reader makes a record, and calls nothing meanwhile. */
		for (int tries = 0; tries < TAKEN_TRIES && PAIR_STATE(word) == PAIR_TAKEN;
		     tries++) {
			sched_yield();
			word = load_relaxed(&pair->word);
		}
		/* Pairs with the acquire in claim_in_graph(), and the release in times_replayed(). */
		if (PAIR_STATE(word) == PAIR_LAUNCHED)
			swap_if_acq_rel(&pair->word, &word,
					PAIR_WORD(PAIR_GENERATION(word), PAIR_FREE));
	}
}

/* Its launches that are still open have no time. */
void times_comm_end(struct comm_state *comm)
{
	uint64_t slot = (uint64_t)(comm - recorder.comms);

	for (uint32_t i = 0; i < recorder.timing.pools_used; i++) {
		struct times_pool *pool = &recorder.timing.pools[i];

		for (unsigned int p = 0; p < TIMES_PAIRS; p++) {
			uint64_t word = load_acquire(&pool->pairs[p].word);

			if (load_relaxed(&pool->pairs[p].comm_slot) == slot)
				drop(&pool->pairs[p], word);
		}
		free_graphs(pool, slot);
	}
	if (load_relaxed(&comm->times) == NULL)
		return;
	add_relaxed(&load_relaxed(&comm->times)->comms, (uint32_t)-1);
	store_relaxed(&comm->times, NULL);
}

/* ---- the thread ------------------------------------------------------------------------------- */

/* Compare the clocks, unless this thread is interrupted just now. */
static void compare_clocks(struct clocks *clocks)
{
	uint64_t before = recorder_now(), system = clock_now_system(), after = recorder_now();

	if (after - before > RATE_BRACKET_NS && clocks->ns != 0)
		return;
	clocks->ns = before + (after - before) / 2;
	clocks->system_ns = system;
	if (clocks->first_ns == 0) {
		clocks->first_ns = clocks->ns;
		clocks->first_system_ns = system;
		clocks->rate = 1;
	} else if (clocks->ns - clocks->first_ns > RATE_LEAST_NS) {
		clocks->rate = (double)(system - clocks->first_system_ns) /
			       (double)(clocks->ns - clocks->first_ns);
	}
}

static uint64_t system_ns(uint64_t ns)
{
	const struct clocks *clocks = &times.clocks;

	return clocks->system_ns +
	       (uint64_t)(int64_t)((double)(int64_t)(ns - clocks->ns) * clocks->rate);
}

static uint64_t recorder_ns(uint64_t system)
{
	const struct clocks *clocks = &times.clocks;

	return clocks->ns +
	       (uint64_t)(int64_t)((double)(int64_t)(system - clocks->system_ns) / clocks->rate);
}

/* A launch that was read: between which bounds may its first event lie? All on the system's clock. */
struct reading {
	uint64_t began_ns; /* its first event fired later */
	int64_t offset_ns; /* of its first event from the reference */
	uint64_t elapsed_ns;
	uint64_t seen_ns; /* both had fired by then */
};

static int elapsed_between(struct CUevent_st *from, struct CUevent_st *to, int64_t *ns)
{
	float ms = 0;
	int result = CALL(event_elapsed, &ms, from, to);

	if (result == CUDA_OK)
		*ns = (int64_t)((double)ms * 1e6);
	return result;
}

static void widen(struct place *place, uint64_t now_ns)
{
	int64_t drift = (int64_t)((now_ns - place->at_ns) >> DRIFT_SHIFT);

	place->least_ns -= drift;
	place->most_ns += drift;
	place->at_ns = now_ns;
}

/* Narrow the bounds by what this launch shows; start anew if the clocks do not fit. */
static void narrow(struct place *place, const struct reading *reading)
{
	int64_t least = (int64_t)reading->began_ns - reading->offset_ns;
	int64_t most = (int64_t)(reading->seen_ns - reading->elapsed_ns) - reading->offset_ns;

	widen(place, reading->seen_ns);
	if (least > place->most_ns || most < place->least_ns) {
		place->least_ns = least;
		place->most_ns = most > least ? most : least;
		return;
	}
	if (least > place->least_ns)
		place->least_ns = least;
	if (most < place->most_ns)
		place->most_ns = most;
	if (place->most_ns < place->least_ns)
		place->most_ns = place->least_ns;
}

/*
 * If it is time, this launch's first event becomes the reference, and its pair gets the old one. While the pair is taken
 * nobody else uses it.
 */
static void refer_to(struct place *place, struct time_pair *pair, const struct reading *reading)
{
	struct CUevent_st *event = pair->before;

	if (place->reference != NULL &&
	    (reading->seen_ns - place->reference_ns < REFERENCE_NS || reading->offset_ns < 0))
		return;

	pair->before = place->reference != NULL ? place->reference : place->spare;
	place->reference = event;
	place->reference_ns = reading->seen_ns;
	place->least_ns += reading->offset_ns;
	place->most_ns += reading->offset_ns;
	place->moved_ns += reading->offset_ns;
}

/* When a launch with this first event began. */
static int put_in_place(struct place *place, struct CUevent_st *before, struct reading *reading,
			uint64_t *start_ns, uint64_t *error_ns)
{
	uint64_t began = reading->began_ns;
	uint64_t latest = reading->seen_ns - reading->elapsed_ns;
	int result = CUDA_OK;
	int64_t at;

	if (place->reference == NULL) {
		place->least_ns = (int64_t)began;
		place->most_ns = (int64_t)(latest > began ? latest : began);
		place->at_ns = reading->seen_ns;
	} else {
		result = elapsed_between(place->reference, before, &reading->offset_ns);
		if (result != CUDA_OK)
			return result;
		narrow(place, reading);
	}
	at = place->least_ns + (place->most_ns - place->least_ns) / 2 + reading->offset_ns;
	*error_ns = (uint64_t)(place->most_ns - place->least_ns) / 2 + 1;
	/* This launch's own bounds are certain. */
	if (at > (int64_t)latest)
		at = (int64_t)latest;
	if (at < (int64_t)began)
		at = (int64_t)began;
	*start_ns = recorder_ns((uint64_t)at);
	return CUDA_OK;
}

/* The place's error is not in the record; it belongs to the communicator if it is small. */
static bool is_rough(struct comm_state *comm, uint64_t error_ns)
{
	uint64_t *most = &comm->shared->info.place_error_ns;

	if (error_ns > ROUGH_NS)
		return true;
	if (error_ns > load_relaxed(most))
		store_relaxed(most, error_ns);
	return false;
}

/*
 * Is it the GPU's time, and not that of a host that was held up between the two records while the stream was idle? The
 * first event then fires long before the kernel starts.
 */
static bool is_plausible(const struct time_pair *pair, const struct reading *reading)
{
	uint64_t gap = load_relaxed(&pair->gap_ns);

	return gap <= GAP_NS || gap <= reading->elapsed_ns / GAP_SHARE;
}

/*
 * The first event fired later than it was recorded, and the second later than it was asked in vain. A program that
 * launches far ahead of its GPU has only the latter near the truth.
 */
static uint64_t earliest_ns(const struct time_pair *pair, uint64_t elapsed_ns)
{
	uint64_t began = system_ns(load_relaxed(&pair->began_ns)),
		 open = load_relaxed(&pair->open_ns);

	return open > began + elapsed_ns + VISIBLE_NS ? open - elapsed_ns - VISIBLE_NS : began;
}

/* Give a launch whose second event has fired its time. */
static int finish(struct place *place, struct time_pair *pair, uint64_t word)
{
	struct region_header *header = recorder.region.header;
	struct reading reading = { .seen_ns = clock_now_system() };
	uint64_t start_ns = 0, error_ns = 0, slot = load_relaxed(&pair->comm_slot);
	int64_t elapsed = 0;
	int result = elapsed_between(pair->before, pair->after, &elapsed);

	if (result != CUDA_OK)
		return result;
	reading.elapsed_ns = elapsed > 0 ? (uint64_t)elapsed : 0;
	reading.began_ns = earliest_ns(pair, reading.elapsed_ns);
	if (elapsed <= 0 || !is_plausible(pair, &reading)) {
		drop(pair, word);
		return CUDA_OK;
	}
	result = put_in_place(place, pair->before, &reading, &start_ns, &error_ns);
	if (result != CUDA_OK)
		return result;
	store_relaxed(&pair->is_rough, is_rough(&recorder.comms[slot], error_ns));
	if (!times_take(pair, word, start_ns, start_ns + reading.elapsed_ns))
		return CUDA_OK;
	add_relaxed(&header->times_taken, 1);
	refer_to(place, pair, &reading);
	times_free(pair, word);
	return CUDA_OK;
}

/* The GPU has reached the launch: its operations run. */
static void mark_reached(const struct time_pair *pair, uint64_t now_ns)
{
	uint64_t link = load_acquire(&pair->ops);

	while (link != 0 && link != PAIR_CLOSED) {
		uint32_t slot = (uint32_t)link - 1;
		struct region_live *live = &recorder.region.live[slot];

		live_reached(live, (uint32_t)(link >> 32), now_ns);
		link = load_relaxed(&recorder.timed_next[slot]);
	}
}

struct open_launch {
	struct time_pair *pair;
	uint64_t word;
	uint64_t recorded_ns;
	struct CUstream_st *stream;
	bool is_open; /* asked, and not over */
};

/* The launches of a context that the GPU has not finished as far as is known, oldest first. */
static unsigned int list_open(struct times_pool *pool, uint64_t now_ns,
			      struct open_launch open[static TIMES_PAIRS])
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < TIMES_PAIRS; i++) {
		struct time_pair *pair = &pool->pairs[i];
		/* Pairs with the release in hot_times_end(). */
		uint64_t word = load_acquire(&pair->word);
		struct open_launch one = { pair, word, load_relaxed(&pair->recorded_ns),
					   load_relaxed(&pair->stream), false };
		unsigned int at = count;

		if (PAIR_STATE(word) == PAIR_RECORDING && one.recorded_ns + LOST_NS < now_ns &&
		    load_relaxed(&pool->comms) == 0)
			times_free(pair, word);
		if (PAIR_STATE(word) != PAIR_LAUNCHED)
			continue;
		for (; at > 0 && open[at - 1].recorded_ns > one.recorded_ns; at--)
			open[at] = open[at - 1];
		open[at] = one;
		count++;
	}
	return count;
}

static bool is_behind(const struct open_launch *open, unsigned int index)
{
	for (unsigned int i = 0; i < index; i++)
		if (open[i].is_open && open[i].stream == open[index].stream)
			return true;
	return false;
}

/* Is the context still the one whose events we have? */
static bool context_lives(const struct times_pool *pool)
{
	unsigned long long id = 0;
	unsigned int flags;
	int is_active = 0;

	if (CALL(primary_ctx_get_state, pool->device, &flags, &is_active) != CUDA_OK || !is_active)
		return false;
	return pool->context_id == 0 ||
	       (CALL(ctx_get_id, pool->context, &id) == CUDA_OK && id == pool->context_id);
}

static void drop_all(struct open_launch *open, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		drop(open[i].pair, open[i].word);
}

static int read_open(struct place *place, struct open_launch *open, unsigned int count,
		     uint64_t now_ns, unsigned int *found)
{
	for (unsigned int i = 0; i < count; i++) {
		uint64_t asked;
		int result;

		/* A stream is in order: behind one that is open all are. */
		if (is_behind(open, i))
			continue;
		asked = clock_now_system();
		result = CALL(event_query, open[i].pair->after);
		if (result == CUDA_OK) {
			result = finish(place, open[i].pair, open[i].word);
			*found += result == CUDA_OK;
		} else if (result == CUDA_NOT_READY) {
			if (open[i].recorded_ns + REACHED_NS < now_ns)
				result = CALL(event_query, open[i].pair->before);
			if (result == CUDA_OK)
				mark_reached(open[i].pair, now_ns);
			open[i].is_open = true;
			store_relaxed(&open[i].pair->open_ns, asked);
		}
		if (result != CUDA_OK && result != CUDA_NOT_READY)
			return result;
	}
	return CUDA_OK;
}

/*
 * The last replay of a launch in a graph, if it is new: how long it took, and where its first event lies. A replay in
 * between shows, because both times are asked twice.
 */
static int ask_graph(const struct place *place, const struct graph_pair *pair,
		     struct reading *reading, bool *is_read)
{
	int64_t elapsed = 0, again = 0;
	int result = CALL(event_query, pair->after);

	*is_read = false;
	if (result == CUDA_OK)
		result = elapsed_between(pair->before, pair->after, &elapsed);
	if (result == CUDA_OK)
		result = elapsed_between(place->reference, pair->before, &reading->offset_ns);
	if (result == CUDA_OK)
		result = elapsed_between(pair->before, pair->after, &again);
	reading->seen_ns = clock_now_system();
	/* It has never run, or runs now. */
	if (result == CUDA_INVALID_HANDLE || result == CUDA_NOT_READY)
		return CUDA_OK;
	*is_read = result == CUDA_OK && elapsed == again && elapsed > 0;
	reading->elapsed_ns = (uint64_t)elapsed;
	return result;
}

/* Is this another replay than the one that was read last? */
static bool is_new(const struct replayed *replayed, int64_t at_ns, int64_t precision_ns)
{
	return replayed->at_ns == 0 ||
	       llabs(at_ns - replayed->at_ns) > GRAPH_MOVED_NS + 2 * precision_ns;
}

static int read_graph(struct place *place, struct graph_pair *pair, struct replayed *replayed,
		      unsigned int *found)
{
	struct region_header *header = recorder.region.header;
	/* Pairs with the release in end_in_graph(). */
	uint64_t word = load_acquire(&pair->word), asked = clock_now_system(), start_ns, error_ns;
	struct comm_state *comm = &recorder.comms[load_relaxed(&pair->comm_slot)];
	struct reading reading = { .offset_ns = 0 };
	int64_t at, precision;
	bool is_read;
	int result;

	if (PAIR_STATE(word) != PAIR_LAUNCHED)
		return CUDA_OK;
	if (replayed->word != word)
		*replayed = (struct replayed){ .word = word };
	result = ask_graph(place, pair, &reading, &is_read);
	if (result != CUDA_OK || !is_read)
		return result;
	at = place->moved_ns + reading.offset_ns;
	/* Of a float of milliseconds. */
	precision = llabs(reading.offset_ns) >> FLOAT_BITS;
	reading.began_ns = replayed->asked_ns;
	replayed->asked_ns = asked;
	if (!is_new(replayed, at, precision))
		return CUDA_OK;
	replayed->at_ns = at;
	result = put_in_place(place, pair->before, &reading, &start_ns, &error_ns);
	if (result != CUDA_OK)
		return result == CUDA_NOT_READY ? CUDA_OK : result;
	error_ns += (uint64_t)precision;
	/* Of an earlier graph with these events. */
	if (start_ns + error_ns < load_relaxed(&pair->call.issue_ns))
		return CUDA_OK;
	++*found;
	store_relaxed(&pair->is_rough, is_rough(comm, error_ns));
	if (times_replayed(pair, word, start_ns, start_ns + reading.elapsed_ns, error_ns))
		add_relaxed(&header->replays_read, 1);
	else
		add_relaxed(&header->replays_dropped, 1);
	return CUDA_OK;
}

/* A few of the launches in graphs of this context, others the next time. */
static int read_graphs(struct times_pool *pool, struct place *place, unsigned int *found)
{
	struct replayed *replayed = times.replayed[pool - recorder.timing.pools];
	unsigned int asked = 0;
	int result = CUDA_OK;

	if (place->reference == NULL)
		return CUDA_OK;
	for (unsigned int i = 0; i < GRAPH_PAIRS && asked < GRAPH_PASS_PAIRS && result == CUDA_OK;
	     i++) {
		unsigned int at = times.graph_cursor++ % GRAPH_PAIRS;

		if (PAIR_STATE(load_relaxed(&pool->graphs[at].word)) != PAIR_LAUNCHED)
			continue;
		asked++;
		result = read_graph(place, &pool->graphs[at], &replayed[at], found);
	}
	return result;
}

/* What a pass over all contexts does and finds. */
struct pass {
	bool asks_graphs;
	unsigned int most_open;	     /* launches of one context */
	unsigned int found, replays; /* read */
};

static void read_pool(struct times_pool *pool, struct place *place, struct pass *pass)
{
	struct open_launch open[TIMES_PAIRS];
	uint64_t now = recorder_now();
	unsigned int count = list_open(pool, now, open);
	int result = CUDA_OK;

	if (count == 0 && !pass->asks_graphs)
		return;
	if (load_relaxed(&pool->is_off)) {
		drop_all(open, count);
		return;
	}
	if (load_relaxed(&pool->comms) == 0)
		return;
	if (!context_lives(pool))
		result = CUDA_DEINITIALIZED;
	else if (times.current != pool->context)
		result = CALL(ctx_set_current, pool->context);
	if (result == CUDA_OK) {
		times.current = pool->context;
		result = read_open(place, open, count, now, &pass->found);
	}
	if (result == CUDA_OK && pass->asks_graphs)
		result = read_graphs(pool, place, &pass->replays);
	if (result != CUDA_OK && !load_relaxed(&times.is_over)) {
		times_fail(pool, result);
		drop_all(open, count);
	}
	pass->most_open = count > pass->most_open ? count : pass->most_open;
}

static int pause_after(const struct pass *pass, int pause_ms)
{
	int most_ms = pass->replays > 0 ? GRAPH_PASS_MS : PASS_MOST_MS;

	if (pass->most_open >= MANY)
		return PASS_LEAST_MS;
	pause_ms = pass->found > 0 ? pause_ms / 2 : pause_ms * 2;
	return pause_ms < PASS_LEAST_MS * 2 ? PASS_LEAST_MS * 2
	       : pause_ms > most_ms	    ? most_ms
					    : pause_ms;
}

static bool asks_graphs(uint64_t now)
{
	if (!load_relaxed(&recorder.timing.has_graphs) ||
	    now - times.graphs_asked_ns < GRAPH_PASS_MS * UINT64_C(1000000))
		return false;
	times.graphs_asked_ns = now;
	return true;
}

static void *read_times(void *unused)
{
	int mode = CUDA_CAPTURE_MODE_RELAXED, pause_ms = PASS_MOST_MS, result = CUDA_NOT_READY;

	(void)unused;
	own_thread_begin("ringside-times");
	while (load_relaxed(&recorder.is_on) && !load_relaxed(&times.is_over)) {
		uint64_t began = recorder_now();
		struct pass pass = { .asks_graphs = asks_graphs(began) };
		/* Pairs with the release in pool_for(). */
		uint32_t used = load_acquire(&recorder.timing.pools_used);
		struct timespec pause;

		/* Otherwise asking would break a capture in global mode elsewhere in the process. */
		if (result != CUDA_OK && used > 0)
			result = CALL(thread_exchange_capture_mode, &mode);
		compare_clocks(&times.clocks);
		for (uint32_t i = 0; i < used; i++) {
			struct times_pool *pool = &recorder.timing.pools[i];

			if (result != CUDA_OK && !load_relaxed(&times.is_over))
				times_fail(pool, result);
			read_pool(pool, &times.places[i], &pass);
		}
		/*
		 * After what this pass found out. Pairs with the order in which readers copy. Without
		 * open launches it says nothing, and an idle region stays the same.
		 */
		if (pass.most_open > 0)
			store_release(&recorder.region.header->times_read_ns, began);
		pause_ms = pause_after(&pass, pause_ms);
		pause = (struct timespec){ .tv_nsec = pause_ms * 1000l * 1000 };
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return NULL;
}
