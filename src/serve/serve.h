/*
 * What the agent and the hub share as servers, without HTTP (server.h): log, privileges and sockets; the hook; reporting
 * verdicts; options.
 */
#ifndef SERVE_H
#define SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "common/attributes.h"
#include "doctor/live.h"
#include "doctor/verdict.h"
#include "recording/watch.h"
#include "serve/web.h"

/*
 * Log lines of the agent on stderr, without control bytes. In the systemd journal each begins with its priority
 * (sd-daemon(3)), elsewhere with the program's name.
 */

/* Numbered as in syslog. */
enum serve_level {
	SERVE_ERROR = 3,
	SERVE_WARNING = 4,
	SERVE_NOTICE = 5,
	SERVE_INFO = 6,
};

/* Returns CLI_EXIT_UNKNOWN, the exit code of an agent that cannot start. */
int serve_log(enum serve_level level, const char *format, ...) PRINTF_LIKE(2, 3);

/* The notify protocol of systemd: datagrams to NOTIFY_SOCKET. Does nothing if there is none. */

/* "READY=1", "STATUS=..." */
void serve_systemd_notify(const char *format, ...) PRINTF_LIKE(1, 2);

/* Interval of WATCHDOG=1, half of the timeout; 0: no watchdog. */
uint64_t serve_systemd_watchdog_ns(void);

/*
 * Drops privileges. Only these capabilities are kept, if present; the third one with --kernel-on-demand:
 *
 *	CAP_DAC_READ_SEARCH	to read regions of other users
 *	CAP_SYS_PTRACE		to read what /proc has about processes of others: descriptors, file system, namespaces
 *				and, if a job hangs, its environment; ptrace(2) and the like are denied, but not
 *				with --stacks, whose tools read processes
 *	CAP_DAC_OVERRIDE	to write requests into regions of other users
 *
 * No privileges can be gained later: no_new_privs is set, and the bounding set is empty or, with --stacks, has the first
 * two. See serve_calls_limit(), too.
 */

struct serve_rights {
	uid_t user;		/* (uid_t)-1: unchanged */
	gid_t group;		/* (gid_t)-1: the user's own, or unchanged */
	bool must_write;	/* into regions */
	bool must_hand_on;	/* to programs: see serve_rights_hand_on() */
	bool must_read_nothing; /* no regions: no capability is kept */
};

/* Looks up the names; NULL: not given. Returns 0, or an exit code after logging an error. */
int serve_rights_find(struct serve_rights *rights, const char *user, const char *group);

/* Returns 0, or 1 after logging an error: then exit. */
int serve_rights_drop(const struct serve_rights *rights);

/* In a child: programs that it starts get the first two, which py-spy needs to read processes of other users. */
void serve_rights_hand_on(void);
/* In a child: programs that it starts get none. */
bool serve_rights_drop_all(void);

/* From now on, system calls that nothing here needs fail with EPERM, in child processes, too; is_privileged: also those
 * that read or control other processes. Requires no_new_privs. False with errno if the kernel does not do that. */
bool serve_calls_limit(bool is_privileged);

/* Listening sockets: opened here, or passed by systemd (LISTEN_FDS). */

enum { SERVE_LISTENERS_MAX = 8 };

struct serve_listener {
	int fd;
	struct web_address address;
	bool is_ours;	 /* a Unix socket whose file we created (mode 0660) and remove */
	uint64_t device; /* of that file */
	uint64_t inode;
};

struct serve_listeners {
	struct serve_listener list[SERVE_LISTENERS_MAX];
	size_t count;
};

/* Number of sockets passed by systemd, -1 if they cannot be used (logged). */
int serve_listen_inherit(struct serve_listeners *listeners);

/* `group` owns Unix sockets, (gid_t)-1: default. Returns 0, or 1 after logging an error. */
int serve_listen_open(struct serve_listeners *listeners, const struct web_address *address,
		      gid_t group);

void serve_listen_close(struct serve_listeners *listeners);

/* Resident memory of this process; 0 unknown. */
uint64_t serve_resident_bytes(void);

