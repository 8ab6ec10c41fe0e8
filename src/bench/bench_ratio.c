/*
 * The interval of a ratio of medians, by resampling. Calls of one run are alike (same clocks, same
 * neighbours on the machine), so runs are drawn first and then calls within them; run i of both
 * variants goes together, because they ran one after the other.
 *
 * A resampled median needs no sorting: values are sorted once, a drawn call adds one to the count
 * at its place, and the median is where the counts reach half.
 *
 * Few runs hide how much runs differ: resampling them is then too sure by sqrt((n - 1) / n) and by
 * the difference between Student's distribution and the normal one. The share of the spread that is
 * from runs, and not from calls, says how much of that correction there has to be (Satterthwaite's
 * degrees of freedom).
 */
#include "bench/bench_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"

enum { DRAWS = 1000, DRAWS_LEAST = 200, WORK_MOST = 40 * 1000 * 1000 };

/* All values of a variant: sorted, and where each call of each run went. */
struct pool {
	double *sorted;
	uint32_t *place;  /* [first[run] + call] -> in sorted */
	uint32_t *counts; /* of a draw */
	size_t *first;	  /* of each run */
	size_t total;
};

struct placed {
	double value;
	uint32_t index;
};

/* splitmix64: small, and the same everywhere. */
static uint64_t draw(uint64_t *state)
{
	uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	return bits ^ bits >> 31;
}

static size_t draw_below(uint64_t *state, size_t range)
{
	return (size_t)(((draw(state) >> 32) * (uint64_t)range) >> 32);
}

static int by_placed(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
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

/* The pool is zero; on failure, too, it is the caller's to release. */
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

/* Of what was drawn; clears it. 0: nothing was. */
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
	return (pool->sorted[(pool->total - 1) / 2] + pool->sorted[pool->total / 2]) / 2;
}

struct resampling {
	const struct bench_sample *with;
	const struct bench_sample *without;
	size_t runs;
	struct pool pools[2];
	uint64_t state;
};

/* ln of the ratio of one draw; calls only, or runs and calls within them. NAN: a median of 0. */
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

/* How much wider than the resampled one: for few runs, as far as runs differ at all. */
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

static enum status interval(struct resampling *all, struct bench_ratio *ratio)
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
		status = interval(&all, &found);
	}
	pool_release(&all.pools[0]);
	pool_release(&all.pools[1]);
	if (status == OK)
		*ratio = found;
	return status;
}
