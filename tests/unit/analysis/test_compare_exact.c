/*
 * Comparisons of two reports made by hand, to the last digit: both have two ranks on two hosts and one communicator. What
 * does not vary has no error of its own, so an interval is 1% of two runs times Student's t.
 */
#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/nccl_interface.h"
#include "tests/tap.h"
#include "tests/support/hand_made.h"

#define US UINT64_C(1000)

enum { ROWS = 4, CELLS = 4, ITERATIONS = 64 };

struct side {
	struct hand_made hand;
	struct timeline_report report;
	struct timeline_rank ranks[4];
	struct tally_row rows[ROWS], functions[ROWS], algorithms[ROWS];
	struct pace_cell cells[CELLS];
	struct pace_sender senders[CELLS];
	struct iteration iterations[ITERATIONS];
};

static struct side a, b;
static struct compare compare;

static void begin_side(struct side *side, int32_t nranks)
{
	*side = (struct side){ .hand = { .list = { NULL } } };
	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process =
			hand_process(&side->hand, "j", rank, rank == 0 ? "a" : "b");

		hand_comm(process, 0x77, "world", rank, nranks, 2);
		process->interface = 5;
		side->ranks[rank].is_shown = true;
	}
	side->report = (struct timeline_report){
		.recording = &side->hand.recording,
		.ranks = side->ranks,
		.custom = { { .by = TALLY_BY_FUNCTION, .rows = side->rows } },
		.custom_count = 1,
		.by_function = { .rows = side->functions },
		.by_algorithm = { .rows = side->algorithms },
		.paces = { .cells = side->cells, .senders = side->senders },
		.iterations = { .list = side->iterations },
	};
	if (job_make(&side->report.job, &side->hand.recording) != OK)
		abort();
}

static void begin(void)
{
	begin_side(&a, 2);
	begin_side(&b, 2);
}

static void compared(double threshold)
{
	if (compare_make(&compare, &a.report, &b.report, threshold) != OK)
		abort();
}

static void over(void)
{
	struct side *sides[] = { &a, &b };

	compare_release(&compare);
	for (int i = 0; i < 2; i++) {
		for (int r = 0; r < ROWS; r++)
			tally_row_release(&sides[i]->rows[r]);
		tally_row_release(&sides[i]->report.total);
		job_release(&sides[i]->report.job);
		hand_release(&sides[i]->hand);
	}
}

static bool is_near(double got, double wanted)
{
	bool is_so = fabs(got - wanted) <= 1e-9 * fabs(wanted);

	if (!is_so)
		printf("# got %.12g, wanted %.12g\n", got, wanted);
	return is_so;
}

/* `calls` calls of `ns` each, by so many ranks. */
static struct tally_row *add_row(struct side *side, uint8_t function, uint64_t calls, uint64_t ns)
{
	struct tally_row *row = &side->rows[side->report.custom[0].count++];
	struct tally_row *total = &side->report.total;

	*row = (struct tally_row){ .key = { .function = function },
				   .ranks = 2,
				   .calls = calls,
				   .timed = calls,
				   .bytes = calls * 1000,
				   .sum_ns = calls * ns,
				   .min_ns = ns,
				   .max_ns = ns };
	total->ranks = 2;
	total->calls += calls;
	total->timed += calls;
	total->bytes += calls * 1000;
	total->sum_ns += calls * ns;
	total->min_ns = total->max_ns = ns;
	if (tally_histogram_add(&row->histogram, histogram_bucket(ns), calls) != OK ||
	    tally_histogram_add(&total->histogram, histogram_bucket(ns), calls) != OK)
		abort();
	return row;
}

static void fill_series(struct pace_series *series, unsigned int blocks, double ns)
{
	for (unsigned int i = 0; i < blocks; i++) {
		series->count[i] = 2;
		series->log_sum[i] = 2 * log(ns);
	}
}

/* So many parts of the recording, in which transfers take `ns`. */
static struct pace_cell *add_cell(struct side *side, uint8_t source, unsigned int blocks, double ns)
{
	struct pace_cell *cell = &side->cells[side->report.paces.cell_count++];

