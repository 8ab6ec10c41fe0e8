#include "view/profilers_chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "view/bench_page.h"
#include "view/plot_rows.h"

struct chart *chart_new(void)
{
	struct chart *chart = calloc(1, sizeof(*chart));

	for (size_t i = 0; chart && i < CHART_GROUPS_MAX * CHART_SERIES_MAX; i++) {
		chart->values[i] = NAN;
		chart->boxes[i].mean = NAN;
	}
	return chart;
}

size_t chart_group(struct chart *chart, uint64_t first, uint64_t second, const char *name)
{
	size_t at = 0;

	while (at < chart->group_count &&
	       (chart->keys[at][0] < first ||
		(chart->keys[at][0] == first && chart->keys[at][1] < second)))
		at++;
	if (at < chart->group_count && chart->keys[at][0] == first && chart->keys[at][1] == second)
		return at;
	if (chart->group_count == CHART_GROUPS_MAX || name == NULL) {
		chart->left_out++;
		return SIZE_MAX;
	}
	memmove(&chart->keys[at + 1], &chart->keys[at],
		(chart->group_count - at) * sizeof(chart->keys[0]));
	memmove(&chart->groups[at + 1], &chart->groups[at],
		(chart->group_count - at) * sizeof(chart->groups[0]));
	chart->keys[at][0] = first;
	chart->keys[at][1] = second;
	text_copy(chart->groups[at], CHART_NAME_BYTES, name);
	chart->group_count++;
	return at;
}

size_t chart_series(struct chart *chart, const char *name)
{
	for (size_t i = 0; i < chart->series_count; i++)
		if (strcmp(chart->series[i], name) == 0)
			return i;
	if (chart->series_count == CHART_SERIES_MAX) {
		chart->left_out++;
		return SIZE_MAX;
	}
	text_copy(chart->series[chart->series_count], CHART_NAME_BYTES, name);
	return chart->series_count++;
}

/* Places are kept with room for all series; charts take them side by side. */
static void pack(struct chart *chart)
{
	for (size_t group = 0; group < chart->group_count; group++)
		for (size_t i = 0; i < chart->series_count; i++) {
			size_t to = group * chart->series_count + i,
			       from = group * CHART_SERIES_MAX + i;

			chart->values[to] = chart->values[from];
			chart->boxes[to] = chart->boxes[from];
		}
}

static void point_at(const char *const **groups, const char *const **series, struct chart *chart,
		     const char *names[CHART_GROUPS_MAX + CHART_SERIES_MAX])
{
	for (size_t i = 0; i < chart->group_count; i++)
		names[i] = chart->groups[i];
	for (size_t i = 0; i < chart->series_count; i++)
		names[CHART_GROUPS_MAX + i] = chart->series[i];
	*groups = names;
	*series = names + CHART_GROUPS_MAX;
}

/* Ratios that lie far apart: on a linear axis one of them would hide the others. */
static bool is_wide(const struct chart *chart)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < CHART_GROUPS_MAX * CHART_SERIES_MAX; i++) {
		if (!chart->boxes[i].is_there)
			continue;
		least = fmin(least, fmin(chart->boxes[i].low, chart->boxes[i].p50));
		most = fmax(most, fmax(chart->boxes[i].high, chart->boxes[i].p50));
	}
	return least > 0 && most > 8 * least;
}

static enum status draw_boxes(const struct paper *paper, const struct svg_boxes *boxes,
			      const struct svg_options *options)
{
	return paper->is_text ? plot_rows_boxes(paper->sink, boxes, options, paper->width)
			      : bench_svg_boxes(paper->sink, boxes, options);
}

static enum status draw_bars(const struct paper *paper, const struct svg_bars *bars,
			     const struct svg_options *options)
{
	return paper->is_text ? plot_rows_bars(paper->sink, bars, options, paper->width)
			      : bench_svg_bars(paper->sink, bars, options);
}

enum status chart_draw(const struct paper *paper, struct chart *chart, bool is_boxes,
		       struct svg_options *options)
{
	const char *names[CHART_GROUPS_MAX + CHART_SERIES_MAX];
	const char *const *groups, *const *series;
	enum status status;

	if (chart->group_count == 0 || chart->series_count == 0)
		return OK;
	options->has_no_style = true;
	if (is_boxes && is_wide(chart))
		options->y.scale = PLOT_LOG;
	point_at(&groups, &series, chart, names);
	pack(chart);
	if (paper->is_text)
		sink_byte(paper->sink, '\n');
	else
		bench_page_chart(paper->sink, options->title);
	if (is_boxes)
		status = draw_boxes(paper,
				    &(struct svg_boxes){ groups, chart->group_count, series,
							 chart->series_count, chart->boxes },
				    options);
	else
		status = draw_bars(paper,
				   &(struct svg_bars){ groups, chart->group_count, series,
						       chart->series_count, chart->values, NULL,
						       NULL },
				   options);
	if (!paper->is_text)
		bench_page_chart_end(paper->sink);
	return status;
}
