/*
 * The trace thread: from the ring to the trace file, in modes trace and full. Callbacks never wait
 * for it; what it does not get in time is overwritten, and counted here, exactly.
 */
#ifndef TRACE_THREAD_H
#define TRACE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/status.h"
#include "plugin/process_info.h"
#include "plugin/settings.h"

/* Where the trace file goes. */
struct trace_place {
	char dir[700];
	char name[400]; /* of the file, without its ending */
	gid_t group;	/* may read, too; (gid_t)-1: none */
};

/* In RINGSIDE_DIR, by its text alone: no file system is asked. ERR_FORMAT: the setting is no usable path. */
enum status trace_place_choose(struct trace_place *place, const struct settings *settings,
			       const struct identity *identity);

/* The file's path; with another `attempt` than 0 another one, for when that name is taken: a program that replaced
 * itself (exec) has still the same pid and start. */
void trace_place_path(char *path, size_t size, const struct trace_place *place, int attempt);

/*
 * Start the thread, which makes directories and file; wait for that, but not for long: a disk that does not answer is no
 * reason for a job not to begin. OK: the file is there, or may yet come. When it turns out later that it
 * cannot be made, the process goes on in mode flight, and a line says why.
 *
 * Else nothing runs and there is no file; errno says why for ERR_SYSTEM. When the file has another name than its first,
 * `is_renamed` is called with it before anything is written.
 */
enum status trace_thread_start(const struct trace_place *place, uint64_t quota,
			       void (*is_renamed)(const char *path));

/* The line about a trace file that cannot be made. */
void trace_thread_explain(char *line, size_t size, const char *path, enum status status, int error);

/* Has the file got the description and the counts of this communicator, which has ended? Its slot may
 * be used again then. True when there is no file. */
bool trace_thread_has_comm(uint32_t slot, uint32_t id);

/* See to it now, waiting a short time for the thread. In init only. */
void trace_thread_save_comms(void);

/* Everything that is recorded goes to the file, then its closing record. Waits a bounded time for a
 * thread that is stuck in the disk; then the region still has what the file lacks. */
void trace_thread_finish(void);

#endif
