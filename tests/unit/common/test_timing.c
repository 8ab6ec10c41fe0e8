/* Which launches are timed: the budget, new kinds, and the same choice on all ranks. */
#include "common/attributes.h"
#include "common/timing.h"
#include "tests/tap.h"

#define MIB (UINT64_C(1) << 20)
#define ALL (UINT64_C(1) << 32)

static unsigned int drawn(uint64_t hash, uint64_t share, unsigned int launches)
{
	unsigned int count = 0;

	for (unsigned int i = 1; i <= launches; i++)
		count += timing_is_drawn(hash, i, share);
	return count;
}

static void the_budget_follows_pace_and_size(void)
{
	/* Back to back as on an H200: 10, 55, 197 and 1,050 us. */
	EXPECT(timing_share(10000, 1024) == ALL * 40 / TIMING_SMALL_NS);
	EXPECT(timing_share(55000, MIB) == ALL * 220 / TIMING_MEDIUM_NS);
	EXPECT(timing_share(197000, 8 * MIB) > ALL / 14);
	EXPECT(timing_share(197000, 8 * MIB) < ALL / 10);
	EXPECT(timing_share(1050000, 64 * MIB) > ALL / 3);
	/* Rare ones are all timed, whatever their size. */
	EXPECT(timing_share(10000000, 4) == ALL);
	EXPECT(timing_share(10000000, OP_BYTES_UNKNOWN) == ALL);
	/* Large ones among many small ones. */
	EXPECT(timing_share(10000, 1024 * MIB) == ALL);
	/* Nothing is known yet. */
	EXPECT(timing_share(0, 4) > 0);
	EXPECT(timing_share(0, 4) < ALL / 500);
}

/* Over any period of a program, so that each call in a loop is timed. */
static void every_call_of_a_loop_is_drawn(void)
{
	const uint64_t hashes[] = { 0, 1, 0x5eed, UINT64_C(0xfedcba9876543210) };
	const unsigned int periods[] = { 2, 3, 4, 7, 8, 16, 24, 64 };

	for (unsigned int h = 0; h < ARRAY_LENGTH(hashes); h++) {
		unsigned int count = drawn(hashes[h], ALL / 64, 1 << 20);

		EXPECT(count > (1 << 14) * 9 / 10 && count < (1 << 14) * 11 / 10);
		for (unsigned int p = 0; p < ARRAY_LENGTH(periods); p++) {
			unsigned int least = UINT32_MAX;

			for (unsigned int place = 0; place < periods[p]; place++) {
				unsigned int of_place = 0;

				for (unsigned int i = place; i < 1 << 20; i += periods[p])
					of_place += timing_is_drawn(hashes[h], i, ALL / 64);
				least = of_place < least ? of_place : least;
			}
			EXPECT(least > (1u << 14) / periods[p] / 2);
		}
	}
}

static void ranks_with_other_shares_time_a_subset(void)
{
	unsigned int missing = 0;

	for (unsigned int i = 0; i < 100000; i++)
		missing += timing_is_drawn(7, i, ALL / 50) && !timing_is_drawn(7, i, ALL / 40);
	EXPECT(missing == 0);
	EXPECT(drawn(7, ALL, 1000) == 1000);
	EXPECT(drawn(7, 0, 1000) == 0);
}

static void a_new_kind_is_timed_from_its_second_launch_on(void)
{
	static struct timing_kinds kinds;
	unsigned int timed = 0;

	EXPECT(!timing_is_new(&kinds, OP_ALL_REDUCE, MIB));
	for (int i = 1; i < TIMING_NEW_KIND; i++)
		EXPECT(timing_is_new(&kinds, OP_ALL_REDUCE, MIB));
	for (int i = 0; i < 1000; i++)
		timed += timing_is_new(&kinds, OP_ALL_REDUCE, MIB);
	EXPECT(timed == 0);
	/* Another size, another function, no known size. */
	EXPECT(!timing_is_new(&kinds, OP_ALL_REDUCE, 16 * MIB));
	EXPECT(timing_is_new(&kinds, OP_ALL_REDUCE, 16 * MIB));
	EXPECT(!timing_is_new(&kinds, OP_BROADCAST, MIB));
	EXPECT(timing_is_new(&kinds, OP_BROADCAST, MIB));
	EXPECT(!timing_is_new(&kinds, OP_NAME_INTERNED, OP_BYTES_UNKNOWN));
	EXPECT(timing_is_new(&kinds, OP_NAME_INTERNED, OP_BYTES_UNKNOWN));
}

static void the_pace_is_that_of_the_last_window(void)
{
	static struct timing_pace pace;
	uint64_t now = 1000000000;

	EXPECT(timing_pace_count(&pace, now));
	EXPECT(pace.interval_ns == 0);
	for (int i = 0; i < TIMING_WINDOW_LAUNCHES - 1; i++)
		EXPECT(!timing_pace_count(&pace, now += 5000));
	EXPECT(timing_pace_count(&pace, now += 5000));
	EXPECT(pace.interval_ns == 5000);
	/* Slow ones end a window by time. */
	EXPECT(!timing_pace_count(&pace, now += 600000000));
	EXPECT(timing_pace_count(&pace, now += 600000000));
	EXPECT(pace.interval_ns == 600000000);
}

int main(void)
{
	the_budget_follows_pace_and_size();
	every_call_of_a_loop_is_drawn();
	ranks_with_other_shares_time_a_subset();
	a_new_kind_is_timed_from_its_second_launch_on();
	the_pace_is_that_of_the_last_window();
	return tap_done();
}
