/* SVG charts and the HTML page around them. */
#include "bench/bench_plot.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"
#include "output/html_escape.h"
#include "output/json.h"

enum { SVG_COLOURS = 8, SVG_PATTERNS = 4 };

struct svg_area {
	double x;
	double y;
	double width;
	double height;
};

enum svg_sample { SVG_SAMPLE_LINE = 0, SVG_SAMPLE_COMPUTED = 1, SVG_SAMPLE_BAR = 2 };

/* What the legend lists: series, and groups along x (NULL: x is a scale). */
struct svg_legend {
	const char *names[SVG_SERIES_MAX];
	enum svg_sample samples[SVG_SERIES_MAX];
	size_t colours[SVG_SERIES_MAX];
	size_t count;
	const char *const *groups;
	size_t group_count;
};

/* Layout in pixels from the upper left corner. */
struct svg_frame {
	struct sink *sink;
	const struct svg_options *options;
	double width;
	double height;
	double left; /* of the plot itself */
	double right;
	double top;
	double bottom;
	bool is_steep;	     /* group names are slanted */
	struct plot_range x; /* lines only */
	struct plot_range y;
};

/* Position of a series in its group: distance from the left edge, and width. */
struct svg_slot {
	double x;
	double width;
};

/* ---- letters and numbers --------------------------------------------------------------------- */

/* A number for SVG with one decimal, independent of the locale. */
static void svg_number(struct sink *sink, double value)
{
	long tenths = isfinite(value) && fabs(value) < 1e6 ? lround(value * 10) : 0;

	sink_format(sink, "%s%ld", tenths < 0 ? "-" : "", labs(tenths) / 10);
	if (tenths % 10 != 0)
		sink_format(sink, ".%ld", labs(tenths) % 10);
}

/* "12.3 4" */
static void svg_point(struct sink *sink, double x, double y)
{
	svg_number(sink, x);
	sink_byte(sink, ' ');
	svg_number(sink, y);
}

/* ` name="12.3"` */
static void svg_at(struct sink *sink, const char *name, double value)
{
	sink_format(sink, " %s=\"", name);
	svg_number(sink, value);
	sink_byte(sink, '"');
}

static void put_ascii(struct sink *sink, char byte)
{
	if (html_escape(byte) != NULL)
		sink_text(sink, html_escape(byte));
	else if ((unsigned char)byte < ' ' || byte == 0x7f)
		sink_text(sink, "\357\277\275");
	else
		sink_byte(sink, byte);
}

/* Escaped; invalid UTF-8 and characters not allowed in XML become U+FFFD. */
static void svg_text(struct sink *sink, const char *text)
{
	size_t length = strlen(text), bytes;

	for (size_t at = 0; at < length; at += bytes) {
		const unsigned char *here = (const unsigned char *)text + at;

		bytes = *here < 0x80 ? 1 : utf8_bytes(here, length - at);
		/* U+FFFE and U+FFFF are not allowed in XML. */
		if (bytes == 0 ||
		    (bytes == 3 && here[0] == 0xef && here[1] == 0xbf && here[2] > 0xbd)) {
			sink_text(sink, "\357\277\275");
			bytes = bytes == 0 ? 1 : bytes;
		} else if (bytes == 1) {
			put_ascii(sink, text[at]);
		} else {
			sink_write(sink, here, bytes);
		}
	}
}

/* ---- colours --------------------------------------------------------------------------------- */

/* Contrast of at least 3 against the page; lightness differs, for colour-blind readers. */
static const char *const light_colours[SVG_COLOURS] = {
	"#0a5cab", "#b85c00", "#1b7f5c", "#8a4fae", "#b3231b", "#0b7c8a", "#6b6f00", "#566070",
};
static const char *const dark_colours[SVG_COLOURS] = {
	"#7db7f5", "#ffb066", "#6fd3a8", "#cf9df0", "#ff9189", "#66d0dd", "#d3d36a", "#a3adb9",
};

static void put_colours(struct sink *sink, const char *selector, const char *const *colours,
			bool is_dark)
{
	sink_format(sink, "%s{", selector);
	for (size_t i = 0; i < SVG_COLOURS; i++)
		sink_format(sink, "--s%zu:%s;", i, colours[i]);
	if (is_dark)
		sink_text(sink, "--ink:#e5e8ec;--dim:#a3adb9;--grid:#2e353d;--paper:#1a1e23}\n");
	else
		sink_text(sink, "--ink:#1a1f26;--dim:#566070;--grid:#dde1e6;--paper:#fff}\n");
}

