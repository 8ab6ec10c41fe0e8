/*
 * How the calls of a cell spread, as text: one line per class of time, on a logarithmic scale.
 *
 *	AllReduce 1 MiB float32 sum, out of place, blocking: 200 calls
 *	  41.2 us to 43.0 us  ██████████████▌        96
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/bench_result.h"
#include "bench/bench_stats.h"
#include "common/status.h"
#include "output/sink.h"

struct bench_histogram_options {
	unsigned int width; /* of the terminal; 0: 80. Never less than 30: lines are wider then */
	size_t bins;	    /* 0: 16; BENCH_BINS_MAX at most */
	bool is_ascii;	    /* bars of '#' */
	enum bench_over over;
};

/* One cell. One without single calls (BENCH_LOOP, or none measured) gets a line that says so.
 * ERR_NO_SPACE, or the sink's status. */
enum status bench_histogram_cell(struct sink *sink, const struct bench_cell *cell,
				 const struct bench_histogram_options *options);
/* All cells of a run, a blank line between them. */
enum status bench_histogram_write(struct sink *sink, const struct bench_run *run,
				  const struct bench_histogram_options *options);

enum { BENCH_CELL_TEXT = 160 };
/* "AllReduce 1 MiB float32 sum, out of place, blocking, Ring/LL128": what a cell is, in words. */
const char *bench_cell_words(char to[static BENCH_CELL_TEXT], const struct bench_cell *cell);

#endif
