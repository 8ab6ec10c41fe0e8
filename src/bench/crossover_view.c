/* A crossover as text, JSON and an HTML page. */
#include "bench/crossover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "bench/bench_plot.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "output/json.h"
#include "output/table.h"

/* "AllReduce, float32, sum, blocking, 8 ranks"; returns `to`. */
enum { CROSSOVER_TITLE = 128 };

/* "Tree below 24 KiB, Ring above (crossing between 16 KiB and 64 KiB); ..."; returns `to`. */
enum { CROSSOVER_SENTENCE = 320 };

/* Error of the model on a curve: median and maximum of |expected / measured - 1|. False: no model. */
struct crossover_error {
	double median;
	double worst;
	uint64_t worst_bytes;
	size_t points;
};

/* Curves of a crossover as chart series, for the terminal and the page. */

enum crossover_lines_kind {
	CROSSOVER_LINES_TIME =
		0, /* every forced curve and NCCL's choice; if too many: the best protocol of each */
	CROSSOVER_LINES_BUSBW = 1, /* the same, in GB/s */
	CROSSOVER_LINES_MODEL =
		2, /* forced curves, with the model's prediction of each as a line */
	CROSSOVER_LINES_REGRET = 3, /* NCCL's time divided by the best time */
};

struct crossover_lines {
	struct plot_series series[PLOT_SERIES_MAX];
	char names[PLOT_SERIES_MAX][CROSSOVER_NAME + 16];
	size_t count;
	size_t left_out; /* curves that did not fit */
	double *values;	 /* of all series */
	size_t used;
};

static const char *crossover_title(char to[static CROSSOVER_TITLE], const struct crossover *one)
{
	char redop[24] = "", root[32] = "";

	if (one->redop != BENCH_NO_REDOP)
		text_format(redop, sizeof(redop), ", %s", bench_redop_name(one->redop));
	if (one->root >= 0)
		text_format(root, sizeof(root), ", root %d", (int)one->root);
	text_format(to, CROSSOVER_TITLE, "%s, %s%s%s, %s%s, %d %s", op_function_name(one->function),
		    op_datatype_name(one->datatype), redop, root, bench_mode_name(one->mode),
		    one->is_in_place ? ", in place" : "", (int)one->nranks,
		    text_which((uint64_t)one->nranks, "rank", "ranks"));
	return to;
}

/* "; the largest difference is 1.80x, at 64 MiB"; "" if no difference is clear. */
static void say_most(char *to, size_t size, const struct crossover_crossing *crossing)
{
	char at[UNITS_TEXT];

	to[0] = '\0';
	if (crossing->most_bytes > 0 && crossing->most_ratio > 1)
		text_format(to, size, "; the largest difference is %.2fx, at %s",
			    crossing->most_ratio, units_bytes(at, crossing->most_bytes));
}

/* " (crossing between 16 KiB and 64 KiB)"; "" if the interval is not wider than the precision shown. */
static void say_between(char *to, size_t size, const struct crossover_crossing *crossing)
{
	char low[UNITS_TEXT], high[UNITS_TEXT];

	units_bytes(low, (uint64_t)llround(crossing->low_bytes));
	units_bytes(high, (uint64_t)llround(crossing->high_bytes));
	to[0] = '\0';
	if (crossing->answer == CROSSOVER_CROSSES && strcmp(low, high) != 0)
		text_format(to, size, " (crossing between %s and %s)", low, high);
}

static const char *crossover_sentence(char to[static CROSSOVER_SENTENCE],
				      const struct crossover *one,
				      const struct crossover_crossing *crossing)
{
	char first[CROSSOVER_NAME], second[CROSSOVER_NAME], most[96], between[112];
	char at[UNITS_TEXT];

	crossover_curve_name(first, &one->curves[crossing->first]);
	crossover_curve_name(second, &one->curves[crossing->second]);
	say_most(most, sizeof(most), crossing);
	say_between(between, sizeof(between), crossing);
	switch (crossing->answer) {
	case CROSSOVER_CROSSES:
		text_format(to, CROSSOVER_SENTENCE, "%s below %s, %s above%s%s%s", first,
			    units_bytes(at, (uint64_t)llround(crossing->bytes)), second, between,
			    crossing->is_repeated ? "; they cross more than once" : "", most);
		break;
	case CROSSOVER_FIRST_WINS:
		text_format(to, CROSSOVER_SENTENCE, "%s is never slower than %s%s", first, second,
			    most);
		break;
	case CROSSOVER_SECOND_WINS:
		text_format(to, CROSSOVER_SENTENCE, "%s is never slower than %s%s", second, first,
			    most);
		break;
	case CROSSOVER_ALIKE:
		text_format(to, CROSSOVER_SENTENCE, "%s and %s are equally fast at all sizes",
			    first, second);
		break;
	default:
		text_format(to, CROSSOVER_SENTENCE, "%s and %s have fewer than two sizes in common",
			    first, second);
		break;
	}
	return to;
}