	*cell = (struct pace_cell){ .key = { .function = OP_ALL_REDUCE, .source = source },
				    .moves = 10,
				    .least_ns = 10 * ns,
				    .bytes = 4000,
				    .sized = 4 };
	fill_series(&cell->series, blocks, ns);
	return cell;
}

/* ---- Welch's test ------------------------------------------------------------------------------ */

static void test_judge(void)
{
	/* Errors of 3% and 4% and the 1% between runs: 5.1%, with 11.96 degrees of freedom. */
	const struct compare_sample one = { 0, 0.03, 5 }, other = { log(1.5), 0.04, 9 };
	const struct compare_sample exact = { 0, 0, 0 }, single = { 0, 0.02, 1 };
	const double error = sqrt(0.0026), freedom = 0.0025 * 0.0025 / 0.0000005225;
	double reach = stats_student_quantile(0.025, freedom) * error;
	struct compare_result result = compare_judge(&one, &other, 0.05, 1);

	EXPECT(is_near(result.ratio, 1.5) && is_near(result.ratio_low, 1.5 * exp(-reach)) &&
	       is_near(result.ratio_high, 1.5 * exp(reach)));
	EXPECT(result.is_significant && result.is_slower && !result.is_faster && !result.is_mean);
	EXPECT(is_near(result.confidence,
		       1 - stats_student((log(1.5) - log(1.05)) / error, freedom)));
	result = compare_judge(&other, &one, 0.05, 1);
	EXPECT(result.is_significant && result.is_faster && !result.is_slower &&
	       is_near(result.ratio, 1 / 1.5));
	EXPECT_THAT("no confidence in a slowdown",
		    result.confidence >= 0 && result.confidence < 1e-6);
	result = compare_judge(&one, &other, 0.05, 1e6);
	EXPECT_THAT("one of a million comparisons may look like that",
		    !result.is_significant && !result.is_slower && result.confidence == 0);
	result = compare_judge(&exact, &exact, 0.05, 1);
	EXPECT_THAT("exact values differ by the runs alone",
		    is_near(result.ratio_high, exp(0.01 * stats_student_quantile(0.025, 1e6))));
	result = compare_judge(&exact, &single, 0.05, 1);
	EXPECT_THAT(
		"a single sample has no degrees of freedom to add",
		is_near(result.ratio_high, exp(sqrt(0.0005) * stats_student_quantile(0.025, 1e6))));
}