/* The style shared by all charts of a page. */
static void bench_svg_style(struct sink *sink)
{
	put_colours(sink, ".ringside-chart", light_colours, false);
	sink_text(sink, "@media (prefers-color-scheme:dark){");
	put_colours(sink,
		    ":root:not([data-theme=\"light\"]) .ringside-chart,"
		    "svg.ringside-chart:root",
		    dark_colours, true);
	sink_text(sink, "}\n");
	put_colours(sink, ":root[data-theme=\"dark\"] .ringside-chart", dark_colours, true);
	/* Specific rules come last and win. */
	for (size_t i = 0; i < SVG_COLOURS; i++)
		sink_format(sink,
			    ".ringside-chart .s%zu{fill:var(--s%zu);stroke:var(--s%zu)}"
			    ".ringside-chart .line.s%zu{fill:none}\n",
			    i, i, i, i);
	sink_text(sink,
		  ".ringside-chart text{fill:var(--ink);font:12px system-ui,sans-serif}\n"
		  ".ringside-chart .title{font-weight:600;font-size:14px}\n"
		  ".ringside-chart .dim{fill:var(--dim)}\n"
		  ".ringside-chart .grid{stroke:var(--grid);fill:none}\n"
		  ".ringside-chart .axis{stroke:var(--dim);fill:none}\n"
		  ".ringside-chart .expect{stroke:var(--ink);fill:none;stroke-dasharray:6 4}\n"
		  ".ringside-chart .paper{fill:var(--paper)}\n"
		  ".ringside-chart .error{stroke:var(--ink);fill:none}\n"
		  ".ringside-chart .hatch{stroke:var(--paper);fill:none;stroke-width:1.5}\n"
		  ".ringside-chart .line{fill:none;stroke-width:2}\n"
		  ".ringside-chart .computed{stroke-width:1.5;stroke-dasharray:2 3}\n"
		  ".ringside-chart .shape{fill-opacity:.25;stroke:none}\n"
		  ".ringside-chart .box{fill-opacity:.35;stroke-width:1.5}\n");
}

/* ---- marks ------------------------------------------------------------------------------------- */

/* The mark of a series, with its own shape, around a point. Leaves its <path> open for a <title>. */
static void svg_mark(struct sink *sink, size_t series, double x, double y)
{
	static const char *const shapes[] = {
		"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",	  /* circle */
		"m-3.5 -3.5h7v7h-7z",			  /* square */
		"m0 -4.5l4.5 8h-9z",			  /* triangle */
		"m0 -5l5 5l-5 5l-5 -5z",		  /* diamond */
		"m0 4.5l4.5 -8h-9z",			  /* triangle, upside down */
		"m-1.5 -4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z", /* cross */
	};

	sink_format(sink, "<path class=\"s%zu\" d=\"M", series % SVG_COLOURS);
	svg_point(sink, x, y);
	sink_format(sink, "%s\">", shapes[series % (sizeof(shapes) / sizeof(shapes[0]))]);
}

/* Keeps the characters that are valid in an id; NULL: "chart". */
static void svg_id(struct sink *sink, const char *id)
{
	for (id = id != NULL ? id : "chart"; *id != '\0'; id++)
		if ((*id >= 'a' && *id <= 'z') || (*id >= 'A' && *id <= 'Z') ||
		    (*id >= '0' && *id <= '9') || *id == '-')
			sink_byte(sink, *id);
}

/* Filled with the series' colour and pattern. */
static void svg_bar(struct sink *sink, const char *id, size_t series, const struct svg_area *area)
{
	for (size_t layer = 0; layer < 2; layer++) {
		if (layer == 1 && series % SVG_PATTERNS == 0)
			break;
		sink_text(sink, "<rect");
		svg_at(sink, "x", area->x);
		svg_at(sink, "y", area->y);
		svg_at(sink, "width", fmax(area->width, 0.5));
		svg_at(sink, "height", fmax(area->height, 0.5));
		if (layer == 0) {
			sink_format(sink, " class=\"s%zu\"/>\n", series % SVG_COLOURS);
		} else {
			sink_text(sink, " fill=\"url(#");
			svg_id(sink, id);
			sink_format(sink, "-p%zu)\"/>\n", series % SVG_PATTERNS);
		}
	}
}

/*
 * Common to all charts: the element, the legend, axes.
 *
 *	+-------------------------------------------+
 *	| title                                     |
 *	| o Ring  x Tree                            |
 *	| y label                                   |
 *	| 1 ms |                                    |
 *	|      +-----------------------------       |
 *	|       1 KiB             1 MiB             |
 *	|                                  x label  |
 *	+-------------------------------------------+
 */

enum {
	WIDTH_USUAL = 760,
	WIDTH_LEAST = 320,
	HEIGHT_USUAL = 380,
	HEIGHT_LEAST = 200,
	SIZE_MOST = 8000,
	PLOT_HEIGHT_LEAST = 80,
	EDGE = 12,
	LINE = 18,	 /* of text */
	CHARACTER = 7,	 /* approximate width */
	STEEP_MOST = 90, /* height of slanted names */
};

