/* What the agent answers over HTTP: bodies made from its last scan. */
#ifndef AGENT_ROUTE_H
#define AGENT_ROUTE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "common/child.h"
#include "output/live_json.h"
#include "serve/server.h"

/* The HTTP paths of the agent and their answers. */

/*
 * Response bodies, built once per scan for all clients: ten scrapes per second cost little more than one. History and
 * snapshots vary with the request, so each has a budget (struct agent_budget). Slow clients hold old bodies, up to
 * AGENT_BODY_BYTES_MAX in total and AGENT_BODY_SNAPSHOT_BYTES_MAX of snapshots. Beyond these limits clients get an
 * error and should retry.
 *
 * A snapshot takes up to half a second of CPU. A child process makes it, one at a time, and its clients wait for that.
 * Others take some ten milliseconds, so one is made between two rounds of serving, and none beside a step of a scan or
 * while a scan is under way; their clients wait, too.
 */

enum agent_body_kind {
	AGENT_BODY_TEXT = 0, /* like enum metrics_format */
	AGENT_BODY_OPENMETRICS = 1,
	AGENT_BODY_PROTOBUF = 2,
	AGENT_BODY_NOW = 3,
	AGENT_BODY_HISTORY = 4,
	AGENT_BODY_SNAPSHOT = 5,
	AGENT_BODY_SUMMARY = 6,
	AGENT_BODY_KINDS = 7,
};

/* Parameters of a history (live_json_history_of()) or snapshot. */
struct agent_past {
	uint64_t after_ns;
	char members[LIVE_JSON_KEY];
	struct agent_snapshot_wanted snapshot;
};

struct agent_body {
	struct MHD_Response *response; /* NULL: none */
	uint64_t look;		       /* number of its scan */
	struct agent_past past;	       /* history and snapshot only */
	bool has_headers;
};

struct agent_bodies {
	struct agent_look *look;		       /* borrowed */
	const char *host;			       /* borrowed */
	struct agent_body made[AGENT_BODY_KINDS][2];   /* plain, gzip */
	struct agent_budget budgets[AGENT_BODY_KINDS]; /* history and snapshot only */
	size_t held;				       /* bytes of bodies in use */
	size_t held_snapshots; /* the same for snapshots: separate, so that slow readers do not block metrics */
	int epoll;	       /* with the output of the child */
	bool has_turn;	/* one may be made until the next agent_bodies_run() */
	bool is_wanted; /* clients wait for a turn, or for the end of a scan */
	struct child maker;
	struct agent_past making;
	bool makes_gzip;
};

void agent_bodies_init(struct agent_bodies *bodies, struct agent_look *look, const char *host,
		       int epoll);
/* Call after the server has stopped, or bodies in use would be freed later. */
void agent_bodies_release(struct agent_bodies *bodies);

/* Takes what the child has made, and lets clients go on that wait for a turn, unless something else took long before
 * (is_busy). Returns when to call again. */
uint64_t agent_bodies_run(struct agent_bodies *bodies, struct serve_http *http, bool is_busy,
			  uint64_t now_ns);
/* All of them have to be made again. */
void agent_bodies_forget(struct agent_bodies *bodies);
/* Releases bodies older than the last scan. */
void agent_bodies_age(struct agent_bodies *bodies);

struct agent_route {
	struct serve_site site;
	struct agent_look *look;
	struct agent_bodies bodies;
};

/* For libmicrohttpd; `context` is a struct agent_route. */
enum MHD_Result agent_route(void *context, struct MHD_Connection *connection, const char *path,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_bytes, void **request);

#endif
