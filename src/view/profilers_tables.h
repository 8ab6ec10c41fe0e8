/* The tables of a comparison of profilers, as grids: the text view and the page show the same. */
#ifndef PROFILERS_TABLES_H
#define PROFILERS_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/profilers.h"
#include "output/table.h"

enum profilers_table {
	PROFILERS_TABLE_COMPLETE = 0,	 /* plugin x mode */
	PROFILERS_TABLE_BY_FUNCTION = 1, /* plugin and function, a column for each mode */
	PROFILERS_TABLE_BY_SIZE = 2,
	PROFILERS_TABLE_BY_RANK = 3,
	PROFILERS_TABLE_ACCURACY = 4, /* plugin, mode, size */
	PROFILERS_TABLE_OVERHEAD = 5, /* plugin, mode */
	PROFILERS_TABLE_OVERHEAD_BY_SIZE = 6,
	PROFILERS_TABLE_TRAINING = 7,
	PROFILERS_TABLE_ACCURACY_CELLS = 8, /* for those who want it all: each function and size */
	PROFILERS_TABLE_OVERHEAD_CELLS = 9,
	PROFILERS_TABLES = 10,
};

/* "completeness: calls recorded of calls issued". */
const char *profilers_table_title(enum profilers_table which);
/* What its columns mean, in a sentence or two. */
const char *profilers_table_words(enum profilers_table which);

/* Columns and rows into a grid that was initialised; no rows: there is nothing to show. */
void profilers_table_fill(struct report_grid *grid, const struct profilers_comparison *comparison,
			  enum profilers_table which);

enum { PROFILERS_SHORT_TEXT = 64 };
/* "1 KiB"; "1 KiB to 8 KiB"; "from 32 MiB"; "size not told". */
const char *profilers_size_text(char to[static PROFILERS_SHORT_TEXT], uint64_t bytes,
				uint64_t bytes_to);
/* "100 %" is whole, nothing is rounded up to it; "not readable", "failed", "not run". */
const char *profilers_share_text(char to[static PROFILERS_SHORT_TEXT],
				 const struct profilers_comparison *comparison,
				 const struct profilers_which *which);
/* "slower", "faster", "no difference shown", "too few runs to say". */
const char *profilers_verdict_text(const struct profilers_overhead *row);
/* "NVIDIA H200 on node-1, 4 ranks sharing one GPU (MPS), NCCL 2.28.9, CUDA 13.0". */
enum { PROFILERS_PLACE_TEXT = 320 };
const char *profilers_place_text(char to[static PROFILERS_PLACE_TEXT],
				 const struct profilers_comparison *comparison);
/* "5 runs alternating, 15,000 measured calls of each rank". */
const char *profilers_amount_text(char to[static PROFILERS_PLACE_TEXT],
				  const struct profilers_comparison *comparison);

/* Between the files that fill tables. */
void profilers_tables_overhead(struct report_grid *grid,
			       const struct profilers_comparison *comparison,
			       enum profilers_table which);
void profilers_tables_training(struct report_grid *grid,
			       const struct profilers_comparison *comparison);
void profilers_tables_accuracy(struct report_grid *grid,
			       const struct profilers_comparison *comparison,
			       enum profilers_table which);

#endif
