/*
 * Finds hung ranks and the rank they wait for. It examines one moment of a job: what each visible rank of
 * each communicator has called, is in, and waits for. The source does not matter: regions of this host,
 * snapshots from agents, traces of a dead job, Prometheus.
 *
 *	rank in an operation --waits for--> a rank that has not called it
 *	                     --waits for--> the peer of a transfer (flight.h)
 *	                     --waits for--> the network
 *	rank that has not called something --because it is in another operation--> (as above)
 *
 * These are followed from rank to rank to an end with no further cause, or around a cycle. All that lead to
 * the same end are its victims. docs/DOCTOR.md has the rules.
 */
#ifndef HANG_H
#define HANG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/status.h"
#include "doctor/verdict.h"
#include "recording/recording.h"

/* A source that should report ranks: an agent, a directory. */
struct hang_source {
	const char *name;    /* "node12:9749" */
	bool is_silent;	     /* it did not answer in time */
	const char *problem; /* "connection refused"; NULL none */
};

struct hang_options {
	/* Hung: in flight for at least this long without progress of its communicator. */
	uint64_t hang_ns; /* 0: 20 s */
	/* What long work outside NCCL looks like (a checkpoint) is a note until RINGSIDE_HANG_AFTER of its
	 * job has passed: verdict.is_allowed. */
	bool has_job_limits;
	/* The current time of each process's recorder clock; NULL: as hang_now_ns() returns. */
	const uint64_t *now_ns;
	/* For each seat of the job, how long nothing was called and nothing finished, from a caller that
	 * scans repeatedly; NULL: only what recorders wrote down counts. */
	const uint64_t *still_ns;
	/* Ignore processes if none of them is alive: for callers that watch running jobs. */
	bool only_living;
	/* Do not search recorded operations for the point where ranks diverged: for repeated scans. */
	bool is_quick;
	/* Also report where a hang cannot be judged, and dead or stopped processes before anything hangs
	 * because of them: for callers that would otherwise report "healthy". */
	bool has_unjudged;
	/* All snapshots were made at the same time, whatever the clocks of their hosts say. */
	bool is_one_moment;
	const struct hang_source *sources;
	size_t source_count;
};

/* The current time of a process's recorder clock: the clock itself if the process is alive on this host;
 * otherwise the last time in its recording. */
uint64_t hang_now_ns(const struct recording_process *process);

/* Adds to verdicts. Returns ERR_NO_SPACE if out of memory. */
enum status hang_find(struct verdicts *verdicts, const struct job *job,
		      const struct hang_options *options);

/*
 * Adds to the hangs from index `first` on where their ranks are in the program, where a process has a stack. hang_find()
 * does so for stacks that were there before; this is for those taken because of its verdicts. `now_ns`: as in the options.
 */
void hang_say_stacks(struct verdicts *verdicts, size_t first, const struct job *job,
		     const uint64_t *now_ns);

#endif
