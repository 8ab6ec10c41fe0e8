#include "view/crossover_lines.h"

#include <stdlib.h>

#include "bench/bench_stats.h"
#include "common/text.h"

static bool is_forced(const struct crossover_curve *curve)
{
	return !curve->is_own && !curve->is_envelope;
}

static size_t forced_curves(const struct crossover *one)
{
	size_t count = 0;

	for (size_t i = 0; i < one->curve_count; i++)
		count += is_forced(&one->curves[i]);
	return count;
}

/* All where they can be told apart, else the best of each algorithm. */
static bool is_shown(const struct crossover *one, const struct crossover_curve *curve)
{
	if (curve->is_own)
		return true;
	return forced_curves(one) < PLOT_SERIES_MAX ? is_forced(curve) : curve->is_envelope;
}

/* The next series with room for every size; NULL: there are too many. */
static struct plot_series *add(struct crossover_lines *lines, const struct crossover *one)
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
	/* The series is const for those who draw it. */
	lines->values[(size_t)(series->xs - lines->values) + series->count] = x;
	lines->values[(size_t)(series->ys - lines->values) + series->count] = y;
	series->count++;
}

static double value_of(const struct crossover *one, const struct crossover_point *point,
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
	struct plot_series *series = add(lines, one);

	if (series == NULL)
		return;
	crossover_curve_name(lines->names[lines->count - 1], curve);
	for (size_t i = 0; i < curve->count && i < one->size_count; i++)
		add_point(lines, series, (double)curve->points[i].bytes,
			  value_of(one, &curve->points[i], kind));
}

/* In the colour of the measured curve, which is the series `like`. */
static void add_model(struct crossover_lines *lines, const struct crossover_view *view,
		      const struct crossover *one, const struct crossover_curve *curve, size_t like)
{
	struct plot_series *series = add(lines, one);
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
	struct plot_series *series = add(lines, one);

	if (series == NULL)
		return;
	text_copy(lines->names[0], sizeof(lines->names[0]), "NCCL's time / fastest");
	for (size_t i = 0; i < one->size_count; i++)
		if (one->sizes[i].regret > 0)
			add_point(lines, series, (double)one->sizes[i].bytes, one->sizes[i].regret);
}

/* Measured curves first, then their models in the same order: a curve has its model, or neither is there. */
static void add_models(struct crossover_lines *lines, const struct crossover_view *view,
		       const struct crossover *one)
{
	size_t like = 0;

	for (size_t i = 0; i < one->curve_count; i++) {
		if (!is_forced(&one->curves[i]))
			continue;
		if (lines->count == PLOT_SERIES_MAX / 2)
			lines->left_out++;
		else
			add_curve(lines, one, &one->curves[i], CROSSOVER_LINES_MODEL);
	}
	for (size_t i = 0, count = lines->count; i < one->curve_count && like < count; i++)
		if (is_forced(&one->curves[i]))
			add_model(lines, view, one, &one->curves[i], like++);
}

enum status crossover_lines_make(struct crossover_lines *lines, const struct crossover_view *view,
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

void crossover_lines_release(struct crossover_lines *lines)
{
	free(lines->values);
	*lines = (struct crossover_lines){ .count = 0 };
}
