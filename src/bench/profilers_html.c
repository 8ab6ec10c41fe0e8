/* Each figure is a table of groups along x and series, filled from the rows of the comparison. */
#include "bench/profilers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_plot.h"
#include "common/op.h"
#include "common/text.h"

/* Charts of a comparison: filled by name, then drawn as SVG or text. */

enum { CHART_GROUPS_MAX = 48, CHART_SERIES_MAX = SVG_SERIES_MAX, CHART_NAME_BYTES = 128 };

/* Where it is drawn. */
struct chart_target {
	struct sink *sink;
	bool is_text;	    /* else <svg> */
	unsigned int width; /* of text */
};

/* A chart's data. Names are found or added; what does not fit is counted. */
struct chart {
	char groups[CHART_GROUPS_MAX][CHART_NAME_BYTES];
	uint64_t keys[CHART_GROUPS_MAX][2]; /* groups are sorted and found by these */
	size_t group_count;
	char series[CHART_SERIES_MAX][CHART_NAME_BYTES];
	size_t series_count;
	double values[CHART_GROUPS_MAX * CHART_SERIES_MAX];
	struct svg_box boxes[CHART_GROUPS_MAX * CHART_SERIES_MAX];
	size_t left_out;
	bool is_boxes; /* else bars */
	char id[CHART_NAME_BYTES];
	char title[CHART_NAME_BYTES];
	struct svg_options options;
};

/* Empty; NULL: out of memory. Release with free(). */
static struct chart *chart_new(void)
{
	struct chart *chart = calloc(1, sizeof(*chart));

	for (size_t i = 0; chart && i < CHART_GROUPS_MAX * CHART_SERIES_MAX; i++) {
		chart->values[i] = NAN;
		chart->boxes[i].mean = NAN;
	}
	return chart;
}

/*
 * All groups must be added before the first value, because they are sorted. SIZE_MAX: no room, or (without a name)
 * not found.
 */
static size_t chart_group(struct chart *chart, uint64_t first, uint64_t second, const char *name)
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

/* Found or added; SIZE_MAX: no room. Values are at [group * CHART_SERIES_MAX + series]. */
static size_t chart_series(struct chart *chart, const char *name)
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

/* Values are stored with room for all series; charts need them packed. */
static void chart_pack(struct chart *chart)
{
	for (size_t group = 0; group < chart->group_count; group++)
		for (size_t i = 0; i < chart->series_count; i++) {
			size_t to = group * chart->series_count + i,
			       from = group * CHART_SERIES_MAX + i;

			chart->values[to] = chart->values[from];
			chart->boxes[to] = chart->boxes[from];
		}
}

/* Whether ratios are far apart: on a linear axis one of them would hide the others. */
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

/* Call only once: it moves the values. A chart without groups or series draws nothing. */
static enum status chart_draw(const struct chart_target *target, struct chart *chart)
{
	const char *groups[CHART_GROUPS_MAX], *series[CHART_SERIES_MAX];
	struct svg_groups data = { groups,	  chart->group_count,
				   series,	  chart->series_count,
				   chart->values, chart->is_boxes ? chart->boxes : NULL };
	enum status status;

	if (chart->group_count == 0 || chart->series_count == 0)
		return OK;
	if (chart->is_boxes && is_wide(chart))
		chart->options.y.scale = PLOT_LOG;
	for (size_t i = 0; i < chart->group_count; i++)
		groups[i] = chart->groups[i];
	for (size_t i = 0; i < chart->series_count; i++)
		series[i] = chart->series[i];
	chart_pack(chart);
	if (target->is_text) {
		sink_byte(target->sink, '\n');
		return plot_rows_groups(target->sink, &data, &chart->options, target->width);
	}
	bench_page_chart(target->sink, chart->title);
	status = bench_svg_groups(target->sink, &data, &chart->options);
	bench_page_chart_end(target->sink);
	return status;
}

