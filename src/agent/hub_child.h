/*
 * A child process of the hub or the agent: ringside-fetch, the doctor, sinfo, a name lookup, stacks and RAS of a hung
 * job. What it reads can only harm the child: its time, memory and output are limited, and nobody waits for it.
 */
#ifndef HUB_CHILD_H
#define HUB_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HUB_CHILD_WHY = 200, HUB_CHILD_WORDS = 40 };

struct hub_child_task {
	char *const *words; /* words[0] is the path of a program; NULL: `work` */
	/* Called in the child instead of a program. Writes to standard output; returns the exit code. */
	int (*work)(const char *input, void *context);
	void *context;
	const char *input; /* on standard input; NULL: none */
	uint64_t timeout_ns;
	size_t limit_bytes;    /* of its output */
	uint64_t memory_bytes; /* of address space; 0: no limit */
};

/* All zero: none was started. */
struct hub_child {
	pid_t pid;  /* 0: none */
	int output; /* -1: none or at its end */
	int errors;
	uint64_t begun_ns, until_ns;
	char *bytes; /* its output so far, terminated once it has ended; the reader may set used to 0 */
	size_t used, room, limit;
	int code;		 /* its exit code; -1: it was killed or could not be started */
	char why[HUB_CHILD_WHY]; /* why it was killed, or the first line it wrote to standard error */
};

/* On failure the child has ended with code -1, and `why` says why. Its output is added to the epoll set. */
void hub_child_start(struct hub_child *child, const struct hub_child_task *task, int epoll,
		     uint64_t now_ns);

/* Reads what there is, ends it if it exceeds a limit. True: it has ended; its output is complete, and
 * hub_child_release() is due. */
bool hub_child_has_ended(struct hub_child *child, uint64_t now_ns);

/* Kills it if it still runs, and frees its output. */
void hub_child_release(struct hub_child *child);

#endif
