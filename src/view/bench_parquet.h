/* Every call of every rank as a row of a Parquet file. docs/BENCH-FORMAT.md has the columns. */
#ifndef BENCH_PARQUET_H
#define BENCH_PARQUET_H

#include "bench/bench_result.h"
#include "common/status.h"
#include "output/sink.h"

/* A cell in loop mode, and one without calls, has no single calls and so no rows: what the file does not
 * have is in its metadata ("ringside.results_without_calls"). The sink is not flushed. ERR_NO_SPACE, or the sink's
 * status. */
enum status bench_parquet_write(struct sink *sink, const struct bench_run *run);

#endif
