/*
 * Charts, tables, histograms and JSON of hand-made values, compared as a whole with tests/unit/bench/expected: every
 * unit and scale, marks, gaps, values that cannot be shown, many series, narrow and wide.
 */
#include <math.h>
#include <string.h>

#include "bench/bench_plot.h"
#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/op_layout.h"
#include "tests/support/bench_sample.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

static const double sizes[] = { 1024, 4096, 16384, 65536, 262144, 1048576 };
static const double ring[] = { 30000, 31000, 33000, 45000, 90000, 300000 };
static const double tree[] = { 10000, 12000, NAN, 50000, 180000, 700000 };
static const double flat[] = { 20000, 20000, 20000, 20000, 20000, 20000 };
static const double mixed[] = { -3, 0, 2.5, INFINITY, 7, 11 };
static const double shares[] = { 0, 12.5, 50, 75, 99, 100 };
static const double one[] = { 4096 }, ten[] = { 10 };

static const struct {
	const char *title;
	struct plot_series series[3];
	size_t count;
	struct plot_axis x, y;
	unsigned int width, height;
	double mark; /* 0: none */
	const char *mark_label;
} charts[] = {
	{ "bytes and times, logarithmic",
	  { { "Ring", sizes, ring, 6, false, 0 },
	    { "Tree", sizes, tree, 6, false, 0 },
	    { "Model of Ring", sizes, flat, 6, true, 1 } },
	  3,
	  { "message size", PLOT_BYTES, PLOT_LOG },
	  { "time", PLOT_NS, PLOT_LOG },
	  72,
	  12,
	  20000,
	  "expected" },
	{ "linear, with values below 0",
	  { { "x < y & \"z\"", sizes, mixed, 6, false, 0 } },
	  1,
	  { NULL, PLOT_PLAIN, PLOT_LINEAR },
	  { "GB/s", PLOT_GBPS, PLOT_LINEAR },
	  0,
	  0,
	  0,
	  NULL },
	{ "percent, narrow and low",
	  { { "share", sizes, shares, 6, true, 0 }, { "same", sizes, shares, 6, false, 0 } },
	  2,
	  { "bytes", PLOT_BYTES, PLOT_LINEAR },
	  { "share", PLOT_PERCENT, PLOT_LINEAR },
	  40,
	  4,
	  150,
	  "beyond" },
	{ "a single point",
	  { { "point", one, ten, 1, false, 0 } },
	  1,
	  { "size", PLOT_BYTES, PLOT_LOG },
	  { "value", PLOT_PLAIN, PLOT_LOG },
	  60,
	  8,
	  0,
	  NULL },
	{ "nothing that a logarithmic axis can show",
	  { { "gone", sizes, mixed, 2, false, 0 } },
	  1,
	  { "size", PLOT_BYTES, PLOT_LOG },
	  { "value", PLOT_PLAIN, PLOT_LOG },
	  60,
	  8,
	  0,
	  NULL },
};

static void charts_are_drawn(struct sink *text, struct sink *svg)
{
	for (size_t i = 0; i < ARRAY_LENGTH(charts); i++) {
		struct plot_options options = { .title = charts[i].title,
						.x = charts[i].x,
						.y = charts[i].y,
						.width = charts[i].width,
						.height = charts[i].height };
		struct svg_options drawn = { .id = i == 0 ? NULL : "other-1",
					     .title = i == 3 ? NULL : charts[i].title,
					     .description = i == 0 ? "curves < & >" : NULL,
					     .x = charts[i].x,
					     .y = charts[i].y,
					     .width = charts[i].width * 10,
					     .height = charts[i].height * 20,
					     .has_mark = charts[i].mark > 0,
					     .mark = charts[i].mark,
					     .mark_label = charts[i].mark_label };

		sink_format(text, "=== %s\n", charts[i].title);
		EXPECT_EQUAL(bench_plot_text(text, charts[i].series, charts[i].count, &options),
			     OK);
		options.is_ascii = true;
		EXPECT_EQUAL(bench_plot_text(text, charts[i].series, charts[i].count, &options),
			     OK);
		sink_format(svg, "=== %s\n", charts[i].title);
		EXPECT_EQUAL(bench_svg_lines(svg, charts[i].series, charts[i].count, &drawn), OK);
	}
}

