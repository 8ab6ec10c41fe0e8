/* What became of a call: handed on to be recorded. All times are the job's. */
#ifndef SIM_OUTCOME_H
#define SIM_OUTCOME_H

#include "programs/sim/sim_engine.h"
#include "programs/sim/sim_waits.h"

struct sim_kernel {
	uint8_t channel;
	uint64_t start_ns;
	uint64_t stop_ns; /* 0: it runs */
};

struct sim_outcome {
	const struct sim_call *call;
	uint8_t algorithm; /* enum op_algorithm */
	uint8_t protocol;
	uint8_t channels;
	bool is_over;
	bool is_self;	   /* from the rank to itself: no kernel or proxy events */
	uint64_t begin_ns; /* when all that came were there; 0: unknown */
	uint64_t end_ns;
	uint32_t steps;	     /* per connection */
	uint64_t step_bytes; /* of one */
	int kernel_count;    /* 0: not reached by the GPU */
	struct sim_kernel kernels[SIM_CHANNELS_MAX];
	int edge_count;
	struct sim_edge edges[SIM_EDGES_MAX];
};

/* A collective is over for this rank of its communicator. */
void sim_outcome_collective(struct sim_engine *engine, const struct sim_meeting *meeting,
			    const struct sim_plan *plan, const struct sim_arrivals *arrivals,
			    int rank, uint64_t end_ns);
/* The rank whose count was half of the others' is through with its half. */
void sim_outcome_odd(struct sim_engine *engine, const struct sim_meeting *meeting,
		     const struct sim_plan *plan, const struct sim_arrivals *arrivals, int rank);
/* All Sends and Recvs of a launch are over. */
void sim_outcome_pairs(struct sim_engine *engine, const struct sim_launch *launch);
/* At the end: this rank's calls that are in flight, in the order in which they were made. ERR_NO_SPACE, and what the
 * trace or the score could not take. */
enum status sim_outcome_open_calls(struct sim_engine *engine, int rank);

/* When the kernel of a channel starts, of a launch that starts then. */
static inline uint64_t sim_outcome_kernel_start(uint64_t start_ns, int channel)
{
	return start_ns + (uint64_t)channel * 96;
}

#endif
