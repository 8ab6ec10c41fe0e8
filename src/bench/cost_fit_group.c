/* One set of parameters: which cells it is fitted to, what they tell and what they do not. */
#include "bench/cost_fit_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "bench/cost_parts.h"

bool cost_group_has(const struct cost_group *group, const struct cost_observed *one)
{
	return one->cell.is_used && one->cell.algorithm == group->algorithm &&
	       one->cell.protocol == group->protocol &&
	       (group->bytes_to == 0 ||
		(one->bytes >= group->bytes_from && one->bytes <= group->bytes_to)) &&
	       (group->function == 0 || group->function == one->function);
}

static void widen(struct cost_range *range, const struct cost_observed *one, bool is_first)
{
#define WIDEN(field, value)                                     \
	do {                                                    \
		if (is_first || (value) < range->field##_least) \
			range->field##_least = (value);         \
		if (is_first || (value) > range->field##_most)  \
			range->field##_most = (value);          \
	} while (0)
	WIDEN(bytes, one->bytes);
	WIDEN(ranks, one->shape.ranks);
	WIDEN(nodes, one->shape.nodes);
#undef WIDEN
}

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static size_t count_sizes(double *sizes, size_t count)
{
	size_t different = 0;

	qsort(sizes, count, sizeof(*sizes), by_size);
	for (size_t i = 0; i < count; i++)
		different += i == 0 || sizes[i] != sizes[i - 1];
	return different;
}

static int by_work(const void *left, const void *right)
{
	const struct cost_observation *a = left, *b = right;

	return memcmp(&a->work, &b->work, sizeof(a->work));
}

/* Those that ask different things of the formula. */
static size_t count_points(struct cost_observation *rows, size_t count)
{
	size_t points = 0;

	qsort(rows, count, sizeof(*rows), by_work);
	for (size_t i = 0; i < count; i++)
		points += i == 0 || by_work(&rows[i - 1], &rows[i]) != 0;
	return points;
}

void cost_group_gather(struct cost_fitting *fitting, struct cost_group *group)
{
	for (size_t i = 0; i < fitting->count; i++) {
		const struct cost_observed *one = &fitting->observed[i];

		if (!cost_group_has(group, one))
			continue;
		widen(&group->range, one, group->cells == 0);
		fitting->errors[group->cells] = (double)one->bytes;
		fitting->rows[group->cells++] =
			(struct cost_observation){ .work = one->work,
						   .time_ns = one->cell.measured_ns };
	}
	group->sizes = count_sizes(fitting->errors, group->cells);
	group->points = count_points(fitting->rows, group->cells);
}

bool cost_group_is_enough(const struct cost_group *group)
{
	return group->sizes >= COST_SIZES_LEAST &&
	       (double)group->range.bytes_most >=
		       COST_SIZES_APART * fmax(1, (double)group->range.bytes_least);
}

/* ---- one group ------------------------------------------------------------------------------- */

static void errors_of(struct cost_fitting *fitting, struct cost_group *group,
		      const struct cost_solution *solution)
{
	for (size_t i = 0; i < group->cells; i++) {
		double expected = cost_solution_time(solution, &fitting->rows[i].work);

		fitting->errors[i] = fabs(expected / fitting->rows[i].time_ns - 1);
		group->worst_error = fmax(group->worst_error, fitting->errors[i]);
	}
	group->median_error = stats_median(fitting->errors, group->cells);
}

/* Cells that ask the same of the formula repeat its misfit, too: parameters are as sure as there are
 * different ones, however often these were measured. */
static void spread_over_points(struct cost_group *group)
{
	double repeats = (double)group->cells / (double)group->points;

	for (int p = 0; p < COST_PARAMETERS; p++)
		for (int q = 0; q < COST_PARAMETERS; q++)
			group->covariance[p][q] *= repeats;
}

/* What calls and hops take together, as measured. */
static double fixed_of(struct cost_fitting *fitting, const struct cost_group *group)
{
	for (size_t i = 0; i < group->cells; i++) {
		const double *hops = fitting->rows[i].work.hops;

		fitting->errors[i] = group->value[COST_CALL] +
				     hops[COST_INSIDE] * group->value[COST_LATENCY_INSIDE] +
				     hops[COST_BETWEEN] * group->value[COST_LATENCY_BETWEEN];
	}
	return stats_median(fitting->errors, group->cells);
}

/* Were links of this kind in use, always beside slower ones of the other kind? */
static bool never_decides(const struct cost_fitting *fitting, const struct cost_group *group,
			  int link)
{
	bool is_used = false;

	for (size_t i = 0; i < group->cells; i++) {
		const struct cost_work *work = &fitting->rows[i].work;

		if (work->bytes[link] <= 0)
			continue;
		is_used = true;
		if (work->bytes[1 - link] <= 0 || (int)cost_slow(work, group->value) == link)
			return false;
	}
	return is_used;
}

static void take_solution(struct cost_fitting *fitting, struct cost_group *group,
			  const struct cost_solution *solution)
{
	const unsigned int times = 1u << COST_TIME_INSIDE | 1u << COST_TIME_BETWEEN;
	const unsigned int latencies = 1u << COST_LATENCY_INSIDE | 1u << COST_LATENCY_BETWEEN;

	for (int p = 0; p < COST_PARAMETERS; p++)
		if (solution->free & 1u << p) {
			group->value[p] = solution->value[p];
			group->source[p] = COST_FROM_FIT;
		}
	memcpy(group->covariance, solution->covariance, sizeof(group->covariance));
	group->scatter = solution->scatter;
	group->is_flat = true;
	for (int p = 0; p < COST_PARAMETERS; p++)
		if (times & 1u << p && solution->value[p] > 0)
			group->is_flat = false;
	for (int link = 0; link < COST_LINKS; link++)
		if (never_decides(fitting, group, link)) {
			group->faster |= 1u << link;
			if (group->value[COST_TIME_INSIDE + link] <= 0)
				group->source[COST_TIME_INSIDE + link] = 0;
		}
	group->inseparable = solution->inseparable & (1u << COST_CALL | latencies);
	errors_of(fitting, group, solution);
	if (group->inseparable)
		group->fixed_ns = fixed_of(fitting, group);
}

static void tell(struct cost_model *model, const struct cost_group *group)
{
	if (group->inseparable & 1u << COST_CALL)
		cost_model_note(model,
				"one number of ranks does not tell the call overhead from "
				"the latency of hops: there all of it is counted as latency");
	else if (group->inseparable)
		cost_model_note(model,
				"latency inside and between nodes cannot be told apart where "
				"one shape was measured: there it is all counted as between");
}

enum status cost_group_add(struct cost_fitting *fitting, const struct cost_group *like)
{
	struct cost_group group = *like;
	struct cost_solution solution;
	enum status status;

	if (fitting->model->group_count == COST_GROUPS_MAX) {
		fitting->model->groups_lost++;
		return OK;
	}
	cost_group_gather(fitting, &group);
	status = cost_solve(fitting->rows, group.cells, &solution);
	if (status != OK)
		return status;
	take_solution(fitting, &group, &solution);
	spread_over_points(&group);
	for (size_t i = 0; i < fitting->count; i++)
		if (cost_group_has(&group, &fitting->observed[i]) &&
		    fitting->observed[i].group == SIZE_MAX)
			fitting->observed[i].group = fitting->model->group_count;
	/* Stretches meet: what lies between two of them was not left out. */
	if (group.bytes_to > 0) {
		group.range.bytes_least = group.bytes_from;
		group.range.bytes_most = group.bytes_to;
	}
	fitting->model->groups[fitting->model->group_count++] = group;
	tell(fitting->model, &group);
	return OK;
}
