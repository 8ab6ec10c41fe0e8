/*
 * Times over sizes have bends and steps: NCCL goes over to another protocol that nobody told, takes
 * more channels, larger chunks. A stretch of sizes is cut in two where two sets of parameters
 * describe it better than one, and pay for themselves.
 */
#include "bench/cost_fit_parts.h"

#include <math.h>
#include <string.h>

/* Cuts of cuts: four stretches at most. More sizes than this are not cut: it takes too long. */
enum { STRETCH_CUTS = 2, STRETCH_SIZES_MOST = 64 };
#define WILD 0.5   /* ln: an error beyond this is no worse than this */
#define EXACT 0.01 /* ln: better than this is as good as exact */

/* How well a stretch is described; a trial that does not count: cells 0. */
struct trial {
	double squares; /* of ln(measured / expected) */
	size_t cells;
	size_t points; /* different ones */
	size_t parameters;
};

static enum status try_stretch(struct cost_fitting *fitting, const struct cost_group *like,
			       uint64_t from, uint64_t to, struct trial *trial)
{
	struct cost_group group = *like;
	struct cost_solution solution;
	enum status status;

	memset(trial, 0, sizeof(*trial));
	group.bytes_from = from;
	group.bytes_to = to;
	cost_group_gather(fitting, &group);
	if (!cost_group_is_enough(&group))
		return OK;
	status = cost_solve(fitting->rows, group.cells, &solution);
	if (status != OK)
		return status;
	trial->cells = group.cells;
	trial->points = group.points;
	trial->parameters = (size_t)__builtin_popcount(solution.free);
	for (size_t i = 0; i < group.cells; i++) {
		double time = cost_solution_time(&solution, &fitting->rows[i].work);
		double off = time > 0 ? log(fitting->rows[i].time_ns / time) : 1;

		/* A wild cell is no reason to cut. */
		trial->squares += fmin(off * off, WILD * WILD);
	}
	return OK;
}

/* Bayes' information criterion: what is gained has to pay for the parameters. A cell that repeats another
 * one is no new evidence of a bend. */
static double criterion(const struct trial *one, const struct trial *other)
{
	double points = (double)(one->points + other->points);
	double parameters = (double)(one->parameters + other->parameters);
	double mean = (one->squares + other->squares) / (double)(one->cells + other->cells);

	return points * log(fmax(mean, EXACT * EXACT)) + parameters * log(points);
}

/* Where to cut sizes[0 .. count - 1] in two; 0: nowhere is better. */
static enum status best_cut(struct cost_fitting *fitting, const struct cost_group *like,
			    const double *sizes, size_t count, uint64_t *cut)
{
	const struct trial none = { 0 };
	uint64_t from = (uint64_t)sizes[0], to = (uint64_t)sizes[count - 1];
	struct trial whole, low, high;
	double best;
	enum status status = try_stretch(fitting, like, from, to, &whole);

	*cut = 0;
	if (status != OK || whole.cells == 0)
		return status;
	best = criterion(&whole, &none);
	for (size_t i = 1; i < count && status == OK; i++) {
		double middle = floor(sqrt(sizes[i - 1] * sizes[i]));

		/* Both stretches end there, and no cell lies there. */
		if (middle <= sizes[i - 1] || middle >= sizes[i])
			continue;
		status = try_stretch(fitting, like, from, (uint64_t)middle, &low);
		if (status == OK)
			status = try_stretch(fitting, like, (uint64_t)middle, to, &high);
		if (status != OK || low.cells == 0 || high.cells == 0 ||
		    criterion(&low, &high) >= best)
			continue;
		best = criterion(&low, &high);
		*cut = (uint64_t)middle;
	}
	return status;
}

/* The different sizes of a stretch, into sizes[]. */
static size_t sizes_of(struct cost_fitting *fitting, const struct cost_group *like, uint64_t from,
		       uint64_t to)
{
	struct cost_group group = *like;
	size_t count = 0;

	group.bytes_from = from;
	group.bytes_to = to;
	cost_group_gather(fitting, &group);
	for (size_t i = 0; i < group.cells; i++)
		if (count == 0 || fitting->errors[i] != fitting->sizes[count - 1])
			fitting->sizes[count++] = fitting->errors[i];
	return count;
}

/* Cut in two, and the halves again, as long as that pays: protocols are three. */
static enum status cut_stretches(struct cost_fitting *fitting, const struct cost_group *like,
				 uint64_t from, uint64_t to, int cuts)
{
	struct cost_group group = *like;
	size_t count = sizes_of(fitting, like, from, to);
	uint64_t cut = 0;
	enum status status = OK;

	if (cuts > 0 && count >= 2 * COST_SIZES_LEAST && count <= STRETCH_SIZES_MOST)
		status = best_cut(fitting, like, fitting->sizes, count, &cut);
	if (status != OK)
		return status;
	if (cut == 0) {
		group.bytes_from = from;
		group.bytes_to = to;
		return cost_group_add(fitting, &group);
	}
	status = cut_stretches(fitting, like, from, cut, cuts - 1);
	return status == OK ? cut_stretches(fitting, like, cut, to, cuts - 1) : status;
}

enum status cost_group_add_stretches(struct cost_fitting *fitting, const struct cost_group *like,
				     uint64_t from, uint64_t to)
{
	return cut_stretches(fitting, like, from, to, STRETCH_CUTS);
}
