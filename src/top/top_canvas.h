/*
 * An off-screen canvas: cells with a character and a style. It is shown on a terminal
 * (top_screen.h) or written as plain text, and tests can read it.
 *
 * Drawing outside the canvas is ignored. A wide character takes two cells and is dropped where only
 * one is left; a combining mark goes into the cell of its base character.
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
 * Text in columns: display width, and numbers in few characters.
 *
 * Names come from jobs and may hold any bytes. Invalid UTF-8, characters without a width and
 * characters that change the writing direction are shown as '?'; in a locale without UTF-8, so is
 * everything beyond ASCII. This uses wcwidth(), so the caller sets LC_CTYPE.
 */

enum { TOP_TEXT_NUMBER = 24 };

unsigned int top_text_width(const char *text, bool is_utf8);

/* Returns how many bytes at the start of `text` fit into `width` columns, breaking at a blank if
 * possible; *skip is the number of blanks that follow. At least one character, for wrapping. */
size_t top_text_line(const char *text, unsigned int width, bool is_utf8, size_t *skip);

/* All return `to`; "-" means no value (NaN, 0 for an age). */
const char *top_text_rate(char to[static TOP_TEXT_NUMBER], double per_s); /* "12.3k" */
const char *top_text_bandwidth(char to[static TOP_TEXT_NUMBER],
			       double bytes_per_s);			   /* "182 GB/s" */
const char *top_text_share(char to[static TOP_TEXT_NUMBER], double share); /* "12%" */
const char *top_text_age(char to[static TOP_TEXT_NUMBER], uint64_t ns);	   /* "3m12s" */

/* Small drawings made of characters: the last minute as a row of blocks, a share as a bar. */

enum {
	TOP_BARS_COLUMNS = 60, /* drawn at most */
	TOP_BARS_TEXT = TOP_BARS_COLUMNS * 3 + 1,
};

/* Bandwidth of the minute before now, oldest on the left, scaled to its maximum. Blank where
 * nothing finished or there was no refresh. */
const char *top_bars_minute(char to[static TOP_BARS_TEXT], const struct live_history *history,
			    uint64_t now_wall_ns, unsigned int columns, bool is_utf8);

/* A share from 0 to 1, padded with blanks; NaN is all blanks. */
const char *top_bars_share(char to[static TOP_BARS_TEXT], double share, unsigned int columns,
			   bool is_utf8);

enum {
	TOP_CANVAS_WIDTH_MAX = 1000,
	TOP_CANVAS_HEIGHT_MAX = 2000,
	TOP_CELL_CHARACTERS = 4, /* base character, two combining marks, 0 */
};

enum top_style {
	TOP_PLAIN = 0,
	TOP_STRONG = 1,
	TOP_FAINT = 2,
	TOP_TITLE = 3,	      /* of a pane */
	TOP_TITLE_ACTIVE = 4, /* of the active pane */
	TOP_CHOSEN = 5,	      /* the row under the cursor in the active pane */
	TOP_ALARM = 6,	      /* a whole line */
	TOP_WARNING = 7,
	TOP_BAD = 8, /* a word that should stand out in its line */
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

/* Clears the canvas and sets its size, within the limits above. ERR_NO_SPACE (memory): no cells. */
enum status top_canvas_clear(struct top_canvas *canvas, unsigned int width, unsigned int height);

const struct top_cell *top_canvas_cell(const struct top_canvas *canvas, unsigned int row,
				       unsigned int column);

/* Draw within `width` columns; text that is cut ends with '~'. Returns the columns used. */
unsigned int top_canvas_text(struct top_canvas *canvas, unsigned int row, unsigned int column,
			     unsigned int width, enum top_style style, const char *text);

/* The same, right-aligned. */
void top_canvas_right(struct top_canvas *canvas, unsigned int row, unsigned int column,
		      unsigned int width, enum top_style style, const char *text);

/* Set the style of all cells, or only of those that have none. */
void top_canvas_style(struct top_canvas *canvas, unsigned int row, enum top_style style,
		      bool is_for_all);

/* The lines as text, without trailing blanks. */
void top_canvas_write(const struct top_canvas *canvas, struct sink *sink);

#endif
