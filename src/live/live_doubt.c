/*
 * What would be worth timing. Both rules compare a communicator with its own past and nothing else, so a job that
 * pauses for a minute between its steps, or calls something once an hour, is in no doubt while it does as it always
 * did. They accuse nobody: all that may come of a doubt is a request for GPU times.
 */
#include <math.h>

#include "live/live.h"

enum {
	DOUBT_STRETCH = 30,    /* looks whose rate is compared */
	DOUBT_PAST = 3,	       /* stretches before it that there must be */
	DOUBT_QUIET_PAST = 10, /* looks before a pause that there must be */
	DOUBT_LONGER = 3,      /* a pause is unusual that is so many times as long as any before */
};
#define DOUBT_SLOWER 1.5

/* Looks at the end of a history at which nothing had finished. */
static uint32_t quiet_end(const struct live_history *history)
{
	uint32_t quiet = 0;

	while (quiet < history->count &&
	       !(live_point(history, history->count - 1 - quiet)->operations_per_s > 0))
		quiet++;
	return quiet;
}

/* The longest time without a finished operation in the first `count` looks. */
static uint64_t longest_pause(const struct live_history *history, uint32_t count)
{
	uint64_t longest_ns = 0, last_ns = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct live_point *point = live_point(history, i);

		if (!(point->operations_per_s > 0))
			continue;
		if (last_ns != 0 && point->wall_ns > last_ns &&
		    point->wall_ns - last_ns > longest_ns)
			longest_ns = point->wall_ns - last_ns;
		last_ns = point->wall_ns;
	}
	return longest_ns;
}

/* For how long has no rank of this communicator called anything, on any communicator of its process? */
static uint64_t still_ns(const struct live *live, const struct job_comm *comm)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t process = live->job.seats[comm->seats[i]].process;

		for (uint32_t s = live->job.first_seat[process];
		     s < live->job.first_seat[process + 1]; s++)
			if (live->seats[s].still_ns < least_ns)
				least_ns = live->seats[s].still_ns;
	}
	return least_ns;
}

static bool may_hang(const struct live *live, uint32_t c, double *seconds)
{
	const struct job_comm *comm = &live->job.comms[c];
	const struct live_history *history = &live->comms[c].history;
	uint64_t quiet_ns = still_ns(live, comm), usual_ns;
	uint32_t quiet = quiet_end(history), unseen = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct live_seat *seat = &live->seats[comm->seats[i]];

		/* That a process is gone or in something open is judged without GPU times. */
		if (seat->is_over || seat->oldest != NULL)
			return false;
		unseen += seat->is_unseen;
	}
	if (unseen == 0 || quiet_ns == UINT64_MAX || quiet_ns < live->limits.lag_ns ||
	    history->count - quiet < DOUBT_QUIET_PAST)
		return false;
	usual_ns = longest_pause(history, history->count - quiet);
	*seconds = (double)quiet_ns / 1e9;
	return quiet_ns >= DOUBT_LONGER * usual_ns;
}

static double mean_rate(const struct live_history *history, uint32_t from)
{
	double sum = 0;

	for (uint32_t i = from; i < from + DOUBT_STRETCH; i++)
		sum += (double)live_point(history, i)->operations_per_s;
	return sum / DOUBT_STRETCH;
}

/* Slower than in any stretch before: one that has slow and fast phases is not slow in a slow one. */
static bool may_be_slow(const struct live *live, uint32_t c, double *times)
{
	const struct live_history *history = &live->comms[c].history;
	double now, least = INFINITY;
	uint32_t last, untimed = 0;

	if (history->count < (DOUBT_PAST + 1) * DOUBT_STRETCH)
		return false;
	last = history->count - DOUBT_STRETCH;
	for (uint32_t i = last; i < history->count; i++)
		untimed += isnan(live_point(history, i)->busbw) != 0;
	now = mean_rate(history, last);
	for (uint32_t from = last % DOUBT_STRETCH; from < last; from += DOUBT_STRETCH)
		least = fmin(least, mean_rate(history, from));
	*times = now > 0 ? least / now : 0;
	return untimed * 4 >= DOUBT_STRETCH * 3 && *times > DOUBT_SLOWER;
}

enum live_doubt live_doubt(const struct live *live, uint32_t comm, double *figure)
{
	*figure = 0;
	if (live->job.comms[comm].nranks == 1 || live->job.comms[comm].seat_count == 0)
		return LIVE_NO_DOUBT;
	if (may_hang(live, comm, figure))
		return LIVE_DOUBT_HANG;
	return may_be_slow(live, comm, figure) ? LIVE_DOUBT_SLOW : LIVE_NO_DOUBT;
}
