/*
 * The rows of one look, filtered and in the order that a person wants: what there is to draw. Knows
 * no terminal. Rows are indices into what `live` holds, and valid as long as that is.
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
	uint64_t key; /* the same from look to look */
	uint32_t
		index; /* of live.notices, job.comms or job.seats (members, operations in flight) */
	bool is_over;  /* its processes are gone: below the others, whatever the order */
	double value;  /* by which it is sorted */
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
	uint32_t killed;     /* gone without ending their recording */
	uint32_t ended;	     /* or unknown */
	bool has_many_jobs;  /* worth a column */
	bool has_many_hosts; /* the same */
	bool has_gpus;	     /* somebody knows which GPU is whose */
	bool is_sampled;     /* of some operations no time is known */
	bool has_minute;     /* looks go on: there is a past to draw */
	bool has_comm_ranks; /* members of the chosen one have another rank there than in the job */
};

void top_model_init(struct top_model *model);
void top_model_release(struct top_model *model);

/* Make all lists anew, and put the cursors of `view` where they belong now. ERR_NO_SPACE (memory):
 * the lists are empty. */
enum status top_model_make(struct top_model *model, const struct live *live, struct top_view *view);

/* What the last look added to a history; NULL when it added nothing. */
const struct live_point *top_model_point(const struct live *live,
					 const struct live_history *history);

/* The oldest operation in flight over its members, 0 none. */
uint64_t top_model_oldest_ns(const struct live *live, const struct job_comm *comm);

/* "hang", "missing", "mismatch" and "dead" need a person now. */
bool top_model_is_alarm(const struct live_notice *notice);

/* What keys do: moving, sorting, filtering. Knows no terminal. */

enum top_key {
	TOP_KEY_NONE = 0, /* no more of them */
	TOP_KEY_CHARACTER = 1,
	TOP_KEY_UP = 2,
	TOP_KEY_DOWN = 3,
	TOP_KEY_PAGE_UP = 4,
	TOP_KEY_PAGE_DOWN = 5,
	TOP_KEY_HOME = 6,
	TOP_KEY_END = 7,
	TOP_KEY_NEXT = 8,     /* tab */
	TOP_KEY_PREVIOUS = 9, /* shift and tab */
	TOP_KEY_ENTER = 10,
	TOP_KEY_ESCAPE = 11,
	TOP_KEY_BACKSPACE = 12,
	TOP_KEY_REDRAW = 13,  /* ^L, a new size */
	TOP_KEY_LEFT_US = 14, /* the terminal is gone */
};

enum top_action {
	TOP_STAY = 0,
	TOP_DRAW = 1, /* the model is to be made anew */
	TOP_QUIT = 2,
};

/* `character` is for TOP_KEY_CHARACTER alone. */
enum top_action top_keys_take(struct top_view *view, const struct top_model *model,
			      enum top_key key, wchar_t character);

/* A line a key, for the help: both texts; NULL after the last. */
const char *top_keys_help(unsigned int i, const char **what);

#endif
