/*
 * Which launches are timed with CUDA events. The recorder decides with this, and so does the simulator, so that a
 * simulated recording has the times that a real one would have.
 *
 * Two events around a launch cost the job a few microseconds, so small collectives in quick succession are timed
 * rarely and large or rare ones always. The share follows from a budget of the time between launches and of the least
 * time that the message needs.
 *
 * All ranks of a communicator should time the same launches: waiting is computed from the durations of one operation on
 * several ranks. So a launch is drawn from the communicator's hash and the number of the group's first operation, which
 * all ranks know, and the pace is measured anew at the same numbers on all ranks. Ranks still measure slightly different
 * paces and arrive at different shares; the one with the smaller share times a subset of what the other times.
 *
 * What is captured into a CUDA graph is chosen once, for the life of the graph. A program that captures the same calls
 * again must get the same graph (it may update the old one with it), so that choice depends on nothing but the sizes of
 * the launches captured before it into the same graph.
 */
#ifndef TIMING_H
#define TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/order.h"

enum {
	/* What a timed launch costs, by message size, measured inside a node; docs/COST.md. */
	TIMING_SMALL_NS = 8000,
	TIMING_MEDIUM_NS = 19000,
	TIMING_LARGE_NS = 10000,
	TIMING_MEDIUM_BYTES = 64 * 1024,
	TIMING_LARGE_BYTES = 4 * 1024 * 1024,
	/* The cost may take this share of the time between launches: 1/250. */
	TIMING_PACE_SHARE = 250,
	/* ... or of the least time that the message needs, at 192 bytes per nanosecond. */
	TIMING_LEAST_SHARE = 400,
	TIMING_LEAST_NS = 4000,
	TIMING_BYTES_PER_NS = 192,
	/* ... or of the time between launches of the communicator alone: 1/4000. Few are rare beside busy ones. */
	TIMING_OWN_SHARE = 4000,
	/* Of a new kind (function and size) the second to the eighth launch are timed. */
	TIMING_NEW_KIND = 8,
	TIMING_FUNCTIONS = 16,
	TIMING_SIZES = 33,
	/*
	 * A pause before a launch that is longer pays for timing that launch, whatever its size, and counts as this long in
	 * the mean: calls in quick succession have to stay cheap, however long the program computed before. Between launches
	 * of one communicator so long.
	 */
	TIMING_PAUSE_NS = 20 * 1000 * 1000,
	TIMING_OWN_PAUSE_NS = 80 * 1000 * 1000,
	/* The pace is measured anew at numbers 8, 16, 32, 64, and then after so many. */
	TIMING_WINDOW_FIRST = 8,
	TIMING_WINDOW = 64,
	/* What a timed launch in a graph costs each replay, and the share of its least time that this may be: 1/200. */
	TIMING_GRAPH_SMALL_NS = 17000,
	TIMING_GRAPH_MEDIUM_NS = 14000,
	TIMING_GRAPH_LARGE_NS = 4000,
	TIMING_GRAPH_SHARE = 200,
	/* Smaller ones in graphs are not timed by default. */
	TIMING_GRAPH_LEAST_BYTES = 1024 * 1024,
};

/* The launches of a process. Several threads may count: errors are small. */
struct timing_launches {
	uint64_t count;
	uint64_t last_ns;
	uint64_t busy_ns; /* from one to the next, long pauses cut short */
};

/* How often a communicator launches, and how often its process does meanwhile. */
struct timing_pace {
	uint64_t until; /* this window ends with the first number from here on; 0: none yet */
	/* When it began, of the process ... */
	uint64_t count;
	uint64_t busy_ns;
	/* ... and of this communicator since. */
	struct timing_launches own;
	uint64_t
		interval_ns; /* mean time between launches of the process in the window before; 0: unknown */
	uint64_t own_interval_ns; /* ... and between those of this communicator */
	uint64_t has_collectives; /* then their numbers end windows, not those of Sends and Recvs */
};

/* How often a communicator has launched each kind, saturating. */
struct timing_kinds {
	uint8_t launches[TIMING_FUNCTIONS][TIMING_SIZES];
};

/* True: the pause before this launch pays for timing it. */
static inline bool timing_launch_count(struct timing_launches *launches, uint64_t pause_most_ns,
				       uint64_t now_ns)
{
	uint64_t last = load_relaxed(&launches->last_ns);
	int64_t pause = (int64_t)(now_ns - last);

	store_relaxed(&launches->last_ns, now_ns);
	bump_relaxed(&launches->count, 1);
	/* Threads may pass each other. */
	if (last == 0 || pause <= 0)
		return false;
	if (pause > (int64_t)pause_most_ns)
		pause = (int64_t)pause_most_ns;
	bump_relaxed(&launches->busy_ns, (uint64_t)pause);
	return pause == (int64_t)pause_most_ns;
}

