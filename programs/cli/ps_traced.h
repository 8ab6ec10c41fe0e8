/*
 * What was in flight when a trace ended of whose process no region is left. A recorder writes what is
 * finished; who writes a trace of a job that hangs (a simulation) puts the calls in flight at its end,
 * with the state they had.
 */
#ifndef PS_TRACED_H
#define PS_TRACED_H

#include <stddef.h>

#include "recording/recording.h"

/* *flights is the caller's to free(); NULL when *count is 0. */
void ps_traced(const struct recording_process *process, struct recording_flight **flights,
	       size_t *count);

#endif
