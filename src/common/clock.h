/*
 * The recorder's clock: nanoseconds that never step, cheap enough for a callback.
 *
 * If the processor has a counter of constant rate (aarch64: CNTVCT; x86-64: an invariant TSC), it
 * is read directly: 7 ns instead of 30 ns for clock_gettime(), and never a system call. The counter
 * is scaled to nanoseconds of CLOCK_MONOTONIC as of setup. Otherwise clock_gettime(CLOCK_MONOTONIC)
 * is used.
 *
 * Readers get struct clock_source through the region, so a reader on the same host computes the
 * same "now". Wall time comes from anchors: pairs of (recorder's ns, CLOCK_REALTIME ns).
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/attributes.h"

/* Units of time in nanoseconds. */
#define US_NS UINT64_C(1000)
#define MS_NS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)

enum clock_kind {
	CLOCK_KIND_SYSTEM = 1,	/* clock_gettime(CLOCK_MONOTONIC) */
	CLOCK_KIND_COUNTER = 2, /* the processor's counter, scaled */
};

/* Part of the region's layout. */
enum { CLOCK_SHIFT = 32 };

struct clock_source {
	uint32_t kind;
	uint32_t reserved;
	uint64_t multiplier; /* ns = base_ns + ((ticks - base_ticks) * multiplier >> CLOCK_SHIFT) */
	uint64_t base_ticks;
	uint64_t base_ns;
};

struct clock_anchor {
	uint64_t clock_ns; /* the recorder's clock */
	uint64_t wall_ns;  /* CLOCK_REALTIME at the same moment */
};

static inline uint64_t clock_ticks(void)
{
#if defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#elif defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

static inline uint64_t clock_system_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Out of line, so that reading the counter does not pay for the stack frame of a system call. */
COLD uint64_t clock_now_system(void);

static inline uint64_t clock_now(const struct clock_source *source)
{
	__extension__ typedef unsigned __int128 wide;

	if (LIKELY(source->kind == CLOCK_KIND_COUNTER))
		return source->base_ns + (uint64_t)(((wide)(clock_ticks() - source->base_ticks) *
						     source->multiplier) >>
						    CLOCK_SHIFT);
	return clock_now_system();
}

/* A moment at which the counter and CLOCK_MONOTONIC were read together. */
struct clock_sample {
	uint64_t ticks;
	uint64_t ns;
};

struct clock_sample clock_sample_take(void);

/*
 * Set up *source. `early` is a sample taken earlier, the longer ago the better. If the counter's
 * rate is not known otherwise, the call spins until CLOCK_CALIBRATION_NS have passed since then.
 */
enum { CLOCK_CALIBRATION_NS = 4000000 };
void clock_source_init(struct clock_source *source, struct clock_sample early);

struct clock_anchor clock_anchor_take(const struct clock_source *source);

/*
 * Did both clocks run at nearly the same rate between these anchors, as they do unless the wall
 * clock was set? Then times between them can be interpolated. Time synchronization slews by 500 ppm
 * at most.
 */
bool clock_anchors_are_steady(const struct clock_anchor *one, const struct clock_anchor *later);

#endif
