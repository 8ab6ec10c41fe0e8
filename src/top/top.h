/*
 * The live screen, from top to bottom: options and what the user chose to see, the rows of one refresh, the canvas they
 * are drawn on, and the terminal that shows it. Only the terminal needs ncurses.
 */
#ifndef TOP_H
#define TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "analysis/job.h"
#include "cli/cli.h"
#include "common/status.h"
#include "doctor/live.h"
#include "output/sink.h"

/* What the user chose to see; kept across refreshes. */

enum top_pane {
	TOP_NOTICES = 0,
	TOP_COMMS = 1,
	TOP_SEATS = 2, /* of the chosen communicator */
	TOP_FLIGHTS = 3,
	TOP_PANES = 4,
};

enum top_sort {
	TOP_BY_ORDER = 0, /* communicators by size, ranks by number */
	TOP_BY_WAIT = 1,
	TOP_BY_BUSBW = 2,
	TOP_BY_RATE = 3,
	TOP_BY_AGE = 4,
};

enum { TOP_FILTER_BYTES = 64 };

/* The cursor of a pane follows its row from refresh to refresh. */
struct top_place {
	uint64_t key;
	size_t at;
	size_t first;	 /* the row at the top of the pane */
	size_t shown;	 /* rows that fit, when last drawn */
	bool is_by_hand; /* else the cursor moves to the subject of a notice */
};

struct top_view {
	enum top_pane pane; /* the active pane */
	enum top_sort sorts[TOP_PANES];
	struct top_place places[TOP_PANES];
	char filter
		[TOP_FILTER_BYTES]; /* substring of a communicator's or job's name; "" shows all */
	bool is_typing;		    /* typing a filter */
	bool is_paused;
	bool has_help;
	bool is_once; /* plain text: all rows, no cursor, no history */
	uint64_t interval_ns;
};

#define TOP_INTERVAL_LEAST_NS UINT64_C(200000000)
#define TOP_INTERVAL_MOST_NS UINT64_C(60000000000)

void top_view_init(struct top_view *view, uint64_t interval_ns);

const char *top_view_sort_name(const struct top_view *view, enum top_pane pane);

/* The command line. Its page is in cli/pages.h. */

struct top_options {
	uint64_t interval_ns;
	const char *directory; /* NULL: the default directory */
	bool is_once;
};

/* Returns -1 to continue, else the exit code: help or an error was printed. */
int top_options_parse(struct top_options *options, int argc, char **argv);

/*
 * The rows of one refresh, filtered and sorted, ready to be drawn. Independent of the terminal. Rows
 * are indices into `live` and valid as long as it does not change.
 */

struct top_row {
	uint64_t key; /* stable across refreshes */
	uint32_t
		index; /* of live.notices, job.comms or job.seats (members, operations in flight) */
	bool is_over;  /* its processes are gone: always listed last */
	double value;  /* sort key */
};

struct top_list {
	struct top_row *rows;
	size_t count;
};

struct top_model {
	const struct live *live;
	struct top_list lists[TOP_PANES];
	uint32_t comm;	     /* the chosen one, index into job.comms; UINT32_MAX none */
	uint32_t alive;	     /* ranks */
	uint32_t killed;     /* ended without closing their recording */
	uint32_t ended;	     /* or unknown */
	bool has_many_jobs;  /* show a column for them */
	bool has_many_hosts; /* the same */
	bool has_gpus;	     /* at least one process reported its GPU */
	bool is_sampled;     /* not all operations are timed */
	bool has_minute;     /* there is a history to draw */
	bool has_comm_ranks; /* ranks of the chosen one differ from the job's ranks */
};

void top_model_init(struct top_model *model);
void top_model_release(struct top_model *model);

/* Rebuilds all lists and moves the cursors of `view` along with their rows. ERR_NO_SPACE (memory):
 * the lists are empty. */
enum status top_model_make(struct top_model *model, const struct live *live, struct top_view *view);

/* The point that the last refresh added to a history; NULL if it added none. */
const struct live_point *top_model_point(const struct live *live,
					 const struct live_history *history);

/* Age of the oldest operation in flight on any of its ranks; 0 if there is none. */
uint64_t top_model_oldest_ns(const struct live *live, const struct job_comm *comm);

/* True for "hang", "missing", "mismatch" and "dead", which need attention now. */
bool top_model_is_alarm(const struct live_notice *notice);

/* Key handling: moving, sorting, filtering. Independent of the terminal. */

enum top_key {
	TOP_KEY_NONE = 0, /* no key pressed */
	TOP_KEY_CHARACTER = 1,
	TOP_KEY_UP = 2,
	TOP_KEY_DOWN = 3,
	TOP_KEY_PAGE_UP = 4,
	TOP_KEY_PAGE_DOWN = 5,
	TOP_KEY_HOME = 6,
	TOP_KEY_END = 7,
	TOP_KEY_NEXT = 8,     /* tab */
	TOP_KEY_PREVIOUS = 9, /* shift-tab */
	TOP_KEY_ENTER = 10,
	TOP_KEY_ESCAPE = 11,
	TOP_KEY_BACKSPACE = 12,
	TOP_KEY_REDRAW = 13,  /* Ctrl-L, window resized */
	TOP_KEY_LEFT_US = 14, /* the terminal was closed */
};

enum top_action {
	TOP_STAY = 0,
	TOP_DRAW = 1, /* rebuild the model and draw */
	TOP_QUIT = 2,
};

/* `character` is used with TOP_KEY_CHARACTER only. */
enum top_action top_keys_take(struct top_view *view, const struct top_model *model,
			      enum top_key key, wchar_t character);

/* One line of help per key; returns NULL after the last. */
const char *top_keys_help(unsigned int i, const char **what);

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

/*
 * An off-screen canvas: cells with a character and a style. It is shown on a terminal
 * (below) or written as plain text, and tests can read it.
 *
 * Drawing outside the canvas is ignored. A wide character takes two cells and is dropped where only
 * one is left; a combining mark goes into the cell of its base character.
 */

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

/*
 * The terminal, through ncurses, which supports only one. Everything shown comes from a canvas;
 * ncurses sends the differences.
 */

/* False: this terminal (TERM) is unknown or has no cursor addressing; nothing was changed. */
bool top_screen_open(void);

/* Restores the terminal. May be called when it is not open. */
void top_screen_close(void);

/* Release the terminal for a while, then take it back with its current size. */
void top_screen_leave(void);
void top_screen_return(void);

void top_screen_size(unsigned int *width, unsigned int *height);
/* The window size has changed. */
void top_screen_resize(void);

void top_screen_show(const struct top_canvas *canvas);

/* The next key that was pressed; does not block. */
enum top_key top_screen_key(wchar_t *character);

/* Whether this terminal can show block characters. Consoles have few of them in their fonts. */
bool top_screen_has_blocks(void);

#endif
