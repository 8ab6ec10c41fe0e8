/*
 * Charts as SVG: lines, grouped bars with error bars, boxes with whiskers (and the shape of the
 * distribution behind them). Each is one <svg> element that stands alone or inside of an HTML page: its
 * own <title> and <desc>, no scripts, nothing fetched, colours that colour-blind people tell apart and
 * that follow light and dark. Whatever text it is given is escaped. Series differ in their marks and
 * patterns, too.
 */
#ifndef BENCH_SVG_H
#define BENCH_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/bench_stats.h"
#include "common/status.h"
#include "output/sink.h"
#include "view/bench_plot.h"
#include "view/plot_scale.h"

enum { SVG_SERIES_MAX = 12, SVG_GROUPS_MAX = 256 };

/* All borrowed; all texts UTF-8 (other bytes become U+FFFD). */
struct svg_options {
	const char *id; /* letters, digits, '-': of the <svg>, unique in its page; NULL: "chart" */
	const char *title; /* above the chart, and its <title>; NULL: "chart" */
	const char
		*description; /* <desc>: what it shows, for those who do not see it; NULL: none */
	struct plot_axis x;   /* of lines; bars and boxes only take its label */
	struct plot_axis y;
	unsigned int width;  /* in CSS pixels; 0: 760, at least 320 */
	unsigned int height; /* 0: 380, at least 200 */
	bool has_mark;	     /* a dashed line across at y = mark: an expectation, a ratio of 1 */
	double mark;
	const char *mark_label;
	bool is_file; /* a file of its own: begins with an XML declaration and paints its background */
	bool has_no_style; /* the page has what bench_svg_style() writes, once for all its charts */
};

/* The text of the <style> that charts bring along: for pages whose security policy knows no other. */
void bench_svg_style(struct sink *sink);

/* ERR_RANGE as bench_plot_text(); else the sink's status. A chart with nothing to show says so in it. */
enum status bench_svg_lines(struct sink *sink, const struct plot_series *series, size_t count,
			    const struct svg_options *options);

/* Bars side by side, a group for each name along x and a bar in it for each series. Value of group g and
 * series s at [g * series_count + s]; not finite (NAN): no bar. On a logarithmic axis bars begin at its
 * lower end. */
struct svg_bars {
	const char *const *groups;
	size_t group_count;
	const char *const *series;
	size_t series_count;
	const double *values;
	const double *lows; /* error bars; NULL: none */
	const double *highs;
};
enum status bench_svg_bars(struct sink *sink, const struct svg_bars *bars,
			   const struct svg_options *options);

/* A box from quarter to quarter, a line at the median, whiskers, a dot at the mean. What is NAN is not drawn. */
struct svg_box {
	bool is_there;
	double low; /* ends of the whiskers, as the caller likes them: p05, least ... */
	double p25;
	double p50;
	double p75;
	double high;
	double mean;
	const struct bench_bins *bins; /* the distribution's shape behind the box; NULL: none */
	const double *outliers;	       /* dots beyond the whiskers */
	size_t outlier_count;
};

struct svg_boxes {
	const char *const *groups;
	size_t group_count;
	const char *const *series;
	size_t series_count;
	const struct svg_box *boxes; /* [g * series_count + s] */
};
enum status bench_svg_boxes(struct sink *sink, const struct svg_boxes *boxes,
			    const struct svg_options *options);

/* It has a median that can be drawn; and what of it can be is in the range. */
bool bench_svg_box_is_shown(const struct plot_range *range, const struct svg_box *box);
void bench_svg_box_add(struct plot_range *range, const struct svg_box *box);

/* Whiskers at 5 % and 95 %. No shape, no outliers: the caller's to add. */
struct svg_box bench_svg_box_of(const struct bench_figures *figures);

#endif
