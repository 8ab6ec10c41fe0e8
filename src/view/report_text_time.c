/* Over time: windows, changes, iterations. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/op.h"
#include "common/text.h"
#include "view/report_key.h"
#include "view/report_text.h"
#include "view/report_words.h"
#include "view/table.h"

enum { SERIES_SHOWN = 8, CHANGES_SHOWN = 8, CHART_NARROW = 24, CHART_WIDE = 60, WIDE_FROM = 120 };

static size_t chart_width(const struct report_text_options *options)
{
	return options->width == 0 || options->width >= WIDE_FROM ? CHART_WIDE : CHART_NARROW;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* The line of one chart and its middle. Values of 0: nothing there. */
struct line {
	double *values; /* [count] */
	double *sorted; /* those above 0 */
	size_t count;
	size_t used;
};

static void sort_line(struct line *line)
{
	line->used = 0;
	for (size_t i = 0; i < line->count; i++)
		if (line->values[i] > 0)
			line->sorted[line->used++] = line->values[i];
	qsort(line->sorted, line->used, sizeof(*line->sorted), by_value);
}

/* busbw of the transfer where ranks could be joined, else with waiting. True: without waiting. */
static bool fill_bandwidth(struct line *line, const struct windows_series *series)
{
	bool has_moves = false;

	for (size_t i = 0; i < line->count; i++)
		has_moves |= series->move_ns[i] > 0;
	for (size_t i = 0; i < line->count; i++) {
		double bytes = has_moves ? series->move_bus_bytes[i] : series->bus_bytes[i];
		double ns = has_moves ? series->move_ns[i] : series->time_ns[i];

		line->values[i] = ns > 0 ? bytes / ns * 1e9 : 0;
	}
	sort_line(line);
	return has_moves;
}

static double series_time(const struct windows_series *series, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += series->time_ns[i];
	return sum;
}

static void chart_cell(struct report_grid *grid, const struct line *line,
		       const struct report_text_options *options)
{
	struct sink chart;

	sink_init_memory(&chart);
	report_chart(&chart, line->values, line->count, chart_width(options), options->has_blocks);
	report_grid_cell(grid, sink_string(&chart));
	sink_release(&chart);
}

static void add_series(struct report_grid *grid, const struct timeline_report *report,
		       const struct windows_series *series, struct line *line,
		       const struct report_text_options *options)
{
	bool is_move = fill_bandwidth(line, series);
	char text[REPORT_BANDWIDTH];

	if (line->used == 0)
		return;
	report_grid_cell(grid, job_name(&report->job, OP_NAMES_FUNCTION, series->function));
	report_grid_cell(grid, job_comm_kind_name(series->kind));
	chart_cell(grid, line, options);
	report_grid_cell(grid, report_bandwidth(text, line->sorted[0]));
	report_grid_cell(grid, report_bandwidth(text, line->sorted[line->used / 2]));
	report_grid_cell(grid, report_bandwidth(text, line->sorted[line->used - 1]));
	report_grid_cell(grid, is_move ? "busbw without waiting" : "busbw with waiting");
}

/* Waiting of all ranks as a share of the time of what could be joined. */
static void add_waiting(struct report_grid *grid, const struct windows *windows, struct line *line,
			const struct report_text_options *options)
{
	const struct windows_matrix *matrix = &windows->waiting;
	char text[REPORT_SHARE];

	for (size_t w = 0; w < line->count; w++) {
		double wait = 0, joined = 0;

		for (size_t r = 0; r < matrix->rows; r++) {
			wait += matrix->wait_ns[r * windows->count + w];
			joined += matrix->joined_ns[r * windows->count + w];
		}
		line->values[w] = joined > 0 ? wait / joined : 0;
	}
	sort_line(line);
	if (line->used == 0)
		return;
	report_grid_cell(grid, "waiting");
	report_grid_cell(grid, "all");
	chart_cell(grid, line, options);
	report_grid_cell(grid, report_share(text, line->sorted[0], 1));
	report_grid_cell(grid, report_share(text, line->sorted[line->used / 2], 1));
	report_grid_cell(grid, report_share(text, line->sorted[line->used - 1], 1));
	report_grid_cell(grid, "share of time");
}