static double text_width(const char *text)
{
	return (double)(bench_columns(text) * CHARACTER);
}

static void put_label(struct sink *sink, double x, double y, const char *more, const char *text)
{
	sink_text(sink, "<text");
	svg_at(sink, "x", x);
	svg_at(sink, "y", y);
	sink_format(sink, "%s>", more);
	svg_text(sink, text);
	sink_text(sink, "</text>\n");
}

static void frame_put_line(struct sink *sink, const char *class, double x1, double y1, double x2,
			   double y2)
{
	sink_format(sink, "<line class=\"%s\"", class);
	svg_at(sink, "x1", x1);
	svg_at(sink, "y1", y1);
	svg_at(sink, "x2", x2);
	svg_at(sink, "y2", y2);
	sink_text(sink, "/>\n");
}

/* ---- layout ------------------------------------------------------------------------------------ */

/* Position of the next legend entry: on this line or the next. */
static void place_name(const struct svg_frame *frame, const char *name, double *x, double *y)
{
	if (*x > EDGE && *x + 36 + text_width(name) > frame->width - EDGE) {
		*x = EDGE;
		*y += LINE;
	}
}

/* The name of the dashed line; NULL: none. In the legend, because inside the plot it would cover the data. */
static const char *mark_name(const struct svg_frame *frame)
{
	return frame->options->has_mark && frame->y.has_values &&
			       plot_range_has(&frame->y, frame->options->mark)
		       ? frame->options->mark_label
		       : NULL;
}

static double legend_bottom(const struct svg_frame *frame, const struct svg_legend *legend)
{
	double x = EDGE, y = 42;

	for (size_t i = 0; i < legend->count; i++) {
		place_name(frame, legend->names[i], &x, &y);
		x += 36 + text_width(legend->names[i]);
	}
	if (mark_name(frame) != NULL)
		place_name(frame, mark_name(frame), &x, &y);
	return legend->count > 0 || mark_name(frame) != NULL ? y : 24;
}

static double widest_tick(const struct plot_range *range, size_t most)
{
	double ticks[PLOT_TICKS_MAX], widest = 0;
	size_t count = plot_range_ticks(range, most, ticks);
	char text[PLOT_VALUE_TEXT];

	for (size_t i = 0; i < count; i++)
		widest = fmax(widest,
			      text_width(bench_plot_value(text, ticks[i], range->axis.unit)));
	return widest;
}

static double widest_group(const struct svg_legend *legend)
{
	double widest = 0;

	for (size_t i = 0; i < legend->group_count; i++)
		widest = fmax(widest, text_width(legend->groups[i]));
	return widest;
}

static size_t y_ticks(const struct svg_frame *frame)
{
	return (size_t)((frame->bottom - frame->top) / 36);
}

static void frame_lay_out(struct svg_frame *frame, const struct svg_legend *legend)
{
	const struct svg_options *options = frame->options;
	double below = LINE + 8 + (options->x.label != NULL ? LINE : 0);
	double group = widest_group(legend);

	frame->width = (double)bench_within(options->width, WIDTH_USUAL, WIDTH_LEAST, SIZE_MOST);
	frame->height =
		(double)bench_within(options->height, HEIGHT_USUAL, HEIGHT_LEAST, SIZE_MOST);
	frame->top = legend_bottom(frame, legend) + EDGE + (options->y.label != NULL ? LINE : 0);
	frame->is_steep =
		group > 0 && group + 8 > (frame->width - 100) / (double)legend->group_count;
	if (frame->is_steep)
		below += fmin(group * 0.6, STEEP_MOST);
	/* A long legend makes the chart taller instead of shrinking the plot. */
	frame->height = fmax(frame->height, frame->top + PLOT_HEIGHT_LEAST + below);
	frame->bottom = frame->height - below;
	frame->left = EDGE + 8 + widest_tick(&frame->y, y_ticks(frame));
	frame->right = frame->width - 2 * EDGE;
}

static double svg_x(const struct svg_frame *frame, double value)
{
	return frame->left + plot_range_place(&frame->x, value) * (frame->right - frame->left);
}

static double svg_y(const struct svg_frame *frame, double value)
{
	return frame->bottom - plot_range_place(&frame->y, value) * (frame->bottom - frame->top);
}

static struct svg_slot svg_slot(const struct svg_frame *frame, size_t group, size_t group_count,
				size_t series, size_t series_count)
{
	double wide = (frame->right - frame->left) / (double)group_count;
	double used = fmin(wide * 0.8, 60 * (double)series_count);
	double slot = used / (double)series_count;

	return (struct svg_slot){ frame->left + wide * (double)group + (wide - used) / 2 +
					  slot * (double)series + slot * 0.06,
				  slot * 0.88 };
}

