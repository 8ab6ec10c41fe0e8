#include "programs/agent/agent_look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "programs/agent/agent_log.h"

#define SECOND_NS UINT64_C(1000000000)
#define IDLE_NS (10 * SECOND_NS)
#define SLOWEST_NS (4 * SECOND_NS)
enum { PAUSE_PER_COST = 200 };
/* A region's file is there before its content. */
#define BUSY_NS (4 * SECOND_NS)

enum status agent_look_init(struct agent_look *look, const struct watch_settings *settings,
			    const struct live_limits *limits)
{
	*look = (struct agent_look){ .limits = *limits,
				     .start_wall_ns = clock_system_ns(CLOCK_REALTIME) };
	live_init(&look->live, limits);
	return watch_init(&look->watch, settings);
}

void agent_look_release(struct agent_look *look)
{
	live_release(&look->live);
	watch_release(&look->watch);
}

/* What live knows points into the recording, so whatever watch_look() made of it, live must follow. */
static enum status look_now(struct agent_look *look, uint64_t now_ns)
{
	enum status watched = watch_look(&look->watch, WATCH_TOTALS);
	enum status thought = live_look(&look->live, &look->watch.recording, now_ns,
					clock_system_ns(CLOCK_REALTIME));

	if (thought != OK) {
		live_release(&look->live);
		live_init(&look->live, &look->limits);
	}
	return watched != OK ? watched : thought;
}

static void tell_failure(const struct agent_look *look, enum status before)
{
	if (look->status != OK && before == OK)
		agent_log(AGENT_ERROR, "cannot look at the processes: %s",
			  look->status == ERR_SYSTEM ? strerror(errno) : status_text(look->status));
	if (look->status == OK && before != OK)
		agent_log(AGENT_NOTICE, "can look at the processes again");
}

/* One line a look, whatever somebody puts into that directory. */
static void tell_refused(struct agent_look *look)
{
	const struct watch_refused *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < look->watch.refused_count; i++) {
		struct watch_refused *refused = &look->watch.refused[i];

		if (refused->is_told)
			continue;
		refused->is_told = true;
		first = first ? first : refused;
		count++;
	}
	if (count == 1)
		agent_log(AGENT_WARNING, "cannot follow %s: %s", first->path, first->why);
	else if (count > 1)
		agent_log(AGENT_WARNING, "cannot follow %s: %s; and %zu more files", first->path,
			  first->why, count - 1);
}

/* The first look at a process costs more than those after it, so the cheaper one of two counts. */
static void note_cost(struct agent_look *look, uint64_t cost_ns)
{
	look->cost_ns = cost_ns < look->last_cost_ns ? cost_ns : look->last_cost_ns;
	look->last_cost_ns = cost_ns;
}

static uint64_t fair_pause(const struct agent_look *look)
{
	uint64_t fair_ns = look->cost_ns * PAUSE_PER_COST;

	if (fair_ns < SECOND_NS)
		return SECOND_NS;
	return fair_ns < SLOWEST_NS ? fair_ns : SLOWEST_NS;
}

/* How long until the next. */
static uint64_t pause_of(const struct agent_look *look, uint64_t now_ns)
{
	if (look->watch.recording.count == 0 && now_ns >= look->busy_until_ns)
		return IDLE_NS;
	return fair_pause(look);
}

void agent_look_take(struct agent_look *look, uint64_t now_ns)
{
	uint64_t start_ns = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	enum status before = look->status;

	look->status = look_now(look, now_ns);
	note_cost(look, clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns);
	look->failures += look->status != OK;
	look->number++;
	look->spent_ns += clock_system_ns(CLOCK_MONOTONIC) - now_ns;
	look->last_ns = now_ns;
	look->next_ns = now_ns + pause_of(look, now_ns);
	tell_failure(look, before);
	tell_refused(look);
}

bool agent_look_fresh(struct agent_look *look, uint64_t now_ns)
{
	if (look->last_ns != 0 && now_ns - look->last_ns < fair_pause(look))
		return false;
	agent_look_take(look, now_ns);
	return true;
}

void agent_look_heed(struct agent_look *look, uint64_t now_ns)
{
	uint64_t soon = look->last_ns + SECOND_NS;

	if (!watch_heed(&look->watch))
		return;
	look->busy_until_ns = now_ns + BUSY_NS;
	if (soon < look->next_ns)
		look->next_ns = soon;
}

/* ---- about itself ---------------------------------------------------------------------------- */

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size, resident = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
	DIR *list = opendir("/proc/self/fd");
	uint64_t count = 0;

	while (list && readdir(list))
		count++;
	if (list)
		closedir(list);
	/* ".", ".." and the list itself. */
	return count > 3 ? count - 3 : 0;
}

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_usec * 1000;
}

void agent_look_self(const struct agent_look *look, struct metrics_agent *agent)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	*agent = (struct metrics_agent){
		.version = RINGSIDE_VERSION,
		.looks = look->number,
		.look_ns = look->spent_ns,
		.cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime),
		.refused = look->watch.refused_count,
		.unreadable = look->watch.unreadable,
		.left_out = look->watch.left_out,
		.resident_bytes = resident_bytes(),
		.open_fds = open_fds(),
		.start_wall_ns = look->start_wall_ns,
		.verdicts = look->verdicts,
		.kernel = look->kernel,
	};
}
