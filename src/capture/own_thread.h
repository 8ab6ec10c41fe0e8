/* What the recorder's own threads have in common. Nothing of this runs in a callback. */
#ifndef OWN_THREAD_H
#define OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/status.h"
#include "region/region_layout.h"

/*
 * A detached thread that gets none of the job's signals. `changed` is made for it: it waits on
 * CLOCK_MONOTONIC, for the wall clock may be set back an hour. ERR_SYSTEM: errno says why not.
 */
enum status own_thread_start(void *(*run)(void *), const char *name, pthread_cond_t *changed);

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

/* The same from the job's thread, which waits a short time only. Once in a process; `line` must stay. */
void own_thread_say_for(const char *line);

#endif
