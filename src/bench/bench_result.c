/*
 * A run and its statistics.
 *
 * Confidence interval of a ratio of medians, by bootstrap. Calls of one run are correlated (same clocks, same
 * neighbours on the host), so runs are drawn first and then calls within them; run i of both variants is drawn
 * together, because they ran one after the other.
 *
 * A resampled median needs no sorting: values are sorted once, a drawn call increments the count at its position,
 * and the median is where the counts reach half.
 *
 * With few runs the bootstrap underestimates the variation between runs, by sqrt((n - 1) / n) and by the difference
 * between Student's distribution and the normal one. How much of that correction is applied depends on the share of
 * the variance between runs (Satterthwaite's degrees of freedom).
 */
#include "bench/bench_result.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/stats.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"

static const char *const mode_names[BENCH_MODES] = {
	[BENCH_BLOCKING] = "blocking",
	[BENCH_BACK_TO_BACK] = "back-to-back",
	[BENCH_GRAPH] = "graph",
	[BENCH_LOOP] = "loop",
};

static const char *const redop_names[BENCH_REDOPS] = {
	[BENCH_NO_REDOP] = "none", [BENCH_SUM] = "sum", [BENCH_PROD] = "prod",
	[BENCH_MAX] = "max",	   [BENCH_MIN] = "min", [BENCH_AVG] = "avg",
};

const char *bench_mode_name(unsigned int mode)
{
	return mode < BENCH_MODES && mode_names[mode] ? mode_names[mode] : "?";
}

const char *bench_redop_name(unsigned int redop)
{
	return redop < BENCH_REDOPS ? redop_names[redop] : "?";
}

unsigned int bench_mode_find(const char *name)
{
	for (unsigned int mode = 1; mode < BENCH_MODES; mode++)
		if (strcmp(name, mode_names[mode]) == 0)
			return mode;
	return 0;
}

unsigned int bench_redop_find(const char *name)
{
	for (unsigned int redop = 1; redop < BENCH_REDOPS; redop++)
		if (strcmp(name, redop_names[redop]) == 0)
			return redop;
	return 0;
}

void bench_run_init(struct bench_run *run)
{
	memset(run, 0, sizeof(*run));
}

void bench_run_release(struct bench_run *run)
{
	for (size_t i = 0; i < run->cell_count; i++) {
		free(run->cells[i].calls_of);
		free(run->cells[i].peers);
	}
	free(run->cells);
	free(run->ranks);
	bench_run_init(run);
}

enum status bench_run_set_ranks(struct bench_run *run, int32_t nranks)
{
	struct bench_rank *ranks;

	if (nranks < 1 || nranks > BENCH_RANKS_MAX)
		return ERR_RANGE;
	ranks = calloc((size_t)nranks, sizeof(*ranks));
	if (ranks == NULL)
		return ERR_NO_SPACE;
	free(run->ranks);
	run->ranks = ranks;
	run->nranks = nranks;
	return OK;
}

static bool cells_grow(struct bench_run *run)
{
	size_t room = run->cell_room ? run->cell_room * 2 : 16;
	struct bench_cell *cells;

	if (run->cell_count < run->cell_room)
		return true;
	if (run->cell_count >= BENCH_CELLS_MAX)
		return false;
	cells = realloc(run->cells, room * sizeof(*cells));
	if (cells == NULL)
		return false;
	run->cells = cells;
	run->cell_room = room;
	return true;
}

struct bench_cell *bench_run_add_cell(struct bench_run *run, const struct bench_cell *like)
{
	struct bench_cell cell = *like;
	size_t ranks = like->nranks > 0 ? (size_t)like->nranks : 0;
	size_t peers_bytes = ranks * sizeof(*cell.peers);

	cell.calls_of = NULL;
	cell.peers = NULL;
	if (!cells_grow(run))
		return NULL;
	if (like->mode != BENCH_LOOP && ranks && like->calls) {
		cell.calls_of = calloc(ranks * like->calls, sizeof(*cell.calls_of));
		if (cell.calls_of == NULL)
			return NULL;
	}
	if (like->peers && ranks) {
		cell.peers = malloc(peers_bytes);
		if (cell.peers == NULL) {
			free(cell.calls_of);
			return NULL;
		}
		memcpy(cell.peers, like->peers, peers_bytes);
	}
	run->cells[run->cell_count] = cell;
	return &run->cells[run->cell_count++];
}

void bench_run_note(struct bench_run *run, const char *format, ...)
{
	char note[BENCH_TEXT_BYTES] = "";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(note, sizeof(note), format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < run->note_count; i++)
		if (strcmp(run->notes[i], note) == 0)
			return;
	if (run->note_count == BENCH_NOTES_MAX) {
		run->notes_lost++;
		return;
	}
	memcpy(run->notes[run->note_count++], note, sizeof(note));
}

