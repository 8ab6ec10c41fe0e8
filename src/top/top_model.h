/*
 * The rows of one refresh, filtered and sorted, ready to be drawn. Independent of the terminal. Rows
 * are indices into `live` and valid as long as it does not change.
 */
#ifndef TOP_MODEL_H
#define TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "analysis/job.h"
#include "common/status.h"
#include "doctor/live.h"
#include "top/top_options.h"

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

#endif
