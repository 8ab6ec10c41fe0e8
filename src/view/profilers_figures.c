/* Each figure is a table of groups along x and series beside one another, filled from the rows of the comparison. */
#include "view/profilers_figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "view/profilers_chart.h"
#include "view/profilers_tables.h"

static const struct {
	const char *title;
	const char *words;
} figures[PROFILERS_FIGURES] = {
	[PROFILERS_FIGURE_COMPLETE] = { "Figure 1: completeness",
					"Calls recorded of calls issued, by operation, over all "
					"ranks, sizes and "
					"runs. No bar: the output could not be read, or the "
					"operation was not "
					"run." },
	[PROFILERS_FIGURE_ACCURACY] = { "Figure 2: accuracy",
					"Reported time over measured time of "
					"the same call, by size. Box: middle "
					"half; whiskers: 5 % to 95 %, none of fewer "
					"than 20 values." },
	[PROFILERS_FIGURE_OVERHEAD] = { "Figure 3: overhead",
					"Time per call with the plugin over time without, by size: "
					"ratio of "
					"medians, geometric mean over operations. Whiskers: 95 % "
					"interval; no "
					"whiskers: too few runs. An interval that includes 1 shows "
					"no "
					"difference." },
	[PROFILERS_FIGURE_TRAINING] = { "Figure 4: training", "DenseNet-121: time of an epoch and "
							      "the communication time that the "
							      "plugin reports for it, of one rank; "
							      "and calls recorded of calls "
							      "issued." },
};

const char *profilers_figure_title(enum profilers_figure which)
{
	return figures[which].title;
}

const char *profilers_figure_words(enum profilers_figure which)
{
	return figures[which].words;
}

/* A plugin looks the same in all charts, also where it has nothing to show. */
static void all_plugins(struct chart *chart, const struct profilers_comparison *comparison)
{
	for (size_t i = 1; i < comparison->plugin_count; i++)
		chart_series(chart, comparison->plugins[i].label);
}

/* ---- figure 1 --------------------------------------------------------------------------------- */

static enum status draw_complete(const struct paper *paper,
				 const struct profilers_comparison *comparison, unsigned int mode,
				 struct chart *chart)
{
	struct svg_options options = { .y = { "recorded of issued", PLOT_PERCENT, PLOT_LINEAR },
				       .x.label = "operation" };
	char id[CHART_NAME_BYTES], title[CHART_NAME_BYTES];

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
	text_format(id, sizeof(id), "figure-1-%s", bench_mode_name(mode));
	text_format(title, sizeof(title), "Calls recorded of calls issued, %s",
		    bench_mode_name(mode));
	options.id = id;
	options.title = title;
	options.description = profilers_figure_words(PROFILERS_FIGURE_COMPLETE);
	return chart_draw(paper, chart, false, &options);
}

/* ---- figure 2 --------------------------------------------------------------------------------- */

static bool is_drawn(const struct profilers_accuracy *row)
{
	return row->function == 0 && row->ratio.p50 > 0;
}

/* The plugin and where its times come from: in all modes, so that each looks the same in all of them. */
static size_t source_at(struct chart *chart, const struct profilers_comparison *comparison,
			const struct profilers_accuracy *row)
{
	char name[CHART_NAME_BYTES];

	text_format(name, sizeof(name), "%s (%s)", comparison->plugins[row->plugin].label,
		    row->is_mean_only ? "means" : op_time_source_name(row->source));
	return chart_series(chart, name);
}

static enum status draw_accuracy(const struct paper *paper,
				 const struct profilers_comparison *comparison, unsigned int mode,
				 struct chart *chart)
{
	struct svg_options options = { .y = { "reported / measured", PLOT_PLAIN, PLOT_LOG },
				       .x.label = "message size",
				       .has_mark = true,
				       .mark = 1,
				       .mark_label = "as measured" };
	char id[CHART_NAME_BYTES], title[CHART_NAME_BYTES], size[PROFILERS_SHORT_TEXT];

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
	text_format(id, sizeof(id), "figure-2-%s", bench_mode_name(mode));
	text_format(title, sizeof(title), "Reported over measured time, %s", bench_mode_name(mode));
	options.id = id;
	options.title = title;
	options.description = profilers_figure_words(PROFILERS_FIGURE_ACCURACY);
	return chart_draw(paper, chart, true, &options);
}

/* ---- figure 3 --------------------------------------------------------------------------------- */

static bool is_ratio(const struct profilers_overhead *row, unsigned int mode, uint8_t clock)
{
	return row->mode == mode && row->clock == clock && row->function == 0 && row->bytes != 0;
}

