/* Axes of charts: from values to places between 0 and 1, and where to write which value. */
#ifndef PLOT_SCALE_H
#define PLOT_SCALE_H

#include <stdbool.h>
#include <stddef.h>

#include "view/bench_plot.h"

enum { PLOT_TICKS_MAX = 24 };

struct plot_range {
	struct plot_axis axis;
	bool has_values;
	double low; /* ends of the axis, once finished */
	double high;
};

void plot_range_start(struct plot_range *range, const struct plot_axis *axis);
/* Values that the axis cannot show do not count. */
void plot_range_add(struct plot_range *range, double value);
/* After the last value: a little room at both ends, and never nothing between them. A linear axis begins
 * at 0 unless values are below. `is_tight`: the ends are the values themselves. */
void plot_range_finish(struct plot_range *range, bool is_tight);

/* Can the axis show it? */
bool plot_range_has(const struct plot_range *range, double value);
/* 0 at the low end, 1 at the high one; never beyond them. */
double plot_range_place(const struct plot_range *range, double value);

/* Round values within the range, at most `most` of them (2 to PLOT_TICKS_MAX). */
size_t plot_range_ticks(const struct plot_range *range, size_t most, double *ticks);

#endif
