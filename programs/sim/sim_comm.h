/*
 * A communicator: its ranks and the ways its channels take. Per channel a ring
 *
 *	node 0: a -> b -> c -> d  --net-->  node 1: a -> b -> c -> d  --net--> ...
 *
 * whose first GPU of each node moves on with the channel, so that every GPU's network card is used,
 * and a binary tree of nodes, whose GPU on each node moves on in the same way.
 */
#ifndef SIM_COMM_H
#define SIM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "programs/sim/sim_role.h"

enum { SIM_CHANNELS_MAX = 16, SIM_TREE_EDGES = 3 };

/* What the links of a communicator carry, with the faults of one stretch of time. */
struct sim_rates {
	uint64_t epoch_plus_1;		 /* 0: not worked out yet */
	uint64_t ring[SIM_CHANNELS_MAX]; /* bytes per us through the slowest link */
	uint64_t tree[SIM_CHANNELS_MAX];
	uint64_t ring_latency_ns;	       /* once around */
	uint64_t tree_latency_ns;	       /* to the top and back */
	uint64_t usual_ring[SIM_CHANNELS_MAX]; /* without any fault: what NCCL goes by */
	uint64_t usual_tree[SIM_CHANNELS_MAX];
};

struct sim_comm {
	uint64_t hash;
	char name[32];
	enum sim_role role;
	int nranks;
	int nnodes;
	int locals; /* ranks on a node, at most */
	int channels;
	int *ranks;	 /* the job's rank of each of its own */
	int *nodes;	 /* its own number of the node of each rank */
	int *node_first; /* nnodes + 1: its first rank on each node */
	int *ring;	 /* [channel * nranks + position]: its rank there */
	int *position;	 /* [channel * nranks + rank] */
	struct sim_rates rates;
};

/* `ranks` are copied; `gpus` is how many ranks a node of the job has, `channels` how many it has
 * between nodes (0: as many as suit). ERR_NO_SPACE. */
enum status sim_comm_init(struct sim_comm *comm, enum sim_role role, int index,
			  uint64_t parent_hash, const int *ranks, int count, int gpus,
			  int channels);
void sim_comm_release(struct sim_comm *comm);

int sim_comm_next(const struct sim_comm *comm, int channel, int rank);
int sim_comm_previous(const struct sim_comm *comm, int channel, int rank);

static inline bool sim_comm_is_network(const struct sim_comm *comm, int a, int b)
{
	return comm->nodes[a] != comm->nodes[b];
}

/* The channel of the n-th link (from 1) of a rank: of the rings in which it sends to another node, or
 * in which it sends at all where there is one node. -1: it has fewer. */
int sim_comm_link(const struct sim_comm *comm, int rank, int n);

/* The rank that stands for its node in this channel's tree. */
int sim_comm_leader(const struct sim_comm *comm, int channel, int node);
/* A rank's neighbours in the tree of nodes: first towards the top. None for a rank that does not
 * stand for its node. Gives back how many. */
int sim_comm_tree(const struct sim_comm *comm, int channel, int rank, int peers[SIM_TREE_EDGES]);

/* Channels that share one network card. */
static inline int sim_comm_share(const struct sim_comm *comm)
{
	return (comm->channels + comm->locals - 1) / comm->locals;
}

#endif
