#include "bench/health.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

/* Every pair exactly once, partners agree, no rank is paired with itself. */
static bool is_tournament(int32_t ranks)
{
	struct pair_schedule schedule;
	int32_t *peers = calloc((size_t)ranks, sizeof(*peers));
	unsigned char *met = calloc((size_t)ranks * (size_t)ranks, 1);
	uint64_t pairs = 0;
	bool is_right = true;

	pair_schedule_init(&schedule, ranks, 0);
	for (int32_t round = 0; round < schedule.rounds; round++) {
		int32_t idle = 0;

		pair_schedule_round(&schedule, round, peers);
		for (int32_t rank = 0; rank < ranks; rank++) {
			int32_t peer = peers[rank];

			idle += peer < 0;
			if (peer < 0)
				continue;
			is_right = is_right && peer < ranks && peer != rank && peers[peer] == rank;
			pairs += !met[rank * ranks + peer]++ && rank < peer;
		}
		is_right = is_right && idle == ranks % 2;
	}
	for (int32_t i = 0; i < ranks * ranks; i++)
		is_right = is_right && met[i] <= 1;
	is_right = is_right && pairs == schedule.pairs_all && pairs == schedule.pairs &&
		   !schedule.is_sampled;
	free(peers);
	free(met);
	return is_right;
}

static void everybody_meets_everybody(void)
{
	bool is_right = true;

	for (int32_t ranks = 2; ranks <= 65; ranks++)
		is_right = is_right && is_tournament(ranks);
	EXPECT_THAT("from 2 to 65 ranks every pair is scheduled exactly once", is_right);
}

static void rounds_may_be_fewer(void)
{
	enum { RANKS = 512 };
	static int32_t peers[RANKS];
	static unsigned char met[RANKS][RANKS];
	struct pair_schedule schedule;
	int32_t near = 0, far = 0, twice = 0;

	pair_schedule_init(&schedule, RANKS, 16);
	EXPECT(schedule.is_sampled && schedule.rounds == 16 && schedule.rounds_all == 511);
	EXPECT_EQUAL(schedule.pairs, 16 * 256);
	EXPECT_EQUAL(schedule.pairs_all, 512 * 511 / 2);
	for (int32_t round = 0; round < schedule.rounds; round++) {
		pair_schedule_round(&schedule, round, peers);
		for (int32_t rank = 0; rank < RANKS; rank++) {
			twice += met[rank][peers[rank]]++;
			near += abs(peers[rank] - rank) < 8;
			far += abs(peers[rank] - rank) > RANKS / 2;
		}
	}
	EXPECT_THAT("no pair comes twice", twice == 0);
	EXPECT_THAT("near and far partners are both included", near > 0 && far > 0);
}

static void odd_schedules(void)
{
	struct pair_schedule schedule;
	int32_t peers[3] = { 7, 7, 7 };

	pair_schedule_init(&schedule, 1, 0);
	EXPECT(schedule.rounds == 0 && schedule.pairs_all == 0 && !schedule.is_sampled);
	pair_schedule_round(&schedule, 0, peers);
	EXPECT(peers[0] == -1 && peers[1] == 7);
	pair_schedule_init(&schedule, -5, 3);
	EXPECT(schedule.rounds == 0 && schedule.ranks == 0);
	pair_schedule_init(&schedule, 3, 0);
	pair_schedule_round(&schedule, 99, peers);
	EXPECT_THAT("a nonexistent round has no pairs",
		    peers[0] == -1 && peers[1] == -1 && peers[2] == -1);
	pair_schedule_init(&schedule, 2, 5);
	EXPECT(schedule.rounds == 1 && !schedule.is_sampled);
}

int main(void)
{
	everybody_meets_everybody();
	rounds_may_be_fewer();
	odd_schedules();
	return tap_done();
}
