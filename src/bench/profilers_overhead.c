/*
 * Time per call with a plugin over time without. For one function, size and mode bench_ratio_of() says it, with
 * its interval. Over several of them it is the geometric mean: for each pair of runs the mean of the logarithms
 * of the ratios of medians, and over the pairs Student's interval, because runs differ more than calls do.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "bench/profilers_parts.h"

enum { RUNS_FOR_INTERVAL = 3, SUMS_MAX = 1 << 14, SUM_KINDS = 4 };

/* One cell's or several cells' ratios, run by run. */
struct sum {
	struct profilers_overhead row;
	double logs[PROFILERS_RUNS_MAX];
	uint32_t cells[PROFILERS_RUNS_MAX];
};

static bool is_sample(const struct profilers_sample *a, const struct profilers_sample *b)
{
	return a->plugin == b->plugin && a->mode == b->mode && a->function == b->function &&
	       a->clock == b->clock && a->run == b->run && a->bytes == b->bytes;
}

static enum status add_times(struct profilers *work, const struct profilers_sample *like,
			     const struct bench_cell *cell)
{
	struct profilers_sample *list = work->samples.items, *sample = NULL;
	double *values;

	for (size_t i = work->samples.count; i-- > 0 && sample == NULL;)
		if (is_sample(&list[i], like))
			sample = &list[i];
	if (sample == NULL) {
		sample = profilers_list_add(&work->samples, PROFILERS_ROWS_MAX);
		if (sample == NULL)
			return ERR_NO_SPACE;
		*sample = *like;
	}
	values = realloc(sample->values, (sample->count + cell->calls) * sizeof(*values));
	if (values == NULL)
		return ERR_NO_SPACE;
	sample->values = values;
	sample->count +=
		bench_call_times(cell, like->clock, BENCH_OVER_MEAN, values + sample->count);
	return OK;
}

enum status profilers_take_times(struct profilers *work, const struct profilers_trial *trial)
{
	static const uint8_t clocks[] = { BENCH_GPU, BENCH_ISSUE };
	enum status status = OK;

	for (size_t i = 0; i < trial->bench->cell_count; i++) {
		const struct bench_cell *cell = &trial->bench->cells[i];

		for (size_t j = 0; j < 2 && cell->calls_of && status == OK; j++) {
			struct profilers_sample like = { .plugin = (uint8_t)trial->plugin,
							 .mode = cell->mode,
							 .function = cell->function,
							 .clock = clocks[j],
							 .run = trial->run,
							 .bytes = cell->bytes };

			status = add_times(work, &like, cell);
		}
	}
	return status;
}

struct profilers_quantiles profilers_quantiles_of(double *values, size_t count)
{
	struct bench_figures figures = bench_figures_of(values, count);

	return (struct profilers_quantiles){ figures.p05, figures.p25, figures.p50, figures.p75,
					     figures.p95 };
}

/* The samples of a plugin for what `like` is about, by run; how many there are. */
static size_t find_runs(const struct profilers *work, const struct profilers_sample *like,
			uint8_t plugin, const struct profilers_sample *runs[PROFILERS_RUNS_MAX])
{
	const struct profilers_sample *list = work->samples.items;
	struct profilers_sample wanted = *like;
	size_t count = 0;

	memset(runs, 0, PROFILERS_RUNS_MAX * sizeof(*runs));
	wanted.plugin = plugin;
	for (size_t i = 0; i < work->samples.count; i++) {
		wanted.run = list[i].run;
		if (is_sample(&list[i], &wanted) && list[i].count > 0) {
			runs[wanted.run] = &list[i];
			count++;
		}
	}
	return count;
}

/* All values of the runs in one; NULL: no memory. */
static double *pool(const struct bench_sample *samples, size_t runs, size_t *count)
{
	double *values;
	size_t used = 0;

	for (size_t i = 0; i < runs; i++)
		used += samples[i].count;
	values = malloc((used ? used : 1) * sizeof(*values));
	if (values == NULL)
		return NULL;
	*count = used;
	used = 0;
	for (size_t i = 0; i < runs; i++) {
		memcpy(values + used, samples[i].values, samples[i].count * sizeof(*values));
		used += samples[i].count;
	}
	return values;
}

