/* Shared by the parts of the cost model: the formula as a row of factors, one per parameter. */
#ifndef COST_MODEL_INTERNAL_H
#define COST_MODEL_INTERNAL_H

#include "bench/cost_model.h"

/* time = sum of row[p] * value[p], if links of kind `slow` are the bottleneck. */
static inline void cost_row(const struct cost_work *work, enum cost_link slow,
			    double row[COST_PARAMETERS])
{
	row[COST_CALL] = 1;
	row[COST_LATENCY_INSIDE] = work->hops[COST_INSIDE];
	row[COST_LATENCY_BETWEEN] = work->hops[COST_BETWEEN];
	row[COST_TIME_INSIDE] = work->fill[COST_INSIDE];
	row[COST_TIME_BETWEEN] = work->fill[COST_BETWEEN];
	if (slow == COST_INSIDE)
		row[COST_TIME_INSIDE] += work->bytes[COST_INSIDE];
	else
		row[COST_TIME_BETWEEN] += work->bytes[COST_BETWEEN];
}

/* The kind of link that is the bottleneck. */
static inline enum cost_link cost_slow(const struct cost_work *work, const double *value)
{
	return work->bytes[COST_INSIDE] * value[COST_TIME_INSIDE] >
			       work->bytes[COST_BETWEEN] * value[COST_TIME_BETWEEN]
		       ? COST_INSIDE
		       : COST_BETWEEN;
}

static inline double cost_product(const double *row, const double *value)
{
	double sum = 0;

	for (int p = 0; p < COST_PARAMETERS; p++)
		sum += row[p] * value[p];
	return sum;
}

#endif