static const struct {
	const char *title;
	const char *words;
} figures[PROFILERS_FIGURES] = {
	[PROFILERS_FIGURE_COMPLETE] = { "Figure 1: completeness",
					"Share of issued calls that were recorded, by operation, "
					"over all ranks, sizes and runs. No bar: the output could "
					"not be read, or the operation was not run." },
	[PROFILERS_FIGURE_ACCURACY] = { "Figure 2: accuracy",
					"Reported time divided by measured time of the same call, "
					"by size. Box: middle half; whiskers: 5% to 95%, none with "
					"fewer than 20 values." },
	[PROFILERS_FIGURE_OVERHEAD] = { "Figure 3: overhead",
					"Time per call with the plugin divided by time without, by "
					"size: ratio of medians, geometric mean over operations. "
					"Whiskers: 95% interval; no whiskers: too few runs. An "
					"interval that includes 1 shows no significant "
					"difference." },
	[PROFILERS_FIGURE_TRAINING] = { "Figure 4: training", "DenseNet-121: time per epoch, "
							      "communication time per rank as "
							      "reported by the plugin, and the "
							      "share of issued calls that were "
							      "recorded." },
};

const char *profilers_figure_title(enum profilers_figure which)
{
	return figures[which].title;
}

const char *profilers_figure_words(enum profilers_figure which)
{
	return figures[which].words;
}

/* A plugin looks the same in all charts, even if it has no data in some. */
static void all_plugins(struct chart *chart, const struct profilers_comparison *comparison)
{
	for (size_t i = 1; i < comparison->plugin_count; i++)
		chart_series(chart, comparison->plugins[i].label);
}

/* ---- figure 1 --------------------------------------------------------------------------------- */

static void fill_complete(const struct profilers_comparison *comparison, unsigned int mode,
			  struct chart *chart)
{
	chart->options =
		(struct svg_options){ .y = { "recorded of issued", PLOT_PERCENT, PLOT_LINEAR },
				      .x.label = "operation" };
	for (size_t i = 0; i < comparison->complete_count; i++) {
		const struct profilers_complete *row = &comparison->complete[i];

		if (row->mode == mode && row->counts.issued > 0)
			chart_group(chart, row->function, 0, op_function_name(row->function));
	}
	all_plugins(chart, comparison);
	for (size_t plugin = 1; plugin < comparison->plugin_count; plugin++) {
		size_t series = chart_series(chart, comparison->plugins[plugin].label);

		for (size_t group = 0; group < chart->group_count && series != SIZE_MAX; group++) {
			struct profilers_which which = PROFILERS_WHICH_ALL;
			struct profilers_counts counts;

			which.plugin = (int)plugin;
			which.mode = (int)mode;
			which.function = (int)chart->keys[group][0];
			counts = profilers_counts(comparison, &which);
			if (profilers_is_judged(comparison, (unsigned int)plugin, mode) &&
			    counts.issued > 0)
				chart->values[group * CHART_SERIES_MAX + series] =
					100 * profilers_share(&counts);
		}
	}
	text_format(chart->id, sizeof(chart->id), "figure-1-%s", bench_mode_name(mode));
	text_format(chart->title, sizeof(chart->title),
		    "Share of issued calls that were recorded, %s", bench_mode_name(mode));
}

/* ---- figure 2 --------------------------------------------------------------------------------- */

static bool is_drawn(const struct profilers_accuracy *row)
{
	return row->function == 0 && row->ratio.p50 > 0;
}

/* The plugin and the source of its times: over all modes, so that each looks the same in all of them. */
static size_t source_at(struct chart *chart, const struct profilers_comparison *comparison,
			const struct profilers_accuracy *row)
{
	char name[CHART_NAME_BYTES];

	text_format(name, sizeof(name), "%s (%s)", comparison->plugins[row->plugin].label,
		    row->is_mean_only ? "means" : op_time_source_name(row->source));
	return chart_series(chart, name);
}

static void fill_accuracy(const struct profilers_comparison *comparison, unsigned int mode,
			  struct chart *chart)
{
	char size[PROFILERS_SHORT_TEXT];