/* Whether it compares algorithms, each with its best protocol. Those come first. */
static bool crossover_is_main(const struct crossover *one,
			      const struct crossover_crossing *crossing)
{
	return one->curves[crossing->first].is_envelope &&
	       one->curves[crossing->second].is_envelope;
}

/* ---- the model ------------------------------------------------------------------------------- */

static bool is_of(const struct bench_cell *cell, const struct crossover *one,
		  const struct crossover_curve *curve, uint64_t bytes)
{
	return cell->function == one->function && cell->datatype == one->datatype &&
	       cell->redop == one->redop && cell->mode == one->mode &&
	       cell->is_in_place == one->is_in_place && cell->root == one->root &&
	       cell->bytes == bytes && cell->peers == NULL && cell->algorithm == curve->algorithm &&
	       cell->protocol == curve->protocol;
}

/* The cell of the run for a point of a curve; NULL: none. */
static const struct bench_cell *crossover_cell(const struct bench_run *run,
					       const struct crossover *one,
					       const struct crossover_curve *curve, uint64_t bytes)
{
	/* An envelope combines several curves and has no cells of its own. */
	for (size_t i = 0; i < run->cell_count && !curve->is_envelope; i++)
		if (is_of(&run->cells[i], one, curve, bytes))
			return &run->cells[i];
	return NULL;
}

/* The model's prediction for a point; 0: none. */
static double crossover_expected_ns(const struct crossover_view *view, const struct crossover *one,
				    const struct crossover_curve *curve, uint64_t bytes)
{
	const struct bench_cell *cell = crossover_cell(view->run, one, curve, bytes);
	struct cost_answer answer;

	if (view->model == NULL || cell == NULL || curve->is_own)
		return 0;
	return cost_predict_cell(view->model, view->run, cell, &answer) ? answer.time_ns : 0;
}

static bool crossover_error_of(const struct crossover_view *view, const struct crossover *one,
			       const struct crossover_curve *curve, struct crossover_error *error)
{
	double *errors = calloc(curve->count + 1, sizeof(*errors));

	*error = (struct crossover_error){ 0 };
	for (size_t i = 0; errors != NULL && i < curve->count; i++) {
		const struct crossover_point *point = &curve->points[i];
		double expected = crossover_expected_ns(view, one, curve, point->bytes);

		if (expected <= 0 || point->median_ns <= 0)
			continue;
		errors[error->points] = fabs(expected / point->median_ns - 1);
		if (error->worst_bytes == 0 || errors[error->points] > error->worst) {
			error->worst = errors[error->points];
			error->worst_bytes = point->bytes;
		}
		error->points++;
	}
	if (error->points > 0) {
		stats_sort(errors, error->points);
		error->median = stats_sorted_median(errors, error->points);
	}
	free(errors);
	return error->points > 0;
}

static size_t forced_curves(const struct crossover *one)
{
	size_t count = 0;

	for (size_t i = 0; i < one->curve_count; i++)
		count += crossover_is_forced(&one->curves[i]);
	return count;
}

/* All if they can be distinguished, otherwise the best of each algorithm. */
static bool is_shown(const struct crossover *one, const struct crossover_curve *curve)
{
	if (curve->is_own)
		return true;
	return forced_curves(one) < PLOT_SERIES_MAX ? crossover_is_forced(curve)
						    : curve->is_envelope;
}

/* The next series with room for every size; NULL: too many. */
static struct plot_series *lines_add_series(struct crossover_lines *lines,
					    const struct crossover *one)
{
	struct plot_series *series = &lines->series[lines->count];

	if (lines->count == PLOT_SERIES_MAX) {
		lines->left_out++;
		return NULL;
	}
	*series = (struct plot_series){
		.name = lines->names[lines->count],
		.xs = lines->values + lines->used,
		.ys = lines->values + lines->used + one->size_count,
	};
	lines->used += 2 * one->size_count;
	lines->count++;
	return series;
}

static void add_point(struct crossover_lines *lines, struct plot_series *series, double x, double y)
{
	/* The series is const for its readers. */
	lines->values[(size_t)(series->xs - lines->values) + series->count] = x;
	lines->values[(size_t)(series->ys - lines->values) + series->count] = y;
	series->count++;
}

static double line_value(const struct crossover *one, const struct crossover_point *point,
			 enum crossover_lines_kind kind)
{
	const struct bench_cell cell = { .function = one->function,
					 .nranks = one->nranks,
					 .bytes = point->bytes };

	return kind == CROSSOVER_LINES_BUSBW ? bench_busbw(&cell, point->median_ns)
					     : point->median_ns;
}

