#include <stdint.h>

#include "bench/bench_plan.h"
#include "tests/tap.h"

static void test_calls(void)
{
	struct bench_plan plan = { .calls = 20, .least_calls = 5 };

	EXPECT_EQUAL(budget_calls(&plan, 1e6, 2), 20);
	EXPECT_EQUAL(budget_calls(&plan, 0, 2), 20);
	plan.seconds = 1;
	EXPECT_EQUAL(budget_calls(&plan, 1e6, 2), 20);	 /* a thousand would fit */
	EXPECT_EQUAL(budget_calls(&plan, 100e6, 2), 10); /* the time limit comes first */
	EXPECT_EQUAL(budget_calls(&plan, 2e9, 2), 5);	 /* the minimum */
	plan.calls = 3;
	EXPECT_EQUAL(budget_calls(&plan, 2e9, 2), 3); /* except if fewer were requested */
	plan.calls = 0;
	EXPECT_EQUAL(budget_calls(&plan, 1e6, 2), 1000);
	EXPECT_EQUAL(budget_calls(&plan, 1, 2), BUDGET_CALLS_MAX);
	EXPECT_EQUAL(budget_calls(&plan, 1, 4096), BUDGET_CALLS_BYTES / (4096 * 32));
	EXPECT_EQUAL(budget_calls_limit(4096), BUDGET_CALLS_BYTES / (4096 * 32));
	plan.least_calls = 0;
	EXPECT_EQUAL(budget_calls(&plan, 5e9, 2), 1);
	EXPECT_EQUAL(budget_calls(&plan, 1, BENCH_RANKS_MAX), BUDGET_CALLS_BYTES / (65536 * 32));
}

static void test_warmups(void)
{
	struct bench_plan plan = { .warmups = 5 };

	EXPECT_EQUAL(budget_warmups(&plan, 1, 1e12, 1e12), 4); /* no budget, no limit */
	plan.seconds = 1;
	EXPECT_EQUAL(budget_warmups(&plan, 1, 1e6, 1e6), 4);
	EXPECT_EQUAL(budget_warmups(&plan, 1, 200e6, 100e6), 3);
	EXPECT_EQUAL(budget_warmups(&plan, 1, 600e6, 600e6), 0);
	EXPECT_EQUAL(budget_warmups(&plan, 5, 1e6, 1e6), 0);
	plan.warmups = 0;
	EXPECT_EQUAL(budget_warmups(&plan, 1, 1e6, 1e6), 0);
}

int main(void)
{
	test_calls();
	test_warmups();
	return tap_done();
}
