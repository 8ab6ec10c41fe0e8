/*
 * In NCCL Inspector's place: with its own variables set, a thread of ours reads the ring and writes what
 * Inspector writes, where it writes it. Callbacks never wait for it. Every operation that was recorded
 * while it ran is in the file, or left out for a reason of the user's or of the format's, or counted as
 * lost: LOST_INSPECTOR, and in a line on stderr at the end.
 *
 * All files are touched by the thread alone: a disk that does not answer holds up nobody else.
 */
#ifndef INSPECTOR_THREAD_H
#define INSPECTOR_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "plugin/process_info.h"
#include "plugin/settings.h"

/* The region has a ring. Both are borrowed for good. ERR_NO_SPACE, ERR_SYSTEM (errno): nothing runs. */
enum status inspector_start(const struct settings *settings, const struct identity *identity);

/* Was all read that there is of this communicator, which has ended? Its slot may be used again then.
 * True when nothing runs. */
bool inspector_has_comm(uint32_t slot, uint32_t id);

/* Give the thread a short time to get there. In init only. */
void inspector_save_comms(void);

/* All that is recorded goes to the file. Waits for as long as the thread gets on, and a bounded time for one
 * that is stuck in the disk; what the file lacks then is counted. */
void inspector_finish(void);

#endif
