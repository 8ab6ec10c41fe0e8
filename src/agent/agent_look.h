/*
 * When the agent looks at the machine's processes, and what it saw last. A look a second while there are
 * processes, also dead ones that are kept; one in ten seconds on an idle node, for what inotify does not see.
 * Where a look costs more than 5 ms of processor time they come less often, up to one in four seconds, so that
 * looking takes half a hundredth of a core, whoever asks how often.
 */
#ifndef AGENT_LOOK_H
#define AGENT_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/live.h"
#include "output/metrics.h"
#include "output/sink.h"
#include "recording/recording.h"
#include "recording/watch.h"

struct agent_look {
	struct watch watch;
	struct live live;
	struct live_limits limits;
	uint64_t last_ns;	  /* monotonic, 0: never */
	uint64_t next_ns;	  /* monotonic: when the next is due */
	uint64_t busy_until_ns;	  /* something may be about to come: look every second until then */
	uint64_t number;	  /* grows with every look */
	uint64_t cost_ns;	  /* processor time of a look: of the last two the cheaper one */
	uint64_t last_cost_ns;	  /* of the last */
	uint64_t spent_ns;	  /* in looks */
	uint64_t failures;	  /* looks that failed */
	enum status status;	  /* of the last */
	uint64_t start_wall_ns;	  /* of the agent */
	const uint64_t *verdicts; /* [VERDICT_CLASSES] that appeared so far; borrowed, NULL none */
	const uint64_t *kernel;	  /* [METRICS_KERNEL_EVENTS] so far; borrowed, NULL none */
};

enum status agent_look_init(struct agent_look *look, const struct watch_settings *settings,
			    const struct live_limits *limits);
void agent_look_release(struct agent_look *look);

/* Look now. */
void agent_look_take(struct agent_look *look, uint64_t now_ns);

/* Somebody asks: look unless the last look is a second old at most, or as old as it may be where looks are
 * dear. True: it did. */
bool agent_look_fresh(struct agent_look *look, uint64_t now_ns);

/* watch_fd() has something to say. */
void agent_look_heed(struct agent_look *look, uint64_t now_ns);

/* The agent about itself, for metrics_write(). */
void agent_look_self(const struct agent_look *look, struct metrics_agent *agent);

/*
 * Asking for GPU times when they are missed (--kernel-on-demand). Where live_doubt() has a doubt about a
 * communicator, the processes of its ranks on this machine are asked to time every operation for a while, as
 * `ringside record --kernel` does; each recorder decides whether that is safe. What was asked and answered is in the
 * log and counted.
 *
 * A job is asked at most once in AGENT_KERNEL_PAUSE_NS, and not again before the last request was answered: it
 * stands in the region until the process goes on.
 */

enum { AGENT_KERNEL_JOBS_MAX = 64 }; /* in one pause; others are not asked */

struct agent_kernel_asked {
	uint64_t device, inode; /* of its region */
	struct recording_ask ask;
	bool is_open; /* its answer was not told yet */
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

/* After a look. */
void agent_kernel_look(struct agent_kernel *kernel, const struct live *live,
		       const struct watch *watch, uint64_t now_ns);

/*
 * Files for node-exporter's textfile collector: one per process, written beside and renamed, so that no
 * reader sees half of one.
 *
 *	ringside-<uuid of the gpu, or gpu and its number>-<pid>-<start>.prom
 *
 * Whatever has such a name in the directory is ours: leftovers go at the start, the file of a process that is
 * forgotten goes at the next round, and all go at the end, or node-exporter would show them for ever.
 */

enum { AGENT_TEXTFILE_NAME = 128 };

struct agent_textfile {
	const char *directory; /* borrowed; NULL: nothing is written */
	int fd;
	uint64_t interval_ns;
	uint64_t next_ns; /* monotonic */
	size_t count;	  /* files that are there */
	bool is_failing;  /* said already */
};

/* Gives back 0, or 1 when a line was said. */
int agent_textfile_open(struct agent_textfile *to, const char *directory, uint64_t interval_ns);
/* Removes the files, too. */
void agent_textfile_close(struct agent_textfile *to);

/* Write all, remove those of processes that are no more. */
void agent_textfile_write(struct agent_textfile *to, const struct live *live, uint64_t now_ns);

/* The name for one process; only letters that a name may have, whatever the process says. */
void agent_textfile_name(const struct recording_process *process,
			 char name[static AGENT_TEXTFILE_NAME]);

/* Is it the name of such a file, or of one that was being written? */
bool agent_textfile_is_ours(const char *name);

/*
 * Processor time for answers that anybody can ask for in ever new ways, so that keeping the last one does not help:
 * a tenth of all time, and AGENT_BUDGET_BURST_NS of it at once. There is one thread, and it has others to serve.
 */

#define AGENT_BUDGET_BURST_NS UINT64_C(300000000)

/* All zero: all of the burst is there. */
struct agent_budget {
	uint64_t spent_ns; /* of which time has not yet made up for */
	uint64_t since_ns; /* monotonic: as of then */
};

/* May something be begun now? What it takes in the end is only known then, so one may go beyond. */
bool agent_budget_allows(struct agent_budget *budget, uint64_t now_ns);
void agent_budget_spend(struct agent_budget *budget, uint64_t spent_ns);

/*
 * /api/v1/snapshot: one moment of all processes as a tar archive, a trace file each and a note about the
 * agent. Made in the one thread that serves everybody, so its size and its time are bounded; what was left
 * out because of that stands in the note.
 */

enum {
	AGENT_SNAPSHOT_OPERATIONS_MAX = 20000, /* of a process: those that it finished last */
	AGENT_SNAPSHOT_BYTES_MAX = 32 * 1024 * 1024,
	/* Of the processor's time, and on a node that has none to spare: then what the last look knows has to do. */
	AGENT_SNAPSHOT_MS = 500,
	AGENT_SNAPSHOT_WALL_MS = 3000,
};

/* As many as are given to who asks for this many: a few steps, so that one archive does for most. */
size_t agent_snapshot_operations(uint64_t asked);

struct agent_snapshot_wanted {
	size_t operations;
	bool has_environment; /* without, variables that were recorded are left out */
};

/* Processes with an open region are read anew, apart from what the look has; it is not touched. */
void agent_snapshot_write(struct sink *sink, const struct agent_look *look, const char *host,
			  const struct agent_snapshot_wanted *wanted);

#endif
