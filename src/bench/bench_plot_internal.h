/* What charts as text, as SVG and tables share. */
#ifndef BENCH_PLOT_INTERNAL_H
#define BENCH_PLOT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/bench_plot.h"
#include "output/sink.h"

/* Can the axis show it? */
bool plot_range_has(const struct plot_range *range, double value);
/* 0 at the low end, 1 at the high one; never beyond them. */
double plot_range_place(const struct plot_range *range, double value);

/* It has a median that can be drawn; and what of it can be is in the range. */
bool bench_svg_box_is_shown(const struct plot_range *range, const struct svg_box *box);
void bench_svg_box_add(struct plot_range *range, const struct svg_box *box);

/* A text that comes from elsewhere: control bytes become '?', so that it never ends its line. */
void bench_line_text(struct sink *sink, const char *text);
/* What was asked for (0: what is usual), within bounds. */
size_t bench_within(size_t value, size_t usual, size_t least, size_t most);

#endif
