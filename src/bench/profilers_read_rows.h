/* Between the files that read a comparison's JSON; others use profilers_read.h. */
#ifndef PROFILERS_READ_ROWS_H
#define PROFILERS_READ_ROWS_H

#include <stddef.h>

#include "bench/bench_read_fields.h"
#include "bench/profilers.h"

enum profilers_row {
	PROFILERS_ROW_JOB = 0,
	PROFILERS_ROW_COMPLETE = 1,
	PROFILERS_ROW_ACCURACY = 2,
	PROFILERS_ROW_OVERHEAD = 3,
	PROFILERS_ROW_TRAINING = 4,
	PROFILERS_ROW_KINDS = 5,
};

struct profilers_row_kind {
	const char *what;
	size_t size;
	const struct bench_field *fields;
	size_t field_count;
	bench_own_fn own;
};

extern const struct profilers_row_kind profilers_row_kinds[PROFILERS_ROW_KINDS];

#endif
