#include "view/crossover_text.h"

#include <math.h>

#include "common/attributes.h"
#include "common/text.h"
#include "output/table.h"
#include "view/bench_plot.h"
#include "view/crossover_lines.h"

/* What a table and a plot have room for; JSON has all. */
enum { COLUMNS_MOST = 16, PLOT_WIDTH = 100, PLOT_HEIGHT = 14 };

/* Curves of forced algorithms, as columns. */
struct columns {
	const struct crossover_curve *curves[COLUMNS_MOST];
	size_t index[COLUMNS_MOST]; /* of crossover.curves[] */
	char names[COLUMNS_MOST][CROSSOVER_NAME];
	size_t count;
	size_t left_out;
};

static struct columns columns_of(const struct crossover *one)
{
	struct columns columns = { .count = 0 };

	for (size_t i = 0; i < one->curve_count; i++) {
		const struct crossover_curve *curve = &one->curves[i];

		if (curve->is_own || curve->is_envelope)
			continue;
		if (columns.count == COLUMNS_MOST) {
			columns.left_out++;
			continue;
		}
		columns.curves[columns.count] = curve;
		columns.index[columns.count] = i;
		crossover_curve_name(columns.names[columns.count++], curve);
	}
	return columns;
}

static const struct crossover_point *point_at(const struct crossover_curve *curve, uint64_t bytes)
{
	for (size_t i = 0; i < curve->count; i++)
		if (curve->points[i].bytes == bytes)
			return &curve->points[i];
	return NULL;
}

static const char *duration(char to[static UNITS_TEXT], double ns)
{
	return ns > 0 ? units_duration(to, (uint64_t)llround(ns)) : "-";
}

/* ---- the table ------------------------------------------------------------------------------- */

/* What NCCL took is known only where the recorder was beside it. */
static void own_cell(struct report_grid *grid, const struct crossover_size *size)
{
	const struct crossover_curve chosen = { .algorithm = size->own_algorithm,
						.protocol = size->own_protocol };
	char name[CROSSOVER_NAME];

	if (!size->has_own)
		report_grid_cell(grid, "-");
	else if (size->own_algorithm == 0)
		report_grid_cell(grid, "unknown");
	else
		report_grid_cell(grid, crossover_curve_name(name, &chosen));
}

static void best_cell(struct report_grid *grid, const struct crossover *one,
		      const struct crossover_size *size)
{
	char name[CROSSOVER_NAME];

	if (size->best < one->curve_count)
		report_grid_cellf(grid, "%s %s",
				  crossover_curve_name(name, &one->curves[size->best]),
				  size->is_best_clear ? "*" : "~");
	else
		report_grid_cell(grid, "-");
}

static void add_size(struct report_grid *grid, const struct crossover *one,
		     const struct columns *columns, const struct crossover_size *size)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, units_bytes(text, size->bytes));
	best_cell(grid, one, size);
	for (size_t i = 0; i < columns->count; i++) {
		const struct crossover_point *point = point_at(columns->curves[i], size->bytes);
		bool is_best = columns->index[i] == size->best;
		const char *mark = !is_best ? "  " : size->is_best_clear ? " *" : " ~";

		if (point == NULL || point->median_ns <= 0)
			report_grid_cell(grid, "-");
		else
			report_grid_cellf(
				grid, "%s%s", duration(text, point->median_ns),
				point->wrong > 0 && point->wrong != BENCH_UNCHECKED ? " !" : mark);
	}
	own_cell(grid, size);
	report_grid_cell(grid, size->has_own ? duration(text, size->own_ns) : "-");
	if (size->regret > 0)
		report_grid_cellf(grid, "%.2f%s", size->regret, size->is_regret_clear ? " *" : "");
	else
		report_grid_cell(grid, "-");
}

static enum status write_table(struct sink *sink, const struct crossover *one,
			       const struct columns *columns, unsigned int width)
{
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	report_grid_column(&grid, "SIZE", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "FASTEST", TABLE_LEFT, 0, 0);
	for (size_t i = 0; i < columns->count; i++)
		report_grid_column(&grid, columns->names[i], TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "NCCL TOOK", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "ITS TIME", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "OF BEST", TABLE_LEFT, 0, 0);
	for (size_t i = 0; i < one->size_count; i++)
		add_size(&grid, one, columns, &one->sizes[i]);
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	table_wrap(sink,
		   "* fastest, ~ fastest as measured but not beyond doubt, ! wrong results; "
		   "OF BEST: NCCL's time divided by that of the fastest, * clearly slower",
		   "", 0, width);
	if (columns->left_out > 0)
		sink_format(sink, "(%zu more are not shown: --json has all)\n", columns->left_out);
	return status;
}

/* ---- the plot -------------------------------------------------------------------------------- */

static enum status write_plot(struct sink *sink, const struct crossover_view *view,
			      const struct crossover *one,
			      const struct crossover_text_options *options)
{
	const struct plot_options style = {
		.x = { "message size", PLOT_BYTES, PLOT_LOG },
		.y = { "time", PLOT_NS, PLOT_LOG },
		.width = options->width == 0 || options->width > PLOT_WIDTH ? PLOT_WIDTH
									    : options->width,
		.height = PLOT_HEIGHT,
		.is_ascii = options->is_ascii,
	};
	struct crossover_lines lines;
	enum status status = crossover_lines_make(&lines, view, one, CROSSOVER_LINES_TIME);

	if (status != OK)
		return status;
	sink_byte(sink, '\n');
	status = bench_plot_text(sink, lines.series, lines.count, &style);
	crossover_lines_release(&lines);
	return status;
}

