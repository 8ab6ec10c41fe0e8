/* A communicator gets its place in the region. In init only, by one thread at a time. */
#ifndef COMM_BEGIN_H
#define COMM_BEGIN_H

#include "capture/recorder.h"

/* The context for NCCL; one that no callback takes for a communicator where all slots are in use.
 * `mask`: the events that were asked for; is_sampled: kernel events, for some. */
void *comm_begin(const struct comm_start *start, int mask, bool is_sampled);
/* How many are alive. */
uint32_t comm_begin_alive(void);

#endif