/* ---- the element ------------------------------------------------------------------------------- */

/* Hatching over bars, so that series differ without colour, too. */
static void put_patterns(const struct svg_frame *frame)
{
	static const char *const paths[SVG_PATTERNS - 1] = { "M0 8L8 0", "M0 4H8", "M4 0V8" };
	struct sink *sink = frame->sink;

	sink_text(sink, "<defs>");
	for (size_t i = 0; i + 1 < SVG_PATTERNS; i++) {
		sink_text(sink, "<pattern id=\"");
		svg_id(sink, frame->options->id);
		sink_format(sink,
			    "-p%zu\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
			    "<path class=\"hatch\" d=\"%s\"/></pattern>",
			    i + 1, paths[i]);
	}
	sink_text(sink, "</defs>\n");
}

static void put_words(const struct svg_frame *frame, const char *title)
{
	struct sink *sink = frame->sink;

	sink_text(sink, "<title>");
	svg_text(sink, title);
	sink_text(sink, "</title>\n");
	if (frame->options->description == NULL)
		return;
	sink_text(sink, "<desc>");
	svg_text(sink, frame->options->description);
	sink_text(sink, "</desc>\n");
}

static void put_element(const struct svg_frame *frame)
{
	const struct svg_options *options = frame->options;
	const char *title = options->title != NULL ? options->title : "chart";
	struct sink *sink = frame->sink;

	sink_text(sink, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ringside-chart\" id=\"");
	svg_id(sink, options->id);
	sink_text(sink, "\" viewBox=\"0 0 ");
	svg_point(sink, frame->width, frame->height);
	sink_byte(sink, '"');
	svg_at(sink, "width", frame->width);
	svg_at(sink, "height", frame->height);
	sink_text(sink, " role=\"img\">\n");
	put_words(frame, title);
	put_label(sink, EDGE, 22, " class=\"title\"", title);
}

/* A line or bar next to the name of the series. */
static void put_sample(const struct svg_frame *frame, enum svg_sample sample, size_t series,
		       double x, double y)
{
	struct sink *sink = frame->sink;

	if (sample == SVG_SAMPLE_BAR) {
		svg_bar(sink, frame->options->id, series, &(struct svg_area){ x, y - 6, 16, 12 });
		return;
	}
	sink_format(sink, "<path class=\"line s%zu%s\" d=\"M", series % SVG_COLOURS,
		    sample == SVG_SAMPLE_COMPUTED ? " computed" : "");
	svg_point(sink, x, y);
	sink_text(sink, "h18\"/>\n");
	if (sample == SVG_SAMPLE_LINE) {
		svg_mark(sink, series, x + 9, y);
		sink_text(sink, "</path>\n");
	}
}

static void put_legend(const struct svg_frame *frame, const struct svg_legend *legend)
{
	double x = EDGE, y = 42;

	for (size_t i = 0; i < legend->count; i++) {
		place_name(frame, legend->names[i], &x, &y);
		put_sample(frame, legend->samples[i], legend->colours[i], x, y - 4);
		put_label(frame->sink, x + 22, y, "", legend->names[i]);
		x += 36 + text_width(legend->names[i]);
	}
	if (mark_name(frame) == NULL)
		return;
	place_name(frame, mark_name(frame), &x, &y);
	frame_put_line(frame->sink, "expect", x, y - 4, x + 18, y - 4);
	put_label(frame->sink, x + 22, y, "", mark_name(frame));
}

/* ---- axes -------------------------------------------------------------------------------------- */

static void put_y_axis(const struct svg_frame *frame)
{
	double ticks[PLOT_TICKS_MAX];
	size_t count = plot_range_ticks(&frame->y, y_ticks(frame), ticks);
	char text[PLOT_VALUE_TEXT];

	for (size_t i = 0; i < count; i++) {
		double y = svg_y(frame, ticks[i]);

		frame_put_line(frame->sink, "grid", frame->left, y, frame->right, y);
		put_label(frame->sink, frame->left - 8, y + 4, " class=\"dim\" text-anchor=\"end\"",
			  bench_plot_value(text, ticks[i], frame->y.axis.unit));
	}
	frame_put_line(frame->sink, "axis", frame->left, frame->bottom, frame->right,
		       frame->bottom);
	if (frame->options->y.label != NULL)
		put_label(frame->sink, EDGE, frame->top - 10, " class=\"dim\"",
			  frame->options->y.label);
}

