/* What the recorder's own threads have in common. Nothing of this runs in a callback. */
#ifndef OWN_THREAD_H
#define OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/status.h"
#include "format/region_layout.h"

/*
 * A detached thread that gets none of the job's signals. `changed` is made for it: it waits on
 * CLOCK_MONOTONIC, for the wall clock may be set back an hour. ERR_SYSTEM: errno says why not.
 */
enum status own_thread_start(void *(*run)(void *), void *argument, pthread_cond_t *changed);

/* First in such a thread: takes a name, which only the thread itself can do safely (it may have ended when somebody
 * else comes to it), and gives back its number. */
pid_t own_thread_begin(const char *name);

/*
 * Wait until a thread of ours has set *is_done, but no longer than so many milliseconds in which it waits itself: for a
 * disk, a pipe, another process. While it wants nothing but the processor that is not counted. With the lock
 * held, which guards *tid (0: has not begun) and *is_done, too.
 */
bool own_thread_wait(pthread_mutex_t *lock, pthread_cond_t *changed, const pid_t *tid,
		     const bool *is_done, int patience_ms);

/* What may have to wait for a disk or for another process is no business of the job's threads. */
struct own_work {
	const char *name; /* of the thread: at most 15 bytes */
	void (*run)(void *data);
	void (*drop)(void *data); /* nobody wants it any more */
};

/* True: it ran, and data is the caller's. False: it is not done in time, or there is no thread for it; then data is
 * dropped, when it is over at the latest. */
bool own_thread_try(const struct own_work *work, void *data, int patience_ms);

/* What lingers only because nothing follows it need not wait any longer: to the ring with it, five times a second.
 * *last_ns: when it was done last. */
void own_thread_sweep(uint64_t *last_ns, uint64_t now_ns);

/* A communicator's slot, whose owner may be writing it. False: free, or it changed hands meanwhile. */
bool own_thread_read_comm(const struct region_comm *comm, struct region_comm *copy);

/* One line to stderr, unless its reader would have to be waited for. From a thread of our own: ready is
 * not a promise, where others write into the same pipe, or the file lies on a disk that is gone. */
void own_thread_say(const char *line);

/* The same from the job's thread, which does not wait for longer than this: see own_thread_wait(). */
void own_thread_say_for(const char *line, int patience_ms);

/*
 * A thread of the recorder's own that makes pass after pass: its rest between them, those who ask for a pass, and
 * the exit of the job, which waits for it, but not for ever.
 */

struct own_passes {
	/* Held for moments, never during a write. Guards what follows, and what the owner likes. */
	pthread_mutex_t account;
	pthread_cond_t changed; /* is_asked, is_over, is_finished; see own_thread_start() */
	uint64_t count;		/* finished passes */
	uint64_t progress;	/* grows with everything that is done: the owner sees to it */
	bool is_asked;		/* somebody waits for a pass */
	bool is_mute; /* the last who asked got no answer in time, and no pass has ended since */
	bool is_over; /* one last pass */
	bool is_finished;  /* it is done */
	bool is_abandoned; /* nobody waits any longer: what is left is accounted for */
};

#define OWN_PASSES_INIT                              \
	{                                            \
		.account = PTHREAD_MUTEX_INITIALIZER \
	}

/* Between two passes; not for long when the last one found something. False: it is over. */
bool own_passes_rest(struct own_passes *passes, bool has_found);

bool own_passes_are_abandoned(struct own_passes *passes);

/* The last pass is done. With the account held. */
void own_passes_end(struct own_passes *passes);

/* A whole pass from now on, waiting a short time for it; not at all while one who asked before still has no answer. In
 * init only. */
void own_passes_ask(struct own_passes *passes);

/* Ask for the last pass, and wait for it for as long as the thread gets on. False: it does not, and is abandoned.
 * With the account held. */
bool own_passes_finish(struct own_passes *passes);

/*
 * The region's ring of finished records, read in order by a thread of the recorder's own while callbacks
 * write it. Several may read, each with a reader of its own; writers never wait for one.
 */

struct ring_reader {
	uint64_t *slots;
	uint32_t count; /* a power of two */
	uint32_t words; /* of a slot; the first is its sequence */
	const uint64_t *head;
	uint64_t tail;	   /* sequence last taken or missed */
	uint64_t stuck_ns; /* since when the next one is waited for; 0 not */
};

/* From the oldest record on: finished operations; details, which need not be there (count 0). */
struct ring_reader ring_reader_of_ops(void);
struct ring_reader ring_reader_of_details(void);

/* Of the sequences that one call went over, those that it did not get. */
struct ring_missed {
	uint64_t overrun; /* overwritten before we came by */
	uint64_t busy;	  /* their writer was overtaken by a whole lap, or never finished */
};

/*
 * Copy up to `most` records that follow, in order; gives back how many. tail goes forward by these and by
 * the missed ones. A record whose writer is still at it is waited for, over several calls; with is_last
 * it is not. now_ns: any clock that goes forward.
 */
uint32_t ring_reader_take(struct ring_reader *reader, uint64_t now_ns, bool is_last,
			  uint64_t *batch, uint32_t most, struct ring_missed *missed);

#endif
