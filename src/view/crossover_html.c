#include "view/crossover_html.h"

#include <math.h>

#include "common/attributes.h"
#include "common/text.h"
#include "view/bench_page.h"
#include "view/bench_svg.h"
#include "view/crossover_lines.h"

enum { ID_TEXT = 40 };

static const char *duration(char to[static UNITS_TEXT], double ns)
{
	return ns > 0 ? units_duration(to, (uint64_t)llround(ns)) : "-";
}

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
	  "Time of a call over its size",
	  "Median time of a call for each algorithm and protocol, and for NCCL's own choice, over "
	  "the size of the message; both axes are logarithmic. Where two lines cross, the other "
	  "algorithm becomes faster.",
	  { "median time", PLOT_NS, PLOT_LOG },
	  false },
	{ CROSSOVER_LINES_BUSBW,
	  "busbw",
	  "Bus bandwidth over size",
	  "The same medians as bus bandwidth.",
	  { "bus bandwidth", PLOT_GBPS, PLOT_LOG },
	  false },
	{ CROSSOVER_LINES_REGRET,
	  "regret",
	  "What NCCL's own choice costs",
	  "NCCL's own time divided by the time of the fastest algorithm and protocol at each size; "
	  "1 "
	  "is as good as it gets.",
	  { "times the fastest", PLOT_PLAIN, PLOT_LINEAR },
	  true },
	{ CROSSOVER_LINES_MODEL,
	  "model",
	  "Measured, and what the model says",
	  "Marks and solid lines are measured medians, dotted lines of the same colour what "
	  "the fitted model says.",
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
		.has_no_style = true,
		.mark_label = chart->has_mark ? "as fast as the fastest" : NULL,
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

static const struct crossover_point *point_at(const struct crossover_curve *curve, uint64_t bytes)
{
	for (size_t i = 0; i < curve->count; i++)
		if (curve->points[i].bytes == bytes)
			return &curve->points[i];
	return NULL;
}

static void write_point(struct sink *sink, const struct crossover *one,
			const struct crossover_curve *curve, const struct crossover_size *size)
{
	const struct crossover_point *point = point_at(curve, size->bytes);
	bool is_best = size->best < one->curve_count && &one->curves[size->best] == curve;
	char text[UNITS_TEXT];

	if (point == NULL || point->median_ns <= 0)
		bench_page_cell(sink, PAGE_NUMBER, "-");
	else if (point->wrong > 0 && point->wrong != BENCH_UNCHECKED)
		bench_page_cell(sink, PAGE_BAD, "%s, wrong", duration(text, point->median_ns));
	else
		bench_page_cell(sink, is_best ? PAGE_BEST : PAGE_NUMBER, "%s%s",
				duration(text, point->median_ns),
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
	bench_page_cell(sink, PAGE_NUMBER, "%s", duration(text, size->has_own ? size->own_ns : 0));
	if (size->regret > 0)
		bench_page_cell(sink, size->is_regret_clear ? PAGE_BAD : PAGE_NUMBER, "%.2f",
				size->regret);
	else
		bench_page_cell(sink, PAGE_NUMBER, "-");
}

static bool is_forced(const struct crossover_curve *curve)
{
	return !curve->is_own && !curve->is_envelope;
}

static void begin_table(struct sink *sink, const struct crossover *one, const char *caption)
{
	char name[CROSSOVER_NAME];

	bench_page_table(sink, caption);
	bench_page_head(sink, "Size", true);
	for (size_t i = 0; i < one->curve_count; i++)
		if (is_forced(&one->curves[i]))
			bench_page_head(sink, crossover_curve_name(name, &one->curves[i]), true);
}

static void write_table(struct sink *sink, const struct crossover *one)
{
	char text[UNITS_TEXT];

	begin_table(sink, one,
		    "Median times; * fastest, ~ fastest as measured but not beyond doubt; of best: "
		    "NCCL's time divided by that of the fastest");
	bench_page_head(sink, "NCCL took", false);
	bench_page_head(sink, "Its time", true);
	bench_page_head(sink, "Of best", true);
	for (size_t s = 0; s < one->size_count; s++) {
		bench_page_row(sink);
		bench_page_cell(sink, PAGE_NUMBER, "%s", units_bytes(text, one->sizes[s].bytes));
		for (size_t i = 0; i < one->curve_count; i++)
			if (is_forced(&one->curves[i]))
				write_point(sink, one, &one->curves[i], &one->sizes[s]);
		write_own(sink, &one->sizes[s]);
	}
	bench_page_table_end(sink);
}

static void write_expected(struct sink *sink, const struct crossover_view *view,
			   const struct crossover *one, const struct crossover_curve *curve,
			   uint64_t bytes)
{
	const struct crossover_point *point = point_at(curve, bytes);
	double model = point ? crossover_expected_ns(view, one, curve, bytes) : 0;
	char text[UNITS_TEXT];

	if (model <= 0)
		bench_page_cell(sink, PAGE_NUMBER, "-");
	else if (point->median_ns <= 0)
		bench_page_cell(sink, PAGE_NUMBER, "%s", duration(text, model));
	else
		bench_page_cell(sink, PAGE_NUMBER, "%s %+.0f %%", duration(text, model),
				(model / point->median_ns - 1) * 100);
}

static void write_model(struct sink *sink, const struct crossover_view *view,
			const struct crossover *one)
{
	char text[UNITS_TEXT];

	begin_table(sink, one,
		    "What the fitted model says, and by how much that is more or less than was "
		    "measured");
	for (size_t s = 0; s < one->size_count; s++) {
		bench_page_row(sink);
		bench_page_cell(sink, PAGE_NUMBER, "%s", units_bytes(text, one->sizes[s].bytes));
		for (size_t i = 0; i < one->curve_count; i++)
			if (is_forced(&one->curves[i]))
				write_expected(sink, view, one, &one->curves[i],
					       one->sizes[s].bytes);
	}
	bench_page_table_end(sink);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void write_advice(struct sink *sink, const struct crossover *one)
{
	for (size_t i = 0; i < one->advice_count; i++) {
		if (i == 0)
			bench_page_lead(sink, "%s", one->advice[i].text);
		else
			bench_page_paragraph(sink, "%s", one->advice[i].text);
	}
}

static void write_crossings(struct sink *sink, const struct crossover *one)
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

static void write_errors(struct sink *sink, const struct crossover_view *view,
			 const struct crossover *one)
{
	bench_page_list(sink);
	for (size_t i = 0; i < one->curve_count; i++) {
		struct crossover_error error;
		char name[CROSSOVER_NAME], at[UNITS_TEXT];

		if (crossover_error_of(view, one, &one->curves[i], &error))
			bench_page_item(sink,
					"%s: the model is off by %.0f %% in the median, %.0f %% at "
					"worst (%s)",
					crossover_curve_name(name, &one->curves[i]),
					error.median * 100, error.worst * 100,
					units_bytes(at, error.worst_bytes));
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

static enum status write_one(struct sink *sink, const struct crossover_view *view, size_t which)
{
	const struct crossover *one = &view->set->all[which];
	char title[CROSSOVER_TITLE], id[ID_TEXT];
	enum status status = OK;

	text_format(id, sizeof(id), "crossover-%zu", which);
	bench_page_section(sink, id, crossover_title(title, one));
	write_advice(sink, one);
	for (size_t i = 0; i < ARRAY_LENGTH(charts) && status == OK; i++) {
		if (!is_drawn(view, one, &charts[i]))
			continue;
		status = write_chart(sink, view, which, &charts[i]);
		if (charts[i].kind == CROSSOVER_LINES_TIME)
			write_crossings(sink, one);
		if (charts[i].kind == CROSSOVER_LINES_MODEL)
			write_errors(sink, view, one);
	}
	if (view->model == NULL)
		bench_page_paragraph(sink, "No model beside it: %s",
				     view->why_no_model != NULL ? view->why_no_model
								: "nothing was fitted");
	write_table(sink, one);
	if (view->model != NULL)
		write_model(sink, view, one);
	bench_page_section_end(sink);
	return status;
}

static void write_run(struct sink *sink, const struct crossover_view *view)
{
	const struct bench_run *run = view->run;

	bench_page_section(sink, "run", "What was measured");
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
		status = write_one(sink, view, i);
	write_run(sink, view);
	bench_page_end(sink);
	return status == OK ? sink->status : status;
}
