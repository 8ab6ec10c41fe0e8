/*
 * Bars and boxes as text, a line for each: what bench_svg.h draws upright lies here. Groups and series have
 * their names at the left and the value at the right.
 *
 *	AllReduce  ringside   ############################  100 %
 *	           inspector  #####################         75 %
 *
 *	                      0.5          1          2
 *	  1 KiB    ringside     |---====#=====-:-|           0.812
 */
#ifndef PLOT_ROWS_H
#define PLOT_ROWS_H

#include "common/status.h"
#include "output/sink.h"
#include "view/bench_svg.h"

/* `width` columns for everything; 0: 100, at least 60. Of the options title, y, has_mark, mark and mark_label
 * are taken. ERR_RANGE as bench_svg.h; else the sink's status. */
enum status plot_rows_bars(struct sink *sink, const struct svg_bars *bars,
			   const struct svg_options *options, unsigned int width);
/* From `low` to `high` a line, from quarter to quarter a band, the median, and the mark across all lines. */
enum status plot_rows_boxes(struct sink *sink, const struct svg_boxes *boxes,
			    const struct svg_options *options, unsigned int width);

#endif
