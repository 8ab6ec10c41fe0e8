/*
 * The recorder's own threads: what they share, the one that writes the trace file, and the one that writes the files of
 * NCCL Inspector. None of this runs in a callback.
 */
#ifndef THREADS_H
#define THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/op_layout.h"
#include "common/status.h"
#include "format/region_layout.h"
#include "plugin/process_info.h"
#include "plugin/settings.h"

/*
 * Start a detached thread that gets none of the job's signals. `changed` is initialized for it, on
 * CLOCK_MONOTONIC, because the wall clock can be set back. ERR_SYSTEM: errno says why not.
 */
enum status own_thread_start(void *(*run)(void *), void *argument, pthread_cond_t *changed);

/*
 * To be called first in such a thread. Sets its name, which only the thread itself can do safely
 * (it may have ended when another thread tries), and returns its tid.
 */
pid_t own_thread_begin(const char *name);

/*
 * Wait until a thread of ours has set *is_done, but at most this many milliseconds in which that
 * thread is itself blocked: on a disk, a pipe, another process. Time in which it only lacks a CPU
 * does not count. Call with the lock held; it also guards *tid (0: not started) and *is_done.
 */
bool own_thread_wait(pthread_mutex_t *lock, pthread_cond_t *changed, const pid_t *tid,
		     const bool *is_done, int patience_ms);

/* Work that can block on a disk or another process must not run in the job's threads. */
struct own_work {
	const char *name; /* of the thread: at most 15 bytes */
	void (*run)(void *data);
	void (*drop)(void *data); /* the caller gave up on it */
};

/*
 * True: it ran, and data belongs to the caller. False: it did not finish in time, or no thread
 * could be started; then data is dropped, at the latest when the work is over.
 */
bool own_thread_try(const struct own_work *work, void *data, int patience_ms);

/*
 * Operations that linger only because nothing follows them are moved to the ring, five times a
 * second. *last_ns: when that was last done.
 */
void own_thread_sweep(uint64_t *last_ns, uint64_t now_ns);

/*
 * Start a thread that stores the recorder's time in the region's header, at once and every
 * period_ns until recording is switched off: after a crash it shows until when the process lived.
 * ERR_SYSTEM: no thread could be started.
 */
enum status own_thread_heartbeat(uint64_t period_ns);

/* Copy a communicator's slot while its owner may be writing. False: free, or it changed owners. */
bool own_thread_read_comm(const struct region_comm *comm, struct region_comm *copy);

/*
 * Write one line to stderr, unless that would block. From our own threads only, because it can
 * block anyway: others may fill the same pipe, or the file may be on a disk that is gone.
 */
void own_thread_say(const char *line);

/* The same from a thread of the job, which waits at most this long: see own_thread_wait(). */
void own_thread_say_for(const char *line, int patience_ms);

/*
 * A thread of the recorder that makes pass after pass: the pause between passes, requests for a
 * pass, and the end of the job, which waits for the last pass but not forever.
 */

struct own_passes {
	/*
	 * Held for moments, never during a write. Guards the following fields and what the owner
	 * chooses.
	 */
	pthread_mutex_t account;
	pthread_cond_t changed; /* is_asked, is_over, is_finished; see own_thread_start() */
	uint64_t count;		/* finished passes */
	uint64_t progress;	/* grows with all work done; maintained by the owner */
	bool is_asked;		/* a thread waits for a pass */
	bool is_mute;	   /* the last request got no answer in time, and no pass has ended since */
	bool is_over;	   /* one last pass */
	bool is_finished;  /* the last pass is done */
	bool is_abandoned; /* the waiting thread gave up; what is left is accounted for */
};

#define OWN_PASSES_INIT                              \
	{                                            \
		.account = PTHREAD_MUTEX_INITIALIZER \
	}

/* Pause between two passes, briefly if the last one found something. False: it is over. */
bool own_passes_rest(struct own_passes *passes, bool has_found);

bool own_passes_are_abandoned(struct own_passes *passes);

/* The last pass is done. With the account held. */
void own_passes_end(struct own_passes *passes);

/*
 * Request a whole pass and wait a short time for it; not at all while an earlier request is
 * unanswered. Only in init.
 */
void own_passes_ask(struct own_passes *passes);

/*
 * Request the last pass and wait while the thread makes progress. False: it does not, and is
 * abandoned. With the account held.
 */
bool own_passes_finish(struct own_passes *passes);

/*
 * The region's ring of finished records, read in order by a thread of the recorder while callbacks
 * write it. There can be several readers; writers never wait for them.
 */