static void put_x_scale(const struct svg_frame *frame)
{
	double ticks[PLOT_TICKS_MAX], used = 0;
	size_t count =
		plot_range_ticks(&frame->x, (size_t)((frame->right - frame->left) / 70), ticks);
	char text[PLOT_VALUE_TEXT];

	for (size_t i = 0; i < count; i++) {
		double x = svg_x(frame, ticks[i]);
		double half = text_width(bench_plot_value(text, ticks[i], frame->x.axis.unit)) / 2;

		frame_put_line(frame->sink, "grid", x, frame->top, x, frame->bottom);
		if (i > 0 && x - half < used + 6)
			continue; /* no room for its value */
		put_label(frame->sink, x, frame->bottom + LINE,
			  " class=\"dim\" text-anchor=\"middle\"", text);
		used = x + half;
	}
}

static void put_groups(const struct svg_frame *frame, const struct svg_legend *legend)
{
	for (size_t i = 0; i < legend->group_count; i++) {
		struct svg_slot slot = svg_slot(frame, i, legend->group_count, 0, 1);
		double x = slot.x + slot.width / 2, y = frame->bottom + LINE;
		struct sink *sink = frame->sink;

		if (!frame->is_steep) {
			put_label(sink, x, y, " class=\"dim\" text-anchor=\"middle\"",
				  legend->groups[i]);
			continue;
		}
		sink_text(sink, "<text class=\"dim\" text-anchor=\"end\" transform=\"translate(");
		svg_point(sink, x + 4, y - 4);
		sink_text(sink, ") rotate(-35)\">");
		svg_text(sink, legend->groups[i]);
		sink_text(sink, "</text>\n");
	}
}

/*
 * Writes the start of the element, style, title, legend and axes; needs sink, options and the finished ranges.
 * False: there is nothing to show, and the chart says so.
 */
static bool svg_begin(struct svg_frame *frame, const struct svg_legend *legend)
{
	frame_lay_out(frame, legend);
	put_element(frame);
	put_patterns(frame);
	put_legend(frame, legend);
	if (!frame->y.has_values) {
		put_label(frame->sink, frame->width / 2, (frame->top + frame->bottom) / 2,
			  " class=\"dim\" text-anchor=\"middle\"", "nothing was measured");
		return false;
	}
	put_y_axis(frame);
	if (legend->groups != NULL)
		put_groups(frame, legend);
	else
		put_x_scale(frame);
	if (frame->options->x.label != NULL)
		put_label(frame->sink, frame->right, frame->height - 10,
			  " class=\"dim\" text-anchor=\"end\"", frame->options->x.label);
	return true;
}

/* Draws the dashed mark and ends the element. Returns the sink's status. */
static enum status svg_end(const struct svg_frame *frame)
{
	const struct svg_options *options = frame->options;

	if (options->has_mark && frame->y.has_values && plot_range_has(&frame->y, options->mark)) {
		double y = svg_y(frame, options->mark);

		frame_put_line(frame->sink, "expect", frame->left, y, frame->right, y);
	}
	sink_text(frame->sink, "</svg>\n");
	return frame->sink->status;
}

/* "<title>name, where: value</title>" */
static void svg_tip(const struct svg_frame *frame, const char *name, const char *where,
		    double value)
{
	char text[PLOT_VALUE_TEXT];

	sink_text(frame->sink, "<title>");
	svg_text(frame->sink, name);
	sink_text(frame->sink, ", ");
	svg_text(frame->sink, where);
	sink_text(frame->sink, ": ");
	svg_text(frame->sink, bench_plot_value(text, value, frame->y.axis.unit));
	sink_text(frame->sink, "</title>");
}

/* ---- lines ------------------------------------------------------------------------------------- */

static bool is_shown(const struct svg_frame *frame, const struct plot_series *series, size_t at)
{
	return plot_range_has(&frame->x, series->xs[at]) &&
	       plot_range_has(&frame->y, series->ys[at]);
}

static void put_path(const struct svg_frame *frame, const struct plot_series *series, size_t number)
{
	struct sink *sink = frame->sink;
	bool is_going_on = false, is_begun = false;

	for (size_t i = 0; i < series->count; i++) {
		if (!is_shown(frame, series, i)) {
			is_going_on = false;
			continue;
		}
		if (!is_begun)
			sink_format(sink, "<path class=\"line s%zu%s\" d=\"", number % SVG_COLOURS,
				    series->is_line_only ? " computed" : "");
		sink_byte(sink, is_going_on ? 'L' : 'M');
		svg_point(sink, svg_x(frame, series->xs[i]), svg_y(frame, series->ys[i]));
		is_going_on = is_begun = true;
	}
	if (is_begun)
		sink_text(sink, "\"/>\n");
}

