/*
 * A look, in its parts:
 *
 *	job_make                 who is there now: indices are of this look
 *	live_memory_next         who of them was there before: by identity
 *	live_clocks, live_totals what each process and seat says now, and what grew
 *	live_flights, live_waits what they are in, who waits for whom
 *	live_points              one more point of each history
 *	live_verdicts            who is stuck, as the doctor sees it
 *	live_notices             what is worth telling
 *
 * All memory is taken before anything of the last look is touched, so a look fails as a whole or not.
 */
#include "live/live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "live/live_memory.h"

struct live_limits live_limits_default(void)
{
	return (struct live_limits){ .hang_ns = 20 * LIVE_SECOND_NS,
				     .lag_ns = 5 * LIVE_SECOND_NS,
				     .straggler_share = 0.1,
				     .straggler_ns = 30 * LIVE_SECOND_NS };
}

void live_init(struct live *live, const struct live_limits *limits)
{
	*live = (struct live){ .limits = *limits };
}

void live_release(struct live *live)
{
	if (live->job.recording != NULL)
		job_release(&live->job);
	free(live->seats);
	free(live->comms);
	free(live->notices);
	verdicts_release(&live->verdicts);
	live_memory_free(live->memory);
	*live = (struct live){ .limits = live->limits };
}

/* ---- histories ------------------------------------------------------------------------------- */

void live_history_add(struct live_history *history, const struct live_point *point)
{
	uint32_t count = history->count;

	/* Until it is full it grows at powers of two: most communicators are idle or short. */
	if (count < LIVE_POINTS && (count & (count - 1)) == 0) {
		uint32_t room = count == 0 ? 1 : count * 2;
		struct live_point *more;

		if (room > LIVE_POINTS)
			room = LIVE_POINTS;
		more = realloc(history->points, room * sizeof(*more));
		if (more == NULL)
			return;
		history->points = more;
	}
	history->points[history->next] = *point;
	history->next = (history->next + 1) % LIVE_POINTS;
	if (count < LIVE_POINTS)
		history->count++;
}

const struct live_point *live_point(const struct live_history *history, uint32_t i)
{
	uint32_t first = history->count < LIVE_POINTS ? 0 : history->next;

	return &history->points[(first + i) % LIVE_POINTS];
}

static float ratio(double amount, double of)
{
	return of > 0 ? (float)(amount / of) : NAN;
}

/* What was not timed for some looks is made up for in one: nobody waits for more than all of the time. */
static float wait_share(double wait_ns, double of_ns)
{
	return wait_ns < of_ns ? ratio(wait_ns, of_ns) : ratio(of_ns, of_ns);
}

/* Of a barrier, or where the number of ranks is not known, there is none: not 0. */
static float bandwidth(double bytes, double seconds)
{
	return bytes > 0 ? ratio(bytes, seconds) : NAN;
}

static struct live_point point_of(const struct live *live, const struct live_sums *grown)
{
	double seconds = (double)live->elapsed_ns / 1e9, busy_s = (double)grown->time_ns / 1e9;
	/* With the first timed call of a kind all its earlier calls get their estimate at once. */
	bool is_timed = (grown->timed > 0 || grown->operations == 0) && grown->sampled == 0;

	return (struct live_point){ .wall_ns = live->wall_ns,
				    .operations_per_s = ratio((double)grown->operations, seconds),
				    .busbw = bandwidth(grown->bus_bytes, busy_s),
				    .algbw = bandwidth((double)grown->timed_bytes, busy_s),
				    .busy_share =
					    is_timed ? ratio(grown->all_ns / 1e9, seconds) : NAN,
				    .wait_share = NAN };
}

/* A history begins with the first operation that is seen, and ends with the process. */
static void seat_point(struct live *live, uint32_t s)
{
	struct live_seat *seat = &live->seats[s];
	struct live_history *history = &live->memory->seats[s].history;
	struct live_point point = point_of(live, &seat->grown);

	if (!seat->is_over &&
	    (history->count > 0 || (seat->grown.operations > 0 && s < LIVE_HISTORIES_MAX))) {
		if (seat->has_wait)
			point.wait_share =
				wait_share((double)seat->wait_grown_ns, (double)live->elapsed_ns);
		live_history_add(history, &point);
	}
}

static void comm_point(struct live *live, uint32_t c)
{
	const struct job_comm *comm = &live->job.comms[c];
	struct live_history *history = &live->memory->comms[c].history;
	struct live_point point = point_of(live, &live->comms[c].grown);
	uint32_t open = 0, waiting = 0;
	double wait_ns = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct live_seat *seat = &live->seats[comm->seats[i]];

		open += !seat->is_over;
		waiting += seat->has_wait;
		wait_ns += seat->has_wait ? (double)seat->wait_grown_ns : 0;
	}
	if (open > 0 && (live->comms[c].grown.operations > 0 || history->count > 0)) {
		point.busy_share /= (float)open;
		if (waiting > 0)
			point.wait_share =
				wait_share(wait_ns, (double)waiting * (double)live->elapsed_ns);
		live_history_add(history, &point);
	}
}

void live_points(struct live *live)
{
	struct live_memory *memory = live->memory;

	for (uint32_t s = 0; s < live->job.seat_count; s++) {
		if (live->elapsed_ns > 0)
			seat_point(live, s);
		live->seats[s].history = memory->seats[s].history;
	}
	for (uint32_t c = 0; c < live->job.comm_count; c++) {
		if (live->elapsed_ns > 0)
			comm_point(live, c);
		live->comms[c].history = memory->comms[c].history;
	}
}

/* ---------------------------------------------------------------------------------------------- */

static enum status next_look(struct live *next, struct live *live,
			     const struct recording *recording)
{
	struct job job;
	enum status status = job_make(&job, recording);

	if (status != OK)
		return status;
	*next = (struct live){ .limits = live->limits, .job = job };
	next->seats = calloc(job.seat_count + 1, sizeof(*next->seats));
	next->comms = calloc(job.comm_count + 1, sizeof(*next->comms));
	next->notices = calloc(LIVE_NOTICES_MAX, sizeof(*next->notices));
	if (next->seats != NULL && next->comms != NULL && next->notices != NULL)
		next->memory = live_memory_next(live->memory, &next->job);
	if (next->memory == NULL) {
		live_release(next);
		return ERR_NO_SPACE;
	}
	return OK;
}

enum status live_look(struct live *live, const struct recording *recording, uint64_t monotonic_ns,
		      uint64_t wall_ns)
{
	uint64_t before_ns = live->memory != NULL ? live->memory->monotonic_ns : monotonic_ns;
	struct live next;
	enum status status = next_look(&next, live, recording);

	if (status != OK)
		return status;
	next.looks = live->looks + 1;
	next.wall_ns = wall_ns;
	next.elapsed_ns = monotonic_ns > before_ns ? monotonic_ns - before_ns : 0;
	next.memory->monotonic_ns = monotonic_ns;
	live_release(live);
	*live = next;
	live_clocks(live);
	live_totals(live);
	live_flights(live);
	live_waits(live);
	live_stragglers(live);
	live_points(live);
	live_verdicts(live);
	live_notices(live);
	return OK;
}
