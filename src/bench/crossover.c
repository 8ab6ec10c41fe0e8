/* Cells become points, points become curves, curves of the same function and mode one crossover. */
#include "bench/crossover.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/crossover_parts.h"
#include "common/op.h"
#include "common/op_layout.h"

enum { CALLS_FOR_INTERVAL = 8 }; /* with fewer, no order statistics hold 99 % */

/* ---- names ----------------------------------------------------------------------------------- */

/* NCCL's variables spell them so. */
static const char *algorithm_word(uint8_t algorithm)
{
	static const char *const words[OP_ALGORITHMS] = {
		[OP_TREE] = "Tree",
		[OP_RING] = "Ring",
		[OP_COLLNET_DIRECT] = "CollnetDirect",
		[OP_COLLNET_CHAIN] = "CollnetChain",
		[OP_NVLS] = "NVLS",
		[OP_NVLS_TREE] = "NVLSTree",
		[OP_PAT] = "PAT",
	};

	return algorithm < OP_ALGORITHMS && words[algorithm] ? words[algorithm]
							     : op_algorithm_name(algorithm);
}

static const char *protocol_word(uint8_t protocol)
{
	return protocol == OP_SIMPLE ? "Simple" : op_protocol_name(protocol);
}

const char *crossover_curve_name(char to[static CROSSOVER_NAME],
				 const struct crossover_curve *curve)
{
	if (curve->is_own || (curve->algorithm == 0 && curve->protocol == 0))
		snprintf(to, CROSSOVER_NAME, "NCCL's choice");
	else if (curve->algorithm == 0)
		snprintf(to, CROSSOVER_NAME, "%s", protocol_word(curve->protocol));
	else if (curve->protocol == 0)
		snprintf(to, CROSSOVER_NAME, "%s", algorithm_word(curve->algorithm));
	else
		snprintf(to, CROSSOVER_NAME, "%s+%s", algorithm_word(curve->algorithm),
			 protocol_word(curve->protocol));
	return to;
}

/* ---- sorting cells --------------------------------------------------------------------------- */