static enum status quantiles_of(const struct bench_sample *samples, size_t runs,
				struct profilers_quantiles *quantiles, size_t *count)
{
	double *values = pool(samples, runs, count);

	if (values == NULL)
		return ERR_NO_SPACE;
	*quantiles = profilers_quantiles_of(values, *count);
	free(values);
	return OK;
}

static struct sum *sum_of(struct profilers_list *sums, const struct profilers_overhead *key)
{
	struct sum *list = sums->items, *added;

	for (size_t i = 0; i < sums->count; i++)
		if (list[i].row.clock == key->clock && list[i].row.plugin == key->plugin &&
		    list[i].row.mode == key->mode && list[i].row.function == key->function &&
		    list[i].row.bytes == key->bytes)
			return &list[i];
	added = profilers_list_add(sums, SUMS_MAX);
	if (added)
		added->row = *key;
	return added;
}

/* Into the sums over functions, over sizes, over both, and over modes, too. */
static enum status add_log(struct profilers_list *sums, const struct profilers_overhead *cell,
			   size_t run, double log_ratio, uint64_t calls)
{
	struct profilers_overhead keys[SUM_KINDS];

	for (size_t i = 0; i < SUM_KINDS; i++) {
		struct sum *sum;

		keys[i] =
			(struct profilers_overhead){ .plugin = cell->plugin, .clock = cell->clock };
		keys[i].mode = i < 3 ? cell->mode : 0;
		keys[i].function = i == 1 ? cell->function : 0;
		keys[i].bytes = i == 0 ? cell->bytes : 0;
		sum = sum_of(sums, &keys[i]);
		if (sum == NULL)
			return ERR_NO_SPACE;
		sum->logs[run] += log_ratio;
		sum->cells[run]++;
		sum->row.calls += calls;
	}
	return OK;
}

static double median_of(const struct profilers_sample *sample)
{
	struct bench_sample one = { sample->values, sample->count };
	struct profilers_quantiles quantiles = { 0 };
	size_t count;

	return quantiles_of(&one, 1, &quantiles, &count) == OK ? quantiles.p50 : 0;
}

/* Pairs of runs of one cell; 0: none. */
static size_t pair_runs(const struct profilers_sample *with[PROFILERS_RUNS_MAX],
			const struct profilers_sample *without[PROFILERS_RUNS_MAX],
			size_t numbers[PROFILERS_RUNS_MAX])
{
	size_t pairs = 0;

	for (size_t i = 0; i < PROFILERS_RUNS_MAX; i++)
		if (with[i] && without[i] && median_of(with[i]) > 0 && median_of(without[i]) > 0)
			numbers[pairs++] = i;
	return pairs;
}

static enum status make_cell(struct profilers *work, const struct profilers_sample *like,
			     struct profilers_list *rows, struct profilers_list *sums)
{
	const struct profilers_sample *with[PROFILERS_RUNS_MAX], *without[PROFILERS_RUNS_MAX];
	struct bench_sample a[PROFILERS_RUNS_MAX], b[PROFILERS_RUNS_MAX];
	size_t numbers[PROFILERS_RUNS_MAX], pairs, count;
	struct profilers_overhead row = { .plugin = like->plugin,
					  .mode = like->mode,
					  .function = like->function,
					  .clock = like->clock,
					  .bytes = like->bytes,
					  .cells = 1 };
	struct profilers_overhead *added;
	enum status status = OK;

