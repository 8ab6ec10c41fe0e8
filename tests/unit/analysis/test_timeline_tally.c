#include "analysis/tally.h"
#include "common/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/tap.h"

static void test_buckets(void)
{
	struct tally_scale scale;
	uint64_t wrong = 0, seed = 1;

	tally_scale_init(&scale);
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t upper = histogram_upper_ns(i);

		wrong += tally_bucket(&scale, upper) != histogram_bucket(upper);
		wrong += tally_bucket(&scale, upper + 1) != histogram_bucket(upper + 1);
	}
	for (uint64_t ns = 0; ns < 5000; ns++)
		wrong += tally_bucket(&scale, ns) != histogram_bucket(ns);
	for (int i = 0; i < 200000; i++) {
		uint64_t ns;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		ns = seed >> (seed >> 58);
		wrong += tally_bucket(&scale, ns) != histogram_bucket(ns);
	}
	wrong += tally_bucket(&scale, UINT64_MAX) != histogram_bucket(UINT64_MAX);
	EXPECT_EQUAL(wrong, 0);
}

static struct tally_row row_of(const uint64_t *values, size_t count)
{
	struct tally_row row = { .ranks = 1 };

	for (size_t i = 0; i < count; i++) {
		row.calls++;
		row.timed++;
		row.sum_ns += values[i];
		row.square_sum += (double)values[i] * (double)values[i];
		row.min_ns = i == 0 || values[i] < row.min_ns ? values[i] : row.min_ns;
		row.max_ns = values[i] > row.max_ns ? values[i] : row.max_ns;
		if (tally_histogram_add(&row.histogram, histogram_bucket(values[i]), 1) != OK)
			abort();
	}
	return row;
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void test_quantiles(void)
{
	static const double shares[] = { 0, 0.01, 0.5, 0.9, 0.99, 1 };
	uint64_t values[1001], seed = 7;
	struct tally_row row;
	unsigned int wrong = 0;

	for (size_t i = 0; i < 1001; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		values[i] = 1000 + (seed >> 33) % 100000000;
	}
	row = row_of(values, 1001);
	qsort(values, 1001, sizeof(values[0]), by_value);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		size_t nth = (size_t)ceil(shares[i] * 1001);
		double exact = (double)values[nth ? nth - 1 : 0];
		double got = (double)tally_quantile_ns(&row, shares[i]);

		wrong += fabs(got / exact - 1) > TALLY_QUANTILE_ERROR;
	}
	EXPECT_THAT("quantiles are within the stated error", wrong == 0);
	EXPECT_EQUAL(tally_quantile_ns(&row, 1), row.max_ns);
	tally_row_release(&row);

	row = row_of((const uint64_t[]){ 5000 }, 1);
	EXPECT_THAT("with one value all quantiles are that value",
		    tally_quantile_ns(&row, 0.5) == 5000 && tally_quantile_ns(&row, 0.99) == 5000);
	EXPECT_THAT("and there is no deviation", tally_deviation_ns(&row) == 0);
	tally_row_release(&row);
	row = row_of((const uint64_t[]){ 10, 20, 30 }, 3);
	EXPECT_THAT("deviation", fabs(tally_deviation_ns(&row) - 10) < 1e-9);
	EXPECT_THAT("below the first bucket the minimum and maximum limit it",
		    tally_quantile_ns(&row, 0.5) >= 10 && tally_quantile_ns(&row, 0.5) <= 30);
	tally_row_release(&row);
	row = (struct tally_row){ .calls = 3 };
	EXPECT_THAT("nothing timed, nothing known",
		    tally_quantile_ns(&row, 0.5) == 0 && tally_mean_ns(&row) == 0 &&
			    tally_busbw(&row) == 0 && tally_algbw(&row) == 0);
}

static void test_factors(void)
{
	EXPECT(op_bus_factor(OP_ALL_REDUCE, 4) == 1.5);
	EXPECT(op_bus_factor(OP_ALL_GATHER, 4) == 0.75);
	EXPECT(op_bus_factor(OP_REDUCE_SCATTER, 2) == 0.5);
	EXPECT(op_bus_factor(OP_ALL_TO_ALL, 2) == 0.5);
	EXPECT(op_bus_factor(OP_BROADCAST, 4) == 1);
	EXPECT(op_bus_factor(OP_SEND, 0) == 1);
	EXPECT(op_bus_factor(OP_ALL_REDUCE, 0) == 0);
}

