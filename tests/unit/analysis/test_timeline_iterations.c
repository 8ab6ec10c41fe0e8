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

static void test_short(void)
{
	for (uint32_t i = 0; i < 7; i++)
		op(10 + i);
	for (int i = 0; i < 17; i++) {
		op(1);
		op(2);
	}
	op(2);
	find();
	EXPECT_THAT("found behind a warm-up that is a sixth of all",
		    iterations.is_found && iterations.period_ops == 2 && iterations.regular == 17 &&
			    iterations.warm_up_ops == 7);
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

/* The host calls everything at once, and the GPU works it off. */
static void test_host_ahead(void)
{
	for (int i = 0; i < 20; i++)
		training_step();
	for (size_t i = 0; i < count; i++) {
		ops[i].done_ns = 1000000 + (i + 1) * 100000;
		ops[i].duration_ns = 60000;
		ops[i].is_timed = true;
	}
	find();
	EXPECT_THAT("durations are between ends",
		    iterations.is_by_end && iterations.median_ns == 17 * 100000);
	EXPECT_THAT("so communication is a share of them", iterations.median_busy_ns == 17 * 60000);
	EXPECT_EQUAL(iterations.list[3].start_ns, iterations.list[2].end_ns);
	EXPECT_EQUAL(iterations.list[3].called_ns, ops[3 * 17].issue_ns);
	EXPECT_EQUAL(iterations.list[3].next_called_ns, ops[4 * 17].issue_ns);
	over();
	for (int i = 0; i < 20; i++)
		training_step();
	find();
	EXPECT_THAT("a host that waits sets the pace itself",
		    !iterations.is_by_end && iterations.median_ns == 17000);
	over();
	for (int i = 0; i < 20; i++)
		training_step();
	for (size_t i = 0; i < count; i++)
		ops[i].done_ns = 0;
	find();
	EXPECT_THAT("without ends there are only calls",
		    !iterations.is_by_end && iterations.median_ns == 17000);
	over();
}

/* 17 operations of 500 ns, not overlapping: on the GPU's clock, which is somewhere else. */
static void timed_step(bool has_gpu, bool is_default)
{
	training_step();
	for (size_t i = count - 17; i < count; i++) {
		ops[i].is_timed = true;
		ops[i].gpu_stop_ns = has_gpu ? ops[i].done_ns + 5000000 : 0;
		ops[i].is_default_stream = is_default && i + 1 < count;
	}
}

static void test_exposed_bounds(void)
{
	const uint64_t ends_ns = 17 * 20000;

	for (int i = 0; i < 10; i++)
		timed_step(true, true);
	find();
	EXPECT_THAT("known", iterations.exposed == 10 && iterations.exposed_measured == 0);
	EXPECT_THAT("at least what ran on the default stream",
		    iterations.exposed_low_ns == 16 * 500);
	EXPECT_THAT("at most all of it, and the ends of its kernels",
		    iterations.exposed_high_ns == 17 * 500 + ends_ns);
	over();
	for (int i = 0; i < 10; i++)
		timed_step(false, true);
	/* Issued 1 us after each other, over 700 ns later: 300 ns without one. */
	find();
	EXPECT_THAT("without GPU times nothing is certain, and it can begin with the call",
		    iterations.exposed_low_ns == 0 &&
			    iterations.exposed_high_ns == 17 * 700 + ends_ns);
	over();
	for (int i = 0; i < 10; i++)
		timed_step(false, false);
	for (size_t i = 0; i < count; i++)
		ops[i].floor_ns = ops[i].issue_ns + 600;
	find();
	EXPECT_THAT("not before its communicator was free",
		    iterations.exposed_high_ns == 17 * 100 + ends_ns);
	over();
	for (int i = 0; i < 10; i++) {
		timed_step(true, false);
		ops[count - 3].is_timed = false;
	}
	find();
	EXPECT_THAT("no number if one operation is not timed", iterations.exposed == 0);
	over();
}

static void test_exposed_measured(void)
{
	struct exposed_activity activity = { .compute = NULL };

	for (int i = 0; i < 10; i++)
		timed_step(true, false);
	find();
	/* One kernel per iteration of 4 us, the first of it behind computation. */
	for (int i = 2; i < 7; i++) {
		uint64_t called_ns = iterations.list[i].called_ns + 50, start_ns = called_ns + 9000;

		EXPECT(exposed_add_comm(&activity, called_ns, start_ns, start_ns + 4000));
		EXPECT(exposed_add_compute(&activity, start_ns - 500, start_ns + 1000));
	}
	activity.first_ns = iterations.list[2].called_ns;
	activity.last_ns = iterations.list[6].next_called_ns - 1;
	exposed_finish(&activity);
	EXPECT_EQUAL(iterations_measure(&iterations, &activity), OK);
	EXPECT_THAT("only iterations that the profile has whole",
		    iterations.exposed_measured == 4 && iterations.exposed == 10 &&
			    !iterations.list[6].is_exposed_measured &&
			    !iterations.list[1].is_exposed_measured);
	EXPECT_THAT("exact there", iterations.list[3].exposed_low_ns == 3000 &&
					   iterations.list[3].exposed_high_ns == 3000);
	EXPECT_THAT("and only these are in the median",
		    iterations.exposed_low_ns == 3000 && iterations.exposed_high_ns == 3000);
	exposed_release(&activity);
	over();
}

static void test_exposed_union(void)
{
	struct exposed_activity activity = { .compute = NULL };
	struct exposed_time time;

	/* Two kernels overlap each other; computation covers 20 to 30, 28 to 40 and 95 to 200. */
	exposed_add_comm(&activity, 1, 10, 50);
	exposed_add_comm(&activity, 2, 40, 100);
	exposed_add_comm(&activity, 9, 300, 310);
	exposed_add_compute(&activity, 28, 40);
	exposed_add_compute(&activity, 20, 30);
	exposed_add_compute(&activity, 95, 200);
	exposed_add_compute(&activity, 60, 60);
	exposed_finish(&activity);
	EXPECT_EQUAL(exposed_measure(&activity, 1, 9, &time), OK);
	EXPECT_EQUAL(time.kernels, 2);
	EXPECT_EQUAL(time.comm_ns, 90);
	EXPECT_EQUAL(time.exposed_ns, 65);
	EXPECT_EQUAL(exposed_measure(&activity, 3, 9, &time), OK);
	EXPECT_THAT("nothing was launched", time.kernels == 0 && time.exposed_ns == 0);
	EXPECT_EQUAL(exposed_measure(&activity, 9, 10, &time), OK);
	EXPECT_THAT("no computation", time.comm_ns == 10 && time.exposed_ns == 10);
	exposed_release(&activity);
}

int main(void)
{
	test_host_ahead();
	test_exposed_bounds();
	test_exposed_measured();
	test_exposed_union();
	test_plain();
	test_interrupted();
	test_many_times_the_same();
	test_long_period();
	test_short();
	test_tags();
	return tap_done();
}
