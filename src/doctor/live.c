/*
 * One scan, in its parts:
 *
 *	job_make                 the current processes: indices are valid for this scan
 *	live_memory_next         which of them are known already: by identity
 *	live_clocks, live_totals what each process and seat reports, and what increased
 *	live_flights, live_waits what they are in, and which rank waits for which
 *	live_points              one more point of each history
 *	live_verdicts            the doctor's verdicts on hangs
 *	live_speeds              what live_judge() found before
 *	live_notices             notices
 *
 * All memory is allocated before anything of the last scan is changed, so a scan fails as a whole or not at
 * all.
 */
#include "common/clock.h"
#include "doctor/live.h"
#include "doctor/live_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/match.h"
#include "analysis/tally.h"
#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/search.h"
#include "common/text.h"

/* ---- memory ----------------------------------------------------------------------------------- */

/*
 * Identity between two scans. Indices into a job change whenever a process comes or goes; identities do
 * not: a process is its host, boot, pid, pid namespace and start time, a seat is a process and its number
 * of the communicator, a communicator is its hash, number of ranks and generation in its job.
 */

static uint64_t process_key(const struct recording_process *process)
{
	uint64_t hash = hash_text(0, process->host);

	hash = hash_text(hash, process->boot_id);
	hash = hash_text(hash, process->job);
	hash = hash_word(hash, (uint64_t)process->pid);
	hash = hash_word(hash, process->pid_namespace);
	hash = hash_word(hash, process->start_ticks);
	return hash_word(hash, (uint64_t)process->rank);
}

static uint64_t comm_key(const struct job *job, const struct job_comm *comm,
			 const uint64_t *seat_keys)
{
	uint64_t hash = hash_text(1, job->groups[comm->group].name);

	/* Without a hash a communicator is identified by its only seat. */
	if (comm->hash == 0)
		return hash_word(hash, seat_keys[comm->seats[0]]);
	hash = hash_word(hash, comm->hash);
	hash = hash_word(hash, (uint64_t)comm->nranks);
	return hash_word(hash, comm->generation);
}

static int by_key(const void *one, const void *other)
{
	const struct live_place *a = one, *b = other;

	return ORDER(a->key, b->key) ?: ORDER(a->index, b->index);
}

static void make_places(struct live_place *places, const uint64_t *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		places[i] = (struct live_place){ .key = keys[i], .index = (uint32_t)i };
	if (count > 1)
		qsort(places, count, sizeof(*places), by_key);
}

/* The entry of a key that is not taken yet; NULL none. */
static struct live_place *find_place(struct live_place *places, size_t count, uint64_t key)
{
	for (size_t at = SEARCH_FIRST(i, count, places[i].key >= key);
	     at < count && places[at].key == key; at++)
		if (!places[at].is_taken) {
			places[at].is_taken = true;
			return &places[at];
		}
	return NULL;
}

/* Jobs are distinguished by name, as in job_make(). */
static uint64_t job_key(const struct job_group *group)
{
	return hash_word(hash_text(3, group->name), group->started_wall_ns);
}

static bool memory_allocate(struct live_memory *memory, const struct job *job)
{
	size_t most = 0;

	memory->seat_count = job->seat_count;
	memory->comm_count = job->comm_count;
	memory->process_count = job->recording->count;
	memory->job_count = job->group_count;
	for (size_t i = 0; i < job->recording->count; i++)
		if (job->recording->processes[i]->flight_count > most)
			most = job->recording->processes[i]->flight_count;
	memory->seats = calloc(memory->seat_count + 1, sizeof(*memory->seats));
	memory->comms = calloc(memory->comm_count + 1, sizeof(*memory->comms));
	memory->processes = calloc(memory->process_count + 1, sizeof(*memory->processes));
	memory->seat_keys = calloc(memory->seat_count + 1, sizeof(uint64_t));
	memory->comm_keys = calloc(memory->comm_count + 1, sizeof(uint64_t));
	memory->process_keys = calloc(memory->process_count + 1, sizeof(uint64_t));
	memory->seat_places = calloc(memory->seat_count + 1, sizeof(struct live_place));
	memory->comm_places = calloc(memory->comm_count + 1, sizeof(struct live_place));
	memory->process_places = calloc(memory->process_count + 1, sizeof(struct live_place));
	memory->jobs = calloc(memory->job_count + 1, sizeof(*memory->jobs));
	memory->job_keys = calloc(memory->job_count + 1, sizeof(uint64_t));
	memory->job_places = calloc(memory->job_count + 1, sizeof(struct live_place));
	memory->kinds = calloc(most + 1, 1);
	return memory->seats && memory->comms && memory->processes && memory->seat_keys &&
	       memory->comm_keys && memory->process_keys && memory->seat_places &&
	       memory->comm_places && memory->process_places && memory->jobs && memory->job_keys &&
	       memory->job_places && memory->kinds;
}