/* ---- the model ------------------------------------------------------------------------------- */

static void model_row(struct report_grid *grid, const struct crossover_view *view,
		      const struct crossover *one, const struct columns *columns, uint64_t bytes)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, units_bytes(text, bytes));
	for (size_t i = 0; i < columns->count; i++) {
		const struct crossover_point *point = point_at(columns->curves[i], bytes);
		double ns = crossover_expected_ns(view, one, columns->curves[i], bytes);

		if (ns <= 0 || point == NULL || point->median_ns <= 0)
			report_grid_cell(grid, "-");
		else
			report_grid_cellf(grid, "%s %+.0f %%", duration(text, ns),
					  (ns / point->median_ns - 1) * 100);
	}
}

static void write_errors(struct sink *sink, const struct crossover_view *view,
			 const struct crossover *one, const struct columns *columns,
			 unsigned int width)
{
	for (size_t i = 0; i < columns->count; i++) {
		struct crossover_error error;
		char text[200], at[UNITS_TEXT];

		if (!crossover_error_of(view, one, columns->curves[i], &error))
			continue;
		text_format(text, sizeof(text),
			    "%s: off by %.0f %% in the median, %.0f %% at worst (%s)",
			    columns->names[i], error.median * 100, error.worst * 100,
			    units_bytes(at, error.worst_bytes));
		table_wrap(sink, text, "- ", 2, width);
	}
}

static enum status write_model(struct sink *sink, const struct crossover_view *view,
			       const struct crossover *one, const struct columns *columns,
			       unsigned int width)
{
	struct report_grid grid;
	enum status status;

	sink_text(sink, "\nTHE MODEL BESIDE IT\n");
	if (view->model == NULL) {
		table_wrap(sink,
			   view->why_no_model != NULL ? view->why_no_model : "nothing was fitted",
			   "- ", 2, width);
		return OK;
	}
	report_grid_init(&grid);
	report_grid_column(&grid, "SIZE", TABLE_RIGHT, 0, 0);
	for (size_t i = 0; i < columns->count; i++)
		report_grid_column(&grid, columns->names[i], TABLE_RIGHT, 0, 1);
	for (size_t i = 0; i < one->size_count; i++)
		model_row(&grid, view, one, columns, one->sizes[i].bytes);
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	write_errors(sink, view, one, columns, width);
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Algorithms against each other first, then their protocols. */
static void write_crossings(struct sink *sink, const struct crossover *one, unsigned int width)
{
	char text[CROSSOVER_SENTENCE];

	if (one->crossing_count == 0)
		return;
	sink_text(sink, "\nWHERE THEY CROSS\n");
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < one->crossing_count; i++)
			if (crossover_is_main(one, &one->crossings[i]) == (pass == 0) &&
			    one->crossings[i].answer != CROSSOVER_NO_DATA)
				table_wrap(sink, crossover_sentence(text, one, &one->crossings[i]),
					   "- ", 2, width);
}

static void write_advice(struct sink *sink, const struct crossover *one, unsigned int width)
{
	if (one->advice_count == 0)
		return;
	sink_text(sink, "\nADVICE\n");
	for (size_t i = 0; i < one->advice_count; i++)
		table_wrap(sink, one->advice[i].text, "- ", 2, width);
}

static enum status write_one(struct sink *sink, const struct crossover_view *view,
			     const struct crossover *one,
			     const struct crossover_text_options *options)
{
	struct columns columns = columns_of(one);
	char title[CROSSOVER_TITLE];
	enum status status;

	sink_format(sink, "%s\n\n", crossover_title(title, one));
	status = write_table(sink, one, &columns, options->width);
	if (status == OK && options->has_plot)
		status = write_plot(sink, view, one, options);
	write_crossings(sink, one, options->width);
	write_advice(sink, one, options->width);
	if (status == OK)
		status = write_model(sink, view, one, &columns, options->width);
	return status;
}

static void write_notes(struct sink *sink, const struct crossover_view *view, unsigned int width)
{
	const struct bench_run *run = view->run;

	if (run->note_count > 0 || view->set->unusable > 0)
		sink_text(sink, "\nNOTES\n");
	for (size_t i = 0; i < run->note_count; i++)
		table_wrap(sink, run->notes[i], "- ", 2, width);
	if (run->notes_lost > 0)
		sink_format(sink, "- and %zu more notes\n", run->notes_lost);
	if (view->set->unusable > 0)
		sink_format(sink, "- %zu %s without single times: not used\n", view->set->unusable,
			    text_which(view->set->unusable, "measurement", "measurements"));
}

enum status crossover_text(struct sink *sink, const struct crossover_view *view,
			   const struct crossover_text_options *options)
{
	enum status status = OK;

	for (size_t i = 0; i < view->set->count && status == OK; i++) {
		if (i > 0)
			sink_byte(sink, '\n');
		status = write_one(sink, view, &view->set->all[i], options);
	}
	write_notes(sink, view, options->width);
	return status == OK ? sink->status : status;
}