uint64_t bench_cell_steps(const struct bench_cell *cell)
{
	return (uint64_t)cell->warmups + cell->calls + cell->checks;
}

/* ---- times of calls -------------------------------------------------------------------------- */

static double call_time(const struct bench_call *call, enum bench_clock clock)
{
	switch (clock) {
	case BENCH_GPU:
		return (double)call->gpu_ns;
	case BENCH_ISSUE:
		return (double)call->issue_ns;
	default:
		return (double)call->done_ns;
	}
}

/* Combines the ranks that took part; 0: none has this time. */
static double over_ranks(const struct bench_cell *cell, uint32_t call, enum bench_clock clock,
			 enum bench_over over)
{
	double sum = 0, least = 0, most = 0;
	size_t ranks = 0;

	for (int32_t rank = 0; rank < cell->nranks; rank++) {
		double time = call_time(bench_cell_call(cell, rank, call), clock);

		if (time <= 0 || (cell->peers && cell->peers[rank] < 0))
			continue;
		least = ranks == 0 || time < least ? time : least;
		most = time > most ? time : most;
		sum += time;
		ranks++;
	}
	if (ranks == 0)
		return 0;
	return over == BENCH_OVER_MIN ? least : over == BENCH_OVER_MAX ? most : sum / (double)ranks;
}

size_t bench_call_times(const struct bench_cell *cell, enum bench_clock clock, enum bench_over over,
			double *times)
{
	size_t count = 0;

	if (cell->mode == BENCH_LOOP || cell->calls_of == NULL)
		return 0;
	for (uint32_t call = 0; call < cell->calls; call++) {
		double time = over_ranks(cell, call, clock, over);

		if (time > 0)
			times[count++] = time;
	}
	return count;
}

/* ---- figures --------------------------------------------------------------------------------- */

/*
 * Of sorted values, interpolated between neighbours. NAN if there are too few values to have one beyond it: it
 * would only repeat the minimum or maximum.
 */
static double percentile(const double *sorted, size_t count, unsigned int percent)
{
	double place = percent / 100.0 * (double)(count - 1);
	size_t below = (size_t)place, beyond = percent < 50 ? percent : 100 - percent;
	double rest = place - (double)below;

	if (percent != 50 && count * beyond < 100)
		return NAN;
	if (below + 1 >= count)
		return sorted[count - 1];
	return sorted[below] + rest * (sorted[below + 1] - sorted[below]);
}

static double deviation_of(const double *values, size_t count, double mean)
{
	double squares = 0;

	if (count < 2)
		return 0;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return sqrt(squares / (double)(count - 1));
}

struct bench_figures bench_figures_of(double *values, size_t count)
{
	struct bench_figures figures = { .count = count };
	double sum = 0;

	if (count == 0)
		return figures;
	stats_sort(values, count);
	for (size_t i = 0; i < count; i++)
		sum += values[i];
	figures.mean = sum / (double)count;
	figures.deviation = deviation_of(values, count, figures.mean);
	figures.least = values[0];
	figures.p05 = percentile(values, count, 5);
	figures.p25 = percentile(values, count, 25);
	figures.p50 = percentile(values, count, 50);
	figures.p75 = percentile(values, count, 75);
	figures.p90 = percentile(values, count, 90);
	figures.p95 = percentile(values, count, 95);
	figures.p99 = percentile(values, count, 99);
	figures.most = values[count - 1];
	return figures;
}

enum status bench_cell_figures(const struct bench_cell *cell, enum bench_over over,
			       struct bench_figures *figures)
{
	double loop = (double)cell->loop_ns;
	double *times;

	if (cell->mode == BENCH_LOOP || cell->calls == 0) {
		*figures = bench_figures_of(&loop, cell->mode == BENCH_LOOP && loop > 0);
		return OK;
	}
	times = calloc(cell->calls, sizeof(*times));
	if (times == NULL)
		return ERR_NO_SPACE;
	*figures = bench_figures_of(times, bench_call_times(cell, BENCH_GPU, over, times));
	free(times);
	return OK;
}

/* Bytes per nanosecond are GB/s (10^9). */
double bench_algbw(const struct bench_cell *cell, double time_ns)
{
	return time_ns > 0 ? (double)cell->bytes / time_ns : 0;
}

double bench_busbw(const struct bench_cell *cell, double time_ns)
{
	return bench_algbw(cell, time_ns) * op_bus_factor(cell->function, cell->nranks);
}

