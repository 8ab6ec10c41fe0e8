#include "view/viewer_bins.h"

#include <string.h>

/* Below this a bin would show single operations, of which the slices tell more. */
enum { LEAST_WIDTH_NS = 10000 };

static uint64_t round_width(uint64_t least_ns)
{
	uint64_t width = LEAST_WIDTH_NS;

	for (;;) {
		if (width >= least_ns)
			return width;
		if (width * 2 >= least_ns)
			return width * 2;
		if (width * 5 >= least_ns)
			return width * 5;
		width *= 10;
	}
}

void viewer_bins_init(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t span = end_ns > start_ns ? end_ns - start_ns : 0;

	bins->start_ns = start_ns;
	bins->width_ns = round_width(span / VIEWER_BINS_MAX + 1);
	bins->count = (uint32_t)(span / bins->width_ns) + 1;
	bins->is_used = false;
	bins->timed = bins->missed = 0;
	if (bins->count > VIEWER_BINS_MAX)
		bins->count = VIEWER_BINS_MAX;
	memset(bins->bytes, 0, sizeof(bins->bytes));
	memset(bins->busy_ns, 0, sizeof(bins->busy_ns));
}

void viewer_bins_add(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns, double bytes)
{
	uint64_t end_of_bins = bins->start_ns + bins->count * bins->width_ns;
	double rate;

	bins->timed++;
	if (end_ns <= start_ns || bytes <= 0)
		return;
	rate = bytes / (double)(end_ns - start_ns);
	if (start_ns < bins->start_ns)
		start_ns = bins->start_ns;
	if (end_ns > end_of_bins)
		end_ns = end_of_bins;
	while (start_ns < end_ns) {
		uint64_t bin = (start_ns - bins->start_ns) / bins->width_ns;
		uint64_t until = bins->start_ns + (bin + 1) * bins->width_ns;

		if (until > end_ns)
			until = end_ns;
		bins->bytes[bin] += rate * (double)(until - start_ns);
		bins->busy_ns[bin] += (double)(until - start_ns);
		bins->is_used = true;
		start_ns = until;
	}
}

void viewer_bins_miss(struct viewer_bins *bins)
{
	bins->missed++;
}

bool viewer_bins_is_sampled(const struct viewer_bins *bins)
{
	return bins->missed * 10 > bins->timed;
}

void viewer_bins_write(const struct viewer_bins *bins, struct viewer *viewer,
		       const struct viewer_track *track, uint64_t origin_ns)
{
	bool is_sampled = viewer_bins_is_sampled(bins);
	double before = -1;

	for (uint32_t i = 0; i < bins->count; i++) {
		double over_ns = is_sampled ? bins->busy_ns[i] : (double)bins->width_ns;
		double value;

		if (!(over_ns > 0))
			continue;
		value = viewer_round(bins->bytes[i] / over_ns);
		if (value != before)
			viewer_value(viewer, track, bins->start_ns + i * bins->width_ns - origin_ns,
				     value);
		before = value;
	}
	if (before != 0 && !is_sampled)
		viewer_value(viewer, track,
			     bins->start_ns + bins->count * bins->width_ns - origin_ns, 0);
}
