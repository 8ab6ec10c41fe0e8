/*
 * The node agent without its answers (agent_route.h): scans of this host and what is made of them; the command line.
 * What it shares with the hub as a server is in src/serve.
 */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "common/child.h"
#include "common/status.h"
#include "doctor/doctor.h"
#include "doctor/live.h"
#include "doctor/verdict.h"
#include "output/metrics.h"
#include "output/sink.h"
#include "recording/recording.h"
#include "recording/watch.h"
#include "serve/serve.h"

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
	struct child child;
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
	size_t next_past;	/* process whose past is read first */
	uint64_t busy_until_ns; /* activity expected: scan every second until then */
	uint64_t number;	/* number of the scan */
	uint64_t cost_ns;	/* CPU time of a scan: the cheaper one of the last two */
	uint64_t last_cost_ns;	/* of the last scan */
	uint64_t spent_ns;	/* total time of scans */
	uint64_t failures;	/* failed scans */
	uint64_t judgements;	/* of the speed of a job: see live_judge() */
	uint64_t judged_ns;	/* CPU time of these */
	uint64_t judged_look;	/* number of the scan after which one was last due or not */
	struct child judge;
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
	AGENT_SNAPSHOT_OPERATIONS_MAX = 20000, /* per process: those finished last, */
	AGENT_SNAPSHOT_PAST_MAX = 16384,       /* and of the time before */
	AGENT_SNAPSHOT_BYTES_MAX = 32 * 1024 * 1024,
	/* CPU time, and wall time on a busy node: afterwards the data of the last scan is used. */
	AGENT_SNAPSHOT_MS = 500,
	AGENT_SNAPSHOT_WALL_MS = 3000,
};

/* The requested number rounded up to one of a few steps, so that most requests can share an archive. */
size_t agent_snapshot_operations(uint64_t asked);
size_t agent_snapshot_past(uint64_t asked);

struct agent_snapshot_wanted {
	size_t operations;
	size_t past;
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

/* The command line. Its page is in cli/pages.h. */

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
