/*
 * The HTTP server: libmicrohttpd inside our own loop. It gets connections that were accepted here, so that all
 * listeners share one set of limits, one can be evicted for another, and a new configuration needs no
 * new sockets.
 *
 *	listener --accept--> agent_http ---> libmicrohttpd ---> agent_route()
 *	                     limits, table        parses, TLS       answers
 *
 * Time: a request must be there within REQUEST_NS of its connection, an answer taken within ANSWER_NS; then
 * a connection may idle for IDLE_NS. When an address or the agent has as many connections as it may, the one
 * that has been waiting longest goes.
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

/* Certificates and what is asked of clients, for libmicrohttpd with GnuTLS. */

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
	AGENT_CONNECTION_BYTES = 16 * 1024, /* a request's line and headers fit into this */
};

struct agent_connection {
	int fd; /* -1: the slot is free */
	struct agent_http *http;
	uint8_t address[16];
	bool is_unix;
	bool is_private;  /* came through a Unix socket that is for its owner and group alone */
	bool checks_host; /* came through a loopback listener */
	bool is_answering;
	bool is_dropped;   /* shut down; libmicrohttpd will close it */
	uint64_t since_ns; /* waits or answers since */
	uint64_t requests;
};

/* One libmicrohttpd daemon and what it was started with. */
struct agent_server {
	struct MHD_Daemon *daemon; /* NULL: none */
	struct agent_tls tls;
	bool has_tls;
	int epoll;	   /* its descriptor, in the loop's */
	uint64_t until_ns; /* an old one: stopped then */
};

struct agent_http {
	struct agent_server server;
	struct agent_server old; /* finishes what it began before the configuration was read anew */
	struct web_config config;
	struct web_auth auth;
	struct agent_connection connections[AGENT_CONNECTIONS_MAX];
	size_t count;
	struct agent_connection *coming; /* handed to libmicrohttpd just now */
	uint64_t paused_until_ns;	 /* no accept before: descriptors ran out */
	uint64_t accepted;
	uint64_t refused; /* connections dropped or not taken because of the limits */
	int loop;	  /* epoll that the server's descriptor is in */
	MHD_AccessHandlerCallback answer;
	void *context; /* of answer */
};

/* `path` of the web configuration or NULL. On failure why says all; release in every case. */
enum status agent_http_init(struct agent_http *http, int loop, const char *path,
			    MHD_AccessHandlerCallback answer, void *context, char *why,
			    size_t why_size);
void agent_http_release(struct agent_http *http);

/* Read the configuration anew. On failure everything stays as it was. */
enum status agent_http_reload(struct agent_http *http, const char *path, char *why,
			      size_t why_size);

/* Take who waits at the door. */
void agent_http_accept(struct agent_http *http, const struct agent_listener *listener,
		       uint64_t now_ns);

/* Serve who has something to say, drop who took too long. Gives back when it wants to run again
 * (monotonic), UINT64_MAX: not before something comes. */
uint64_t agent_http_run(struct agent_http *http, uint64_t now_ns);

/* Whose request is it? */
struct agent_connection *agent_http_connection(struct MHD_Connection *connection);

#endif
