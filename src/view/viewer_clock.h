/*
 * Where a GPU's clock stands against the recorder's.
 *
 * A callback comes after the moment it tells of, so (GPU's stop - when it was seen) is never more than
 * the offset between the clocks. Per stretch of time the greatest difference is kept; a line through
 * these is the offset, late by what the quickest callbacks take. Stretches get longer as time goes
 * on, so memory is fixed.
 */
#ifndef VIEWER_CLOCK_H
#define VIEWER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { VIEWER_CLOCK_STRETCHES = 128 };

struct viewer_clock {
	uint64_t origin_ns; /* recorder's clock; 0: nothing was added */
	uint64_t width_ns;
	struct viewer_clock_best {
		uint64_t seen_ns; /* 0: nothing in this stretch */
		int64_t offset_ns;
	} best[VIEWER_CLOCK_STRETCHES];
};

void viewer_clock_init(struct viewer_clock *clock);
void viewer_clock_add(struct viewer_clock *clock, uint64_t gpu_ns, uint64_t seen_ns);

/* GPU's clock minus recorder's = offset_ns + drift x (recorder's - middle_ns). */
struct viewer_clock_fit {
	bool is_known;
	int64_t offset_ns;
	double drift;
	uint64_t middle_ns;
};

struct viewer_clock_fit viewer_clock_fit(const struct viewer_clock *clock);

/* GPU's clock to the recorder's; `near_ns` is the recorder's clock about then. */
uint64_t viewer_clock_ns(const struct viewer_clock_fit *fit, uint64_t gpu_ns, uint64_t near_ns);

#endif