static void put_marks(const struct svg_frame *frame, const struct plot_series *series,
		      size_t number)
{
	char text[PLOT_VALUE_TEXT];

	for (size_t i = 0; i < series->count; i++) {
		if (!is_shown(frame, series, i))
			continue;
		svg_mark(frame->sink, number, svg_x(frame, series->xs[i]),
			 svg_y(frame, series->ys[i]));
		svg_tip(frame, series->name,
			bench_plot_value(text, series->xs[i], frame->x.axis.unit), series->ys[i]);
		sink_text(frame->sink, "</path>\n");
	}
}

enum status bench_svg_lines(struct sink *sink, const struct plot_series *series, size_t count,
			    const struct svg_options *options)
{
	struct svg_frame frame = { .sink = sink, .options = options };
	struct svg_legend legend = { .count = count };

	for (size_t i = 0; i < count; i++) {
		if (i >= SVG_SERIES_MAX || series[i].count > PLOT_POINTS_MAX)
			return ERR_RANGE;
		legend.names[i] = series[i].name;
		legend.samples[i] = series[i].is_line_only ? SVG_SAMPLE_COMPUTED : SVG_SAMPLE_LINE;
		legend.colours[i] = series[i].like > 0 ? series[i].like - 1 : i;
	}
	plot_range_start(&frame.x, &options->x);
	plot_range_start(&frame.y, &options->y);
	plot_range_add_points(&frame.x, &frame.y, series, count);
	if (options->has_mark && frame.y.has_values)
		plot_range_add(&frame.y, options->mark);
	plot_range_finish(&frame.x, true);
	plot_range_finish(&frame.y, false);
	if (svg_begin(&frame, &legend)) {
		for (size_t i = 0; i < count; i++)
			put_path(&frame, &series[i], legend.colours[i]);
		for (size_t i = 0; i < count; i++)
			if (!series[i].is_line_only)
				put_marks(&frame, &series[i], legend.colours[i]);
	}
	return svg_end(&frame);
}

/* ---- groups ------------------------------------------------------------------------------------ */

static void chart_put_line(struct sink *sink, const char *class, double x1, double y1, double x2,
			   double y2)
{
	sink_format(sink, "<path class=\"%s\" d=\"M", class);
	svg_point(sink, x1, y1);
	sink_byte(sink, 'L');
	svg_point(sink, x2, y2);
	sink_text(sink, "\"/>\n");
}

/* A line from low to high with a short bar at both ends. */
static void put_whisker(const struct svg_frame *frame, const char *class, double x, double low,
			double high, double half)
{
	double y_low = svg_y(frame, low), y_high = svg_y(frame, high);

	chart_put_line(frame->sink, class, x, y_low, x, y_high);
	chart_put_line(frame->sink, class, x - half, y_low, x + half, y_low);
	chart_put_line(frame->sink, class, x - half, y_high, x + half, y_high);
}

static void put_bar(const struct svg_frame *frame, double value, size_t series,
		    const struct svg_slot *slot)
{
	double top = svg_y(frame, value);
	double base = frame->y.axis.scale == PLOT_LINEAR ? svg_y(frame, 0) : frame->bottom;

	svg_bar(frame->sink, frame->options->id, series,
		&(struct svg_area){ slot->x, fmin(top, base), slot->width, fabs(base - top) });
}

static void put_middle(const struct svg_frame *frame, const struct svg_box *box, size_t series,
		       double middle, double inner)
{
	struct sink *sink = frame->sink;

	sink_format(sink, "<rect class=\"s%zu box\"", series % SVG_COLOURS);
	svg_at(sink, "x", middle - inner);
	svg_at(sink, "y", svg_y(frame, box->p75));
	svg_at(sink, "width", 2 * inner);
	svg_at(sink, "height", fmax(svg_y(frame, box->p25) - svg_y(frame, box->p75), 1));
	sink_text(sink, "/>\n");
}

static void put_box(const struct svg_frame *frame, const struct svg_box *box, size_t series,
		    const struct svg_slot *slot)
{
	double middle = slot->x + slot->width / 2, half = fmin(slot->width / 2, 24);
	double inner = half * 0.8;
	struct sink *sink = frame->sink;
	char class[32];

	text_format(class, sizeof(class), "line s%zu", series % SVG_COLOURS);
	if (plot_range_has(&frame->y, box->p25) && plot_range_has(&frame->y, box->p75)) {
		if (plot_range_has(&frame->y, box->low))
			put_whisker(frame, class, middle, box->low, box->p25, inner / 2);
		if (plot_range_has(&frame->y, box->high))
			put_whisker(frame, class, middle, box->p75, box->high, inner / 2);
		put_middle(frame, box, series, middle, inner);
	}
	chart_put_line(sink, "error", middle - inner, svg_y(frame, box->p50), middle + inner,
		       svg_y(frame, box->p50));
	if (!plot_range_has(&frame->y, box->mean))
		return;
	sink_text(sink, "<circle class=\"error\" r=\"2.5\"");
	svg_at(sink, "cx", middle);
	svg_at(sink, "cy", svg_y(frame, box->mean));
	sink_text(sink, "/>\n");
}