/* The whole interval must be beyond the threshold: exact values are 1.96% apart by chance. */
static void test_threshold(void)
{
	static const struct {
		double ratio;
		bool is_significant, is_slower, is_faster;
	} cases[] = {
		{ 1.0197, false, false, false },     { 1.0199, true, false, false },
		{ 1.1217, true, false, false },	     { 1.1219, true, true, false },
		{ 1 / 1.0197, false, false, false }, { 1 / 1.0199, true, false, false },
		{ 1 / 1.1217, true, false, false },  { 1 / 1.1219, true, false, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct compare_sample from = { 0, 0, 0 }, to = { log(cases[i].ratio), 0, 0 };
		struct compare_result result = compare_judge(&from, &to, 0.1, 1);

		EXPECT(result.is_significant == cases[i].is_significant &&
		       result.is_slower == cases[i].is_slower &&
		       result.is_faster == cases[i].is_faster);
	}
}

/* ---- a row --------------------------------------------------------------------------------------- */

static void test_side(void)
{
	for (uint64_t calls = 99; calls < 101; calls++) {
		struct tally_row *row;

		begin();
		row = add_row(&a, OP_ALL_REDUCE, calls, 100 * US);
		row->open = 3;
		row->calls = calls + 10;
		row->covered = 2;
		row->covered_ns = 200000;
		row->wait_ns = 1000;
		row->covered_wait_ns = 500;
		row->joined = 7;
		row->sized_bytes = 5000;
		row->sized_ns = 1000;
		row->bus_bytes = 8000;
		row->bus_ns = 1000;
		add_row(&b, OP_ALL_REDUCE, calls, 150 * US)->bus_bytes = 0;
		compared(0.05);
		EXPECT_EQUAL(compare.count, 1);
		EXPECT(compare.rows[0].a.is_there && compare.rows[0].a.calls == calls + 10 &&
		       compare.rows[0].a.open == 3 && compare.rows[0].a.timed == calls &&
		       compare.rows[0].a.not_timed == 5 &&
		       compare.rows[0].a.bytes == calls * 1000 &&
		       compare.rows[0].a.wait_ns == 1000 && compare.rows[0].a.joined == 7);
		EXPECT(is_near(compare.rows[0].a.total_ns, (double)(calls * 100 * US + 200000)) &&
		       is_near(compare.rows[0].a.wait_share,
			       1500. / (double)(calls * 100 * US + 200000)) &&
		       is_near(compare.rows[0].a.algbw, 5e9) &&
		       is_near(compare.rows[0].a.busbw, 8e9));
		EXPECT_THAT("a 99th percentile needs a hundred calls",
			    compare.rows[0].a.p99_ns == (calls == 100 ? 100 * US : 0));
		EXPECT(is_near(compare.rows[0].median_ratio, 1.5) &&
		       is_near(compare.rows[0].mean_ratio, 1.5) &&
		       compare.rows[0].busbw_ratio == 0);
		over();
	}
}

/* Whole durations: without known iterations every fourth call counts, of all ranks together. */
static void test_durations(void)
{
	static const struct {
		const char *what;
		uint64_t calls;
		size_t regular; /* iterations; 0: unknown */
		double samples;
		bool has_interval;
	} cases[] = {
		{ "five samples", 40, 0, 5, true },
		{ "fewer", 38, 0, 4.75, false },
		{ "each call is in another iteration", 40, 30, 20, true },
		{ "several calls per iteration", 40, 6, 6, true },
		{ "too few iterations", 40, 4, 4, false },
	};
	const double bucket_error = 0.0866 / sqrt(12);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double error = bucket_error / sqrt(cases[i].samples), reach;

		begin();
		add_row(&a, OP_ALL_REDUCE, cases[i].calls, 100 * US);
		add_row(&b, OP_ALL_REDUCE, cases[i].calls, 110 * US);
		a.report.iterations.is_found = b.report.iterations.is_found = cases[i].regular > 0;
		a.report.iterations.regular = b.report.iterations.regular = cases[i].regular;
		compared(0.05);
		EXPECT_THAT(cases[i].what,
			    compare.rows[0].basis == COMPARE_DURATION &&
				    compare.rows[0].has_interval == cases[i].has_interval &&
				    is_near(compare.rows[0].samples_a, cases[i].samples) &&
				    is_near(compare.rows[0].samples_b, cases[i].samples));
		EXPECT(is_near(compare.rows[0].a.transfer_ns, 100e3) &&
		       is_near(compare.rows[0].b.transfer_ns, 110e3));
		EXPECT(compare.total.has_interval == cases[i].has_interval &&
		       is_near(compare.total.samples_a, cases[i].samples));
		if (cases[i].has_interval) {
			reach = sqrt(2 * error * error + 0.0001) *
				stats_student_quantile(0.025, 2 * (cases[i].samples - 1));
			EXPECT(is_near(compare.rows[0].ratio, 1.1) &&
			       is_near(compare.rows[0].ratio_low, 1.1 * exp(-reach)) &&
			       is_near(compare.rows[0].ratio_high, 1.1 * exp(reach)));
			EXPECT(is_near(compare.total.ratio, 1.1) &&
			       is_near(compare.total.ratio_low, 1.1 * exp(-reach)));
		}
		EXPECT_EQUAL(compare.judged, cases[i].has_interval);
		EXPECT(is_near(compare.judged_share, cases[i].has_interval));
		EXPECT_THAT("whole durations with waiting leave nothing undecided",
			    compare.undecided == 0);
		over();
	}
}

