/*
 * The model's parameters from measurements: least squares on the logarithm of the time (so that the
 * error is relative), with bounds, where single wild values count little (Huber).
 *
 * Cells are put together by algorithm and protocol where the measurement says which (forced, or as
 * the recorder saw NCCL choose); a function that was measured in enough sizes has parameters of its
 * own, and all functions together have a set for those that were not. What the measurements cannot
 * tell apart is noted and not made up.
 */
#ifndef COST_FIT_H
#define COST_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "bench/bench_stats.h"
#include "bench/cost_model.h"
#include "common/status.h"

enum { COST_SIZES_LEAST = 3 }; /* fewer sizes than this tell nothing apart */

struct cost_fit_options {
	enum bench_over over;
	uint8_t mode;  /* enum bench_mode; 0: blocking if there, else the first */
	int32_t rails; /* 0: one NIC for each rank */
};

/* One cell beside the model. */
struct cost_cell {
	size_t run;
	size_t cell;
	bool is_used; /* in the fit; else `why` says why not, static */
	const char *why;
	double measured_ns; /* the median; 0 not known */
	double expected_ns; /* of the group that it belongs to; 0: none */
	double error;	    /* expected / measured - 1 */
	uint8_t protocol;
	enum cost_algorithm algorithm;
};

struct cost_fit {
	struct cost_cell *cells; /* all cells of all runs, in order */
	size_t cell_count;
	size_t used;
	uint8_t mode;	     /* that was fitted */
	double median_error; /* over all that were used, each by its best group */
	double worst_error;
};

/*
 * Fits and adds groups to *model (made by cost_model_init). *fit may be NULL; else it is filled and
 * the caller releases it. ERR_UNKNOWN: nothing could be fitted, the notes say why; ERR_NO_SPACE.
 * Same input, same result.
 */
enum status cost_fit(struct cost_model *model, struct cost_fit *fit,
		     const struct bench_run *const *runs, size_t run_count,
		     const struct cost_fit_options *options);
void cost_fit_release(struct cost_fit *fit);

/* Ranks and nodes of a cell as NCCL sees them. */
struct cost_shape cost_shape_of(const struct bench_run *run, const struct bench_cell *cell,
				int32_t rails);

/* What the model says for a cell, with the cell's own algorithm and protocol where they are
 * known, else the fastest; to be shown beside it. False: cannot be told. */
bool cost_predict_cell(const struct cost_model *model, const struct bench_run *run,
		       const struct bench_cell *cell, struct cost_answer *answer);

#endif
