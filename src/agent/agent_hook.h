/*
 * A command that is run when a verdict appears and when it is taken back: who wants to be woken, to write a
 * ticket, to save a bundle. It is the user's, so nothing that it does may hold up the agent:
 *
 *	given --> queue (at most AGENT_HOOK_QUEUE) --> one process at a time --> its exit code is told
 *	  |            |                                   |
 *	  |            full: not taken                     output: read piece by piece, some lines told
 *	  too many a minute of one user: not taken         too long: SIGTERM, then SIGKILL, to all of its group
 *
 * What was not taken may be given again later. Whose jobs have many verdicts uses up nobody else's turns.
 *
 * It is started without a shell, with the agent's own rights (which are hardly any: agent_system.h), no
 * descriptor but its three, no signal blocked, as the leader of a process group, and what is left of that group
 * when it ends is ended, too.
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
	AGENT_HOOK_VARIABLES = 24, /* that an event brings along */
	AGENT_HOOK_QUEUE = 32,
	AGENT_HOOK_A_MINUTE =
		10,	       /* of a user: events that may wait; those that may not come on top */
	AGENT_HOOK_USERS = 16, /* within a minute; those of others wait */
	AGENT_HOOK_LINES = 20, /* of its output that are told */
	AGENT_HOOK_LINE = 400, /* bytes of each */
	AGENT_HOOK_OUTPUT = 1024 * 1024, /* that are read; then its pipe is closed */
};

/* What it is told: standard input, and variables beside the agent's own. */
struct agent_hook_event {
	char *input; /* owned */
	size_t input_length;
	char *variables[AGENT_HOOK_VARIABLES]; /* "NAME=VALUE", owned */
	size_t variable_count;
	char about[160]; /* for the log: "appeared: never_issued" */
	uint64_t user;	 /* whose turn it takes: any number */
	bool is_lost;	 /* memory ran out while it was made */
};

/* One more variable, RINGSIDE_ and its name; control bytes of the value become '?'. Too many, or no memory:
 * is_lost. */
void agent_hook_variable(struct agent_hook_event *event, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* A user's turns of the last minute. */
struct agent_hook_turns {
	uint64_t user;
	uint64_t taken_ns[AGENT_HOOK_A_MINUTE]; /* a ring; 0: never */
	size_t next;
};

struct agent_hook {
	char *command;			   /* words end in '\0'; NULL: there is no hook */
	char *words[AGENT_HOOK_WORDS + 1]; /* into command */
	int epoll;			   /* where its output is listened to; -1 nowhere */
	uint64_t timeout_ns;
	uint64_t grace_ns;
	struct agent_hook_event queue[AGENT_HOOK_QUEUE];
	size_t first, count; /* a ring */
	struct agent_hook_turns turns[AGENT_HOOK_USERS];

	/* The process that runs. */
	pid_t pid;  /* 0 none */
	int output; /* -1 none */
	uint64_t begun_ns;
	uint64_t end_by_ns; /* then comes the next signal */
	bool is_told_to_end;
	bool is_killed;
	char about[160];
	char line[AGENT_HOOK_LINE + 1];
	size_t line_used;
	size_t lines; /* told */
	uint64_t lines_left_out;
	uint64_t output_bytes;

	uint64_t runs;	   /* processes that were started */
	uint64_t failures; /* could not be started, or ended otherwise than with 0 */
	uint64_t left_out; /* events that nobody was told of */
	uint64_t told_left_out;
	uint64_t tell_left_out_ns; /* not before */
};

/*
 * `command` is cut at blanks into words, and nothing else is done to it: no quotes, no variables, no pattern.
 * The first word is the whole path of a program. NULL: there is no hook, and all below does nothing. Gives back
 * NULL, or in words what is wrong with it.
 */
const char *agent_hook_init(struct agent_hook *hook, const char *command, int epoll);
/* Kills what runs, and waits a second at most for its end. */
void agent_hook_release(struct agent_hook *hook);

/* Would an event of this user that may wait be taken now? */
bool agent_hook_has_turn(const struct agent_hook *hook, uint64_t user, uint64_t now_ns);

/* Take over *event, which is empty then. False: it was left out, and counted. */
bool agent_hook_give(struct agent_hook *hook, struct agent_hook_event *event, bool may_wait,
		     uint64_t now_ns);

/* Something happened: a child ended, output came. */
void agent_hook_heed(struct agent_hook *hook, uint64_t now_ns);

/* Whatever is due; gives back when the next thing is, UINT64_MAX: nothing is. */
uint64_t agent_hook_run(struct agent_hook *hook, uint64_t now_ns);

#endif
