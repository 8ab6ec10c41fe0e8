#include "timeline/job_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "timeline/meet.h"

enum {
	INTERFACE_WITHOUT_BROADCAST = 6, /* see hot_call.c */
	FLIGHTS_TRIED = 256,
	ENTRIES_MAX = 1 << 22,
	/* Others may be read a moment later, and GPU stamps err now and then. */
	UNSEEN_LEAST = 2,
};

static struct recording_comm *comm_of(const struct job *job, uint32_t seat)
{
	uint32_t process = job->seats[seat].process;

	return &job->recording->processes[process]->comms[seat - job->first_seat[process]];
}

/* Function and NCCL's number in one; 0: it has none that could be compared. */
static uint64_t key_of(uint8_t function, uint32_t flags, uint64_t sequence, bool is_launched,
		       uint32_t interface)
{
	if (function < OP_ALL_REDUCE || function > OP_REDUCE || !is_launched ||
	    flags & (OP_FLAG_REPLAY | OP_FLAG_API_ONLY | OP_FLAG_COPY_ENGINE) ||
	    (function == OP_BROADCAST && interface >= INTERFACE_WITHOUT_BROADCAST))
		return 0;
	return (uint64_t)function << 48 | (sequence & ((UINT64_C(1) << 48) - 1));
}

static int by_key(const void *one, const void *other)
{
	const struct job_gap_entry *a = one, *b = other;

	return a->key < b->key ? -1 : a->key > b->key;
}

static const struct job_gap_entry *entry_find(const struct job_gap_entry *list, size_t count,
					      uint64_t key)
{
	struct job_gap_entry wanted = { .key = key };

	if (key == 0 || count == 0)
		return NULL;
	return bsearch(&wanted, list, count, sizeof(*list), by_key);
}

/* One without gaps, else the one that recorded most. */
static uint32_t choose_reference(const struct job *job, const struct job_comm *comm)
{
	uint32_t best = comm->seats[0];

	for (uint32_t i = 1; i < comm->seat_count; i++) {
		const struct comm_counts *own = &comm_of(job, comm->seats[i])->counts;
		const struct comm_counts *others = &comm_of(job, best)->counts;

		if ((own->missed == 0) != (others->missed == 0) ? own->missed == 0
								: own->recorded > others->recorded)
			best = comm->seats[i];
	}
	return best;
}

/* ---- what is in flight ------------------------------------------------------------------------ */

/* The flights of a seat: sorted by communicator and number. */
static struct recording_flight *flights_of(const struct job *job, uint32_t seat, size_t *count)
{
	struct recording_process *process = job->recording->processes[job->seats[seat].process];
	uint32_t id = job->seats[seat].comm_id;
	size_t from = 0;

	*count = 0;
	for (size_t to = process->flight_count; from < to;) {
		size_t middle = from + (to - from) / 2;

		if (process->flights[middle].op.comm < id)
			from = middle + 1;
		else
			to = middle;
	}
	while (from + *count < process->flight_count &&
	       process->flights[from + *count].op.comm == id)
		++*count;
	return *count > 0 ? &process->flights[from] : NULL;
}

uint64_t job_gap_key(const struct job *job, uint32_t seat, const struct op_record *op)
{
	return op->match == 0 ? 0
			      : key_of(op->function, op->flags, op->nccl_sequence, op->task_ns != 0,
				       comm_of(job, seat)->info.interface);
}

static size_t list_flights(const struct job *job, uint32_t seat, struct job_gap_entry *list)
{
	size_t count, used = 0;
	const struct recording_flight *flights = flights_of(job, seat, &count);

	/* The last ones: what is still in flight on the others is among them. */
	for (size_t i = count; i-- > 0 && used < FLIGHTS_TRIED;) {
		uint64_t key = job_gap_key(job, seat, &flights[i].op);

		if (key != 0)
			list[used++] = (struct job_gap_entry){ key, flights[i].op.match };
	}
	qsort(list, used, sizeof(*list), by_key);
	return used;
}

static bool is_call(const struct op_record *op)
{
	return op_is_collective(op->function) && !(op->flags & OP_FLAG_REPLAY) && op->match != 0;
}

/* By so much a seat's numbers are behind those of the reference. False: they have nothing in common. */
static bool find_shift(const struct job *job, uint32_t seat, const struct job_gap_entry *list,
		       size_t used, uint64_t *shift)
{
	size_t count;
	const struct recording_flight *flights = flights_of(job, seat, &count);

	for (size_t i = count; i-- > 0;) {
		uint64_t key = job_gap_key(job, seat, &flights[i].op);
		const struct job_gap_entry *same = entry_find(list, used, key);

		if (same == NULL)
			continue;
		*shift = same->match - flights[i].op.match;
		return true;
	}
	return false;
}