static void make_keys(struct live_memory *memory, const struct job *job)
{
	for (size_t p = 0; p < memory->process_count; p++)
		memory->process_keys[p] = process_key(job->recording->processes[p]);
	for (size_t s = 0; s < memory->seat_count; s++)
		memory->seat_keys[s] = hash_word(memory->process_keys[job->seats[s].process],
						 job->seats[s].comm_id);
	for (size_t c = 0; c < memory->comm_count; c++)
		memory->comm_keys[c] = comm_key(job, &job->comms[c], memory->seat_keys);
	for (size_t j = 0; j < memory->job_count; j++)
		memory->job_keys[j] = job_key(&job->groups[j]);
	make_places(memory->seat_places, memory->seat_keys, memory->seat_count);
	make_places(memory->comm_places, memory->comm_keys, memory->comm_count);
	make_places(memory->process_places, memory->process_keys, memory->process_count);
	make_places(memory->job_places, memory->job_keys, memory->job_count);
}

static void adopt_memory(struct live_memory *memory, struct live_memory *before)
{
	const struct live_place *place;

	for (size_t i = 0; i < memory->process_count; i++) {
		place = find_place(before->process_places, before->process_count,
				   memory->process_keys[i]);
		if (place != NULL)
			memory->processes[i] = before->processes[place->index];
	}
	for (size_t i = 0; i < memory->seat_count; i++) {
		place = find_place(before->seat_places, before->seat_count, memory->seat_keys[i]);
		if (place == NULL)
			continue;
		memory->seats[i] = before->seats[place->index];
		before->seats[place->index] = (struct live_seat_memory){ 0 };
	}
	for (size_t i = 0; i < memory->comm_count; i++) {
		place = find_place(before->comm_places, before->comm_count, memory->comm_keys[i]);
		if (place == NULL)
			continue;
		memory->comms[i] = before->comms[place->index];
		before->comms[place->index] = (struct live_comm_memory){ .window_began_ns = 0 };
	}
	for (size_t i = 0; i < memory->job_count; i++) {
		place = find_place(before->job_places, before->job_count, memory->job_keys[i]);
		if (place == NULL)
			continue;
		memory->jobs[i] = before->jobs[place->index];
		before->jobs[place->index] = (struct live_job_memory){ .judged_ns = 0 };
	}
	memory->judge_ns = before->judge_ns;
	memcpy(memory->given, before->given, sizeof(memory->given));
	memory->given_count = before->given_count;
}

static void live_memory_free(struct live_memory *memory)
{
	if (memory == NULL)
		return;
	for (size_t i = 0; memory->seats != NULL && i < memory->seat_count; i++) {
		free(memory->seats[i].history.points);
		free(memory->seats[i].rows);
	}
	for (size_t i = 0; memory->comms != NULL && i < memory->comm_count; i++)
		free(memory->comms[i].history.points);
	for (size_t i = 0; memory->jobs != NULL && i < memory->job_count; i++)
		live_job_memory_release(&memory->jobs[i]);
	free(memory->seats);
	free(memory->comms);
	free(memory->processes);
	free(memory->jobs);
	free(memory->job_keys);
	free(memory->job_places);
	free(memory->seat_keys);
	free(memory->comm_keys);
	free(memory->process_keys);
	free(memory->seat_places);
	free(memory->comm_places);
	free(memory->process_places);
	free(memory->kinds);
	free(memory);
}

/* Memory for the job of this scan, with what `before` (NULL: nothing) has of its members. `before` loses
 * that and can only be freed. NULL: out of memory, and `before` is unchanged. */
static struct live_memory *live_memory_next(struct live_memory *before, const struct job *job)
{
	struct live_memory *memory = calloc(1, sizeof(*memory));

	if (memory == NULL || !memory_allocate(memory, job)) {
		live_memory_free(memory);
		return NULL;
	}
	make_keys(memory, job);
	if (before != NULL)
		adopt_memory(memory, before);
	return memory;
}

/* What each process and each of its communicators reports, and what increased since the last scan. */

/* ---- clocks, deaths, losses ------------------------------------------------------------------ */

static bool is_gone(const struct recording_process *process)
{
	return process->life == RECORDING_ENDED || process->life == RECORDING_KILLED;
}

