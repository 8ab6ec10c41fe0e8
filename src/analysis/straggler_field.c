/* Which section of a row of blocks stands out, beyond chance and beyond how much others differ. */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"

/* ---- a section that stands out --------------------------------------------------------------- */

enum { STRETCH_LEAST = 2 /* blocks */ };

/* Values that are there, of a section. */
static uint32_t take_stretch(double *there, const double *values, uint32_t from, uint32_t to)
{
	uint32_t count = 0;

	for (uint32_t b = from; b < to; b++)
		if (!isnan(values[b]))
			there[count++] = values[b];
	return count;
}

/* By the section's own spread from block to block (Student's t). */
static double chance_by_spread(const double *there, uint32_t count)
{
	struct stats_sample sample = stats_series(there, count);

	/* Even what never varies was measured only this often. */
	if (sample.error < sample.mean * 0.02)
		sample.error = sample.mean * 0.02;
	return count >= STRAGGLER_BLOCKS_LEAST
		       ? stats_student(sample.mean / sample.error, (double)count - 1)
		       : 1;
}

/*
 * The probability of a block that is as high, from those of the other seats. Beyond the highest of them (or what
 * matters at all) it falls with the square: tails are that heavy at most.
 */
static double share_above(const struct straggler_field *field, const double *own, double value,
			  double least)
{
	size_t low = 0, high = field->count, above, others = field->count;
	double highest = least;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (field->sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	above = field->count - low;
	for (uint32_t b = 0; b < field->blocks; b++) {
		others -= !isnan(own[b]);
		above -= own[b] >= value;
	}
	if (above > 0)
		return ((double)above + 1) / ((double)others + 1);
	for (size_t i = low; i-- > 0 && field->sorted[i] > highest;) {
		uint32_t b = 0;

		while (b < field->blocks && own[b] != field->sorted[i])
			b++;
		if (b == field->blocks)
			highest = field->sorted[i];
	}
	return highest * highest / (value * value) / ((double)others + 1);
}

/* That `above` of `count` blocks are this high, if each is with probability p. */
static double chance_of_count(uint32_t above, uint32_t count, double p)
{
	double odds = p < 1 ? p / (1 - p) : 0, term = pow(1 - p, count), sum = 0;

	if (p >= 1)
		return 1;
	for (uint32_t k = 0; k <= count; k++) {
		sum += k >= above ? term : 0;
		term *= odds * (count - k) / (k + 1);
	}
	return sum;
}

/* By how often others have such blocks: most of the section's are at least as high as its median, and all as
 * its lowest. No distribution is assumed: tails are heavy. */
static double chance_by_count(const struct straggler_field *field, const double *own,
			      const double *there, uint32_t count, double middle, double least)
{
	double lowest = there[0], by_middle, by_lowest;
	uint32_t above = 0;

	for (uint32_t i = 0; i < count; i++) {
		above += there[i] >= middle;
		lowest = fmin(lowest, there[i]);
	}
	by_middle = chance_of_count(above, count, share_above(field, own, middle, least));
	by_lowest = lowest >= least
			    ? chance_of_count(count, count, share_above(field, own, lowest, least))
			    : 1;
	return 2 * fmin(by_middle, by_lowest);
}

/* The best section of one seat, without the field's spread. own: its values. */
static struct straggler_stretch best_stretch(const struct straggler_field *field, const double *own,
					     uint32_t blocks, double least)
{
	struct straggler_stretch best = { .chance = 1 };
	double there[STRAGGLER_BLOCKS], some[STRAGGLER_BLOCKS];
	double sections = blocks * (blocks + 1.) / 2;

	for (uint32_t from = 0; from < blocks; from++) {
		/* One that begins or ends with a low block is not better than the one without it. */
		for (uint32_t to = from + STRETCH_LEAST; to <= blocks && own[from] >= least; to++) {
			uint32_t count;
			double middle, chance;

			if (!(own[to - 1] >= least))
				continue;
			count = take_stretch(there, own, from, to);
			if (count < STRETCH_LEAST)
				continue;
			memcpy(some, there, count * sizeof(*some));
			/* Lower median: most blocks are like that, or worse. */
			middle = stats_lower_middle(some, count);
			if (middle < least)
				continue;
			chance = chance_by_spread(there, count);
			if (field != NULL)
				chance = fmin(chance, chance_by_count(field, own, there, count,
								      middle, least));
			if (chance * sections >= best.chance)
				continue;
			best = (struct straggler_stretch){ .is_found = true,
							   .from = from,
							   .to = to,
							   .typical = middle,
							   .chance = chance * sections };
		}
	}
	return best;
}

struct straggler_stretch straggler_stretch(const double *values, uint32_t blocks, double least)
{
	return best_stretch(NULL, values, blocks, least);
}

/*
 * Several that are compared with each other show how much they differ without a problem: by single blocks, and
 * by their means over a section, which differ more if what happens lasts longer than a block.
 */

enum { FIELD_SEATS_LEAST = 4 };
static const double chance_accepted = 1e-4, doubt_accepted = 0.01, doubt_of_one_side = 0.05;
static const double clear_of_others = 4, clear_of_uneven = 1.5;
/* A median of deviations tells as much as the standard deviation of this share of them. */
static const double worth_of_middle = 0.37;
static const double normal_middle =
	0.6745; /* of a normal distribution: its median absolute value */

void straggler_field_release(struct straggler_field *field)
{
	free(field->sorted);
	free(field->levels);
	free(field->best);
	*field = (struct straggler_field){ .values = NULL };
}

enum status straggler_field_make(struct straggler_field *field, const double *values,
				 uint32_t seats, uint32_t blocks, double least)
{
	size_t cells = (size_t)seats * blocks;

	*field = (struct straggler_field){ .values = values, .seats = seats, .blocks = blocks };
	field->sorted = calloc(cells + 1, sizeof(*field->sorted));
	field->levels = calloc(seats + 1, sizeof(*field->levels));
	field->best = calloc(seats + 1, sizeof(*field->best));
	if (field->sorted == NULL || field->levels == NULL || field->best == NULL) {
		straggler_field_release(field);
		return ERR_NO_SPACE;
	}
	for (size_t i = 0; i < cells; i++)
		if (!isnan(values[i]))
			field->sorted[field->count++] = values[i];
	stats_sort(field->sorted, field->count);
	for (uint32_t seat = 0; seat < seats; seat++) {
		struct straggler_stretch *best = &field->best[seat];

		*best = best_stretch(field, &values[(size_t)seat * blocks], blocks, least);
		best->chance *= seats;
		best->is_found = best->is_found && best->chance < chance_accepted;
	}
	return OK;
}

/* NAN: it has none there. */
static double level_over(const struct straggler_field *field, uint32_t seat, uint32_t from,
			 uint32_t to, bool is_mean)
{
	double there[STRAGGLER_BLOCKS];
	uint32_t count =
		take_stretch(there, &field->values[(size_t)seat * field->blocks], from, to);

	if (count == 0)
		return NAN;
	return is_mean ? stats_series(there, count).mean : stats_lower_middle(there, count);
}

/* Is it well above all that they differ by at other times? */
static bool is_clear_of_others(const struct straggler_field *field, uint32_t seat,
			       const struct straggler_stretch *stretch, double times)
{
	uint32_t length = stretch->to - stretch->from;
	double own = level_over(field, seat, stretch->from, stretch->to, true), highest = 0;

	for (uint32_t i = 0; i < field->seats; i++)
		for (uint32_t from = 0; from + length <= field->blocks; from++)
			if (i != seat || from >= stretch->to || from + length <= stretch->from)
				highest = fmax(highest,
					       level_over(field, i, from, from + length, true));
	return own > times * highest;
}

/*
 * By how much all of them differ over that section, half of which may have the same problem. Where being low has
 * causes of its own, only those above 0 tell, and a quarter of all may have the problem. Fewer than four do not
 * tell: then it must be well above everything else.
 */
static double chance_by_others(const struct straggler_field *field, uint32_t seat,
			       const struct straggler_stretch *stretch)
{
	uint32_t known = 0, length = stretch->to - stretch->from;
	double own = level_over(field, seat, stretch->from, stretch->to, false), middle = 0, spread;

	for (uint32_t i = 0; i < field->seats; i++) {
		double level = level_over(field, i, stretch->from, stretch->to, false);

		if (!isnan(level))
			field->levels[known++] = field->is_one_sided ? fmax(level, 0) : level;
	}
	if (known < FIELD_SEATS_LEAST)
		return field->is_against_past ||
				       is_clear_of_others(field, seat, stretch, clear_of_others)
			       ? 0
			       : 1;
	if (field->is_one_sided) {
		spread = stats_select(field->levels, known, (known * 3 - 1) / 4);
	} else {
		middle = stats_lower_middle(field->levels, known);
		for (uint32_t i = 0; i < known; i++)
			field->levels[i] = fabs(field->levels[i] - middle);
		spread = stats_lower_middle(field->levels, known);
	}
	spread = fmax(spread / normal_middle, 0.02 * own);
	return stats_student((own - middle) / spread, fmax(2, known * worth_of_middle)) * known *
	       ((field->blocks + length - 1) / length);
}

struct straggler_stretch straggler_field_stretch(const struct straggler_field *field, uint32_t seat)
{
	struct straggler_stretch stretch = field->best[seat];

	if (stretch.is_found)
		stretch.doubt = chance_by_others(field, seat, &stretch);
	stretch.is_found =
		stretch.is_found &&
		stretch.doubt < (field->is_one_sided ? doubt_of_one_side : doubt_accepted) &&
		(!field->is_uneven || is_clear_of_others(field, seat, &stretch, clear_of_uneven));
	return stretch;
}

bool straggler_is_on(double value, const struct straggler_stretch *stretch)
{
	return !isnan(value) && value > stretch->typical / 2;
}
