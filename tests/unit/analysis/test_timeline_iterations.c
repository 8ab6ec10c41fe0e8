#include "analysis/timeline_report.h"

#include <stdlib.h>

#include "tests/tap.h"

enum { ROOM = 200000 };

static struct iterations_op ops[ROOM];
static size_t count;
static uint64_t now_ns;
static struct iterations iterations;

static void op(uint32_t symbol)
{
	now_ns += 1000;
	ops[count++] = (struct iterations_op){ .symbol = symbol,
					       .issue_ns = now_ns,
					       .done_ns = now_ns + 700,
					       .duration_ns = 500,
					       .bytes = 10 };
}

/* Sixteen buckets, then the loss. */
static void training_step(void)
{
	for (int i = 0; i < 16; i++)
		op(1);
	op(2);
}

static void find(void)
{
	if (iterations_find(&iterations, ops, count) != OK)
		abort();
}

static void over(void)
{
	iterations_release(&iterations);
	count = 0;
	now_ns = 0;
}

static void test_plain(void)
{
	for (int i = 0; i < 5; i++)
		op(9);
	for (int i = 0; i < 30; i++)
		training_step();
	op(1);
	find();
	EXPECT_THAT("found", iterations.is_found && iterations.period_ops == 17);
	EXPECT_EQUAL(iterations.warm_up_ops, 5);
	EXPECT_EQUAL(iterations.regular, 30);
	EXPECT_EQUAL(iterations.count, 30);
	EXPECT_EQUAL(iterations.tail_ops, 1);
	EXPECT_EQUAL(iterations.median_ns, 17000);
	EXPECT_EQUAL(iterations.list[0].busy_ns, 17 * 500);
	EXPECT_EQUAL(iterations.list[0].bytes, 170);
	EXPECT_EQUAL(iterations.list[3].first_op, 5 + 3 * 17);
	over();
}

static void test_interrupted(void)
{
	for (int i = 0; i < 40; i++) {
		training_step();
		if (i % 15 == 14)
			for (int j = 0; j < 23; j++)
				op(50 + (uint32_t)j % 3);
		if (i == 20)
			now_ns += 1000000;
	}
	find();
	EXPECT_THAT("an occasional checkpoint does not hide them",
		    iterations.is_found && iterations.period_ops == 17);
	EXPECT_EQUAL(iterations.regular, 40);
	EXPECT_THAT("it is separate and irregular", iterations.count == 42 &&
							    iterations.list[15].is_odd &&
							    iterations.list[15].ops == 23);
	EXPECT_THAT("a slow one is found",
		    iterations.slowest_ns == 1017000 && iterations.median_ns == 17000);
	over();
}

static void test_many_times_the_same(void)
{
	/* No symbol comes once: two similar layers, three times each. */
	for (int i = 0; i < 50; i++)
		for (int j = 0; j < 3; j++) {
			op(1);
			op(1);
			op(2);
			op(3);
		}
	find();
	EXPECT_THAT("the shortest period is used",
		    iterations.is_found && iterations.period_ops == 4);
	over();
	for (int i = 0; i < 500; i++)
		op(1);
	find();
	EXPECT_THAT("one repeated call has no iterations", !iterations.is_found);
	over();
	for (uint32_t i = 0, seed = 1; i < 500; i++) {
		seed = seed * 1664525 + 1013904223;
		op(seed >> 29);
	}
	find();
	EXPECT_THAT("nor has a sequence that never repeats",
		    !iterations.is_found && iterations.list == NULL);
	over();
	training_step();
	find();
	EXPECT_THAT("nor has a single step", !iterations.is_found);
	over();
	find();
	EXPECT_THAT("nor has an empty one", !iterations.is_found);
}

static void test_long_period(void)
{
	for (int i = 0; i < 30; i++)
		for (uint32_t j = 0; j < 4000; j++)
			op(j < 3990 ? 1 + j % 5 : j);
	find();
	EXPECT_THAT("thousands of calls in each", iterations.is_found &&
							  iterations.period_ops == 4000 &&
							  iterations.regular == 30);
	over();
}

static void test_tags(void)
{
	for (uint64_t i = 0; i < 10; i++) {
		training_step();
		for (size_t j = count - 17; j < count; j++)
			ops[j].tag = 100 + i;
	}
	find();
	EXPECT_THAT("a tag that counts up is used",
		    iterations.is_found && iterations.is_by_tag && iterations.count == 10);
	over();
}

int main(void)
{
	test_plain();
	test_interrupted();
	test_many_times_the_same();
	test_long_period();
	test_tags();
	return tap_done();
}
