/* What `ringside bench` measured, to standard output and to files. Rank 0's alone. */
#ifndef BENCH_WRITE_H
#define BENCH_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/bench_result.h"
#include "bench/bench_stats.h"

enum { BENCH_FILES_MAX = 16 };

struct bench_write {
	const char *paths[BENCH_FILES_MAX]; /* by their end: .json, .parquet, otherwise text */
	size_t count;
	bool is_json; /* on standard output, instead of text */
	bool has_percentiles;
	bool has_histogram;
	bool is_median;
	bool has_model;
	enum bench_over over;
};

/* Could all be written? Before anything is measured. 0, or CLI_EXIT_TROUBLE after it was told. */
int bench_write_check(const struct bench_write *write);
/* Files, then standard output. Gives back exit_code, or CLI_EXIT_TROUBLE after something was told. */
int bench_write_all(const struct bench_write *write, const struct bench_run *run, int exit_code);

#endif
