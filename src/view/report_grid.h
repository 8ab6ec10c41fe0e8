/*
 * A table that fits: when the terminal is too narrow, columns go, the least important first, and a line
 * below says which. Built on table.h.
 */
#ifndef REPORT_GRID_H
#define REPORT_GRID_H

#include <stdbool.h>
#include <stddef.h>

#include "common/attributes.h"
#include "common/status.h"
#include "view/sink.h"
#include "view/table.h"

enum { REPORT_GRID_COLUMNS = 24 };

struct report_grid_column {
	const char *title;
	enum table_align align;
	unsigned int least; /* as in table.h */
	unsigned int rank;  /* 0: always there; else the larger, the earlier it goes */
};

struct report_grid {
	struct report_grid_column columns[REPORT_GRID_COLUMNS];
	size_t column_count;
	char **cells;
	size_t used;
	size_t room;
	struct report_grid_note {
		size_t row; /* below so many rows */
		char *text;
	} * notes;
	size_t note_count;
	size_t note_room;
	bool is_broken; /* an allocation failed */
};

void report_grid_init(struct report_grid *grid);
void report_grid_release(struct report_grid *grid);

/* All columns before the first cell; those past REPORT_GRID_COLUMNS are left out. */
void report_grid_column(struct report_grid *grid, const char *title, enum table_align align,
			unsigned int least, unsigned int rank);

/* As table_cell(): cells fill the rows from left to right. */
void report_grid_cell(struct report_grid *grid, const char *text);
void report_grid_cellf(struct report_grid *grid, const char *format, ...) PRINTF_LIKE(2, 3);
/* A line below the row that was filled last. */
void report_grid_note(struct report_grid *grid, const char *format, ...) PRINTF_LIKE(2, 3);

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
