/*
 * A tape while it is played, and the call that a line stands for. Nobody else includes this.
 */
#ifndef TAPE_CALL_H
#define TAPE_CALL_H

#include <pthread.h>

#include "programs/sim/host_inside.h"
#include "programs/sim/tape.h"
#include "programs/sim/tape_map.h"

struct player {
	const struct tape *tape;
	const struct tape_config *config;
	struct tape_counts *counts;
	struct host *host;
	struct host_plugin plugin; /* as it was found by the last INIT */
	struct tape_map contexts;
	struct tape_map handles;
	uint64_t shift_ns;	/* added to GPU stamps */
	uint64_t start_mono_ns; /* when the first line was played */

	pthread_mutex_t lock;
	size_t next; /* the line that holds the ticket */
	bool is_cancelled;
	pthread_cond_t *turns; /* by thread */
};

/* Make it. By the thread that holds the ticket. */
void tape_call(struct player *player, const struct tape_line *line);

#endif
