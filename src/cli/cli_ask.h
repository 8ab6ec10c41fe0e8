/*
 * What is not in recordings and must be asked for, with limits on time and size: the host, NCCL's RAS, agents and other
 * servers.
 */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/child.h"
#include "common/status.h"
#include "import/host_facts.h"
#include "import/ras.h"
#include "recording/recording.h"

/*
 * What only the running system knows about a host: /proc, /sys, file systems and NVML become host_facts.
 *
 * NVML, file systems and devices may block for ever, so a child process reads and its answer has a
 * deadline. The caller must have one thread only: the child runs without exec.
 */

struct cli_host_what {
	const char *root; /* "" but in tests */
	const char *nvml; /* NULL: libnvidia-ml.so.1 */
	const int64_t *pids;
	size_t pid_count;
	const char *const *directories; /* beside /dev/shm and /tmp */
	size_t directory_count;
};

struct cli_host {
	struct child child;
	size_t taken; /* bytes of its output */
	bool is_done; /* it wrote its last line */
};

/* False: the last one still runs, or there is no process for it (noted as a gap). */
bool cli_host_start(struct cli_host *host, struct host_facts *facts,
		    const struct cli_host_what *what, uint64_t now_ns);
/* Takes what has arrived; ends it after the deadline. True: it is over. */
bool cli_host_take(struct cli_host *host, struct host_facts *facts, uint64_t now_ns,
		   uint64_t wall_ns);
/* Waits for it, at most until the deadline. */
void cli_host_wait(struct cli_host *host, struct host_facts *facts);

/* What the child writes before it asks NVML: lines of import/host_facts.h. False: out of memory. */
bool cli_host_write(const struct cli_host_what *what, int fd);

/* This host, read repeatedly: its facts with their history. */
struct cli_host_watch {
	struct host_facts facts;
	struct host_log log;
	struct cli_host reading;
};

/* Opens the kernel log, which may need rights that are dropped later. */
void cli_host_watch_open(struct cli_host_watch *watch);
void cli_host_watch_close(struct cli_host_watch *watch);
/*
 * Reads what is new in the kernel log and starts a child, unless one still runs: for the processes of a recording, and
 * with has_traces the directories of their traces (named by whoever runs the job). Then cli_host_take() or
 * cli_host_wait().
 */
void cli_host_watch_read(struct cli_host_watch *watch, const struct recording *recording,
			 bool has_traces, uint64_t now_ns);

/*
 * Queries NCCL's RAS over TCP (import/ras.h). Time and bytes are limited, whatever the other side does, and nothing
 * is ever sent that changes the job.
 */

struct ras_answer {
	char address[300]; /* of the server */
	char *text;	   /* the caller's to free() */
	size_t length;
	bool is_json;
	bool is_cut;
	char why[300]; /* reason of a failure */
};

/*
 * HOST:PORT, [ADDRESS]:PORT, or NULL: NCCL_RAS_ADDR, else NCCL's default. On ERR_SYSTEM, ERR_FORMAT or ERR_NO_SPACE,
 * `why` has the reason and text is NULL. Prints nothing. All processes of a node listen on one port, and the kernel
 * picks one: if that one is stopped, another is tried.
 */
enum status cli_ras_ask(struct ras_answer *answer, const char *address, enum ras_request request);

/* Sends requests to many servers at once through ringside-fetch, a child process that only does HTTP and TLS. */

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
