#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

static const uint32_t by = TALLY_BY_FUNCTION | TALLY_BY_SIZE;

/* `count` calls of two ranks, with durations around `typical_ns`. */
static void make(struct timeline_report *report, struct hand_made *hand, unsigned int calls,
		 uint64_t typical_ns, uint64_t seed, bool with_gather)
{
	struct timeline_options options = { .custom_by = { by }, .custom_count = 1 };

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(hand, "j", rank, "a");
		uint32_t comm = hand_comm(process, 0x77 + seed, "world", rank, 2, 1);

		for (uint64_t n = 1; n <= calls; n++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			hand_op(process, comm, OP_ALL_REDUCE, 2 * n, 1 << 20,
				typical_ns * (80 + (seed >> 40) % 41) / 100, n * 10000000);
			if (with_gather)
				hand_op(process, comm, OP_ALL_GATHER, 2 * n + 1, 1 << 16, 30000,
					n * 10000000 + 5000000);
		}
	}
	if (timeline_report_make(report, &hand->recording, NULL, &options) != OK)
		abort();
}

static const struct compare_row *row_of(const struct compare *compare, const char *function)
{
	for (size_t i = 0; i < compare->count; i++)
		if (strcmp(compare->rows[i].key[0], function) == 0)
			return &compare->rows[i];
	abort();
}

static void compared(unsigned int calls_a, uint64_t a_ns, unsigned int calls_b, uint64_t b_ns,
		     double threshold, bool b_has_gather,
		     void (*look)(const struct compare *compare))
{
	struct timeline_report a, b;
	struct hand_made hand_a = { .list = { NULL } }, hand_b = { .list = { NULL } };
	struct compare compare;

	make(&a, &hand_a, calls_a, a_ns, 1, true);
	make(&b, &hand_b, calls_b, b_ns, 2, b_has_gather);
	if (compare_make(&compare, &a, &b, threshold) != OK)
		abort();
	look(&compare);
	compare_release(&compare);
	timeline_report_release(&a);
	timeline_report_release(&b);
	hand_release(&hand_a);
	hand_release(&hand_b);
}

static void look_equal(const struct compare *compare)
{
	const struct compare_row *row = row_of(compare, "AllReduce");

	EXPECT_EQUAL(compare->count, 2);
	EXPECT_THAT("keys are what is displayed", strcmp(row->key[1], "1 MiB") == 0);
	EXPECT_THAT("equal runs are equal",
		    row->has_interval && !row->is_significant && !row->is_slower);
	EXPECT_THAT("the interval contains 1", row->ratio_low < 1 && row->ratio_high > 1);
	EXPECT_THAT("both sides are present", row->a.calls == 400 && row->b.calls == 400);
	EXPECT_EQUAL(compare->slower + compare->faster, 0);
}

static void look_slower(const struct compare *compare)
{
	const struct compare_row *row = row_of(compare, "AllReduce");

	EXPECT_THAT("30% longer is slower", row->is_slower && row->is_significant);
	EXPECT_THAT("the true value is in the interval",
		    row->ratio_low < 1.3 && row->ratio_high > 1.3 &&
			    row->ratio_high - row->ratio_low < 0.2);
	EXPECT_THAT("changed rows come first", row == &compare->rows[0]);
	EXPECT_THAT("the other row did not change", !row_of(compare, "AllGather")->is_slower);
	EXPECT_EQUAL(compare->slower, 1);
}

static void look_few(const struct compare *compare)
{
	const struct compare_row *row = row_of(compare, "AllReduce");

	EXPECT_THAT("three calls prove nothing", !row->has_interval && !row->is_slower);
	EXPECT_THAT("but have a ratio", row->mean_ratio > 1.1);
}

static void look_one_sided(const struct compare *compare)
{
	const struct compare_row *row = row_of(compare, "AllGather");

	EXPECT_THAT("a key of one side only", row->a.is_there && !row->b.is_there &&
						      compare->only_a == 1 && compare->only_b == 0);
	EXPECT_THAT("has no ratio", row->median_ratio == 0 && !row->has_interval);
}

static void look_tolerant(const struct compare *compare)
{
	EXPECT_THAT("below the threshold it is significant, but not slower",
		    row_of(compare, "AllReduce")->is_significant && compare->slower == 0);
}

int main(void)
{
	struct timeline_report empty = { .custom_count = 0 };
	struct compare compare;

	compared(200, 100000, 200, 100000, 0.05, true, look_equal);
	compared(200, 100000, 200, 130000, 0.05, true, look_slower);
	compared(200, 100000, 200, 130000, 0.5, true, look_tolerant);
	compared(3, 100000, 3, 130000, 0.05, true, look_few);
	compared(50, 100000, 50, 100000, 0.05, false, look_one_sided);
	EXPECT(compare_make(&compare, &empty, &empty, 0.05) == ERR_RANGE);
	return tap_done();
}
