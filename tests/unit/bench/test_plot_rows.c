/* Bars and boxes as rows of text. */
#include <math.h>
#include <string.h>

#include "bench/bench_plot.h"
#include "tests/tap.h"

static const char *const groups[] = { "1 KiB", "1 MiB" };
static const char *const series[] = { "ours", "an\tother" };

static int is_same(struct sink *sink, const char *wanted)
{
	int same = strcmp(sink_string(sink), wanted) == 0;

	if (!same)
		printf("# found:\n%s# wanted:\n%s", sink_string(sink), wanted);
	sink_release(sink);
	return same;
}

#define TEN                                                            \
	"\342\226\210\342\226\210\342\226\210\342\226\210\342\226\210" \
	"\342\226\210\342\226\210\342\226\210\342\226\210\342\226\210"

static void test_bars(void)
{
	static const double values[] = { 100, 50, 99.9999, NAN };
	struct svg_groups bars = { groups, 2, series, 2, .values = values };
	struct svg_options options = { .title = "recorded",
				       .y = { NULL, PLOT_PERCENT, PLOT_LINEAR } };
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(plot_rows_groups(&sink, &bars, &options, 64), OK);
	/* 64 columns minus 5 + 2, 8 + 2 and 9: 38. */
	EXPECT_THAT("bars have the length of their values; nothing is rounded up to 100%; missing "
		    "values have no bar",
		    is_same(&sink,
			    "recorded\n"
			    "1 KiB  ours      " TEN TEN TEN "███"
			    "\342\226\210\342\226\210\342\226\210\342\226\210\342\226\210 100%\n"
			    "       an?other  " TEN
			    "\342\226\210\342\226\210\342\226\210\342\226\210"
			    "\342\226\210\342\226\210\342\226\210\342\226\210\342\226\210 50%\n"
			    "1 MiB  ours      " TEN TEN TEN "███"
			    "\342\226\210\342\226\210\342\226\210\342\226\210\342\226\210 99.99%\n"
			    "       an?other  -\n"));
}

static void test_boxes(void)
{
	static const struct svg_box boxes[] = {
		{ .is_there = true, .low = 0.5, .p25 = 0.6, .p50 = 0.7, .p75 = 0.8, .high = 1 },
		{ .is_there = false },
		{ .is_there = true, .low = 1.5, .p25 = 1.5, .p50 = 1.5, .p75 = 1.5, .high = 1.5 },
		{ .is_there = true, .low = 0.9, .p25 = 1.1, .p50 = 1.1, .p75 = 1.1, .high = 1.3 },
	};
	struct svg_groups all = { groups, 2, series, 2, .boxes = boxes };
	struct svg_options options = { .y = { NULL, PLOT_PLAIN, PLOT_LINEAR },
				       .has_mark = true,
				       .mark = 1.2 };
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(plot_rows_groups(&sink, &all, &options, 60), OK);
	EXPECT_THAT("whiskers, band, median and mark are at their values",
		    is_same(&sink, "                 0.5              1               1.5\n"
				   "1 KiB  ours      ├──▒▒▒▒█▒▒▒──────┤     ┊           0.700\n"
				   "1 MiB  ours                             ┊         █ 1.500\n"
				   "       an?other               ├──────█─────┤        1.100\n"));
}

static void test_nothing(void)
{
	static const struct svg_box none[4];
	struct svg_groups all = { groups, 2, series, 2, .boxes = none };
	struct svg_options options = { .title = "empty", .y = { NULL, PLOT_PLAIN, PLOT_LOG } };
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(plot_rows_groups(&sink, &all, &options, 0), OK);
	EXPECT_THAT("and says so", is_same(&sink, "empty\nnothing was measured\n"));
	all.series_count = SVG_SERIES_MAX + 1;
	EXPECT_EQUAL(plot_rows_groups(&sink, &all, &options, 0), ERR_RANGE);
}

int main(void)
{
	test_bars();
	test_boxes();
	test_nothing();
	return tap_done();
}
