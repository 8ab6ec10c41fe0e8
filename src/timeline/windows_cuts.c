/*
 * Changes of one series.
 *
 * Where the means before and after differ most against their spread (Welch's t) the series is cut, if that is
 * not by chance; then both halves are looked at in the same way. What changes for a while and comes back hides
 * in both halves: where no cut is found, the stretch that differs most from all around it is tested.
 */
#include <math.h>

#include "common/status.h"
#include "timeline/chance.h"
#include "timeline/windows_changes.h"

enum { SIDE_LEAST = 5 };
static const double percent_that_matters = 5;

static double median_value(const struct change_point *points, size_t from, size_t to)
{
	double values[CHANGE_POINTS_MAX];

	for (size_t i = from; i < to; i++)
		values[i - from] = points[i].value;
	return chance_median(values, to - from);
}

static struct chance_sample side(const struct change_point *points, size_t from, size_t to)
{
	double values[CHANGE_POINTS_MAX];

	for (size_t i = from; i < to; i++)
		values[i - from] = points[i].value;
	return chance_series(values, to - from);
}

static double chance_of_two(const struct chance_sample *a, const struct chance_sample *b)
{
	/* Clocks and durations are whole numbers: even equal ones are not known better. */
	double error_a = fmax(a->error, 1e-3), error_b = fmax(b->error, 1e-3);
	double square_a = error_a * error_a, square_b = error_b * error_b;
	double freedom = (square_a + square_b) * (square_a + square_b) /
			 (square_a * square_a / ((double)a->count - 1) +
			  square_b * square_b / ((double)b->count - 1));

	return 2 * chance_student(fabs(a->mean - b->mean) / sqrt(square_a + square_b), freedom);
}

static double chance_of_cut(const struct change_point *points, size_t from, size_t cut, size_t to)
{
	struct chance_sample a = side(points, from, cut), b = side(points, cut, to);

	return chance_of_two(&a, &b);
}

/* Where the two sides differ most, by sums alone. */
static size_t best_cut(const struct change_point *points, size_t from, size_t to)
{
	double total = 0, left = 0, most = -1;
	size_t best = from;

	for (size_t i = from; i < to; i++)
		total += points[i].value;
	for (size_t cut = from + 1; cut + SIDE_LEAST <= to; cut++) {
		double n = (double)(cut - from), m = (double)(to - cut), gap;

		left += points[cut - 1].value;
		gap = left / n - (total - left) / m;
		if (cut < from + SIDE_LEAST || gap * gap * n * m <= most)
			continue;
		most = gap * gap * n * m;
		best = cut;
	}
	return best;
}

static void add_raw(struct change_search *search, const struct change_raw *like,
		    const struct change_point *points, size_t from, size_t cut, size_t to)
{
	struct change_raw *raw;

	if (!list_grow(&search->raws, search->raw_count, sizeof(*search->raws))) {
		search->status = ERR_NO_SPACE;
		return;
	}
	raw = &search->raws[search->raw_count++];
	*raw = *like;
	raw->at_ns = points[cut].ns;
	raw->before = exp(median_value(points, from, cut));
	raw->after = exp(median_value(points, cut, to));
	for (size_t i = from; i < to; i++) {
		if (i < cut) {
			raw->meetings_before += points[i].meetings;
			continue;
		}
		raw->meetings_after += points[i].meetings;
		raw->lost_ns += points[i].cost_ns * (1 - raw->after / raw->before);
	}
	if (raw->lost_ns < 0)
		raw->lost_ns = 0;
}

struct stretch {
	size_t from;
	size_t to;
};

/* Points from .. to - 1 that differ most from those before and after them. */
static struct stretch best_stretch(const struct change_point *points, size_t from, size_t to)
{
	struct stretch best = { from, from };
	double sums[CHANGE_POINTS_MAX + 1] = { 0 }, most = -1;

	for (size_t i = from; i < to; i++)
		sums[i - from + 1] = sums[i - from] + points[i].value;
	for (size_t a = from + SIDE_LEAST; a + 2 * SIDE_LEAST <= to; a++)
		for (size_t b = a + SIDE_LEAST; b + SIDE_LEAST <= to; b++) {
			double n = (double)(b - a), m = (double)(to - from) - n;
			double inside = sums[b - from] - sums[a - from];
			double gap = inside / n - (sums[to - from] - inside) / m;

			if (gap * gap * n * m <= most)
				continue;
			most = gap * gap * n * m;
			best = (struct stretch){ a, b };
		}
	return best;
}

static double chance_of_stretch(const struct change_point *points, size_t from, struct stretch in,
				size_t to)
{
	struct chance_sample inside = side(points, in.from, in.to), outside;
	double values[CHANGE_POINTS_MAX];
	size_t count = 0;

	for (size_t i = from; i < to; i++)
		if (i < in.from || i >= in.to)
			values[count++] = points[i].value;
	outside = chance_series(values, count);
	return chance_of_two(&inside, &outside);
}

/* It changes, and changes back. */
static void cut_stretch(struct change_search *search, struct change_raw *like,
			const struct change_point *points, size_t from, size_t to)
{
	struct stretch in = best_stretch(points, from, to);
	double before, inside, after, tests = (double)((to - from) * (to - from)) / 2;

	if (in.to == in.from)
		return;
	before = median_value(points, from, in.from);
	inside = median_value(points, in.from, in.to);
	after = median_value(points, in.to, to);
	like->chance = chance_of_stretch(points, from, in, to) * tests;
	if (fabs(exp(inside - before) - 1) * 100 < percent_that_matters ||
	    like->chance > CHANGE_CHANCE || fabs(after - before) > fabs(inside - before) / 2)
		return;
	add_raw(search, like, points, from, in.from, in.to);
	add_raw(search, like, points, in.from, in.to, to);
}

void windows_cut_series(struct change_search *search, struct change_raw *like,
			const struct change_point *points, size_t from, size_t to,
			unsigned int depth)
{
	size_t cut;
	double change;

	if (to - from < 2 * SIDE_LEAST || depth == 0)
		return;
	cut = best_cut(points, from, to);
	change = exp(median_value(points, cut, to) - median_value(points, from, cut)) - 1;
	like->chance = chance_of_cut(points, from, cut, to) * (double)(to - from);
	if (fabs(change) * 100 < percent_that_matters || like->chance > CHANGE_CHANCE) {
		cut_stretch(search, like, points, from, to);
		return;
	}
	add_raw(search, like, points, from, cut, to);
	windows_cut_series(search, like, points, from, cut, depth - 1);
	windows_cut_series(search, like, points, cut, to, depth - 1);
}