static void shift_seat(const struct job *job, uint32_t seat, uint64_t shift, bool is_placed)
{
	struct recording_comm *of = comm_of(job, seat);
	size_t count;
	struct recording_flight *flights = flights_of(job, seat, &count);

	of->is_unplaced = !is_placed;
	if (is_placed)
		of->counts.collectives += shift;
	else
		of->counts.signature = 0;
	for (size_t i = 0; i < count; i++) {
		struct op_record *op = &flights[i].op;

		if (!is_call(op))
			continue;
		op->match = is_placed ? op->match + shift : 0;
		op->signature = is_placed ? op->signature : 0;
	}
}

static void align_comm(const struct job *job, const struct job_comm *comm)
{
	struct job_gap_entry list[FLIGHTS_TRIED];
	uint32_t reference = choose_reference(job, comm);
	bool has_gaps = comm_of(job, reference)->counts.missed > 0;
	size_t used = list_flights(job, reference, list);

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		uint64_t shift = 0;
		bool is_placed;

		if (seat == reference || (!has_gaps && comm_of(job, seat)->counts.missed == 0))
			continue;
		is_placed = find_shift(job, seat, list, used, &shift);
		shift_seat(job, seat, shift, is_placed);
	}
}

/* The last collective that cannot end without all ranks, and ended somewhere. */
static uint64_t last_done(const struct job *job, const struct job_comm *comm)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		size_t count;
		const struct recording_flight *flights = flights_of(job, comm->seats[i], &count);

		for (size_t j = 0; j < count; j++) {
			const struct op_record *op = &flights[j].op;

			if (is_call(op) && op->state == OP_DONE && op->match > last &&
			    meet_is_synchronising(op->function) &&
			    !(op->flags & OP_STAMPS_UNTRUSTED))
				last = op->match;
		}
	}
	return last;
}

/* The last collective that a seat recorded, by its count or by what is in flight. */
static uint64_t last_called(const struct job *job, uint32_t seat)
{
	uint64_t last = comm_of(job, seat)->counts.collectives;
	size_t count;
	const struct recording_flight *flights = flights_of(job, seat, &count);

	for (size_t i = 0; i < count; i++)
		if (is_call(&flights[i].op) && flights[i].op.match > last)
			last = flights[i].op.match;
	return last;
}

/* Who has not recorded what ended elsewhere has made these calls all the same. */
static void mark_unseen(const struct job *job, const struct job_comm *comm)
{
	uint64_t last = last_done(job, comm);

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		struct recording_comm *of = comm_of(job, comm->seats[i]);

		/* Its first call after a gap has the numbers from before, until NCCL tells its own. */
		if (of->has_counts && last >= UNSEEN_LEAST &&
		    last_called(job, comm->seats[i]) <= last - UNSEEN_LEAST)
			shift_seat(job, comm->seats[i], 0, false);
	}
}

void job_align_flights(struct job *job)
{
	for (size_t c = 0; c < job->comm_count; c++) {
		struct job_comm *comm = &job->comms[c];

		for (uint32_t i = 0; i < comm->seat_count; i++) {
			comm_of(job, comm->seats[i])->is_unplaced = false;
			comm->missed += comm_of(job, comm->seats[i])->counts.missed;
		}
		if (comm->hash == 0 || comm->seat_count < 2)
			continue;
		if (comm->missed > 0)
			align_comm(job, comm);
		mark_unseen(job, comm);
	}
}

/* ---- what is recorded --------------------------------------------------------------------------- */

struct listing {
	struct job_gaps *gaps;
	size_t process;
};

static uint64_t row_key(const struct job *job, const struct job_seat *seat,
			const struct op_batch *batch, uint32_t row)
{
	uint64_t kind = batch->column[OP_WORD_KIND][row];
	uint64_t state = batch->column[OP_WORD_STATE][row];
	const struct comm_info *info = &comm_of(job, (uint32_t)(seat - job->seats))->info;

	return key_of((uint8_t)op_kind_names(kind), op_state_flags(state),
		      batch->column[OP_WORD_NCCL_SEQUENCE][row],
		      op_state_state(state) != OP_ISSUED && op_state_state(state) != OP_CAPTURED,
		      info->interface);
}

static bool list_add(struct job_gap_comm *of, uint64_t key, uint64_t match)
{
	if (of->count == of->room) {
		size_t room = of->room ? 2 * of->room : 1024;
		void *grown = realloc(of->list, room * sizeof(*of->list));

		if (grown == NULL)
			return false;
		of->list = grown;
		of->room = room;
	}
	of->list[of->count++] = (struct job_gap_entry){ key, match };
	return true;
}