	chart->is_boxes = true;
	chart->options = (struct svg_options){ .y = { "reported / measured", PLOT_PLAIN, PLOT_LOG },
					       .x.label = "message size",
					       .has_mark = true,
					       .mark = 1,
					       .mark_label = "as measured" };
	for (size_t i = 0; i < comparison->accuracy_count; i++) {
		const struct profilers_accuracy *row = &comparison->accuracy[i];

		if (!is_drawn(row))
			continue;
		source_at(chart, comparison, row);
		if (row->mode == mode)
			chart_group(chart, row->bytes, row->bytes_to,
				    profilers_size_text(size, row->bytes, row->bytes_to));
	}
	for (size_t i = 0; i < comparison->accuracy_count; i++) {
		const struct profilers_accuracy *row = &comparison->accuracy[i];
		size_t group, series;

		if (!is_drawn(row) || row->mode != mode)
			continue;
		group = chart_group(chart, row->bytes, row->bytes_to, NULL);
		series = source_at(chart, comparison, row);
		if (group == SIZE_MAX || series == SIZE_MAX)
			continue;
		chart->boxes[group * CHART_SERIES_MAX + series] =
			(struct svg_box){ .is_there = true,
					  .low = row->ratio.p05,
					  .p25 = row->ratio.p25,
					  .p50 = row->ratio.p50,
					  .p75 = row->ratio.p75,
					  .high = row->ratio.p95,
					  .mean = NAN };
	}
	text_format(chart->id, sizeof(chart->id), "figure-2-%s", bench_mode_name(mode));
	text_format(chart->title, sizeof(chart->title), "Reported / measured time, %s",
		    bench_mode_name(mode));
}

/* ---- figure 3 --------------------------------------------------------------------------------- */

static bool is_ratio(const struct profilers_overhead *row, unsigned int mode, uint8_t clock)
{
	return row->mode == mode && row->clock == clock && row->function == 0 && row->bytes != 0;
}

static void fill_overhead(const struct profilers_comparison *comparison, unsigned int mode,
			  uint8_t clock, struct chart *chart)
{
	const char *what = clock == BENCH_GPU ? "GPU time" : "host time in the call";
	char size[PROFILERS_SHORT_TEXT];

	chart->is_boxes = true;
	chart->options = (struct svg_options){ .y = { "with / without", PLOT_PLAIN, PLOT_LINEAR },
					       .x.label = "message size",
					       .has_mark = true,
					       .mark = 1,
					       .mark_label = "no difference" };
	all_plugins(chart, comparison);
	for (size_t i = 0; i < comparison->overhead_count; i++)
		if (is_ratio(&comparison->overhead[i], mode, clock))
			chart_group(chart, comparison->overhead[i].bytes, 0,
				    profilers_size_text(size, comparison->overhead[i].bytes, 0));
	for (size_t i = 0; i < comparison->overhead_count; i++) {
		const struct profilers_overhead *row = &comparison->overhead[i];
		double ratio = row->ratio.ratio;
		size_t group, series;

		if (!is_ratio(row, mode, clock))
			continue;
		group = chart_group(chart, row->bytes, 0, NULL);
		series = chart_series(chart, comparison->plugins[row->plugin].label);
		if (group == SIZE_MAX || series == SIZE_MAX)
			continue;
		chart->boxes[group * CHART_SERIES_MAX + series] =
			(struct svg_box){ .is_there = true,
					  .low = row->has_interval ? row->ratio.low : ratio,
					  .p25 = ratio,
					  .p50 = ratio,
					  .p75 = ratio,
					  .high = row->has_interval ? row->ratio.high : ratio,
					  .mean = ratio };
	}
	text_format(chart->id, sizeof(chart->id), "figure-3-%s-%s", bench_mode_name(mode),
		    clock == BENCH_GPU ? "gpu" : "host");
	text_format(chart->title, sizeof(chart->title),
		    "Time with the plugin / time without, %s, %s", bench_mode_name(mode), what);
}

/* ---- figure 4 --------------------------------------------------------------------------------- */

