/* What a simulated rank moved to and from each peer, summed up as the recorder does it. */
#ifndef SIM_LINKS_H
#define SIM_LINKS_H

#include <stdint.h>

#include "common/status.h"
#include "format/region_layout.h"
#include "format/trace_write.h"
#include "programs/sim/sim_outcome.h"

struct sim_links {
	struct region_link *slots; /* by hash of key; key 0 free; NULL until there is one */
	uint32_t room;		   /* a power of two */
	uint32_t count;
};

/* The connections of a call that have stopped. ERR_NO_SPACE. */
enum status sim_links_add(struct sim_links *links, uint32_t comm_id,
			  const struct sim_outcome *outcome);

/* A block of them, where there are any. */
enum status sim_links_write(const struct sim_links *links, struct trace_writer *writer);

void sim_links_release(struct sim_links *links);

#endif