/* A process without progress, or one that could not be read this time, has an old clock reading: add our
 * own time since then. */
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

/* Losses before the first scan are not reported. */
static void losses_of(struct live_process_memory *memory, const struct recording_process *process,
		      uint64_t monotonic_ns)
{
	enum { LOSS_SECONDS = 60 };
	uint64_t lost = op_lost_operations(process->lost);

	if (!memory->was_seen)
		memory->lost = lost;
	memory->was_seen = true;
	if (memory->losing_since_ns != 0 &&
	    monotonic_ns - memory->lost_at_ns > LOSS_SECONDS * SECOND_NS)
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

static void live_clocks(struct live *live)
{
	struct live_memory *memory = live->memory;

	for (size_t p = 0; p < memory->process_count; p++) {
		const struct recording_process *process = live->job.recording->processes[p];

		clock_of(&memory->processes[p], process, memory->monotonic_ns);
		losses_of(&memory->processes[p], process, memory->monotonic_ns);
	}
}

/* ---- totals ---------------------------------------------------------------------------------- */

void live_sums_add(struct live_sums *sums, const struct region_total *total, int nranks)
{
	uint8_t function = (uint8_t)(total->key >> 32);
	uint64_t timed_bytes = total->timed_bytes, timed = total->timed + total->shared;
	uint64_t sum_ns = total->sum_ns + total->shared_ns;

	/* Regions of older recorders do not have it; within one size class the share is about the same. */
	if (timed_bytes == 0 && total->timed > 0 && total->count > 0)
		timed_bytes = total->timed >= total->count
				      ? total->bytes
				      : (uint64_t)((double)(total->bytes >> 1) *
						   (double)total->timed / (double)total->count)
						<< 1;
	sums->operations += total->count;
	sums->bytes += total->bytes;
	sums->timed += timed;
	sums->timed_bytes += timed_bytes;
	sums->bus_bytes += (double)timed_bytes * op_bus_factor(function, nranks);
	sums->time_ns += total->sum_ns;
	if (timed > 0)
		sums->all_ns += timed < total->count
					? (double)sum_ns * (double)total->count / (double)timed
					: (double)sum_ns;
	else
		sums->not_timed += total->count;
	sums->sampled += timed > 0 && timed < total->count;
}

static uint64_t counter_grow(uint64_t *sum, uint64_t before)
{
	/* A slot that could not be read in this scan: it will be in the next. */
	if (*sum < before)
		*sum = before;
	return *sum - before;
}

static void sums_grow(struct live_sums *sums, struct live_sums *grown,
		      const struct live_sums *before)
{
	grown->operations = counter_grow(&sums->operations, before->operations);
	grown->bytes = counter_grow(&sums->bytes, before->bytes);
	grown->timed = counter_grow(&sums->timed, before->timed);
	grown->timed_bytes = counter_grow(&sums->timed_bytes, before->timed_bytes);
	grown->time_ns = counter_grow(&sums->time_ns, before->time_ns);
	if (sums->bus_bytes < before->bus_bytes)
		sums->bus_bytes = before->bus_bytes;
	grown->bus_bytes = sums->bus_bytes - before->bus_bytes;
	/* An estimate may decrease; what was reported before is not taken back. */
	if (sums->all_ns < before->all_ns)
		sums->all_ns = before->all_ns;
	grown->all_ns = sums->all_ns - before->all_ns;
	/* A kind that is timed for the first time leaves this count. */
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

/* Is this a collective in which every rank waits for all others? */
static struct live_row *live_row_of(struct live_seat_memory *seat, uint16_t key)
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
	struct live_row *row;

	if (!match_is_synchronising(function))
		return;
	row = live_row_of(seat, key);
	if (row == NULL) {
		if (!list_grow(&seat->rows, seat->row_count, sizeof(*row)))
			return;
		row = &seat->rows[seat->row_count++];
		*row = (struct live_row){ .key = key };
	}
	row->count += total->count;
	/* Who arrives late makes a launch of several operations longer, too. */
	row->timed += total->timed + total->shared;
	row->sum_ns += total->sum_ns + total->shared_ns;
}

static void rows_clear(struct live_seat_memory *seat)
{
	for (uint32_t i = 0; i < seat->row_count; i++)
		seat->rows[i].count = seat->rows[i].timed = seat->rows[i].sum_ns = 0;
}

/* ---------------------------------------------------------------------------------------------- */

static void count_process(struct live *live, uint32_t p)
{
	const struct recording_process *process = live->job.recording->processes[p];
	const struct job_seat *seat = NULL;

	for (size_t i = 0; i < process->total_count; i++) {
		const struct region_total *total = &process->totals[i];
		uint32_t comm_id = (uint32_t)(total->key >> 40), s;

		/* "Other", and communicators that were forgotten. */
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
	/* At the first scan nothing increased: earlier operations are not of this moment. */
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

/* totals and rows of each seat */
static void live_totals(struct live *live)
{
	for (uint32_t s = 0; s < live->job.seat_count; s++)
		rows_clear(&live->memory->seats[s]);
	for (uint32_t p = 0; p < live->memory->process_count; p++)
		count_process(live, p);
	for (uint32_t s = 0; s < live->job.seat_count; s++)
		take_seat(live, s);
}

/*
 * What each seat is in, how long, and which rank has not arrived.
 *
 * A seat is in its first open operation, the front: NCCL runs those of a communicator in order. Hosts run
 * ahead of their GPUs, so that others have called more proves nothing; that others are *in* a collective
 * that a rank has not called shows that they wait for it.
 */

/* An operation older than a finished one is over, even if parts of it are missing. */
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

enum { TAG_LOOKS = 3 };

static void note_tag(struct live *live, uint32_t c, uint64_t tag)
{
	struct live_comm *comm = &live->comms[c];

	if (tag != 0 && comm->user_tag != 0 && comm->user_tag != tag)
		live->memory->comms[c].has_several_tags = true;
	if (tag != 0)
		comm->user_tag = tag;
}

/* A tag that counts iterations is never the same in several scans of a running job. */
static void take_tag(struct live *live, uint32_t c)
{
	struct live_comm_memory *memory = &live->memory->comms[c];
	struct live_comm *comm = &live->comms[c];

	if (comm->user_tag != 0) {
		memory->has_several_tags |=
			memory->user_tag != 0 && memory->user_tag != comm->user_tag;
		memory->user_tag = comm->user_tag;
		memory->tag_looks++;
	}
	comm->user_tag =
		memory->has_several_tags || memory->tag_looks < TAG_LOOKS ? 0 : memory->user_tag;
}

/* Flights are sorted by communicator and number: the first open one of each is its front. */
static void process_flights(struct live *live, uint32_t p)
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
		note_tag(live, of->comm, flight->op.user_tag);
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

/* By the recorder's times and by ours: the shorter. Its times are from before the scan. */
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
	/* Its last progress was before the first scan: the recorder knows when. */
	if (memory->is_unmoved && now_ns > last_ns && last_ns != 0)
		seat->still_ns = now_ns - last_ns;
}

/* Is it known to be inside, not only called? With kernels, proxies or CUDA events it would be running. */
static bool is_in(const struct live_seat *seat)
{
	const struct comm_info *info = &seat->comm->info;

	if (seat->is_over || seat->oldest == NULL || seat->oldest->op.match == 0 ||
	    !op_is_collective(seat->oldest->op.function))
		return false;
	return seat->oldest->op.state == OP_RUNNING ||
	       !(info->flags & (COMM_FLAG_SEES_KERNELS | COMM_FLAG_SEES_PROXIES) ||
		 seat->oldest->op.flags & OP_FLAG_CUDA_EVENT);
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

/* what is in flight, how long, which ranks are behind */
static void live_flights(struct live *live)
{
	for (uint32_t p = 0; p < live->memory->process_count; p++)
		process_flights(live, p);
	for (uint32_t s = 0; s < live->job.seat_count; s++)
		take_still(live, s);
	for (uint32_t c = 0; c < live->job.comm_count; c++) {
		mark_behind(live, c);
		take_tag(live, c);
	}
}

/*
 * Waiting from totals. All ranks of a communicator make the same collectives in the same order, so after
 * equally many of one function and size class their times can be compared:
 *
 *	wait(r) = time(r) - the least time of a rank
 *
 * Regions are read one after the other, so at a scan ranks have often finished unequal numbers. Then
 *
 *	few collectives (slow ones)    nothing is matched in this scan; all of it is kept for the next one
 *	                               with equal numbers, which is soon: they end together
 *	many (JOIN_MANY or more)       the smallest number is matched, with that share of the time of the
 *	                               others; the rest is kept. The error is a share of a few operations
 *	                               among many, and is made up for at the next scan
 *
 * A rank with nearly all of its collectives timed is scaled up. If fewer are timed (kernel events are
 * sampled) the timed ones are matched instead: these are the same collectives on all ranks, chosen by their
 * number. Their waiting is then scaled up to all collectives. If none is timed nothing is matched.
 */

enum {
	JOIN_MANY = 32,
	UNEVEN_PART = 8, /* with many, numbers may differ by one part in this many */
	TIMED_TENTHS = 9,
};

/* The rows of one key over the ranks that are not over. */
struct table {
	struct live_row **rows;
	uint32_t *seats;
	uint32_t count;
	bool is_sampled;      /* few are timed: numbers below are of the timed ones */
	uint64_t least, most; /* finished since their base */
	bool is_even;	      /* all have finished equally many since they exist */
	bool is_based, is_exact;
};

static bool is_nearly_all_timed(const struct live_row *row)
{
	uint64_t count = row->count - row->base_count, timed = row->timed - row->base_timed;

	return timed * 10 >= count * TIMED_TENTHS;
}

static uint64_t number_of(const struct table *table, const struct live_row *row)
{
	return table->is_sampled ? row->timed : row->count;
}

static uint64_t grown_of(const struct table *table, const struct live_row *row)
{
	return table->is_sampled ? row->timed - row->base_timed : row->count - row->base_count;
}

static void table_measure(struct table *table)
{
	table->least = UINT64_MAX;
	table->most = 0;
	table->is_even = table->is_based = table->is_exact = true;
	table->is_sampled = false;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct live_row *row = table->rows[i];

		table->is_based &= row->is_based && row->count >= row->base_count &&
				   row->timed >= row->base_timed && row->sum_ns >= row->base_sum_ns;
		table->is_sampled |= !is_nearly_all_timed(row);
	}
	for (uint32_t i = 0; i < table->count; i++) {
		const struct live_row *row = table->rows[i];
		uint64_t grown = grown_of(table, row);

		table->is_even &= number_of(table, row) == number_of(table, table->rows[0]);
		table->is_exact &= table->is_sampled ? row->is_exact_timed : row->is_exact;
		if (grown < table->least)
			table->least = grown;
		if (grown > table->most)
			table->most = grown;
	}
}

/* What is finished now counts as matched from here on. */
static void table_base(struct table *table)
{
	bool is_even = true, is_even_timed = true;

	for (uint32_t i = 0; i < table->count; i++) {
		is_even &= table->rows[i]->count == table->rows[0]->count;
		is_even_timed &= table->rows[i]->timed == table->rows[0]->timed;
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct live_row *row = table->rows[i];

		row->is_based = true;
		row->is_exact = is_even;
		row->is_exact_timed = is_even_timed;
		row->base_count = row->count;
		row->base_timed = row->timed;
		row->base_sum_ns = row->sum_ns;
	}
}

/* The time in n collectives, of which the row has at least that many, nearly all timed; or n timed ones. */
static double time_of(const struct live_row *row, uint64_t n)
{
	return (double)(row->sum_ns - row->base_sum_ns) * (double)n /
	       (double)(row->timed - row->base_timed);
}

/* Whatever a file claims: our numbers stay in range. */
static uint64_t whole(double number)
{
	return number > 0 ? number < 1e18 ? (uint64_t)number : (uint64_t)1e18 : 0;
}

/* n of each are matched; the rest stays. */
static void row_advance(const struct table *table, struct live_row *row, uint64_t n)
{
	double share = (double)n / (double)grown_of(table, row);

	row->is_exact = row->is_exact_timed = false;
	row->base_count +=
		table->is_sampled ? whole((double)(row->count - row->base_count) * share) : n;
	row->base_timed +=
		table->is_sampled ? n : whole((double)(row->timed - row->base_timed) * share);
	row->base_sum_ns += whole((double)(row->sum_ns - row->base_sum_ns) * share);
}

static void table_join(struct live *live, struct table *table)
{
	uint64_t n = table->least;
	double least_ns = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		if (table->rows[i]->timed == table->rows[i]->base_timed)
			return;
		if (i == 0 || time_of(table->rows[i], n) < least_ns)
			least_ns = time_of(table->rows[i], n);
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct live_seat *seat = &live->seats[table->seats[i]];
		const struct live_row *row = table->rows[i];
		double all = (double)(row->count - row->base_count) / (double)grown_of(table, row);

		seat->wait_grown_ns +=
			whole((time_of(row, n) - least_ns) * (table->is_sampled ? all : 1));
		seat->has_wait = true;
	}
	if (table->is_even)
		table_base(table);
	for (uint32_t i = 0; i < table->count && !table->is_even; i++)
		row_advance(table, table->rows[i], n);
}

static void table_look(struct live *live, struct table *table, bool has_gap)
{
	bool is_many;

	table_measure(table);
	if (!table->is_based || has_gap) {
		table_base(table);
		return;
	}
	is_many = table->least >= JOIN_MANY &&
		  (table->most - table->least) * UNEVEN_PART <= table->most;
	if (is_many || (table->is_even && table->is_exact && table->least > 0))
		table_join(live, table);
	else if (table->is_even && !table->is_exact)
		table_base(table);
}

/* The ranks' rows of the key of the first one's i-th; false: not all of them have it. */
static bool table_fill(struct live *live, struct table *table, const uint32_t *seats,
		       uint32_t count, uint32_t i)
{
	uint16_t key = live->memory->seats[seats[0]].rows[i].key;

	table->count = 0;
	for (uint32_t j = 0; j < count; j++) {
		struct live_row *row = live_row_of(&live->memory->seats[seats[j]], key);

		if (row == NULL)
			return false;
		table->seats[table->count] = seats[j];
		table->rows[table->count++] = row;
	}
	return true;
}

static void look_at_comm(struct live *live, uint32_t c, struct table *table, uint32_t *seats)
{
	const struct job_comm *comm = &live->job.comms[c];
	/* Since the last scan ranks have not counted the same collectives: start over. */
	bool has_gap = comm->missed != live->memory->comms[c].missed;
	uint32_t count = 0;

	live->memory->comms[c].missed = comm->missed;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (!live->seats[comm->seats[i]].is_over)
			seats[count++] = comm->seats[i];
	if (count < 2)
		return;
	for (uint32_t i = 0; i < live->memory->seats[seats[0]].row_count; i++)
		if (table_fill(live, table, seats, count, i))
			table_look(live, table, has_gap);
	for (uint32_t i = 0; i < count; i++) {
		struct live_seat *seat = &live->seats[seats[i]];
		struct live_seat_memory *memory = &live->memory->seats[seats[i]];

		memory->wait_ns += seat->wait_grown_ns;
		memory->window_wait_ns += seat->wait_grown_ns;
		memory->knows_wait |= seat->has_wait;
		seat->wait_ns = memory->wait_ns;
		seat->knows_wait = memory->knows_wait;
		live->memory->comms[c].was_joined |= seat->has_wait;
	}
}

/* Without memory no waiting is found in this scan, and all of it is kept for the next. */
static void live_waits(struct live *live)
{
	struct table table = { .rows = calloc(live->job.seat_count + 1, sizeof(*table.rows)),
			       .seats = calloc(live->job.seat_count + 1, sizeof(*table.seats)) };
	uint32_t *seats = calloc(live->job.seat_count + 1, sizeof(*seats));

	for (uint32_t c = 0; c < live->job.comm_count; c++) {
		const struct job_comm *comm = &live->job.comms[c];

		if (table.rows != NULL && table.seats != NULL && seats != NULL)
			look_at_comm(live, c, &table, seats);
		for (uint32_t i = 0; i < comm->seat_count; i++)
			live->comms[c].wait_ns += live->seats[comm->seats[i]].wait_ns;
	}
	free(table.rows);
	free(table.seats);
	free(seats);
}

/* ---- stragglers ------------------------------------------------------------------------------ */

/* The straggler waits little itself: at most this share of what the others do. */
enum { STRAGGLER_PART = 4, WINDOWS = 3 };

struct window {
	uint32_t least; /* seat */
	uint32_t count;
	uint64_t sum_ns;
};

static uint64_t window_wait(const struct live *live, uint32_t s)
{
	return live->memory->seats[s].window_wait_ns;
}

static struct window window_of(const struct live *live, const struct job_comm *comm)
{
	struct window window = { .least = UINT32_MAX };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];

		if (live->seats[s].is_over)
			continue;
		window.count++;
		window.sum_ns += window_wait(live, s);
		if (window.least == UINT32_MAX ||
		    window_wait(live, s) < window_wait(live, window.least))
			window.least = s;
	}
	return window;
}

