#include "programs/cli/health_watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "common/text.h"
#include "programs/bench/bench_launch.h"
#include "programs/bench/bench_watch.h"

/* Rank 0 gives up a moment later, so that it hears from the others why. */
static const double later_seconds = 0.5;

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
	double later = watch->place->rank == 0 ? later_seconds : 0;
	double seconds = (watch->limit_s > 0 ? watch->limit_s : 0) + later;

	pthread_mutex_lock(&watch->thread.lock);
	if (!watch_thread_is_over_within(&watch->thread, seconds))
		give_up(watch);
	pthread_mutex_unlock(&watch->thread.lock);
	return NULL;
}

int health_watch_start(struct health_watch *watch, const struct bench_place *place, double limit_s)
{
	*watch = (struct health_watch){ .place = place, .limit_s = limit_s };
	text_copy(watch->step, sizeof(watch->step), "the start");
	if (watch_thread_begin(&watch->thread, keep_watch, watch) == 0)
		return 0;
	watch_thread_end(&watch->thread);
	return -1;
}

void health_watch_hub(struct health_watch *watch, struct bench_hub *hub)
{
	pthread_mutex_lock(&watch->thread.lock);
	watch->hub = hub;
	pthread_mutex_unlock(&watch->thread.lock);
}

void health_watch_step(struct health_watch *watch, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	pthread_mutex_lock(&watch->thread.lock);
	watch->is_waiting = false;
	vsnprintf(watch->step, sizeof(watch->step), format, list);
	pthread_mutex_unlock(&watch->thread.lock);
	va_end(list);
}

void health_watch_wait(struct health_watch *watch)
{
	pthread_mutex_lock(&watch->thread.lock);
	watch->is_waiting = true;
	pthread_mutex_unlock(&watch->thread.lock);
}

void health_watch_stop(struct health_watch *watch)
{
	watch_thread_end(&watch->thread);
}
