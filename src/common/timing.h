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
 * all ranks know. Ranks measure slightly different paces and arrive at different shares; the one with the smaller share
 * times a subset of what the other times.
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
	/* Of a new kind (function and size) the second to the eighth launch are timed. */
	TIMING_NEW_KIND = 8,
	TIMING_FUNCTIONS = 16,
	TIMING_SIZES = 33,
	/* The pace is measured anew after so many launches or so much time. */
	TIMING_WINDOW_LAUNCHES = 256,
	TIMING_WINDOW_NS = 1000 * 1000 * 1000,
};

/* How often a process launches, over all of its communicators. Several threads may use it: errors are small. */
struct timing_pace {
	uint64_t began_ns;    /* this window; 0: none yet */
	uint64_t launches;    /* in it */
	uint64_t interval_ns; /* mean time between launches in the window before; 0: unknown */
};

/* How often a communicator has launched each kind, saturating. */
struct timing_kinds {
	uint8_t launches[TIMING_FUNCTIONS][TIMING_SIZES];
};

/* Counts a launch. True: a new window has begun. */
static inline bool timing_pace_count(struct timing_pace *pace, uint64_t now_ns)
{
	uint64_t began = load_relaxed(&pace->began_ns);
	uint64_t launches = bump_relaxed_get(&pace->launches) + 1;

	if (LIKELY(launches < TIMING_WINDOW_LAUNCHES && now_ns - began < TIMING_WINDOW_NS))
		return false;
	if (began != 0)
		store_relaxed(&pace->interval_ns, (now_ns - began) / launches);
	store_relaxed(&pace->began_ns, now_ns);
	store_relaxed(&pace->launches, 0);
	return true;
}

/* The share of launches to time, of 2^32. */
static inline uint64_t timing_share(uint64_t interval_ns, uint64_t bytes)
{
	uint64_t known = bytes == OP_BYTES_UNKNOWN ? 0 : bytes;
	uint64_t cost = known < TIMING_MEDIUM_BYTES  ? TIMING_SMALL_NS
			: known < TIMING_LARGE_BYTES ? TIMING_MEDIUM_NS
						     : TIMING_LARGE_NS;
	uint64_t by_pace = interval_ns / TIMING_PACE_SHARE;
	uint64_t by_size = (TIMING_LEAST_NS + known / TIMING_BYTES_PER_NS) / TIMING_LEAST_SHARE;
	uint64_t allowed = by_pace > by_size ? by_pace : by_size;

	return allowed >= cost ? UINT64_C(1) << 32 : (allowed << 32) / cost;
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
