/*
 * Two equations. The first is the recorder's own, from its counters, per communicator:
 *
 *	issued == recorded + in flight
 *
 * (a communicator that found no slot has no counters: its operations are in `lost` alone). The second
 * compares with what can be read, for the whole process:
 *
 *	records finished == records in files and ring + lost on the way
 *
 * A process that was killed, or that runs, may have been caught between two steps: an operation that
 * is being moved from its live slot to the ring counts where it makes the sum come out.
 */
#include "recording/recording_account.h"

#include <stdlib.h>
#include <string.h>

enum { UNDESCRIBED_MAX = 1024 };

struct tally {
	struct recording_account *account;
	const struct recording_process *process;
	uint64_t kept;	       /* finished ones up to process->recorded */
	uint64_t retiring;     /* given from live slots that are being emptied */
	uint64_t undescribed;  /* communicators that only operations name */
	uint64_t last_comm_at; /* where the last one was found: the next is there, mostly */
	enum status status;
};

static int compare_comms(const void *one, const void *other)
{
	const struct recording_account_comm *a = one, *b = other;

	return a->id < b->id ? -1 : a->id > b->id;
}

/* The entry of a communicator. One that nobody described gets an entry of its own; when there are
 * absurdly many of these, they share the one with id 0. NULL: no memory. */
static struct recording_account_comm *comm_of(struct tally *tally, uint32_t id)
{
	struct recording_account *account = tally->account;
	struct recording_account_comm wanted = { .id = id }, *found, *more;

	if (tally->last_comm_at < account->comm_count &&
	    account->comms[tally->last_comm_at].id == id)
		return &account->comms[tally->last_comm_at];
	found = bsearch(&wanted, account->comms, account->comm_count, sizeof(*account->comms),
			compare_comms);
	if (found == NULL && tally->undescribed >= UNDESCRIBED_MAX && id != 0)
		return comm_of(tally, 0);
	if (found == NULL) {
		more = reallocarray(account->comms, account->comm_count + 1,
				    sizeof(*account->comms));
		if (more == NULL)
			return NULL;
		account->comms = more;
		account->comms[account->comm_count++] = wanted;
		tally->undescribed++;
		qsort(account->comms, account->comm_count, sizeof(*account->comms), compare_comms);
		found = bsearch(&wanted, account->comms, account->comm_count,
				sizeof(*account->comms), compare_comms);
	}
	tally->last_comm_at = (uint64_t)(found - account->comms);
	return found;
}

static bool tally_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct tally *tally = context;
	struct recording_account_comm *comm = comm_of(tally, op->comm);

	if (comm == NULL) {
		tally->status = ERR_NO_SPACE;
		return false;
	}
	/* A process that runs has finished more since its counts were read. */
	if (place != RECORDING_IN_LIVE && op->sequence <= tally->process->recorded) {
		comm->kept++;
		tally->kept++;
	}
	return true;
}

static enum status take_counts(struct recording_account *account,
			       const struct recording_process *process)
{
	account->comms = calloc(process->comm_count + 1, sizeof(*account->comms));
	if (account->comms == NULL)
		return ERR_NO_SPACE;
	account->comm_count = process->comm_count;
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct recording_comm *from = &process->comms[i];
		const struct comm_counts *counts = &from->counts;

		account->comms[i] = (struct recording_account_comm){
			.id = from->info.id,
			.has_counts = from->has_counts,
			.issued = counts->issued,
			.recorded = counts->recorded,
			.timed = counts->timed,
			.untrusted = counts->untrusted,
			.captured = counts->captured,
			.replayed = counts->replayed,
			.abandoned = counts->abandoned,
			.untracked = counts->untracked,
		};
	}
	return OK;
}

static int64_t clamp(int64_t value, int64_t most)
{
	return value < 0 ? 0 : value > most ? most : value;
}

/* a - b of numbers that may be anything: exact unless absurd. */
static int64_t difference(uint64_t a, uint64_t b)
{
	const uint64_t most = INT64_MAX / 4;

	if (a >= b)
		return (int64_t)(a - b < most ? a - b : most);
	return -(int64_t)(b - a < most ? b - a : most);
}

static int64_t sum(int64_t a, int64_t b)
{
	int64_t result;

	return __builtin_add_overflow(a, b, &result) ? (a < 0 ? INT64_MIN / 4 : INT64_MAX / 4)
						     : result;
}

/* Live slots, by communicator; those that are being emptied apart. */
static enum status count_flights(struct tally *tally)
{
	const struct recording_process *process = tally->process;

