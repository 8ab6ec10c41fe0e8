/* Shared by text charts, SVG charts and tables. */
#ifndef BENCH_PLOT_INTERNAL_H
#define BENCH_PLOT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/bench_plot.h"
#include "output/sink.h"

/* Whether the axis can show the value. */
bool plot_range_has(const struct plot_range *range, double value);
/* 0 at the low end, 1 at the high one; clamped. */
double plot_range_place(const struct plot_range *range, double value);

/* Whether the box has a median that can be drawn; all its drawable values are added to the range. */
bool bench_svg_box_is_shown(const struct plot_range *range, const struct svg_box *box);
void bench_svg_box_add(struct plot_range *range, const struct svg_box *box);

/* Text from elsewhere: control bytes become '?', so that it stays on one line. */
void bench_line_text(struct sink *sink, const char *text);
/* The requested value (0: the default), clamped. */
size_t bench_within(size_t value, size_t usual, size_t least, size_t most);

#endif
