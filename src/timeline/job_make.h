/* The parts of job_make(). For the room's own use. */
#ifndef JOB_MAKE_H
#define JOB_MAKE_H

#include "common/status.h"
#include "timeline/job.h"

/* group_of: per process. Seats and groups are there for both, ranks for the second. */
enum status job_make_ranks(struct job *job, const uint32_t *group_of);
enum status job_make_comms(struct job *job, const uint32_t *group_of);

const struct comm_info *job_seat_info(const struct job *job, uint32_t seat);

#endif
