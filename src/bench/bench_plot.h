/*
 * Line charts as text, with logarithmic axes by default. Uses Braille characters if the terminal supports them:
 * eight dots per character. Series differ by their marks, not by colour.
 *
 *	time of AllReduce, 4 ranks
 *	   1 ms |                                          ..-o
 *	        |                                    ..-'
 *	 100 us |               o..--o''x..-x
 *	        +-------------------------------------------------
 *	        1 KiB         32 KiB        1 MiB       32 MiB
 *	 o Ring   x Tree
 */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/status.h"
#include "output/sink.h"

enum { PLOT_SERIES_MAX = 12, PLOT_POINTS_MAX = 1 << 16 };

enum plot_unit {
	PLOT_PLAIN = 0,	  /* 0.1, 1, 250, 1.5e9 */
	PLOT_BYTES = 1,	  /* 4 KiB; ticks at powers of two */
	PLOT_NS = 2,	  /* 12.3 us */
	PLOT_GBPS = 3,	  /* 142 GB/s */
	PLOT_PERCENT = 4, /* 1 is "1%" */
};

enum plot_scale { PLOT_LOG = 0, PLOT_LINEAR = 1 };

/*
 * All borrowed. Points sorted by x; lines connect neighbours. Points that an axis cannot show (not finite; on a
 * logarithmic axis 0 or less) are skipped and interrupt the line.
 */
struct plot_series {
	const char *name;
	const double *xs;
	const double *ys;
	size_t count;
	bool is_line_only; /* no marks: computed, as opposed to measured */
	size_t like; /* SVG: uses the colour of series like - 1, to which it belongs; 0: its own */
};

struct plot_axis {
	const char *label; /* "message size"; NULL: none */
	enum plot_unit unit;
	enum plot_scale scale;
};

struct plot_options {
	const char *title; /* NULL: none */
	struct plot_axis x;
	struct plot_axis y;
	unsigned int width;  /* total columns; 0: 80, at least 40 */
	unsigned int height; /* rows of the plot; 0: 16, 4 to 100 */
	bool is_ascii;	     /* ASCII instead of Braille */
};

/*
 * If nothing can be shown, writes one line that says so. ERR_RANGE for more than PLOT_SERIES_MAX series or
 * PLOT_POINTS_MAX points in one, ERR_NO_SPACE, or the sink's status.
 */
enum status bench_plot_text(struct sink *sink, const struct plot_series *series, size_t count,
			    const struct plot_options *options);

/* A value as shown on an axis: "4 KiB", "12.3 us", "142 GB/s". */
enum { PLOT_VALUE_TEXT = 48 };
const char *bench_plot_value(char to[static PLOT_VALUE_TEXT], double value, enum plot_unit unit);

/* Chart axes: map values to positions between 0 and 1, and choose ticks. */

enum { PLOT_TICKS_MAX = 24 };

struct plot_range {
	struct plot_axis axis;
	bool has_values;
	double low; /* ends of the axis, once finished */
	double high;
};

void plot_range_start(struct plot_range *range, const struct plot_axis *axis);
/* Ignores values that the axis cannot show. */
void plot_range_add(struct plot_range *range, double value);
/*
 * Call after the last value: adds a margin at both ends and avoids an empty range. A linear axis starts at 0 unless
 * values are below. `is_tight`: no margin.
 */
void plot_range_finish(struct plot_range *range, bool is_tight);

/* Round values within the range, at most `most` of them (2 to PLOT_TICKS_MAX). */
size_t plot_range_ticks(const struct plot_range *range, size_t most, double *ticks);

/*
 * SVG charts: lines, grouped bars, box plots. Each is one <svg> element in an HTML page whose head has the common
 * style (bench_page_begin()), with its own <title> and <desc>; no scripts, nothing fetched, colours for
 * colour-blind readers and for light and dark mode. All text is escaped. Series also differ in their marks and
 * patterns.
 */

enum { SVG_SERIES_MAX = 12, SVG_GROUPS_MAX = 256 };

/* All borrowed; all texts UTF-8 (other bytes become U+FFFD). */
struct svg_options {
	const char
		*id; /* id of the <svg>, unique in its page: letters, digits, '-'; NULL: "chart" */
	const char *title;	 /* above the chart, and its <title>; NULL: "chart" */
	const char *description; /* <desc>: what it shows, for screen readers; NULL: none */
	struct plot_axis x;	 /* for lines; bars and boxes only use its label */
	struct plot_axis y;
	unsigned int width;  /* in CSS pixels; 0: 760, at least 320 */
	unsigned int height; /* 0: 380, at least 200 */
	bool has_mark;	     /* a dashed line at y = mark: an expectation, a ratio of 1 */
	double mark;
	const char *mark_label;
};

/* ERR_RANGE as bench_plot_text(), otherwise the sink's status. A chart with nothing to show says so. */
enum status bench_svg_lines(struct sink *sink, const struct plot_series *series, size_t count,
			    const struct svg_options *options);

/*
 * A box from the first to the third quartile, a line at the median, whiskers, a dot at the mean. NAN values are not
 * drawn.
 */
