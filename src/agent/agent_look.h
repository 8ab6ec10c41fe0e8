/*
 * Scans of the processes of this host, and the last result. One scan per second while there are processes,
 * including ended ones that are kept; one every ten seconds on an idle node, for what inotify does not report.
 * If a scan takes more than 5 ms of CPU time, scans become less frequent, down to one in four seconds, so that
 * they take 0.5% of a core, however often clients ask. Judging the speed of jobs takes at most as much again.
 */
#ifndef AGENT_LOOK_H
#define AGENT_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_probe.h"
#include "cmds/cli_host.h"
#include "common/status.h"
#include "doctor/live.h"
#include "output/metrics.h"
#include "output/sink.h"
#include "recording/recording.h"
#include "recording/watch.h"

enum { AGENT_LOOK_TOLD = 64 };

struct agent_look {
	struct watch watch;
	struct live live;
	struct live_limits limits;
	uint64_t last_ns;		/* monotonic, 0: never */
	uint64_t next_ns;		/* monotonic: when the next scan is due */
	uint64_t busy_until_ns;		/* activity expected: scan every second until then */
	uint64_t number;		/* number of the scan */
	uint64_t cost_ns;		/* CPU time of a scan: the cheaper one of the last two */
	uint64_t last_cost_ns;		/* of the last scan */
	uint64_t spent_ns;		/* total time of scans */
	uint64_t failures;		/* failed scans */
	uint64_t judgements;		/* of the speed of a job: see live_judge() */
	uint64_t judged_ns;		/* CPU time of these */
	enum status status;		/* of the last scan */
	uint64_t start_wall_ns;		/* of the agent */
	const uint64_t *verdicts;	/* [VERDICT_CLASSES] so far; borrowed, NULL none */
	const uint64_t *kernel;		/* [METRICS_KERNEL_EVENTS] so far; borrowed, NULL none */
	struct cli_host_watch *host;	/* facts of this host; borrowed, NULL none */
	uint64_t next_host_ns;		/* monotonic: when they are read again */
	size_t supported;		/* verdicts of the last scan */
	uint32_t told[AGENT_LOOK_TOLD]; /* users with something left out, as logged */
	size_t told_count;
	struct agent_probe *probe; /* stacks and RAS of hung jobs; borrowed, NULL none */
};

/*
 * Facts of the host are read every half minute while there are processes: in a child process, which takes some
 * milliseconds of CPU time (docs/AGENT.md). Returns when to call again.
 */
uint64_t agent_look_host(struct agent_look *look, uint64_t now_ns);

enum status agent_look_init(struct agent_look *look, const struct watch_settings *settings,
			    const struct live_limits *limits);
void agent_look_release(struct agent_look *look);

/* Scans now. */
void agent_look_take(struct agent_look *look, uint64_t now_ns);

/* Continues a long search between scans, for some milliseconds. True: call again when clients have been served. */
bool agent_look_search(struct agent_look *look);

/* A client asks: scans unless the last scan is less than a second old, or recent enough given the cost of scans.
 * True: it scanned. */
bool agent_look_fresh(struct agent_look *look, uint64_t now_ns);

/* watch_fd() is readable. */
void agent_look_heed(struct agent_look *look, uint64_t now_ns);

/* Of this process; 0 unknown. */
uint64_t agent_look_resident_bytes(void);

/* State of the agent itself, for metrics_write(). */
void agent_look_self(const struct agent_look *look, struct metrics_agent *agent);

/*
 * Requests GPU times when they are needed (--kernel-on-demand). If live_doubt() reports a communicator, the processes
 * of its ranks on this host are asked to time every operation for a while, as with `ringside record --kernel`; each
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
 * AGENT_BUDGET_BURST_NS. The agent has one thread, which has to serve the other clients, too.
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
 * the agent. It is built in the only thread, so size and time are limited; the note lists what was left out.
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

#endif