const char *bench_duration(char to[static UNITS_TEXT], double ns)
{
	return ns > 0 ? units_duration(to, (uint64_t)llround(ns)) : "-";
}

/* ---- histogram ------------------------------------------------------------------------------- */

/* Rounding may select the neighbouring bin: the edges decide. */
static size_t bin_of(const struct bench_bins *bins, double value, double least, double step)
{
	double place = value > least && step > 0 ? log(value / least) / step : 0;
	size_t bin = place < (double)(bins->bins - 1) ? (size_t)place : bins->bins - 1;

	while (bin > 0 && value < bins->edges[bin])
		bin--;
	while (bin + 1 < bins->bins && value >= bins->edges[bin + 1])
		bin++;
	return bin;
}

void bench_bins_of(const double *sorted, size_t count, size_t bins, struct bench_bins *out)
{
	double least = 0, most, step;
	size_t first = 0;

	memset(out, 0, sizeof(*out));
	if (count == 0 || bins == 0)
		return;
	while (first < count && !(sorted[first] > 0))
		first++; /* no logarithm: put into the first bin, with the smallest positive values */
	least = first < count ? sorted[first] : 1;
	most = first < count ? sorted[count - 1] : 1;
	out->bins = most > least ? (bins < BENCH_BINS_MAX ? bins : BENCH_BINS_MAX) : 1;
	step = most > least ? log(most / least) / (double)out->bins : 0;
	for (size_t i = 0; i < out->bins; i++)
		out->edges[i] = least * exp(step * (double)i);
	out->edges[out->bins] = most;
	for (size_t i = 0; i < count; i++)
		out->counts[bin_of(out, sorted[i], least, step)]++;
}

enum { DRAWS = 1000, DRAWS_LEAST = 200, WORK_MOST = 40 * 1000 * 1000 };

/* All values of a variant: sorted, and the position of each call of each run. */
struct pool {
	double *sorted;
	uint32_t *place;  /* [first[run] + call] -> index in sorted */
	uint32_t *counts; /* of the current draw */
	size_t *first;	  /* index of each run's first call */
	size_t total;
};

struct placed {
	double value;
	uint32_t index;
};

/* splitmix64: small, and identical on all platforms. */
static uint64_t random_draw(uint64_t *state)
{
	uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	return bits ^ bits >> 31;
}

static size_t draw_below(uint64_t *state, size_t range)
{
	return (size_t)(((random_draw(state) >> 32) * (uint64_t)range) >> 32);
}

static int by_placed(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return ORDER(a->index, b->index);
}

static void pool_release(struct pool *pool)
{
	free(pool->sorted);
	free(pool->place);
	free(pool->counts);
	free(pool->first);
}

static void pool_sort(struct pool *pool, struct placed *all)
{
	qsort(all, pool->total, sizeof(*all), by_placed);
	for (size_t i = 0; i < pool->total; i++) {
		pool->sorted[i] = all[i].value;
		pool->place[all[i].index] = (uint32_t)i;
	}
}

/* The pool must be zeroed; the caller releases it, even on failure. */
static enum status pool_fill(struct pool *pool, const struct bench_sample *samples, size_t runs)
{
	struct placed *all;

	for (size_t run = 0; run < runs; run++)
		pool->total += samples[run].count;
	if (pool->total == 0 || pool->total > UINT32_MAX)
		return ERR_RANGE;
	pool->sorted = calloc(pool->total, sizeof(*pool->sorted));
	pool->place = calloc(pool->total, sizeof(*pool->place));
	pool->counts = calloc(pool->total, sizeof(*pool->counts));
	pool->first = calloc(runs, sizeof(*pool->first));
	all = calloc(pool->total, sizeof(*all));
	if (!pool->sorted || !pool->place || !pool->counts || !pool->first || !all) {
		free(all);
		return ERR_NO_SPACE;
	}
	for (size_t run = 0, at = 0; run < runs; run++) {
		pool->first[run] = at;
		for (size_t i = 0; i < samples[run].count; i++, at++)
			all[at] = (struct placed){ samples[run].values[i], (uint32_t)at };
	}
	pool_sort(pool, all);
	free(all);
	return OK;
}

static void pool_draw(struct pool *pool, const struct bench_sample *sample, size_t run,
		      uint64_t *state)
{
	for (size_t i = 0; i < sample->count; i++)
		pool->counts[pool->place[pool->first[run] + draw_below(state, sample->count)]]++;
}

