#include "programs/cli/health_watch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/bench/bench_launch.h"
#include "programs/bench/bench_watch.h"
#include "programs/cli/cli_errors.h"

/* Rank 0 gives up a moment later, so that it hears from the others why. */
enum { LATER_MS = 500 };

static struct timespec deadline_of(const struct health_watch *watch)
{
	double later = watch->place->rank == 0 ? LATER_MS / 1e3 : 0;
	double seconds = (watch->limit_s > 0 ? watch->limit_s : 0) + later;
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += (time_t)seconds;
	at.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

/* The lock is held. The main thread is somewhere inside CUDA or NCCL, and will not come back. */
static void give_up(struct health_watch *watch)
{
	char problem[HUB_PROBLEM_BYTES];

	text_format(problem, sizeof(problem), "not over after %.0f s: %s %s", watch->limit_s,
		    watch->is_waiting ? "waiting for another rank after" : "still in", watch->step);
	if (watch->hub != NULL) {
		/* One that only waits lets others say what they are in. */
		if (!watch->is_waiting || watch->place->rank == 0)
			hub_fail(watch->hub, problem);
		bench_watch_tell(watch->place, watch->hub);
	} else {
		bench_tell(watch->place, problem);
	}
	_exit(CLI_EXIT_TROUBLE);
}

static void *keep_watch(void *context)
{
	struct health_watch *watch = context;
	struct timespec at = deadline_of(watch);

	pthread_mutex_lock(&watch->lock);
	while (!watch->is_over)
		if (pthread_cond_timedwait(&watch->change, &watch->lock, &at) == ETIMEDOUT &&
		    !watch->is_over)
			give_up(watch);
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

int health_watch_start(struct health_watch *watch, const struct bench_place *place, double limit_s)
{
	pthread_condattr_t attributes;

	*watch = (struct health_watch){ .place = place, .limit_s = limit_s };
	text_copy(watch->step, sizeof(watch->step), "the start");
	pthread_mutex_init(&watch->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&watch->change, &attributes);
	pthread_condattr_destroy(&attributes);
	if (pthread_create(&watch->thread, NULL, keep_watch, watch) != 0)
		return -1;
	watch->is_started = true;
	return 0;
}

void health_watch_hub(struct health_watch *watch, struct bench_hub *hub)
{
	pthread_mutex_lock(&watch->lock);
	watch->hub = hub;
	pthread_mutex_unlock(&watch->lock);
}

void health_watch_step(struct health_watch *watch, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	pthread_mutex_lock(&watch->lock);
	watch->is_waiting = false;
	vsnprintf(watch->step, sizeof(watch->step), format, list);
	pthread_mutex_unlock(&watch->lock);
	va_end(list);
}

void health_watch_wait(struct health_watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->is_waiting = true;
	pthread_mutex_unlock(&watch->lock);
}

void health_watch_stop(struct health_watch *watch)
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
