/* Buckets against 2^(i/8) seconds, computed in floating point with more digits. */
#include "common/op.h"

#include <math.h>

#include "tests/tap.h"

static long double bound_ns(int prometheus_index)
{
	return 1e9L * powl(2.0L, (long double)prometheus_index / 8.0L);
}

static void bounds_are_those_of_prometheus(void)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		long double bound = bound_ns(histogram_prometheus_index(i));
		long double rounded = floorl(bound);

		/* A whole number of nanoseconds belongs to bucket i when it is at most the bound. */
		if ((long double)histogram_upper_ns(i) != rounded &&
		    fabsl(bound - roundl(bound)) > 1e-6L) {
			printf("# bucket %u ends at %llu, not %.3Lf\n", i,
			       (unsigned long long)histogram_upper_ns(i), bound);
			wrong++;
		}
	}
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(histogram_prometheus_index(0), -176);
	EXPECT_EQUAL(histogram_upper_ns(0), 238);
	EXPECT_EQUAL(histogram_upper_ns(176), 1000000000);
	EXPECT_EQUAL(histogram_upper_ns(184), 2000000000);
}

static void a_value_falls_into_the_first_bucket_that_holds_it(void)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
		wrong += histogram_bucket(histogram_upper_ns(i)) != i;
		wrong += histogram_bucket(histogram_upper_ns(i) + 1) != i + 1;
		wrong += histogram_upper_ns(i) >= histogram_upper_ns(i + 1);
	}
	EXPECT_EQUAL(wrong, 0);
}

static void ends_take_all_beyond(void)
{
	EXPECT_EQUAL(histogram_bucket(0), 0);
	EXPECT_EQUAL(histogram_bucket(1), 0);
	EXPECT_EQUAL(histogram_bucket(238), 0);
	EXPECT_EQUAL(histogram_bucket(239), 1);
	EXPECT_EQUAL(histogram_bucket(UINT64_C(1024) * 1000000000), 255);
	EXPECT_EQUAL(histogram_bucket(UINT64_MAX), 255);
}

/* All powers of two and their neighbors, and a walk through the rest. */
static void buckets_grow_with_values(void)
{
	unsigned int wrong = 0, before = 0;

	for (uint64_t ns = 1; ns < UINT64_MAX / 3; ns += ns / 64 + 1) {
		unsigned int bucket = histogram_bucket(ns);

		wrong += bucket < before || bucket >= HISTOGRAM_BUCKETS;
		wrong += bucket > 0 && ns <= histogram_upper_ns(bucket - 1);
		wrong += bucket < 255 && ns > histogram_upper_ns(bucket);
		before = bucket;
	}
	for (int shift = 0; shift < 64; shift++)
		for (int step = -1; step <= 1; step++) {
			uint64_t ns = (UINT64_C(1) << shift) + (uint64_t)step;
			unsigned int bucket = histogram_bucket(ns);

			wrong += bucket > 0 && ns <= histogram_upper_ns(bucket - 1);
			wrong += bucket < 255 && ns > histogram_upper_ns(bucket);
		}
	EXPECT_EQUAL(wrong, 0);
}

int main(void)
{
	bounds_are_those_of_prometheus();
	a_value_falls_into_the_first_bucket_that_holds_it();
	ends_take_all_beyond();
	buckets_grow_with_values();
	return tap_done();
}
