/* What the processes of each machine found of the network, and what they use of it, by NCCL's logs. For the room's own
 * use. */
#ifndef SETUP_MACHINES_H
#define SETUP_MACHINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/setup_parts.h"

/* One machine. */
struct setup_machine {
	const char *host;
	uint32_t process;  /* the first */
	uint64_t found[4]; /* InfiniBand devices by index */
	uint64_t used[4];
	uint64_t gpus[4]; /* by NVML's number */
	const struct nccl_log_net *device;
	const struct nccl_log_net *interface; /* of socket_link */
	const struct nccl_log_link *ib_link, *socket_link, *gdr_link, *plain_link, *p2p_link;
	size_t socket_links, gdr_links, plain_links;
	bool is_ib_off; /* by the user */
};

struct setup_machines {
	struct setup_machine *nodes;
	size_t count;
	uint32_t *node_of; /* by process */
};

/* ERR_NO_SPACE. Release it in any case. */
enum status setup_machines_read(struct setup_machines *network, const struct setup *setup);
void setup_machines_release(struct setup_machines *network);

/* How many of them. */
int setup_machines_marked(const uint64_t bits[4]);

/* Evidence: the line of a link, or of a device. */
void setup_machines_cite_link(const struct setup *setup, struct verdict *verdict,
			      const struct nccl_log_link *link);
void setup_machines_cite_device(const struct setup *setup, struct verdict *verdict,
				const struct nccl_log_net *net);

/* How much of the network is used: cards, GPUDirect RDMA, channels. */
void setup_find_cards(const struct setup *setup, const struct setup_machines *network);

#endif
