/*
 * Draws the whole screen into a canvas:
 *
 *	gpu-node-07  08:12:33  1 job  8 ranks: 7 alive, 1 killed            every 1s
 *	! rank 5 has not called AllReduce #812 of dp; 7 ranks wait            for 24s
 *	  COMMUNICATOR  KIND      RANKS  OPS/S     BUSBW  WAIT OLDEST  LAST 60s
 *	> dp            net-only   8/16    120  182 GB/s   12%  24.1s  ▅▅▆▅▅▇█▅
 *	  RANK     PID GPU  OPS/S     BUSBW  WAIT           FLIGHT OLDEST  STATE
 *	  ...
 *	  IN FLIGHT  COMMUNICATOR  RANK  OPERATION      SIZE  WAITS FOR
 *	  ...
 *	q quit  tab pane  s sort  / filter  p pause  ? help
 *
 * A screen too low for all panes shows only the active one.
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

/* The columns of each pane, and which of them fit. */

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

enum { TOP_COLUMNS_MAX = 13, TOP_MARGIN = 2 /* left margin for the cursor */ };

struct top_column {
	enum top_column_id id;
	const char *title;
	unsigned int least; /* width when nothing more can be dropped */
	unsigned int good;  /* other columns are dropped before it gets narrower */
	unsigned int most;  /* width when there is room */
	unsigned int drop;  /* 0: never dropped; else the highest is dropped first */
	bool is_right;	    /* numbers */
	bool is_measured;   /* not wider than the longest text in it */
};

/* The columns that fit, with their positions. */
struct top_fit {
	const struct top_column *columns[TOP_COLUMNS_MAX];
	unsigned int at[TOP_COLUMNS_MAX];
	unsigned int widths[TOP_COLUMNS_MAX];
	size_t count;
};

/* Chooses columns for a screen this wide; a screen that is too narrow gets none. */
void top_columns_fit(struct top_fit *fit, const struct top_model *model, enum top_pane pane,
		     unsigned int width, bool is_utf8);

/* Text and style of one cell of a row. */

enum { TOP_CELL_TEXT = 512 };

struct top_cell_of {
	const struct live *live;
	enum top_pane pane;
	enum top_column_id column;
	uint32_t index;	    /* as in struct top_row */
	unsigned int width; /* for bars and sparklines */
	bool is_utf8;
};

/* Returns `text`. */
const char *top_cells_text(const struct top_cell_of *cell, char text[static TOP_CELL_TEXT]);

enum { TOP_REMARK_TEXT = 512 };

/* Context that does not come from the recordings. */
struct top_around {
	char host[256];
	char remark[TOP_REMARK_TEXT]; /* what could not be read, and why; "" if all was */
};

/* How the lines of a screen are divided; a part with 0 lines is not shown. */
struct top_layout {
	unsigned int at[TOP_PANES];
	unsigned int lines[TOP_PANES]; /* includes the title line, except for notices */
	unsigned int remark_at;	       /* first of the remarks; 0 none */
	unsigned int keys_at;	       /* 0 none */
};
void top_layout(struct top_layout *layout, const struct top_model *model,
		const struct top_view *view, unsigned int height, unsigned int notice_lines,
		unsigned int remarks);

/* Draws what fits into width x height, and scrolls panes so that their cursors are visible. */
enum status top_draw(struct top_canvas *canvas, const struct top_model *model,
		     struct top_view *view, const struct top_around *around, unsigned int width,
		     unsigned int height);

enum status top_draw_once(struct top_canvas *canvas, const struct top_model *model,
			  struct top_view *view, const struct top_around *around,
			  unsigned int width);

#endif