static void add_curve(struct crossover_lines *lines, const struct crossover *one,
		      const struct crossover_curve *curve, enum crossover_lines_kind kind)
{
	struct plot_series *series = lines_add_series(lines, one);

	if (series == NULL)
		return;
	crossover_curve_name(lines->names[lines->count - 1], curve);
	for (size_t i = 0; i < curve->count && i < one->size_count; i++)
		add_point(lines, series, (double)curve->points[i].bytes,
			  line_value(one, &curve->points[i], kind));
}

/* In the colour of the measured curve, series `like`. */
static void add_model(struct crossover_lines *lines, const struct crossover_view *view,
		      const struct crossover *one, const struct crossover_curve *curve, size_t like)
{
	struct plot_series *series = lines_add_series(lines, one);
	char name[CROSSOVER_NAME];

	if (series == NULL)
		return;
	text_format(lines->names[lines->count - 1], sizeof(lines->names[0]), "%s, model",
		    crossover_curve_name(name, curve));
	series->is_line_only = true;
	series->like = like + 1;
	for (size_t i = 0; i < curve->count && i < one->size_count; i++) {
		uint64_t bytes = curve->points[i].bytes;
		double ns = crossover_expected_ns(view, one, curve, bytes);

		if (ns > 0)
			add_point(lines, series, (double)bytes, ns);
	}
}

static void add_regret(struct crossover_lines *lines, const struct crossover *one)
{
	struct plot_series *series = lines_add_series(lines, one);

	if (series == NULL)
		return;
	text_copy(lines->names[0], sizeof(lines->names[0]), "NCCL's time / fastest");
	for (size_t i = 0; i < one->size_count; i++)
		if (one->sizes[i].regret > 0)
			add_point(lines, series, (double)one->sizes[i].bytes, one->sizes[i].regret);
}

/* Measured curves first, then their models in the same order: a curve has its model, or both are omitted. */
static void add_models(struct crossover_lines *lines, const struct crossover_view *view,
		       const struct crossover *one)
{
	size_t like = 0;

	for (size_t i = 0; i < one->curve_count; i++) {
		if (!crossover_is_forced(&one->curves[i]))
			continue;
		if (lines->count == PLOT_SERIES_MAX / 2)
			lines->left_out++;
		else
			add_curve(lines, one, &one->curves[i], CROSSOVER_LINES_MODEL);
	}
	for (size_t i = 0, count = lines->count; i < one->curve_count && like < count; i++)
		if (crossover_is_forced(&one->curves[i]))
			add_model(lines, view, one, &one->curves[i], like++);
}

/* On success the caller releases; ERR_NO_SPACE. */
static enum status crossover_lines_make(struct crossover_lines *lines,
					const struct crossover_view *view,
					const struct crossover *one, enum crossover_lines_kind kind)
{
	*lines = (struct crossover_lines){ .count = 0 };
	lines->values = calloc(PLOT_SERIES_MAX * 2 * (one->size_count + 1), sizeof(*lines->values));
	if (lines->values == NULL)
		return ERR_NO_SPACE;
	if (kind == CROSSOVER_LINES_REGRET) {
		add_regret(lines, one);
		return OK;
	}
	if (kind == CROSSOVER_LINES_MODEL) {
		add_models(lines, view, one);
		return OK;
	}
	for (size_t i = 0; i < one->curve_count; i++)
		if (is_shown(one, &one->curves[i]))
			add_curve(lines, one, &one->curves[i], kind);
	return OK;
}

static void crossover_lines_release(struct crossover_lines *lines)
{
	free(lines->values);
	*lines = (struct crossover_lines){ .count = 0 };
}

/* Limits of the table and the plot; JSON has everything. */
enum { COLUMNS_MOST = 16, PLOT_WIDTH = 100, PLOT_HEIGHT = 14 };

/* Curves of forced algorithms, as columns. */
struct columns {
	const struct crossover_curve *curves[COLUMNS_MOST];
	size_t index[COLUMNS_MOST]; /* of crossover.curves[] */
	char names[COLUMNS_MOST][CROSSOVER_NAME];
	size_t count;
	size_t left_out;
};

static struct columns table_columns(const struct crossover *one)
{
	struct columns columns = { .count = 0 };

