/*
 * A command that is run when a verdict appears and when it clears: to page someone, open a ticket or save a bundle.
 * It is user code, so nothing that it does may block the agent:
 *
 *	event --> queue (at most AGENT_HOOK_QUEUE) --> one process at a time --> its exit code is logged
 *	  |            |                                   |
 *	  |            full: rejected                      output: read piece by piece, some lines logged
 *	  too many per minute of one user: rejected        timeout: SIGTERM, then SIGKILL, to its whole group
 *
 * A rejected event can be passed again later. The rate limit is per user, so one user cannot use up the others'.
 *
 * It is started without a shell, with the few privileges of the agent (agent_system.h), three descriptors, no blocked
 * signals, as the leader of a process group; what is left of the group when it exits is killed.
 */
#ifndef AGENT_HOOK_H
#define AGENT_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/attributes.h"

#define AGENT_HOOK_TIMEOUT_NS UINT64_C(60000000000)
#define AGENT_HOOK_GRACE_NS UINT64_C(5000000000) /* between SIGTERM and SIGKILL */
#define AGENT_HOOK_MINUTE_NS UINT64_C(60000000000)

enum {
	AGENT_HOOK_WORDS = 32,	   /* of the command */
	AGENT_HOOK_VARIABLES = 24, /* of an event */
	AGENT_HOOK_QUEUE = 32,
	AGENT_HOOK_A_MINUTE = 10,	 /* per user: delayable events; others come on top */
	AGENT_HOOK_USERS = 16,		 /* within a minute; events of further users wait */
	AGENT_HOOK_LINES = 20,		 /* of its output that are logged */
	AGENT_HOOK_LINE = 400,		 /* bytes of each */
	AGENT_HOOK_OUTPUT = 1024 * 1024, /* read at most; then its pipe is closed */
};

/* Its input: standard input, and variables in addition to the agent's own. */
struct agent_hook_event {
	char *input; /* owned */
	size_t input_length;
	char *variables[AGENT_HOOK_VARIABLES]; /* "NAME=VALUE", owned */
	size_t variable_count;
	char about[160]; /* for the log: "appeared: never_issued" */
	uint64_t user;	 /* whose rate limit applies: any number */
	bool is_lost;	 /* out of memory while it was built */
};

/* Adds a variable RINGSIDE_ plus name; control bytes of the value become '?'. Too many, or out of memory: is_lost. */
void agent_hook_variable(struct agent_hook_event *event, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* The calls of a user in the last minute. */
struct agent_hook_turns {
	uint64_t user;
	uint64_t taken_ns[AGENT_HOOK_A_MINUTE]; /* a ring; 0: never */
	size_t next;
};

struct agent_hook {
	char *command;			   /* words end with '\0'; NULL: no hook */
	char *words[AGENT_HOOK_WORDS + 1]; /* into command */
	int epoll;			   /* epoll that watches its output; -1 none */
	uint64_t timeout_ns;
	uint64_t grace_ns;
	struct agent_hook_event queue[AGENT_HOOK_QUEUE];
	size_t first, count; /* a ring */
	struct agent_hook_turns turns[AGENT_HOOK_USERS];

	/* The running process. */
	pid_t pid;  /* 0 none */
	int output; /* -1 none */
	uint64_t begun_ns;
	uint64_t end_by_ns; /* time of the next signal */
	bool is_terminated;
	bool is_killed;
	char about[160];
	char line[AGENT_HOOK_LINE + 1];
	size_t line_used;
	size_t lines; /* logged */
	uint64_t lines_left_out;
	uint64_t output_bytes;

	uint64_t runs;	   /* started processes */
	uint64_t failures; /* could not be started, or did not exit with 0 */
	uint64_t left_out; /* delayed or dropped events */
	uint64_t logged_left_out;
	uint64_t log_left_out_ns; /* next log line not before */
};

/*
 * `command` is split into words at blanks; no quotes, variables or patterns are interpreted. The first word is the
 * absolute path of a program. NULL: there is no hook, and the functions below do nothing. Returns NULL, or an error
 * message.
 */
const char *agent_hook_init(struct agent_hook *hook, const char *command, int epoll);
/* The same for an option --hook: what is wrong is logged. Returns 0, or the exit code. */
int agent_hook_open(struct agent_hook *hook, const char *command, uint64_t timeout_ns, int epoll);
/* Kills the running process and waits up to a second for it. */
void agent_hook_release(struct agent_hook *hook);

/* Whether a delayable event of this user would be accepted now. */
bool agent_hook_has_turn(const struct agent_hook *hook, uint64_t user, uint64_t now_ns);

/* Takes over *event, which is empty afterwards. False: it was rejected and counted. */
bool agent_hook_give(struct agent_hook *hook, struct agent_hook_event *event, bool may_wait,
		     uint64_t now_ns);

/* Handles a child's exit and output. */
void agent_hook_handle(struct agent_hook *hook, uint64_t now_ns);

/* Runs what is due; returns when the next thing is due, UINT64_MAX if nothing is. */
uint64_t agent_hook_run(struct agent_hook *hook, uint64_t now_ns);

#endif
