/* Shared by the files of bench_plot. */
#ifndef BENCH_PLOT_INTERNAL_H
#define BENCH_PLOT_INTERNAL_H

#include <stdbool.h>

#include "bench/bench_plot.h"

/* Can the axis show it? */
bool plot_range_has(const struct plot_range *range, double value);
/* 0 at the low end, 1 at the high one; never beyond them. */
double plot_range_place(const struct plot_range *range, double value);

/* It has a median that can be drawn; and what of it can be is in the range. */
bool bench_svg_box_is_shown(const struct plot_range *range, const struct svg_box *box);
void bench_svg_box_add(struct plot_range *range, const struct svg_box *box);

#endif