static bool list_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	const struct listing *listing = context;
	struct job_gaps *gaps = listing->gaps;
	const struct job *job = gaps->job;
	const struct job_seat *seat = NULL;

	(void)place;
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint32_t id = op_kind_comm(batch->column[OP_WORD_KIND][row]);
		uint64_t match = batch->column[OP_WORD_MATCH][row], key;

		if (seat == NULL || seat->comm_id != id)
			seat = job_seat(job, listing->process, id);
		if (seat == NULL || match == 0 || job->comms[seat->comm].missed == 0 ||
		    gaps->comms[seat->comm].reference != (uint32_t)(seat - job->seats) ||
		    gaps->comms[seat->comm].count >= ENTRIES_MAX)
			continue;
		key = row_key(job, seat, batch, row);
		if (key != 0 && !list_add(&gaps->comms[seat->comm], key, match))
			gaps->status = ERR_NO_SPACE;
	}
	return gaps->status == OK;
}

static bool is_referred_to(const struct job_gaps *gaps, size_t process)
{
	for (size_t c = 0; c < gaps->job->comm_count; c++)
		if (gaps->job->comms[c].missed > 0 &&
		    gaps->job->seats[gaps->comms[c].reference].process == process)
			return true;
	return false;
}

enum status job_gaps_init(struct job_gaps *gaps, const struct job *job)
{
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_STATE) |
			       OP_WORD_BIT(OP_WORD_MATCH) | OP_WORD_BIT(OP_WORD_NCCL_SEQUENCE);
	bool has_any = false;

	*gaps = (struct job_gaps){ .job = job };
	for (size_t c = 0; c < job->comm_count; c++)
		has_any |= job->comms[c].missed > 0;
	if (!has_any)
		return OK;
	gaps->comms = calloc(job->comm_count, sizeof(*gaps->comms));
	if (gaps->comms == NULL)
		return ERR_NO_SPACE;
	for (size_t c = 0; c < job->comm_count; c++)
		if (job->comms[c].missed > 0)
			gaps->comms[c].reference = choose_reference(job, &job->comms[c]);
	for (size_t p = 0; p < job->recording->count && gaps->status == OK; p++) {
		struct listing listing = { gaps, p };
		enum status status = OK;

		if (is_referred_to(gaps, p))
			status = recording_each_batch(job->recording->processes[p], words,
						      list_batch, &listing, NULL);
		if (status != OK)
			gaps->status = status;
	}
	for (size_t c = 0; c < job->comm_count; c++)
		if (gaps->comms[c].count > 1)
			qsort(gaps->comms[c].list, gaps->comms[c].count,
			      sizeof(*gaps->comms[c].list), by_key);
	return gaps->status;
}

void job_gaps_release(struct job_gaps *gaps)
{
	for (size_t c = 0; gaps->comms != NULL && c < gaps->job->comm_count; c++)
		free(gaps->comms[c].list);
	free(gaps->comms);
	free(gaps->match);
	free(gaps->signature);
	*gaps = (struct job_gaps){ .job = NULL };
}

uint32_t job_gaps_words(const struct job_gaps *gaps)
{
	return gaps->comms != NULL ? OP_WORD_BIT(OP_WORD_NCCL_SEQUENCE) : 0;
}

static bool make_room(struct job_gaps *gaps, uint32_t rows)
{
	if (gaps->room >= rows)
		return true;
	free(gaps->match);
	free(gaps->signature);
	gaps->match = malloc(rows * sizeof(*gaps->match));
	gaps->signature = malloc(rows * sizeof(*gaps->signature));
	gaps->room = gaps->match && gaps->signature ? rows : 0;
	return gaps->room > 0;
}

const struct op_batch *job_gaps_batch(struct job_gaps *gaps, size_t process,
				      const struct op_batch *batch, struct op_batch *copy)
{
	const struct job *job = gaps->job;
	const struct job_seat *seat = NULL;

	if (gaps->comms == NULL || batch->rows == 0)
		return batch;
	if (!make_room(gaps, batch->rows)) {
		gaps->status = ERR_NO_SPACE;
		return batch;
	}
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint64_t kind = batch->column[OP_WORD_KIND][row];
		const struct job_gap_comm *of;
		const struct job_gap_entry *same;

		gaps->match[row] = batch->column[OP_WORD_MATCH][row];
		gaps->signature[row] = batch->column[OP_WORD_SIGNATURE][row];
		if (seat == NULL || seat->comm_id != op_kind_comm(kind))
			seat = job_seat(job, process, op_kind_comm(kind));
		if (seat == NULL || job->comms[seat->comm].missed == 0 ||
		    !op_is_collective((uint8_t)op_kind_names(kind)))
			continue;
		of = &gaps->comms[seat->comm];
		same = entry_find(of->list, of->count, row_key(job, seat, batch, row));
		gaps->match[row] = same != NULL ? same->match : 0;
		gaps->signature[row] = 0;
	}
	*copy = *batch;
	copy->column[OP_WORD_MATCH] = gaps->match;
	copy->column[OP_WORD_SIGNATURE] = gaps->signature;
	return copy;
}
