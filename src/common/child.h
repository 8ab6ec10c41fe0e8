/*
 * Work in a child process with limits of time, memory, output and privileges: whatever it reads or calls can only harm
 * the child, and nobody waits for one that hangs.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHILD_WHY = 200 };

struct child_task {
	char *const *words; /* words[0] is the path of a program; NULL: `work` */
	/* Called in the child instead of a program. Writes to standard output; returns the exit code. */
	int (*work)(const char *input, void *context);
	void *context;
	/* Called in the child before that: privileges, environment. False: it ends. NULL: nothing to do. */
	bool (*prepare)(void);
	const char *input; /* on standard input; NULL: none */
	uint64_t timeout_ns;
	size_t limit_bytes; /* of its output */
	uint64_t
		memory_bytes; /* of address space; `work` has what it shares besides; 0: no limit */
	/* `work` reads open files. Everything else is closed in the child, or clients would wait for their connections to
	 * end, and a child that cannot be killed would keep the port. */
	bool keeps_files;
};

/* All zero: none was started. */
struct child {
	pid_t pid;  /* 0: none */
	int output; /* -1: none or at its end */
	int errors;
	uint64_t begun_ns, until_ns;
	char *bytes; /* its output so far, terminated once it has ended; the reader may set used to 0 */
	size_t used, room, limit;
	int code;	    /* its exit code; -1: it was killed or could not be started */
	int signal;	    /* that ended it; 0: none did, or it is unknown */
	uint64_t cpu_ns;    /* that it took; 0 until it has ended */
	uint64_t killed_ns; /* 0: it was not */
	/* Why it was killed or given up, or the first line it wrote to standard error. */
	char why[CHILD_WHY];
	size_t why_length; /* of what it wrote there */
	pid_t stuck;	   /* an earlier one that could not be killed; 0: none */
};

/*
 * Starts one. Where it cannot, it has ended with code -1, and `why` says why: also if an earlier one of this struct still
 * cannot be killed. What it writes is added to the epoll set (-1: none).
 */
void child_start(struct child *child, const struct child_task *task, int epoll, uint64_t now_ns);

/*
 * Reads what there is, and ends it if it exceeds a limit. True: it has ended, or could not be killed within some seconds
 * and was given up; its output is complete, and child_release() is due.
 */
bool child_has_ended(struct child *child, uint64_t now_ns);

/* Waits until it writes or ends, but not longer than this. */
void child_wait(const struct child *child, int most_ms);

/* Starts one and waits until it has ended. child_release() is due. */
void child_run(struct child *child, const struct child_task *task);

/* Kills it if it still runs, and frees its output. */
void child_release(struct child *child);

/* In `work`: a descriptor for its output. From now on what libraries print goes to standard error. -1 with errno. */
int child_keep_output(void);

/* In a child: closes all but the standard streams, which become /dev/null, and this descriptor. */
void child_close_files(int kept);

/* How many this process has given up so far. */
uint64_t child_given_up(void);

#endif