static enum status draw_overhead(const struct paper *paper,
				 const struct profilers_comparison *comparison, unsigned int mode,
				 uint8_t clock, struct chart *chart)
{
	struct svg_options options = { .y = { "with / without", PLOT_PLAIN, PLOT_LINEAR },
				       .x.label = "message size",
				       .has_mark = true,
				       .mark = 1,
				       .mark_label = "no difference" };
	const char *what = clock == BENCH_GPU ? "GPU time" : "host time in the call";
	char id[CHART_NAME_BYTES], title[CHART_NAME_BYTES], size[PROFILERS_SHORT_TEXT];

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
	text_format(id, sizeof(id), "figure-3-%s-%s", bench_mode_name(mode),
		    clock == BENCH_GPU ? "gpu" : "host");
	text_format(title, sizeof(title), "Time with the plugin over time without, %s, %s",
		    bench_mode_name(mode), what);
	options.id = id;
	options.title = title;
	options.description = profilers_figure_words(PROFILERS_FIGURE_OVERHEAD);
	return chart_draw(paper, chart, true, &options);
}

/* ---- figure 4 --------------------------------------------------------------------------------- */

static enum status draw_epochs(const struct paper *paper,
			       const struct profilers_comparison *comparison, struct chart *chart)
{
	struct svg_options options = {
		.id = "figure-4-time",
		.title = "Training: time of an epoch, and communication in it",
		.y = { "time", PLOT_NS, PLOT_LINEAR },
		.x.label = "plugin"
	};

	options.description = profilers_figure_words(PROFILERS_FIGURE_TRAINING);
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
	return chart_draw(paper, chart, false, &options);
}

static enum status draw_training(const struct paper *paper,
				 const struct profilers_comparison *comparison, struct chart *chart)
{
	struct svg_options options = { .id = "figure-4-calls",
				       .title = "Training: calls recorded of calls issued",
				       .y = { "recorded of issued", PLOT_PERCENT, PLOT_LINEAR },
				       .x.label = "plugin" };

	options.description = profilers_figure_words(PROFILERS_FIGURE_TRAINING);
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
	return chart_draw(paper, chart, false, &options);
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

/* Charts of a figure are numbered: by mode, and by clock or by what of the training. */
static enum status draw_one(const struct paper *paper,
			    const struct profilers_comparison *comparison,
			    enum profilers_figure which, unsigned int mode, unsigned int part)
{
	struct chart *chart = chart_new();
	enum status status;

	if (chart == NULL)
		return ERR_NO_SPACE;
	switch (which) {
	case PROFILERS_FIGURE_COMPLETE:
		status = draw_complete(paper, comparison, mode, chart);
		break;
	case PROFILERS_FIGURE_ACCURACY:
		status = draw_accuracy(paper, comparison, mode, chart);
		break;
	case PROFILERS_FIGURE_OVERHEAD:
		status = draw_overhead(paper, comparison, mode, part ? BENCH_ISSUE : BENCH_GPU,
				       chart);
		break;
	default:
		status = part ? draw_training(paper, comparison, chart)
			      : draw_epochs(paper, comparison, chart);
	}
	if (chart->left_out > 0)
		sink_format(paper->sink,
			    paper->is_text ? "%zu values more, for which there was no room: --json "
					     "has them\n"
					   : "<p>%zu values more, for which there was no room: "
					     "--json has them.</p>\n",
			    chart->left_out);
	free(chart);
	return status;
}

static enum status draw_all(const struct paper *paper,
			    const struct profilers_comparison *comparison,
			    enum profilers_figure which)
{
	bool has_modes = which != PROFILERS_FIGURE_TRAINING;
	bool has_parts = which >= PROFILERS_FIGURE_OVERHEAD;
	enum status status = OK;

	for (unsigned int part = 0; part <= has_parts; part++)
		for (unsigned int mode = 1; mode < (has_modes ? BENCH_MODES : 2); mode++)
			if (status == OK)
				status = draw_one(paper, comparison, which, mode, part);
	return status;
}

enum status profilers_figure_write(struct sink *sink, const struct profilers_comparison *comparison,
				   enum profilers_figure which)
{
	return draw_all(&(struct paper){ .sink = sink }, comparison, which);
}

enum status profilers_figure_text(struct sink *sink, const struct profilers_comparison *comparison,
				  enum profilers_figure which, unsigned int width)
{
	return draw_all(&(struct paper){ sink, true, width }, comparison, which);
}
