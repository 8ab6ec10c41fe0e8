/* What the parts of crossover share. */
#ifndef CROSSOVER_PARTS_H
#define CROSSOVER_PARTS_H

#include "bench/crossover.h"

/* Is `fast` faster beyond noise? */
static inline bool crossover_is_clear(const struct crossover_point *fast,
				      const struct crossover_point *slow)
{
	return fast->high_ns < slow->low_ns &&
	       slow->median_ns >= fast->median_ns * (1 + CROSSOVER_LEAST);
}

/* NULL: not measured at this size, or with wrong results. */
const struct crossover_point *crossover_point_at(const struct crossover_curve *curve,
						 uint64_t bytes);

/* Fills sizes[] and crossings[] from the curves; ERR_NO_SPACE. */
enum status crossover_judge(struct crossover *crossover);

/* Fills advice[]. */
void crossover_advise(struct crossover *crossover, const struct bench_run *run);

#endif