/* Two buckets, half of the calls each: the mean is between them, and their distance is the spread. */
static void test_two_buckets(void)
{
	unsigned int low = histogram_bucket(100 * US), high = low + 8;
	double low_log = (log((double)(100 * US)) + log((double)histogram_upper_ns(low))) / 2;
	double high_log = (log((double)histogram_upper_ns(high - 1)) + log(200e3)) / 2;
	double half = (high_log - low_log) / 2, error, reach;

	begin();
	add_row(&a, OP_ALL_REDUCE, 80, 100 * US);
	a.rows[0].histogram.counts[0] = 40;
	if (tally_histogram_add(&a.rows[0].histogram, high, 40) != OK)
		abort();
	a.rows[0].max_ns = 200 * US;
	add_row(&b, OP_ALL_REDUCE, 80, 100 * US);
	compared(0.05);
	error = sqrt((half * half + 0.0866 * 0.0866 / 12) / 10);
	reach = 0.0866 * 0.0866 / 12 / 10;
	EXPECT(is_near(compare.rows[0].a.transfer_ns, exp((low_log + high_log) / 2)));
	EXPECT(is_near(log(compare.rows[0].ratio_high / compare.rows[0].ratio),
		       sqrt(error * error + reach + 0.0001) *
			       stats_student_quantile(
				       0.025, pow(error * error + reach, 2) /
						      (pow(error, 4) / 9 + reach * reach / 9))));
	over();
}

/* ---- transfers ---------------------------------------------------------------------------------- */