static void many_series_are_drawn(struct sink *text, struct sink *svg)
{
	static const char *const names[PLOT_SERIES_MAX] = { "a", "b", "c", "d", "e", "f",
							    "g", "h", "i", "j", "k", "last" };
	const struct plot_options options = { .x = { NULL, PLOT_BYTES, PLOT_LOG },
					      .y = { NULL, PLOT_NS, PLOT_LOG } };
	const struct svg_options drawn = { .x = { NULL, PLOT_BYTES, PLOT_LOG },
					   .y = { NULL, PLOT_NS, PLOT_LOG } };
	struct plot_series series[PLOT_SERIES_MAX];
	double values[PLOT_SERIES_MAX][6];

	for (size_t i = 0; i < PLOT_SERIES_MAX; i++) {
		for (size_t j = 0; j < 6; j++)
			values[i][j] = 1000.0 * (double)(i + 1) * (double)(j + 1);
		series[i] = (struct plot_series){ names[i], sizes, values[i], 6, false, 0 };
	}
	sink_text(text, "=== many series\n");
	EXPECT_EQUAL(bench_plot_text(text, series, PLOT_SERIES_MAX, &options), OK);
	sink_text(svg, "=== many series\n");
	EXPECT_EQUAL(bench_svg_lines(svg, series, PLOT_SERIES_MAX, &drawn), OK);
}

static void bars_and_boxes_are_drawn(struct sink *text, struct sink *svg)
{
	static const char *const groups[] = { "1 KiB", "a long name of a group", "1 MiB" };
	static const char *const series[] = { "ringside", "<other>" };
	static const double values[] = { 100, 75, NAN, 0, 50, 12.5 };
	static const double times[] = { 1e3, 1e6, 2e3, NAN, 5e4, 4e5 };
	static const struct svg_box boxed[] = {
		{ true, 0.5, 0.8, 1, 1.2, 2, 1.1 }, { true, NAN, NAN, 1.5, NAN, NAN, NAN },
		{ false, 0, 0, 0, 0, 0, 0 },	    { true, 0.9, 0.95, 1, 1.05, 1.1, NAN },
		{ true, 0.25, 0.5, 1, 2, 4, 1.5 },  { true, 1, 1, 1, 1, 1, 1 },
	};
	const struct svg_groups bars = { groups, 3, series, 2, .values = values };
	const struct svg_groups durations = { groups, 3, series, 2, .values = times };
	const struct svg_groups boxes = { groups, 3, series, 2, .boxes = boxed };
	const struct svg_options linear = { .title = "shares",
					    .y = { "calls", PLOT_PERCENT, PLOT_LINEAR } };
	const struct svg_options logarithmic = { .id = "times",
						 .title = "times",
						 .x = { "size", PLOT_PLAIN, PLOT_LOG },
						 .y = { "time", PLOT_NS, PLOT_LOG },
						 .has_mark = true,
						 .mark = 3e4,
						 .mark_label = "usual" };
	const struct svg_options ratio = { .title = "ratios",
					   .y = { "ratio", PLOT_PLAIN, PLOT_LOG },
					   .width = 400,
					   .height = 240,
					   .has_mark = true,
					   .mark = 1,
					   .mark_label = "1" };

	for (unsigned int width = 0; width <= 70; width += 70) {
		sink_format(text, "=== bars and boxes, %u columns\n", width);
		EXPECT_EQUAL(plot_rows_groups(text, &bars, &linear, width), OK);
		EXPECT_EQUAL(plot_rows_groups(text, &durations, &logarithmic, width), OK);
		EXPECT_EQUAL(plot_rows_groups(text, &boxes, &ratio, width), OK);
	}
	sink_text(svg, "=== bars and boxes\n");
	EXPECT_EQUAL(bench_svg_groups(svg, &bars, &linear), OK);
	EXPECT_EQUAL(bench_svg_groups(svg, &durations, &logarithmic), OK);
	EXPECT_EQUAL(bench_svg_groups(svg, &boxes, &ratio), OK);
}

static void values_have_units(struct sink *text)
{
	static const double values[] = { 0,	0.001, 0.5,   1,      1.25,    9.995,
					 10,	99.9,  100,   999.9,  1000,    1023,
					 1024,	1536,  12345, 65536,  999999,  1048576,
					 2.5e6, 1e9,   1.5e9, 3.3e10, 1e12,    -5,
					 -1024, 1e15,  1e-9,  0.0625, 1 << 30, 1e18 };
	static const char *const names[] = { "plain", "bytes", "ns", "GB/s", "percent" };
	char shown[PLOT_VALUE_TEXT];

	for (unsigned int unit = PLOT_PLAIN; unit <= PLOT_PERCENT; unit++) {
		sink_format(text, "=== values, %s\n", names[unit]);
		for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
			sink_format(text, "%.6g: %s\n", values[i],
				    bench_plot_value(shown, values[i], (enum plot_unit)unit));
	}
}

