/* Between the files that print the table; others use bench_table.h. */
#ifndef BENCH_TABLE_PARTS_H
#define BENCH_TABLE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "output/sink.h"
#include "view/bench_table.h"

/* A line of the table; one of both may be NULL. */
struct bench_row {
	const struct bench_cell *out;
	const struct bench_cell *in;
};

struct bench_block {
	struct sink *sink;
	const struct bench_run *run;
	const struct bench_table_options *options;
	const struct bench_row *rows;
	size_t count;
	bool is_first; /* of the run: names the GPUs */
	/* Summed up as rows are written. */
	double busbw_sum;
	uint64_t measures;
	uint64_t wrong; /* measurements with wrong results */
	uint64_t unchecked;
	uint64_t untimed;
	uint64_t unsupported; /* percentiles of too few calls */
};

static inline const struct bench_cell *bench_row_cell(const struct bench_row *row)
{
	return row->out != NULL ? row->out : row->in;
}

/* Before everything: versions, the command, what must be known. */
void bench_table_start(struct sink *sink, const struct bench_run *run);
/* Before and behind the rows of a block. */
void bench_table_head(const struct bench_block *block);
void bench_table_foot(const struct bench_block *block);

#endif
