#include "view/bench_svg.h"

#include <math.h>

#include "common/text.h"
#include "view/bench_svg_parts.h"

enum { OUTLIERS_MOST = 400 };

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
		svg_number(sink, svg_x(frame, series->xs[i]));
		sink_byte(sink, ' ');
		svg_number(sink, svg_y(frame, series->ys[i]));
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

static void find_ranges(struct svg_frame *frame, const struct plot_series *series, size_t count)
{
	plot_range_start(&frame->x, &frame->options->x);
	plot_range_start(&frame->y, &frame->options->y);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < series[i].count; j++)
			if (is_shown(frame, &series[i], j)) {
				plot_range_add(&frame->x, series[i].xs[j]);
				plot_range_add(&frame->y, series[i].ys[j]);
			}
	if (frame->options->has_mark && frame->y.has_values)
		plot_range_add(&frame->y, frame->options->mark);
	plot_range_finish(&frame->x, true);
	plot_range_finish(&frame->y, false);
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
	find_ranges(&frame, series, count);
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

static enum status make_legend(struct svg_legend *legend, const char *const *groups,
			       size_t group_count, const char *const *series, size_t series_count)
{
	if (group_count > SVG_GROUPS_MAX || series_count > SVG_SERIES_MAX)
		return ERR_RANGE;
	*legend = (struct svg_legend){ .count = series_count,
				       .groups = groups,
				       .group_count = group_count };
	for (size_t i = 0; i < series_count; i++) {
		legend->names[i] = series[i];
		legend->samples[i] = SVG_SAMPLE_BAR;
		legend->colours[i] = i;
	}
	return OK;
}

static void put_line(struct sink *sink, const char *class, double x1, double y1, double x2,
		     double y2)
{
	sink_format(sink, "<path class=\"%s\" d=\"M", class);
	svg_number(sink, x1);
	sink_byte(sink, ' ');
	svg_number(sink, y1);
	sink_byte(sink, 'L');
	svg_number(sink, x2);
	sink_byte(sink, ' ');
	svg_number(sink, y2);
	sink_text(sink, "\"/>\n");
}

/* A line from low to high, with a short one across at both ends. */
static void put_whisker(const struct svg_frame *frame, const char *class, double x, double low,
			double high, double half)
{
	double y_low = svg_y(frame, low), y_high = svg_y(frame, high);

	put_line(frame->sink, class, x, y_low, x, y_high);
	put_line(frame->sink, class, x - half, y_low, x + half, y_low);
	put_line(frame->sink, class, x - half, y_high, x + half, y_high);
}

/* ---- bars -------------------------------------------------------------------------------------- */

static void put_bar(const struct svg_frame *frame, const struct svg_bars *bars, size_t group,
		    size_t series)
{
	struct svg_slot slot =
		svg_slot(frame, group, bars->group_count, series, bars->series_count);
	size_t at = group * bars->series_count + series;
	double value = bars->values[at], top, base;

	if (!plot_range_has(&frame->y, value))
		return;
	top = svg_y(frame, value);
	base = frame->y.axis.scale == PLOT_LINEAR ? svg_y(frame, 0) : frame->bottom;
	sink_text(frame->sink, "<g>");
	svg_tip(frame, bars->series[series], bars->groups[group], value);
	svg_bar(frame->sink, frame->options->id, series,
		&(struct svg_area){ slot.x, fmin(top, base), slot.width, fabs(base - top) });
	if (bars->lows != NULL && bars->highs != NULL &&
	    plot_range_has(&frame->y, bars->lows[at]) && plot_range_has(&frame->y, bars->highs[at]))
		put_whisker(frame, "error", slot.x + slot.width / 2, bars->lows[at],
			    bars->highs[at], fmin(slot.width / 4, 6));
	sink_text(frame->sink, "</g>\n");
}

enum status bench_svg_bars(struct sink *sink, const struct svg_bars *bars,
			   const struct svg_options *options)
{
	struct svg_frame frame = { .sink = sink, .options = options };
	size_t count = bars->group_count * bars->series_count;
	struct svg_legend legend;

	if (make_legend(&legend, bars->groups, bars->group_count, bars->series,
			bars->series_count) != OK)
		return ERR_RANGE;
	plot_range_start(&frame.y, &options->y);
	for (size_t i = 0; i < count; i++) {
		plot_range_add(&frame.y, bars->values[i]);
		if (bars->lows != NULL && bars->highs != NULL && isfinite(bars->values[i])) {
			plot_range_add(&frame.y, bars->lows[i]);
			plot_range_add(&frame.y, bars->highs[i]);
		}
	}
	if (options->has_mark && frame.y.has_values)
		plot_range_add(&frame.y, options->mark);
	plot_range_finish(&frame.y, false);
	if (svg_begin(&frame, &legend))
		for (size_t i = 0; i < count; i++)
			put_bar(&frame, bars, i / bars->series_count, i % bars->series_count);
	return svg_end(&frame);
}

/* ---- boxes ------------------------------------------------------------------------------------- */

struct svg_box bench_svg_box_of(const struct bench_figures *figures)
{
	return (struct svg_box){ .is_there = figures->count > 0,
				 .low = figures->p05,
				 .p25 = figures->p25,
				 .p50 = figures->p50,
				 .p75 = figures->p75,
				 .high = figures->p95,
				 .mean = figures->mean };
}

