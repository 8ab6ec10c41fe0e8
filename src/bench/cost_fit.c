/*
 * Times are sums of row[p] * value[p]; the fit is to their logarithms. Gauss-Newton: near a guess f of the time,
 * ln(t) is ln(f) + (row x value - f) / f, so each round is a weighted linear problem. Outliers weigh less (Huber).
 * Parameters are not negative: with five of them, all 32 sets of zero parameters are tried.
 *
 * The bottleneck link kind of a transfer depends on the parameters: each round takes it from the previous one; the
 * first one assumes links between nodes wherever they are used.
 */
#include "bench/cost_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/op_layout.h"

/* Bounded least squares on the logarithm of times that are linear in a few parameters. */

struct cost_observation {
	struct cost_work work;
	double time_ns; /* > 0 */
};

struct cost_solution {
	double value[COST_PARAMETERS];
	/* Bit p: the column has information that no other column has. Other parameters are 0. */
	unsigned int free;
	unsigned int
		inseparable; /* bit p: its column is a combination of those of free parameters */
	double scatter;	     /* robust standard deviation of ln(measured / expected) */
	double covariance[COST_PARAMETERS][COST_PARAMETERS];
};

enum { COST_SIZES_LEAST = 3 }; /* needed to separate latency from bandwidth */

/* Cells of a run as the model sees them: algorithm, amount of work, time. */

struct cost_observed {
	struct cost_cell cell;
	uint8_t function;
	struct cost_shape shape;
	uint64_t bytes;
	struct cost_work work;
	bool is_guessed; /* algorithm unknown: the usual one of the function is assumed */
	size_t group;	 /* index of the model's group it was used for; SIZE_MAX none */
};

/* Shared by the parts of the fit. */

/* Smaller size ratios cannot separate latency from bandwidth. */
#define COST_SIZES_APART 4.0

struct cost_fitting {
	struct cost_model *model;
	struct cost_observed *observed;
	size_t count;
	struct cost_observation *rows; /* room for all */
	double *errors;		       /* likewise */
	double *sizes;		       /* likewise */
	struct cost_fit_options options;
};

enum { ROUNDS = 60 };

#define HUBER 1.345
#define DEVIATION 1.4826 /* converts the median absolute deviation to a standard deviation */
#define SCATTER_LEAST 1e-4
#define DEPENDENT 1e-8 /* squared remainder of a column after removing the previous ones */

struct system {
	double matrix[COST_PARAMETERS][COST_PARAMETERS];
	double right[COST_PARAMETERS];
	double constant;
};

/* ---- which parameters can be determined ------------------------------------------------------ */

/* If several parameters could explain the data, the first in this order gets it. */
static const int by_weight[COST_PARAMETERS] = { COST_TIME_BETWEEN, COST_TIME_INSIDE,
						COST_LATENCY_BETWEEN, COST_LATENCY_INSIDE,
						COST_CALL };

static enum cost_link first_slow(const struct cost_work *work)
{
	return work->bytes[COST_BETWEEN] > 0 ? COST_BETWEEN : COST_INSIDE;
}

/* Gram-Schmidt on the columns; needs only their products. */
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

/* Gauss-Jordan on rows and columns of `set`, scaled to a unit diagonal. False: singular. */
static bool system_invert(const struct system *system, unsigned int set,
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

/* Least squares solution with `set` free and all others 0; returns its objective, or INFINITY. */
static double solve_set(const struct system *system, unsigned int set, double *value)
{
	double inverse[COST_PARAMETERS][COST_PARAMETERS];
	double objective = system->constant;

	if (!system_invert(system, set, inverse))
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

/* The best of all sets; false if there is none. */
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

/* Adds one observation: row / f against 1 + ln(t / f). */
static void system_add(struct system *system, const double *row, double guess, double time,
		       double weight)
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

/* Huber's objective: quadratic near 0, linear beyond. */
static double huber_sum(const double *residuals, size_t count, double scale)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		double z = fabs(residuals[i]);

		sum += z <= scale ? z * z / 2 : scale * (z - scale / 2);
	}
	return sum;
}