/* Does a window end with this number? */
static inline bool timing_window_ends(struct timing_pace *pace, bool is_collective, uint64_t number)
{
	if (UNLIKELY(is_collective && load_relaxed(&pace->has_collectives) == 0)) {
		store_relaxed(&pace->has_collectives, 1);
		return true;
	}
	return UNLIKELY(number >= load_relaxed(&pace->until)) &&
	       (is_collective || load_relaxed(&pace->has_collectives) == 0);
}

/*
 * Counts a launch of a communicator. `number`: of its first operation, equal on all ranks if it is a collective.
 * `process`: has counted this launch already. True: the pause since this communicator's last one pays for timing it.
 */
static inline bool timing_pace_count(struct timing_pace *pace, bool is_collective, uint64_t number,
				     const struct timing_launches *process, uint64_t now_ns)
{
	uint64_t count = load_relaxed(&process->count), busy = load_relaxed(&process->busy_ns);
	uint64_t before = load_relaxed(&pace->count), own;
	bool is_paid = timing_launch_count(&pace->own, TIMING_OWN_PAUSE_NS, now_ns);

	if (LIKELY(!timing_window_ends(pace, is_collective, number)))
		return is_paid;
	own = load_relaxed(&pace->own.count);
	if (before != 0 && count > before) {
		store_relaxed(&pace->interval_ns,
			      (busy - load_relaxed(&pace->busy_ns)) / (count - before));
		store_relaxed(&pace->own_interval_ns, load_relaxed(&pace->own.busy_ns) / own);
	}
	store_relaxed(&pace->until, number < TIMING_WINDOW_FIRST ? TIMING_WINDOW_FIRST
				    : number < TIMING_WINDOW	 ? 2 * number
								 : number + TIMING_WINDOW);
	store_relaxed(&pace->count, count);
	store_relaxed(&pace->busy_ns, busy);
	store_relaxed(&pace->own.count, 0);
	store_relaxed(&pace->own.busy_ns, 0);
	return is_paid;
}

static inline uint64_t timing_least_ns(uint64_t bytes)
{
	return TIMING_LEAST_NS + bytes / TIMING_BYTES_PER_NS;
}

static inline uint64_t timing_larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The share of launches to time, of 2^32. */
static inline uint64_t timing_share(uint64_t interval_ns, uint64_t own_interval_ns, uint64_t bytes)
{
	uint64_t known = bytes == OP_BYTES_UNKNOWN ? 0 : bytes;
	uint64_t cost = known < TIMING_MEDIUM_BYTES  ? TIMING_SMALL_NS
			: known < TIMING_LARGE_BYTES ? TIMING_MEDIUM_NS
						     : TIMING_LARGE_NS;
	uint64_t by_pace =
		timing_larger(interval_ns / TIMING_PACE_SHARE, own_interval_ns / TIMING_OWN_SHARE);
	uint64_t by_size = timing_least_ns(known) / TIMING_LEAST_SHARE;
	uint64_t allowed = timing_larger(by_pace, by_size);

	return allowed >= cost ? UINT64_C(1) << 32 : (allowed << 32) / cost;
}

/*
 * Is the next launch in a graph timed? `credit_ns`: what earlier launches in this graph have saved, 0 at first.
 */
static inline bool timing_graph_choose(uint64_t *credit_ns, uint64_t bytes)
{
	uint64_t cost = bytes < TIMING_GRAPH_LEAST_BYTES ? TIMING_GRAPH_SMALL_NS
			: bytes < TIMING_LARGE_BYTES	 ? TIMING_GRAPH_MEDIUM_NS
							 : TIMING_GRAPH_LARGE_NS;
	uint64_t credit = load_relaxed(credit_ns) + timing_least_ns(bytes) / TIMING_GRAPH_SHARE;
	bool is_chosen = credit >= cost;

	store_relaxed(credit_ns, is_chosen ? credit - cost : credit);
	return is_chosen;
}

/* True for the second to the eighth launch of each kind; counts it. */
static inline bool timing_is_new(struct timing_kinds *kinds, uint8_t function, uint64_t bytes)
{
	uint8_t *at = &kinds->launches[function % TIMING_FUNCTIONS]
				      [op_size_class(bytes) / 2 % TIMING_SIZES];
	uint8_t before = load_relaxed(at);

	if (LIKELY(before >= TIMING_NEW_KIND))
		return false;
	store_relaxed(at, (uint8_t)(before + 1));
	return before > 0;
}

/* Does the draw of this launch fall into the share? The same on all ranks. */
static inline bool timing_is_drawn(uint64_t comm_hash, uint64_t number, uint64_t share)
{
	return hash_word(hash_word(comm_hash, number), 0) >> 32 < share;
}

#endif
