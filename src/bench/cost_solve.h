/* Least squares on the logarithm of times that are linear in a few parameters, within bounds. */
#ifndef COST_SOLVE_H
#define COST_SOLVE_H

#include <stddef.h>

#include "bench/cost_model.h"
#include "common/status.h"

struct cost_observation {
	struct cost_work work;
	double time_ns; /* > 0 */
};

struct cost_solution {
	double value[COST_PARAMETERS];
	/* Bit p: a column that says something, and nothing that others do not say already.
	 * Parameters without it have the value 0. */
	unsigned int free;
	unsigned int inseparable; /* bit p: its column is made of those of free ones */
	double scatter;		  /* robust standard deviation of ln(measured / expected) */
	double covariance[COST_PARAMETERS][COST_PARAMETERS];
};

/* ERR_RANGE: no observations; ERR_NO_SPACE. */
enum status cost_solve(const struct cost_observation *observations, size_t count,
		       struct cost_solution *solution);

/* What the solution says for an observation. */
double cost_solution_time(const struct cost_solution *solution, const struct cost_work *work);

#endif