static uint32_t seat_with_key(const struct live *live, const struct job_comm *comm, uint64_t key)
{
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (live->memory->seat_keys[comm->seats[i]] == key)
			return comm->seats[i];
	return UINT32_MAX;
}

/* The rank the others wait for. The one of the last window if that is still so: of several slow ranks one
 * is named. */
static uint32_t waited_for(const struct live *live, uint32_t c, double length_ns, double *share)
{
	const struct job_comm *comm = &live->job.comms[c];
	const struct live_comm_memory *memory = &live->memory->comms[c];
	uint32_t before = memory->straggler_key != 0
				  ? seat_with_key(live, comm, memory->straggler_key)
				  : UINT32_MAX;
	struct window window = window_of(live, comm);
	uint32_t candidates[2] = { before, window.least };

	if (window.count < 2 || !memory->was_joined)
		return UINT32_MAX;
	for (int i = 0; i < 2; i++) {
		double own, others;

		if (candidates[i] == UINT32_MAX || live->seats[candidates[i]].is_over)
			continue;
		own = (double)window_wait(live, candidates[i]);
		others = ((double)window.sum_ns - own) / (window.count - 1);
		*share = others / length_ns;
		if (*share >= live->limits.straggler_share && own * STRAGGLER_PART <= others)
			return candidates[i];
	}
	return UINT32_MAX;
}

