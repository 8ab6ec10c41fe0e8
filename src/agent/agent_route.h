/* The HTTP paths of the agent and their answers. */
#ifndef AGENT_ROUTE_H
#define AGENT_ROUTE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_http.h"
#include "agent/agent_look.h"
#include "output/live_json.h"
#include "output/live_page.h"

/*
 * Response bodies, built once per scan for all clients: ten scrapes per second cost little more than one. History and
 * snapshots vary with the request, so each has a budget (agent_look.h). Slow clients hold old bodies, up to
 * AGENT_BODY_BYTES_MAX in total and AGENT_BODY_SNAPSHOT_BYTES_MAX of snapshots. Beyond these limits clients get an
 * error and should retry.
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
};

struct agent_bodies {
	struct agent_look *look;		       /* borrowed */
	const char *host;			       /* borrowed */
	struct agent_body made[AGENT_BODY_KINDS][2];   /* plain, gzip */
	struct agent_budget budgets[AGENT_BODY_KINDS]; /* history and snapshot only */
	size_t held;				       /* bytes of bodies in use */
	size_t held_snapshots; /* the same for snapshots: separate, so that slow readers do not block metrics */
};

void agent_bodies_init(struct agent_bodies *bodies, struct agent_look *look, const char *host);
/* Call after the server has stopped, or bodies in use would be freed later. */
void agent_bodies_release(struct agent_bodies *bodies);

/* Releases bodies older than the last scan. */
void agent_bodies_age(struct agent_bodies *bodies);

struct agent_route {
	struct agent_http *http;
	struct agent_look *look;
	struct agent_bodies bodies;
	const char *host; /* name of this host */
};

/* Parts of an answer, also for the hub, whose route has no scans. */

#define AGENT_TYPE_TEXT "text/plain; charset=utf-8"
#define AGENT_TYPE_JSON "application/json"

/* A short answer; name and value are an additional header, or NULL. */
enum MHD_Result agent_route_reply(struct agent_route *route, struct MHD_Connection *connection,
				  unsigned int code, const char *type, const char *text,
				  const char *name, const char *value);
/* An error, as text. */
enum MHD_Result agent_route_refuse(struct agent_route *route, struct MHD_Connection *connection,
				   unsigned int code, const char *text);
/* A file of a page. */
enum MHD_Result agent_route_file(struct agent_route *route, struct MHD_Connection *connection,
				 const struct live_page_file *file);
/* A runbook, by name: paths that begin with AGENT_RUNBOOKS. */
#define AGENT_RUNBOOKS "/runbooks/"
enum MHD_Result agent_route_runbook(struct agent_route *route, struct MHD_Connection *connection,
				    const char *path);
/* Checks whether the client may be served. If not, it gets an error, or, if it may wait, the handler is called again
 * when its password can be checked. */
enum MHD_Result agent_route_check(struct agent_route *route, struct MHD_Connection *connection,
				  struct agent_connection *from, bool may_wait, bool *may_pass);

bool agent_route_has_body(struct MHD_Connection *connection);

/* For libmicrohttpd; `context` is a struct agent_route. */
enum MHD_Result agent_route(void *context, struct MHD_Connection *connection, const char *path,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_bytes, void **request);

#endif