static void fill_epochs(const struct profilers_comparison *comparison, struct chart *chart)
{
	chart->options =
		(struct svg_options){ .y = { "time", PLOT_NS, PLOT_LINEAR }, .x.label = "plugin" };
	text_copy(chart->id, sizeof(chart->id), "figure-4-time");
	text_copy(chart->title, sizeof(chart->title),
		  "Training: time per epoch, and communication time");
	chart_series(chart, "epoch");
	chart_series(chart, "communication, as reported");
	for (size_t i = 0; i < comparison->training_count; i++) {
		const struct profilers_train *row = &comparison->training[i];
		size_t group =
			chart_group(chart, row->plugin, 0, comparison->plugins[row->plugin].label);

		if (group == SIZE_MAX)
			continue;
		if (row->epoch_ns > 0)
			chart->values[group * CHART_SERIES_MAX] = row->epoch_ns;
		if (row->has_comm)
			chart->values[group * CHART_SERIES_MAX + 1] = row->comm_ns;
	}
}

static void fill_training(const struct profilers_comparison *comparison, struct chart *chart)
{
	chart->options =
		(struct svg_options){ .y = { "recorded of issued", PLOT_PERCENT, PLOT_LINEAR },
				      .x.label = "plugin" };
	text_copy(chart->id, sizeof(chart->id), "figure-4-calls");
	text_copy(chart->title, sizeof(chart->title),
		  "Training: share of issued calls that were recorded");
	for (size_t i = 0; i < comparison->training_count; i++) {
		const struct profilers_train *row = &comparison->training[i];

		if (row->plugin > 0)
			chart_group(chart, row->plugin, 0, comparison->plugins[row->plugin].label);
	}
	for (size_t i = 0; i < comparison->training_count; i++) {
		const struct profilers_train *row = &comparison->training[i];

		for (uint8_t function = 0; function < OP_FUNCTIONS; function++) {
			size_t group, series;

			if (row->issued[function] == 0 || row->plugin == 0 || !row->is_read ||
			    !row->is_counted)
				continue;
			group = chart_group(chart, row->plugin, 0, NULL);
			series = chart_series(chart, op_function_name(function));
			if (group != SIZE_MAX && series != SIZE_MAX)
				chart->values[group * CHART_SERIES_MAX + series] =
					100.0 * (double)row->recorded[function] /
					(double)row->issued[function];
		}
	}
}

/* ---- all -------------------------------------------------------------------------------------- */

bool profilers_figure_is_there(const struct profilers_comparison *comparison,
			       enum profilers_figure which)
{
	switch (which) {
	case PROFILERS_FIGURE_COMPLETE:
		return comparison->complete_count > 0;
	case PROFILERS_FIGURE_ACCURACY:
		return comparison->accuracy_count > 0;
	case PROFILERS_FIGURE_OVERHEAD:
		return comparison->overhead_count > 0;
	default:
		return comparison->training_count > 0;
	}
}

/* Charts of a figure are numbered: by mode, and by clock or part of the training. */
static enum status draw_one(const struct chart_target *target,
			    const struct profilers_comparison *comparison,
			    enum profilers_figure which, unsigned int mode, unsigned int part)
{
	struct chart *chart = chart_new();
	enum status status;

	if (chart == NULL)
		return ERR_NO_SPACE;
	switch (which) {
	case PROFILERS_FIGURE_COMPLETE:
		fill_complete(comparison, mode, chart);
		break;
	case PROFILERS_FIGURE_ACCURACY:
		fill_accuracy(comparison, mode, chart);
		break;
	case PROFILERS_FIGURE_OVERHEAD:
		fill_overhead(comparison, mode, part ? BENCH_ISSUE : BENCH_GPU, chart);
		break;
	default:
		if (part)
			fill_training(comparison, chart);
		else
			fill_epochs(comparison, chart);
	}
	chart->options.id = chart->id;
	chart->options.title = chart->title;
	chart->options.description = profilers_figure_words(which);
	status = chart_draw(target, chart);
	if (chart->left_out > 0)
		sink_format(target->sink,
			    target->is_text
				    ? "%zu more values did not fit: use --json to get them\n"
				    : "<p>%zu more values did not fit: use --json to get "
				      "them.</p>\n",
			    chart->left_out);
	free(chart);
	return status;
}

static enum status draw_all(const struct chart_target *target,
			    const struct profilers_comparison *comparison,
			    enum profilers_figure which)
{
	bool has_modes = which != PROFILERS_FIGURE_TRAINING;
	bool has_parts = which >= PROFILERS_FIGURE_OVERHEAD;
	enum status status = OK;

