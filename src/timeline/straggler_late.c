/*
 * Ranks that come late.
 *
 * Per block of meetings, how much later than the middle rank a rank arrived, on average. By chance that is
 * 0 with some spread from block to block; a rank stands out when its mean over a stretch of blocks is
 * too far above 0 for that spread (Student's t, corrected for all ranks and stretches looked at), and
 * large enough to matter.
 */
#include <math.h>
#include <stdlib.h>

#include "common/text.h"
#include "timeline/align_fit.h"
#include "timeline/straggler_find.h"

/* What matters: a tenth of the mean duration, and more than calls differ by anyway. */
static const double share_that_matters = 0.1, ns_that_matter = 10000;
static const double chance_accepted = 1e-4;

/* The lower middle: of two halves that differ the later one is late. */
static double middle_of(const struct straggler_table *table, uint32_t block, double *scratch)
{
	uint32_t count = 0;

	for (uint32_t seat = 0; seat < table->seats; seat++) {
		double late = table->late_ns[(size_t)seat * table->blocks + block];

		if (!isnan(late))
			scratch[count++] = late;
	}
	if (count == 0)
		return NAN;
	return align_select(scratch, count, (count - 1) / 2);
}

static double mean_of(const double *values, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += values[i] / count;
	return sum;
}

/* How much ranks are off by from block to block: the median, which a few late ones do not move. */
static double noise_of(const struct straggler_table *table, const double *middle)
{
	enum { SEATS_LEAST = 3 };
	size_t cells = (size_t)table->seats * table->blocks, count = 0;
	double *sizes, noise = 0;

	if (table->seats < SEATS_LEAST)
		return 0;
	sizes = calloc(cells, sizeof(*sizes));
	if (sizes == NULL)
		return 0;
	for (size_t i = 0; i < cells; i++)
		if (!isnan(table->late_ns[i]))
			sizes[count++] = fabs(table->late_ns[i] - middle[i % table->blocks]);
	/* Of a normal distribution, the median size is 0.6745 standard deviations. */
	if (count > 0)
		noise = align_select(sizes, count, count / 2) / 0.6745;
	free(sizes);
	return noise;
}

static void name_seat(struct straggler_search *search, const struct straggler_table *table,
		      uint32_t seat, const double *values, const struct straggler_stretch *stretch,
		      double chance)
{
	struct straggler straggler = straggler_begin(search, table, seat, STRAGGLER_SLOW_RANK);
	bool is_on[STRAGGLER_BLOCKS];

	straggler.late_ns = (uint64_t)stretch->typical;
	straggler.caused_ns = units_whole((double)table->caused_ns[seat] *
					  straggler_scale(search, table->lane->comm));
	straggler.confidence = 1 - chance;
	for (uint32_t b = 0; b < table->blocks; b++)
		is_on[b] = !isnan(values[b]) && values[b] > stretch->typical / 2;
	straggler_times(&straggler, table, is_on);
	straggler.share_of_ns = straggler_cost_share(table, 1);
	straggler.cost_share = (double)straggler.caused_ns * straggler.share_of_ns;
	straggler_add(search, &straggler);
}

void straggler_late(struct straggler_search *search, const struct straggler_table *table)
{
	double *scratch = calloc(table->seats + 1, sizeof(*scratch));
	double middle[STRAGGLER_BLOCKS], values[STRAGGLER_BLOCKS], least, noise;

	if (scratch == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (uint32_t b = 0; b < table->blocks; b++)
		middle[b] = middle_of(table, b, scratch);
	least = share_that_matters * mean_of(table->mean_ns, table->blocks);
	least = least > ns_that_matter ? least : ns_that_matter;
	noise = noise_of(table, middle);
	for (uint32_t seat = 0; seat < table->seats; seat++) {
		struct straggler_stretch stretch;
		double chance;

		for (uint32_t b = 0; b < table->blocks; b++)
			values[b] = table->late_ns[(size_t)seat * table->blocks + b] - middle[b];
		stretch = straggler_stretch(values, table->blocks, least, noise);
		chance = stretch.chance * table->seats;
		if (stretch.is_found && chance < chance_accepted)
			name_seat(search, table, seat, values, &stretch, chance);
	}
	free(scratch);
}
