/*
 * Measuring every variant in turns, on one rank among all: a communicator for each, all sizes on it, and
 * so on in rounds. Whatever drifts meanwhile (clocks, other jobs) hits all variants alike; each round begins
 * with another one.
 */
#ifndef CROSSOVER_MEASURE_H
#define CROSSOVER_MEASURE_H

#include "programs/cli/bench_command.h"
#include "programs/cli/crossover_variants.h"

struct crossover_budget {
	unsigned int rounds;
	double seconds;	   /* for everything, from began_ns on; 0: as long as it takes */
	uint64_t began_ns; /* CLOCK_MONOTONIC */
};

/*
 * After bench_team_open(). Rank 0 has the clock: it gives each size what is left for it, never fewer than three
 * calls, and leaves out rounds that no longer fit, but for the first. Rank 0's run gets a cell for each round, function, variant and size, with NCCL's
 * choice where nothing was forced and the recorder is there. What NCCL does not do here, and what there was no time
 * for, is a note and no failure. 0, or -1: the hub has the reason.
 */
int crossover_measure(struct bench_team *team, struct crossover_variants *variants,
		      const struct crossover_budget *budget);

#endif
