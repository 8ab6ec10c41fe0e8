/* Asking many servers at once, through ringside-fetch: a child that knows HTTP and TLS and nothing else. */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_fetch_request {
	const char *url;
	const char *socket; /* NULL, or the path of a Unix socket to go through */
};

struct cli_fetch {
	unsigned int parallel;
	uint64_t timeout_ns;  /* for one request */
	uint64_t limit_bytes; /* of one answer */
	const char *auth;     /* a file; NULL none */
	const char *ca_file;  /* NULL: the system's */
	bool is_insecure;
	int stop_fd; /* when it can be read, end; -1 none */
};

/* One for each request, in the order of completion. status is HTTP's; 0: `bytes` is a line that says what went
 * wrong. What is pointed to is valid during the call; behind the bytes stands no terminator. */
typedef void cli_fetch_answer(void *context, size_t index, int status, const char *bytes,
			      size_t length);

enum { FETCH_STOPPED = -1 };

/* 0; or the exit code, after an error was reported: there is no such program, it did not start. FETCH_STOPPED:
 * stop_fd said so; then some requests had no answer. */
int cli_fetch(const struct cli_fetch *how, const struct cli_fetch_request *requests, size_t count,
	      cli_fetch_answer *take, void *context);

#endif
