/*
 * A connection over the network that a call uses: what its proxy operation did or does, and where
 * its transfers waited. All times are the job's.
 */
#ifndef SIM_EDGE_H
#define SIM_EDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "programs/sim/sim_comm.h"

enum { SIM_EDGES_MAX = SIM_CHANNELS_MAX * 2 * SIM_TREE_EDGES };

struct sim_edge {
	uint8_t channel;
	bool is_send;
	bool is_started; /* the proxy works on it: not queued behind another */
	uint8_t state;	 /* of the open transfers: 0 to 2, as wait_ns */
	uint8_t open;	 /* transfers under way, of steps done, done + 1, ... */
	int32_t peer;	 /* communicator's rank */
	uint32_t steps;	 /* all that are to be done */
	uint32_t done;	 /* of these */
	uint64_t bytes;	 /* moved */
	uint64_t queued_ns;
	uint64_t first_ns; /* first transfer, 0: none */
	uint64_t since_ns; /* when the open transfers came into their state */
	uint64_t stop_ns;  /* 0: not over */
	/* Over all transfers: sending GPU, peer, network; receiving network, flush, GPU. */
	uint64_t wait_ns[3];
};

#endif