	for (size_t i = 0; i < one->curve_count; i++) {
		const struct crossover_curve *curve = &one->curves[i];

		if (!crossover_is_forced(curve))
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

static const struct crossover_point *curve_point_at(const struct crossover_curve *curve,
						    uint64_t bytes)
{
	for (size_t i = 0; i < curve->count; i++)
		if (curve->points[i].bytes == bytes)
			return &curve->points[i];
	return NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* NCCL's choice is only known if the plugin was loaded. */
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
		const struct crossover_point *point =
			curve_point_at(columns->curves[i], size->bytes);
		bool is_best = columns->index[i] == size->best;
		const char *mark = !is_best ? "  " : size->is_best_clear ? " *" : " ~";

		if (point == NULL || point->median_ns <= 0)
			report_grid_cell(grid, "-");
		else
			report_grid_cellf(
				grid, "%s%s", bench_duration(text, point->median_ns),
				point->wrong > 0 && point->wrong != BENCH_UNCHECKED ? " !" : mark);
	}
	own_cell(grid, size);
	report_grid_cell(grid, size->has_own ? bench_duration(text, size->own_ns) : "-");
	if (size->regret > 0)
		report_grid_cellf(grid, "%.2f%s", size->regret, size->is_regret_clear ? " *" : "");
	else
		report_grid_cell(grid, "-");
}

static enum status text_write_table(struct sink *sink, const struct crossover *one,
				    const struct columns *columns, unsigned int width)
{
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	report_grid_column(&grid, "SIZE", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "FASTEST", TABLE_LEFT, 0, 0);
	for (size_t i = 0; i < columns->count; i++)
		report_grid_column(&grid, columns->names[i], TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "NCCL CHOSE", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "NCCL TIME", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "OF BEST", TABLE_LEFT, 0, 0);
	for (size_t i = 0; i < one->size_count; i++)
		add_size(&grid, one, columns, &one->sizes[i]);
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	table_wrap(sink,
		   "* fastest, ~ fastest but not beyond noise, ! wrong results; OF BEST: NCCL's "
		   "time divided by that of the fastest, * clearly slower",
		   "", 0, width);
	if (columns->left_out > 0)
		sink_format(sink, "(%zu more are not shown: use --json to get all)\n",
			    columns->left_out);
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
		const struct crossover_point *point = curve_point_at(columns->curves[i], bytes);
		double ns = crossover_expected_ns(view, one, columns->curves[i], bytes);

		if (ns <= 0 || point == NULL || point->median_ns <= 0)
			report_grid_cell(grid, "-");
		else
			report_grid_cellf(grid, "%s %+.0f%%", bench_duration(text, ns),
					  (ns / point->median_ns - 1) * 100);
	}
}

static void text_write_errors(struct sink *sink, const struct crossover_view *view,
			      const struct crossover *one, const struct columns *columns,
			      unsigned int width)
{
	for (size_t i = 0; i < columns->count; i++) {
		struct crossover_error error;
		char text[200], at[UNITS_TEXT];

		if (!crossover_error_of(view, one, columns->curves[i], &error))
			continue;
		text_format(text, sizeof(text), "%s: median error %.0f%%, worst %.0f%% (%s)",
			    columns->names[i], error.median * 100, error.worst * 100,
			    units_bytes(at, error.worst_bytes));
		table_wrap(sink, text, "- ", 2, width);
	}
}

