/*
 * Pseudorandom numbers that depend only on their arguments: no state, so that the order of computation does not
 * affect the result. Whole numbers only: the same bytes on every platform.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdint.h>

#include "common/hash.h"

static inline uint64_t sim_random(uint64_t seed, uint64_t what, uint64_t which)
{
	uint64_t hash = hash_word(hash_word(hash_word(seed, what), which), UINT64_C(0x52494e47));

	hash ^= hash >> 29;
	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ hash >> 32;
}

/* In [0, range); 0 for range 0. */
static inline uint64_t sim_random_below(uint64_t range, uint64_t seed, uint64_t what,
					uint64_t which)
{
	return range == 0 ? 0 : sim_random(seed, what, which) % range;
}

/* `value` (below 2^53) changed by up to +- permille / 1000; small changes are more likely. */
static inline uint64_t sim_random_spread(uint64_t value, unsigned int permille, uint64_t seed,
					 uint64_t what, uint64_t which)
{
	uint64_t random = sim_random(seed, what, which);
	/* The sum of two 1024-sided dice, minus its mean. */
	int64_t dice = (int64_t)(random & 1023) + (int64_t)(random >> 32 & 1023) - 1023;
	int64_t change = (int64_t)value * dice / 1024 * (int64_t)permille / 1000;

	return (uint64_t)((int64_t)value + change);
}

#endif
