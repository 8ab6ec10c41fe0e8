/*
 * Text tables: columns as wide as their widest cell, cut where the terminal is narrower. A row may
 * have notes: whole lines below it, wrapped to the width.
 *
 *	PID   JOB  OPERATIONS
 *	4711  a      1,234,567
 *	      kernel events are off: /dev/shm has 64 MiB
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/status.h"
#include "output/sink.h"

enum table_align { TABLE_LEFT = 0, TABLE_RIGHT = 1 };

struct table_column {
	const char *title;
	enum table_align align;
	unsigned int least; /* 0: never cut; else the width down to which it may be cut */
};

struct table_item {
	char *text;
	bool is_note;
};

struct table {
	const struct table_column *columns; /* borrowed */
	size_t count;
	struct table_item *items; /* cells and notes in the order in which they came */
	size_t used;
	size_t room;
	bool is_broken; /* an allocation failed */
};

/* NULL when there is no memory. `columns` is borrowed until table_free(). */
struct table *table_new(const struct table_column *columns, size_t count);
void table_free(struct table *table);

/* Cells fill the rows from left to right; a row ends with its last column. Control bytes become
 * '?'. A failed allocation sticks and is what table_write() returns. */
void table_cell(struct table *table, const char *text);
void table_cellf(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* A line below the row that was filled last. */
void table_note(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* `width` 0: as wide as it takes. A table without rows writes nothing. */
enum status table_write(const struct table *table, struct sink *sink, unsigned int width);

/* `text` in lines of at most `width` columns (0: one line), the first one after `first`, the
 * others after `indent` blanks. A word longer than the width stays whole. */
void table_wrap(struct sink *sink, const char *text, const char *first, size_t indent,
		unsigned int width);

/*
 * A table that fits: when the terminal is too narrow, columns go, the least important first, and a line
 * below says which.
 */

enum { REPORT_GRID_COLUMNS = 24 };

struct report_grid {
	struct table_column columns[REPORT_GRID_COLUMNS];
	unsigned int ranks
		[REPORT_GRID_COLUMNS]; /* 0: always there; else the larger, the earlier it goes */
	struct table table;
};

void report_grid_init(struct report_grid *grid);
void report_grid_release(struct report_grid *grid);

/* All columns before the first cell; those past REPORT_GRID_COLUMNS are left out. */
void report_grid_column(struct report_grid *grid, const char *title, enum table_align align,
			unsigned int least, unsigned int rank);

/* As table_cell(), table_cellf(), table_note(). */
#define report_grid_cell(grid, text) table_cell(&(grid)->table, text)
#define report_grid_cellf(grid, ...) table_cellf(&(grid)->table, __VA_ARGS__)
#define report_grid_note(grid, ...) table_note(&(grid)->table, __VA_ARGS__)

/* Columns with anything but "-", and the first: bit i is column i's. */
uint32_t report_grid_filled(const struct report_grid *grid);

/* Columns of several tables for which the terminal was too narrow: their titles, each once. */
struct report_grid_left_out {
	const char *titles[REPORT_GRID_COLUMNS];
	size_t count;
};

/*
 * Columns that have "-" in every row say nothing: they are left out, but for the first. `width` 0: as
 * wide as it takes. What did not fit is added to *left_out, or said in a line where that is NULL.
 * ERR_NO_SPACE, or the sink's status.
 */
enum status report_grid_write(const struct report_grid *grid, struct sink *sink, unsigned int width,
			      struct report_grid_left_out *left_out);

/* "(too narrow for MIN, MAX: ...)"; nothing when all fitted. */
void report_grid_say_left_out(const struct report_grid_left_out *left_out, struct sink *sink,
			      unsigned int width);

#endif
