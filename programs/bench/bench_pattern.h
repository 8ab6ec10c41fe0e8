/*
 * What buffers are filled with and what must come out, as tables of bits that repeat with a prime
 * period, so that a part in the wrong place shows. Pure.
 *
 * Functions that move data: one table of random bits for all ranks, each of which begins at another place
 * of it (pattern_phase). Functions that reduce: small whole numbers, so few of them above nothing where
 * the type is narrow that every sum and product is exact in any order and for any number of ranks. The one
 * exception is the mean of floating point numbers over a number of ranks that is no power of two: NCCL
 * multiplies by a rounded 1/n before it adds, and each step rounds, so a range is right there.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

enum { PATTERN_PERIOD = 8191 };

struct bench_pattern {
	uint64_t
		input[PATTERN_PERIOD]; /* of this rank; entry (i + phase) mod period is element i */
	uint64_t low[PATTERN_PERIOD];  /* right is what is not below this ... */
	uint64_t high[PATTERN_PERIOD]; /* ... and not above that */
	uint64_t poison[PATTERN_PERIOD]; /* never right */
};

/* Elements of that many bytes, moved as they are. */
void pattern_move(struct bench_pattern *pattern, unsigned int element_bytes);
/* false: no such type or operation. */
bool pattern_reduce(struct bench_pattern *pattern, uint8_t datatype, uint8_t redop, int rank,
		    int nranks);

/* Where a rank's input begins in the table of moved data; in that of reduced data all begin at 0. */
uint32_t pattern_phase(int rank);
/* `steps` elements further on. */
uint32_t pattern_advance(uint32_t phase, uint64_t steps);

#endif