/* What has to be alike for cells to be compared at all. */
static int compare_family(const struct bench_cell *a, const struct bench_cell *b)
{
	const int64_t keys[][2] = {
		{ a->function, b->function },	    { a->mode, b->mode },
		{ a->datatype, b->datatype },	    { a->redop, b->redop },
		{ a->is_in_place, b->is_in_place }, { a->root, b->root },
		{ a->nranks, b->nranks },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	return 0;
}

/* Forced ones first, NCCL's own choice last. */
static int compare_curve(const struct bench_cell *a, const struct bench_cell *b)
{
	bool is_a_own = a->algorithm == 0 && a->protocol == 0;
	bool is_b_own = b->algorithm == 0 && b->protocol == 0;

	if (is_a_own != is_b_own)
		return is_a_own ? 1 : -1;
	if (a->algorithm != b->algorithm)
		return a->algorithm < b->algorithm ? -1 : 1;
	return (a->protocol > b->protocol) - (a->protocol < b->protocol);
}

static int compare_cells(const void *left, const void *right)
{
	const struct bench_cell *a = *(const struct bench_cell *const *)left;
	const struct bench_cell *b = *(const struct bench_cell *const *)right;
	int order = compare_family(a, b);

	order = order ? order : compare_curve(a, b);
	if (order == 0 && a->bytes != b->bytes)
		order = a->bytes < b->bytes ? -1 : 1;
	return order ? order : (a > b) - (a < b);
}

static bool is_usable(const struct bench_cell *cell)
{
	return cell->mode != BENCH_LOOP && cell->calls > 0 && cell->calls_of && cell->bytes > 0;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Sorted times: the median and what holds it in 99 of 100 cases. */
static void interval(struct crossover_point *point, double *times, size_t count)
{
	struct bench_figures figures = bench_figures_of(times, count);
	size_t outside = 0;

	if (count >= CALLS_FOR_INTERVAL)
		outside = (size_t)((double)count / 2 - 1.288 * sqrt((double)count));
	point->calls = count;
	point->median_ns = figures.p50;
	point->low_ns = times[outside];
	point->high_ns = times[count - 1 - outside];
}

static void merge_choice(uint8_t *known, uint8_t chosen, bool is_first)
{
	if (is_first)
		*known = chosen;
	else if (*known != chosen)
		*known = 0; /* not the same in all cells */
}

/* Calls of one round are more alike than rounds are: however many there were, the interval holds what each
 * round by itself would have said. */
static void widen_to_rounds(struct crossover_point *point, double least_ns, double most_ns)
{
	point->low_ns = fmin(point->low_ns, least_ns);
	point->high_ns = fmax(point->high_ns, most_ns);
}

/* `count` cells of the same size, one for each round. False: nobody took a time. */
static bool fill_point(struct crossover_point *point, const struct bench_cell *const *cells,
		       size_t count, enum bench_over over, double *times)
{
	double least_ns = INFINITY, most_ns = 0;
	size_t calls = 0;

	memset(point, 0, sizeof(*point));
	point->bytes = cells[0]->bytes;
	for (size_t i = 0; i < count; i++) {
		size_t here = bench_call_times(cells[i], BENCH_GPU, over, times + calls);
		double median_ns = bench_figures_of(times + calls, here).p50;

		if (here > 0) {
			least_ns = fmin(least_ns, median_ns);
			most_ns = fmax(most_ns, median_ns);
		}
		calls += here;
		if (cells[i]->wrong != BENCH_UNCHECKED)
			point->wrong += cells[i]->wrong;
		merge_choice(&point->chosen_algorithm, cells[i]->chosen_algorithm, i == 0);
		merge_choice(&point->chosen_protocol, cells[i]->chosen_protocol, i == 0);
	}
	if (calls == 0)
		return false;
	interval(point, times, calls);
	widen_to_rounds(point, least_ns, most_ns);
	return true;
}

static size_t calls_of(const struct bench_cell *const *cells, size_t count)
{
	size_t calls = 0;

	for (size_t i = 0; i < count; i++)
		calls += cells[i]->calls;
	return calls;
}

/* `count` cells of one curve. */
static enum status fill_curve(struct crossover_curve *curve, const struct bench_cell *const *cells,
			      size_t count, enum bench_over over)
{
	double *times = calloc(calls_of(cells, count) + 1, sizeof(*times));

	curve->algorithm = cells[0]->algorithm;
	curve->protocol = cells[0]->protocol;
	curve->is_own = curve->algorithm == 0 && curve->protocol == 0;
	curve->points = calloc(count, sizeof(*curve->points));
	if (times == NULL || curve->points == NULL) {
		free(times);
		return ERR_NO_SPACE;
	}
	for (size_t at = 0, next; at < count; at = next) {
		for (next = at + 1; next < count && cells[next]->bytes == cells[at]->bytes;)
			next++;
		curve->count += fill_point(&curve->points[curve->count], cells + at, next - at,
					   over, times);
	}
	free(times);
	return OK;
}

const struct crossover_point *crossover_point_at(const struct crossover_curve *curve,
						 uint64_t bytes)
{
	size_t low = 0, high = curve->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (curve->points[middle].bytes < bytes)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == curve->count || curve->points[low].bytes != bytes || curve->points[low].wrong)
		return NULL;
	return &curve->points[low];
}

/* ---- envelopes ------------------------------------------------------------------------------- */

/* At each size of any of these curves the fastest one. */
static enum status fill_envelope(struct crossover_curve *envelope,
				 const struct crossover_curve *curves, size_t count)
{
	size_t room = 0;

	for (size_t i = 0; i < count; i++)
		room += curves[i].count;
	envelope->algorithm = curves[0].algorithm;
	envelope->is_envelope = true;
	envelope->points = calloc(room + 1, sizeof(*envelope->points));
	if (envelope->points == NULL)
		return ERR_NO_SPACE;
	for (uint64_t above = 0;;) {
		const struct crossover_point *best = NULL;
		uint64_t bytes = UINT64_MAX;

		for (size_t i = 0; i < count; i++)
			for (size_t p = 0; p < curves[i].count; p++)
				if (curves[i].points[p].bytes > above &&
				    curves[i].points[p].bytes < bytes)
					bytes = curves[i].points[p].bytes;
		if (bytes == UINT64_MAX)
			return OK;
		for (size_t i = 0; i < count; i++) {
			const struct crossover_point *here = crossover_point_at(&curves[i], bytes);

			if (here && (best == NULL || here->median_ns < best->median_ns))
				best = here;
		}
		if (best)
			envelope->points[envelope->count++] = *best;
		above = bytes;
	}
}

/* Behind the forced curves, one for every algorithm that was forced with several protocols. */
static enum status add_envelopes(struct crossover *crossover, size_t forced)
{
	enum status status = OK;

	for (size_t at = 0, next; at < forced && status == OK; at = next) {
		const struct crossover_curve *first = &crossover->curves[at];

		for (next = at + 1;
		     next < forced && crossover->curves[next].algorithm == first->algorithm;)
			next++;
		if (next - at > 1 && first->algorithm != 0)
			status = fill_envelope(&crossover->curves[crossover->curve_count++], first,
					       next - at);
	}
	return status;
}

/* ---- one function ---------------------------------------------------------------------------- */

/* Curves of `count` cells, in the order of compare_cells(). */
static enum status fill_curves(struct crossover *crossover, const struct bench_cell *const *cells,
			       size_t count, enum bench_over over)
{
	struct crossover_curve own = { 0 };
	enum status status = OK;

	for (size_t at = 0, next; at < count && status == OK; at = next) {
		struct crossover_curve *curve = &crossover->curves[crossover->curve_count];

		for (next = at + 1; next < count && compare_curve(cells[at], cells[next]) == 0;)
			next++;
		status = fill_curve(curve, cells + at, next - at, over);
		if (curve->is_own) {
			own = *curve;
			memset(curve, 0, sizeof(*curve));
		} else {
			crossover->curve_count++;
		}
	}
	if (status == OK)
		status = add_envelopes(crossover, crossover->curve_count);
	if (own.points) {
		crossover->own = crossover->curve_count;
		crossover->curves[crossover->curve_count++] = own;
	}
	return status;
}

static enum status fill(struct crossover *crossover, const struct bench_run *run,
			const struct bench_cell *const *cells, size_t count, enum bench_over over)
{
	enum status status;

	crossover->function = cells[0]->function;
	crossover->datatype = cells[0]->datatype;
	crossover->redop = cells[0]->redop;
	crossover->mode = cells[0]->mode;
	crossover->is_in_place = cells[0]->is_in_place;
	crossover->root = cells[0]->root;
	crossover->nranks = cells[0]->nranks;
	crossover->own = SIZE_MAX;
	crossover->worst_regret = 1;
	/* At most a curve a cell, and an envelope for two curves. */
	crossover->curves = calloc(count + count / 2 + 1, sizeof(*crossover->curves));
	if (crossover->curves == NULL)
		return ERR_NO_SPACE;
	status = fill_curves(crossover, cells, count, over);
	if (status == OK)
		status = crossover_judge(crossover);
	if (status == OK)
		crossover_advise(crossover, run);
	return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void crossover_set_init(struct crossover_set *set)
{
	memset(set, 0, sizeof(*set));
}

void crossover_set_release(struct crossover_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		for (size_t c = 0; c < set->all[i].curve_count; c++)
			free(set->all[i].curves[c].points);
		free(set->all[i].curves);
		free(set->all[i].sizes);
		free(set->all[i].crossings);
	}
	free(set->all);
	crossover_set_init(set);
}

static enum status fill_set(struct crossover_set *set, const struct bench_run *run,
			    const struct bench_cell **cells, size_t count, enum bench_over over)
{
	enum status status = OK;

	set->all = calloc(count, sizeof(*set->all));
	if (set->all == NULL)
		return ERR_NO_SPACE;
	qsort(cells, count, sizeof(*cells), compare_cells);
	for (size_t at = 0, next; at < count && status == OK; at = next) {
		for (next = at + 1; next < count && compare_family(cells[at], cells[next]) == 0;)
			next++;
		status = fill(&set->all[set->count++], run, cells + at, next - at, over);
	}
	return status;
}

enum status crossover_find(struct crossover_set *set, const struct bench_run *run,
			   enum bench_over over)
{
	const struct bench_cell **cells = calloc(run->cell_count + 1, sizeof(*cells));
	enum status status = ERR_UNKNOWN;
	size_t count = 0;

	crossover_set_init(set);
	if (cells == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < run->cell_count; i++) {
		if (run->cells[i].peers)
			continue;
		if (is_usable(&run->cells[i]))
			cells[count++] = &run->cells[i];
		else
			set->unusable++;
	}
	if (count > 0)
		status = fill_set(set, run, cells, count, over);
	free(cells);
	if (status == ERR_NO_SPACE)
		crossover_set_release(set);
	return status;
}
