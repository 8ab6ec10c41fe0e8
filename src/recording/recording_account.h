/*
 * Does everything add up? By the recorder's own counters, per communicator,
 *
 *	issued == recorded + in flight
 *
 * and, where a trace file should have every record, per process,
 *
 *	recorded == readable now + lost on the way to the file
 *
 * Operations of communicators for which the region had no slot, and those shown while recording was
 * off, have no counters: they are in lost_operations alone. So, for the whole process, what NCCL
 * showed is issued + lost[LOST_NO_COMM] + lost[LOST_OFF]; lost[LOST_NOT_SHOWN] it made besides.
 */
#ifndef RECORDING_ACCOUNT_H
#define RECORDING_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "recording/recording.h"

struct recording_account_comm {
	uint32_t id;
	bool has_counts; /* false: nobody said how many were issued; `kept` alone is known */
	uint64_t issued;
	uint64_t recorded;  /* by the recorder's own count */
	uint64_t timed;	    /* of recorded */
	uint64_t untrusted; /* of recorded: GPU stamps not believed */
	uint64_t captured;
	uint64_t replayed;
	uint64_t abandoned;
	uint64_t untracked;
	uint64_t in_flight; /* in live slots, not yet counted as recorded */
	uint64_t retiring;  /* in live slots that are being emptied: finished, maybe counted */
	uint64_t kept;	    /* finished operations that can be read now: files and ring */
	int64_t missing;    /* issued - recorded - in_flight: 0 when it adds up */
};

struct recording_account {
	struct recording_account_comm *comms; /* by id */
	size_t comm_count;
	/* Sums over the communicators. */
	uint64_t issued;
	uint64_t recorded;
	uint64_t timed;
	uint64_t untrusted;
	uint64_t in_flight;
	uint64_t kept;
	uint64_t lost_operations; /* whole operations, all reasons */
	uint64_t lost_uncounted;  /* of these: overwritten in the ring before they reached the file,
				     and the process was killed before it could count them */
	uint64_t lost_details;	  /* details of operations that are recorded */
	bool has_counts;	  /* of any communicator */
	/* Counts are final, both equations hold, nothing readable was damaged. */
	bool is_exact;
	int64_t missing; /* sum over the communicators: 0 when exact */
	int64_t unread;	 /* keeps_all: records that are neither readable nor counted as lost; below
			    0: more are there than were counted */
	bool is_moving;	 /* the process runs: counts were taken while they changed */
	bool keeps_all;	 /* trace modes: every record should be readable; else only the last */
	struct recording_walk walk;
};

/* Walks all operations. ERR_NO_SPACE, or what recording_each_op() said. Release in every case. */
enum status recording_account(struct recording_account *account,
			      const struct recording_process *process);
void recording_account_release(struct recording_account *account);

#endif
