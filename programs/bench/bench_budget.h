/* How many calls are made: decided by rank 0 alone, from the plan and the time that one takes. Pure. */
#ifndef BENCH_BUDGET_H
#define BENCH_BUDGET_H

#include <stdint.h>

#include "programs/bench/bench_plan.h"

enum { BUDGET_CALLS_MAX = 1000000, BUDGET_CALLS_BYTES = 1 << 28 };

/* More calls of one cell are not kept. */
uint32_t budget_calls_limit(int nranks);
/* Measured calls of one cell when one takes about `call_ns` (0: not known). At least 1. */
uint32_t budget_calls(const struct bench_plan *plan, double call_ns, int nranks);

/* Warm-up calls still to be made after `made` of them took `spent_ns`, the last of them `last_ns`: with a
 * time budget they may take half of it. */
uint32_t budget_warmups(const struct bench_plan *plan, uint32_t made, double spent_ns,
			double last_ns);

#endif
