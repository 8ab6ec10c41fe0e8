/*
 * How sure an answer is. Three things that do not know of each other, so their squares add up:
 *
 *	scatter		of single measurements around the fit, a share of the time
 *	parameters	row x covariance x row: what the fit knows of each parameter, times the hops and
 *			bytes that need it here
 *	distance	every doubling beyond what was measured adds the scatter once more: nobody saw
 *			whether the formula still holds there, and that is how well it held where it was seen
 *
 * Parameters are told on the scale of times (a latency of 0 may be one of 20 us, and then 1000 hops take
 * 20 ms), scatter and distance on that of logarithms.
 */
#include <math.h>

#include "analysis/stats.h"
#include "bench/cost_parts.h"

#define MEDIAN_WORTH 0.37
#define FREEDOM_OF_NOISE 3.0

/* A share of the time: one standard deviation. */
static double share_of_parameters(const struct cost_answer *answer, const double *row)
{
	double variance = 0;

	for (int p = 0; p < COST_PARAMETERS; p++)
		for (int q = 0; q < COST_PARAMETERS; q++)
			variance += row[p] * answer->group->covariance[p][q] * row[q];
	return variance > 0 ? sqrt(variance) / answer->time_ns : 0;
}

/* Were these very parameters measured? Those of another algorithm or function may be far off, and a
 * textbook's are nobody's measurements: how far off is not known. */
static bool is_measured(const struct cost_answer *answer, const double *row)
{
	const struct cost_group *group = answer->group;

	if (group->cells == 0 || answer->flags & COST_OTHER_ALGORITHM ||
	    (answer->flags & COST_OTHER_FUNCTION && group->function != 0))
		return false;
	for (int p = 0; p < COST_PARAMETERS; p++)
		if (row[p] > 0 && group->source[p] == COST_FROM_HARDWARE)
			return false;
	return true;
}

/*
 * Degrees of freedom that the scatter has. It comes from a median, which tells as much as MEDIAN_WORTH of as
 * many values do on the average; and cells that repeat others tell little of the misfit, but where there
 * are few different ones they tell of the noise.
 */
static double freedom_of(const struct cost_group *group)
{
	double used = 0, by_cells, by_points;

	for (int p = 0; p < COST_PARAMETERS; p++)
		used += group->source[p] == COST_FROM_FIT;
	by_cells = MEDIAN_WORTH * ((double)group->cells - used);
	by_points = fmax((double)group->points - used, FREEDOM_OF_NOISE);
	return fmax(fmin(by_cells, by_points), 1);
}

void cost_interval(struct cost_answer *answer, const double *row)
{
	const struct cost_group *group = answer->group;
	double times, by_parameters, by_scatter, wide, other;

	answer->low_ns = answer->high_ns = answer->time_ns;
	if (answer->time_ns <= 0 || !is_measured(answer, row))
		return;
	times = stats_student_quantile(0.025, freedom_of(group));
	by_parameters = times * share_of_parameters(answer, row);
	by_scatter = expm1(times * group->scatter * sqrt(1 + answer->doublings));
	wide = 1 + hypot(by_parameters, by_scatter);
	if (answer->flags & COST_UNSEPARATED) {
		other = group->fixed_ns + answer->transfer_ns;
		answer->low_ns = fmin(answer->low_ns, other);
		answer->high_ns = fmax(answer->high_ns, other);
	}
	answer->low_ns /= wide;
	answer->high_ns *= wide;
	answer->has_interval = true;
}
