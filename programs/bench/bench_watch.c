#include "programs/bench/bench_watch.h"

#include <stdio.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/bench/bench_inside.h"
#include "programs/bench/bench_launch.h"

/* NCCL may notice by itself that a peer is gone, and say more about it: it has a moment for that. */
static const double look_seconds = 0.05, grace_seconds = 1;
enum { SILENT_MS = 2000, SILENT_NAMED = 8, WATCH_EXIT = 1 };

/* "rank 3", "ranks 3, 5 and more"; gives back `to`. */
static const char *name_ranks(char *to, size_t size, const int *ranks, size_t known, size_t count)
{
	size_t used = (size_t)snprintf(to, size, count == 1 ? "rank" : "ranks");

	for (size_t i = 0; i < known && i < count && used < size; i++)
		used += (size_t)snprintf(to + used, size - used, "%s %d", i > 0 ? "," : "",
					 ranks[i]);
	if (count > known && used < size)
		snprintf(to + used, size - used, " and %zu more", count - known);
	return to;
}

void bench_watch_tell(const struct bench_place *place, struct bench_hub *hub)
{
	char names[128], problem[HUB_PROBLEM_BYTES + 192];
	int ranks[SILENT_NAMED];
	size_t silent = hub_silent(hub, SILENT_MS, ranks, SILENT_NAMED);

	/* Rank 0 tells it, unless it is rank 0 that does not answer. */
	if (place->rank != 0 && silent == 0 && !hub_is_teller(hub))
		return;
	if (silent == 0)
		text_copy(problem, sizeof(problem), hub_problem(hub));
	else
		text_format(problem, sizeof(problem), "%s gave no sign of life; %s",
			    name_ranks(names, sizeof(names), ranks, SILENT_NAMED, silent),
			    hub_problem(hub));
	bench_tell(place, problem);
}

/* The main thread is somewhere inside NCCL, and will not come back. */
static void give_up(const struct bench_watch *watch)
{
	bench_watch_tell(watch->job->place, watch->job->hub);
	bench_place_clean(watch->job->place);
	_exit(WATCH_EXIT);
}

static void look_at_time(struct bench_watch *watch)
{
	const struct bench_job *job = watch->job;
	uint64_t waited_ns = job_now() - watch->began_ns;

	if (job->plan->patience_s > 0 && (double)waited_ns > job->plan->patience_s * 1e9)
		(void)job_fail(watch->job, "%s did not come back within %llu s", watch->what,
			       (unsigned long long)(waited_ns / 1000000000));
}

/* The hub is this thread's as long as it has the lock and the call is not over. */
static void *keep_watch(void *context)
{
	struct bench_watch *watch = context;

	pthread_mutex_lock(&watch->thread.lock);
	while (!watch_thread_is_over_within(&watch->thread, look_seconds)) {
		look_at_time(watch);
		if (hub_look(watch->job->hub) < 0 &&
		    !watch_thread_is_over_within(&watch->thread, grace_seconds))
			give_up(watch);
	}
	pthread_mutex_unlock(&watch->thread.lock);
	return NULL;
}

void bench_watch_begin(struct bench_watch *watch, struct bench_job *job, const char *what)
{
	*watch = (struct bench_watch){ .job = job, .what = what, .began_ns = job_now() };
	/* Without a thread nobody watches, and that is all. */
	(void)watch_thread_begin(&watch->thread, keep_watch, watch);
}

void bench_watch_end(struct bench_watch *watch)
{
	watch_thread_end(&watch->thread);
}
