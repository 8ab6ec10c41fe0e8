#include "view/plot_rows.h"

#include <math.h>
#include <string.h>

#include "common/text.h"
#include "view/plot_scale.h"

enum { WIDTH_USUAL = 100, WIDTH_LEAST = 60, WIDTH_MOST = 200, PLOT_LEAST = 20, VALUE_WIDTH = 9 };

/* What a column of a line shows; later ones cover earlier ones. */
enum mark { EMPTY, ACROSS, LINE, LEFT_END, RIGHT_END, BAND, MEDIAN, MARKS };

static const char *const glyphs[MARKS] = {
	[EMPTY] = " ",
	[ACROSS] = "\342\224\212",    /* U+250A, dashed */
	[LINE] = "\342\224\200",      /* U+2500 */
	[LEFT_END] = "\342\224\234",  /* U+251C */
	[RIGHT_END] = "\342\224\244", /* U+2524 */
	[BAND] = "\342\226\222",      /* U+2592, grey */
	[MEDIAN] = "\342\226\210",    /* U+2588 */
};

struct layout {
	struct sink *sink;
	const struct svg_options *options;
	struct plot_range range;
	size_t group; /* columns of the names */
	size_t series;
	size_t plot; /* and of what is drawn */
};

static size_t columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text != '\0'; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

static size_t widest(const char *const *names, size_t count)
{
	size_t most = 0;

	for (size_t i = 0; i < count; i++)
		most = columns_of(names[i]) > most ? columns_of(names[i]) : most;
	return most;
}

