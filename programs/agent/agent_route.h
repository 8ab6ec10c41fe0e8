/* What is answered to whom: the agent's paths. */
#ifndef AGENT_ROUTE_H
#define AGENT_ROUTE_H

#include <microhttpd.h>

#include "programs/agent/agent_body.h"
#include "programs/agent/agent_http.h"
#include "programs/agent/agent_look.h"

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
