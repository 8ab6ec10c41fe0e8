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

#include "common/status.h"
#include "programs/top/top_canvas.h"
#include "programs/top/top_model.h"
#include "programs/top/top_view.h"

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

/* The same for who does not scroll: all notices with their texts, all rows (TOP_DRAW_ROWS a pane at
 * most), no cursor, no keys. `view` has is_once. */
enum { TOP_DRAW_ROWS = 400 };
enum status top_draw_once(struct top_canvas *canvas, const struct top_model *model,
			  struct top_view *view, const struct top_around *around,
			  unsigned int width);

#endif
