#include "bench/cost_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "bench/cost_fit_parts.h"
#include "common/op_layout.h"

/* ---- all groups ------------------------------------------------------------------------------ */

/* Fits a group and adds it to the model; quietly nothing where there is too little. */
static enum status fit_group(struct cost_fitting *fitting, uint8_t function,
			     enum cost_algorithm algorithm, uint8_t protocol)
{
	const struct cost_group group = { .function = function,
					  .algorithm = algorithm,
					  .protocol = protocol };
	struct cost_group whole = group;

	cost_group_gather(fitting, &whole);
	if (!cost_group_is_enough(&whole))
		return OK;
	return cost_group_add_stretches(fitting, &group, whole.range.bytes_least,
					whole.range.bytes_most);
}

static bool has_other_function(const struct cost_fitting *fitting, enum cost_algorithm algorithm,
			       uint8_t protocol)
{
	const struct cost_group all = { .algorithm = algorithm, .protocol = protocol };
	uint8_t first = 0;

	for (size_t i = 0; i < fitting->count; i++) {
		if (!cost_group_has(&all, &fitting->observed[i]))
			continue;
		if (first != 0 && fitting->observed[i].function != first)
			return true;
		first = fitting->observed[i].function;
	}
	return false;
}

/* Functions one by one first, so that each cell belongs to its own; then all together. */
static enum status fit_all(struct cost_fitting *fitting)
{
	enum status status = OK;

	for (int algorithm = COST_RING; algorithm < COST_ALGORITHMS; algorithm++)
		for (uint8_t protocol = 0; protocol < OP_PROTOCOLS; protocol++) {
			for (uint8_t function = 1; function < OP_FUNCTIONS && status == OK;
			     function++)
				status = fit_group(fitting, function,
						   (enum cost_algorithm)algorithm, protocol);
			if (status == OK &&
			    has_other_function(fitting, (enum cost_algorithm)algorithm, protocol))
				status = fit_group(fitting, 0, (enum cost_algorithm)algorithm,
						   protocol);
		}
	return status;
}

/* No set of the same kind is for larger sizes. */
static bool is_last_stretch(const struct cost_model *model, const struct cost_group *group)
{
	for (size_t i = 0; i < model->group_count; i++) {
		const struct cost_group *other = &model->groups[i];

		if (other->function == group->function && other->algorithm == group->algorithm &&
		    other->protocol == group->protocol && other->bytes_to > group->bytes_to)
			return false;
	}
	return true;
}

static void tell_flat(struct cost_model *model)
{
	for (size_t i = 0; i < model->group_count; i++)
		if (model->groups[i].is_flat && is_last_stretch(model, &model->groups[i]))
			cost_model_note(model, "the sizes measured are too small to tell a "
					       "bandwidth: nothing is said of larger ones");
}

static void tell_limits(struct cost_fitting *fitting)
{
	struct cost_model *model = fitting->model;
	bool has_inside = false, has_between = false, has_guess = false;

	for (size_t i = 0; i < fitting->count; i++) {
		const struct cost_observed *one = &fitting->observed[i];

		if (!one->cell.is_used)
			continue;
		has_inside = has_inside || one->work.hops[COST_INSIDE] > 0;
		has_between = has_between || one->work.hops[COST_BETWEEN] > 0;
		has_guess = has_guess || (one->is_guessed && one->function == OP_ALL_REDUCE);
	}
	if (has_inside && !has_between)
		cost_model_note(model, "measured on one node: nothing is known of links between "
				       "nodes");
	if (has_between && !has_inside)
		cost_model_note(model, "measured with one rank a node: nothing is known of links "
				       "inside a node");
	for (size_t i = 0; i < model->group_count; i++)
		if (model->groups[i].faster & 1u << COST_BETWEEN)
			cost_model_note(model,
					"links inside nodes decided everywhere: those between "
					"nodes are at least as fast, how fast is not known");
	if (has_guess)
		cost_model_note(model, "the measurement does not say which algorithm AllReduce "
				       "took: a ring is supposed");
}

/* ---- cells ----------------------------------------------------------------------------------- */

static uint8_t mode_to_fit(const struct bench_run *const *runs, size_t run_count, uint8_t wanted)
{
	uint8_t first = 0;

	for (size_t r = 0; r < run_count && wanted == 0; r++)
		for (size_t c = 0; c < runs[r]->cell_count; c++) {
			if (runs[r]->cells[c].mode == BENCH_BLOCKING)
				return BENCH_BLOCKING;
			first = first ? first : runs[r]->cells[c].mode;
		}
	return wanted ? wanted : first;
}

