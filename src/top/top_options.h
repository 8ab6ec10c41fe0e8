/* The command line. */
#ifndef TOP_OPTIONS_H
#define TOP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmds/cli.h"

/* What the user chose to see; kept across refreshes. The rows of one refresh are in top_model.h. */

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

/* Switches to the next useful sort order of the active pane. */
void top_view_next_sort(struct top_view *view);
const char *top_view_sort_name(const struct top_view *view, enum top_pane pane);

/* One step longer (1) or shorter (-1). */
void top_view_step_interval(struct top_view *view, int direction);

/* The options of `ringside top`, shared by its parser and the help of the tool. */

extern const struct cli_page top_page;

struct top_options {
	uint64_t interval_ns;
	const char *directory; /* NULL: the default directory */
	bool is_once;
};

/* Returns -1 to continue, else the exit code: help or an error was printed. */
int top_options_parse(struct top_options *options, int argc, char **argv);

#endif