static void groups_find_range(struct plot_range *range, const struct svg_groups *groups,
			      const struct svg_options *options)
{
	/* Boxes do not start at 0, to show the spread. */
	bool is_spread = groups->boxes != NULL && options->y.scale == PLOT_LINEAR;

	plot_range_start(range, &options->y);
	svg_groups_add(groups, range);
	for (size_t i = 0; i < groups->group_count * groups->series_count; i++)
		if (groups->boxes != NULL && svg_groups_has(groups, i, range))
			plot_range_add(range, groups->boxes[i].mean);
	if (options->has_mark && range->has_values)
		plot_range_add(range, options->mark);
	plot_range_finish(range, is_spread);
	if (is_spread) {
		double room = (range->high - range->low) * 0.05;

		range->low -= room;
		range->high += room;
	}
}

static void put_group_member(const struct svg_frame *frame, const struct svg_groups *groups,
			     size_t at)
{
	size_t group = at / groups->series_count, series = at % groups->series_count;
	const struct svg_box *box = groups->boxes != NULL ? &groups->boxes[at] : NULL;
	struct svg_slot slot =
		svg_slot(frame, group, groups->group_count, series, groups->series_count);

	sink_text(frame->sink, "<g>");
	svg_tip(frame, groups->series[series], groups->groups[group],
		box != NULL ? box->p50 : groups->values[at]);
	if (box != NULL)
		put_box(frame, box, series, &slot);
	else
		put_bar(frame, groups->values[at], series, &slot);
	sink_text(frame->sink, "</g>\n");
}

enum status bench_svg_groups(struct sink *sink, const struct svg_groups *groups,
			     const struct svg_options *options)
{
	struct svg_frame frame = { .sink = sink, .options = options };
	struct svg_legend legend = { .count = groups->series_count,
				     .groups = groups->groups,
				     .group_count = groups->group_count };

	if (groups->group_count > SVG_GROUPS_MAX || groups->series_count > SVG_SERIES_MAX)
		return ERR_RANGE;
	for (size_t i = 0; i < groups->series_count; i++) {
		legend.names[i] = groups->series[i];
		legend.samples[i] = SVG_SAMPLE_BAR;
		legend.colours[i] = i;
	}
	groups_find_range(&frame.y, groups, options);
	if (svg_begin(&frame, &legend))
		for (size_t i = 0; i < groups->group_count * groups->series_count; i++)
			if (svg_groups_has(groups, i, &frame.y))
				put_group_member(&frame, groups, i);
	return svg_end(&frame);
}

/*
 * .incbin paths are relative to the root of the tree, where make runs; scripts/build.mk makes this object depend on
 * the two style sheets. The policy allows only this style, by its hash: even if a name were written to the page
 * unescaped, it could not run or fetch anything.
 */

enum { PAGE_SENTENCE = 1024 };

__asm__(".pushsection .rodata\n"
	".globl bench_page_style\n"
	".hidden bench_page_style\n"
	"bench_page_style:\n"
	".incbin \"src/output/palette.css\"\n"
	".incbin \"src/bench/bench_page.css\"\n"
	".byte 0\n"
	".popsection\n");
extern const char bench_page_style[] HIDDEN;

/* ---- text ------------------------------------------------------------------------------------ */

void bench_page_text(struct sink *sink, const char *text)
{
	while (*text != '\0') {
		size_t sequence = json_utf8_length((const unsigned char *)text);

		if (sequence > 0)
			sink_write(sink, text, sequence);
		else if ((unsigned char)*text >= 0x80 || (unsigned char)*text < ' ')
			sink_text(sink, "&#xfffd;");
		else if (html_escape(*text) != NULL)
			sink_text(sink, html_escape(*text));
		else
			sink_byte(sink, *text);
		text += sequence > 0 ? sequence : 1;
	}
}

/* Texts that do not fit into the buffer are formatted in allocated memory, or cut if there is none. */
static void write_formatted(struct sink *sink, const char *format, va_list list)
{
	char small[PAGE_SENTENCE], *text = small;
	va_list again;
	int length;

	va_copy(again, list);
	length = vsnprintf(small, sizeof(small), format, list);
	if (length >= (int)sizeof(small)) {
		text = malloc((size_t)length + 1);
		if (text != NULL)
			vsnprintf(text, (size_t)length + 1, format, again);
		else
			text = small;
	}
	va_end(again);
	bench_page_text(sink, text);
	if (text != small)
		free(text);
}

