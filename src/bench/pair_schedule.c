/*
 * The circle method. The last rank (or, with an odd number, nobody) stays where it is; all others
 * stand on a circle that turns by one from round to round, and whoever stands opposite each other
 * meets. In round r those meet whose numbers add up to r, modulo n - 1; who would meet itself meets
 * the one that stays.
 */
#include "bench/pair_schedule.h"

#include <string.h>

void pair_schedule_init(struct pair_schedule *schedule, int32_t ranks, int32_t most_rounds)
{
	uint64_t count = ranks > 0 ? (uint64_t)ranks : 0;

	memset(schedule, 0, sizeof(*schedule));
	schedule->ranks = ranks > 0 ? ranks : 0;
	schedule->stride = 1;
	if (ranks < 2)
		return;
	schedule->rounds_all = ranks % 2 == 0 ? ranks - 1 : ranks;
	schedule->rounds = schedule->rounds_all;
	schedule->pairs_all = count * (count - 1) / 2;
	if (most_rounds > 0 && most_rounds < schedule->rounds_all) {
		schedule->rounds = most_rounds;
		schedule->stride = schedule->rounds_all / most_rounds;
		schedule->is_sampled = true;
	}
	schedule->pairs = (uint64_t)schedule->rounds * (count / 2);
}

void pair_schedule_round(const struct pair_schedule *schedule, int32_t round, int32_t *peers)
{
	int64_t circle = schedule->rounds_all; /* who turns: always an odd number */
	int64_t turn = (int64_t)round * schedule->stride;

	for (int64_t rank = 0; rank < schedule->ranks; rank++) {
		int64_t peer;

		peers[rank] = -1;
		if (round < 0 || round >= schedule->rounds || rank == circle)
			continue;
		peer = (turn - rank) % circle;
		peer += peer < 0 ? circle : 0;
		if (peer != rank)
			peers[rank] = (int32_t)peer;
		else if (circle < schedule->ranks)
			peers[rank] = (int32_t)circle;
	}
	for (int64_t rank = 0; rank < circle && circle < schedule->ranks; rank++)
		if (peers[rank] == circle)
			peers[circle] = (int32_t)rank;
}
