/* Sends requests to many servers at once through ringside-fetch, a child process that only does HTTP and TLS. */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_fetch_request {
	const char *url;
	const char *socket; /* NULL, or path of a Unix socket to connect to */
};

struct cli_fetch {
	unsigned int parallel;
	uint64_t timeout_ns;  /* for one request */
	uint64_t limit_bytes; /* per response */
	const char *auth;     /* a file; NULL none */
	const char *ca_file;  /* NULL: the system's */
	bool is_insecure;
	int stop_fd; /* stop when it becomes readable; -1: none */
};

/*
 * Called once per request, in order of completion. `status` is the HTTP status; 0: `bytes` is an error message.
 * Pointers are valid during the call; `bytes` is not terminated.
 */
typedef void cli_fetch_answer(void *context, size_t index, int status, const char *bytes,
			      size_t length);

enum { FETCH_STOPPED = -1 };

/*
 * Returns 0; the exit code, after an error was reported (program missing or not started); or FETCH_STOPPED if stop_fd
 * became readable: some requests then got no answer.
 */
int cli_fetch(const struct cli_fetch *how, const struct cli_fetch_request *requests, size_t count,
	      cli_fetch_answer *take, void *context);

#endif