/* The solution's time for an observation. */
static double cost_solution_time(const struct cost_solution *solution, const struct cost_work *work)
{
	double row[COST_PARAMETERS];

	cost_row(work, cost_slow(work, solution->value), row);
	return cost_product(row, solution->value);
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

static void system_build(struct system *system, const struct cost_observation *observations,
			 size_t count, const struct cost_solution *solution,
			 const double *residuals, double scatter)
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
		system_add(system, row, guess, one->time_ns,
			   far > HUBER * scatter ? HUBER * scatter / far : 1);
	}
}

/*
 * A parameter that came out as 0 is as uncertain as the others: it is included in the covariance if the data
 * determines it at all.
 */
static void solution_covariance(const struct system *system, unsigned int set, size_t count,
				struct cost_solution *solution)
{
	double inverse[COST_PARAMETERS][COST_PARAMETERS];
	size_t used = (size_t)__builtin_popcount(set);

	if (count > used)
		solution->scatter *= sqrt((double)count / (double)(count - used));
	if (!system_invert(system, solution->free, inverse) && !system_invert(system, set, inverse))
		return;
	for (int p = 0; p < COST_PARAMETERS; p++)
		for (int q = 0; q < COST_PARAMETERS; q++)
			solution->covariance[p][q] =
				inverse[p][q] * solution->scatter * solution->scatter;
}

/* Iterates until there is no improvement; keeps the best round. */
static void solution_iterate(const struct cost_observation *observations, size_t count,
			     struct cost_solution *solution, double *residuals, double *room)
{
	struct cost_solution here = *solution;
	struct system system, best_system = { 0 };
	unsigned int set = 0, best_set = 0;
	double best = INFINITY;

	system_build(&system, observations, count, &here, NULL, 0);
	for (int round = 0; round < ROUNDS; round++) {
		double bad, scatter;

		if (!solve_bounded(&system, here.free, here.value, &set))
			break;
		residuals_of(observations, count, &here, residuals);
		scatter = scatter_of(residuals, count, room);
		bad = huber_sum(residuals, count, HUBER * fmax(scatter, 0.01));
		if (bad < best) {
			best = bad;
			best_set = set;
			best_system = system;
			here.scatter = scatter;
			*solution = here;
		}
		system_build(&system, observations, count, &here, residuals, scatter);
	}
	if (best_set != 0)
		solution_covariance(&best_system, best_set, count, solution);
}

/* ERR_RANGE: no observations; ERR_NO_SPACE. */
static enum status cost_solve(const struct cost_observation *observations, size_t count,
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
	solution_iterate(observations, count, &found, room, room + count);
	free(room);
	*solution = found;
	return OK;
}

/* ---- where ----------------------------------------------------------------------------------- */

static int32_t node_of(const struct bench_run *run, int32_t rank)
{
	if (run->is_gpu_shared)
		return rank; /* NCCL sees one node per rank */
	return run->ranks && rank < run->nranks ? run->ranks[rank].node : 0;
}

struct cost_shape cost_shape_of(const struct bench_run *run, const struct bench_cell *cell,
				int32_t rails)
{
	struct cost_shape shape = { .ranks = cell->nranks, .nodes = 1, .rails = rails };
	int32_t highest = 0;

	/* Nodes are numbered in order of their first rank. */
	for (int32_t rank = 0; rank < cell->nranks; rank++)
		if (node_of(run, rank) > highest)
			highest = node_of(run, rank);
	shape.nodes = highest < cell->nranks ? highest + 1 : cell->nranks;
	return shape;
}

