/* Text charts, compared to the character, and data that cannot be drawn. */
#include "bench/bench_plot.h"

#include <math.h>
#include <string.h>

#include "bench/bench_result.h"
#include "tests/support/bench_sample.h"
#include "tests/tap.h"

static const double sizes[] = { 1024, 4096, 16384, 65536, 262144, 1048576 };
static const double ring[] = { 30000, 31000, 33000, 45000, 90000, 300000 };
static const double tree[] = { 10000, 12000, 20000, 50000, 180000, 700000 };
static const struct plot_series curves[] = { { "Ring", sizes, ring, 6, false, 0 },
					     { "Tree", sizes, tree, 6, false, 0 } };

static int is_same(const struct sink *sink, const char *wanted)
{
	if (strcmp(sink_string(sink), wanted) == 0)
		return 1;
	printf("#   got:\n%s#   wanted:\n%s", sink_string(sink), wanted);
	return 0;
}

static void test_ascii(void)
{
	static const char wanted[] = "AllReduce\n"
				     "  time\n"
				     "       |                              .x\n"
				     "       |                           ... o\n"
				     "       |                        .x. ....\n"
				     "100 us +                     ....o..\n"
				     "       |                  .x.....\n"
				     "       |o.....o.....o......o\n"
				     "       |         ...x..\n"
				     " 10 us +x.....x..\n"
				     "       +------+------------+-----------+\n"
				     "            4 KiB       64 KiB     1 MiB\n"
				     "  o Ring   x Tree\n";
	struct plot_options options = { .title = "AllReduce",
					.x = { NULL, PLOT_BYTES, PLOT_LOG },
					.y = { "time", PLOT_NS, PLOT_LOG },
					.width = 40,
					.height = 8,
					.is_ascii = true };
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_plot_text(&sink, curves, 2, &options), OK);
	EXPECT_THAT("two crossing curves", is_same(&sink, wanted));
	sink_release(&sink);
}

static void test_braille(void)
{
	struct plot_options options = { .x = { "size", PLOT_BYTES, PLOT_LOG },
					.y = { NULL, PLOT_GBPS, PLOT_LINEAR } };
	struct sink sink;
	size_t widest = 0, wide = 0;

	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_plot_text(&sink, curves, 2, &options), OK);
	for (const char *at = sink_string(&sink); *at != '\0'; at++) {
		wide = *at == '\n' ? 0 : wide + (((unsigned char)*at & 0xc0) != 0x80);
		widest = wide > widest ? wide : widest;
	}
	EXPECT_EQUAL(widest, 80);
	EXPECT_THAT("Braille dots", strstr(sink_string(&sink), "\342\240") != NULL);
	EXPECT_THAT("from 0 on a linear axis", strstr(sink_string(&sink), " 0 GB/s ") != NULL);
	sink_release(&sink);
}

static void test_refused(void)
{
	static const double nothing[] = { 0, -1, NAN };
	struct plot_series series[PLOT_SERIES_MAX + 1] = { { "x", sizes, nothing, 3, false, 0 } };
	struct plot_options options = { .y = { NULL, PLOT_NS, PLOT_LOG } };
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_plot_text(&sink, series, 1, &options), OK);
	EXPECT_THAT("a chart without data says so",
		    strstr(sink_string(&sink), "nothing to draw") != NULL);
	EXPECT_EQUAL(bench_plot_text(&sink, NULL, 0, &options), OK);
	for (size_t i = 0; i <= PLOT_SERIES_MAX; i++)
		series[i] = curves[0];
	EXPECT_EQUAL(bench_plot_text(&sink, series, PLOT_SERIES_MAX, &options), OK);
	EXPECT_EQUAL(bench_plot_text(&sink, series, PLOT_SERIES_MAX + 1, &options), ERR_RANGE);
	series[0].count = PLOT_POINTS_MAX + 1;
	EXPECT_EQUAL(bench_plot_text(&sink, series, 1, &options), ERR_RANGE);
	sink_release(&sink);
}

