/*
 * A drop-in for NCCL Inspector: if Inspector's variables are set, a thread of ours reads the ring
 * and writes the same files in the same places. Callbacks never wait for it. Every operation
 * recorded while it ran is in the file, or left out for a reason given by the user or the format,
 * or counted as lost (LOST_INSPECTOR, and a line on stderr at the end).
 *
 * Only this thread touches the files, so a disk that does not answer blocks nothing else.
 */
#ifndef INSPECTOR_THREAD_H
#define INSPECTOR_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "plugin/process_info.h"
#include "plugin/settings.h"

/* The region must have a ring. Both arguments are borrowed for good. On an error nothing runs. */
enum status inspector_start(const struct settings *settings, const struct identity *identity);

/*
 * Have all records of this communicator, which has ended, been read? Then its slot can be reused.
 * True if nothing runs.
 */
bool inspector_has_comm(uint32_t slot, uint32_t id);

/* Give the thread a short time to catch up. Only in init. */
void inspector_save_comms(void);

/*
 * Write everything recorded to the file. Waits while the thread makes progress, and a bounded time
 * if it is stuck in the disk; what is missing from the file then is counted.
 */
void inspector_finish(void);

#endif
