/*
 * Times are sums of row[p] * value[p]; their logarithms are to fit. Gauss-Newton: around a guess f
 * of the time, ln(t) is ln(f) + (row x value - f) / f, so each round is a weighted linear problem.
 * Wild values weigh less (Huber). Parameters are not negative: with five of them the best set of
 * those that are 0 is found by trying all 32.
 *
 * Which kind of link decides a transfer depends on the parameters themselves: each round takes it
 * from the round before; the first one supposes links between nodes wherever there are such.
 */
#include "bench/cost_solve.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "bench/cost_parts.h"

enum { ROUNDS = 60 };

#define HUBER 1.345
#define DEVIATION 1.4826 /* of a normal distribution, in median absolute deviations */
#define SCATTER_LEAST 1e-4
#define DEPENDENT 1e-8 /* what is left of a column, squared, without those before it */

struct system {
	double matrix[COST_PARAMETERS][COST_PARAMETERS];
	double right[COST_PARAMETERS];
	double constant;
};

/* ---- what can be told ------------------------------------------------------------------------ */

/* Parameters in the order in which they get what several of them could explain. */
static const int by_weight[COST_PARAMETERS] = { COST_TIME_BETWEEN, COST_TIME_INSIDE,
						COST_LATENCY_BETWEEN, COST_LATENCY_INSIDE,
						COST_CALL };

static enum cost_link first_slow(const struct cost_work *work)
{
	return work->bytes[COST_BETWEEN] > 0 ? COST_BETWEEN : COST_INSIDE;
}

/* Columns as vectors, made orthogonal one after the other: products of columns suffice for that. */
static void tell_apart(const double products[COST_PARAMETERS][COST_PARAMETERS],
		       struct cost_solution *solution)
{
	double left[COST_PARAMETERS][COST_PARAMETERS];

	memcpy(left, products, sizeof(left));
	for (int i = 0; i < COST_PARAMETERS; i++) {
		int p = by_weight[i];

		if (products[p][p] <= 0)
			continue;
		if (left[p][p] <= DEPENDENT * products[p][p]) {
			solution->inseparable |= 1u << p;
			continue;
		}
		solution->free |= 1u << p;
		for (int j = i + 1; j < COST_PARAMETERS; j++) {
			int q = by_weight[j];
			double share = left[q][p] / left[p][p];

			for (int k = i; k < COST_PARAMETERS; k++)
				left[q][by_weight[k]] -= share * left[p][by_weight[k]];
		}
	}
}

static void find_free(const struct cost_observation *observations, size_t count,
		      struct cost_solution *solution)
{
	double products[COST_PARAMETERS][COST_PARAMETERS] = { { 0 } };
	double row[COST_PARAMETERS];

	for (size_t i = 0; i < count; i++) {
		cost_row(&observations[i].work, first_slow(&observations[i].work), row);
		for (int p = 0; p < COST_PARAMETERS; p++)
			for (int q = 0; q < COST_PARAMETERS; q++)
				products[p][q] += row[p] / observations[i].time_ns * row[q] /
						  observations[i].time_ns;
	}
	tell_apart(products, solution);
}

/* ---- small linear systems -------------------------------------------------------------------- */

/* Gauss-Jordan on rows and columns of `set`, scaled to ones on the diagonal. False: singular. */
static bool invert(const struct system *system, unsigned int set,
		   double inverse[COST_PARAMETERS][COST_PARAMETERS])
{
	double matrix[COST_PARAMETERS][COST_PARAMETERS], scale[COST_PARAMETERS] = { 0 };

	memset(inverse, 0, COST_PARAMETERS * sizeof(*inverse));
	for (int p = 0; p < COST_PARAMETERS; p++) {
		scale[p] = system->matrix[p][p] > 0 ? 1 / sqrt(system->matrix[p][p]) : 0;
		inverse[p][p] = set & 1u << p ? 1 : 0;
	}
	for (int p = 0; p < COST_PARAMETERS; p++)
		for (int q = 0; q < COST_PARAMETERS; q++)
			matrix[p][q] = system->matrix[p][q] * scale[p] * scale[q];
	for (int p = 0; p < COST_PARAMETERS; p++) {
		double pivot = matrix[p][p];

		if (!(set & 1u << p))
			continue;
		if (!(pivot > 1e-12))
			return false;
		for (int q = 0; q < COST_PARAMETERS; q++) {
			matrix[p][q] /= pivot;
			inverse[p][q] /= pivot;
		}
		for (int r = 0; r < COST_PARAMETERS; r++) {
			double share = r != p && set & 1u << r ? matrix[r][p] : 0;

			for (int q = 0; q < COST_PARAMETERS && share != 0; q++) {
				matrix[r][q] -= share * matrix[p][q];
				inverse[r][q] -= share * inverse[p][q];
			}
		}
	}
	for (int p = 0; p < COST_PARAMETERS; p++)
		for (int q = 0; q < COST_PARAMETERS; q++)
			inverse[p][q] *= scale[p] * scale[q];
	return true;
}

/* The least squares solution with `set` free and all others 0; its objective, or INFINITY. */
static double solve_set(const struct system *system, unsigned int set, double *value)
{
	double inverse[COST_PARAMETERS][COST_PARAMETERS];
	double objective = system->constant;

	if (!invert(system, set, inverse))
		return INFINITY;
	for (int p = 0; p < COST_PARAMETERS; p++) {
		value[p] = 0;
		for (int q = 0; q < COST_PARAMETERS; q++)
			value[p] += set & 1u << p ? inverse[p][q] * system->right[q] : 0;
		if (value[p] < 0)
			return INFINITY;
		objective -= value[p] * system->right[p];
	}
	return objective;
}

