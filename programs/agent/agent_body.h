/*
 * Bodies of answers, made once per look however many ask: a scraper that comes ten times a second
 * costs little more than one that comes once. What can be asked for in ever new ways, history and snapshots, has a
 * budget each (agent_budget.h). Clients that are slow to read hold on to old bodies; together they may hold
 * AGENT_BODY_BYTES_MAX, and AGENT_BODY_SNAPSHOT_BYTES_MAX of snapshots. Beyond any of it others are told to come again.
 */
#ifndef AGENT_BODY_H
#define AGENT_BODY_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/live_json.h"
#include "programs/agent/agent_budget.h"
#include "programs/agent/agent_look.h"
#include "programs/agent/agent_snapshot.h"

/* One may be begun as long as no more are held: with a snapshot of its full size they are some 128 MiB together. */
enum {
	AGENT_BODY_BYTES_MAX = 48 * 1024 * 1024,
	AGENT_BODY_SNAPSHOT_BYTES_MAX = 40 * 1024 * 1024,
};

enum agent_body_kind {
	AGENT_BODY_TEXT = 0, /* as enum metrics_format */
	AGENT_BODY_OPENMETRICS = 1,
	AGENT_BODY_PROTOBUF = 2,
	AGENT_BODY_NOW = 3,
	AGENT_BODY_HISTORY = 4,
	AGENT_BODY_SNAPSHOT = 5,
	AGENT_BODY_KINDS = 6,
};

/* Which history: after which moment, and whose members' (live_json_history_of()). Which snapshot. */
struct agent_past {
	uint64_t after_ns;
	char members[LIVE_JSON_KEY];
	struct agent_snapshot_wanted snapshot;
};

struct agent_body {
	struct MHD_Response *response; /* NULL: none was made */
	uint64_t look;		       /* of which look */
	struct agent_past past;	       /* history and snapshot alone */
};

struct agent_bodies {
	struct agent_look *look;		       /* borrowed */
	const char *host;			       /* borrowed */
	struct agent_body made[AGENT_BODY_KINDS][2];   /* plain, gzip */
	struct agent_budget budgets[AGENT_BODY_KINDS]; /* of history and snapshot alone */
	size_t held;				       /* bytes of bodies that are not freed */
	size_t held_snapshots; /* the same of snapshots, apart: who reads one slowly keeps nobody from metrics */
};

void agent_bodies_init(struct agent_bodies *bodies, struct agent_look *look, const char *host);
/* After the server was stopped, or bodies under way would be freed later. */
void agent_bodies_release(struct agent_bodies *bodies);

/* Let go of what is older than the last look. */
void agent_bodies_age(struct agent_bodies *bodies);

/* Borrowed until the next call: queue it. NULL: no memory, too much is held, or the budget is spent; *is_new: it has no headers yet
 * but Content-Encoding. `past` is NULL for all but history and snapshot. */
struct MHD_Response *agent_body(struct agent_bodies *bodies, enum agent_body_kind kind,
				bool is_gzip, const struct agent_past *past, bool *is_new);

#endif