/* Ranks of the busiest node whose peer is on another node. -1: both kinds of pairs; -2: out of memory. */
static int32_t ranks_leaving(const struct bench_run *run, const struct bench_cell *cell)
{
	int32_t *leaving = calloc((size_t)cell->nranks, sizeof(*leaving));
	int32_t most = 0;
	bool has_staying = false;

	if (leaving == NULL)
		return -2;
	for (int32_t rank = 0; rank < cell->nranks; rank++) {
		int32_t peer = cell->peers[rank], node = node_of(run, rank);

		if (peer < 0 || peer >= cell->nranks || node < 0 || node >= cell->nranks)
			continue;
		if (node_of(run, peer) == node)
			has_staying = true;
		else if (++leaving[node] > most)
			most = leaving[node];
	}
	free(leaving);
	return has_staying && most > 0 ? -1 : most;
}

/* ---- what ------------------------------------------------------------------------------------ */

static bool is_direct(uint8_t function)
{
	return cost_is_in_nccl(function, COST_DIRECT);
}

/* The cell's algorithm: forced, as recorded by the plugin, or the usual one. */
static void find_algorithm(struct cost_observed *observed, const struct bench_cell *cell)
{
	uint8_t algorithm = cell->chosen_algorithm ? cell->chosen_algorithm : cell->algorithm;

	observed->cell.protocol = cell->chosen_protocol ? cell->chosen_protocol : cell->protocol;
	if (is_direct(cell->function)) {
		observed->cell.algorithm = COST_DIRECT;
	} else if (algorithm != 0) {
		observed->cell.algorithm = cost_algorithm_of(algorithm);
	} else {
		observed->cell.algorithm = COST_RING;
		observed->is_guessed = true;
	}
}

static const char *why_not(const struct bench_cell *cell, const struct cost_observed *observed,
			   const struct cost_fit_options *options)
{
	if (options->mode != 0 && cell->mode != options->mode)
		return "another mode";
	if (cell->wrong != BENCH_UNCHECKED && cell->wrong != 0)
		return "wrong results";
	if (cell->nranks < 2)
		return "a single rank";
	if (observed->cell.algorithm == COST_ANY)
		return "an algorithm that is not modeled";
	if (observed->cell.measured_ns <= 0)
		return "not timed";
	return NULL;
}

static const char *find_work(struct cost_observed *observed, const struct bench_run *run,
			     const struct bench_cell *cell, bool *is_out_of_memory)
{
	int32_t leaving;

	if (cell->function != OP_SEND_RECV || cell->peers == NULL)
		return cost_work_of(cell->function, observed->cell.algorithm, &observed->shape,
				    cell->bytes, &observed->work)
			       ? NULL
			       : "a function that is not modeled";
	leaving = ranks_leaving(run, cell);
	*is_out_of_memory = leaving == -2;
	if (leaving < 0)
		return "pairs over different kinds of links";
	return cost_work_of_pairs(&observed->shape, leaving, cell->bytes, &observed->work)
		       ? NULL
		       : "pairs inconsistent with their nodes";
}

/* Decides whether a cell can be used: cell.is_used, cell.why. ERR_NO_SPACE. */
static enum status cost_observe(struct cost_observed *observed, const struct bench_run *run,
				const struct bench_cell *cell,
				const struct cost_fit_options *options)
{
	struct bench_figures figures;
	enum status status = bench_cell_figures(cell, options->over, &figures);
	bool is_out_of_memory = false;

	if (status != OK)
		return status;
	memset(observed, 0, sizeof(*observed));
	observed->group = SIZE_MAX;
	observed->function = cell->function;
	observed->bytes = cell->bytes;
	observed->shape = cost_shape_of(run, cell, options->rails);
	observed->cell.measured_ns = figures.p50;
	find_algorithm(observed, cell);
	observed->cell.why = why_not(cell, observed, options);
	if (observed->cell.why == NULL)
		observed->cell.why = find_work(observed, run, cell, &is_out_of_memory);
	observed->cell.is_used = observed->cell.why == NULL;
	return is_out_of_memory ? ERR_NO_SPACE : OK;
}

