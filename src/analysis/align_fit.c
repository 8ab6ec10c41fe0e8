/*
 * Differences are small compared with the clocks' absolute values, but offsets between hosts may be years:
 * the first difference is subtracted before doubles round it.
 */
#include "analysis/align_fit.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats.h"
#include "common/attributes.h"

enum { BLOCKS = 8, SAMPLES_FOR_DRIFT = 32, SAMPLES_MAX = 1024 };

static int by_own(const void *left, const void *right)
{
	const struct align_sample *a = left, *b = right;

	return ORDER(a->own_ns, b->own_ns);
}

static double median_difference(const struct align_sample *samples, size_t count, int64_t base,
				double *scratch)
{
	for (size_t i = 0; i < count; i++)
		scratch[i] =
			(double)(int64_t)(samples[i].other_ns - samples[i].own_ns - (uint64_t)base);
	return stats_median(scratch, count);
}

static double median_slope(const struct align_sample *samples, size_t count, int64_t base,
			   double *scratch)
{
	double at[BLOCKS], value[BLOCKS], slopes[BLOCKS * BLOCKS / 2];
	size_t found = 0;

	for (size_t b = 0; b < BLOCKS; b++) {
		size_t from = count * b / BLOCKS, to = count * (b + 1) / BLOCKS;

		value[b] = median_difference(samples + from, to - from, base, scratch);
		at[b] = (double)(samples[from + (to - from) / 2].own_ns - samples[0].own_ns);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		for (size_t j = i + 1; j < BLOCKS; j++)
			if (at[j] > at[i])
				slopes[found++] = (value[j] - value[i]) / (at[j] - at[i]);
	return stats_median(slopes, found);
}

/* Distances from the line, smallest first up to the k-th, which is returned. */
static double residual(const struct align_sample *samples, size_t count, int64_t base,
		       const struct align_line *line, double offset, size_t k, double *scratch)
{
	for (size_t i = 0; i < count; i++) {
		double seen =
			(double)(int64_t)(samples[i].other_ns - samples[i].own_ns - (uint64_t)base);
		double elapsed = (double)(int64_t)(samples[i].own_ns - line->middle_ns);

		scratch[i] = fabs(seen - offset - line->drift * elapsed);
	}
	return stats_select(scratch, count, k);
}

bool align_fit(struct align_sample *samples, size_t count, struct align_line *line)
{
	double scratch[SAMPLES_MAX], offset, flat, drift;
	size_t half, most;
	int64_t base;

	if (count == 0)
		return false;
	if (count > SAMPLES_MAX)
		count = SAMPLES_MAX;
	half = count / 2;
	most = (count - 1) * 9 / 10;
	qsort(samples, count, sizeof(*samples), by_own);
	base = (int64_t)(samples[0].other_ns - samples[0].own_ns);
	*line = (struct align_line){ .samples = count, .middle_ns = samples[count / 2].own_ns };
	offset = median_difference(samples, count, base, scratch);
	flat = residual(samples, count, base, line, offset, half, scratch);
	if (count >= SAMPLES_FOR_DRIFT) {
		double span = (double)(samples[count - 1].own_ns - samples[0].own_ns);

		drift = median_slope(samples, count, base, scratch);
		/* By chance block medians are off by about the spread / sqrt(count / blocks). */
		if (fabs(drift) * span > 4 * flat / sqrt((double)count / BLOCKS)) {
			line->drift = drift;
			if (residual(samples, count, base, line, offset, half, scratch) >= flat)
				line->drift = 0;
		}
	}
	line->spread_ns = residual(samples, count, base, line, offset, most, scratch);
	line->offset_ns = (int64_t)((uint64_t)base + (uint64_t)llround(offset));
	return true;
}