static void axes_have_ticks(struct sink *text)
{
	static const double ends[][2] = { { 1, 1 },	 { 3, 4 },	   { 1000, 1e6 },
					  { 1024, 4e9 }, { 0.999, 1.001 }, { -7, 12 },
					  { 5, 5.1 },	 { 0, 0.3 },	   { 2, 300 } };

	sink_text(text, "=== ticks\n");
	for (size_t i = 0; i < ARRAY_LENGTH(ends); i++)
		for (unsigned int kind = 0; kind < 10; kind++) {
			const struct plot_axis axis = { NULL, kind % 5,
							kind < 5 ? PLOT_LOG : PLOT_LINEAR };
			double ticks[PLOT_TICKS_MAX];
			struct plot_range range;
			size_t count;

			plot_range_start(&range, &axis);
			plot_range_add(&range, ends[i][0]);
			plot_range_add(&range, ends[i][1]);
			plot_range_finish(&range, kind % 2 == 0);
			count = plot_range_ticks(&range, 4 + kind, ticks);
			sink_format(text, "%g to %g, unit %u, %s: %.4g to %.4g:", ends[i][0],
				    ends[i][1], kind % 5, kind < 5 ? "log" : "linear", range.low,
				    range.high);
			for (size_t t = 0; t < count; t++)
				sink_format(text, " %.6g", ticks[t]);
			sink_text(text, "\n");
		}
}

/* ---- results ------------------------------------------------------------------------------------------ */

static void results_are_written(struct sink *text)
{
	static const struct bench_table_options tables[] = {
		{ .is_median = false },
		{ .is_median = true, .has_percentiles = true, .over = BENCH_OVER_MAX },
		{ .has_percentiles = true, .over = BENCH_OVER_MIN },
	};
	static const struct bench_histogram_options histograms[] = {
		{ .width = 0 },
		{ .width = 50, .bins = 3, .is_ascii = true, .over = BENCH_OVER_MAX },
	};
	struct bench_table_options modeled = { .is_median = true };
	double model[32];
	struct bench_run run;
	struct sink json;

	sample_everything(&run);
	/* Calls that differ, in order and out of order. */
	for (uint32_t i = 0; i < run.cells[1].calls; i++)
		run.cells[1].calls_of[i].gpu_ns += 7919 * (i * 5 % 4);
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
		sink_format(text, "=== table %zu\n", i);
		EXPECT_EQUAL(bench_table_write(text, &run, &tables[i]), OK);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(model); i++)
		model[i] = i % 3 == 2 ? 0 : 10000.0 + 5000.0 * (double)i;
	modeled.model_ns = model;
	sink_text(text, "=== table with a model\n");
	EXPECT_EQUAL(bench_table_write(text, &run, &modeled), OK);
	for (size_t i = 0; i < ARRAY_LENGTH(histograms); i++) {
		sink_format(text, "=== histograms %zu\n", i);
		EXPECT_EQUAL(bench_histogram_write(text, &run, &histograms[i]), OK);
	}
	sink_init_memory(&json);
	EXPECT_EQUAL(bench_json_write(&json, &run), OK);
	EXPECT_THAT("JSON as in results.json.lines",
		    expected_json(&json, "tests/unit/bench/expected/results.json.lines"));
	bench_run_release(&run);
}

int main(void)
{
	struct sink text, svg, results;

	sink_init_memory(&text);
	sink_init_memory(&svg);
	sink_init_memory(&results);
	charts_are_drawn(&text, &svg);
	many_series_are_drawn(&text, &svg);
	bars_and_boxes_are_drawn(&text, &svg);
	values_have_units(&text);
	axes_have_ticks(&text);
	EXPECT_THAT("charts as in charts.txt",
		    expected_text(&text, "tests/unit/bench/expected/charts.txt"));
	EXPECT_THAT("drawings as in charts.html",
		    expected_text(&svg, "tests/unit/bench/expected/charts.html"));
	results_are_written(&results);
	EXPECT_THAT("tables as in results.txt",
		    expected_text(&results, "tests/unit/bench/expected/results.txt"));
	return tap_done();
}
