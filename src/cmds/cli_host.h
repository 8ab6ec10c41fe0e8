/*
 * What only the running system knows about a host: /proc, /sys, file systems and NVML become host_facts.
 *
 * NVML, file systems and devices may block for ever, so a child process reads and its answer has a
 * deadline. The caller must have one thread only: the child runs without exec.
 */
#ifndef CLI_HOST_H
#define CLI_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "import/host_facts.h"
#include "recording/recording.h"

struct cli_host_what {
	const char *root; /* "" but in tests */
	const char *nvml; /* NULL: libnvidia-ml.so.1 */
	const int64_t *pids;
	size_t pid_count;
	const char *const *directories; /* beside /dev/shm and /tmp */
	size_t directory_count;
};

struct cli_host {
	pid_t pid; /* 0: none runs */
	int fd;
	uint64_t until_ns; /* monotonic */
	uint64_t cpu_ns;   /* of the last child */
	bool is_done;	   /* it wrote its last line */
	char rest[HOST_LINE_BYTES];
	size_t rest_length;
};
#define CLI_HOST_INIT    \
	{                \
		.fd = -1 \
	}

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
	struct cli_host child;
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

#endif