/* One set of parameters: the cells it is fitted to, what they determine and what not. */

/* Whether the cell belongs to the group. */
static bool cost_group_has(const struct cost_group *group, const struct cost_observed *one)
{
	return one->cell.is_used && one->cell.algorithm == group->algorithm &&
	       one->cell.protocol == group->protocol &&
	       (group->bytes_to == 0 ||
		(one->bytes >= group->bytes_from && one->bytes <= group->bytes_to)) &&
	       (group->function == 0 || group->function == one->function);
}

static void range_widen(struct cost_range *range, const struct cost_observed *one, bool is_first)
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

static size_t count_sizes(double *sizes, size_t count)
{
	size_t different = 0;

	stats_sort(sizes, count);
	for (size_t i = 0; i < count; i++)
		different += i == 0 || sizes[i] != sizes[i - 1];
	return different;
}

static int by_work(const void *left, const void *right)
{
	const struct cost_observation *a = left, *b = right;

	return memcmp(&a->work, &b->work, sizeof(a->work));
}

/* Number of distinct rows. */
static size_t count_points(struct cost_observation *rows, size_t count)
{
	size_t points = 0;

	qsort(rows, count, sizeof(*rows), by_work);
	for (size_t i = 0; i < count; i++)
		points += i == 0 || by_work(&rows[i - 1], &rows[i]) != 0;
	return points;
}

/* Collects the group's cells in rows[] and their sorted sizes in errors[]; sets its range, sizes and points. */
static void cost_group_gather(struct cost_fitting *fitting, struct cost_group *group)
{
	for (size_t i = 0; i < fitting->count; i++) {
		const struct cost_observed *one = &fitting->observed[i];

		if (!cost_group_has(group, one))
			continue;
		range_widen(&group->range, one, group->cells == 0);
		fitting->errors[group->cells] = (double)one->bytes;
		fitting->rows[group->cells++] =
			(struct cost_observation){ .work = one->work,
						   .time_ns = one->cell.measured_ns };
	}
	group->sizes = count_sizes(fitting->errors, group->cells);
	group->points = count_points(fitting->rows, group->cells);
}

static bool cost_group_is_enough(const struct cost_group *group)
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

/*
 * Cells with equal rows repeat the misfit of the formula as well: the uncertainty depends on the number of distinct
 * rows, not on how often they were measured.
 */
static void spread_over_points(struct cost_group *group)
{
	double repeats = (double)group->cells / (double)group->points;

	for (int p = 0; p < COST_PARAMETERS; p++)
		for (int q = 0; q < COST_PARAMETERS; q++)
			group->covariance[p][q] *= repeats;
}

/* Measured total of call and hops. */
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

/* Whether links of this kind were used, but only together with slower ones of the other kind. */
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

static void group_tell(struct cost_model *model, const struct cost_group *group)
{
	if (group->inseparable & 1u << COST_CALL)
		cost_model_note(model, "one number of ranks cannot separate call overhead from hop "
				       "latency: all of it is counted as latency");
	else if (group->inseparable)
		cost_model_note(model,
				"one shape cannot separate latency inside nodes from latency "
				"between nodes: all of it is counted as between");
}

/* Fits a group like this and adds it to the model. ERR_NO_SPACE. */
static enum status cost_group_add(struct cost_fitting *fitting, const struct cost_group *like)
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
	/* Adjacent ranges touch, so that no size is left uncovered. */
	if (group.bytes_to > 0) {
		group.range.bytes_least = group.bytes_from;
		group.range.bytes_most = group.bytes_to;
	}
	fitting->model->groups[fitting->model->group_count++] = group;
	group_tell(fitting->model, &group);
	return OK;
}

