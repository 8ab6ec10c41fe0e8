/*
 * Disjoint sets of numbers 0 .. count - 1. parents[i] is another number of its set, or i itself: then it is the root,
 * which stands for the set.
 */
#ifndef UNION_FIND_H
#define UNION_FIND_H

#include <stdint.h>

/* Each number is a set of its own. */
static inline void union_find_init(uint32_t *parents, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		parents[i] = i;
}

static inline uint32_t union_find_root(uint32_t *parents, uint32_t of)
{
	while (parents[of] != of) {
		parents[of] = parents[parents[of]];
		of = parents[of];
	}
	return of;
}

/* The smaller of both roots is that of the common set: with this alone a root is the smallest of its set. */
static inline void union_find_join(uint32_t *parents, uint32_t one, uint32_t other)
{
	uint32_t a = union_find_root(parents, one), b = union_find_root(parents, other);

	parents[a < b ? b : a] = a < b ? a : b;
}

/* The set of `one` gets the root that `to` has. */
static inline void union_find_join_to(uint32_t *parents, uint32_t one, uint32_t to)
{
	parents[union_find_root(parents, one)] = union_find_root(parents, to);
}

#endif
