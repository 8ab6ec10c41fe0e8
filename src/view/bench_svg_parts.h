/* Between the files that draw charts as SVG; others use bench_svg.h. */
#ifndef BENCH_SVG_PARTS_H
#define BENCH_SVG_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "view/bench_svg.h"
#include "view/plot_scale.h"

enum { SVG_COLOURS = 8, SVG_PATTERNS = 4 };

/* ---- bench_svg_style.c ------------------------------------------------------------------------- */

/* A number as SVG has it, with one decimal, whatever the locale. */
void svg_number(struct sink *sink, double value);
/* ` name="12.3"` */
void svg_at(struct sink *sink, const char *name, double value);
/* Escaped; bytes that are no UTF-8, and what XML does not allow, become U+FFFD. */
void svg_text(struct sink *sink, const char *text);
/* What of it may stand in an id; NULL: "chart". */
void svg_id(struct sink *sink, const char *id);

/* The mark of a series, a shape of its own, around a point. Its <path> is left open for a <title>. */
void svg_mark(struct sink *sink, size_t series, double x, double y);

struct svg_area {
	double x;
	double y;
	double width;
	double height;
};
/* Filled with the series' colour and pattern. */
void svg_bar(struct sink *sink, const char *id, size_t series, const struct svg_area *area);

/* ---- bench_svg_frame.c ------------------------------------------------------------------------- */

enum svg_sample { SVG_SAMPLE_LINE = 0, SVG_SAMPLE_COMPUTED = 1, SVG_SAMPLE_BAR = 2 };

/* What is told beside the chart: series, and groups along x (NULL: there is a scale). */
struct svg_legend {
	const char *names[SVG_SERIES_MAX];
	enum svg_sample samples[SVG_SERIES_MAX];
	size_t colours[SVG_SERIES_MAX];
	size_t count;
	const char *const *groups;
	size_t group_count;
};

/* Where everything is: pixels from the upper left corner. */
struct svg_frame {
	struct sink *sink;
	const struct svg_options *options;
	double width;
	double height;
	double left; /* of the plot itself */
	double right;
	double top;
	double bottom;
	bool is_steep;	     /* names of groups are written aslant */
	struct plot_range x; /* lines only */
	struct plot_range y;
};

/* The element's begin, style, title, legend and axes. sink, options and the finished ranges are there.
 * False: there is nothing to show, and the chart says so. */
bool svg_begin(struct svg_frame *frame, const struct svg_legend *legend);
/* The dashed mark (its name is in the legend), and the end of the element. Gives back the sink's status. */
enum status svg_end(const struct svg_frame *frame);

double svg_x(const struct svg_frame *frame, double value);
double svg_y(const struct svg_frame *frame, double value);
/* The place of a series in its group: from the left edge, `width` wide. */
struct svg_slot {
	double x;
	double width;
};
struct svg_slot svg_slot(const struct svg_frame *frame, size_t group, size_t group_count,
			 size_t series, size_t series_count);

/* "<title>name, where: value</title>" */
void svg_tip(const struct svg_frame *frame, const char *name, const char *where, double value);

#endif
