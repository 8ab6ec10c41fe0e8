/* The columns of a pane: which there are, and which fit. */
#ifndef TOP_COLUMNS_H
#define TOP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "programs/top/top_model.h"

enum top_column_id {
	TOP_COLUMN_COMM,
	TOP_COLUMN_JOB,
	TOP_COLUMN_KIND,
	TOP_COLUMN_RANKS,
	TOP_COLUMN_RATE,
	TOP_COLUMN_TIMED,
	TOP_COLUMN_BUSBW,
	TOP_COLUMN_WAIT,
	TOP_COLUMN_WAIT_BAR,
	TOP_COLUMN_OLDEST,
	TOP_COLUMN_MINUTE,
	TOP_COLUMN_RANK,
	TOP_COLUMN_MEMBER,
	TOP_COLUMN_HOST,
	TOP_COLUMN_PID,
	TOP_COLUMN_GPU,
	TOP_COLUMN_FLIGHTS,
	TOP_COLUMN_STATE,
	TOP_COLUMN_AGE,
	TOP_COLUMN_OPERATION,
	TOP_COLUMN_SIZE,
	TOP_COLUMN_OP_STATE,
	TOP_COLUMN_WAITS_FOR,
};

enum { TOP_COLUMNS_MAX = 13, TOP_MARGIN = 2 /* left of all, for the cursor */ };

struct top_column {
	enum top_column_id id;
	const char *title;
	unsigned int least; /* cut to this where nothing more can be dropped */
	unsigned int good;  /* with less, others are dropped */
	unsigned int most;  /* as wide as it may become where there is room */
	unsigned int drop;  /* 0: stays; else the highest goes first where there is no room */
	bool is_right;	    /* numbers */
	bool is_measured;   /* not wider than the longest text in it */
};

/* Columns that fit, with their places. */
struct top_fit {
	const struct top_column *columns[TOP_COLUMNS_MAX];
	unsigned int at[TOP_COLUMNS_MAX];
	unsigned int widths[TOP_COLUMNS_MAX];
	size_t count;
};

/* For a screen of so many columns. One that has room for none gets none. */
void top_columns_fit(struct top_fit *fit, const struct top_model *model, enum top_pane pane,
		     unsigned int width, bool is_utf8);

#endif
