/*
 * The trace thread: from the ring to the trace file, in modes trace and full. Callbacks never wait
 * for it; what it does not get in time is overwritten, and counted here, exactly.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

/* Open the file and start the thread. `group` may read it, too; (gid_t)-1: none. On failure nothing
 * runs and there is no file; errno says why for ERR_SYSTEM. */
enum status drain_start(const char *path, gid_t group, uint64_t quota);

/* Has the file got the description and the counts of this communicator, which has ended? Its slot may
 * be used again then. True when there is no file. */
bool drain_has_comm(uint32_t slot, uint32_t id);

/* See to it now, waiting a short time for the thread. In init only. */
void drain_save_comms(void);

/* Everything that is recorded goes to the file, then its closing record. Waits a bounded time for a
 * thread that is stuck in the disk; then the region still has what the file lacks. */
void drain_finish(void);

#endif
