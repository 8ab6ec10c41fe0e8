#include "bench/bench_stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"

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

/* Over the ranks that took part; 0: none has such a time. */
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

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* Of sorted values; between two neighbours the share of the way is taken. Where not one value can lie beyond it, it would
 * be the least or the most of them by another name. */
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
	qsort(values, count, sizeof(*values), by_value);
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

/* Bytes a nanosecond are GB/s of 10^9. */
double bench_algbw(const struct bench_cell *cell, double time_ns)
{
	return time_ns > 0 ? (double)cell->bytes / time_ns : 0;
}

double bench_busbw(const struct bench_cell *cell, double time_ns)
{
	return bench_algbw(cell, time_ns) * op_bus_factor(cell->function, cell->nranks);
}

/* ---- histogram ------------------------------------------------------------------------------- */

/* Rounding may put a value beside its class: the edges decide. */
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
		first++; /* no logarithm: in the first class, with the smallest that has one */
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
