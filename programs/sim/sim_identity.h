/* Who a simulated rank is: host, process, GPU, clocks. The same for the same seed. */
#ifndef SIM_IDENTITY_H
#define SIM_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "programs/sim/sim_job.h"

/* Clocks at the job's time 0. Recorder's clocks are those of hosts, wall clocks are set by hand. */
struct sim_clocks {
	uint64_t clock_ns; /* recorder's */
	uint64_t wall_ns;
	uint64_t gpu_ns;
	int64_t gpu_drift_ppm;
};

struct sim_identity {
	int rank;
	int local_rank;
	int64_t pid;
	uint64_t start_ticks;
	char host[32];
	char boot_id[40];
	struct sim_clocks clocks;
};

void sim_identity_make(struct sim_identity *identity, const struct sim_job *job, int rank);

static inline uint64_t sim_clock(const struct sim_clocks *clocks, uint64_t ns)
{
	return clocks->clock_ns + ns;
}

static inline uint64_t sim_wall(const struct sim_clocks *clocks, uint64_t ns)
{
	return clocks->wall_ns + ns;
}

/* The GPU's clock moves in steps of 32 ns. */
static inline uint64_t sim_gpu_clock(const struct sim_clocks *clocks, uint64_t ns)
{
	int64_t drift = (int64_t)(ns / 1000) * clocks->gpu_drift_ppm / 1000;

	return (clocks->gpu_ns + ns + (uint64_t)drift) & ~UINT64_C(31);
}

/* The "key=value" lines of its trace file. False: they do not fit. */
bool sim_identity_text(const struct sim_identity *identity, const struct sim_job *job, char *text,
		       size_t size);

/* The rank's communicator of a role as the recorder would describe it; `id` from 1. */
void sim_identity_comm(const struct sim_identity *identity, const struct sim_job *job, int role,
		       uint32_t id, struct comm_info *info);

/* "r12-node0001-4711-123456.ringside" */
void sim_identity_file(const struct sim_identity *identity, char *name, size_t size);

#endif
