/*
 * The HTTP server: libmicrohttpd in our own event loop. Connections are accepted here, so that all listeners share
 * one set of limits, connections can be evicted, and a new configuration needs no new sockets.
 *
 *	listener --accept--> agent_http ---> libmicrohttpd ---> agent_route()
 *	                     limits, table        parses, TLS       answers
 *
 * Time limits: a request must arrive within REQUEST_NS of its connection, and the answer must be read within
 * ANSWER_NS; then a connection may idle for IDLE_NS. When an address or the agent has reached its limit of
 * connections, the one that has been waiting longest is dropped.
 */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_system.h"
#include "agent/web.h"
#include "common/status.h"

/* Certificates and requirements for clients, for libmicrohttpd with GnuTLS. */

struct agent_tls {
	char *cert; /* PEM */
	char *key;
	char *client_ca; /* NULL: none */
	char priorities[128];
	enum web_client_auth client_auth;
};

enum {
	AGENT_CONNECTIONS_MAX = 256,
	AGENT_CONNECTIONS_PER_ADDRESS = 32,
	AGENT_CONNECTION_BYTES = 16 * 1024, /* limit for the request line and headers */
};

struct agent_connection {
	int fd; /* -1: the slot is free */
	struct agent_http *http;
	uint8_t address[16];
	bool is_unix;
	bool is_private;  /* from a Unix socket that only its owner and group can use */
	bool checks_host; /* from a loopback listener */
	bool is_answering;
	bool is_dropped;		/* shut down; libmicrohttpd will close it */
	struct MHD_Connection *waiting; /* suspended until its password's turn; NULL: it is not */
	bool has_turn;			/* its password is the next to be checked */
	uint32_t wrong;			/* passwords so far */
	uint64_t since_ns;		/* waiting or answering since */
	uint64_t requests;
	void *upload; /* of the current request; freed with it */
};

/* One libmicrohttpd daemon and what it was started with. */
struct agent_server {
	struct MHD_Daemon *daemon; /* NULL: none */
	struct agent_tls tls;
	bool has_tls;
	int epoll;	   /* its descriptor, in our epoll set */
	uint64_t until_ns; /* of an old one: when it is stopped */
};

struct agent_http {
	struct agent_server server;
	struct agent_server old; /* finishes requests from before a reload */
	struct web_config config;
	struct web_auth auth;
	struct agent_connection connections[AGENT_CONNECTIONS_MAX];
	size_t count;
	struct agent_connection *coming; /* being passed to libmicrohttpd */
	uint64_t paused_until_ns;	 /* no accept before: out of descriptors */
	uint64_t accepted;
	uint64_t refused; /* connections dropped or rejected because of the limits */
	int loop;	  /* the epoll with the server's descriptor */
	MHD_AccessHandlerCallback answer;
	void *context; /* of answer */
};

/* `path` of the web configuration or NULL. On failure `why` has a message. Must be released even if it fails. */
enum status agent_http_init(struct agent_http *http, int loop, const char *path,
			    MHD_AccessHandlerCallback answer, void *context, char *why,
			    size_t why_size);
void agent_http_release(struct agent_http *http);

/* Reloads the configuration. On failure the old one stays. */
enum status agent_http_reload(struct agent_http *http, const char *path, char *why,
			      size_t why_size);

/* Accepts waiting connections. */
void agent_http_accept(struct agent_http *http, const struct agent_listener *listener,
		       uint64_t now_ns);

/* Serves requests and drops connections that took too long. Returns when it needs to run again
 * (monotonic), UINT64_MAX: not before the next event. */
uint64_t agent_http_run(struct agent_http *http, uint64_t now_ns);

/*
 * Passwords are checked one after the other; until its turn a request waits.
 */
void agent_http_wait(struct agent_connection *from, struct MHD_Connection *connection);
bool agent_http_has_turn(const struct agent_connection *from);

/* The connection of a request. */
struct agent_connection *agent_http_connection(struct MHD_Connection *connection);

#endif
