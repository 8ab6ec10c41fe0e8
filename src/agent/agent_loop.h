/*
 * The event loop that the agent and the hub share: listeners, the HTTP server, signals, systemd. One thread; every
 * event is a descriptor or a timer.
 */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/agent_http.h"
#include "agent/agent_system.h"
#include "agent/web.h"

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
