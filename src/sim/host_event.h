/*
 * One call of the plugin at a time, as NCCL makes it: the descriptor of the version that was found is
 * filled on the stack and handed over. No lock, no clock, no counting, no look at the mask: that is
 * host_internal.h's. What benchmarks measure is these functions.
 *
 *	host_init		host_start_*		host_state_*
 *	host_finalize		host_stop
 *
 * An event or a state that the found version does not have is not called.
 */
#ifndef HOST_EVENT_H
#define HOST_EVENT_H

#include "sim/host_start.h" /* IWYU pragma: export */
#include "sim/host_state.h" /* IWYU pragma: export */

#endif