	for (unsigned int part = 0; part <= has_parts; part++)
		for (unsigned int mode = 1; mode < (has_modes ? BENCH_MODES : 2); mode++)
			if (status == OK)
				status = draw_one(target, comparison, which, mode, part);
	return status;
}

/* The <svg> elements. ERR_NO_SPACE, or the sink's status. */
static enum status profilers_figure_write(struct sink *sink,
					  const struct profilers_comparison *comparison,
					  enum profilers_figure which)
{
	return draw_all(&(struct chart_target){ .sink = sink }, comparison, which);
}

enum status profilers_figure_text(struct sink *sink, const struct profilers_comparison *comparison,
				  enum profilers_figure which, unsigned int width)
{
	return draw_all(&(struct chart_target){ sink, true, width }, comparison, which);
}

/* Columns with "-" in every row are dropped, as in the text. */
static void write_rows(struct sink *sink, const struct report_grid *grid)
{
	uint32_t shown = report_grid_filled(grid);
	size_t column = 0;

	for (size_t i = 0; i < grid->table.count; i++)
		if (shown & 1u << i)
			bench_page_head(sink, grid->columns[i].title,
					grid->columns[i].align == TABLE_RIGHT);
	for (size_t i = 0; i < grid->table.used; i++) {
		const struct table_item *item = &grid->table.items[i];

		if (item->is_note)
			continue;
		if (column == 0)
			bench_page_row(sink);
		if (shown & 1u << column)
			bench_page_cell(sink,
					grid->columns[column].align == TABLE_RIGHT ? PAGE_NUMBER
										   : PAGE_WORDS,
					"%s", item->text);
		column = (column + 1) % grid->table.count;
	}
}

/* Below the table, with the first two cells of the row that each one is about. */
static void write_notes(struct sink *sink, const struct report_grid *grid)
{
	const char *words[2] = { "", "" };
	bool has_list = false;
	size_t column = 0;

	for (size_t i = 0; i < grid->table.used; i++) {
		const struct table_item *item = &grid->table.items[i];

		if (!item->is_note) {
			if (column < 2)
				words[column] = item->text;
			column = (column + 1) % grid->table.count;
			continue;
		}
		if (!has_list)
			bench_page_list(sink);
		has_list = true;
		bench_page_item(sink, "%s, %s: %s", words[0], words[1], item->text);
	}
	if (has_list)
		bench_page_list_end(sink);
}

/* `is_folded`: collapsed details. */
static enum status write_table(struct sink *sink, const struct profilers_comparison *comparison,
			       enum profilers_table which, bool is_folded)
{
	struct report_grid grid;
	enum status status = OK;

	report_grid_init(&grid);
	profilers_table_fill(&grid, comparison, which);
	if (grid.table.is_broken) {
		status = ERR_NO_SPACE;
	} else if (grid.table.used > 0) {
		if (is_folded) {
			sink_text(sink, "<details><summary>");
			bench_page_text(sink, profilers_table_title(which));
			sink_text(sink, "</summary>\n");
		}
		bench_page_table(sink, profilers_table_title(which));
		write_rows(sink, &grid);
		bench_page_table_end(sink);
		write_notes(sink, &grid);
		if (profilers_table_words(which)[0] != '\0')
			bench_page_paragraph(sink, "%s", profilers_table_words(which));
		if (is_folded)
			sink_text(sink, "</details>\n");
	}
	report_grid_release(&grid);
	return status;
}

static void write_head(struct sink *sink, const struct profilers_comparison *comparison)
{
	char text[PROFILERS_PLACE_TEXT];

	bench_page_section(sink, "what", "Setup");
	bench_page_paragraph(sink, "%s.", profilers_place_text(text, comparison));
	bench_page_paragraph(sink, "%s.", profilers_amount_text(text, comparison));
	if (comparison->command[0] != '\0') {
		sink_text(sink, "<p><code>$ ");
		bench_page_text(sink, comparison->command);
		sink_text(sink, "</code></p>\n");
	}
	bench_page_list(sink);
	for (size_t i = 1; i < comparison->plugin_count; i++)
		bench_page_item(sink, "%s: %s (output: %s)", comparison->plugins[i].label,
				comparison->plugins[i].path,
				profilers_kind_name(comparison->plugins[i].kind));
	bench_page_list_end(sink);
	bench_page_section_end(sink);
}

