/*
 * The whole screen, into a canvas:
 *
 *	gpu-node-07  08:12:33  1 job  8 ranks: 7 alive, 1 killed            every 1s
 *	! rank 5 has not issued AllReduce 812 of dp; 7 ranks wait            for 24s
 *	  COMMUNICATOR  KIND      RANKS  OPS/S     BUSBW  WAIT OLDEST  LAST 60s
 *	> dp            net-only   8/16    120  182 GB/s   12%  24.1s  ▅▅▆▅▅▇█▅
 *	  RANK     PID GPU  OPS/S     BUSBW  WAIT           FLIGHT OLDEST  STATE
 *	  ...
 *	  IN FLIGHT  COMMUNICATOR  RANK  OPERATION      SIZE  WAITS FOR
 *	  ...
 *	q quit  tab pane  s sort  / filter  p pause  ? help
 *
 * Where it is too low for all panes, the one that keys go to has it alone.
 */
#ifndef TOP_DRAW_H
#define TOP_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/live.h"
#include "top/top_canvas.h"
#include "top/top_model.h"
#include "top/top_options.h"

/* The columns of a pane: which there are, and which fit. */

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

/* What stands in a cell: texts and styles for the rows of a model. */

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

enum { TOP_REMARK_TEXT = 512 };

/* What is known beside the looks. */
struct top_around {
	char host[256];
	char remark[TOP_REMARK_TEXT]; /* what could not be read, and why; "" nothing */
};

/* What a screen of so many lines gives to whom; at 0 lines a part is not shown. */
struct top_layout {
	unsigned int at[TOP_PANES];
	unsigned int lines[TOP_PANES]; /* of which the first is the title, but for notices */
	unsigned int remark_at;	       /* 0 none */
	unsigned int keys_at;	       /* 0 none */
};
void top_layout(struct top_layout *layout, const struct top_model *model,
		const struct top_view *view, unsigned int height, unsigned int notice_lines,
		bool has_remark);

/* Draws what fits into width x height, and moves what is shown so that the cursors are visible. */
enum status top_draw(struct top_canvas *canvas, const struct top_model *model,
		     struct top_view *view, const struct top_around *around, unsigned int width,
		     unsigned int height);

enum status top_draw_once(struct top_canvas *canvas, const struct top_model *model,
			  struct top_view *view, const struct top_around *around,
			  unsigned int width);

#endif