/* As many to the left as to the right: wide where many values are. */
static void put_shape(const struct svg_frame *frame, const struct bench_bins *bins, size_t series,
		      double middle, double half)
{
	uint64_t most = 0;

	for (size_t i = 0; i < bins->bins && i < BENCH_BINS_MAX; i++)
		most = bins->counts[i] > most ? bins->counts[i] : most;
	for (size_t i = 0; most > 0 && i < bins->bins && i < BENCH_BINS_MAX; i++) {
		double wide = half * (double)bins->counts[i] / (double)most;

		if (bins->counts[i] == 0 || !plot_range_has(&frame->y, bins->edges[i]) ||
		    !plot_range_has(&frame->y, bins->edges[i + 1]))
			continue;
		sink_format(frame->sink, "<rect class=\"s%zu shape\"", series % SVG_COLOURS);
		svg_at(frame->sink, "x", middle - wide);
		svg_at(frame->sink, "y", svg_y(frame, bins->edges[i + 1]));
		svg_at(frame->sink, "width", 2 * wide);
		svg_at(frame->sink, "height",
		       fmax(svg_y(frame, bins->edges[i]) - svg_y(frame, bins->edges[i + 1]), 0.5));
		sink_text(frame->sink, "/>\n");
	}
}

/* More of them than can be told apart: every n-th. */
static void put_outliers(const struct svg_frame *frame, const struct svg_box *box, size_t series,
			 double middle)
{
	size_t stride = box->outlier_count / OUTLIERS_MOST + 1;

	for (size_t i = 0; i < box->outlier_count; i += stride) {
		if (!plot_range_has(&frame->y, box->outliers[i]))
			continue;
		sink_format(frame->sink, "<circle class=\"s%zu\" r=\"1.5\"", series % SVG_COLOURS);
		svg_at(frame->sink, "cx", middle);
		svg_at(frame->sink, "cy", svg_y(frame, box->outliers[i]));
		sink_text(frame->sink, "/>\n");
	}
}

bool bench_svg_box_is_shown(const struct plot_range *range, const struct svg_box *box)
{
	return box->is_there && plot_range_has(range, box->p50);
}

void bench_svg_box_add(struct plot_range *range, const struct svg_box *box)
{
	const double values[] = { box->low, box->p25, box->p50, box->p75, box->high };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		plot_range_add(range, values[i]);
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
	double inner = box->bins != NULL ? half * 0.45 : half * 0.8;
	struct sink *sink = frame->sink;
	char class[32];

	if (box->bins != NULL)
		put_shape(frame, box->bins, series, middle, half);
	put_outliers(frame, box, series, middle);
	text_format(class, sizeof(class), "line s%zu", series % SVG_COLOURS);
	if (plot_range_has(&frame->y, box->p25) && plot_range_has(&frame->y, box->p75)) {
		if (plot_range_has(&frame->y, box->low))
			put_whisker(frame, class, middle, box->low, box->p25, inner / 2);
		if (plot_range_has(&frame->y, box->high))
			put_whisker(frame, class, middle, box->p75, box->high, inner / 2);
		put_middle(frame, box, series, middle, inner);
	}
	put_line(sink, "error", middle - inner, svg_y(frame, box->p50), middle + inner,
		 svg_y(frame, box->p50));
	if (!plot_range_has(&frame->y, box->mean))
		return;
	sink_text(sink, "<circle class=\"error\" r=\"2.5\"");
	svg_at(sink, "cx", middle);
	svg_at(sink, "cy", svg_y(frame, box->mean));
	sink_text(sink, "/>\n");
}

static void add_box(struct plot_range *range, const struct svg_box *box)
{
	if (!bench_svg_box_is_shown(range, box))
		return;
	bench_svg_box_add(range, box);
	plot_range_add(range, box->mean);
	for (size_t i = 0; i < box->outlier_count; i++)
		plot_range_add(range, box->outliers[i]);
	if (box->bins != NULL && box->bins->bins > 0 && box->bins->bins <= BENCH_BINS_MAX) {
		plot_range_add(range, box->bins->edges[0]);
		plot_range_add(range, box->bins->edges[box->bins->bins]);
	}
}

enum status bench_svg_boxes(struct sink *sink, const struct svg_boxes *boxes,
			    const struct svg_options *options)
{
	struct svg_frame frame = { .sink = sink, .options = options };
	size_t count = boxes->group_count * boxes->series_count;
	struct svg_legend legend;

	if (make_legend(&legend, boxes->groups, boxes->group_count, boxes->series,
			boxes->series_count) != OK)
		return ERR_RANGE;
	plot_range_start(&frame.y, &options->y);
	for (size_t i = 0; i < count; i++)
		add_box(&frame.y, &boxes->boxes[i]);
	if (options->has_mark && frame.y.has_values)
		plot_range_add(&frame.y, options->mark);
	plot_range_finish(&frame.y, frame.y.axis.scale == PLOT_LINEAR);
	if (frame.y.axis.scale == PLOT_LINEAR) {
		/* Not from 0: it is the spread that is to be seen. */
		double room = (frame.y.high - frame.y.low) * 0.05;

		frame.y.low -= room;
		frame.y.high += room;
	}
	if (!svg_begin(&frame, &legend))
		return svg_end(&frame);
	for (size_t i = 0; i < count; i++) {
		size_t group = i / boxes->series_count, series = i % boxes->series_count;
		struct svg_slot slot =
			svg_slot(&frame, group, boxes->group_count, series, boxes->series_count);

		if (!bench_svg_box_is_shown(&frame.y, &boxes->boxes[i]))
			continue;
		sink_text(sink, "<g>");
		svg_tip(&frame, boxes->series[series], boxes->groups[group], boxes->boxes[i].p50);
		put_box(&frame, &boxes->boxes[i], series, &slot);
		sink_text(sink, "</g>\n");
	}
	return svg_end(&frame);
}
