/* The command line. */
#ifndef TOP_OPTIONS_H
#define TOP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmds/cli.h"

/* What a person chose to see. It outlives looks; the rows of one look are in top_model.h. */

enum top_pane {
	TOP_NOTICES = 0,
	TOP_COMMS = 1,
	TOP_SEATS = 2, /* of the chosen communicator */
	TOP_FLIGHTS = 3,
	TOP_PANES = 4,
};

enum top_sort {
	TOP_BY_ORDER = 0, /* communicators by size, members by rank */
	TOP_BY_WAIT = 1,
	TOP_BY_BUSBW = 2,
	TOP_BY_RATE = 3,
	TOP_BY_AGE = 4,
};

enum { TOP_FILTER_BYTES = 64 };

/* Where the cursor of a pane is: on what it was on at the last look, wherever that went. */
struct top_place {
	uint64_t key;
	size_t at;
	size_t first;	 /* the row at the top of the pane */
	size_t shown;	 /* rows that fit, as drawn last */
	bool is_by_hand; /* else the cursor may move by itself: to what a notice is about */
};

struct top_view {
	enum top_pane pane; /* that keys go to */
	enum top_sort sorts[TOP_PANES];
	struct top_place places[TOP_PANES];
	char filter[TOP_FILTER_BYTES]; /* part of a communicator's or a job's name; "" all */
	bool is_typing;		       /* the filter */
	bool is_paused;
	bool has_help;
	bool is_once; /* nobody scrolls and there is no past: all rows, no cursor */
	uint64_t interval_ns;
};

#define TOP_INTERVAL_LEAST_NS UINT64_C(200000000)
#define TOP_INTERVAL_MOST_NS UINT64_C(60000000000)

void top_view_init(struct top_view *view, uint64_t interval_ns);

/* The next order that makes sense in the pane. */
void top_view_next_sort(struct top_view *view);
const char *top_view_sort_name(const struct top_view *view, enum top_pane pane);

/* One step longer (1) or shorter (-1). */
void top_view_step_interval(struct top_view *view, int direction);

/* The options of `ringside top`, for who parses them and for who explains them: the tool does so
 * alone. */

extern const struct cli_page top_page;

struct top_options {
	uint64_t interval_ns;
	const char *directory; /* NULL: where regions are by default */
	bool is_once;
};

/* Gives back -1 to go on, else the exit code: help was shown, or a line was said. */
int top_options_parse(struct top_options *options, int argc, char **argv);

#endif
