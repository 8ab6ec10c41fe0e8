#include "programs/bench/watch_thread.h"

#include <time.h>

int watch_thread_begin(struct watch_thread *watch, void *(*run)(void *), void *context)
{
	pthread_condattr_t attributes;

	watch->is_over = false;
	pthread_mutex_init(&watch->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&watch->change, &attributes);
	pthread_condattr_destroy(&attributes);
	watch->is_started = pthread_create(&watch->thread, NULL, run, context) == 0;
	return watch->is_started ? 0 : -1;
}

bool watch_thread_is_over_within(struct watch_thread *watch, double seconds)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += (time_t)seconds;
	at.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	while (!watch->is_over)
		if (pthread_cond_timedwait(&watch->change, &watch->lock, &at) != 0)
			break;
	return watch->is_over;
}

void watch_thread_end(struct watch_thread *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->is_over = true;
	pthread_cond_signal(&watch->change);
	pthread_mutex_unlock(&watch->lock);
	if (watch->is_started)
		pthread_join(watch->thread, NULL);
	watch->is_started = false;
	pthread_cond_destroy(&watch->change);
	pthread_mutex_destroy(&watch->lock);
}
