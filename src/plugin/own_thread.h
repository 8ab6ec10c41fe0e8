/* What the recorder's own threads share. None of this runs in a callback. */
#ifndef OWN_THREAD_H
#define OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/status.h"
#include "format/region_layout.h"

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

#endif