static void window_end(struct live *live, uint32_t c)
{
	const struct job_comm *comm = &live->job.comms[c];
	struct live_comm_memory *memory = &live->memory->comms[c];
	uint64_t now_ns = live->memory->monotonic_ns;
	double share = 0;
	uint32_t seat = waited_for(live, c, (double)(now_ns - memory->window_began_ns), &share);
	uint64_t key = seat != UINT32_MAX ? live->memory->seat_keys[seat] : 0;

	if (key != 0 && key != memory->straggler_key)
		memory->straggler_since_ns = memory->window_began_ns;
	memory->straggler_key = key;
	memory->straggler_share = share;
	memory->window_began_ns = now_ns;
	memory->was_joined = false;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		live->memory->seats[comm->seats[i]].window_wait_ns = 0;
}

/* Time is divided into windows, a few per straggler_ns; a straggler is one that several in a row agree on. */
static void live_stragglers(struct live *live)
{
	for (uint32_t c = 0; c < live->job.comm_count; c++) {
		struct live_comm_memory *memory = &live->memory->comms[c];
		uint64_t now_ns = live->memory->monotonic_ns;

		if (memory->window_began_ns == 0)
			memory->window_began_ns = now_ns;
		else if (now_ns - memory->window_began_ns >= live->limits.straggler_ns / WINDOWS)
			window_end(live, c);
		live->comms[c].straggler =
			memory->straggler_key != 0
				? seat_with_key(live, &live->job.comms[c], memory->straggler_key)
				: UINT32_MAX;
		live->comms[c].straggler_share = memory->straggler_share;
	}
}

