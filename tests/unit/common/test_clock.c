/*
 * The recorder's clock against the system's. Tests assert order, not time: each reading is taken
 * between two readings of the other clock.
 */
#include "common/clock.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tests/tap.h"

/*
 * 1 part in 1,000: a counter's rate is known far better, and a wrong shift or rate is off by far
 * more.
 */
enum { RATE_PARTS = 1000, SETTLE_NS = 50000 };

static struct clock_source make(void)
{
	struct clock_sample early = clock_sample_take();
	struct clock_source source;

	clock_source_init(&source, early);
	return source;
}

static void it_never_steps_back(void)
{
	struct clock_source source = make();
	uint64_t before = clock_now(&source), now;
	unsigned int back = 0;

	for (int i = 0; i < 1000000; i++) {
		now = clock_now(&source);
		back += now < before;
		before = now;
	}
	EXPECT_EQUAL(back, 0);
}

/* |a - b| as parts of `whole`, with a margin for the cost of one reading. */
static bool is_near(uint64_t a, uint64_t b, uint64_t whole)
{
	uint64_t apart = a > b ? a - b : b - a;

	return apart <= SETTLE_NS + whole / RATE_PARTS;
}

/* Bracketed: system, ours, system. Uses the narrowest of many brackets. */
static void it_follows_the_system(void)
{
	struct clock_source source = make();
	struct clock_sample best[2];

	for (int part = 0; part < 2; part++) {
		uint64_t narrowest = UINT64_MAX;

		/* Some work between the two: counted, not timed. */
		for (volatile int i = 0; part == 1 && i < 20000000; i++)
			continue;
		for (int i = 0; i < 1000; i++) {
			uint64_t first = clock_system_ns(CLOCK_MONOTONIC);
			uint64_t ours = clock_now(&source);
			uint64_t last = clock_system_ns(CLOCK_MONOTONIC);

			if (last - first < narrowest) {
				narrowest = last - first;
				best[part] = (struct clock_sample){ ours, first };
			}
		}
	}
	EXPECT_THAT("it starts where CLOCK_MONOTONIC is", is_near(best[0].ticks, best[0].ns, 0));
	EXPECT_THAT("it runs at the same rate",
		    is_near(best[1].ticks - best[0].ticks, best[1].ns - best[0].ns,
			    best[1].ns - best[0].ns));
}

static void the_formula_is_exact(void)
{
	/* 1.5 ns per tick. */
	struct clock_source source = { .kind = CLOCK_KIND_COUNTER,
				       .multiplier = (UINT64_C(3) << CLOCK_SHIFT) / 2,
				       .base_ticks = clock_ticks(),
				       .base_ns = 1000 };
	uint64_t before = clock_ticks(), now = clock_now(&source), after = clock_ticks();

	if (after == before)
		return; /* no counter here */
	EXPECT(now >= 1000 + (before - source.base_ticks) * 3 / 2);
	EXPECT(now <= 1000 + (after - source.base_ticks) * 3 / 2);
	/* Nearly two centuries of ticks do not overflow it. */
	source.base_ticks = clock_ticks() - (UINT64_C(1) << 62);
	source.multiplier = UINT64_C(1) << CLOCK_SHIFT;
	EXPECT(clock_now(&source) - 1000 >= UINT64_C(1) << 62);
}

static void other_kinds_are_the_system(void)
{
	struct clock_source source = { .kind = CLOCK_KIND_SYSTEM };
	uint64_t before = clock_system_ns(CLOCK_MONOTONIC), now = clock_now(&source);

	EXPECT(now >= before && now <= clock_system_ns(CLOCK_MONOTONIC));
}

static void anchors_tie_it_to_wall_time(void)
{
	struct clock_source source = make();
	uint64_t clock = clock_now(&source), wall = clock_system_ns(CLOCK_REALTIME);
	struct clock_anchor anchor = clock_anchor_take(&source);

	EXPECT(anchor.clock_ns >= clock && anchor.clock_ns <= clock_now(&source));
	EXPECT(anchor.wall_ns >= wall && anchor.wall_ns <= clock_system_ns(CLOCK_REALTIME));
}

static void anchors_are_steady_unless_the_wall_clock_was_set(void)
{
	const uint64_t day = UINT64_C(86400) * 1000000000,
		       start = UINT64_C(1700000000) * 1000000000;
	const struct clock_anchor first = { 5000, start };
	const struct clock_anchor drifted = { 5000 + day, start + day - day / 20000 };
	const struct clock_anchor set = { 5000 + day, start + day + day / 24 };
	const struct clock_anchor back = { 5000 + day, start - day };
	const struct clock_anchor soon = { 5000 + 1000, start + 40000 };

	EXPECT(clock_anchors_are_steady(&first, &drifted));
	EXPECT_THAT("right after each other both are read with some delay",
		    clock_anchors_are_steady(&first, &soon));
	EXPECT(!clock_anchors_are_steady(&first, &set));
	EXPECT(!clock_anchors_are_steady(&first, &back));
	EXPECT(!clock_anchors_are_steady(&drifted, &first));
	EXPECT(!clock_anchors_are_steady(&first, &first));
}

/* After two seconds a millisecond of drift and 100 us for reading them are steady, both ways. */
static void anchors_at_the_limits(void)
{
	const uint64_t two_s = UINT64_C(2000000000), most = 1000000 + 100000;
	const struct clock_anchor one = { two_s * 1000, two_s * 800000000 };
	const struct {
		struct clock_anchor later;
		bool is_steady;
	} cases[] = {
		{ { one.clock_ns + two_s, one.wall_ns + two_s + most }, true },
		{ { one.clock_ns + two_s, one.wall_ns + two_s + most + 1 }, false },
		{ { one.clock_ns + two_s, one.wall_ns + two_s - most }, true },
		{ { one.clock_ns + two_s, one.wall_ns + two_s - most - 1 }, false },
		{ { one.clock_ns + 1, one.wall_ns + 1 }, true },
		{ { one.clock_ns, one.wall_ns + 1 }, false },
		{ { one.clock_ns + 1, one.wall_ns }, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT(clock_anchors_are_steady(&one, &cases[i].later) == cases[i].is_steady);
}

int main(void)
{
	it_never_steps_back();
	it_follows_the_system();
	the_formula_is_exact();
	other_kinds_are_the_system();
	anchors_tie_it_to_wall_time();
	anchors_are_steady_unless_the_wall_clock_was_set();
	anchors_at_the_limits();
	return tap_done();
}
