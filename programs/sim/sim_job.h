/* A simulated job before it runs: ranks, communicators, programs, faults. Read only once made. */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "programs/sim/sim_comm.h"
#include "programs/sim/sim_options.h"
#include "programs/sim/sim_program.h"

/* A rank's place in the communicator of a role. */
struct sim_member {
	int comm; /* -1: it has none */
	int rank;
};

struct sim_job {
	struct sim_options options;
	int world;
	int interface; /* profiler interface version */
	struct sim_comm *comms;
	int comm_count;
	struct sim_member (*members)[SIM_ROLES]; /* by rank */
	struct sim_programs *programs;		 /* one per stage */
	int stages;
	uint64_t boundaries_ns[2 * SIM_FAULTS_MAX]; /* when a fault begins or ends, sorted */
	size_t boundary_count;
};

/* `options` finished by sim_options_finish(). ERR_NO_SPACE. */
enum status sim_job_init(struct sim_job *job, const struct sim_options *options);
void sim_job_release(struct sim_job *job);

const struct sim_programs *sim_job_programs(const struct sim_job *job, int rank);
static inline int sim_job_node(const struct sim_job *job, int rank)
{
	return rank / job->options.gpus;
}

/* A communicator of the rank, by role; NULL where it has none. */
struct sim_comm *sim_job_comm(const struct sim_job *job, int rank, int role);

/* How many faults began or ended before: what is the same within one is worked out once. */
uint64_t sim_job_epoch(const struct sim_job *job, uint64_t ns);

/* The first fault of this kind that concerns the rank (any, for -1) and has begun by then. */
const struct sim_fault *sim_job_fault(const struct sim_job *job, enum sim_fault_kind kind, int rank,
				      uint64_t ns);

/* How much longer this takes at that time, times 1000. */
uint64_t sim_job_compute_permille(const struct sim_job *job, int rank, uint64_t ns);
uint64_t sim_job_link_permille(const struct sim_job *job, int from, int to, uint64_t ns);

/* Does anything that rank `from` sends go to `to` directly? */
bool sim_job_uses_link(const struct sim_job *job, int from, int to);
/* The ranks to which it sends, as text: "4, 12". */
void sim_job_neighbours(const struct sim_job *job, int rank, char *text, size_t size);

/* When it gets SIGKILL; UINT64_MAX: never. */
uint64_t sim_job_killed_ns(const struct sim_job *job, int rank);
/* Has it a rank that is stopped? That is seen from outside alone: its files are as snapshots are. */
bool sim_job_is_snapshot(const struct sim_job *job);
/* When it does nothing any more, killed or stopped; UINT64_MAX: never. */
uint64_t sim_job_gone_ns(const struct sim_job *job, int rank);

/* Is what rank `from` of the communicator sends to `to` on that channel never completed? */
bool sim_job_is_stuck(const struct sim_job *job, const struct sim_comm *comm, int channel, int from,
		      int to, uint64_t ns);

/* Does the GPU of this rank not do its part of calls of this role, in this way? */
bool sim_job_gpu_is_stuck(const struct sim_job *job, int rank, int role, enum sim_gpu_stuck what,
			  uint64_t ns);

/* Can its faults happen at all? On failure `why` has one line. */
enum status sim_job_check(const struct sim_job *job, char *why, size_t size);

#endif
