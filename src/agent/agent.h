/*
 * The node agent without its server (agent_server.h): log, privileges and sockets; child processes and the hook; scans
 * and what is made of them; verdicts; the command line. The hub (hub.h) shares all but the scans.
 */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/web.h"
#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "common/attributes.h"
#include "common/status.h"
#include "doctor/doctor.h"
#include "doctor/live.h"
#include "doctor/verdict.h"
#include "output/metrics.h"
#include "output/sink.h"
#include "recording/recording.h"
#include "recording/watch.h"

/*
 * Log lines of the agent on stderr, without control bytes. In the systemd journal each begins with its priority
 * (sd-daemon(3)), elsewhere with the program's name.
 */

/* Numbered as in syslog. */
enum agent_level {
	AGENT_ERROR = 3,
	AGENT_WARNING = 4,
	AGENT_NOTICE = 5,
	AGENT_INFO = 6,
};

/* Returns CLI_EXIT_UNKNOWN, the exit code of an agent that cannot start. */
int agent_log(enum agent_level level, const char *format, ...) PRINTF_LIKE(2, 3);

/* The notify protocol of systemd: datagrams to NOTIFY_SOCKET. Does nothing if there is none. */

/* "READY=1", "STATUS=..." */
void agent_systemd_notify(const char *format, ...) PRINTF_LIKE(1, 2);

/* Interval of WATCHDOG=1, half of the timeout; 0: no watchdog. */
uint64_t agent_systemd_watchdog_ns(void);

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
 * two. See agent_calls_limit(), too.
 */

struct agent_rights {
	uid_t user;		/* (uid_t)-1: unchanged */
	gid_t group;		/* (gid_t)-1: the user's own, or unchanged */
	bool must_write;	/* into regions */
	bool must_hand_on;	/* to programs: see agent_rights_hand_on() */
	bool must_read_nothing; /* no regions: no capability is kept */
};

/* Looks up the names; NULL: not given. Returns 0, or an exit code after logging an error. */
int agent_rights_find(struct agent_rights *rights, const char *user, const char *group);

/* Returns 0, or 1 after logging an error: then exit. */
int agent_rights_drop(const struct agent_rights *rights);

/* In a child: programs that it starts get the first two, which py-spy needs to read processes of other users. */
void agent_rights_hand_on(void);
/* In a child: programs that it starts get none. */
bool agent_rights_drop_all(void);

/* From now on, system calls that nothing here needs fail with EPERM, in child processes, too; is_privileged: also those
 * that read or control other processes. Requires no_new_privs. False with errno if the kernel does not do that. */
bool agent_calls_limit(bool is_privileged);

/* Listening sockets: opened here, or passed by systemd (LISTEN_FDS). */

enum { AGENT_LISTENERS_MAX = 8 };

struct agent_listener {
	int fd;
	struct web_address address;
	bool is_ours;	 /* a Unix socket whose file we created (mode 0660) and remove */
	uint64_t device; /* of that file */
	uint64_t inode;
};

struct agent_listeners {
	struct agent_listener list[AGENT_LISTENERS_MAX];
	size_t count;
};

/* Number of sockets passed by systemd, -1 if they cannot be used (logged). */
int agent_listen_inherit(struct agent_listeners *listeners);

/* `group` owns Unix sockets, (gid_t)-1: default. Returns 0, or 1 after logging an error. */
int agent_listen_open(struct agent_listeners *listeners, const struct web_address *address,
		      gid_t group);

void agent_listen_close(struct agent_listeners *listeners);

/*
 * A child process of the hub or the agent: ringside-fetch, the doctor, sinfo, a name lookup, stacks and RAS of a hung
 * job, judging speed, snapshots, passwords. What it reads can only harm the child: its time, memory and output are limited, and nobody waits for it.
 */

enum { HUB_CHILD_WHY = 200, HUB_CHILD_WORDS = 40 };