/* A name comes from elsewhere: it never ends the line. */
static void put_name(struct sink *sink, const char *name, size_t columns)
{
	for (const char *at = name; *at != '\0'; at++)
		sink_byte(sink, (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at);
	sink_repeat(sink, ' ', columns - columns_of(name) + 2);
}

static void lay_out(struct layout *layout, const char *const *groups, size_t group_count,
		    const char *const *series, size_t series_count, unsigned int width)
{
	size_t wide = width == 0	    ? WIDTH_USUAL
		      : width < WIDTH_LEAST ? WIDTH_LEAST
		      : width > WIDTH_MOST  ? WIDTH_MOST
					    : width;
	size_t names;

	layout->group = widest(groups, group_count);
	layout->series = widest(series, series_count);
	names = layout->group + 2 + layout->series + 2 + VALUE_WIDTH;
	layout->plot = wide > names + PLOT_LEAST ? wide - names : PLOT_LEAST;
}

static size_t column_at(const struct layout *layout, double value)
{
	return (size_t)lround(plot_range_place(&layout->range, value) * (double)(layout->plot - 1));
}

static void put_title(const struct layout *layout)
{
	if (layout->options->title != NULL)
		sink_format(layout->sink, "%s\n", layout->options->title);
}

/* The names before a line: that of the group once. */
static void put_names(const struct layout *layout, const char *group, const char *series,
		      bool is_first)
{
	put_name(layout->sink, is_first ? group : "", layout->group);
	put_name(layout->sink, series, layout->series);
}

/* ---- bars -------------------------------------------------------------------------------------- */

static void put_bar(const struct layout *layout, double value)
{
	double part = layout->range.high > 0 ? value / layout->range.high : 0;
	size_t length = (size_t)lround(fmin(fmax(part, 0), 1) * (double)layout->plot);
	char text[PLOT_VALUE_TEXT];

	if (length == 0 && value > 0)
		length = 1;
	for (size_t i = 0; i < length; i++)
		sink_text(layout->sink, glyphs[MEDIAN]);
	sink_format(layout->sink, " %s\n", bench_plot_value(text, value, layout->options->y.unit));
}

enum status plot_rows_bars(struct sink *sink, const struct svg_bars *bars,
			   const struct svg_options *options, unsigned int width)
{
	struct layout layout = { .sink = sink, .options = options };
	size_t count = bars->group_count * bars->series_count;

	if (bars->group_count > SVG_GROUPS_MAX || bars->series_count > SVG_SERIES_MAX)
		return ERR_RANGE;
	lay_out(&layout, bars->groups, bars->group_count, bars->series, bars->series_count, width);
	plot_range_start(&layout.range, &options->y);
	for (size_t i = 0; i < count; i++)
		plot_range_add(&layout.range, bars->values[i]);
	plot_range_finish(&layout.range, true);
	put_title(&layout);
	for (size_t i = 0; i < count; i++) {
		size_t group = i / bars->series_count, series = i % bars->series_count;

		put_names(&layout, bars->groups[group], bars->series[series], series == 0);
		if (plot_range_has(&layout.range, bars->values[i]))
			put_bar(&layout, bars->values[i]);
		else
			sink_text(sink, "-\n");
	}
	return sink->status;
}

/* ---- boxes ------------------------------------------------------------------------------------- */

/* Columns from one value to another; none where one of them cannot be shown. */
static void put_between(const struct layout *layout, unsigned char *line, double from, double to,
			unsigned char glyph)
{
	if (!plot_range_has(&layout->range, from) || !plot_range_has(&layout->range, to))
		return;
	for (size_t i = column_at(layout, from); i <= column_at(layout, to); i++)
		line[i] = glyph;
}

static void put_box(const struct layout *layout, const struct svg_box *box)
{
	unsigned char line[WIDTH_MOST] = { EMPTY };
	char text[PLOT_VALUE_TEXT];

	if (layout->options->has_mark)
		line[column_at(layout, layout->options->mark)] = ACROSS;
	put_between(layout, line, box->low, box->high, LINE);
	put_between(layout, line, box->low, box->low, LEFT_END);
	put_between(layout, line, box->high, box->high, RIGHT_END);
	put_between(layout, line, box->p25, box->p75, BAND);
	line[column_at(layout, box->p50)] = MEDIAN;
	for (size_t i = 0; i < layout->plot; i++)
		sink_text(layout->sink, glyphs[line[i]]);
	if (layout->options->y.unit == PLOT_PLAIN)
		text_format(text, sizeof(text), "%.3f", box->p50);
	else
		bench_plot_value(text, box->p50, layout->options->y.unit);
	sink_format(layout->sink, " %s\n", text);
}

/* Values above their columns, as many as have room; the mark's name behind them. */
static void put_scale(const struct layout *layout)
{
	double ticks[PLOT_TICKS_MAX];
	size_t count = plot_range_ticks(&layout->range, layout->plot / 10, ticks), used = 0;
	char text[PLOT_VALUE_TEXT];

	sink_repeat(layout->sink, ' ', layout->group + 2 + layout->series + 2);
	for (size_t i = 0; i < count; i++) {
		size_t at = column_at(layout, ticks[i]);

		bench_plot_value(text, ticks[i], layout->options->y.unit);
		if ((used > 0 && at <= used) || at + strlen(text) > layout->plot + VALUE_WIDTH)
			continue;
		sink_repeat(layout->sink, ' ', at - used);
		sink_text(layout->sink, text);
		used = at + strlen(text);
	}
	sink_text(layout->sink, "\n");
}

static void find_range(struct layout *layout, const struct svg_boxes *boxes)
{
	plot_range_start(&layout->range, &layout->options->y);
	for (size_t i = 0; i < boxes->group_count * boxes->series_count; i++)
		if (bench_svg_box_is_shown(&layout->range, &boxes->boxes[i]))
			bench_svg_box_add(&layout->range, &boxes->boxes[i]);
	if (layout->options->has_mark && layout->range.has_values)
		plot_range_add(&layout->range, layout->options->mark);
	plot_range_finish(&layout->range, true);
}

enum status plot_rows_boxes(struct sink *sink, const struct svg_boxes *boxes,
			    const struct svg_options *options, unsigned int width)
{
	struct layout layout = { .sink = sink, .options = options };

	if (boxes->group_count > SVG_GROUPS_MAX || boxes->series_count > SVG_SERIES_MAX)
		return ERR_RANGE;
	lay_out(&layout, boxes->groups, boxes->group_count, boxes->series, boxes->series_count,
		width);
	find_range(&layout, boxes);
	put_title(&layout);
	if (!layout.range.has_values) {
		sink_text(sink, "nothing was measured\n");
		return sink->status;
	}
	put_scale(&layout);
	for (size_t group = 0; group < boxes->group_count; group++) {
		bool is_first = true;

		for (size_t i = 0; i < boxes->series_count; i++) {
			const struct svg_box *box = &boxes->boxes[group * boxes->series_count + i];

			if (!bench_svg_box_is_shown(&layout.range, box))
				continue;
			put_names(&layout, boxes->groups[group], boxes->series[i], is_first);
			put_box(&layout, box);
			is_first = false;
		}
	}
	return sink->status;
}
