/*
 * Where the transfers of a call waited, connection by connection: what NCCL's proxy would have
 * reported. Consistent with who was late and which link was slow, not measured.
 */
#ifndef SIM_WAITS_H
#define SIM_WAITS_H

#include "programs/sim/sim_engine.h"

/* When the ranks of a collective came. */
struct sim_arrivals {
	uint64_t last_ns;
	uint64_t second_last_ns;
	int last; /* communicator's rank */
};

struct sim_arrivals sim_waits_arrivals(const struct sim_meeting *meeting, int nranks);

/* Of a collective that is over. Gives back how many connections `rank` has. */
int sim_waits_collective(struct sim_edge edges[SIM_EDGES_MAX], const struct sim_job *job,
			 const struct sim_meeting *meeting, const struct sim_plan *plan,
			 const struct sim_arrivals *arrivals, int rank);

/* Of a Send or Recv over the network that is over. */
void sim_waits_pair(struct sim_edge *edge, const struct sim_plan *plan, const struct sim_call *send,
		    const struct sim_call *recv, bool is_send);

/* The connections alone, nothing said about their progress. */
int sim_waits_edges(struct sim_edge edges[SIM_EDGES_MAX], const struct sim_comm *comm,
		    const struct sim_plan *plan, int rank);

bool sim_waits_has_hop(const struct sim_plan *plan, int from, int to);

#endif