	find_runs(work, like, like->plugin, with);
	find_runs(work, like, 0, without);
	pairs = pair_runs(with, without, numbers);
	if (pairs == 0)
		return OK;
	for (size_t i = 0; i < pairs && status == OK; i++) {
		const struct profilers_sample *one = with[numbers[i]], *other = without[numbers[i]];

		a[i] = (struct bench_sample){ one->values, one->count };
		b[i] = (struct bench_sample){ other->values, other->count };
		status = add_log(sums, &row, numbers[i], log(median_of(one) / median_of(other)),
				 one->count);
	}
	row.runs = (uint32_t)pairs;
	row.has_interval = pairs >= RUNS_FOR_INTERVAL;
	if (status == OK)
		status = bench_ratio_of(a, b, pairs, like->bytes + like->function, &row.ratio);
	if (status == OK)
		status = quantiles_of(b, pairs, &row.without_ns, &count);
	if (status == OK)
		status = quantiles_of(a, pairs, &row.with_ns, &count);
	if (status != OK)
		return status;
	row.calls = count;
	if (!row.has_interval)
		row.ratio.low = row.ratio.high = 0;
	added = profilers_list_add(rows, PROFILERS_ROWS_MAX);
	if (added)
		*added = row;
	return added ? OK : ERR_NO_SPACE;
}

static void finish_sum(struct sum *sum)
{
	double mean = 0, squares = 0, values[PROFILERS_RUNS_MAX], half;
	uint32_t most = 0, runs = 0;

	for (size_t i = 0; i < PROFILERS_RUNS_MAX; i++)
		most = sum->cells[i] > most ? sum->cells[i] : most;
	/* A run that lacks some cells would be compared with others that have them. */
	for (size_t i = 0; i < PROFILERS_RUNS_MAX; i++)
		if (sum->cells[i] == most)
			values[runs++] = sum->logs[i] / most;
	for (uint32_t i = 0; i < runs; i++)
		mean += values[i] / runs;
	for (uint32_t i = 0; i < runs; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	sum->row.runs = runs;
	sum->row.cells = most;
	sum->row.ratio.ratio = exp(mean);
	sum->row.has_interval = runs >= RUNS_FOR_INTERVAL;
	if (!sum->row.has_interval)
		return;
	half = stats_student_quantile(0.025, runs - 1) * sqrt(squares / (runs - 1) / runs);
	sum->row.ratio.low = exp(mean - half);
	sum->row.ratio.high = exp(mean + half);
}

static int by_clock(const void *left, const void *right)
{
	const struct profilers_overhead *a = left, *b = right;

	if (a->clock != b->clock)
		return a->clock < b->clock ? -1 : 1;
	if (a->plugin != b->plugin)
		return a->plugin < b->plugin ? -1 : 1;
	if (a->mode != b->mode)
		return a->mode < b->mode ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* Is this the first sample of its plugin, mode, function, size and clock? Others are other runs. */
static bool is_first(const struct profilers *work, size_t at)
{
	const struct profilers_sample *list = work->samples.items;
	struct profilers_sample wanted = list[at];

	for (size_t i = 0; i < at; i++) {
		wanted.run = list[i].run;
		if (is_sample(&list[i], &wanted))
			return false;
	}
	return true;
}

enum status profilers_make_overhead(struct profilers *work)
{
	struct profilers_list rows = { .size = sizeof(struct profilers_overhead) };
	struct profilers_list sums = { .size = sizeof(struct sum) };
	const struct profilers_sample *list = work->samples.items;
	struct profilers_overhead *row;
	enum status status = OK;

	for (size_t i = 0; i < work->samples.count && status == OK; i++)
		if (list[i].plugin > 0 && is_first(work, i))
			status = make_cell(work, &list[i], &rows, &sums);
	for (size_t i = 0; i < sums.count && status == OK; i++) {
		finish_sum((struct sum *)sums.items + i);
		row = profilers_list_add(&rows, PROFILERS_ROWS_MAX);
		if (row)
			*row = ((struct sum *)sums.items)[i].row;
		else
			status = ERR_NO_SPACE;
	}
	profilers_list_release(&sums);
	if (rows.count > 1)
		qsort(rows.items, rows.count, rows.size, by_clock);
	free(work->out.overhead);
	work->out.overhead = rows.items;
	work->out.overhead_count = rows.count;
	return status;
}

enum profilers_verdict profilers_verdict(const struct profilers_overhead *row)
{
	if (!row->has_interval)
		return PROFILERS_NOT_KNOWN;
	if (row->ratio.low > 1)
		return PROFILERS_SLOWER;
	return row->ratio.high < 1 ? PROFILERS_FASTER : PROFILERS_NO_DIFFERENCE;
}
