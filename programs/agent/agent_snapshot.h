/*
 * /api/v1/snapshot: one moment of all processes as a tar archive, a trace file each and a note about the
 * agent. Made in the one thread that serves everybody, so its size and its time are bounded; what was left
 * out because of that stands in the note.
 */
#ifndef AGENT_SNAPSHOT_H
#define AGENT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sink.h"
#include "programs/agent/agent_look.h"

enum {
	AGENT_SNAPSHOT_OPERATIONS_MAX = 20000, /* of a process: those that it finished last */
	AGENT_SNAPSHOT_BYTES_MAX = 32 * 1024 * 1024,
	/* Of the processor's time, and on a node that has none to spare: then what the last look knows has to do. */
	AGENT_SNAPSHOT_MS = 500,
	AGENT_SNAPSHOT_WALL_MS = 3000,
};

/* As many as are given to who asks for this many: a few steps, so that one archive does for most. */
size_t agent_snapshot_operations(uint64_t asked);

struct agent_snapshot_wanted {
	size_t operations;
	bool has_environment; /* without, variables that were recorded are left out */
};

/* Processes with an open region are read anew, apart from what the look has; it is not touched. */
void agent_snapshot_write(struct sink *sink, const struct agent_look *look, const char *host,
			  const struct agent_snapshot_wanted *wanted);

#endif
