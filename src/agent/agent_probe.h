/*
 * What a hung job's processes on this host can say beyond their recordings: where they are in their program (--stacks,
 * doctor/stacks.h) and what NCCL's RAS knows (--ras, doctor/ras_find.h). Both are asked in a child process with a
 * deadline, one job at a time, when a verdict says that the job hangs, and again while it lasts. What the child found
 * becomes part of the verdicts at the next scan.
 */
#ifndef AGENT_PROBE_H
#define AGENT_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/hub_child.h"
#include "doctor/live.h"
#include "doctor/stacks.h"
#include "doctor/verdict.h"
#include "recording/watch.h"

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

#endif
