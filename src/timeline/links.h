/* Sends by sender and receiver: how long their transfers are on the wire. Bounded. */
#ifndef LINKS_H
#define LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { LINKS_MAX = 1 << 19 };

struct link {
	uint32_t comm; /* index into job.comms */
	uint32_t from; /* index into job.seats */
	int32_t to;    /* rank within the communicator */
	uint32_t reserved;
	uint64_t sends;
	uint64_t send_net_ns;
	uint64_t send_steps;
	uint64_t bytes;
};

struct links {
	struct link *list;
	size_t count;
	size_t room;
	uint32_t *table; /* index + 1 */
	uint64_t left_out;
	enum status status;
};

/* The link's entry; NULL when there are too many or no memory. Valid until the next call. */
struct link *links_get(struct links *links, uint32_t comm, uint32_t from, int32_t to);
void links_release(struct links *links);

#endif
