/*
 * The trace thread moves records from the ring to the trace file, in modes trace and full.
 * Callbacks never wait for it; what it does not get in time is overwritten and counted exactly.
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
	char name[400]; /* of the file, without suffix */
	gid_t group;	/* may read it; (gid_t)-1: none */
};

/* Derived from RINGSIDE_DIR without touching the file system. ERR_FORMAT: not a usable path. */
enum status trace_place_choose(struct trace_place *place, const struct settings *settings,
			       const struct identity *identity);

/*
 * The path of the file. A different `attempt` gives a different name, for when the name is taken: a
 * program that replaced itself (exec) still has the same pid and start time.
 */
void trace_place_path(char *path, size_t size, const struct trace_place *place, int attempt);

/*
 * Start the thread, which creates directories and file, and wait for that, but not long: a disk
 * that does not answer must not keep a job from starting. OK: the file exists or may still come. If
 * it turns out later that it cannot be created, the process continues in mode flight, and a message
 * says why.
 *
 * Otherwise nothing runs and there is no file; errno says why for ERR_SYSTEM. If the file gets
 * another name than the first, `is_renamed` is called with it before anything is written.
 */
enum status trace_thread_start(const struct trace_place *place, uint64_t quota,
			       void (*is_renamed)(const char *path));

/* The message about a trace file that cannot be created. */
void trace_thread_explain(char *line, size_t size, const char *path, enum status status, int error);

/*
 * Does the file have the description and counts of this communicator, which has ended? Then its
 * slot can be reused. True if there is no file.
 */
bool trace_thread_has_comm(uint32_t slot, uint32_t id);

/* Write them now, waiting a short time for the thread. Only in init. */
void trace_thread_save_comms(void);

/*
 * Write everything recorded to the file, then the closing record. Waits a bounded time for a thread
 * that is stuck in the disk; then the region still has what the file lacks.
 */
void trace_thread_finish(void);

#endif
