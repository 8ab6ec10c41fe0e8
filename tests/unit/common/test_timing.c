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
	EXPECT(timing_share(10000, 0, 1024) == ALL * 40 / TIMING_SMALL_NS);
	EXPECT(timing_share(55000, 0, MIB) == ALL * 220 / TIMING_MEDIUM_NS);
	EXPECT(timing_share(197000, 0, 8 * MIB) > ALL / 14);
	EXPECT(timing_share(197000, 0, 8 * MIB) < ALL / 10);
	EXPECT(timing_share(1050000, 0, 64 * MIB) > ALL / 3);
	/* Rare ones are all timed, whatever their size. */
	EXPECT(timing_share(10000000, 0, 4) == ALL);
	EXPECT(timing_share(10000000, 0, OP_BYTES_UNKNOWN) == ALL);
	/* Rare ones of a communicator among many of others. */
	EXPECT(timing_share(20000, 100000000, 4) == ALL);
	EXPECT(timing_share(20000, 40000, 4) == timing_share(20000, 0, 4));
	/* Large ones among many small ones. */
	EXPECT(timing_share(10000, 0, 1024 * MIB) == ALL);
	/* Nothing is known yet. */
	EXPECT(timing_share(0, 0, 4) > 0);
	EXPECT(timing_share(0, 0, 4) < ALL / 500);
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

/* A process: its launches, and a communicator. */
struct played {
	struct timing_launches process;
	struct timing_pace pace;
	uint64_t now;
};

/* Launches of others, evenly, and then one of this communicator. */
static bool launch(struct played *played, bool is_collective, uint64_t number, unsigned int others,
		   uint64_t pause_ns)
{
	bool is_paid = false;

	for (unsigned int i = 0; i <= others; i++) {
		played->now += pause_ns / (others + 1);
		is_paid = timing_launch_count(&played->process, TIMING_PAUSE_NS, played->now);
	}
	is_paid |= timing_pace_count(&played->pace, is_collective, number, &played->process,
				     played->now);
	return is_paid;
}

static void the_pace_is_that_of_the_last_window(void)
{
	static struct played one = { .now = 1000000000 };
	const struct timing_pace *pace = &one.pace;

	for (uint64_t number = 1; number <= 7; number++)
		launch(&one, true, number, 2, 15000);
	EXPECT(pace->interval_ns == 0 && pace->own_interval_ns == 0);
	launch(&one, true, 8, 2, 15000);
	EXPECT(pace->interval_ns == 5000 && pace->own_interval_ns == 15000);
	/* Numbers of groups: the next window ends with the first one from 16 on, on all ranks. */
	launch(&one, true, 12, 0, 70000);
	EXPECT(pace->interval_ns == 5000);
	launch(&one, true, 17, 0, 70000);
	EXPECT(pace->interval_ns == 70000 && pace->own_interval_ns == 70000);
	for (uint64_t number = 18; number <= 200; number++)
		launch(&one, true, number, 0, 4000);
	EXPECT(pace->interval_ns == 4000 && pace->own_interval_ns == 4000);
	EXPECT(pace->until > 200 && pace->until <= 200 + TIMING_WINDOW);
}

/* Computing for a second pays for timing the call after it, not all calls after it. */
static void a_pause_does_not_make_calls_slow(void)
{
	static struct played one = { .now = 1000000000 };
	uint64_t most = 0, share;
	unsigned int paid = 0;

	for (uint64_t number = 1; number <= 3000; number++) {
		paid += launch(&one, true, number, 0, number % 300 == 0 ? 1000000000 : 14000);
		share = timing_share(one.pace.interval_ns, one.pace.own_interval_ns, 1024);
		most = share > most ? share : most;
	}
	EXPECT(paid == 10);
	EXPECT(most < ALL / 5);
	/* One that pauses before each call has them all. */
	for (uint64_t number = 3001; number <= 3200; number++)
		paid += launch(&one, true, number, 0, 20000000);
	EXPECT(paid == 210);
	/* ... or that is rare beside busy ones. */
	for (uint64_t number = 3201; number <= 3220; number++)
		paid += launch(&one, true, number, 9999, 100000000);
	EXPECT(paid == 230);
}

/* Ranks have different numbers of Sends and Recvs. */
static void numbers_of_collectives_end_windows(void)
{
	static struct played one = { .now = 1000 };
	const struct timing_pace *pace = &one.pace;

	for (uint64_t number = 1; number <= 100; number++)
		launch(&one, false, number, 0, 5000);
	EXPECT(pace->interval_ns == 5000 && pace->until > 100);
	launch(&one, true, 1, 0, 5000);
	EXPECT(pace->until == TIMING_WINDOW_FIRST);
	for (uint64_t number = 101; number <= 150; number++)
		launch(&one, false, number, 0, 5000);
	EXPECT(pace->until == TIMING_WINDOW_FIRST);
	for (uint64_t number = 2; number <= 8; number++)
		launch(&one, true, number, 0, 9000);
	EXPECT(pace->until == 2 * TIMING_WINDOW_FIRST);
}

/* Two ranks whose clocks and phases differ end their windows at the same numbers. */
static void ranks_measure_their_pace_at_the_same_numbers(void)
{
	static struct played ranks[2] = { { .now = 5 }, { .now = 900000000 } };
	unsigned int different = 0;

	for (uint64_t number = 1; number < 5000; number++) {
		uint64_t pause = number / 700 % 2 ? 2000000 : 11000, shares[2];

		launch(&ranks[0], true, number, 0, pause);
		launch(&ranks[1], true, number, 0, pause + number % 7);
		for (unsigned int i = 0; i < 2; i++)
			shares[i] = timing_share(ranks[i].pace.interval_ns, 0, MIB);
		different += ranks[0].pace.until != ranks[1].pace.until ||
			     shares[0] > shares[1] * 101 / 100 || shares[1] > shares[0] * 101 / 100;
	}
	EXPECT(different == 0);
}

/* The same calls captured again give the same choice; small graphs have none. */
static void the_choice_in_a_graph_follows_from_its_sizes(void)
{
	unsigned int chosen = 0, of_large = 0, of_small = 0;

	for (int capture = 0; capture < 2; capture++) {
		uint64_t credit_ns = 0;

		for (unsigned int i = 0; i < 64; i++) {
			uint64_t bytes = i % 3 == 0 ? 64 * MIB : 8 * MIB;
			bool is_chosen = timing_graph_choose(&credit_ns, bytes);

			chosen += is_chosen;
			of_large += capture == 0 && is_chosen;
			EXPECT(credit_ns < TIMING_GRAPH_LARGE_NS + 10000);
		}
	}
	EXPECT(of_large > 8 && chosen == 2 * of_large);
	for (uint64_t credit_ns = 0, i = 0; i < 600; i++)
		of_small += timing_graph_choose(&credit_ns, 64 * 1024);
	EXPECT(of_small == 0);
}

int main(void)
{
	the_budget_follows_pace_and_size();
	every_call_of_a_loop_is_drawn();
	ranks_with_other_shares_time_a_subset();
	a_new_kind_is_timed_from_its_second_launch_on();
	the_pace_is_that_of_the_last_window();
	a_pause_does_not_make_calls_slow();
	numbers_of_collectives_end_windows();
	ranks_measure_their_pace_at_the_same_numbers();
	the_choice_in_a_graph_follows_from_its_sizes();
	return tap_done();
}