/*
 * Times over sizes have bends and steps: NCCL switches to another (unreported) protocol, more channels, larger
 * chunks. A range of sizes is split where two sets of parameters describe it better than one by enough to justify
 * the extra parameters.
 */

/* Splits of splits: at most four ranges. More sizes than this are not split: it takes too long. */
enum { STRETCH_CUTS = 2, STRETCH_SIZES_MOST = 64 };
#define WILD 0.5   /* ln: larger errors are capped */
#define EXACT 0.01 /* ln: smaller errors count as exact */

/* How well a range is described; cells 0: not a valid trial. */
struct trial {
	double squares; /* of ln(measured / expected) */
	size_t cells;
	size_t points; /* distinct ones */
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

		/* An outlier is no reason to split. */
		trial->squares += fmin(off * off, WILD * WILD);
	}
	return OK;
}

/*
 * Bayesian information criterion: the gain must justify the extra parameters. A repeated cell is no new evidence
 * for a bend.
 */
static double bayes_criterion(const struct trial *one, const struct trial *other)
{
	double points = (double)(one->points + other->points);
	double parameters = (double)(one->parameters + other->parameters);
	double mean = (one->squares + other->squares) / (double)(one->cells + other->cells);

	return points * log(fmax(mean, EXACT * EXACT)) + parameters * log(points);
}

/* Where to split sizes[0 .. count - 1]; 0: no split is better. */
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
	best = bayes_criterion(&whole, &none);
	for (size_t i = 1; i < count && status == OK; i++) {
		double middle = floor(sqrt(sizes[i - 1] * sizes[i]));

		/* Both ranges end there, and no cell has that size. */
		if (middle <= sizes[i - 1] || middle >= sizes[i])
			continue;
		status = try_stretch(fitting, like, from, (uint64_t)middle, &low);
		if (status == OK)
			status = try_stretch(fitting, like, (uint64_t)middle, to, &high);
		if (status != OK || low.cells == 0 || high.cells == 0 ||
		    bayes_criterion(&low, &high) >= best)
			continue;
		best = bayes_criterion(&low, &high);
		*cut = (uint64_t)middle;
	}
	return status;
}

/* The distinct sizes of a range. */
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

/* Splits in two, and the halves again while that improves the fit: there are three protocols. */
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

/* ---- all groups ------------------------------------------------------------------------------ */

/* Fits a group and adds it to the model; does nothing if there is too little data. */
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
	return cut_stretches(fitting, &group, whole.range.bytes_least, whole.range.bytes_most,
			     STRETCH_CUTS);
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

/* Single functions first, so that each cell belongs to its own; then all together. */
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

/* No group of the same kind covers larger sizes. */
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
			cost_model_note(model, "the measured sizes are too small to determine a "
					       "bandwidth: no prediction for larger ones");
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
		cost_model_note(model, "measured on one node: links between nodes are unknown");
	if (has_between && !has_inside)
		cost_model_note(model, "measured with one rank per node: links inside a node are "
				       "unknown");
	for (size_t i = 0; i < model->group_count; i++)
		if (model->groups[i].faster & 1u << COST_BETWEEN)
			cost_model_note(model,
					"links inside nodes were always the bottleneck: those "
					"between nodes are at least as fast, but their speed is "
					"unknown");
	if (has_guess)
		cost_model_note(model, "the measurement does not say which algorithm AllReduce "
				       "used: assuming ring");
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
			cost_model_note(fitting->model, "ranks shared a GPU and used sockets: "
							"\"between\" is this host's loopback, not "
							"a network");
	}
	return status;
}

static void fit_compare(struct cost_fitting *fitting, struct cost_fit *fit)
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
	fit_compare(fitting, fit);
	if (fitting->model->group_count > before) {
		tell_limits(fitting);
		tell_flat(fitting->model);
		return OK;
	}
	cost_model_note(fitting->model,
			"nothing to fit: need %d sizes of one function, the largest %gx the "
			"smallest, in one mode, with correct results",
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