struct ring_reader {
	uint64_t *slots;
	uint32_t count; /* a power of two */
	uint32_t words; /* of a slot; the first is its sequence */
	const uint64_t *head;
	uint64_t tail;	   /* sequence last taken or missed */
	uint64_t stuck_ns; /* since when it waits for the next one; 0: it does not */
};

/* Start at the oldest record. Details may be absent (count 0). */
struct ring_reader ring_reader_of_ops(void);
struct ring_reader ring_reader_of_details(void);

/* Sequences that one call passed without getting the record. */
struct ring_missed {
	uint64_t overrun; /* overwritten before they were read */
	uint64_t busy;	  /* their writer was overtaken by a whole lap or never finished */
};

/*
 * Copy up to `most` of the following records, in order; returns how many. tail advances by these
 * and by the missed ones. For an unfinished record it waits, over several
 * calls; not with is_last. now_ns: any monotonic clock.
 */
uint32_t ring_reader_take(struct ring_reader *reader, uint64_t now_ns, bool is_last,
			  uint64_t *batch, uint32_t most, struct ring_missed *missed);

/*
 * The trace thread moves records from the ring to the trace file, in modes trace and full.
 * Callbacks never wait for it; what it does not get in time is overwritten and counted exactly.
 */

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

/*
 * A drop-in for NCCL Inspector: if Inspector's variables are set, a thread of ours reads the ring
 * and writes the same files in the same places. Callbacks never wait for it. Every operation
 * recorded while it ran is in the file, or left out for a reason given by the user or the format,
 * or counted as lost (LOST_INSPECTOR, and a line on stderr at the end).
 *
 * Only this thread touches the files, so a disk that does not answer blocks nothing else.
 */

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

/*
 * NCCL Inspector's metrics, one file per GPU. Only for the recorder's own threads, because writing
 * can block on the disk.
 */

struct inspector_series_entry;

/*
 * The metrics file of one GPU: nccl_inspector_metrics_<uuid>.prom, renamed into place as a whole,
 * for node-exporter's textfile collector. Each process on a GPU has a file and a number of its own:
 * the first has the plain name, the second nccl_inspector_metrics_<uuid>_2.prom, and so on. A lock
 * file, whose lock disappears with its owner, shows which numbers are taken.
 */
enum { INSPECTOR_GPU_PATH_BYTES = 1200, INSPECTOR_CHUNK_BYTES = 32 * 1024 };

struct inspector_gpu {
	char uuid[48];	  /* the driver's spelling, "": unknown */
	int32_t gpu;	  /* CUDA's number in this process, -1: unknown */
	uint32_t process; /* which process on its GPU, from 1; 0: not known yet */
	int lock;	  /* -1: none */
	char path[INSPECTOR_GPU_PATH_BYTES], draft[INSPECTOR_GPU_PATH_BYTES];
	char lock_path[INSPECTOR_GPU_PATH_BYTES];
	/* The draft while it is being written. */
	int fd;
	uint64_t offset;
	enum status status;
	size_t used;
	char *chunk; /* borrowed: INSPECTOR_CHUNK_BYTES */
};

/*
 * NCCL Inspector's metrics over the last interval: totals per GPU, communicator name and size,
 * function, message size, algorithm and protocol. The table is bounded; what finds no room is added
 * to the series "other".
 */
enum { INSPECTOR_SERIES = 1024, INSPECTOR_GPUS = 16 };

struct inspector_series {
	char dir[1024];
	const char *job, *node;
	struct inspector_series_entry *entries; /* by hash of the key */
	uint32_t used;
	uint64_t count; /* operations since the last publication */
	struct inspector_gpu *gpus;
	uint32_t gpu_count;
	char *chunk;
	bool is_clean; /* files of killed processes were removed */
};

/* job and node are borrowed. Opens nothing yet. False: out of memory. */
bool inspector_series_init(struct inspector_series *series, const char *dir, const char *job,
			   const char *node);

/* Add an operation with a time, a size and a known communicator. False: no room for it. */
bool inspector_series_add(struct inspector_series *series, const struct comm_info *comm,
			  const struct op_record *op);

/* A GPU with a communicator has a file even while nothing happens. */
void inspector_series_see_gpu(struct inspector_series *series, const struct comm_info *comm);

/*
 * Write one file per GPU and start over. Returns how many operations are in these files. ERR_SYSTEM
 * (errno): not all files could be written.
 */
uint64_t inspector_series_publish(struct inspector_series *series, enum status *status);

/* Remove files and locks and free memory. */
void inspector_series_leave(struct inspector_series *series);

#endif
