/* Calibrating the processor's counter, and wall time. */
#include "common/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

uint64_t clock_now_system(void)
{
	return clock_system_ns(CLOCK_MONOTONIC);
}

/* Does the processor have a counter that runs at the same rate in every power state? */
static bool has_constant_counter(void)
{
#if defined(__aarch64__)
	return true;
#elif defined(__x86_64__)
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
#else
	return false;
#endif
}

/* The counter's rate if the processor reports it, else 0. */
static uint64_t counter_hz(void)
{
#if defined(__aarch64__)
	uint64_t hz;

	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
#else
	return 0;
#endif
}

/* The narrowest of a few brackets, so that preemption in between does not spoil the pair. */
struct clock_sample clock_sample_take(void)
{
	struct clock_sample best = { 0, 0 };
	uint64_t narrowest = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t before = clock_ticks();
		uint64_t ns = clock_system_ns(CLOCK_MONOTONIC);
		uint64_t after = clock_ticks();

		if (after - before < narrowest) {
			narrowest = after - before;
			best.ticks = before + (after - before) / 2;
			best.ns = ns;
		}
	}
	return best;
}

static uint64_t multiplier_from(uint64_t ns, uint64_t ticks)
{
	__extension__ typedef unsigned __int128 wide;

	return (uint64_t)(((wide)ns << CLOCK_SHIFT) / ticks);
}

void clock_source_init(struct clock_source *source, struct clock_sample early)
{
	struct clock_sample late = clock_sample_take();
	uint64_t hz = counter_hz();

	*source = (struct clock_source){ .kind = CLOCK_KIND_SYSTEM };
	if (!has_constant_counter())
		return;
	if (hz == 0) {
		while (late.ns - early.ns < CLOCK_CALIBRATION_NS)
			late = clock_sample_take();
		if (late.ticks <= early.ticks)
			return;
		source->multiplier = multiplier_from(late.ns - early.ns, late.ticks - early.ticks);
	} else {
		source->multiplier = multiplier_from(1000000000u, hz);
	}
	source->base_ticks = late.ticks;
	source->base_ns = late.ns;
	source->kind = CLOCK_KIND_COUNTER;
}

struct clock_anchor clock_anchor_take(const struct clock_source *source)
{
	struct clock_anchor best = { 0, 0 };
	uint64_t narrowest = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t before = clock_now(source);
		uint64_t wall = clock_system_ns(CLOCK_REALTIME);
		uint64_t after = clock_now(source);

		if (after - before < narrowest) {
			narrowest = after - before;
			best.clock_ns = before + (after - before) / 2;
			best.wall_ns = wall;
		}
	}
	return best;
}

bool clock_anchors_are_steady(const struct clock_anchor *one, const struct clock_anchor *later)
{
	const uint64_t slack_ns = 100000;
	uint64_t clock_ns = later->clock_ns - one->clock_ns;
	uint64_t wall_ns = later->wall_ns - one->wall_ns;
	uint64_t apart_ns = wall_ns > clock_ns ? wall_ns - clock_ns : clock_ns - wall_ns;

	return later->clock_ns > one->clock_ns && later->wall_ns > one->wall_ns &&
	       apart_ns <= clock_ns / 2000 + slack_ns;
}
