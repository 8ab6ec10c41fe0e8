/* Cells of a run as the model sees them: which algorithm, how much work, how long it took. */
#ifndef COST_OBSERVE_H
#define COST_OBSERVE_H

#include "bench/cost_fit.h"

struct cost_observed {
	struct cost_cell cell;
	uint8_t function;
	struct cost_shape shape;
	uint64_t bytes;
	struct cost_work work;
	bool is_guessed; /* nobody said which algorithm it was: the function's usual one */
	size_t group;	 /* of the model that it was fitted in; SIZE_MAX none */
};

/* Whether or not it can be used: cell.is_used, cell.why. ERR_NO_SPACE. */
enum status cost_observe(struct cost_observed *observed, const struct bench_run *run,
			 const struct bench_cell *cell, const struct cost_fit_options *options);

#endif