static void test_transfers(void)
{
	static const struct {
		const char *what;
		struct {
			uint8_t source;
			unsigned int blocks;
		} a, b;
		enum compare_basis basis;
		double ratio;
	} cases[] = {
		{ "by the GPU's clock",
		  { OP_TIME_KERNEL_GPU, 5 },
		  { OP_TIME_KERNEL_GPU, 5 },
		  COMPARE_TRANSFER,
		  1.2 },
		{ "as a tool measured, with waiting",
		  { OP_TIME_TOOL, 5 },
		  { OP_TIME_TOOL, 5 },
		  COMPARE_DURATION,
		  1.2 },
		{ "too few parts",
		  { OP_TIME_KERNEL_GPU, 4 },
		  { OP_TIME_KERNEL_GPU, 5 },
		  COMPARE_DURATION,
		  3 },
		{ "too few of the other",
		  { OP_TIME_KERNEL_GPU, 5 },
		  { OP_TIME_KERNEL_GPU, 4 },
		  COMPARE_DURATION,
		  3 },
		{ "no common source",
		  { OP_TIME_KERNEL_GPU, 9 },
		  { OP_TIME_PROXY, 9 },
		  COMPARE_DURATION,
		  3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		add_row(&a, OP_ALL_REDUCE, 400, 1000 * US);
		add_row(&b, OP_ALL_REDUCE, 400, 3000 * US);
		add_cell(&a, cases[i].a.source, cases[i].a.blocks, 100e3);
		add_cell(&b, cases[i].b.source, cases[i].b.blocks, 120e3);
		compared(0.05);
		EXPECT_THAT(cases[i].what, compare.rows[0].basis == cases[i].basis &&
						   is_near(compare.rows[0].ratio, cases[i].ratio) &&
						   compare.rows[0].is_slower);
		EXPECT_EQUAL(compare.slower, 1);
		if (cases[i].basis == COMPARE_TRANSFER)
			EXPECT_THAT("1,000 bytes in 100 us, of two ranks",
				    is_near(compare.rows[0].a.transfer_busbw, 1e7) &&
					    is_near(compare.rows[0].b.transfer_busbw, 1e7 / 1.2));
		else
			EXPECT(compare.rows[0].a.transfer_busbw == 0);
		over();
	}
}

static void test_hidden_transfers(void)
{
	begin();
	add_row(&a, OP_ALL_REDUCE, 400, 1000 * US);
	add_row(&b, OP_ALL_REDUCE, 400, 1000 * US);
	add_cell(&a, OP_TIME_KERNEL_GPU, 8, 100e3);
	add_cell(&b, OP_TIME_KERNEL_GPU, 8, 120e3);
	a.ranks[0].is_shown = a.ranks[1].is_shown = false;
	compared(0.05);
	EXPECT_THAT("transfers of ranks that are not shown do not count",
		    compare.rows[0].basis == COMPARE_DURATION && is_near(compare.rows[0].ratio, 1));
	compare_release(&compare);
	a.ranks[1].is_shown = true;
	compared(0.05);
	EXPECT_THAT("one of them is enough", compare.rows[0].basis == COMPARE_TRANSFER);
	compare_release(&compare);
	a.report.custom[0].by = b.report.custom[0].by = TALLY_BY_FUNCTION | TALLY_BY_HOST;
	compared(0.05);
	EXPECT_THAT("a host has no transfers of its own",
		    compare.rows[0].basis == COMPARE_DURATION);
	over();
}

/* Twice as many ranks: compared by bandwidth, which needs sizes, and not judged. */
static void test_other_shape(void)
{
	for (uint64_t sized = 0; sized < 5; sized += 4) {
		begin_side(&a, 2);
		begin_side(&b, 4);
		add_row(&a, OP_ALL_REDUCE, 400, 1000 * US);
		add_row(&b, OP_ALL_REDUCE, 400, 1000 * US);
		add_cell(&a, OP_TIME_KERNEL_GPU, 8, 100e3)->sized = sized;
		add_cell(&b, OP_TIME_KERNEL_GPU, 8, 200e3);
		compared(0.05);
		EXPECT(compare.rows[0].basis == COMPARE_BANDWIDTH && !compare.rows[0].is_slower &&
		       compare.judged == 0 && compare.judged_share == 0);
		EXPECT(compare.rows[0].has_interval == (sized > 0));
		if (sized > 0)
			EXPECT_THAT("10 MB/s against 7.5",
				    is_near(compare.rows[0].b.transfer_busbw, 7.5e6) &&
					    is_near(compare.rows[0].ratio, 1 / 0.75));
		over();
	}
}

/* 6% slower, but not the whole interval: undecided, if it matters. */
static void test_undecided(void)
{
	static const struct {
		uint64_t calls, others;
		double ratio;
		size_t undecided;
	} cases[] = {
		{ 100, 0, 1.06, 1 },
		{ 100, 0, 1.049, 0 },
		{ 5, 95, 1.06, 1 },
		{ 4, 96, 1.06, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		add_row(&a, OP_ALL_REDUCE, cases[i].calls, 100 * US);
		add_row(&b, OP_ALL_REDUCE, cases[i].calls, 100 * US);
		if (cases[i].others > 0) {
			add_row(&a, OP_BROADCAST, cases[i].others, 100 * US);
			add_row(&b, OP_BROADCAST, cases[i].others, 100 * US);
		}
		add_cell(&a, OP_TIME_KERNEL_GPU, 8, 100e3);
		add_cell(&b, OP_TIME_KERNEL_GPU, 8, 100e3 * cases[i].ratio);
		compared(0.05);
		EXPECT_EQUAL(compare.undecided, cases[i].undecided);
		over();
	}
}

static void test_one_sided(void)
{
	begin();
	add_row(&a, OP_ALL_REDUCE, 40, 100 * US);
	add_row(&b, OP_BROADCAST, 40, 100 * US);
	add_row(&b, OP_REDUCE, 40, 100 * US);
	add_row(&a, OP_ALL_GATHER, 40, 100 * US);
	add_row(&b, OP_ALL_GATHER, 40, 100 * US)->timed = 0;
	compared(0.05);
	EXPECT(compare.count == 4 && compare.only_a == 1 && compare.only_b == 2 &&
	       compare.not_timed == 1 && compare.judged == 0);
	EXPECT_THAT("kinds that are timed on one side only: totals are not compared",
		    !compare.total.has_interval && compare.total.ratio == 0 &&
			    compare.total.mean_ratio == 0);
	over();

	begin();
	add_row(&a, OP_ALL_REDUCE, 40, 100 * US);
	compared(0.05);
	EXPECT(compare.count == 1 && compare.only_a == 1 && compare.only_b == 0 &&
	       strcmp(compare.rows[0].key[0], "AllReduce") == 0);
	over();
}

/* ---- the job ------------------------------------------------------------------------------------- */

static void add_iterations(struct side *side, size_t count, uint64_t ns, uint64_t busy_ns)
{
	side->report.iterations.is_found = true;
	side->report.iterations.period_ops = 4;
	side->report.iterations.count = count + 1;
	side->report.iterations.regular = side->report.iterations.timed = count;
	for (size_t i = 0; i <= count; i++)
		side->iterations[i] = (struct iteration){ .ops = 4,
							  .timed = 4,
							  .start_ns = 1000,
							  .end_ns = 1000 + ns,
							  .busy_ns = busy_ns };
	/* A checkpoint is not an iteration. */
	side->iterations[1].is_odd = true;
	side->iterations[1].end_ns = 1000 + 100 * ns;
	side->iterations[1].busy_ns = 100 * busy_ns;
}

static void test_iterations(void)
{
	static const struct {
		const char *what;
		size_t count_a, count_b;
		uint32_t period_b;
		bool is_found_b, is_known, has_interval;
	} cases[] = {
		{ "five of each", 5, 5, 4, true, true, true },
		{ "many", 60, 40, 4, true, true, true },
		{ "four on one side", 4, 5, 4, true, true, false },
		{ "four on the other side", 5, 4, 4, true, true, false },
		{ "none on one side", 0, 5, 4, true, false, false },
		{ "another pattern", 5, 5, 5, true, false, false },
		{ "not found", 5, 5, 4, false, false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		add_iterations(&a, cases[i].count_a, 100000, 4000);
		add_iterations(&b, cases[i].count_b, 130000, 2000);
		b.report.iterations.period_ops = cases[i].period_b;
		b.report.iterations.is_found = cases[i].is_found_b;
		compared(0.05);
		EXPECT_THAT(cases[i].what,
			    compare.iteration.is_known == cases[i].is_known &&
				    compare.iteration.has_interval == cases[i].has_interval &&
				    compare.communication.is_known == cases[i].is_known &&
				    compare.is_job_slower == cases[i].has_interval);
		if (cases[i].is_known) {
			EXPECT(is_near(compare.iteration.a, 100000) &&
			       is_near(compare.iteration.b, 130000) &&
			       is_near(compare.iteration.result.ratio, 1.3));
			EXPECT(is_near(compare.communication.a, 4000) &&
			       is_near(compare.communication.b, 2000) &&
			       compare.communication.result.is_faster);
		}
		over();
	}

	begin();
	add_iterations(&a, 40, 100000, 4000);
	add_iterations(&b, 40, 100000, 4000);
	for (size_t i = 2; i < 10; i++) {
		a.iterations[i].timed = 3;
		a.iterations[i].busy_ns = 9000;
	}
	a.report.iterations.timed -= 8;
	compared(0.05);
	EXPECT_THAT("an iteration with untimed calls is not compared by its calls",
		    is_near(compare.communication.a, 4000));
	over();
}

static void test_exposed(void)
{
	static const struct {
		uint64_t a_low, a_high, b_low, b_high;
		bool is_more, is_less;
	} cases[] = {
		{ 50, 100, 110, 200, false, false }, { 50, 100, 111, 200, true, false },
		{ 110, 200, 50, 100, false, false }, { 111, 200, 50, 100, false, true },
		{ 50, 100, 50, 100, false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) + 4; i++) {
		size_t n = i < 5 ? i : 1;
		struct iterations *from = &a.report.iterations, *to = &b.report.iterations;

		begin();
		*from = (struct iterations){ .is_found = i != 5,
					     .period_ops = 4,
					     .exposed = i != 6,
					     .exposed_low_ns = cases[n].a_low,
					     .exposed_high_ns = cases[n].a_high };
		*to = (struct iterations){ .is_found = true,
					   .period_ops = i == 7 ? 5 : 4,
					   .exposed = i != 8,
					   .exposed_low_ns = cases[n].b_low,
					   .exposed_high_ns = cases[n].b_high };
		compared(0.1);
		EXPECT(compare.exposed.is_known == (i < 5));
		EXPECT(compare.exposed.is_more == (i < 5 && cases[n].is_more) &&
		       compare.exposed.is_less == (i < 5 && cases[n].is_less));
		EXPECT(compare.exposed.b_low_ns == (i < 5 ? cases[n].b_low : 0));
		over();
	}
}

static void add_waiting(struct side *side, unsigned int blocks, double share)
{
	side->report.gpu_hours = 10;
	side->report.gpu_hours_waited = 10 * share;
	side->report.matches.complete = 3;
	for (unsigned int i = 0; i < blocks; i++) {
		side->report.paces.wait_calls[2 * i] = 10;
		side->report.paces.wait_ns[2 * i] = 1000 * share;
	}
}

static void test_waiting(void)
{
	for (int i = 0; i < 6; i++) {
		begin();
		add_waiting(&a, i == 1 ? 4 : 5, 0.1);
		add_waiting(&b, i == 2 ? 4 : 5, 0.3);
		if (i == 3)
			a.report.gpu_hours = 0;
		if (i == 4)
			b.report.matches.complete = 0;
		if (i == 5) {
			b.report.matches.complete = 0;
			b.report.matches.partial = 3;
		}
		compared(0.05);
		EXPECT_EQUAL(compare.waiting.is_known, i != 3 && i != 4);
		EXPECT_EQUAL(compare.waiting.has_interval, i == 0 || i == 5);
		EXPECT_EQUAL(compare.is_job_slower, i == 0 || i == 5);
		if (i == 0)
			EXPECT_THAT("a fifth of all time more",
				    is_near(compare.waiting.a, 0.1) &&
					    is_near(compare.waiting.b, 0.3) &&
					    is_near(compare.waiting.result.ratio, exp(0.2)));
		over();
	}

	/* 90 and 110 in turn: 10% of it around the mean, by nine values. */
	begin();
	add_waiting(&a, 9, 0.1);
	add_waiting(&b, 9, 0.1);
	for (int i = 0; i < 9; i++)
		a.report.paces.wait_ns[2 * i] = 100 + (i % 2 ? 10 : -10);
	compared(0.05);
	EXPECT(compare.waiting.has_interval && compare.waiting.result.ratio_high < 1.03 &&
	       compare.waiting.result.ratio_high > exp(0.01 * 1.959));
	over();
}

/* ---- senders -------------------------------------------------------------------------------------- */

static void add_sender(struct side *side, uint32_t seat, int32_t to, unsigned int blocks, double ns)
{
	struct pace_sender *sender = &side->senders[side->report.paces.sender_count++];

	*sender = (struct pace_sender){ .seat = seat, .to = to };
	fill_series(&sender->series, blocks, ns);
}

static void test_senders(void)
{
	begin();
	add_sender(&a, 0, 1, 5, 1000);
	add_sender(&b, 0, 1, 5, 1060);
	add_sender(&a, 0, 7, 5, 1000);
	add_sender(&b, 0, 7, 5, 900);
	add_sender(&a, 1, -1, 5, 1000);
	add_sender(&b, 1, -1, 5, 2000);
	compared(0.05);
	EXPECT(compare.sender_count == 3 && compare.senders_slower == 1 &&
	       compare.senders_faster == 1 && compare.senders_undecided == 1);
	EXPECT(strcmp(compare.senders[0].from, "1") == 0 && compare.senders[0].to[0] == '\0' &&
	       is_near(compare.senders[0].result.ratio, 2));
	EXPECT(strcmp(compare.senders[1].from, "0") == 0 &&
	       strcmp(compare.senders[1].to, "1") == 0 && compare.senders[1].is_undecided &&
	       is_near(compare.senders[1].wire_a_ns, 1000) &&
	       is_near(compare.senders[1].wire_b_ns, 1060));
	EXPECT_THAT("a receiver that is not recorded has its number",
		    strcmp(compare.senders[2].to, "#7") == 0 && !compare.senders[2].is_undecided);
	compare_release(&compare);
	fill_series(&b.senders[0].series, 5, 1049);
	compared(0.05);
	EXPECT_THAT("below the threshold it is not undecided", compare.senders_undecided == 0);
	compare_release(&compare);
	b.senders[0].series.count[4] = 0;
	compared(0.05);
	EXPECT_THAT("four parts are too few", compare.sender_count == 2);
	compare_release(&compare);
	b.ranks[1].is_shown = false;
	compared(0.05);
	EXPECT_THAT("a rank that is not shown is not compared",
		    compare.sender_count == 1 && strcmp(compare.senders[0].to, "#7") == 0);
	over();
}

/* ---- differences ----------------------------------------------------------------------------------- */

static const struct compare_difference *difference(const char *what)
{
	for (size_t i = 0; i < compare.difference_count; i++)
		if (strcmp(compare.differences[i].what, what) == 0)
			return &compare.differences[i];
	return NULL;
}

static bool differs(const char *what, const char *one, const char *other)
{
	const struct compare_difference *found = difference(what);

	return found != NULL && strcmp(found->a, one) == 0 && strcmp(found->b, other) == 0;
}

static void add_choice(struct side *side, uint8_t algorithm, uint8_t protocol, uint64_t calls)
{
	side->algorithms[side->report.by_algorithm.count++] = (struct tally_row){
		.key = { .function = OP_ALL_REDUCE, .algorithm = algorithm, .protocol = protocol },
		.calls = calls
	};
	side->functions[0].key.function = OP_ALL_REDUCE;
	side->report.by_function.count = 1;
}

static void add_channels(struct side *side, uint8_t channels, int calls)
{
	for (int i = 0; i < calls; i++)
		hand_op(side->hand.list[0], 1, OP_ALL_REDUCE, 1, 8, 100, 1000)->channels = channels;
}

static void test_differences(void)
{
	begin();
	compared(0.05);
	EXPECT_EQUAL(compare.difference_count, 0);
	over();

	begin();
	a.hand.list[0]->interface = 1;
	a.hand.list[1]->interface = OP_INTERFACES;
	b.hand.list[0]->interface = b.hand.list[1]->interface = 0;
	a.report.iterations.is_found = b.report.iterations.is_found = true;
	a.report.iterations.period_ops = 4;
	b.report.iterations.period_ops = 5;
	add_choice(&a, OP_RING, OP_SIMPLE, 20);
	add_choice(&a, OP_TREE, OP_LL, 1);
	add_choice(&b, OP_RING, OP_SIMPLE, 19);
	add_choice(&b, OP_TREE, OP_LL, 1);
	add_channels(&a, 8, 3);
	add_channels(&a, 16, 2);
	add_channels(&b, 16, 1);
	compared(0.05);
	EXPECT(differs("NCCL release", "2.23, 2.31 or later", "unknown"));
	EXPECT(differs("operations per iteration", "4", "5"));
	EXPECT_THAT("what less than one call in twenty uses is no choice",
		    differs("algorithm and protocol of AllReduce", "RING SIMPLE",
			    "RING SIMPLE, TREE LL"));
	EXPECT_THAT("the most common number of channels",
		    differs("channels of AllReduce", "8", "16"));
	EXPECT_EQUAL(compare.difference_count, 4);
	over();

	begin();
	add_choice(&a, OP_RING, OP_SIMPLE, 20);
	add_choice(&b, OP_RING, OP_SIMPLE, 20);
	add_channels(&a, 8, 3);
	a.report.iterations = (struct iterations){ .is_found = true, .period_ops = 4 };
	compared(0.05);
	EXPECT_THAT("what one side does not know is no difference", compare.difference_count == 0);
	over();
}

int main(void)
{
	test_judge();
	test_threshold();
	test_side();
	test_durations();
	test_two_buckets();
	test_transfers();
	test_hidden_transfers();
	test_other_shape();
	test_undecided();
	test_one_sided();
	test_iterations();
	test_exposed();
	test_waiting();
	test_senders();
	test_differences();
	return tap_done();
}