static enum status text_write_model(struct sink *sink, const struct crossover_view *view,
				    const struct crossover *one, const struct columns *columns,
				    unsigned int width)
{
	struct report_grid grid;
	enum status status;

	if (columns->count == 0)
		return OK;
	sink_text(sink, "\nMODEL\n");
	if (view->model == NULL) {
		table_wrap(sink,
			   view->why_no_model != NULL ? view->why_no_model
						      : "no model could be "
							"fitted",
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
	text_write_errors(sink, view, one, columns, width);
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Algorithms first, then their protocols. */
static void text_write_crossings(struct sink *sink, const struct crossover *one, unsigned int width)
{
	char text[CROSSOVER_SENTENCE];

	if (one->crossing_count == 0)
		return;
	sink_text(sink, "\nCROSSINGS\n");
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < one->crossing_count; i++)
			if (crossover_is_main(one, &one->crossings[i]) == (pass == 0) &&
			    one->crossings[i].answer != CROSSOVER_NO_DATA)
				table_wrap(sink, crossover_sentence(text, one, &one->crossings[i]),
					   "- ", 2, width);
}

static void text_write_advice(struct sink *sink, const struct crossover *one, unsigned int width)
{
	if (one->advice_count == 0)
		return;
	sink_text(sink, "\nADVICE\n");
	for (size_t i = 0; i < one->advice_count; i++)
		table_wrap(sink, one->advice[i].text, "- ", 2, width);
}

static enum status text_write_crossover(struct sink *sink, const struct crossover_view *view,
					const struct crossover *one,
					const struct crossover_text_options *options)
{
	struct columns columns = table_columns(one);
	char title[CROSSOVER_TITLE];
	enum status status;

	sink_format(sink, "%s\n\n", crossover_title(title, one));
	status = text_write_table(sink, one, &columns, options->width);
	if (status == OK && options->has_plot)
		status = write_plot(sink, view, one, options);
	text_write_crossings(sink, one, options->width);
	text_write_advice(sink, one, options->width);
	if (status == OK)
		status = text_write_model(sink, view, one, &columns, options->width);
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
		status = text_write_crossover(sink, view, &view->set->all[i], options);
	}
	write_notes(sink, view, options->width);
	return status == OK ? sink->status : status;
}

static const char *algorithm_name(uint8_t algorithm)
{
	return algorithm != 0 ? op_algorithm_name(algorithm) : NULL;
}

static const char *protocol_name(uint8_t protocol)
{
	return protocol != 0 ? op_protocol_name(protocol) : NULL;
}

static void put_curve_name(struct json *json, const char *key, const struct crossover *one,
			   size_t index)
{
	char name[CROSSOVER_NAME];

	json_put_string(json, key,
			index < one->curve_count ? crossover_curve_name(name, &one->curves[index])
						 : NULL);
}

static void put_points(struct json *json, const struct crossover_view *view,
		       const struct crossover *one, const struct crossover_curve *curve)
{
	json_put_array(json, "points");
	for (size_t i = 0; i < curve->count; i++) {
		const struct crossover_point *point = &curve->points[i];

		json_object(json);
		json_put_unsigned(json, "bytes", point->bytes);
		bench_json_known(json, "median_ns", point->median_ns);
		bench_json_known(json, "low_ns", point->low_ns);
		bench_json_known(json, "high_ns", point->high_ns);
		json_put_unsigned(json, "calls", point->calls);
		json_put_known(json, "wrong", point->wrong != BENCH_UNCHECKED, point->wrong);
		json_put_string(json, "chosen_algorithm", algorithm_name(point->chosen_algorithm));
		json_put_string(json, "chosen_protocol", protocol_name(point->chosen_protocol));
		bench_json_known(json, "model_ns",
				 crossover_expected_ns(view, one, curve, point->bytes));
		json_end(json);
	}
	json_end(json);
}

static void put_curves(struct json *json, const struct crossover_view *view,
		       const struct crossover *one)
{
	json_put_array(json, "curves");
	for (size_t i = 0; i < one->curve_count; i++) {
		const struct crossover_curve *curve = &one->curves[i];
		struct crossover_error error = { 0 };
		bool has_error = crossover_error_of(view, one, curve, &error);

		json_object(json);
		put_curve_name(json, "name", one, i);
		json_put_string(json, "algorithm", algorithm_name(curve->algorithm));
		json_put_string(json, "protocol", protocol_name(curve->protocol));
		json_put_bool(json, "is_own", curve->is_own);
		json_put_bool(json, "is_envelope", curve->is_envelope);
		json_put_known_double(json, "model_median_error", has_error, error.median);
		json_put_known_double(json, "model_worst_error", has_error, error.worst);
		put_points(json, view, one, curve);
		json_end(json);
	}
	json_end(json);
}

static void put_sizes(struct json *json, const struct crossover *one)
{
	json_put_array(json, "sizes");
	for (size_t i = 0; i < one->size_count; i++) {
		const struct crossover_size *size = &one->sizes[i];

		json_object(json);
		json_put_unsigned(json, "bytes", size->bytes);
		put_curve_name(json, "best", one, size->best);
		json_put_bool(json, "is_best_clear", size->is_best_clear);
		bench_json_known(json, "best_ns", size->best_ns);
		put_curve_name(json, "second", one, size->second);
		bench_json_known(json, "own_ns", size->has_own ? size->own_ns : 0);
		json_put_string(json, "own_algorithm", algorithm_name(size->own_algorithm));
		json_put_string(json, "own_protocol", protocol_name(size->own_protocol));
		bench_json_known(json, "regret", size->regret);
		bench_json_known(json, "regret_low", size->regret_low);
		bench_json_known(json, "regret_high", size->regret_high);
		json_put_bool(json, "is_regret_clear", size->is_regret_clear);
		json_end(json);
	}
	json_end(json);
}

static const char *answer_name(enum crossover_answer answer)
{
	switch (answer) {
	case CROSSOVER_CROSSES:
		return "crosses";
	case CROSSOVER_FIRST_WINS:
		return "first_wins";
	case CROSSOVER_SECOND_WINS:
		return "second_wins";
	case CROSSOVER_ALIKE:
		return "alike";
	default:
		return "no_data";
	}
}

static void put_crossings(struct json *json, const struct crossover *one)
{
	char text[CROSSOVER_SENTENCE];

	json_put_array(json, "crossings");
	for (size_t i = 0; i < one->crossing_count; i++) {
		const struct crossover_crossing *crossing = &one->crossings[i];
		bool is_crossing = crossing->answer == CROSSOVER_CROSSES;

		json_object(json);
		put_curve_name(json, "first", one, crossing->first);
		put_curve_name(json, "second", one, crossing->second);
		json_put_string(json, "answer", answer_name(crossing->answer));
		bench_json_known(json, "bytes", is_crossing ? crossing->bytes : 0);
		bench_json_known(json, "low_bytes", is_crossing ? crossing->low_bytes : 0);
		bench_json_known(json, "high_bytes", is_crossing ? crossing->high_bytes : 0);
		json_put_bool(json, "is_repeated", crossing->is_repeated);
		bench_json_known(json, "most_ratio", crossing->most_ratio);
		bench_json_known(json, "most_bytes", (double)crossing->most_bytes);
		json_put_string(json, "text", crossover_sentence(text, one, crossing));
		json_end(json);
	}
	json_end(json);
}

static const char *advice_name(enum crossover_advice_kind kind)
{
	switch (kind) {
	case CROSSOVER_LEAVE:
		return "leave";
	case CROSSOVER_CHANGE:
		return "change";
	case CROSSOVER_CAUTION:
		return "caution";
	default:
		return "unsure";
	}
}

static void put_advice(struct json *json, const struct crossover *one)
{
	json_put_array(json, "advice");
	for (size_t i = 0; i < one->advice_count; i++) {
		const struct crossover_advice *advice = &one->advice[i];
		bool is_change = advice->kind == CROSSOVER_CHANGE;

		json_object(json);
		json_put_string(json, "kind", advice_name(advice->kind));
		put_curve_name(json, "curve", one, is_change ? advice->curve : SIZE_MAX);
		bench_json_known(json, "from_bytes", is_change ? (double)advice->from_bytes : 0);
		bench_json_known(json, "to_bytes", is_change ? (double)advice->to_bytes : 0);
		bench_json_known(json, "ratio", is_change ? advice->ratio : 0);
		bench_json_known(json, "ratio_low", is_change ? advice->ratio_low : 0);
		json_put_string(json, "text", advice->text);
		json_end(json);
	}
	json_end(json);
}

static void put_one(struct json *json, const struct crossover_view *view,
		    const struct crossover *one)
{
	json_object(json);
	json_put_string(json, "function", op_function_name(one->function));
	json_put_string(json, "datatype", op_datatype_name(one->datatype));
	json_put_string(json, "redop", bench_redop_name(one->redop));
	json_put_string(json, "mode", bench_mode_name(one->mode));
	json_put_bool(json, "in_place", one->is_in_place);
	json_put_natural_or_null(json, "root", one->root);
	json_put_signed(json, "ranks", one->nranks);
	put_curves(json, view, one);
	put_sizes(json, one);
	put_crossings(json, one);
	put_advice(json, one);
	json_put_double(json, "worst_regret", one->worst_regret);
	json_end(json);
}

enum status crossover_json(struct sink *sink, const struct crossover_view *view)
{
	enum status status;
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-crossover");
	json_put_unsigned(&json, "version", 1);
	json_put_array(&json, "crossovers");
	for (size_t i = 0; i < view->set->count; i++)
		put_one(&json, view, &view->set->all[i]);
	json_end(&json);
	json_put_unsigned(&json, "unusable", view->set->unusable);
	json_key(&json, "run");
	status = bench_json_put(&json, view->run);
	json_end(&json);
	json_line(&json);
	return status != OK ? status : json_status(&json);
}

enum { ID_TEXT = 40 };

/* ---- charts ---------------------------------------------------------------------------------- */

struct chart {
	enum crossover_lines_kind kind;
	const char *id;
	const char *title;
	const char *description;
	struct plot_axis y;
	bool has_mark;
};

static const struct chart charts[] = {
	{ CROSSOVER_LINES_TIME,
	  "time",
	  "Time per call by message size",
	  "Median time per call for each algorithm and protocol, and for NCCL's choice, by message "
	  "size; both axes are logarithmic. Where two lines cross, another algorithm becomes "
	  "faster.",
	  { "median time", PLOT_NS, PLOT_LOG },
	  false },
	{ CROSSOVER_LINES_BUSBW,
	  "busbw",
	  "Bus bandwidth by message size",
	  "The same medians as bus bandwidth.",
	  { "bus bandwidth", PLOT_GBPS, PLOT_LOG },
	  false },
	{ CROSSOVER_LINES_REGRET,
	  "regret",
	  "Cost of NCCL's choice",
	  "NCCL's time divided by the time of the fastest algorithm and protocol at each size; 1 "
	  "is optimal.",
	  { "relative to the fastest", PLOT_PLAIN, PLOT_LINEAR },
	  true },
	{ CROSSOVER_LINES_MODEL,
	  "model",
	  "Measured and modeled",
	  "Marks and solid lines are measured medians; dotted lines of the same colour are "
	  "predictions of the fitted model.",
	  { "median time", PLOT_NS, PLOT_LOG },
	  false },
};

static enum status write_chart(struct sink *sink, const struct crossover_view *view, size_t which,
			       const struct chart *chart)
{
	const struct crossover *one = &view->set->all[which];
	struct crossover_lines lines;
	char id[ID_TEXT];
	const struct svg_options style = {
		.id = id,
		.title = chart->title,
		.description = chart->description,
		.x = { "message size", PLOT_BYTES, PLOT_LOG },
		.y = chart->y,
		.width = 800,
		.height = chart->has_mark ? 260 : 420,
		.has_mark = chart->has_mark,
		.mark = 1,
		.mark_label = chart->has_mark ? "equal to the fastest" : NULL,
	};
	enum status status = crossover_lines_make(&lines, view, one, chart->kind);

	if (status != OK)
		return status;
	text_format(id, sizeof(id), "%s-%zu", chart->id, which);
	bench_page_chart(sink, chart->title);
	status = bench_svg_lines(sink, lines.series, lines.count, &style);
	bench_page_chart_end(sink);
	if (lines.left_out > 0)
		bench_page_paragraph(sink, "%zu more are not drawn; the table has them.",
				     lines.left_out);
	crossover_lines_release(&lines);
	return status;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void write_point(struct sink *sink, const struct crossover *one,
			const struct crossover_curve *curve, const struct crossover_size *size)
{
	const struct crossover_point *point = curve_point_at(curve, size->bytes);
	bool is_best = size->best < one->curve_count && &one->curves[size->best] == curve;
	char text[UNITS_TEXT];

	if (point == NULL || point->median_ns <= 0)
		bench_page_cell(sink, PAGE_NUMBER, "-");
	else if (point->wrong > 0 && point->wrong != BENCH_UNCHECKED)
		bench_page_cell(sink, PAGE_BAD, "%s, wrong",
				bench_duration(text, point->median_ns));
	else
		bench_page_cell(sink, is_best ? PAGE_BEST : PAGE_NUMBER, "%s%s",
				bench_duration(text, point->median_ns),
				!is_best	      ? ""
				: size->is_best_clear ? " *"
						      : " ~");
}

static void write_own(struct sink *sink, const struct crossover_size *size)
{
	const struct crossover_curve chosen = { .algorithm = size->own_algorithm,
						.protocol = size->own_protocol };
	char name[CROSSOVER_NAME], text[UNITS_TEXT];

	bench_page_cell(sink, PAGE_WORDS, "%s",
			!size->has_own		   ? "-"
			: size->own_algorithm == 0 ? "unknown"
						   : crossover_curve_name(name, &chosen));
	bench_page_cell(sink, PAGE_NUMBER, "%s",
			bench_duration(text, size->has_own ? size->own_ns : 0));
	if (size->regret > 0)
		bench_page_cell(sink, size->is_regret_clear ? PAGE_BAD : PAGE_NUMBER, "%.2f",
				size->regret);
	else
		bench_page_cell(sink, PAGE_NUMBER, "-");
}

static void begin_table(struct sink *sink, const struct crossover *one, const char *caption)
{
	char name[CROSSOVER_NAME];

	bench_page_table(sink, caption);
	bench_page_head(sink, "Size", true);
	for (size_t i = 0; i < one->curve_count; i++)
		if (crossover_is_forced(&one->curves[i]))
			bench_page_head(sink, crossover_curve_name(name, &one->curves[i]), true);
}

static void html_write_table(struct sink *sink, const struct crossover *one)
{
	char text[UNITS_TEXT];

	begin_table(sink, one,
		    "Median times; * fastest, ~ fastest but not beyond noise; of best: NCCL's time "
		    "divided by that of the fastest");
	bench_page_head(sink, "NCCL chose", false);
	bench_page_head(sink, "NCCL time", true);
	bench_page_head(sink, "Of best", true);
	for (size_t s = 0; s < one->size_count; s++) {
		bench_page_row(sink);
		bench_page_cell(sink, PAGE_NUMBER, "%s", units_bytes(text, one->sizes[s].bytes));
		for (size_t i = 0; i < one->curve_count; i++)
			if (crossover_is_forced(&one->curves[i]))
				write_point(sink, one, &one->curves[i], &one->sizes[s]);
		write_own(sink, &one->sizes[s]);
	}
	bench_page_table_end(sink);
}

static void write_expected(struct sink *sink, const struct crossover_view *view,
			   const struct crossover *one, const struct crossover_curve *curve,
			   uint64_t bytes)
{
	const struct crossover_point *point = curve_point_at(curve, bytes);
	double model = point ? crossover_expected_ns(view, one, curve, bytes) : 0;
	char text[UNITS_TEXT];

	if (model <= 0)
		bench_page_cell(sink, PAGE_NUMBER, "-");
	else if (point->median_ns <= 0)
		bench_page_cell(sink, PAGE_NUMBER, "%s", bench_duration(text, model));
	else
		bench_page_cell(sink, PAGE_NUMBER, "%s %+.0f%%", bench_duration(text, model),
				(model / point->median_ns - 1) * 100);
}

static void html_write_model(struct sink *sink, const struct crossover_view *view,
			     const struct crossover *one)
{
	char text[UNITS_TEXT];

	begin_table(sink, one,
		    "Predictions of the fitted model and their deviation from the measured times");
	for (size_t s = 0; s < one->size_count; s++) {
		bench_page_row(sink);
		bench_page_cell(sink, PAGE_NUMBER, "%s", units_bytes(text, one->sizes[s].bytes));
		for (size_t i = 0; i < one->curve_count; i++)
			if (crossover_is_forced(&one->curves[i]))
				write_expected(sink, view, one, &one->curves[i],
					       one->sizes[s].bytes);
	}
	bench_page_table_end(sink);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void html_write_advice(struct sink *sink, const struct crossover *one)
{
	for (size_t i = 0; i < one->advice_count; i++) {
		if (i == 0)
			bench_page_lead(sink, "%s", one->advice[i].text);
		else
			bench_page_paragraph(sink, "%s", one->advice[i].text);
	}
}

static void html_write_crossings(struct sink *sink, const struct crossover *one)
{
	char text[CROSSOVER_SENTENCE];

	if (one->crossing_count == 0)
		return;
	bench_page_list(sink);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < one->crossing_count; i++)
			if (crossover_is_main(one, &one->crossings[i]) == (pass == 0) &&
			    one->crossings[i].answer != CROSSOVER_NO_DATA)
				bench_page_item(sink, "%s",
						crossover_sentence(text, one, &one->crossings[i]));
	bench_page_list_end(sink);
}

static void html_write_errors(struct sink *sink, const struct crossover_view *view,
			      const struct crossover *one)
{
	bench_page_list(sink);
	for (size_t i = 0; i < one->curve_count; i++) {
		struct crossover_error error;
		char name[CROSSOVER_NAME], at[UNITS_TEXT];

		if (crossover_error_of(view, one, &one->curves[i], &error))
			bench_page_item(
				sink, "%s: median error of the model %.0f%%, worst %.0f%% (%s)",
				crossover_curve_name(name, &one->curves[i]), error.median * 100,
				error.worst * 100, units_bytes(at, error.worst_bytes));
	}
	bench_page_list_end(sink);
}

static bool is_drawn(const struct crossover_view *view, const struct crossover *one,
		     const struct chart *chart)
{
	if (chart->kind == CROSSOVER_LINES_MODEL)
		return view->model != NULL;
	return chart->kind != CROSSOVER_LINES_REGRET || one->own < one->curve_count;
}

static enum status html_write_crossover(struct sink *sink, const struct crossover_view *view,
					size_t which)
{
	const struct crossover *one = &view->set->all[which];
	char title[CROSSOVER_TITLE], id[ID_TEXT];
	enum status status = OK;

	text_format(id, sizeof(id), "crossover-%zu", which);
	bench_page_section(sink, id, crossover_title(title, one));
	html_write_advice(sink, one);
	for (size_t i = 0; i < ARRAY_LENGTH(charts) && status == OK; i++) {
		if (!is_drawn(view, one, &charts[i]))
			continue;
		status = write_chart(sink, view, which, &charts[i]);
		if (charts[i].kind == CROSSOVER_LINES_TIME)
			html_write_crossings(sink, one);
		if (charts[i].kind == CROSSOVER_LINES_MODEL)
			html_write_errors(sink, view, one);
	}
	if (view->model == NULL)
		bench_page_paragraph(sink, "No model: %s",
				     view->why_no_model != NULL ? view->why_no_model
								: "no model could be fitted");
	html_write_table(sink, one);
	if (view->model != NULL)
		html_write_model(sink, view, one);
	bench_page_section_end(sink);
	return status;
}

static void write_run(struct sink *sink, const struct crossover_view *view)
{
	const struct bench_run *run = view->run;

	bench_page_section(sink, "run", "Measurement");
	bench_page_paragraph(
		sink, "%d %s on %d %s, %s, NCCL %d.%d.%d", (int)run->nranks,
		text_which((uint64_t)run->nranks, "rank", "ranks"), (int)run->nodes,
		text_which((uint64_t)run->nodes, "node", "nodes"),
		run->ranks != NULL && run->ranks[0].gpu_name[0] != '\0' ? run->ranks[0].gpu_name
									: "unknown GPU",
		run->nccl_version / 10000, run->nccl_version / 100 % 100, run->nccl_version % 100);
	bench_page_list(sink);
	for (size_t i = 0; i < run->note_count; i++)
		bench_page_item(sink, "%s", run->notes[i]);
	if (run->notes_lost > 0)
		bench_page_item(sink, "and %zu more notes", run->notes_lost);
	bench_page_list_end(sink);
	bench_page_section_end(sink);
}

enum status crossover_html(struct sink *sink, const struct crossover_view *view)
{
	enum status status = OK;

	bench_page_begin(sink, "NCCL's algorithms over message sizes",
			 view->run->command[0] != '\0' ? view->run->command
						       : "ringside bench crossover");
	for (size_t i = 0; i < view->set->count && status == OK; i++)
		status = html_write_crossover(sink, view, i);
	write_run(sink, view);
	bench_page_end(sink);
	return status == OK ? sink->status : status;
}
