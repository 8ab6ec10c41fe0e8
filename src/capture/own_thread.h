/* What the recorder's own threads have in common. Nothing of this runs in a callback. */
#ifndef OWN_THREAD_H
#define OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/status.h"
#include "region/region_layout.h"

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

/* For pthread_cond_timedwait(). */
struct timespec own_thread_time_after(int milliseconds);

/* What lingers only because nothing follows it need not wait any longer: to the ring with it. */
enum { OWN_THREAD_SWEEP_NS = 200 * 1000 * 1000 };
void own_thread_sweep(uint64_t now_ns);

/* A communicator's slot, whose owner may be writing it. False: free, or it changed hands meanwhile. */
bool own_thread_read_comm(const struct region_comm *comm, struct region_comm *copy);

/* One line to stderr, unless its reader would have to be waited for. From a thread of our own: ready is
 * not a promise, where others write into the same pipe, or the file lies on a disk that is gone. */
void own_thread_say(const char *line);

/* The same from the job's thread, which does not wait for longer than this: see own_thread_wait(). */
void own_thread_say_for(const char *line, int patience_ms);

#endif