struct hub_child_task {
	char *const *words; /* words[0] is the path of a program; NULL: `work` */
	/* Called in the child instead of a program. Writes to standard output; returns the exit code. */
	int (*work)(const char *input, void *context);
	void *context;
	const char *input; /* on standard input; NULL: none */
	uint64_t timeout_ns;
	size_t limit_bytes; /* of its output */
	uint64_t
		memory_bytes; /* of address space; `work` has what it shares besides; 0: no limit */
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
	uint64_t cpu_ns;	 /* that it took; 0 until it has ended */
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

/* In a child that starts no program: closes what it does not need, or clients would wait for their connections to end, and
 * a child that cannot be killed would keep the port. */
void hub_child_close_others(bool keeps_files);

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
 * It is started without a shell, with the few privileges of the agent (struct agent_rights), three descriptors, no blocked
 * signals, as the leader of a process group; what is left of the group when it exits is killed.
 */

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

/*
 * What a hung job's processes on this host can say beyond their recordings: where they are in their program (--stacks,
 * doctor/stacks.c) and what NCCL's RAS knows (--ras, doctor/ras_find.c). Both are asked in a child process with a
 * deadline, one job at a time, when a verdict says that the job hangs, and again while it lasts. What the child found
 * becomes part of the verdicts at the next scan.
 */

enum {
	AGENT_PROBE_JOBS_MAX = 64, /* hung at a time; further ones are not asked */
	AGENT_PROBE_LINES_MAX = 64,
};

struct agent_probe_options {
	bool has_stacks;
	bool has_native; /* may stop processes for a moment */
	bool has_ras;
};

/* A process whose stack was taken: it is dropped when the process makes another call. */
struct agent_probe_taken {
	int64_t pid;
	uint64_t start_ticks;
	uint64_t counts_ns;
};

struct agent_probe_job {
	char name[128];
	uint64_t start_wall_ns;		    /* of this run */
	uint64_t first_ns, last_ns;	    /* monotonic: when it was found hung */
	uint64_t begun_ns;		    /* monotonic: last child; 0: none yet */
	bool is_done;			    /* at least one child has ended */
	char *lines[AGENT_PROBE_LINES_MAX]; /* "KIND KEY TEXT" for its verdicts */
	size_t line_count;
	struct agent_probe_taken taken[STACKS_PROCESSES_MAX];
	size_t taken_count;
};

struct agent_probe {
	struct agent_probe_options options;
	int epoll;
	struct agent_probe_job *jobs;
	size_t count;
	struct hub_child child;
	bool is_asking;
	char asked[128]; /* the job that the child asks about */
	struct agent_probe_taken asked_of[STACKS_PROCESSES_MAX];
	size_t asked_count;
};

void agent_probe_open(struct agent_probe *probe, const struct agent_probe_options *options,
		      int epoll);
void agent_probe_release(struct agent_probe *probe);

/* Between reading the processes and judging them: drops what is not true any more. */
void agent_probe_refresh(struct agent_probe *probe, struct recording *recording, uint64_t now_ns);
/* After judging: notes which jobs hang, and adds what is known to their verdicts. */
void agent_probe_add(struct agent_probe *probe, struct live *live, uint64_t now_ns);
/*
 * Starts and ends the child. Returns when to call again. *has_news: it found something for the next scan.
 */
uint64_t agent_probe_run(struct agent_probe *probe, struct live *live, struct watch *watch,
			 uint64_t now_ns, bool *has_news);

/* A verdict whose job is asked right now is reported when the answer is there, and after a deadline without. */
bool agent_probe_is_pending(const struct agent_probe *probe, const struct verdict *verdict,
			    uint64_t now_ns);

/*
 * Scans of the processes of this host, and the last result. One scan per second while there are processes,
 * including ended ones that are kept; one every ten seconds on an idle node, for what inotify does not report.
 * If a scan takes more than 5 ms of CPU time, scans become less frequent, down to one in four seconds, so that
 * they take 0.5% of a core, however often clients ask. Judging the speed of jobs takes at most as much again, in a
 * child process, because nobody can wait for half a second.
 *
 * A scan is done in steps of some milliseconds, and clients are served in between. From its first step to its last nobody
 * may use `watch` and `live`: what is needed meanwhile was made before, or waits.
 */

enum { AGENT_LOOK_TOLD = 64 };

struct agent_look {
	struct watch watch;
	struct live live;
	struct live_limits limits;
	bool is_scanning;	/* between the first step of a scan and its last */
	bool is_read;		/* all of its processes were read */
	enum status read;	/* how that went */
	uint64_t begun_ns;	/* monotonic: when it began */
	uint64_t steps_ns;	/* CPU time of its steps so far */
	uint64_t last_ns;	/* monotonic: when the last complete one began; 0: never */
	uint64_t next_ns;	/* monotonic: when the next scan is due */
	uint64_t busy_until_ns; /* activity expected: scan every second until then */
	uint64_t number;	/* number of the scan */
	uint64_t cost_ns;	/* CPU time of a scan: the cheaper one of the last two */
	uint64_t last_cost_ns;	/* of the last scan */
	uint64_t spent_ns;	/* total time of scans */
	uint64_t failures;	/* failed scans */
	uint64_t judgements;	/* of the speed of a job: see live_judge() */
	uint64_t judged_ns;	/* CPU time of these */
	uint64_t judged_look;	/* number of the scan after which one was last due or not */
	struct hub_child judge;
	struct live_judgement judgement; /* that it makes */
	int epoll;			 /* with the output of the child */
	enum status status;		 /* of the last scan */
	uint64_t start_wall_ns;		 /* of the agent */
	const uint64_t *verdicts;	 /* [VERDICT_CLASSES] so far; borrowed, NULL none */
	const uint64_t *kernel;		 /* [METRICS_KERNEL_EVENTS] so far; borrowed, NULL none */
	struct cli_host_watch *host;	 /* facts of this host; borrowed, NULL none */
	uint64_t next_host_ns;		 /* monotonic: when they are read again */
	size_t supported;		 /* verdicts of the last scan */
	uint32_t told[AGENT_LOOK_TOLD];	 /* users with something left out, as logged */
	size_t told_count;
	bool is_other_host_told;
	struct agent_probe *probe; /* stacks and RAS of hung jobs; borrowed, NULL none */
};

enum status agent_look_init(struct agent_look *look, const struct watch_settings *settings,
			    const struct live_limits *limits);
void agent_look_release(struct agent_look *look);

/* One step of a scan, if there is one under way or due. False: there was nothing to do. */
bool agent_look_step(struct agent_look *look, uint64_t now_ns);

/* Continues a long search between scans, for some milliseconds. True: call again when clients have been served. */
bool agent_look_search(struct agent_look *look);

/* A client asks: is the last scan less than a second old, or recent enough given the cost of scans? If not, one is due
 * now, and the client has to wait for it. */
bool agent_look_fresh(struct agent_look *look, uint64_t now_ns);

/* watch_fd() is readable. */
void agent_look_heed(struct agent_look *look, uint64_t now_ns);

/*
 * Facts of the host are read every half minute while there are processes: in a child process, which takes some
 * milliseconds of CPU time (docs/AGENT.md). Returns when to call again.
 */
uint64_t agent_look_host(struct agent_look *look, uint64_t now_ns);

/* Starts and ends the child that judges speed. Returns when to call again. */
uint64_t agent_look_judge(struct agent_look *look, uint64_t now_ns);

/* Of this process; 0 unknown. */
uint64_t agent_look_resident_bytes(void);

/* State of the agent itself, for metrics_write(). */
void agent_look_self(const struct agent_look *look, struct metrics_agent *agent);

/*
 * Requests GPU times when they are needed (--kernel-on-demand). If live_doubt() reports a communicator, the processes
 * of its ranks on this host are asked to time every operation for a while, as with `ringside record --times`; each
 * recorder decides whether that is safe. Requests and answers are logged and counted.
 *
 * A job is asked at most once in AGENT_KERNEL_PAUSE_NS, and not again before the last request was answered: the
 * request stays in the region until the process makes progress.
 */

enum { AGENT_KERNEL_JOBS_MAX = 64 }; /* per pause; further jobs are not asked */

struct agent_kernel_asked {
	uint64_t device, inode; /* of its region */
	struct recording_ask ask;
	bool is_open; /* its answer was not logged yet */
};

struct agent_kernel_job {
	char name[128];
	uint32_t user;
	uint64_t asked_ns; /* monotonic */
	struct agent_kernel_asked *asked;
	size_t count, open;
};

struct agent_kernel {
	uint32_t seconds; /* 0: never ask */
	struct agent_kernel_job jobs[AGENT_KERNEL_JOBS_MAX];
	size_t count;
	uint64_t totals[METRICS_KERNEL_EVENTS];
};

void agent_kernel_release(struct agent_kernel *kernel);

/* Call after each scan. */
void agent_kernel_look(struct agent_kernel *kernel, const struct live *live,
		       const struct watch *watch, uint64_t now_ns);

/*
 * Files for node-exporter's textfile collector: one per process, written to a temporary file and renamed, so that
 * readers never see a partial file.
 *
 *	ringside-<uuid of the gpu, or gpu and its number>-<pid>-<start>.prom, in another pid namespace with -ns<it> before -<pid>
 *
 * All files with such a name are ours: leftovers are removed at the start, the file of a forgotten process in the
 * next round, and all of them at the end, or node-exporter would export them for ever.
 */

enum { AGENT_TEXTFILE_NAME = 128 };

struct agent_textfile {
	const char *directory; /* borrowed; NULL: do not write */
	int fd;
	uint64_t interval_ns;
	uint64_t next_ns; /* monotonic */
	size_t count;	  /* existing files */
	bool is_failing;  /* already logged */
};

/* Returns 0, or 1 after logging an error. */
int agent_textfile_open(struct agent_textfile *to, const char *directory, uint64_t interval_ns);
/* Also removes the files. */
void agent_textfile_close(struct agent_textfile *to);

/* Writes all files and removes those of processes that are gone. */
void agent_textfile_write(struct agent_textfile *to, const struct live *live, uint64_t now_ns);

/* The file name for a process; contains only safe characters, whatever the process claims. */
void agent_textfile_name(const struct recording_process *process,
			 char name[static AGENT_TEXTFILE_NAME]);

/* Whether this is the name of such a file or of its temporary file. */
bool agent_textfile_is_ours(const char *name);

/*
 * CPU time for answers that cannot be cached because requests vary: a tenth of all time, with bursts of up to
 * AGENT_BUDGET_BURST_NS, of the agent or of its children.
 */

#define AGENT_BUDGET_BURST_NS UINT64_C(300000000)

/* All zero: the whole burst is available. */
struct agent_budget {
	uint64_t spent_ns; /* not yet regained */
	uint64_t since_ns; /* monotonic: time of this state */
};

/* Whether work may start now. Its cost is only known afterwards, so the budget may be exceeded once. */
bool agent_budget_allows(struct agent_budget *budget, uint64_t now_ns);
void agent_budget_spend(struct agent_budget *budget, uint64_t spent_ns);

/*
 * /api/v1/snapshot: the current state of all processes as a tar archive with one trace file each and a note about
 * the agent. Size and time are limited; the note lists what was left out.
 */

enum {
	AGENT_SNAPSHOT_OPERATIONS_MAX = 20000, /* per process: those finished last */
	AGENT_SNAPSHOT_BYTES_MAX = 32 * 1024 * 1024,
	/* CPU time, and wall time on a busy node: afterwards the data of the last scan is used. */
	AGENT_SNAPSHOT_MS = 500,
	AGENT_SNAPSHOT_WALL_MS = 3000,
};

/* The requested number rounded up to one of a few steps, so that most requests can share an archive. */
size_t agent_snapshot_operations(uint64_t asked);

struct agent_snapshot_wanted {
	size_t operations;
	bool has_environment; /* else recorded environment variables are left out */
	bool has_job;	      /* only processes of this job; others are not mentioned */
	char job[128];
};

/* Processes with an open region are read again; the data of the scan is not changed. */
void agent_snapshot_write(struct sink *sink, const struct agent_look *look, const char *host,
			  const struct agent_snapshot_wanted *wanted);

/*
 * Logs each notice once when it appears and once when it clears. A notice that returns within
 * AGENT_NOTICE_QUIET_NS has not cleared. A notice that is or becomes a verdict is only reported as a verdict.
 */

struct agent_notice {
	char key[320]; /* kind, job, communicator, rank */
	char job[128];
	char comm[128];
	char rank[64];
	char title[sizeof(((struct live_notice *)0)->title)];
	enum live_notice_kind kind;
	bool is_replaced;  /* a verdict reports it now */
	uint64_t first_ns; /* monotonic */
	uint64_t last_ns;  /* when it was last active */
};

struct agent_notices {
	struct agent_notice reported[LIVE_NOTICES_MAX];
	size_t count;
};

/* Call after each scan. */
void agent_notices_report(struct agent_notices *notices, const struct live *live, uint64_t now_ns);

/*
 * Reports each verdict of the doctor once when it appears, once when it clears, and again when a warning becomes an
 * error: in the log and to the hook. A verdict that returns within AGENT_VERDICT_QUIET_NS has not cleared. Nothing here
 * affects a job.
 */

enum {
	AGENT_VERDICTS_MAX = 128,    /* reported at a time; more are only counted */
	AGENT_VERDICTS_OF_USER = 64, /* of these per user, so that one user cannot use up all */
};

struct agent_verdict {
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

struct agent_verdicts {
	struct agent_verdict reported[AGENT_VERDICTS_MAX];
	size_t count;
	bool is_full;			  /* already logged */
	uint64_t totals[VERDICT_CLASSES]; /* since the agent started */
};

void agent_verdicts_release(struct agent_verdicts *verdicts);

/* Where verdicts are reported. */
struct agent_verdicts_to {
	struct agent_hook *hook;	 /* NULL: log only */
	const char *host;		 /* name of this host */
	const struct watch *watch;	 /* to find the user of a job; NULL: each job has its own */
	const struct agent_probe *probe; /* hangs wait for its answers; NULL: none */
};

/* Call after each scan. Hook calls over the rate limit are retried at each scan while the verdict lasts. */
void agent_verdicts_report(struct agent_verdicts *verdicts, const struct live *live,
			   const struct agent_verdicts_to *to, uint64_t now_ns);

/* The same for verdicts from elsewhere: all that are active now. */
void agent_verdicts_pass(struct agent_verdicts *verdicts, const struct verdicts *active,
			 uint64_t wall_ns, const struct agent_verdicts_to *to, uint64_t now_ns);

/* The command line. Its page is in cli/pages.h. */

enum { AGENT_PORT = 9749 };

/* What agent and hub have in common. */
struct serving_options {
	struct web_address listen[AGENT_LISTENERS_MAX];
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

struct agent_options {
	struct serving_options serving;
	const char *textfile;
	uint64_t interval_ns;
	struct watch_settings watch;
	struct live_limits limits;
	struct agent_probe_options probe;
	bool has_kernel; /* ask for kernel events on demand */
	uint64_t kernel_ns;
};

/* Returns -1 to continue, else the exit code: help or an error was printed. */
int agent_options_parse(struct agent_options *options, int argc, char **argv);

#endif