/* Median of the current draw; clears it. 0: empty. */
static double pool_median(struct pool *pool)
{
	size_t drawn = 0, passed = 0;
	double low = 0, high = 0;

	for (size_t i = 0; i < pool->total; i++)
		drawn += pool->counts[i];
	for (size_t i = 0; i < pool->total && drawn > 0; i++) {
		size_t before = passed;

		passed += pool->counts[i];
		if (before <= (drawn - 1) / 2 && (drawn - 1) / 2 < passed)
			low = pool->sorted[i];
		if (before <= drawn / 2 && drawn / 2 < passed) {
			high = pool->sorted[i];
			break;
		}
	}
	memset(pool->counts, 0, pool->total * sizeof(*pool->counts));
	return (low + high) / 2;
}

static double sorted_median(const struct pool *pool)
{
	return stats_sorted_median(pool->sorted, pool->total);
}

struct resampling {
	const struct bench_sample *with;
	const struct bench_sample *without;
	size_t runs;
	struct pool pools[2];
	uint64_t state;
};

/* ln of the ratio in one draw: only calls, or runs and calls within them. NAN: a median is 0. */
static double draw_ratio(struct resampling *all, bool has_runs)
{
	double with, without;

	for (size_t i = 0; i < all->runs; i++) {
		size_t run = has_runs ? draw_below(&all->state, all->runs) : i;

		pool_draw(&all->pools[0], &all->with[run], run, &all->state);
		pool_draw(&all->pools[1], &all->without[run], run, &all->state);
	}
	with = pool_median(&all->pools[0]);
	without = pool_median(&all->pools[1]);
	return with > 0 && without > 0 ? log(with / without) : NAN;
}

static size_t draw_ratios(struct resampling *all, bool has_runs, double *values, size_t draws)
{
	size_t count = 0;

	for (size_t i = 0; i < draws; i++) {
		double value = draw_ratio(all, has_runs);

		if (isfinite(value))
			values[count++] = value;
	}
	return count;
}

/* Factor that widens the bootstrap interval for few runs, as far as runs differ at all. */
static double few_runs(double both, double calls, size_t runs)
{
	double share = (double)(runs - 1) / (double)runs;
	double of_runs = both * both - calls * calls * (1 + share);
	double freedom, student;

	if (runs < 2 || of_runs <= 0 || both <= 0)
		return 1;
	of_runs /= both * both;
	freedom = (double)(runs - 1) / (of_runs * of_runs);
	student = stats_student_quantile(0.025, freedom) / 1.959964;
	return student * sqrt(of_runs / share + 1 - of_runs);
}

static enum status ratio_interval(struct resampling *all, struct bench_ratio *ratio)
{
	size_t work = all->pools[0].total + all->pools[1].total, most = WORK_MOST / work;
	size_t draws = most > DRAWS ? DRAWS : most < DRAWS_LEAST ? DRAWS_LEAST : most;
	double *values = calloc(draws, sizeof(*values));
	double middle = log(ratio->ratio), wider = 1;
	struct bench_figures calls, both;
	size_t count;

	if (values == NULL)
		return ERR_NO_SPACE;
	calls = bench_figures_of(values, draw_ratios(all, false, values, draws / 4));
	count = draw_ratios(all, true, values, draws);
	both = bench_figures_of(values, count);
	if (count > 0) {
		wider = few_runs(both.deviation, calls.deviation, all->runs);
		ratio->low = values[(size_t)(0.025 * (double)count)];
		ratio->high = values[count - 1 - (size_t)(0.025 * (double)count)];
		ratio->low = exp(middle + wider * fmin(ratio->low - middle, 0));
		ratio->high = exp(middle + wider * fmax(ratio->high - middle, 0));
	}
	free(values);
	return count > 0 ? OK : ERR_RANGE;
}

enum status bench_ratio_of(const struct bench_sample *with, const struct bench_sample *without,
			   size_t runs, uint64_t seed, struct bench_ratio *ratio)
{
	struct resampling all = { .with = with, .without = without, .runs = runs, .state = seed };
	struct bench_ratio found = { 0 };
	enum status status;

	if (runs == 0)
		return ERR_RANGE;
	status = pool_fill(&all.pools[0], with, runs);
	if (status == OK)
		status = pool_fill(&all.pools[1], without, runs);
	if (status == OK && !(sorted_median(&all.pools[0]) > 0 && sorted_median(&all.pools[1]) > 0))
		status = ERR_RANGE;
	if (status == OK) {
		found.ratio = sorted_median(&all.pools[0]) / sorted_median(&all.pools[1]);
		status = ratio_interval(&all, &found);
	}
	pool_release(&all.pools[0]);
	pool_release(&all.pools[1]);
	if (status == OK)
		*ratio = found;
	return status;
}

int bench_problem(char *problem, size_t size, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(problem, size, format, values);
	va_end(values);
	return -1;
}