static void write_short(struct sink *sink, const struct profilers_comparison *comparison)
{
	char text[PROFILERS_SHORT_SENTENCE];

	bench_page_section(sink, "short", "Summary");
	for (size_t i = 1; i < comparison->plugin_count; i++) {
		profilers_short(text, comparison, i);
		bench_page_lead(sink, "%s: %s.", comparison->plugins[i].label,
				text[0] != '\0' ? text : "no results");
	}
	bench_page_section_end(sink);
}

static void write_lines(struct sink *sink, const char *id, const char *title,
			const char lines[][PROFILERS_TEXT_BYTES], size_t count, size_t lost)
{
	if (count == 0)
		return;
	bench_page_section(sink, id, title);
	bench_page_list(sink);
	for (size_t i = 0; i < count; i++)
		bench_page_item(sink, "%s", lines[i]);
	if (lost > 0)
		bench_page_item(sink, "and %zu more that did not fit", lost);
	bench_page_list_end(sink);
	bench_page_section_end(sink);
}

/* A figure, and the tables with its numbers. */
static const struct {
	const char *id;
	enum profilers_figure figure;
	enum profilers_table tables[4];
	size_t table_count;
	size_t folded; /* tables from this one on are collapsed */
} parts[] = {
	{ "completeness",
	  PROFILERS_FIGURE_COMPLETE,
	  { PROFILERS_TABLE_COMPLETE, PROFILERS_TABLE_BY_FUNCTION, PROFILERS_TABLE_BY_SIZE,
	    PROFILERS_TABLE_BY_RANK },
	  4,
	  1 },
	{ "accuracy",
	  PROFILERS_FIGURE_ACCURACY,
	  { PROFILERS_TABLE_ACCURACY, PROFILERS_TABLE_ACCURACY_CELLS },
	  2,
	  1 },
	{ "overhead",
	  PROFILERS_FIGURE_OVERHEAD,
	  { PROFILERS_TABLE_OVERHEAD, PROFILERS_TABLE_OVERHEAD_BY_SIZE,
	    PROFILERS_TABLE_OVERHEAD_CELLS },
	  3,
	  1 },
	{ "training", PROFILERS_FIGURE_TRAINING, { PROFILERS_TABLE_TRAINING }, 1, 1 },
};

static bool has_jobs(const struct profilers_comparison *comparison, size_t part)
{
	return profilers_figure_is_there(comparison, parts[part].figure) ||
	       (part == 0 && comparison->job_count > 0);
}

static enum status write_part(struct sink *sink, const struct profilers_comparison *comparison,
			      size_t part)
{
	enum profilers_figure figure = parts[part].figure;
	enum status status = OK;

	if (!has_jobs(comparison, part))
		return OK;
	bench_page_section(sink, parts[part].id, profilers_figure_title(figure));
	if (profilers_figure_is_there(comparison, figure)) {
		status = profilers_figure_write(sink, comparison, figure);
		bench_page_paragraph(sink, "%s", profilers_figure_words(figure));
	}
	for (size_t i = 0; i < parts[part].table_count && status == OK; i++)
		status = write_table(sink, comparison, parts[part].tables[i],
				     i >= parts[part].folded);
	bench_page_section_end(sink);
	return status;
}

enum status profilers_html_write(struct sink *sink, const struct profilers_comparison *comparison)
{
	enum status status = OK;

	bench_page_begin(sink, "Comparison of NCCL profilers", "ringside bench profilers");
	write_short(sink, comparison);
	write_head(sink, comparison);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == OK; i++)
		status = write_part(sink, comparison, i);
	write_lines(sink, "not-run", "Not run", comparison->not_run, comparison->not_run_count, 0);
	write_lines(sink, "to-know", "Notes", comparison->notes, comparison->note_count,
		    comparison->notes_lost);
	bench_page_end(sink);
	return status != OK ? status : sink->status;
}