/*
 * A command that is run when a verdict appears and when it clears: to page someone, open a ticket or save a bundle.
 * It is user code, so nothing that it does may block the agent:
 *
 *	event --> queue (at most SERVE_HOOK_QUEUE) --> one process at a time --> its exit code is logged
 *	  |            |                                   |
 *	  |            full: rejected                      output: read piece by piece, some lines logged
 *	  too many per minute of one user: rejected        timeout: SIGTERM, then SIGKILL, to its whole group
 *
 * A rejected event can be passed again later. The rate limit is per user, so one user cannot use up the others'.
 *
 * It is started without a shell, with the few privileges of the agent (struct serve_rights), three descriptors, no blocked
 * signals, as the leader of a process group; what is left of the group when it exits is killed.
 */

#define SERVE_HOOK_TIMEOUT_NS UINT64_C(60000000000)
#define SERVE_HOOK_GRACE_NS UINT64_C(5000000000) /* between SIGTERM and SIGKILL */
#define SERVE_HOOK_MINUTE_NS UINT64_C(60000000000)

enum {
	SERVE_HOOK_WORDS = 32,	   /* of the command */
	SERVE_HOOK_VARIABLES = 24, /* of an event */
	SERVE_HOOK_QUEUE = 32,
	SERVE_HOOK_A_MINUTE = 10,	 /* per user: delayable events; others come on top */
	SERVE_HOOK_USERS = 16,		 /* within a minute; events of further users wait */
	SERVE_HOOK_LINES = 20,		 /* of its output that are logged */
	SERVE_HOOK_LINE = 400,		 /* bytes of each */
	SERVE_HOOK_OUTPUT = 1024 * 1024, /* read at most; then its pipe is closed */
};

/* Its input: standard input, and variables in addition to the agent's own. */
struct serve_hook_event {
	char *input; /* owned */
	size_t input_length;
	char *variables[SERVE_HOOK_VARIABLES]; /* "NAME=VALUE", owned */
	size_t variable_count;
	char about[160]; /* for the log: "appeared: never_issued" */
	uint64_t user;	 /* whose rate limit applies: any number */
	bool is_lost;	 /* out of memory while it was built */
};