/* Every kind of range has ticks, all inside it, and no more than requested. */
static void test_ticks(void)
{
	static const double ends[][2] = { { 1, 1 },	    { 1e-320, 1e308 }, { 3, 4 },
					  { 1000, 1e6 },    { 1024, 4e9 },     { 0.999, 1.001 },
					  { 1e300, 2e300 }, { 5, 5.0000001 } };
	size_t wrong = 0, few = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (unsigned int kind = 0; kind < 20; kind++) {
			struct plot_axis axis = { NULL, kind % 5, kind / 5 % 2 };
			double ticks[PLOT_TICKS_MAX];
			struct plot_range range;
			double slack;
			size_t count;

			plot_range_start(&range, &axis);
			plot_range_add(&range, ends[i][0]);
			plot_range_add(&range, ends[i][1]);
			plot_range_finish(&range, kind >= 10);
			count = plot_range_ticks(&range, 8, ticks);
			slack = axis.scale == PLOT_LINEAR ? (range.high - range.low) * 1e-6
							  : range.low * 1e-6;
			few += count == 0;
			wrong += count > 8;
			for (size_t j = 0; j < count; j++)
				wrong += ticks[j] < range.low - slack ||
					 ticks[j] > range.high * (1 + 1e-6);
			if (count == 0)
				printf("#   no ticks from %g to %g, kind %u\n", ends[i][0],
				       ends[i][1], kind);
		}
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(few, 0);
}

static void test_values(void)
{
	static const struct {
		double value;
		enum plot_unit unit;
		const char *text;
	} values[] = { { 1536, PLOT_BYTES, "1.5 KiB" },	 { 1023, PLOT_BYTES, "1023 B" },
		       { 1 << 20, PLOT_BYTES, "1 MiB" }, { 999.9, PLOT_NS, "1 us" },
		       { 12345, PLOT_NS, "12.3 us" },	 { 0.5, PLOT_NS, "0.5 ns" },
		       { 142.2, PLOT_GBPS, "142 GB/s" }, { 5, PLOT_PERCENT, "5%" },
		       { 2e9, PLOT_NS, "2 s" },		 { 0, PLOT_PLAIN, "0" } };
	char text[PLOT_VALUE_TEXT];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (!EXPECT_THAT(values[i].text,
				 strcmp(bench_plot_value(text, values[i].value, values[i].unit),
					values[i].text) == 0))
			printf("#   got %s\n", text);
}

/* ---- histogram --------------------------------------------------------------------------------- */

static void test_histogram(void)
{
	static const char wanted[] = "AllReduce 1 MiB float32 sum, in place, blocking, TREE/LL: 4 "
				     "calls, median 86.3 us\n"
				     "    85 us to 86.3 us  ###################### 2\n"
				     "  86.3 us to 87.6 us  ###################### 2\n";
	struct bench_histogram_options options = { .width = 46, .bins = 2, .is_ascii = true };
	struct bench_cell *cell;
	struct bench_run run;
	struct sink sink;

	sample_start(&run, 2);
	cell = sample_add(&run, OP_ALL_REDUCE, BENCH_BLOCKING, 1 << 20, true, 85000);
	cell->algorithm = OP_TREE;
	cell->protocol = OP_LL;
	sample_add(&run, OP_BROADCAST, BENCH_LOOP, 8, false, 100);
	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_histogram_cell(&sink, cell, &options), OK);
	EXPECT_THAT("a histogram", is_same(&sink, wanted));
	sink_release(&sink);
	sink_init_memory(&sink);
	options = (struct bench_histogram_options){ .width = 1, .bins = 1000 };
	EXPECT_EQUAL(bench_histogram_write(&sink, &run, &options), OK);
	EXPECT_THAT("a loop has no single calls",
		    strstr(sink_string(&sink),
			   "\nBroadcast 8 B float32, root 0, out of place, loop: no times of "
			   "single calls\n") != NULL);
	sink_release(&sink);
	bench_run_release(&run);
}

int main(void)
{
	test_ascii();
	test_braille();
	test_refused();
	test_ticks();
	test_values();
	test_histogram();
	return tap_done();
}