/* Indices of the series, the longest time first. */
static void order_series(const struct windows *windows, size_t *order)
{
	for (size_t i = 0; i < windows->series_count; i++) {
		double time = series_time(&windows->series[i], windows->count);
		size_t at = i;

		for (;
		     at > 0 && series_time(&windows->series[order[at - 1]], windows->count) < time;
		     at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static void write_charts(struct report_grid *grid, const struct timeline_report *report,
			 struct line *line, const struct report_text_options *options)
{
	const struct windows *windows = &report->windows;
	size_t order[WINDOWS_SERIES_MAX];
	size_t shown = windows->series_count;

	if (shown > WINDOWS_SERIES_MAX)
		return;
	order_series(windows, order);
	if (!options->has_all && shown > SERIES_SHOWN)
		shown = SERIES_SHOWN;
	report_grid_column(grid, "OPERATION", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "KIND", TABLE_LEFT, 0, 4);
	report_grid_column(grid, "OVER TIME", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "LEAST", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "MEDIAN", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "MOST", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "OF", TABLE_LEFT, 0, 5);
	for (size_t i = 0; i < shown; i++)
		add_series(grid, report, &windows->series[order[i]], line, options);
	add_waiting(grid, windows, line, options);
}

static void say_changes(struct sink *sink, const struct timeline_report *report,
			const struct report_text_options *options)
{
	const struct windows *windows = &report->windows;
	size_t shown = windows->change_count;
	char words[REPORT_WORDS];

	if (!options->has_all && shown > CHANGES_SHOWN)
		shown = CHANGES_SHOWN;
	for (size_t i = 0; i < shown; i++) {
		report_words_change(report, &windows->changes[i], words);
		table_wrap(sink, words, "- ", 2, report_text_width(options));
	}
	if (shown < windows->change_count)
		sink_format(sink, "(%zu more changes: --all shows them)\n",
			    windows->change_count - shown);
	if (windows->changes_left_out > 0)
		sink_format(sink, "(%zu more that cost less are left out)\n",
			    windows->changes_left_out);
	if (windows->change_count == 0)
		sink_text(sink, "No lasting change of a transfer's speed.\n");
}

enum status report_text_windows(struct sink *sink, const struct timeline_report *report,
				const struct report_text_options *options)
{
	const struct windows *windows = &report->windows;
	struct line line = { calloc(windows->count + 1, sizeof(double)),
			     calloc(windows->count + 1, sizeof(double)), windows->count, 0 };
	char width[UNITS_TEXT], start[REPORT_WORDS], end[REPORT_WORDS], words[REPORT_WORDS];
	struct report_grid_left_out ignored = { .count = 0 };
	enum status status = ERR_NO_SPACE;
	struct report_grid grid;

	report_grid_init(&grid);
	if (line.values != NULL && line.sorted != NULL) {
		report_words_moment(report, windows->start_ns, start);
		report_words_moment(report, windows->end_ns, end);
		text_format(words, sizeof(words),
			    "%.40s to %.40s in %" PRIu32 " window%s of %s; GB/s.", start, end,
			    windows->count, windows->count == 1 ? "" : "s",
			    units_duration(width, windows->width_ns));
		table_wrap(sink, words, "", 0, report_text_width(options));
		write_charts(&grid, report, &line, options);
		status = report_grid_write(&grid, sink, options->width, &ignored);
	}
	report_grid_release(&grid);
	free(line.values);
	free(line.sorted);
	if (status == OK)
		say_changes(sink, report, options);
	return status;
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* "rank 0", and of which job where there are several. */
static void rank_words(const struct timeline_report *report, uint32_t index,
		       char to[static REPORT_WORDS])
{
	const struct job *job = &report->job;

	if (index >= job->rank_count)
		text_copy(to, REPORT_WORDS, "a rank");
	else if (job->group_count > 1)
		text_format(to, REPORT_WORDS, "rank %s of job %s", job->ranks[index].label,
			    job->groups[job->ranks[index].group].name);
	else
		text_format(to, REPORT_WORDS, "rank %s", job->ranks[index].label);
}

static void say_iterations(struct sink *sink, const struct timeline_report *report,
			   const struct report_text_options *options)
{
	const struct iterations *from = &report->iterations;
	const struct iteration *slowest =
		from->slowest < from->count ? &from->list[from->slowest] : NULL;
	char times[3][UNITS_TEXT], share[REPORT_SHARE], when[REPORT_WORDS], rank[REPORT_WORDS];
	struct sink text;

	rank_words(report, from->rank, rank);
	report_words_moment(report, slowest ? slowest->start_ns : report->start_ns, when);
	sink_init_memory(&text);
	sink_format(&text,
		    "%zu iterations of %" PRIu32 " operations each, by %s of %s: ", from->regular,
		    from->period_ops, from->is_by_tag ? "the tags" : "the repeating sequence",
		    rank);
	sink_format(&text, "median %s, p99 %s, slowest %s (number %zu, at %s); ",
		    units_duration(times[0], from->median_ns),
		    units_duration(times[1], from->p99_ns),
		    units_duration(times[2], from->slowest_ns), from->slowest + 1, when);
	if (from->timed == 0)
		sink_text(&text, "how much of one is communication is not known: in none were all "
				 "operations timed.");
	else
		sink_format(
			&text, "%s of the median one is communication",
			report_share(share, (double)from->median_busy_ns, (double)from->median_ns));
	if (from->timed > 0 && from->timed < from->regular)
		sink_format(&text, " (timed: %zu of %zu iterations)", from->timed, from->regular);
	sink_text(&text, from->timed > 0 ? "." : "");
	if (from->count > from->regular)
		sink_format(&text, " %zu more are not regular: checkpoints, evaluations, ...",
			    from->count - from->regular);
	if (from->is_cut)
		sink_format(&text, " Only the first %" PRIu64 " operations were looked at.",
			    from->ops);
	table_wrap(sink, sink_string(&text), "", 0, report_text_width(options));
	sink_release(&text);
}

enum status report_text_iterations(struct sink *sink, const struct timeline_report *report,
				   const struct report_text_options *options)
{
	const struct iterations *from = &report->iterations;
	double *values = calloc(from->count + 1, sizeof(*values));

	if (values == NULL)
		return ERR_NO_SPACE;
	say_iterations(sink, report, options);
	for (size_t i = 0; i < from->count; i++)
		if (from->list[i].end_ns > from->list[i].start_ns)
			values[i] = (double)(from->list[i].end_ns - from->list[i].start_ns);
	sink_text(sink, "durations ");
	report_chart(sink, values, from->count, CHART_WIDE, options->has_blocks);
	sink_text(sink, "\n");
	free(values);
	return sink->status;
}