/* Adds a variable RINGSIDE_ plus name; control bytes of the value become '?'. Too many, or out of memory: is_lost. */
void serve_hook_variable(struct serve_hook_event *event, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* The calls of a user in the last minute. */
struct serve_hook_turns {
	uint64_t user;
	uint64_t taken_ns[SERVE_HOOK_A_MINUTE]; /* a ring; 0: never */
	size_t next;
};

struct serve_hook {
	char *command;			   /* words end with '\0'; NULL: no hook */
	char *words[SERVE_HOOK_WORDS + 1]; /* into command */
	int epoll;			   /* epoll that watches its output; -1 none */
	uint64_t timeout_ns;
	uint64_t grace_ns;
	struct serve_hook_event queue[SERVE_HOOK_QUEUE];
	size_t first, count; /* a ring */
	struct serve_hook_turns turns[SERVE_HOOK_USERS];

	/* The running process. */
	pid_t pid;  /* 0 none */
	int output; /* -1 none */
	uint64_t begun_ns;
	uint64_t end_by_ns; /* time of the next signal */
	bool is_terminated;
	bool is_killed;
	char about[160];
	char line[SERVE_HOOK_LINE + 1];
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
const char *serve_hook_init(struct serve_hook *hook, const char *command, int epoll);
/* The same for an option --hook: what is wrong is logged. Returns 0, or the exit code. */
int serve_hook_open(struct serve_hook *hook, const char *command, uint64_t timeout_ns, int epoll);
/* Kills the running process and waits up to a second for it. */
void serve_hook_release(struct serve_hook *hook);

/* Whether a delayable event of this user would be accepted now. */
bool serve_hook_has_turn(const struct serve_hook *hook, uint64_t user, uint64_t now_ns);

/* Takes over *event, which is empty afterwards. False: it was rejected and counted. */
bool serve_hook_give(struct serve_hook *hook, struct serve_hook_event *event, bool may_wait,
		     uint64_t now_ns);

/* Handles a child's exit and output. */
void serve_hook_handle(struct serve_hook *hook, uint64_t now_ns);

/* Runs what is due; returns when the next thing is due, UINT64_MAX if nothing is. */
uint64_t serve_hook_run(struct serve_hook *hook, uint64_t now_ns);
/*
 * Reports each verdict of the doctor once when it appears, once when it clears, and again when a warning becomes an
 * error: in the log and to the hook. A verdict that returns within SERVE_VERDICT_QUIET_NS has not cleared. Nothing here
 * affects a job.
 */

enum {
	SERVE_VERDICTS_MAX = 128,    /* reported at a time; more are only counted */
	SERVE_VERDICTS_OF_USER = 64, /* of these per user, so that one user cannot use up all */
};

struct serve_verdict {
	uint64_t key;
	uint64_t first_ns; /* monotonic */
	uint64_t last_ns;  /* when it was last active */
	uint64_t first_wall_ns;
	uint64_t job_start_wall_ns;  /* as its first verdict said */
	unsigned int report_from;    /* reported again from this severity on */
	uint64_t user;		     /* user ID of the job plus one; 0 unknown */
	bool is_hook_called;	     /* the hook was called for it */
	bool is_due;		     /* the hook is to be called when the rate limit allows */
	bool is_late;		     /* delayed by the rate limit, and counted */
	struct verdicts as_reported; /* one: as last reported */
};

struct serve_verdicts {
	struct serve_verdict reported[SERVE_VERDICTS_MAX];
	size_t count;
	bool is_full;			  /* already logged */
	uint64_t totals[VERDICT_CLASSES]; /* since the agent started */
};

void serve_verdicts_release(struct serve_verdicts *verdicts);

/* Where verdicts are reported. */
struct serve_verdicts_to {
	struct serve_hook *hook;   /* NULL: log only */
	const char *host;	   /* name of this host */
	const struct watch *watch; /* to find the user of a job; NULL: each job has its own */
	/* Something is still being asked about this verdict: it is reported later. NULL: never. */
	bool (*is_pending)(const void *context, const struct verdict *verdict, uint64_t now_ns);
	const void *context; /* of is_pending */
};

/* Call after each scan. Hook calls over the rate limit are retried at each scan while the verdict lasts. */
void serve_verdicts_report(struct serve_verdicts *verdicts, const struct live *live,
			   const struct serve_verdicts_to *to, uint64_t now_ns);

/* The same for verdicts from elsewhere: all that are active now. */
void serve_verdicts_pass(struct serve_verdicts *verdicts, const struct verdicts *active,
			 uint64_t wall_ns, const struct serve_verdicts_to *to, uint64_t now_ns);

/* Options. */

enum { SERVE_AGENT_PORT = 9749 };

/* What agent and hub have in common. */
struct serving_options {
	struct web_address listen[SERVE_LISTENERS_MAX];
	size_t listen_count; /* 0: not given */
	const char *web_config;
	const char *hook; /* NULL none */
	uint64_t hook_ns;
	char host[256]; /* name of this host */
	bool is_host_given;
	const char *user;
	const char *group;
};
void serving_options_init(struct serving_options *serving);

/* Rows of both pages, for a struct with a member `serving`. */
int serving_take_listen(const struct cli_said *said);
int serving_take_host(const struct cli_said *said);
int serving_take_hook(const struct cli_said *said);
#define SERVING_TIME .like = "is not a time like 30s, 5m or 500ms", .less = "is less than 1s"
#define SERVING_LISTEN(type, port)                                                          \
	{ 'l', "listen", "ADDRESS",                                                         \
	  "address to listen on: 127.0.0.1:" port " (default), [::1]:" port ", :" port      \
	  " for all addresses, unix:/path; can be repeated",                                \
	  CLI_CALL(type, serving, serving_take_listen) },                                   \
	{                                                                                   \
		0, "web-config", "FILE",                                                    \
			"TLS and passwords, in the web configuration format of Prometheus " \
			"exporters",                                                        \
			CLI_TEXT(type, serving.web_config)                                  \
	}
#define SERVING_HOOK(type, when)                                                          \
	{ 0, "hook", "COMMAND",                                                           \
	  "run this command when " when " appears and when it clears: absolute path and " \
	  "arguments, split at blanks; standard input has the verdict as JSON",           \
	  CLI_CALL(type, serving, serving_take_hook) },                                   \
	{                                                                                 \
		0, "hook-time", "TIME", "time limit of the hook (default 60s)",           \
			CLI_TIME(type, serving.hook_ns, CLI_SECONDS(1), 0), SERVING_TIME  \
	}
#define SERVING_USER(type, about_host)                                                    \
	{ 0, "host", "NAME", about_host, CLI_CALL(type, serving, serving_take_host) },    \
		{ 0, "user", "NAME", "switch to this user after startup (requires root)", \
		  CLI_TEXT(type, serving.user) },                                         \
	{                                                                                 \
		0, "group", "NAME", "switch to this group, which also owns Unix sockets", \
			CLI_TEXT(type, serving.group)                                     \
	}

#endif
