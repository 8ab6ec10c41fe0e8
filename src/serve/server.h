/* How the agent and the hub serve, and the loop in which they do: everything that needs libmicrohttpd. */
#ifndef SERVER_H
#define SERVER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/child.h"
#include "common/status.h"
#include "output/live_page.h"
#include "serve/serve.h"
#include "serve/web.h"

/*
 * The HTTP server: libmicrohttpd in our own event loop. Connections are accepted here, so that all listeners share
 * one set of limits, connections can be evicted, and a new configuration needs no new sockets.
 *
 *	listener --accept--> serve_http ---> libmicrohttpd ---> agent_route()
 *	                     limits, table        parses, TLS       answers
 *
 * Time limits: a request must arrive within REQUEST_NS of its connection, and the answer must be read within
 * ANSWER_NS; then a connection may idle for IDLE_NS. When an address or the agent has reached its limit of
 * connections, the one that has been waiting longest is dropped.
 */

/* Certificates and requirements for clients, for libmicrohttpd with GnuTLS. */

struct serve_tls {
	char *cert; /* PEM */
	char *key;
	char *client_ca; /* NULL: none */
	char priorities[128];
	enum web_client_auth client_auth;
};

enum {
	SERVE_CONNECTIONS_MAX = 256,
	SERVE_CONNECTIONS_PER_ADDRESS = 32,
	SERVE_CONNECTION_BYTES = 16 * 1024, /* limit for the request line and headers */
};

