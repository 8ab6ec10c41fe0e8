/* What each process and each of its communicators says now, and what grew since the last look. */
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "live/live_memory.h"
#include "timeline/meet.h"
#include "timeline/tally.h"

/* ---- clocks, deaths, losses ------------------------------------------------------------------ */

static bool is_gone(const struct recording_process *process)
{
	return process->life == RECORDING_ENDED || process->life == RECORDING_KILLED;
}

/* A process that stood still, or could not be read this time, has an old reading of its clock: the time
 * since then is ours. */
static void clock_of(struct live_process_memory *memory, const struct recording_process *process,
		     uint64_t monotonic_ns)
{
	if (process->counts_ns != memory->counts_ns) {
		memory->counts_ns = process->counts_ns;
		memory->counted_ns = monotonic_ns;
	}
	memory->now_ns = 0;
	if (memory->counts_ns != 0)
		memory->now_ns = memory->counts_ns + (monotonic_ns - memory->counted_ns);
	if (is_gone(process) && memory->dead_ns == 0)
		memory->dead_ns = monotonic_ns;
}

/* What was lost before we looked for the first time is no news. */
static void losses_of(struct live_process_memory *memory, const struct recording_process *process,
		      uint64_t monotonic_ns)
{
	enum { LOSS_SECONDS = 60 };
	uint64_t lost = op_lost_operations(process->lost);

	if (!memory->was_seen)
		memory->lost = lost;
	memory->was_seen = true;
	if (memory->losing_since_ns != 0 &&
	    monotonic_ns - memory->lost_at_ns > LOSS_SECONDS * LIVE_SECOND_NS)
		memory->losing_since_ns = 0;
	if (lost <= memory->lost)
		return;
	if (memory->losing_since_ns == 0) {
		memory->losing_since_ns = monotonic_ns;
		memory->lost_before = memory->lost;
	}
	memory->lost = lost;
	memory->lost_at_ns = monotonic_ns;
}

void live_clocks(struct live *live)
{
	struct live_memory *memory = live->memory;

	for (size_t p = 0; p < memory->process_count; p++) {
		const struct recording_process *process = live->job.recording->processes[p];

		clock_of(&memory->processes[p], process, memory->monotonic_ns);
		losses_of(&memory->processes[p], process, memory->monotonic_ns);
	}
}

/* ---- sums ------------------------------------------------------------------------------------ */

void live_sums_add(struct live_sums *sums, const struct region_total *total, int nranks)
{
	uint8_t function = (uint8_t)(total->key >> 32);
	uint64_t timed_bytes = total->timed_bytes;

	/* Regions of older recorders do not tell; in one size class it is about the same share. */
	if (timed_bytes == 0 && total->timed > 0 && total->count > 0)
		timed_bytes = total->timed >= total->count
				      ? total->bytes
				      : (uint64_t)((double)(total->bytes >> 1) *
						   (double)total->timed / (double)total->count)
						<< 1;
	sums->operations += total->count;
	sums->bytes += total->bytes;
	sums->timed += total->timed;
	sums->timed_bytes += timed_bytes;
	sums->bus_bytes += (double)timed_bytes * op_bus_factor(function, nranks);
	sums->time_ns += total->sum_ns;
	if (total->timed > 0)
		sums->all_ns += total->timed < total->count
					? (double)total->sum_ns * (double)total->count /
						  (double)total->timed
					: (double)total->sum_ns;
	else
		sums->not_timed += total->count;
	sums->sampled += total->timed > 0 && total->timed < total->count;
}

static uint64_t grow(uint64_t *sum, uint64_t before)
{
	/* A slot that could not be read at this look: it is there at the next. */
	if (*sum < before)
		*sum = before;
	return *sum - before;
}

static void sums_grow(struct live_sums *sums, struct live_sums *grown,
		      const struct live_sums *before)
{
	grown->operations = grow(&sums->operations, before->operations);
	grown->bytes = grow(&sums->bytes, before->bytes);
	grown->timed = grow(&sums->timed, before->timed);
	grown->timed_bytes = grow(&sums->timed_bytes, before->timed_bytes);
	grown->time_ns = grow(&sums->time_ns, before->time_ns);
	if (sums->bus_bytes < before->bus_bytes)
		sums->bus_bytes = before->bus_bytes;
	grown->bus_bytes = sums->bus_bytes - before->bus_bytes;
	/* An estimate may fall; what was before it does not come back. */
	if (sums->all_ns < before->all_ns)
		sums->all_ns = before->all_ns;
	grown->all_ns = sums->all_ns - before->all_ns;
	/* A kind that is timed for the first time leaves this number. */
	grown->not_timed =
		sums->not_timed > before->not_timed ? sums->not_timed - before->not_timed : 0;
	grown->sampled = sums->sampled > before->sampled ? sums->sampled - before->sampled : 0;
}

