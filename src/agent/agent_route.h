/* What is answered to whom: the agent's paths. */
#ifndef AGENT_ROUTE_H
#define AGENT_ROUTE_H

#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_http.h"
#include "agent/agent_look.h"
#include "output/live_json.h"

/*
 * Bodies of answers, made once per look however many ask: a scraper that comes ten times a second
 * costs little more than one that comes once. What can be asked for in ever new ways, history and snapshots, has a
 * budget each (agent_look.h). Clients that are slow to read hold on to old bodies; together they may hold
 * AGENT_BODY_BYTES_MAX, and AGENT_BODY_SNAPSHOT_BYTES_MAX of snapshots. Beyond any of it others are told to come again.
 */

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

struct agent_route {
	struct agent_http *http;
	struct agent_look *look;
	struct agent_bodies bodies;
	const char *host; /* this machine's name */
};

/* For libmicrohttpd; `context` is a struct agent_route. */
enum MHD_Result agent_route(void *context, struct MHD_Connection *connection, const char *path,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_bytes, void **request);

#endif
