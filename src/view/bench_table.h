/*
 * What a benchmark measured as nccl-tests prints it: comments that name the test and the GPU of each
 * rank, a block of rows for each function, mode, algorithm and protocol, out of place and in place side by
 * side, the average bus bandwidth behind it. Whatever reads nccl-tests reads this; so does
 * src/import/expected.h. docs/BENCH-FORMAT.md describes it.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdbool.h>

#include "bench/bench_result.h"
#include "bench/bench_stats.h"
#include "common/status.h"
#include "output/sink.h"

struct bench_table_options {
	bool is_median; /* the time column: median of the calls; else their mean, as nccl-tests has it */
	bool has_percentiles; /* columns p50, p90, p99, min and max behind #wrong */
	enum bench_over over; /* whose time a call's is; the table's head says it */
	/* What a model says, a time for each cell of the run (0: nothing): columns model and err%, how much
	 * longer the measured time is than that. Borrowed; NULL: no such columns. */
	const double *model_ns;
};

/* A cell without a time (no calls, or their GPU time was not taken) has no row; a comment says so.
 * ERR_NO_SPACE, or the sink's status. */
enum status bench_table_write(struct sink *sink, const struct bench_run *run,
			      const struct bench_table_options *options);

/* nccl-tests' name of the test: "all_reduce_perf", or "unknown". */
const char *bench_table_test(uint8_t function);
/* nccl-tests' name of a datatype: "float", "int32", or "unknown". */
const char *bench_table_type(uint8_t datatype);

#endif
