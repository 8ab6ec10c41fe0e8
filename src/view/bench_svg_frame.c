/*
 * What all charts have: the element, the legend, axes.
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
#include <math.h>
#include <string.h>

#include "view/bench_svg_parts.h"

enum {
	WIDTH_USUAL = 760,
	WIDTH_LEAST = 320,
	HEIGHT_USUAL = 380,
	HEIGHT_LEAST = 200,
	SIZE_MOST = 8000,
	PLOT_HEIGHT_LEAST = 80,
	EDGE = 12,
	LINE = 18,	 /* of text */
	CHARACTER = 7,	 /* its width, near enough */
	STEEP_MOST = 90, /* height of names that are aslant */
};

static double text_width(const char *text)
{
	size_t characters = 0;

	for (; *text != '\0'; text++)
		characters += ((unsigned char)*text & 0xc0) != 0x80;
	return (double)(characters * CHARACTER);
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

static void put_line(struct sink *sink, const char *class, double x1, double y1, double x2,
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

static double size_of(unsigned int value, unsigned int usual, unsigned int least)
{
	unsigned int size = value != 0 ? value : usual;

	return size < least ? least : size > SIZE_MOST ? SIZE_MOST : size;
}

/* Where the next name of the legend goes: on this line, or the next. */
static void place_name(const struct svg_frame *frame, const char *name, double *x, double *y)
{
	if (*x > EDGE && *x + 36 + text_width(name) > frame->width - EDGE) {
		*x = EDGE;
		*y += LINE;
	}
}

/* The name of the dashed line; NULL: there is none. Inside the plot it would cover what is drawn there. */
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

static void lay_out(struct svg_frame *frame, const struct svg_legend *legend)
{
	const struct svg_options *options = frame->options;
	double below = LINE + 8 + (options->x.label != NULL ? LINE : 0);
	double group = widest_group(legend);

	frame->width = size_of(options->width, WIDTH_USUAL, WIDTH_LEAST);
	frame->height = size_of(options->height, HEIGHT_USUAL, HEIGHT_LEAST);
	frame->top = legend_bottom(frame, legend) + EDGE + (options->y.label != NULL ? LINE : 0);
	frame->is_steep =
		group > 0 && group + 8 > (frame->width - 100) / (double)legend->group_count;
	if (frame->is_steep)
		below += fmin(group * 0.6, STEEP_MOST);
	/* A long legend makes the chart higher than asked for, not empty. */
	frame->height = fmax(frame->height, frame->top + PLOT_HEIGHT_LEAST + below);
	frame->bottom = frame->height - below;
	frame->left = EDGE + 8 + widest_tick(&frame->y, y_ticks(frame));
	frame->right = frame->width - 2 * EDGE;
}

double svg_x(const struct svg_frame *frame, double value)
{
	return frame->left + plot_range_place(&frame->x, value) * (frame->right - frame->left);
}

double svg_y(const struct svg_frame *frame, double value)
{
	return frame->bottom - plot_range_place(&frame->y, value) * (frame->bottom - frame->top);
}

struct svg_slot svg_slot(const struct svg_frame *frame, size_t group, size_t group_count,
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

/* Lines over a bar, so that series differ without colour, too. */
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

	if (options->is_file)
		sink_text(sink, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	sink_text(sink, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ringside-chart\" id=\"");
	svg_id(sink, options->id);
	sink_text(sink, "\" viewBox=\"0 0 ");
	svg_number(sink, frame->width);
	sink_byte(sink, ' ');
	svg_number(sink, frame->height);
	sink_byte(sink, '"');
	svg_at(sink, "width", frame->width);
	svg_at(sink, "height", frame->height);
	sink_text(sink, " role=\"img\">\n");
	put_words(frame, title);
	if (!options->has_no_style) {
		sink_text(sink, "<style>\n");
		bench_svg_style(sink);
		sink_text(sink, "</style>\n");
	}
	if (options->is_file)
		sink_text(sink, "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
	put_label(sink, EDGE, 22, " class=\"title\"", title);
}

/* A line or a bar beside the name of the series. */
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
	svg_number(sink, x);
	sink_byte(sink, ' ');
	svg_number(sink, y);
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
	put_line(frame->sink, "expect", x, y - 4, x + 18, y - 4);
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

		put_line(frame->sink, "grid", frame->left, y, frame->right, y);
		put_label(frame->sink, frame->left - 8, y + 4, " class=\"dim\" text-anchor=\"end\"",
			  bench_plot_value(text, ticks[i], frame->y.axis.unit));
	}
	put_line(frame->sink, "axis", frame->left, frame->bottom, frame->right, frame->bottom);
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

		put_line(frame->sink, "grid", x, frame->top, x, frame->bottom);
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
		svg_number(sink, x + 4);
		sink_byte(sink, ' ');
		svg_number(sink, y - 4);
		sink_text(sink, ") rotate(-35)\">");
		svg_text(sink, legend->groups[i]);
		sink_text(sink, "</text>\n");
	}
}

bool svg_begin(struct svg_frame *frame, const struct svg_legend *legend)
{
	lay_out(frame, legend);
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

enum status svg_end(const struct svg_frame *frame)
{
	const struct svg_options *options = frame->options;

	if (options->has_mark && frame->y.has_values && plot_range_has(&frame->y, options->mark)) {
		double y = svg_y(frame, options->mark);

		put_line(frame->sink, "expect", frame->left, y, frame->right, y);
	}
	sink_text(frame->sink, "</svg>\n");
	return frame->sink->status;
}

void svg_tip(const struct svg_frame *frame, const char *name, const char *where, double value)
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
