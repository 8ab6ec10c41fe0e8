/*
 * To whom a rank's transfers are slow, from the sums that its recorder keeps for each peer. They go back to
 * the start of the process: what became slow lately hardly shows in them.
 */
#ifndef LINK_PEER_H
#define LINK_PEER_H

#include <stdint.h>

#include "common/status.h"
#include "timeline/job.h"

struct link_peer {
	uint32_t
		peers; /* to which it sent over the network, in the same communicator; 0: nothing known */
	uint32_t peers_weighed; /* of these: with a part of the bytes that matters */
	int32_t peer;		/* rank within the communicator; -1: none stands out */
	double confidence;	/* 0..1; 1 where there is one peer only */
	double share;		/* of the time on the wire that is too much, to all peers */
	double slowdown; /* time on the wire, against what the others' transfers take; 0 unknown */
	uint64_t transfers; /* to that peer */
	uint64_t bytes;
	double ns_per_mib;
	double middle_ns_per_mib; /* of all links that are compared; 0: there is no other */
};

/* The sender is job->seats[seat]. ERR_NO_SPACE: nothing is known then. */
enum status link_peer_find(struct link_peer *found, const struct job *job, uint32_t seat);

/* Index into job.ranks of a rank of a communicator; UINT32_MAX: there is no recording of it. */
uint32_t link_peer_rank(const struct job *job, uint32_t comm, int32_t comm_rank);

#endif
