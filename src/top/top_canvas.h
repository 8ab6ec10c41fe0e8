/*
 * A screen that is not there yet: cells with a character and a style. What is drawn here goes to a
 * terminal (top_screen.h) or out as plain text, and a test can read it.
 *
 * Nothing is drawn outside, whatever is asked for. A wide character takes two cells or, where only
 * one is left, none; a mark goes into the cell of what it stands on.
 */
#ifndef TOP_CANVAS_H
#define TOP_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "common/status.h"
#include "doctor/live.h"
#include "output/sink.h"

/*
 * Texts for columns of a screen: how wide they are, and numbers in few characters.
 *
 * Names come from jobs: any bytes. What is no UTF-8, has no width or would turn the writing around
 * is shown as '?'; where the locale is not UTF-8 everything beyond ASCII is. wcwidth() decides, so
 * the caller sets LC_CTYPE.
 */

enum { TOP_TEXT_NUMBER = 24 };

unsigned int top_text_width(const char *text, bool is_utf8);

/* Bytes of the beginning of `text` that fit into `width` columns, ended at a blank where there is
 * one; the blanks after it are in *skip. For wrapping: at least one character. */
size_t top_text_line(const char *text, unsigned int width, bool is_utf8, size_t *skip);

/* All give back what they wrote, "-" where there is nothing to tell (NaN, 0 for an age). */
const char *top_text_rate(char to[static TOP_TEXT_NUMBER], double per_s); /* "12.3k" */
const char *top_text_bandwidth(char to[static TOP_TEXT_NUMBER],
			       double bytes_per_s);			   /* "182 GB/s" */
const char *top_text_share(char to[static TOP_TEXT_NUMBER], double share); /* "12%" */
const char *top_text_age(char to[static TOP_TEXT_NUMBER], uint64_t ns);	   /* "3m12s" */

/* Small drawings of characters: the last minute as a line of blocks, a share as a bar. */

enum {
	TOP_BARS_COLUMNS = 60, /* the most that are drawn */
	TOP_BARS_TEXT = TOP_BARS_COLUMNS * 3 + 1,
};

/* Bandwidth of the last minute before now, oldest left; the highest of it is the full height. A
 * blank is where nothing finished, or nobody looked. */
const char *top_bars_minute(char to[static TOP_BARS_TEXT], const struct live_history *history,
			    uint64_t now_wall_ns, unsigned int columns, bool is_utf8);

/* A share from 0 to 1, blanks included; NaN is all blanks. */
const char *top_bars_share(char to[static TOP_BARS_TEXT], double share, unsigned int columns,
			   bool is_utf8);

enum {
	TOP_CANVAS_WIDTH_MAX = 1000,
	TOP_CANVAS_HEIGHT_MAX = 2000,
	TOP_CELL_CHARACTERS = 4, /* one, two marks on it, and 0 */
};

enum top_style {
	TOP_PLAIN = 0,
	TOP_STRONG = 1,
	TOP_FAINT = 2,
	TOP_TITLE = 3,	      /* of a pane */
	TOP_TITLE_ACTIVE = 4, /* of the one that keys go to */
	TOP_CHOSEN = 5,	      /* the row under the cursor, in the pane that keys go to */
	TOP_ALARM = 6,	      /* a whole line of it */
	TOP_WARNING = 7,
	TOP_BAD = 8, /* a word that should be seen, among others */
	TOP_STYLES = 9,
};

struct top_cell {
	wchar_t characters[TOP_CELL_CHARACTERS];
	uint8_t style;
	bool is_second; /* the right half of a wide character */
};

struct top_canvas {
	unsigned int width;
	unsigned int height;
	bool is_utf8;
	struct top_cell *cells; /* height x width */
	size_t room;
};

void top_canvas_init(struct top_canvas *canvas, bool is_utf8);
void top_canvas_release(struct top_canvas *canvas);

/* Blank, and so large; cut to the limits above. ERR_NO_SPACE (memory): it has no cells then. */
enum status top_canvas_clear(struct top_canvas *canvas, unsigned int width, unsigned int height);

const struct top_cell *top_canvas_cell(const struct top_canvas *canvas, unsigned int row,
				       unsigned int column);

/* Draw in `width` columns at most; a text that is cut ends with '~'. Gives back the columns it
 * took. */
unsigned int top_canvas_text(struct top_canvas *canvas, unsigned int row, unsigned int column,
			     unsigned int width, enum top_style style, const char *text);

/* The same at the right end of these columns. */
void top_canvas_right(struct top_canvas *canvas, unsigned int row, unsigned int column,
		      unsigned int width, enum top_style style, const char *text);

/* Give a style to cells that have none of their own, or to all. */
void top_canvas_style(struct top_canvas *canvas, unsigned int row, enum top_style style,
		      bool is_for_all);

/* Lines of text without blanks at their ends. */
void top_canvas_write(const struct top_canvas *canvas, struct sink *sink);

#endif