static enum status observe_all(struct cost_fitting *fitting, const struct bench_run *const *runs,
			       size_t run_count)
{
	enum status status = OK;

	for (size_t r = 0; r < run_count; r++) {
		for (size_t c = 0; c < runs[r]->cell_count && status == OK; c++) {
			struct cost_observed *one = &fitting->observed[fitting->count];

			status = cost_observe(one, runs[r], &runs[r]->cells[c], &fitting->options);
			one->cell.run = r;
			one->cell.cell = c;
			fitting->count += status == OK;
		}
		if (runs[r]->is_gpu_shared)
			cost_model_note(fitting->model, "ranks shared a GPU and talked through "
							"sockets: \"between\" is this "
							"machine's loopback and no network");
	}
	return status;
}

static void compare(struct cost_fitting *fitting, struct cost_fit *fit)
{
	size_t count = 0;

	for (size_t i = 0; i < fitting->count; i++) {
		struct cost_observed *one = &fitting->observed[i];
		double time;

		if (one->cell.is_used && one->group == SIZE_MAX) {
			one->cell.is_used = false;
			one->cell.why = "too few sizes";
		}
		if (one->cell.is_used &&
		    cost_time(&fitting->model->groups[one->group], &one->work, &time, NULL)) {
			one->cell.expected_ns = time;
			one->cell.error = time / one->cell.measured_ns - 1;
			fitting->errors[count++] = fabs(one->cell.error);
			fit->worst_error = fmax(fit->worst_error, fabs(one->cell.error));
		}
		fit->cells[i] = one->cell;
	}
	fit->cell_count = fitting->count;
	fit->used = count;
	fit->median_error = stats_median(fitting->errors, count);
}

static enum status run_fit(struct cost_fitting *fitting, struct cost_fit *fit,
			   const struct bench_run *const *runs, size_t run_count)
{
	size_t before = fitting->model->group_count;
	enum status status = observe_all(fitting, runs, run_count);

	if (status == OK)
		status = fit_all(fitting);
	if (status != OK)
		return status;
	compare(fitting, fit);
	if (fitting->model->group_count > before) {
		tell_limits(fitting);
		tell_flat(fitting->model);
		return OK;
	}
	cost_model_note(fitting->model,
			"nothing to fit: it takes %d sizes of one function, the largest %g times "
			"the smallest, in one mode, with right results",
			COST_SIZES_LEAST, COST_SIZES_APART);
	return ERR_UNKNOWN;
}

static size_t cells_of(const struct bench_run *const *runs, size_t run_count)
{
	size_t cells = 0;

	for (size_t r = 0; r < run_count; r++)
		cells += runs[r]->cell_count;
	return cells;
}

enum status cost_fit(struct cost_model *model, struct cost_fit *fit,
		     const struct bench_run *const *runs, size_t run_count,
		     const struct cost_fit_options *options)
{
	size_t room = cells_of(runs, run_count) + 1;
	struct cost_fitting fitting = { .model = model, .options = *options };
	struct cost_fit found = { 0 };
	enum status status = ERR_NO_SPACE;

	fitting.options.mode = mode_to_fit(runs, run_count, options->mode);
	fitting.observed = calloc(room, sizeof(*fitting.observed));
	fitting.rows = calloc(room, sizeof(*fitting.rows));
	fitting.errors = calloc(room, sizeof(*fitting.errors));
	fitting.sizes = calloc(room, sizeof(*fitting.sizes));
	found.cells = calloc(room, sizeof(*found.cells));
	found.mode = fitting.options.mode;
	if (options->rails > 0)
		model->rails = options->rails;
	if (fitting.observed && fitting.rows && fitting.errors && fitting.sizes && found.cells)
		status = run_fit(&fitting, &found, runs, run_count);
	free(fitting.observed);
	free(fitting.rows);
	free(fitting.errors);
	free(fitting.sizes);
	if (fit && (status == OK || status == ERR_UNKNOWN))
		*fit = found;
	else
		free(found.cells);
	return status;
}

void cost_fit_release(struct cost_fit *fit)
{
	free(fit->cells);
	memset(fit, 0, sizeof(*fit));
}

bool cost_predict_cell(const struct cost_model *model, const struct bench_run *run,
		       const struct bench_cell *cell, struct cost_answer *answer)
{
	const struct cost_fit_options options = { .rails = model->rails };
	struct cost_answer answers[COST_ALGORITHMS];
	struct cost_observed one;
	size_t count;

	if (cell->peers != NULL || cost_observe(&one, run, cell, &options) != OK)
		return false;
	if (!one.is_guessed)
		return one.cell.algorithm != COST_ANY &&
		       cost_predict(model, cell->function, one.cell.algorithm, one.cell.protocol,
				    &one.shape, cell->bytes, answer, NULL);
	count = cost_predict_all(model, cell->function, &one.shape, cell->bytes, answers, NULL);
	if (count > 0)
		*answer = answers[0];
	return count > 0;
}
