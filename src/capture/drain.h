/*
 * The trace thread: from the ring to the trace file, in modes trace and full. Callbacks never wait
 * for it; what it does not get in time is overwritten, and counted here, exactly.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Open the file and start the thread. On failure nothing runs; errno says why for ERR_SYSTEM. */
enum status drain_start(const char *path, unsigned int mode, uint64_t quota);

/* Has the file got this communicator's description? Its slot may be used again then. */
bool drain_has_comm(uint32_t slot, uint32_t id);

/* Everything that is recorded goes to the file, then its closing record. Waits a bounded time for a
 * thread that is stuck in the disk; then the region still has what the file lacks. */
void drain_finish(void);

#endif
