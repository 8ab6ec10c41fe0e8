/*
 * Who is stuck, and on whom it waits. One moment of a job is looked at: what each member of each
 * communicator that can be seen has issued, is in, and waits for. It does not matter where that comes
 * from: regions of this machine, snapshots of agents, traces of a dead job, Prometheus.
 *
 *	member in an operation --waits for--> a member that has not issued it
 *	                       --waits for--> the peer of a transfer (flight.h)
 *	                       --waits for--> the network
 *	member that has not issued something --because it is in another operation--> (as above)
 *
 * These are followed from rank to rank to the end that cannot be blamed on anybody else, or round a
 * circle. All that lead to the same end are its victims. docs/DOCTOR.md has the rules.
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

/* Somebody who should have told about ranks: an agent, a directory. */
struct hang_source {
	const char *name;    /* "node12:9749" */
	bool is_silent;	     /* it did not answer, or not in time */
	const char *problem; /* "connection refused"; NULL none */
};

struct hang_options {
	/* In flight for so long, its communicator without progress: that is a hang. */
	uint64_t hang_ns; /* 0: 20 s */
	/* Now on the recorders' clocks, one per process of the recording; NULL: as hang_now_ns() says. */
	const uint64_t *now_ns;
	/* For so long nothing was issued and nothing finished, one per seat of the job, by who looks again and
	 * again; NULL: only what the recorders wrote down counts. */
	const uint64_t *still_ns;
	/* Say nothing of processes none of which lives any more: for who looks at what runs now. */
	bool only_living;
	/* Do not go through recorded operations to find where ranks diverged: for who looks again and again. */
	bool is_quick;
	/* Also say of what it cannot be told whether it hangs, and who is dead or stopped before anybody hangs because
	 * of it: for who answers "healthy" otherwise. */
	bool has_unjudged;
	const struct hang_source *sources;
	size_t source_count;
};

/* The recorder's clock "now" for this process: of this machine and alive, its clock; else the last moment
 * of which its recording knows. */
uint64_t hang_now_ns(const struct recording_process *process);

/* Adds to verdicts. ERR_NO_SPACE (memory). */
enum status hang_find(struct verdicts *verdicts, const struct job *job,
		      const struct hang_options *options);

#endif