static void sums_join(struct live_sums *to, const struct live_sums *from)
{
	to->operations += from->operations;
	to->bytes += from->bytes;
	to->timed += from->timed;
	to->timed_bytes += from->timed_bytes;
	to->bus_bytes += from->bus_bytes;
	to->time_ns += from->time_ns;
	to->all_ns += from->all_ns;
	to->not_timed += from->not_timed;
	to->sampled += from->sampled;
}

/* ---- rows: for waiting ----------------------------------------------------------------------- */

struct live_row *live_row_of(struct live_seat_memory *seat, uint16_t key)
{
	for (uint32_t i = 0; i < seat->row_count; i++)
		if (seat->rows[i].key == key)
			return &seat->rows[i];
	return NULL;
}

static void row_add(struct live_seat_memory *seat, const struct region_total *total)
{
	uint8_t function = (uint8_t)(total->key >> 32);
	uint16_t key = (uint16_t)(function << 8 | (total->key & 0xff));
	struct live_row *row, *more;

	if (!meet_is_synchronising(function))
		return;
	row = live_row_of(seat, key);
	if (row == NULL) {
		more = reallocarray(seat->rows, seat->row_count + 1, sizeof(*more));
		if (more == NULL)
			return;
		seat->rows = more;
		row = &more[seat->row_count++];
		*row = (struct live_row){ .key = key };
	}
	row->count += total->count;
	row->timed += total->timed;
	row->sum_ns += total->sum_ns;
}

static void rows_clear(struct live_seat_memory *seat)
{
	for (uint32_t i = 0; i < seat->row_count; i++)
		seat->rows[i].count = seat->rows[i].timed = seat->rows[i].sum_ns = 0;
}

/* ---------------------------------------------------------------------------------------------- */

static void take_process(struct live *live, uint32_t p)
{
	const struct recording_process *process = live->job.recording->processes[p];
	const struct job_seat *seat = NULL;

	for (size_t i = 0; i < process->total_count; i++) {
		const struct region_total *total = &process->totals[i];
		uint32_t comm_id = (uint32_t)(total->key >> 40), s;

		/* "Other", and communicators that are forgotten. */
		if (comm_id == 0)
			continue;
		if (seat == NULL || seat->comm_id != comm_id)
			seat = job_seat(&live->job, p, comm_id);
		if (seat == NULL)
			continue;
		s = (uint32_t)(seat - live->job.seats);
		live_sums_add(&live->seats[s].sums, total, live->job.comms[seat->comm].nranks);
		row_add(&live->memory->seats[s], total);
	}
}

static void take_seat(struct live *live, uint32_t s)
{
	const struct job_seat *of = &live->job.seats[s];
	const struct recording_process *process = live->job.recording->processes[of->process];
	struct live_seat_memory *memory = &live->memory->seats[s];
	struct live_seat *seat = &live->seats[s];
	uint64_t now_ns = live->memory->monotonic_ns;

	seat->comm = &process->comms[s - live->job.first_seat[of->process]];
	seat->is_over = is_gone(process) || seat->comm->info.flags & COMM_FLAG_FINALIZED;
	/* At the first look nothing grew: what was before is not of this moment. */
	sums_grow(&seat->sums, &seat->grown, memory->moved_ns == 0 ? &seat->sums : &memory->sums);
	memory->sums = seat->sums;
	seat->wait_ns = memory->wait_ns;
	seat->knows_wait = memory->knows_wait;
	if (memory->moved_ns == 0 || seat->comm->counts.issued != memory->issued ||
	    seat->sums.operations != memory->finished) {
		memory->is_unmoved = memory->moved_ns == 0;
		memory->issued = seat->comm->counts.issued;
		memory->finished = seat->sums.operations;
		memory->moved_ns = now_ns;
	}
	sums_join(&live->comms[of->comm].sums, &seat->sums);
	sums_join(&live->comms[of->comm].grown, &seat->grown);
}

void live_totals(struct live *live)
{
	for (uint32_t s = 0; s < live->job.seat_count; s++)
		rows_clear(&live->memory->seats[s]);
	for (uint32_t p = 0; p < live->memory->process_count; p++)
		take_process(live, p);
	for (uint32_t s = 0; s < live->job.seat_count; s++)
		take_seat(live, s);
}
