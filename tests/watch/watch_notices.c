/*
 * Follows a job and prints every notice about it, once:
 *
 *	watch_notices DIRECTORY JOB LIMIT_MS [WANTED...]
 *
 * until for each WANTED, a pattern for a whole line ("dead: rank 3 *"), one was given, or nobody of the job
 * is left. A notice is given anew with other numbers as more ranks come: so a pattern has all that matters.
 * Says at the end how many operations it saw. LIMIT_MS is for everything that has a limit.
 */
#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "doctor/live.h"
#include "recording/watch.h"

/* A job of seconds may take minutes where others work, too: the end of the job is the limit, not ours. */
enum { SEEN_MAX = 256, LOOK_MS = 100, LOOKS_MAX = 6000 };

static char seen[SEEN_MAX][200];
static int seen_count;

static bool is_of_job(const struct live *live, const struct live_notice *notice, const char *job)
{
	if (notice->comm == UINT32_MAX)
		return false;
	return strcmp(live->job.groups[live->job.comms[notice->comm].group].name, job) == 0;
}

static void tell(const struct live *live, const char *job)
{
	char line[200];

	for (size_t i = 0; i < live->notice_count; i++) {
		const struct live_notice *notice = &live->notices[i];
		bool is_new = true;

		snprintf(line, sizeof(line), "%s: %s", live_notice_name(notice->kind),
			 notice->title);
		for (int j = 0; j < seen_count; j++)
			is_new &= strcmp(line, seen[j]) != 0;
		if (!is_of_job(live, notice, job) || !is_new || seen_count == SEEN_MAX)
			continue;
		text_copy(seen[seen_count++], sizeof(seen[0]), line);
		puts(line);
	}
}

/* Was one like each of these given? */
static bool is_all_told(char **wanted)
{
	for (; *wanted != NULL; wanted++) {
		int j = 0;

		while (j < seen_count && fnmatch(*wanted, seen[j], 0) != 0)
			j++;
		if (j == seen_count)
			return false;
	}
	return true;
}

/* Living processes of the job; those there ever were and what they did in *operations. */
static size_t count_living(const struct watch *watch, const struct live *live, const char *job,
			   unsigned long long *operations)
{
	size_t living = 0;

	for (size_t i = 0; i < watch->recording.count; i++)
		living += watch->processes[i].died_ns == 0 &&
			  strcmp(watch->recording.processes[i]->job, job) == 0;
	*operations = 0;
	for (size_t i = 0; i < live->job.comm_count; i++)
		if (strcmp(live->job.groups[live->job.comms[i].group].name, job) == 0)
			*operations += live->comms[i].sums.operations;
	return living;
}

int main(int argc, char **argv)
{
	struct watch_settings settings = { .directory = argv[1], .keep_ns = UINT64_C(1) << 40 };
	struct live_limits limits = live_limits_default();
	unsigned long long operations = 0;
	bool is_over = false, was_there = false;
	struct watch watch;
	struct live live;

	if (argc < 4)
		return 2;
	limits.hang_ns = limits.lag_ns = limits.straggler_ns =
		strtoull(argv[3], NULL, 10) * 1000000;
	watch_init(&watch, &settings);
	live_init(&live, &limits);
	for (int i = 0; i < LOOKS_MAX && !is_over; i++) {
		enum status watched = watch_look(&watch, WATCH_TOTALS);
		enum status judged = watched != OK ? watched
						   : live_look(&live, &watch.recording,
							       clock_system_ns(CLOCK_MONOTONIC),
							       clock_system_ns(CLOCK_REALTIME));
		size_t living;

		if (judged != OK) {
			printf("scan %d: %s: %s (errno %d)\n", i,
			       watched != OK ? "watch_look" : "live_look", status_text(judged),
			       errno);
			return 1;
		}
		tell(&live, argv[2]);
		is_over = argc > 4 && is_all_told(argv + 4);
		living = count_living(&watch, &live, argv[2], &operations);
		was_there |= living > 0;
		is_over |= was_there && living == 0;
		poll(NULL, 0, LOOK_MS);
	}
	printf("operations %llu\n", operations);
	live_release(&live);
	watch_release(&watch);
	return 0;
}
