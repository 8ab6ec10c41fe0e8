/*
 * Who measures with whom, so that every pair of ranks has its turn: a round-robin tournament. In
 * every round each rank has one partner (or, with an odd number of ranks, one has none), and after
 * all rounds each pair has met exactly once.
 */
#ifndef PAIR_SCHEDULE_H
#define PAIR_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct pair_schedule {
	int32_t ranks;
	int32_t rounds_all; /* that cover all pairs: n - 1, or n for an odd n; 0 below 2 ranks */
	int32_t rounds;	    /* that are played */
	int32_t stride;	    /* which of all: spread evenly */
	uint64_t pairs_all;
	uint64_t pairs;	 /* that are met */
	bool is_sampled; /* not all pairs: the caller says so */
};

/* At most `most_rounds` rounds (0: no limit). With fewer than all, rounds are spread over all so
 * that near and far partners both come. */
void pair_schedule_init(struct pair_schedule *schedule, int32_t ranks, int32_t most_rounds);

/* peers[r] = r's partner in this round (0 .. rounds - 1), -1 none. Room for `ranks`. */
void pair_schedule_round(const struct pair_schedule *schedule, int32_t round, int32_t *peers);

#endif