/* The best of all sets; false when there is none. */
static bool solve_bounded(const struct system *system, unsigned int free, double *value,
			  unsigned int *best_set)
{
	double best = INFINITY;

	for (unsigned int set = 1; set < 1u << COST_PARAMETERS; set++) {
		double here[COST_PARAMETERS], objective;

		if (set & ~free)
			continue;
		objective = solve_set(system, set, here);
		if (objective < best) {
			best = objective;
			*best_set = set;
			memcpy(value, here, sizeof(here));
		}
	}
	return isfinite(best);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* One observation into the system: row / f against 1 + ln(t / f). */
static void add(struct system *system, const double *row, double guess, double time, double weight)
{
	double target = 1 + log(time / guess);

	for (int p = 0; p < COST_PARAMETERS; p++) {
		for (int q = 0; q < COST_PARAMETERS; q++)
			system->matrix[p][q] += weight * row[p] * row[q] / (guess * guess);
		system->right[p] += weight * row[p] / guess * target;
	}
	system->constant += weight * target * target;
}

static double scatter_of(const double *residuals, size_t count, double *room)
{
	for (size_t i = 0; i < count; i++)
		room[i] = fabs(residuals[i]);
	return fmax(DEVIATION * stats_median(room, count), SCATTER_LEAST);
}

/* Huber's objective: squares near 0, straight beyond. */
static double badness(const double *residuals, size_t count, double scale)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		double z = fabs(residuals[i]);

		sum += z <= scale ? z * z / 2 : scale * (z - scale / 2);
	}
	return sum;
}

/* residuals: ln(measured / expected). */
static void residuals_of(const struct cost_observation *observations, size_t count,
			 const struct cost_solution *solution, double *residuals)
{
	for (size_t i = 0; i < count; i++) {
		double time = cost_solution_time(solution, &observations[i].work);

		residuals[i] = time > 0 ? log(observations[i].time_ns / time) : 50;
	}
}

static void build(struct system *system, const struct cost_observation *observations, size_t count,
		  const struct cost_solution *solution, const double *residuals, double scatter)
{
	memset(system, 0, sizeof(*system));
	for (size_t i = 0; i < count; i++) {
		const struct cost_observation *one = &observations[i];
		bool is_first = residuals == NULL;
		double far = is_first ? 0 : fabs(residuals[i]), row[COST_PARAMETERS];
		double guess = is_first ? one->time_ns : one->time_ns * exp(-residuals[i]);

		cost_row(&one->work,
			 is_first ? first_slow(&one->work) : cost_slow(&one->work, solution->value),
			 row);
		add(system, row, guess, one->time_ns,
		    far > HUBER * scatter ? HUBER * scatter / far : 1);
	}
}

/* A parameter that came out as 0 is as uncertain as the others: it is in the covariance, too, where
 * the measurements tell it at all. */
static void confidence(const struct system *system, unsigned int set, size_t count,
		       struct cost_solution *solution)
{
	double inverse[COST_PARAMETERS][COST_PARAMETERS];
	size_t used = (size_t)__builtin_popcount(set);

	if (count > used)
		solution->scatter *= sqrt((double)count / (double)(count - used));
	if (!invert(system, solution->free, inverse) && !invert(system, set, inverse))
		return;
	for (int p = 0; p < COST_PARAMETERS; p++)
		for (int q = 0; q < COST_PARAMETERS; q++)
			solution->covariance[p][q] =
				inverse[p][q] * solution->scatter * solution->scatter;
}

/* Rounds until nothing gets better; the best one stays. */
static void iterate(const struct cost_observation *observations, size_t count,
		    struct cost_solution *solution, double *residuals, double *room)
{
	struct cost_solution here = *solution;
	struct system system, best_system = { 0 };
	unsigned int set = 0, best_set = 0;
	double best = INFINITY;

	build(&system, observations, count, &here, NULL, 0);
	for (int round = 0; round < ROUNDS; round++) {
		double bad, scatter;

		if (!solve_bounded(&system, here.free, here.value, &set))
			break;
		residuals_of(observations, count, &here, residuals);
		scatter = scatter_of(residuals, count, room);
		bad = badness(residuals, count, HUBER * fmax(scatter, 0.01));
		if (bad < best) {
			best = bad;
			best_set = set;
			best_system = system;
			here.scatter = scatter;
			*solution = here;
		}
		build(&system, observations, count, &here, residuals, scatter);
	}
	if (best_set != 0)
		confidence(&best_system, best_set, count, solution);
}

double cost_solution_time(const struct cost_solution *solution, const struct cost_work *work)
{
	double row[COST_PARAMETERS];

	cost_row(work, cost_slow(work, solution->value), row);
	return cost_product(row, solution->value);
}

enum status cost_solve(const struct cost_observation *observations, size_t count,
		       struct cost_solution *solution)
{
	struct cost_solution found = { .scatter = 0 };
	double *room;

	if (count == 0)
		return ERR_RANGE;
	room = calloc(count, 2 * sizeof(*room));
	if (room == NULL)
		return ERR_NO_SPACE;
	find_free(observations, count, &found);
	iterate(observations, count, &found, room, room + count);
	free(room);
	*solution = found;
	return OK;
}
