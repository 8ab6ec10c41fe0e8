/*
 * Bandwidth of a rank over time: each operation's bytes spread evenly over its duration, in bins. A bin's value is
 * its bytes over its width. Where one operation in ten of the rank or more was not timed, that would leave their bytes out;
 * the value is then bytes over time of the timed ones, and bins without any have none.
 */
#ifndef VIEWER_BINS_H
#define VIEWER_BINS_H

#include <stdbool.h>
#include <stdint.h>

#include "view/viewer.h"

enum { VIEWER_BINS_MAX = 1024 };

struct viewer_bins {
	uint64_t start_ns; /* common time */
	uint64_t width_ns;
	uint32_t count;
	bool is_used;
	uint64_t timed;
	uint64_t missed; /* not timed */
	double busy_ns[VIEWER_BINS_MAX];
	double bytes[VIEWER_BINS_MAX];
};

/* Bins of a round width (1, 2 or 5 times a power of ten) from start to end. */
void viewer_bins_init(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns);

/* Parts outside of the bins are left out. */
void viewer_bins_add(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns, double bytes);

/* An operation was not timed. */
void viewer_bins_miss(struct viewer_bins *bins);
/* Values are of the timed operations alone. */
bool viewer_bins_is_sampled(const struct viewer_bins *bins);

/* Values of a counter in GB/s, one where it changes, with a 0 behind the last bin; no 0 where some
 * were not timed. */
void viewer_bins_write(const struct viewer_bins *bins, struct viewer *viewer,
		       const struct viewer_track *track, uint64_t origin_ns);

#endif