	for (size_t i = 0; i < process->flight_count; i++) {
		struct recording_account_comm *comm;

		/* One that was found in a trace counts as recorded there. */
		if (process->flights[i].op.sequence != 0)
			continue;
		comm = comm_of(tally, process->flights[i].op.comm);
		if (comm == NULL)
			return ERR_NO_SPACE;
		comm->in_flight += !process->flights[i].is_retiring;
		comm->retiring += process->flights[i].is_retiring;
		tally->retiring += process->flights[i].is_retiring;
	}
	return OK;
}

/* Those that are being emptied count as in flight only where they are needed. */
static void settle_comm(struct recording_account_comm *comm)
{
	int64_t open = difference(comm->issued, comm->recorded) - (int64_t)comm->in_flight;

	if (!comm->has_counts)
		return;
	comm->missing = open - clamp(open, (int64_t)comm->retiring);
	comm->in_flight += (uint64_t)clamp(open, (int64_t)comm->retiring);
}

static void sum_up(struct tally *tally)
{
	struct recording_account *account = tally->account;

	for (size_t i = 0; i < account->comm_count; i++) {
		struct recording_account_comm *comm = &account->comms[i];

		settle_comm(comm);
		account->issued += comm->issued;
		account->recorded += comm->recorded;
		account->timed += comm->timed;
		account->untrusted += comm->untrusted;
		account->in_flight += comm->in_flight;
		account->kept += comm->kept;
		account->missing = sum(account->missing, comm->missing);
		account->has_counts |= comm->has_counts;
	}
	/* Counted as issued and not to be read yet: whose, nobody can say. */
	account->missing -= clamp(account->missing, (int64_t)tally->process->filling);
	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		if (op_lost_is_whole(i))
			account->lost_operations += tally->process->lost[i];
		else
			account->lost_details += tally->process->lost[i];
	}
}

/* Finished, and then not readable: what of it is counted as lost? */
static uint64_t lost_on_the_way(const struct recording_process *process)
{
	uint64_t lost = 0;

	for (unsigned int i = LOST_RING_BUSY; i <= LOST_WRITE_ERROR; i++)
		lost += process->lost[i];
	return lost;
}

/* Records that the ring lost to later ones before the trace thread came by, and that nobody was left to
 * count: at most so many. */
static int64_t overwritten_at_most(const struct recording_process *process)
{
	uint64_t safe = process->drained;
	uint64_t slots;

	if (process->region == NULL)
		return 0;
	slots = process->region->header.parts[REGION_RING].count;
	for (size_t i = 0; i < process->file_count; i++)
		if (process->files[i].last_sequence > safe)
			safe = process->files[i].last_sequence;
	if (process->recorded < slots || process->recorded - slots <= safe)
		return 0;
	return difference(process->recorded - slots, safe);
}

static void compare_with_kept(struct tally *tally)
{
	struct recording_account *account = tally->account;
	const struct recording_process *process = tally->process;
	bool is_trace = strcmp(process->mode, "trace") == 0 || strcmp(process->mode, "full") == 0;
	int64_t uncounted;

	/* A snapshot has the last of them, however many there were. */
	account->keeps_all = is_trace && !process->is_snapshot &&
			     (process->file_count > 0 || process->foreign != NULL);
	if (!account->keeps_all)
		return;
	account->unread = difference(process->recorded + account->walk.recovered,
				     tally->kept + lost_on_the_way(process));
	account->unread -= clamp(account->unread, (int64_t)tally->retiring);
	uncounted = clamp(account->unread, overwritten_at_most(process));
	account->unread -= uncounted;
	account->lost_uncounted = (uint64_t)uncounted;
	account->lost_operations += account->lost_uncounted;
}

enum status recording_account(struct recording_account *account,
			      const struct recording_process *process)
{
	struct tally tally = { .account = account, .process = process };
	enum status status;

	*account = (struct recording_account){ .is_moving = process->is_moving };
	status = take_counts(account, process);
	if (status == OK)
		status = recording_each_op(process, tally_op, &tally, &account->walk);
	if (status == OK)
		status = tally.status;
	if (status == OK)
		status = count_flights(&tally);
	if (status != OK)
		return status;
	sum_up(&tally);
	compare_with_kept(&tally);
	account->is_exact = process->has_counts && process->is_final && account->missing == 0 &&
			    account->unread == 0 && account->walk.refused == 0 &&
			    account->walk.damages == 0;
	for (size_t i = 0; i < account->comm_count; i++)
		account->is_exact &= account->comms[i].missing >= 0;
	return OK;
}

void recording_account_release(struct recording_account *account)
{
	free(account->comms);
	account->comms = NULL;
	account->comm_count = 0;
}
