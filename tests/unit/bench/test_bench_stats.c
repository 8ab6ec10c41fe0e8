#include "bench/bench_result.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"
#include "tests/tap.h"

static bool is_near(double got, double wanted, double within)
{
	if (fabs(got - wanted) <= within)
		return true;
	printf("#   got %.9g, wanted %.9g\n", got, wanted);
	return false;
}

/* ---- random numbers with a fixed seed -------------------------------------------------------- */

static uint64_t noise_state = 1;

static double uniform(void)
{
	uint64_t bits = noise_state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	return ((double)((bits ^ bits >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* ---- percentiles ----------------------------------------------------------------------------- */

/* At least one value must be able to lie beyond the percentile. */
static void percentiles_take_enough_values(void)
{
	static const struct {
		size_t least;  /* number of values */
		size_t at;     /* offset in the figures */
		double wanted; /* of the minimum number of values 0, 1, 2 ... */
	} list[] = {
		{ 20, offsetof(struct bench_figures, p05), 0.95 },
		{ 4, offsetof(struct bench_figures, p25), 0.75 },
		{ 1, offsetof(struct bench_figures, p50), 0 },
		{ 4, offsetof(struct bench_figures, p75), 2.25 },
		{ 10, offsetof(struct bench_figures, p90), 8.1 },
		{ 20, offsetof(struct bench_figures, p95), 18.05 },
		{ 100, offsetof(struct bench_figures, p99), 98.01 },
	};
	double values[100];

	for (size_t i = 0; i < 100; i++)
		values[i] = (double)i;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct bench_figures enough = bench_figures_of(values, list[i].least);
		struct bench_figures few = bench_figures_of(values, list[i].least - 1);
		double value = *(const double *)((const char *)&enough + list[i].at);
		double none = *(const double *)((const char *)&few + list[i].at);

		EXPECT_THAT("it is known with this many values",
			    is_near(value + 1, list[i].wanted + 1, 1e-12));
		EXPECT_THAT("and not with one less", few.count == 0 ? none == 0 : isnan(none));
	}
}

static void figures_have_known_answers(void)
{
	double ten[] = { 10, 9, 8, 7, 6, 5, 4, 3, 2, 1 };
	double one[] = { 7 };
	struct bench_figures figures = bench_figures_of(ten, 10);

	EXPECT_EQUAL(figures.count, 10);
	EXPECT(is_near(figures.mean, 5.5, 1e-12));
	EXPECT(is_near(figures.deviation, 3.0276503540974917, 1e-12));
	EXPECT(figures.least == 1 && figures.most == 10);
	EXPECT(is_near(figures.p50, 5.5, 1e-12));
	EXPECT(is_near(figures.p25, 3.25, 1e-12));
	EXPECT(is_near(figures.p90, 9.1, 1e-12));
	EXPECT_THAT("values are sorted in place", ten[0] == 1 && ten[9] == 10);
	figures = bench_figures_of(one, 1);
	EXPECT_THAT("one value is its own median and no other percentile",
		    figures.p50 == 7 && isnan(figures.p25) && isnan(figures.p99) &&
			    figures.deviation == 0);
	figures = bench_figures_of(NULL, 0);
	EXPECT_THAT("no values: all 0", figures.count == 0 && figures.p50 == 0);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void cells_count_who_took_part(void)
{
	struct bench_call calls[6] = { { .gpu_ns = 10 }, { .gpu_ns = 20 }, { .gpu_ns = 30 },
				       { .gpu_ns = 40 }, { .gpu_ns = 99 }, { .gpu_ns = 99 } };
	int32_t peers[3] = { 1, 0, -1 };
	struct bench_cell cell = { .function = OP_SEND_RECV,
				   .mode = BENCH_BLOCKING,
				   .nranks = 3,
				   .calls = 2,
				   .bytes = 40,
				   .calls_of = calls,
				   .peers = peers };
	struct bench_figures figures;
	double times[2];

	EXPECT_EQUAL(bench_call_times(&cell, BENCH_GPU, BENCH_OVER_MEAN, times), 2);
	EXPECT_THAT("a rank without a peer does not count", times[0] == 20 && times[1] == 30);
	bench_call_times(&cell, BENCH_GPU, BENCH_OVER_MIN, times);
	EXPECT(times[0] == 10 && times[1] == 20);
	bench_call_times(&cell, BENCH_GPU, BENCH_OVER_MAX, times);
	EXPECT(times[0] == 30 && times[1] == 40);
	EXPECT_THAT("a time that was not measured is missing",
		    bench_call_times(&cell, BENCH_DONE, BENCH_OVER_MEAN, times) == 0);
	calls[0].gpu_ns = calls[2].gpu_ns = 0;
	EXPECT_THAT("a call without times is skipped",
		    bench_call_times(&cell, BENCH_GPU, BENCH_OVER_MEAN, times) == 1 &&
			    times[0] == 30);
	EXPECT(bench_cell_figures(&cell, BENCH_OVER_MEAN, &figures) == OK && figures.p50 == 30);
	EXPECT(bench_algbw(&cell, 20) == 2 && bench_busbw(&cell, 20) == 2);
	EXPECT(bench_algbw(&cell, 0) == 0);
	cell.function = OP_ALL_REDUCE;
	EXPECT(is_near(bench_busbw(&cell, 20), 2.0 * 4 / 3, 1e-12));
}

static void loops_have_one_time(void)
{
	struct bench_cell cell = { .function = OP_ALL_REDUCE,
				   .mode = BENCH_LOOP,
				   .nranks = 2,
				   .calls = 20,
				   .loop_ns = 1234 };
	struct bench_figures figures;
	double times[20];

	EXPECT_EQUAL(bench_call_times(&cell, BENCH_GPU, BENCH_OVER_MEAN, times), 0);
	EXPECT(bench_cell_figures(&cell, BENCH_OVER_MEAN, &figures) == OK);
	EXPECT(figures.count == 1 && figures.p50 == 1234 && isnan(figures.p99));
	cell.loop_ns = 0;
	EXPECT(bench_cell_figures(&cell, BENCH_OVER_MEAN, &figures) == OK && figures.count == 0);
	cell.mode = BENCH_BLOCKING;
	cell.calls = 0;
	EXPECT(bench_cell_figures(&cell, BENCH_OVER_MEAN, &figures) == OK && figures.count == 0);
}

/* ---- histogram ------------------------------------------------------------------------------- */

static void bins_hold_every_value_once(void)
{
	double values[200];
	struct bench_bins bins;
	uint64_t sum = 0;
	bool is_inside = true;

	for (int i = 0; i < 200; i++)
		values[i] = exp(normal());
	bench_figures_of(values, 200);
	bench_bins_of(values, 200, 20, &bins);
	EXPECT_EQUAL(bins.bins, 20);
	for (size_t i = 0; i < bins.bins; i++) {
		size_t expected = 0;

		for (int j = 0; j < 200; j++)
			expected += values[j] >= bins.edges[i] &&
				    (values[j] < bins.edges[i + 1] || i + 1 == bins.bins);
		is_inside = is_inside && expected == bins.counts[i];
		sum += bins.counts[i];
	}
	EXPECT_EQUAL(sum, 200);
	EXPECT_THAT("each value is between its edges", is_inside);
	EXPECT_THAT("bins are equally wide in the logarithm",
		    is_near(bins.edges[1] / bins.edges[0], bins.edges[20] / bins.edges[19], 1e-9));
	EXPECT(bins.edges[0] == values[0] && bins.edges[20] == values[199]);
}

static void bins_of_odd_values(void)
{
	double same[] = { 5, 5, 5 }, zeros[] = { 0, 0, 1, 20, 100 };
	struct bench_bins bins;

	bench_bins_of(same, 3, 10, &bins);
	EXPECT(bins.bins == 1 && bins.counts[0] == 3 && bins.edges[0] == 5 && bins.edges[1] == 5);
	bench_bins_of(zeros, 5, 2, &bins);
	EXPECT_THAT("values of 0 are in the first bin",
		    bins.bins == 2 && bins.counts[0] == 3 && bins.counts[1] == 2);
	bench_bins_of(zeros, 2, 4, &bins);
	EXPECT(bins.bins == 1 && bins.counts[0] == 2);
	bench_bins_of(NULL, 0, 10, &bins);
	EXPECT_EQUAL(bins.bins, 0);
	bench_bins_of(zeros, 5, 1000, &bins);
	EXPECT_EQUAL(bins.bins, BENCH_BINS_MAX);
}

/* ---- ratios ---------------------------------------------------------------------------------- */

enum { RUNS = 5, CALLS = 60 };

struct experiment {
	double with[RUNS][CALLS];
	double without[RUNS][CALLS];
	struct bench_sample with_of[RUNS];
	struct bench_sample without_of[RUNS];
};

/* Calls vary by `calls`, runs by `runs` (independently per variant), pairs of runs by `pairs`. */
static void play(struct experiment *out, double ratio, double calls, double runs, double pairs)
{
	for (int run = 0; run < RUNS; run++) {
		double common = pairs * normal();
		double with = common + runs * normal(), without = common + runs * normal();

		for (int call = 0; call < CALLS; call++) {
			out->with[run][call] = ratio * 1000 * exp(with + calls * normal());
			out->without[run][call] = 1000 * exp(without + calls * normal());
		}
		out->with_of[run] = (struct bench_sample){ out->with[run], CALLS };
		out->without_of[run] = (struct bench_sample){ out->without[run], CALLS };
	}
}

/* How often the interval contains the true ratio; *width is its mean width. */
static double coverage(int repeats, double calls, double runs, double pairs, double *width)
{
	static struct experiment experiment;
	struct bench_ratio ratio;
	int held = 0;

	*width = 0;
	for (int i = 0; i < repeats; i++) {
		play(&experiment, 1.02, calls, runs, pairs);
		if (bench_ratio_of(experiment.with_of, experiment.without_of, RUNS, (uint64_t)i,
				   &ratio) != OK)
			return -1;
		held += ratio.low <= 1.02 && 1.02 <= ratio.high;
		*width += (ratio.high - ratio.low) / repeats;
	}
	return (double)held / repeats;
}

static void intervals_hold_what_they_say(void)
{
	const int repeats = TAP_IS_SLOW ? 40 : 200;
	const double few = TAP_IS_SLOW ? 0.08 : 0; /* fewer repeats are less precise */
	double width, held;

	held = coverage(repeats, 0.05, 0, 0, &width);
	printf("# calls differ: holds %.3f, width %.4f\n", held, width);
	EXPECT_THAT("calls differ, runs do not: about 95%", held >= 0.92 - few);
	EXPECT_THAT("... and the interval is not too wide", width < 0.05);
	held = coverage(repeats, 0.05, 0.02, 0, &width);
	printf("# runs differ: holds %.3f, width %.4f\n", held, width);
	EXPECT_THAT("runs differ as well: about 95%", held >= 0.90 - few);
	EXPECT(width < 0.12);
	held = coverage(repeats, 0.02, 0.03, 0, &width);
	printf("# runs differ more than calls: holds %.3f, width %.4f\n", held, width);
	EXPECT_THAT("runs differ more than calls: about 95%", held >= 0.90 - few);
	held = coverage(repeats, 0.05, 0, 0.05, &width);
	printf("# pairs of runs differ: holds %.3f, width %.4f\n", held, width);
	EXPECT_THAT("pairs of runs differ: about 95%", held >= 0.92 - few);
	EXPECT(width < 0.12);
}

static void ratios_are_repeatable(void)
{
	static struct experiment experiment;
	struct bench_ratio one, two, other;

	play(&experiment, 1.5, 0.05, 0.01, 0);
	EXPECT(bench_ratio_of(experiment.with_of, experiment.without_of, RUNS, 7, &one) == OK);
	EXPECT(bench_ratio_of(experiment.with_of, experiment.without_of, RUNS, 7, &two) == OK);
	EXPECT(bench_ratio_of(experiment.with_of, experiment.without_of, RUNS, 8, &other) == OK);
	EXPECT_THAT("the same seed gives the same interval", memcmp(&one, &two, sizeof(one)) == 0);
	EXPECT_THAT("another seed gives another one",
		    one.low != other.low || one.high != other.high);
	EXPECT(one.ratio == other.ratio && one.low < one.ratio && one.ratio < one.high);
	EXPECT(is_near(one.ratio, 1.5, 0.05));
}

static void ratios_of_odd_samples(void)
{
	double same[] = { 5, 5, 5 }, zeros[] = { 0, 0 }, ten = 10;
	struct bench_sample fives = { same, 3 }, none = { NULL, 0 }, zero = { zeros, 2 };
	struct bench_sample single = { &ten, 1 };
	struct bench_sample with[2] = { fives, none }, without[2] = { none, single };
	struct bench_ratio ratio = { 1, 2, 3 };

	EXPECT(bench_ratio_of(&fives, &fives, 0, 1, &ratio) == ERR_RANGE);
	EXPECT(bench_ratio_of(&none, &fives, 1, 1, &ratio) == ERR_RANGE);
	EXPECT(bench_ratio_of(&fives, &zero, 1, 1, &ratio) == ERR_RANGE);
	EXPECT_THAT("nothing is written on failure", ratio.ratio == 1 && ratio.high == 3);
	EXPECT(bench_ratio_of(&single, &fives, 1, 1, &ratio) == OK);
	EXPECT(ratio.ratio == 2 && ratio.low == 2 && ratio.high == 2);
	EXPECT_THAT("a run with one empty variant is no failure",
		    bench_ratio_of(with, without, 2, 1, &ratio) == OK && ratio.ratio == 0.5);
}

int main(void)
{
	percentiles_take_enough_values();
	figures_have_known_answers();
	cells_count_who_took_part();
	loops_have_one_time();
	bins_hold_every_value_once();
	bins_of_odd_values();
	ratios_are_repeatable();
	ratios_of_odd_samples();
	intervals_hold_what_they_say();
	return tap_done();
}
