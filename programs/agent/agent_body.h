/*
 * Bodies of answers, made once per look however many ask: a scraper that comes ten times a second
 * costs little more than one that comes once. Clients that are slow to read hold on to old bodies; together
 * they may hold AGENT_BODY_BYTES_MAX, beyond that others are told to come again.
 */
#ifndef AGENT_BODY_H
#define AGENT_BODY_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "programs/agent/agent_look.h"
#include "view/live_json.h"

enum { AGENT_BODY_BYTES_MAX = 64 * 1024 * 1024 };

enum agent_body_kind {
	AGENT_BODY_TEXT = 0, /* as enum metrics_format */
	AGENT_BODY_OPENMETRICS = 1,
	AGENT_BODY_PROTOBUF = 2,
	AGENT_BODY_NOW = 3,
	AGENT_BODY_HISTORY = 4,
	AGENT_BODY_KINDS = 5,
};

/* Which history: after which moment, and whose members' (live_json_history_of()). */
struct agent_past {
	uint64_t after_ns;
	char members[LIVE_JSON_KEY];
};

struct agent_body {
	struct MHD_Response *response; /* NULL: none was made */
	uint64_t look;		       /* of which look */
	struct agent_past past;	       /* history alone */
};

struct agent_bodies {
	struct agent_look *look;		     /* borrowed */
	const char *host;			     /* borrowed */
	struct agent_body made[AGENT_BODY_KINDS][2]; /* plain, gzip */
	size_t held;				     /* bytes of bodies that are not freed */
};

void agent_bodies_init(struct agent_bodies *bodies, struct agent_look *look, const char *host);
/* After the server was stopped, or bodies under way would be freed later. */
void agent_bodies_release(struct agent_bodies *bodies);

/* Let go of what is older than the last look. */
void agent_bodies_age(struct agent_bodies *bodies);

/* Borrowed until the next call: queue it. NULL: no memory, or too much is held; *is_new: it has no headers yet
 * but Content-Encoding. `past` is NULL for all but history. */
struct MHD_Response *agent_body(struct agent_bodies *bodies, enum agent_body_kind kind,
				bool is_gzip, const struct agent_past *past, bool *is_new);

#endif
