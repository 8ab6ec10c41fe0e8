/* What stands in a cell: texts and styles for the rows of a model. */
#ifndef TOP_CELLS_H
#define TOP_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/live.h"
#include "programs/top/top_canvas.h"
#include "programs/top/top_columns.h"
#include "programs/top/top_view.h"

enum { TOP_CELL_TEXT = 512 };

struct top_cell_of {
	const struct live *live;
	enum top_pane pane;
	enum top_column_id column;
	uint32_t index;	    /* as in struct top_row */
	unsigned int width; /* for drawings */
	bool is_utf8;
};

/* Gives back `text`. */
const char *top_cells_text(const struct top_cell_of *cell, char text[static TOP_CELL_TEXT]);
enum top_style top_cells_style(const struct top_cell_of *cell);

/* What there is to say of an operation in flight beyond its row, line by line: how far its kernel
 * is, and what it waits for. NULL after the last. */
const char *top_cells_detail(const struct live *live, uint32_t seat, unsigned int line,
			     char text[static TOP_CELL_TEXT]);

/* An operation in flight in one sentence, for where columns are missing. */
const char *top_cells_summary(const struct live *live, uint32_t seat,
			      char text[static TOP_CELL_TEXT]);

#endif