struct svg_box {
	bool is_there;
	double low; /* ends of the whiskers, chosen by the caller: p05, minimum ... */
	double p25;
	double p50;
	double p75;
	double high;
	double mean;
};

/*
 * Grouped bars or boxes: one group per name along x, one bar or box per series in it. That of group g and series s
 * is at [g * series_count + s]. On a logarithmic axis bars start at its lower end.
 */
struct svg_groups {
	const char *const *groups;
	size_t group_count;
	const char *const *series;
	size_t series_count;
	const double *values;	     /* bars; not finite (NAN): no bar */
	const struct svg_box *boxes; /* NULL: draw bars */
};
enum status bench_svg_groups(struct sink *sink, const struct svg_groups *groups,
			     const struct svg_options *options);

/*
 * Bars and boxes as text, one per row: horizontal instead of upright as in SVG. Names of groups and series are on
 * the left, values on the right.
 *
 *	AllReduce  ringside   ############################  100%
 *	           inspector  #####################         75%
 *
 *	                      0.5          1          2
 *	  1 KiB    ringside     |---====#=====-:-|           0.812
 */

/*
 * `width` is the total number of columns; 0: 100, at least 60. Uses title, y, has_mark, mark and mark_label of the
 * options. A box is a line from `low` to `high`, a band between the quartiles and the median; the mark goes across
 * all of them. ERR_RANGE as bench_svg_groups(), otherwise the sink's status.
 */
enum status plot_rows_groups(struct sink *sink, const struct svg_groups *groups,
			     const struct svg_options *options, unsigned int width);

/*
 * The frame of a benchmark's page: a single file without scripts or external resources, in the colours of our other
 * pages, light and dark. Text is escaped; charts are written directly to the sink; their style is in the page's
 * head.
 *
 *	bench_page_begin(sink, "AllReduce on 8 ranks", "ringside bench crossover");
 *	bench_page_section(sink, "time", "Time over size");
 *	bench_svg_lines(sink, ...);
 *	bench_page_section_end(sink);
 *	bench_page_end(sink);
 */

/* Writes doctype to heading. `made_by` is the command that wrote the page. */
void bench_page_begin(struct sink *sink, const char *title, const char *made_by);
void bench_page_end(struct sink *sink);

/* `id`: letters, digits, '-'; unique in the page. */
void bench_page_section(struct sink *sink, const char *id, const char *title);
void bench_page_section_end(struct sink *sink);

/* Escaped; invalid UTF-8 becomes U+FFFD. */
void bench_page_text(struct sink *sink, const char *text);
void bench_page_paragraph(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);
/* The most important sentence, in larger type. */
void bench_page_lead(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);
/* A list of sentences: begin, items, end. */
void bench_page_list(struct sink *sink);
void bench_page_item(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);
void bench_page_list_end(struct sink *sink);

/* Goes around each <svg>, so that it scrolls sideways instead of becoming too small to read. */
void bench_page_chart(struct sink *sink, const char *title);
void bench_page_chart_end(struct sink *sink);

/*
 * A table that scrolls sideways.
 *
 *	bench_page_table(sink, "Medians");        caption, for screen readers
 *	bench_page_head(sink, "Size", false);     ... each column
 *	bench_page_row(sink);
 *	bench_page_cell(sink, PAGE_NUMBER, "%s", ...);
 *	bench_page_table_end(sink);
 */
enum bench_page_cell_kind {
	PAGE_WORDS = 0,
	PAGE_NUMBER = 1,
	PAGE_BEST = 2, /* a highlighted number, by weight and not by colour alone */
	PAGE_BAD = 3,
};
void bench_page_table(struct sink *sink, const char *caption);
void bench_page_head(struct sink *sink, const char *title, bool is_number);
void bench_page_row(struct sink *sink);
void bench_page_cell(struct sink *sink, enum bench_page_cell_kind kind, const char *format, ...)
	PRINTF_LIKE(3, 4);
void bench_page_table_end(struct sink *sink);

/* Shared by text charts, SVG charts and tables. */

/* Whether the axis can show the value. */
bool plot_range_has(const struct plot_range *range, double value);
/* 0 at the low end, 1 at the high one; clamped. */
double plot_range_place(const struct plot_range *range, double value);

/* Adds the points that both axes can show. */
void plot_range_add_points(struct plot_range *x, struct plot_range *y,
			   const struct plot_series *series, size_t count);

/* Whether the bar's value, or the box's median, can be drawn. */
bool svg_groups_has(const struct svg_groups *groups, size_t at, const struct plot_range *range);
/* Adds all drawable values except means. */
void svg_groups_add(const struct svg_groups *groups, struct plot_range *range);

/* Text from elsewhere: control bytes become '?', so that it stays on one line. */
void bench_line_text(struct sink *sink, const char *text);
/* The requested value (0: the default), clamped. */
size_t bench_within(size_t value, size_t usual, size_t least, size_t most);
/* Characters of UTF-8 text. */
size_t bench_columns(const char *text);

#endif