struct live_limits live_limits_default(void)
{
	return (struct live_limits){ .hang_ns = 20 * SECOND_NS,
				     .lag_ns = 5 * SECOND_NS,
				     .straggler_share = 0.1,
				     .straggler_ns = 30 * SECOND_NS,
				     .slow_times = 2,
				     .judge_ns = SECOND_NS / 2 };
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
	free(live->jobs);
	free(live->notices);
	verdicts_release(&live->verdicts);
	live_memory_free(live->memory);
	*live = (struct live){ .limits = live->limits };
}

/* ---- histories ------------------------------------------------------------------------------- */

/* Without memory the point is lost. */
static void live_history_add(struct live_history *history, const struct live_point *point)
{
	uint32_t count = history->count;

	/* Until it is full it grows by powers of two: most communicators are idle or short-lived. */
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

/* Operations untimed for some scans are made up for in one: waiting is capped at the whole time. */
static float wait_share(double wait_ns, double of_ns)
{
	return wait_ns < of_ns ? ratio(wait_ns, of_ns) : ratio(of_ns, of_ns);
}

/* A barrier, or a communicator of unknown size, has none, which is not 0. */
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

/* Are there histories for this seat? Those that a user's first processes have do not change. */
static bool has_history(const struct live *live, uint32_t s)
{
	const struct recording *recording = live->job.recording;
	int64_t owner = recording->processes[live->job.seats[s].process]->owner;
	uint32_t seats = 0;

	if (s < LIVE_HISTORIES_MAX / 2)
		return true;
	for (uint32_t p = 0; p < live->job.seats[s].process; p++)
		if (recording->processes[p]->owner == owner)
			seats += live->job.first_seat[p + 1] - live->job.first_seat[p];
	return seats < LIVE_HISTORIES_MAX / 2;
}

/* A history begins with the first recorded operation and ends with the process. */
static void seat_point(struct live *live, uint32_t s)
{
	struct live_seat *seat = &live->seats[s];
	struct live_history *history = &live->memory->seats[s].history;
	struct live_point point = point_of(live, &seat->grown);

	if (!seat->is_over &&
	    (history->count > 0 ||
	     (seat->grown.operations > 0 && live->memory->seat_histories < LIVE_HISTORIES_MAX &&
	      has_history(live, s)))) {
		live->memory->seat_histories++;
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
	if (open > 0 && (history->count > 0 || (live->comms[c].grown.operations > 0 &&
						live->memory->comm_histories < LIVE_HISTORIES_MAX &&
						has_history(live, comm->seats[0])))) {
		live->memory->comm_histories++;
		point.busy_share /= (float)open;
		if (waiting > 0)
			point.wait_share =
				wait_share(wait_ns, (double)waiting * (double)live->elapsed_ns);
		live_history_add(history, &point);
	}
}

static void live_points(struct live *live)
{
	struct live_memory *memory = live->memory;

	memory->seat_histories = memory->comm_histories = 0;
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

/* ---- the state of a rank --------------------------------------------------------------------- */

/* Some rank is always last to arrive: it counts only if the others have waited for a while. */
#define LATE_NS SECOND_NS
#define STILL_NS (5 * SECOND_NS)

const char *live_state_name(enum live_state state)
{
	static const char *const names[LIVE_STATES] = { "running",   "idle",  "no progress",
							"straggler", "stuck", "not arrived",
							"finalized", "ended", "killed",
							"unknown" };

	return (unsigned int)state < LIVE_STATES ? names[state] : "?";
}

static bool is_not_arrived(const struct live *live, uint32_t index)
{
	const struct job_comm *comm = &live->job.comms[live->job.seats[index].comm];

	if (!live->seats[index].is_behind)
		return false;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (!live->seats[comm->seats[i]].is_over &&
		    live->seats[comm->seats[i]].oldest_age_ns >= LATE_NS)
			return true;
	return false;
}

uint64_t live_hang_ns(const struct live *live, uint32_t group)
{
	uint64_t job_ns = live->limits.is_hang_fixed ? 0 : live->job.groups[group].hang_after_ns;

	return job_ns > live->limits.hang_ns ? job_ns : live->limits.hang_ns;
}

enum live_state live_state(const struct live *live, uint32_t index)
{
	const struct job_seat *at = &live->job.seats[index];
	const struct live_seat *seat = &live->seats[index];

	switch (live->job.recording->processes[at->process]->life) {
	case RECORDING_ENDED:
		return LIVE_ENDED;
	case RECORDING_KILLED:
		return LIVE_KILLED;
	case RECORDING_UNKNOWN:
		return LIVE_UNKNOWN;
	case RECORDING_ALIVE:
		break;
	}
	if (seat->is_over)
		return LIVE_FINALIZED;
	if (is_not_arrived(live, index))
		return LIVE_NOT_ARRIVED;
	if (seat->oldest != NULL &&
	    seat->oldest_age_ns > live_hang_ns(live, live->job.comms[at->comm].group))
		return LIVE_STUCK;
	if (live->comms[at->comm].straggler == index)
		return LIVE_LAST;
	if (seat->still_ns > STILL_NS)
		return seat->in_flight > 0 ? LIVE_NO_PROGRESS : LIVE_IDLE;
	return LIVE_RUNNING;
}

static bool is_killed(const struct live *live, uint32_t seat)
{
	return live_state(live, seat) == LIVE_KILLED;
}

bool live_say_absent(char *text, size_t size, const struct live *live, uint32_t seat)
{
	const struct job_comm *comm = &live->job.comms[live->job.seats[seat].comm];
	const struct live_seat *of = &live->seats[seat];
	uint32_t found = UINT32_MAX;

	if (of->oldest == NULL || of->oldest->op.match == 0 || of->is_over)
		return false;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t other = comm->seats[i];

		if (is_killed(live, other)) {
			found = other;
			break;
		}
		if (found == UINT32_MAX && other != seat && live->seats[other].is_behind)
			found = other;
	}
	if (found == UINT32_MAX)
		return false;
	text_append(text, size, "rank %s, which %s",
		    live->job.ranks[live->job.seats[found].rank].label,
		    is_killed(live, found) ? "died" : "has not called it");
	return true;
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
	next->jobs = calloc(job.group_count + 1, sizeof(*next->jobs));
	next->notices = calloc(LIVE_NOTICES_MAX, sizeof(*next->notices));
	if (next->seats != NULL && next->comms != NULL && next->jobs != NULL &&
	    next->notices != NULL)
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
	live_speeds(live);
	live_date_verdicts(live);
	live_notices(live);
	return OK;
}
