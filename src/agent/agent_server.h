/* What the agent and the hub serve, and the loop in which they do: everything that needs libmicrohttpd. */
#ifndef AGENT_SERVER_H
#define AGENT_SERVER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/agent.h"
#include "agent/web.h"
#include "common/status.h"
#include "output/live_json.h"
#include "output/live_page.h"

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
	bool is_for_body;		/* or until a body can be made, or was */
	bool has_waited;		/* for it */
	bool has_failed;		/* and it could not be made */
	bool has_turn;			/* its password is the next to be checked */
	enum web_verdict checked;	/* result of that; WEB_AUTH_LATER: none */
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
	struct hub_child checker;	  /* of a password: of this connection, unless it is gone */
	struct agent_connection *checked; /* NULL: it is gone */
	uint8_t checked_address[16];
	struct agent_connection connections[AGENT_CONNECTIONS_MAX];
	size_t count;
	struct agent_connection *coming; /* passed to libmicrohttpd, which has not begun with it */
	uint64_t paused_until_ns;	 /* no accept before: out of descriptors */
	uint64_t accepted;
	uint64_t refused; /* connections dropped or rejected because of the limits */
	bool has_waiting; /* a request has begun to wait: what it waits for may be due at once */
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

/* Lets a request wait for a body or a scan, and lets all of these go on. */
void agent_http_wait_for_body(struct agent_connection *from, struct MHD_Connection *connection);
void agent_http_has_body(struct agent_http *http, bool is_made);

/*
 * Passwords are checked one after the other, in a child process; until then a request waits.
 */
void agent_http_wait(struct agent_connection *from, struct MHD_Connection *connection);
bool agent_http_has_turn(const struct agent_connection *from);
/* Checks the password whose turn it is (WEB_AUTH_TURN). WEB_AUTH_LATER: the request waits for the result. */
enum web_verdict agent_http_check(struct agent_connection *from, struct MHD_Connection *connection);

/* The connection of a request. */
struct agent_connection *agent_http_connection(struct MHD_Connection *connection);

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
	struct hub_child maker;
	struct agent_past making;
	bool makes_gzip;
};

void agent_bodies_init(struct agent_bodies *bodies, struct agent_look *look, const char *host,
		       int epoll);
/* Call after the server has stopped, or bodies in use would be freed later. */
void agent_bodies_release(struct agent_bodies *bodies);

/* Takes what the child has made, and lets clients go on that wait for a turn, unless something else took long before
 * (is_busy). Returns when to call again. */
uint64_t agent_bodies_run(struct agent_bodies *bodies, struct agent_http *http, bool is_busy,
			  uint64_t now_ns);
/* All of them have to be made again. */
void agent_bodies_forget(struct agent_bodies *bodies);
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
/* Checks whether the client may be served. If not, it gets an error, or the handler is called again when its password
 * was checked. */
enum MHD_Result agent_route_check(struct agent_route *route, struct MHD_Connection *connection,
				  struct agent_connection *from, bool *may_pass);
/* The password alone, before the body of a request is taken: no answer is possible then. WEB_AUTH_LATER: the handler is
 * called again; otherwise agent_route_check() uses the result. */
enum web_verdict agent_route_password(struct agent_route *route, struct MHD_Connection *connection,
				      struct agent_connection *from);

bool agent_route_has_body(struct MHD_Connection *connection);

/* For libmicrohttpd; `context` is a struct agent_route. */
enum MHD_Result agent_route(void *context, struct MHD_Connection *connection, const char *path,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_bytes, void **request);

/*
 * The event loop that the agent and the hub share: listeners, the HTTP server, signals, systemd. One thread; every
 * event is a descriptor or a timer.
 */

struct agent_loop {
	int epoll;
	int signals;
	struct agent_listeners listeners;
	struct agent_http http;
	uint64_t watchdog_ns; /* 0: systemd wants none */
	uint64_t next_watchdog_ns;
	bool must_end;
	bool must_reload; /* SIGHUP; cleared by the program */
};

/* What a program does in the loop. */
struct agent_loop_program {
	/* Runs what is due; returns when the next thing is (monotonic). */
	uint64_t (*due)(void *context, uint64_t now_ns);
	/* A watched descriptor is ready. */
	void (*event)(void *context, int fd, uint64_t now_ns);
	void *context;
};

/* Nothing is open yet. */
void agent_loop_init(struct agent_loop *loop);
/* All return 0, or an exit code after logging an error. Close in every case. */
int agent_loop_open(struct agent_loop *loop);
/* The addresses of the command line; without any, sockets from systemd; else `standard`. */
int agent_loop_listen(struct agent_loop *loop, const struct web_address *list, size_t count,
		      const char *standard, gid_t group);
int agent_loop_serve(struct agent_loop *loop, const char *web_config,
		     MHD_AccessHandlerCallback answer, void *context);
void agent_loop_close(struct agent_loop *loop);

/* Adds a descriptor for reading. */
bool agent_loop_watch(const struct agent_loop *loop, int fd);

/* After SIGHUP: reads the web configuration again, if there is one. */
void agent_loop_reload(struct agent_loop *loop, const char *web_config);

/* Accepts connections, logs the addresses, and runs until SIGTERM or SIGINT. Returns the exit code. */
int agent_loop_run(struct agent_loop *loop, const struct agent_loop_program *program);

#endif
