/*
 * Line charts as text, on logarithmic axes unless told otherwise. Braille dots where the terminal has
 * them: eight points in each character. Several series are told apart by their marks, not by colour.
 *
 *	time of AllReduce, 4 ranks
 *	   1 ms |                                          ..-o
 *	        |                                    ..-'
 *	 100 us |               o..--o''x..-x
 *	        +-------------------------------------------------
 *	        1 KiB         32 KiB        1 MiB       32 MiB
 *	 o Ring   x Tree
 *
 * bench_svg.h draws the same series as SVG.
 */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"
#include "output/sink.h"

enum { PLOT_SERIES_MAX = 12, PLOT_POINTS_MAX = 1 << 16 };

enum plot_unit {
	PLOT_PLAIN = 0,	  /* 0.1, 1, 250, 1.5e9 */
	PLOT_BYTES = 1,	  /* 4 KiB; ticks at powers of two */
	PLOT_NS = 2,	  /* 12.3 us */
	PLOT_GBPS = 3,	  /* 142 GB/s */
	PLOT_PERCENT = 4, /* 1 is "1 %" */
};

enum plot_scale { PLOT_LOG = 0, PLOT_LINEAR = 1 };

/* All borrowed. Points in order of x; a line joins each with the next. Those that no axis can show (not
 * finite; on a logarithmic axis 0 or less) are left out and interrupt the line. */
struct plot_series {
	const char *name;
	const double *xs;
	const double *ys;
	size_t count;
	bool is_line_only; /* no marks at the points: what was computed, beside what was measured */
	size_t like; /* SVG: in the colour of series like - 1, which it belongs to; 0: its own */
};

struct plot_axis {
	const char *label; /* "message size"; NULL: none */
	enum plot_unit unit;
	enum plot_scale scale;
};

struct plot_options {
	const char *title; /* NULL: none */
	struct plot_axis x;
	struct plot_axis y;
	unsigned int width;  /* columns of everything; 0: 80, at least 40 */
	unsigned int height; /* rows of the plot itself; 0: 16, 4 to 100 */
	bool is_ascii;	     /* no Braille: marks and dots of ASCII */
};

/* Nothing that can be shown: one line that says so. ERR_RANGE for more than PLOT_SERIES_MAX series or
 * PLOT_POINTS_MAX points in one, ERR_NO_SPACE, or the sink's status. */
enum status bench_plot_text(struct sink *sink, const struct plot_series *series, size_t count,
			    const struct plot_options *options);

/* What a value is called on an axis: "4 KiB", "12.3 us", "142 GB/s". */
enum { PLOT_VALUE_TEXT = 48 };
const char *bench_plot_value(char to[static PLOT_VALUE_TEXT], double value, enum plot_unit unit);

#endif
