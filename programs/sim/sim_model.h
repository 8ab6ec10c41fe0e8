/*
 * How long communication takes. A link has a bandwidth and a latency per direction; a collective
 * goes as fast as the slowest link of each of its channels.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdint.h>

#include "programs/sim/sim_job.h"

/* NCCL has at most so many transfers of a connection under way. */
enum { SIM_WINDOW = 8 };

/* How a collective is done, from the moment its last rank has arrived. */
struct sim_plan {
	uint8_t algorithm; /* enum op_algorithm */
	uint8_t protocol;  /* enum op_protocol */
	uint8_t channels;
	bool is_towards_root;
	int32_t root;	     /* of a chain; OP_NOBODY: it is a ring */
	uint32_t steps;	     /* transfers per channel and connection */
	uint64_t step_bytes; /* of one, at most */
	uint64_t link_bytes; /* per channel, over each of its connections */
	uint64_t channel_ns[SIM_CHANNELS_MAX];
	uint64_t longest_ns; /* of these */
};

/* `bytes` as nccl-tests counts them; `ns`: when it starts. */
void sim_model_collective(struct sim_plan *plan, const struct sim_job *job, struct sim_comm *comm,
			  uint8_t function, uint64_t bytes, uint64_t ns);

/* A send to another rank or to itself; `fan` transfers share the sender's or receiver's port. The
 * plan has one channel. */
void sim_model_send(struct sim_plan *plan, const struct sim_job *job, int from, int to,
		    uint64_t bytes, unsigned int fan, uint64_t ns);

/* How long one step of this plan occupies the connection between two ranks of the communicator. */
uint64_t sim_model_step_ns(const struct sim_plan *plan, const struct sim_job *job,
			   const struct sim_comm *comm, int from, int to, uint64_t ns);

#endif