static void test_rows(void)
{
	struct tally_key key = { .comm = 3, .function = OP_ALL_REDUCE, .rank = 9 };
	struct tally_row one = row_of((const uint64_t[]){ 1000, 2000 }, 2);
	struct tally_row two = row_of((const uint64_t[]){ 500, 9000000 }, 2);
	struct tally tally;
	struct tally_row *row;

	tally_init(&tally, TALLY_BY_COMM | TALLY_BY_FUNCTION, 2);
	row = tally_row(&tally, &key);
	tally_merge(row, &one);
	key.rank = 10;
	EXPECT_THAT("parts outside the key do not separate rows",
		    tally_row(&tally, &key) == row && row->key.rank == 0 && row->key.comm == 3);
	two.last_rank = 1;
	tally_merge(row, &two);
	EXPECT_THAT("sums, extremes and ranks are merged",
		    row->sum_ns == 9003500 && row->min_ns == 500 && row->max_ns == 9000000 &&
			    row->timed == 4 && row->ranks == 2);
	EXPECT_THAT("histograms of different ranges are merged",
		    row->histogram.counts[0] == 1 &&
			    row->histogram.counts[row->histogram.used - 1] == 1 &&
			    tally_quantile_ns(row, 1) == 9000000);
	key.comm = 4;
	tally_row(&tally, &key)->sum_ns = 10000000;
	key.comm = 5;
	EXPECT_THAT("beyond the limit all go into one row",
		    tally_row(&tally, &key) == &tally.other && tally.has_other && tally.count == 2);
	key.comm = 3;
	EXPECT_THAT("existing rows are kept", tally_row(&tally, &key)->timed == 4);
	tally_sort(&tally, TALLY_BY_TIME_SPENT);
	EXPECT_EQUAL(tally.rows[0].key.comm, 4);
	tally_sort(&tally, TALLY_BY_KEY);
	EXPECT_EQUAL(tally.rows[0].key.comm, 3);
	tally_release(&tally);
	tally_row_release(&one);
	tally_row_release(&two);
}

static void test_many_rows(void)
{
	struct tally tally;
	unsigned int wrong = 0;

	tally_init(&tally, TALLY_BY_TAG, 0);
	for (uint64_t i = 0; i < 10000; i++)
		tally_row(&tally, &(struct tally_key){ .tag = i * i })->calls = i + 1;
	for (uint64_t i = 0; i < 10000; i++)
		wrong += tally_row(&tally, &(struct tally_key){ .tag = i * i })->calls != i + 1;
	EXPECT_THAT("each of ten thousand keys finds its row", wrong == 0 && tally.count == 10000);
	tally_release(&tally);
}

static void test_by(void)
{
	const char *bad = NULL;
	uint32_t by = 0;

	EXPECT(tally_by_parse("function,size", &by, &bad) == OK &&
	       by == (TALLY_BY_FUNCTION | TALLY_BY_SIZE));
	EXPECT(tally_by_parse("rank", &by, &bad) == OK && by == TALLY_BY_RANK);
	EXPECT(tally_by_parse("rank,color", &by, &bad) == ERR_UNKNOWN &&
	       strcmp(bad, "color") == 0 && by == TALLY_BY_RANK);
	EXPECT(tally_by_parse("", &by, &bad) == ERR_UNKNOWN);
	EXPECT(tally_by_parse("size,", &by, &bad) == ERR_UNKNOWN);
	for (unsigned int i = 0; i < TALLY_BYS; i++)
		if (tally_by_parse(tally_by_name(i), &by, &bad) != OK || by != 1u << i)
			EXPECT_THAT("every part has a name that is parsed", 0);
	EXPECT(tally_by_name(TALLY_BYS) == NULL);
}

int main(void)
{
	test_buckets();
	test_quantiles();
	test_factors();
	test_rows();
	test_many_rows();
	test_by();
	return tap_done();
}