#define WRITE_FORMATTED(sink, format)                          \
	do {                                                   \
		va_list formatted_list;                        \
		va_start(formatted_list, format);              \
		write_formatted(sink, format, formatted_list); \
		va_end(formatted_list);                        \
	} while (0)

void bench_page_paragraph(struct sink *sink, const char *format, ...)
{
	sink_text(sink, "<p>");
	WRITE_FORMATTED(sink, format);
	sink_text(sink, "</p>\n");
}

void bench_page_lead(struct sink *sink, const char *format, ...)
{
	sink_text(sink, "<p class=\"lead\">");
	WRITE_FORMATTED(sink, format);
	sink_text(sink, "</p>\n");
}

void bench_page_list(struct sink *sink)
{
	sink_text(sink, "<ul>\n");
}

void bench_page_item(struct sink *sink, const char *format, ...)
{
	sink_text(sink, "<li>");
	WRITE_FORMATTED(sink, format);
	sink_text(sink, "</li>\n");
}

void bench_page_list_end(struct sink *sink)
{
	sink_text(sink, "</ul>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Our style and the charts': one element, allowed in the policy by its hash. */
static void write_style(struct sink *sink, const char *style)
{
	char digest[SHA256_TEXT];

	sink_format(sink,
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n<style>",
		    sha256_base64(style, strlen(style), digest));
	sink_text(sink, style);
	sink_text(sink, "</style>\n");
}

void bench_page_begin(struct sink *sink, const char *title, const char *made_by)
{
	struct sink style;

	sink_init_memory(&style);
	sink_text(&style, bench_page_style);
	bench_svg_style(&style);
	/* A page without its style is still readable; the sink's status says that it is incomplete. */
	if (style.status != OK && sink->status == OK)
		sink->status = style.status;
	sink_text(sink, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
	write_style(sink, sink_string(&style));
	sink_release(&style);
	sink_text(sink, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
			"<meta name=\"color-scheme\" content=\"light dark\">\n"
			"<meta name=\"referrer\" content=\"no-referrer\">\n"
			"<meta name=\"generator\" content=\"Ringside\">\n<title>");
	bench_page_text(sink, title);
	sink_text(sink, "</title>\n</head>\n<body>\n<main>\n<h1>");
	bench_page_text(sink, title);
	sink_text(sink, "</h1>\n<p>Made by <code>");
	bench_page_text(sink, made_by);
	sink_text(sink, "</code></p>\n");
}

void bench_page_end(struct sink *sink)
{
	sink_text(sink, "</main>\n"
			"<footer>Ringside. This page is a single file: no scripts, no external "
			"resources.</footer>\n"
			"</body>\n"
			"</html>\n");
}

void bench_page_section(struct sink *sink, const char *id, const char *title)
{
	sink_format(sink, "<section id=\"%s\">\n<h2>", id);
	bench_page_text(sink, title);
	sink_text(sink, "</h2>\n");
}

void bench_page_section_end(struct sink *sink)
{
	sink_text(sink, "</section>\n");
}

/* ---- charts and tables ---------------------------------------------------------------------------------- */

/* A scrollable part must be reachable by keyboard and then needs a name. */
static void scroll_begin(struct sink *sink, const char *name)
{
	sink_text(sink, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
	bench_page_text(sink, name);
}

void bench_page_chart(struct sink *sink, const char *title)
{
	scroll_begin(sink, title);
	sink_text(sink, "\">\n");
}

void bench_page_chart_end(struct sink *sink)
{
	sink_text(sink, "</div>\n");
}

void bench_page_table(struct sink *sink, const char *caption)
{
	scroll_begin(sink, caption);
	sink_text(sink, "\">\n<table>\n<caption>");
	bench_page_text(sink, caption);
	sink_text(sink, "</caption>\n<tr>");
}

void bench_page_head(struct sink *sink, const char *title, bool is_number)
{
	sink_format(sink, "<th scope=\"col\"%s>", is_number ? " class=\"number\"" : "");
	bench_page_text(sink, title);
	sink_text(sink, "</th>");
}

void bench_page_row(struct sink *sink)
{
	sink_text(sink, "</tr>\n<tr>");
}

void bench_page_cell(struct sink *sink, enum bench_page_cell_kind kind, const char *format, ...)
{
	static const char *const classes[] = {
		[PAGE_WORDS] = "",
		[PAGE_NUMBER] = " class=\"number\"",
		[PAGE_BEST] = " class=\"best\"",
		[PAGE_BAD] = " class=\"bad\"",
	};

	sink_format(sink, "<td%s>", classes[kind]);
	WRITE_FORMATTED(sink, format);
	sink_text(sink, "</td>");
}

void bench_page_table_end(struct sink *sink)
{
	sink_text(sink, "</tr>\n</table>\n</div>\n");
}
