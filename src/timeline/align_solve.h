/* From pairs of processes that met to one time for all. For the room's own use. */
#ifndef ALIGN_SOLVE_H
#define ALIGN_SOLVE_H

#include <stddef.h>

#include "common/status.h"
#include "timeline/align.h"
#include "timeline/meet.h"

/* ERR_NO_SPACE; nothing to release then. */
enum status align_solve(struct align *align, const struct job *job, const struct meet_edge *edges,
			size_t edge_count);

#endif