struct serve_connection {
	int fd; /* -1: the slot is free */
	struct serve_http *http;
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
struct serve_server {
	struct MHD_Daemon *daemon; /* NULL: none */
	struct serve_tls tls;
	bool has_tls;
	int epoll;	   /* its descriptor, in our epoll set */
	uint64_t until_ns; /* of an old one: when it is stopped */
};

struct serve_http {
	struct serve_server server;
	struct serve_server old; /* finishes requests from before a reload */
	struct web_config config;
	struct web_auth auth;
	struct child checker;		  /* of a password: of this connection, unless it is gone */
	struct serve_connection *checked; /* NULL: it is gone */
	uint8_t checked_address[16];
	struct serve_connection connections[SERVE_CONNECTIONS_MAX];
	size_t count;
	struct serve_connection *coming; /* passed to libmicrohttpd, which has not begun with it */
	uint64_t paused_until_ns;	 /* no accept before: out of descriptors */
	uint64_t accepted;
	uint64_t refused; /* connections dropped or rejected because of the limits */
	bool has_waiting; /* a request has begun to wait: what it waits for may be due at once */
	int loop;	  /* the epoll with the server's descriptor */
	MHD_AccessHandlerCallback answer;
	void *context; /* of answer */
};

/* `path` of the web configuration or NULL. On failure `why` has a message. Must be released even if it fails. */
enum status serve_http_init(struct serve_http *http, int loop, const char *path,
			    MHD_AccessHandlerCallback answer, void *context, char *why,
			    size_t why_size);
void serve_http_release(struct serve_http *http);

/* Reloads the configuration. On failure the old one stays. */
enum status serve_http_reload(struct serve_http *http, const char *path, char *why,
			      size_t why_size);

/* Accepts waiting connections. */
void serve_http_accept(struct serve_http *http, const struct serve_listener *listener,
		       uint64_t now_ns);

/* Serves requests and drops connections that took too long. Returns when it needs to run again
 * (monotonic), UINT64_MAX: not before the next event. */
uint64_t serve_http_run(struct serve_http *http, uint64_t now_ns);

/* Lets a request wait for a body or a scan, and lets all of these go on. */
void serve_http_wait_for_body(struct serve_connection *from, struct MHD_Connection *connection);
void serve_http_has_body(struct serve_http *http, bool is_made);

/*
 * Passwords are checked one after the other, in a child process; until then a request waits.
 */
void serve_http_wait(struct serve_connection *from, struct MHD_Connection *connection);
bool serve_http_has_turn(const struct serve_connection *from);
/* Checks the password whose turn it is (WEB_AUTH_TURN). WEB_AUTH_LATER: the request waits for the result. */
enum web_verdict serve_http_check(struct serve_connection *from, struct MHD_Connection *connection);

/* The connection of a request. */
struct serve_connection *serve_http_connection(struct MHD_Connection *connection);

/* Answers: their headers, errors, files and runbooks, and who may have them. */

struct serve_site {
	struct serve_http *http;
	const char *host; /* name of this host */
};

#define SERVE_TYPE_TEXT "text/plain; charset=utf-8"
#define SERVE_TYPE_JSON "application/json"

/* A header of the request; NULL: it has none. */
const char *serve_header(struct MHD_Connection *connection, const char *name);
/* What every answer has; `caching`: its Cache-Control. */
void serve_add_headers(const struct serve_site *site, struct MHD_Response *response,
		       const char *type, const char *caching);
/* A short answer; name and value are an additional header, or NULL. */
enum MHD_Result serve_reply(const struct serve_site *site, struct MHD_Connection *connection,
			    unsigned int code, const char *type, const char *text, const char *name,
			    const char *value);
/* An error, as text. */
enum MHD_Result serve_refuse(const struct serve_site *site, struct MHD_Connection *connection,
			     unsigned int code, const char *text);
/* A file of a page. */
enum MHD_Result serve_file(const struct serve_site *site, struct MHD_Connection *connection,
			   const struct live_page_file *file);
/* A runbook, by name: paths that begin with SERVE_RUNBOOKS. */
#define SERVE_RUNBOOKS "/runbooks/"
enum MHD_Result serve_runbook(const struct serve_site *site, struct MHD_Connection *connection,
			      const char *path);
/* Checks whether the client may be served. If not, it gets an error, or the handler is called again when its password
 * was checked. */
enum MHD_Result serve_check(const struct serve_site *site, struct MHD_Connection *connection,
			    struct serve_connection *from, bool *may_pass);
/* The password alone, before the body of a request is taken: no answer is possible then. WEB_AUTH_LATER: the handler is
 * called again; otherwise serve_check() uses the result. */
enum web_verdict serve_password(const struct serve_site *site, struct MHD_Connection *connection,
				struct serve_connection *from);

bool serve_has_body(struct MHD_Connection *connection);
/* Its length is given twice: what follows may be its body or another request. Refuse it, and close the connection. */
bool serve_has_odd_length(struct MHD_Connection *connection);
enum MHD_Result serve_refuse_length(const struct serve_site *site,
				    struct MHD_Connection *connection);

/*
 * The event loop that the agent and the hub share: listeners, the HTTP server, signals, systemd. One thread; every
 * event is a descriptor or a timer.
 */

struct serve_loop {
	int epoll;
	int signals;
	struct serve_listeners listeners;
	struct serve_http http;
	uint64_t watchdog_ns; /* 0: systemd wants none */
	uint64_t next_watchdog_ns;
	bool must_end;
	bool must_reload; /* SIGHUP; cleared by the program */
};

/* What a program does in the loop. */
struct serve_loop_program {
	/* Runs what is due; returns when the next thing is (monotonic). */
	uint64_t (*due)(void *context, uint64_t now_ns);
	/* A watched descriptor is ready. */
	void (*event)(void *context, int fd, uint64_t now_ns);
	void *context;
};

/* Nothing is open yet. */
void serve_loop_init(struct serve_loop *loop);
/* All return 0, or an exit code after logging an error. Close in every case. */
int serve_loop_open(struct serve_loop *loop);
/* The addresses of the command line; without any, sockets from systemd; else `standard`. */
int serve_loop_listen(struct serve_loop *loop, const struct web_address *list, size_t count,
		      const char *standard, gid_t group);
int serve_loop_serve(struct serve_loop *loop, const char *web_config,
		     MHD_AccessHandlerCallback answer, void *context);
void serve_loop_close(struct serve_loop *loop);

/* Adds a descriptor for reading. */
bool serve_loop_watch(const struct serve_loop *loop, int fd);

/* After SIGHUP: reads the web configuration again, if there is one. */
void serve_loop_reload(struct serve_loop *loop, const char *web_config);

/* Accepts connections, logs the addresses, and runs until SIGTERM or SIGINT. Returns the exit code. */
int serve_loop_run(struct serve_loop *loop, const struct serve_loop_program *program);

#endif
