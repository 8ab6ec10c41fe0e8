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

/* Every number of a row is another one. */
static struct tally_row make_row(uint64_t from)
{
	struct tally_row row = { .ranks = 1,
				 .last_rank = (uint32_t)from,
				 .calls = from + 1,
				 .open = from + 2,
				 .captured = from + 3,
				 .unknown_size = from + 4,
				 .untrusted = from + 5,
				 .bytes = from + 6,
				 .timed = from + 7,
				 .sum_ns = from + 8,
				 .min_ns = from + 9,
				 .max_ns = from + 10,
				 .square_sum = (double)from + 11,
				 .sized_bytes = from + 12,
				 .sized_ns = from + 13,
				 .bus_bytes = (double)from + 14,
				 .bus_ns = from + 15,
				 .joined = from + 16,
				 .joined_ns = from + 17,
				 .joined_least_ns = from + 18,
				 .wait_ns = from + 19,
				 .moves = from + 20,
				 .move_log_sum = (double)from + 21,
				 .move_log_squares = (double)from + 22,
				 .covered = from + 23,
				 .covered_ns = (double)from + 24,
				 .covered_joined_ns = (double)from + 25,
				 .covered_wait_ns = (double)from + 26 };

	for (unsigned int i = 0; i < OP_TIME_SHOWN_SOURCES; i++)
		row.by_source[i] = from + 30 + i;
	return row;
}

static void test_merge(void)
{
	struct tally_row a = make_row(1000), b = make_row(20000), none = { .ranks = 1, .calls = 1 };

	for (unsigned int i = 10; i < 14; i++)
		EXPECT_EQUAL(tally_histogram_add(&a.histogram, i, i), OK);
	for (unsigned int i = 8; i < 12; i++)
		EXPECT_EQUAL(tally_histogram_add(&b.histogram, i, 100 * i), OK);
	EXPECT_EQUAL(tally_merge(&a, &b), OK);
	EXPECT(a.calls == 21002 && a.open == 21004 && a.captured == 21006 &&
	       a.unknown_size == 21008 && a.untrusted == 21010 && a.bytes == 21012 &&
	       a.timed == 21014 && a.sum_ns == 21016);
	EXPECT(a.min_ns == 1009 && a.max_ns == 20010 && a.square_sum == 21022 && a.ranks == 2 &&
	       a.last_rank == 20000);
	EXPECT(a.sized_bytes == 21024 && a.sized_ns == 21026 && a.bus_bytes == 21028 &&
	       a.bus_ns == 21030 && a.joined == 21032 && a.joined_ns == 21034 &&
	       a.joined_least_ns == 21036 && a.wait_ns == 21038);
	EXPECT(a.moves == 21040 && a.move_log_sum == 21042 && a.move_log_squares == 21044 &&
	       a.covered == 21046 && a.covered_ns == 21048 && a.covered_joined_ns == 21050 &&
	       a.covered_wait_ns == 21052);
	for (unsigned int i = 0; i < OP_TIME_SHOWN_SOURCES; i++)
		EXPECT_EQUAL(a.by_source[i], 21060 + 2 * i);
	EXPECT(a.histogram.first == 8 && a.histogram.used == 6);
	for (unsigned int i = 8; i < 14; i++)
		EXPECT_EQUAL(a.histogram.counts[i - 8], (i >= 10 ? i : 0) + (i < 12 ? 100 * i : 0));
	EXPECT_EQUAL(tally_merge(&a, &b), OK);
	EXPECT_THAT("the same rank again", a.ranks == 2);
	b.ranks = 3;
	EXPECT_EQUAL(tally_merge(&a, &b), OK);
	EXPECT_THAT("several are others", a.ranks == 5);
	EXPECT_EQUAL(tally_merge(&a, &none), OK);
	EXPECT_THAT("what was never timed is not the shortest", a.min_ns == 1009 && a.ranks == 6);
	tally_row_release(&none);
	none = (struct tally_row){ .calls = 1 };
	EXPECT_EQUAL(tally_merge(&none, &b), OK);
	EXPECT(none.min_ns == 20009 && none.ranks == 3);
	tally_row_release(&a);
	tally_row_release(&b);
	tally_row_release(&none);
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
	test_merge();
	test_many_rows();
	test_by();
	return tap_done();
}
