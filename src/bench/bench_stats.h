/* Figures of measured times: percentiles, spread, ratios with their confidence interval. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "common/status.h"

/* One call ran on all ranks: whose time is the call's? nccl-tests takes the mean. */
enum bench_over { BENCH_OVER_MEAN = 0, BENCH_OVER_MIN = 1, BENCH_OVER_MAX = 2 };

/* Which of a call's times. */
enum bench_clock { BENCH_GPU = 0, BENCH_ISSUE = 1, BENCH_DONE = 2 };

/* A time per call, in ns, over its ranks; ranks that did not take part (no peer) do not count. `times` has
 * room for cell->calls. Gives back how many there are: 0 in BENCH_LOOP or where that time was not taken. */
size_t bench_call_times(const struct bench_cell *cell, enum bench_clock clock, enum bench_over over,
			double *times);

struct bench_figures {
	size_t count;
	double mean;
	double deviation; /* of single values */
	double least;
	double p05;
	double p25;
	double p50;
	double p75;
	double p90;
	double p95;
	double p99;
	double most;
};

/* Values are sorted in place. Percentiles interpolate between neighbours; NAN where there are too few values for one: p99
 * takes 100, p95 and p05 20, p90 10, p75 and p25 4. All 0 for no values. */
struct bench_figures bench_figures_of(double *values, size_t count);
/* Of the calls of a cell (GPU time, in loop mode the one mean); ERR_NO_SPACE. */
enum status bench_cell_figures(const struct bench_cell *cell, enum bench_over over,
			       struct bench_figures *figures);

/* algbw and busbw in GB/s (10^9) of a time; 0 for a time of 0. */
double bench_algbw(const struct bench_cell *cell, double time_ns);
double bench_busbw(const struct bench_cell *cell, double time_ns);

/* Samples of one run (one job); runs alternate between two variants. */
struct bench_sample {
	const double *values;
	size_t count;
};

struct bench_ratio {
	double ratio; /* of the medians over all runs: with / without */
	double low;   /* 95 % interval: runs resampled, and calls within them */
	double high;
};

/* Seeded: the same samples give the same interval. Pairs run i of both (alternating runs); ERR_RANGE
 * for no samples, ERR_NO_SPACE. */
enum status bench_ratio_of(const struct bench_sample *with, const struct bench_sample *without,
			   size_t runs, uint64_t seed, struct bench_ratio *ratio);

/* A histogram with logarithmic classes that fits `width` bins: edges[bins + 1] and counts[bins]. */
enum { BENCH_BINS_MAX = 64 };
struct bench_bins {
	size_t bins;
	double edges[BENCH_BINS_MAX + 1];
	uint64_t counts[BENCH_BINS_MAX];
};
void bench_bins_of(const double *sorted, size_t count, size_t bins, struct bench_bins *out);

#endif
