/*
 * Text tables: columns as wide as their widest cell, cut where the terminal is too narrow. A row may have notes: lines
 * below it, wrapped to the width.
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
	struct table_item *items; /* cells and notes in the order they were added */
	size_t used;
	size_t room;
	bool is_broken; /* an allocation failed */
};

/* NULL without memory. `columns` is borrowed until table_free(). */
struct table *table_new(const struct table_column *columns, size_t count);
void table_free(struct table *table);

/* Cells fill rows from left to right; a row ends with its last column. Control bytes become '?'. table_write() returns
 * the error of a failed allocation. */
void table_cell(struct table *table, const char *text);
void table_cellf(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* A line below the last row. */
void table_note(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* `width` 0: no limit. Writes nothing for a table without rows. */
enum status table_write(const struct table *table, struct sink *sink, unsigned int width);

/* `text` in lines of at most `width` columns (0: one line), the first after `first`, the others indented by `indent`.
 * Words are never split. */
void table_wrap(struct sink *sink, const char *text, const char *first, size_t indent,
		unsigned int width);

/*
 * A table that fits the terminal: if it is too narrow, the least important columns are omitted, and a line below names
 * them.
 */

enum { REPORT_GRID_COLUMNS = 24 };

struct report_grid {
	struct table_column columns[REPORT_GRID_COLUMNS];
	unsigned int
		ranks[REPORT_GRID_COLUMNS]; /* 0: never omitted; larger ones are omitted first */
	bool keeps_empty; /* also columns without content: scripts count columns */
	struct table table;
};

void report_grid_init(struct report_grid *grid);
void report_grid_release(struct report_grid *grid);

/* Add all columns before the first cell; those past REPORT_GRID_COLUMNS are ignored. */
void report_grid_column(struct report_grid *grid, const char *title, enum table_align align,
			unsigned int least, unsigned int rank);

/* As table_cell(), table_cellf(), table_note(). */
#define report_grid_cell(grid, text) table_cell(&(grid)->table, text)
#define report_grid_cellf(grid, ...) table_cellf(&(grid)->table, __VA_ARGS__)
#define report_grid_note(grid, ...) table_note(&(grid)->table, __VA_ARGS__)

/* Columns with anything but "-", and the first. Bit i: column i. */
uint32_t report_grid_filled(const struct report_grid *grid);

/* Titles of the columns omitted from several tables, each once. */
struct report_grid_left_out {
	const char *titles[REPORT_GRID_COLUMNS];
	size_t count;
};

/*
 * Columns with "-" in every row are omitted, except the first. `width` 0: no limit. Columns that did not fit are added to
 * *left_out, or named in a line below if that is NULL. Returns ERR_NO_SPACE or the sink's status.
 */
enum status report_grid_write(const struct report_grid *grid, struct sink *sink, unsigned int width,
			      struct report_grid_left_out *left_out);

/* "(terminal too narrow for MIN, MAX)"; nothing if all fitted. */
void report_grid_say_left_out(const struct report_grid_left_out *left_out, struct sink *sink,
			      unsigned int width);

#endif
