/*
 * A thread that watches over its owner, who may be somewhere it does not come back from. The lock guards what both
 * look at.
 */
#ifndef WATCH_THREAD_H
#define WATCH_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct watch_thread {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool is_started; /* else nobody watches: no thread could be made */
	bool is_over;
};

/* 0, or -1: no thread could be made. Ended by watch_thread_end() in both cases. */
int watch_thread_begin(struct watch_thread *watch, void *(*run)(void *), void *context);

/* For the thread, which has the lock: waits until the owner ends the watch (true), or for so long (false). The lock is
 * free meanwhile. */
bool watch_thread_is_over_within(struct watch_thread *watch, double seconds);

void watch_thread_end(struct watch_thread *watch);

#endif
