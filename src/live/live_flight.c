/*
 * What each seat is in, for how long, and who has not come.
 *
 * A seat is in its first open operation, the front: NCCL runs those of a communicator in order. Hosts run
 * ahead of their GPUs, so that others have issued more says nothing; that others are *in* a collective
 * which a member has not issued says that they wait for it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "live/live_memory.h"

/* An operation that is older than one which is done is over, whatever became of its parts. */
static bool is_passed(const struct live_seat *seat, const struct op_record *op)
{
	return seat->comm->has_counts && op->number < seat->comm->counts.last_done_number;
}

static void take_waits(struct live_seat *seat)
{
	struct flight_wait *waits = NULL;
	size_t count = 0;

	if (flight_waits(seat->oldest->proxies, seat->oldest->proxy_count, &waits, &count) != OK)
		return;
	if (count > LIVE_WAITS_MAX)
		count = LIVE_WAITS_MAX;
	if (count > 0)
		memcpy(seat->waits, waits, count * sizeof(*waits));
	seat->wait_count = (uint32_t)count;
	free(waits);
}

/* Flights come by communicator and number: the first open one of each is its front. */
static void take_process(struct live *live, uint32_t p)
{
	const struct recording_process *process = live->job.recording->processes[p];
	uint64_t now_ns = live->memory->processes[p].now_ns;
	uint8_t *kinds = live->memory->kinds;

	flight_kinds(process, kinds);
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];
		const struct job_seat *of = job_seat(&live->job, p, flight->op.comm);
		uint64_t since_ns = flight_since_ns(flight);
		struct live_seat *seat;

		if (of == NULL)
			continue;
		seat = &live->seats[of - live->job.seats];
		seat->is_unseen = kinds[i] == FLIGHT_UNSEEN;
		if (kinds[i] != FLIGHT_OPEN || is_passed(seat, &flight->op))
			continue;
		seat->in_flight += !seat->is_over;
		if (seat->oldest != NULL)
			continue;
		seat->oldest = flight;
		if (!seat->is_over && since_ns != 0 && now_ns > since_ns)
			seat->oldest_age_ns = now_ns - since_ns;
		take_waits(seat);
	}
}

/* By the recorder's own times and by ours: the shorter. Its times are from before we looked. */
static void take_still(struct live *live, uint32_t s)
{
	const struct live_seat_memory *memory = &live->memory->seats[s];
	uint64_t now_ns = live->memory->processes[live->job.seats[s].process].now_ns;
	struct live_seat *seat = &live->seats[s];
	const struct comm_counts *counts = &seat->comm->counts;
	uint64_t last_ns = seat->comm->info.init_ns;

	if (counts->last_issue_ns > last_ns)
		last_ns = counts->last_issue_ns;
	if (counts->last_done_ns > last_ns)
		last_ns = counts->last_done_ns;
	seat->still_ns = live->memory->monotonic_ns - memory->moved_ns;
	/* It last moved before we came: the recorder knows when. */
	if (memory->is_unmoved && now_ns > last_ns && last_ns != 0)
		seat->still_ns = now_ns - last_ns;
}

/* Is it known to be inside, not only to have been called? Where NCCL shows kernels or proxies it would
 * be running. */
static bool is_in(const struct live_seat *seat)
{
	const struct comm_info *info = &seat->comm->info;

	if (seat->is_over || seat->oldest == NULL || seat->oldest->op.match == 0 ||
	    !op_is_collective(seat->oldest->op.function))
		return false;
	return seat->oldest->op.state == OP_RUNNING ||
	       !(info->flags & (COMM_FLAG_SEES_KERNELS | COMM_FLAG_SEES_PROXIES));
}

static bool has_issued(const struct live_seat *seat, const struct op_record *op)
{
	const struct comm_counts *counts = &seat->comm->counts;

	return seat->comm->is_unplaced ||
	       (op->flags & OP_FLAG_REPLAY ? counts->replays : counts->collectives) >= op->match;
}

static void mark_behind(struct live *live, uint32_t c)
{
	const struct job_comm *comm = &live->job.comms[c];
	struct live_comm *of = &live->comms[c];

	of->lead = UINT32_MAX;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct live_seat *seat = &live->seats[comm->seats[i]];
		const struct comm_counts *counts = &seat->comm->counts;

		if (counts->collectives > of->last_issued)
			of->last_issued = counts->collectives;
		if (counts->last_done_number > of->last_done)
			of->last_done = counts->last_done_number;
		if (is_in(seat) &&
		    (of->lead == UINT32_MAX ||
		     seat->oldest->op.match > live->seats[of->lead].oldest->op.match))
			of->lead = comm->seats[i];
	}
	for (uint32_t i = 0; of->lead != UINT32_MAX && i < comm->seat_count; i++) {
		struct live_seat *seat = &live->seats[comm->seats[i]];

		seat->is_behind = seat->comm->has_counts &&
				  !(seat->comm->info.flags & COMM_FLAG_FINALIZED) &&
				  !has_issued(seat, &live->seats[of->lead].oldest->op);
	}
}

void live_flights(struct live *live)
{
	for (uint32_t p = 0; p < live->memory->process_count; p++)
		take_process(live, p);
	for (uint32_t s = 0; s < live->job.seat_count; s++)
		take_still(live, s);
	for (uint32_t c = 0; c < live->job.comm_count; c++)
		mark_behind(live, c);
}
