/*
 * The trace thread: from the ring to the trace file, in modes trace and full. Callbacks never wait
 * for it; what it does not get in time is overwritten, and counted here, exactly.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "capture/trace_place.h"

/*
 * Start the thread, which makes directories and file; wait for that, but not for long: a disk that does not answer is no
 * reason for a job not to begin. OK: the file is there, or may yet come. When it turns out later that it
 * cannot be made, the process goes on in mode flight, and a line says why.
 *
 * Else nothing runs and there is no file; errno says why for ERR_SYSTEM. When the file has another name than its first,
 * `is_renamed` is called with it before anything is written.
 */
enum status drain_start(const struct trace_place *place, uint64_t quota,
			void (*is_renamed)(const char *path));

/* The line about a trace file that cannot be made. */
void drain_explain(char *line, size_t size, const char *path, enum status status, int error);

/* Has the file got the description and the counts of this communicator, which has ended? Its slot may
 * be used again then. True when there is no file. */
bool drain_has_comm(uint32_t slot, uint32_t id);

/* See to it now, waiting a short time for the thread. In init only. */
void drain_save_comms(void);

/* Everything that is recorded goes to the file, then its closing record. Waits a bounded time for a
 * thread that is stuck in the disk; then the region still has what the file lacks. */
void drain_finish(void);

#endif
