/*
 * What was in flight when a trace ended of whose process no region is left. A recorder writes what is
 * finished; who writes down one moment (a snapshot, a simulation of a job that hangs) puts what is in
 * flight behind it, with the state it has.
 *
 * One walk, block by block. Per communicator it keeps what is open and the last calls that are done, and
 * drops what a later one proves to be over:
 *
 *	calls of comm 1		open: 41 running, 42 launched	last: 37 38 39 40
 *	calls of comm 2		open: -				last: 8 9
 */
#include <stdlib.h>
#include <string.h>

#include "base/list_grow.h"
#include "recording/recording_flights.h"
#include "recording/recording_load.h"

enum {
	/* No recorder has more live slots than the second. */
	OPEN_PER_COMM = 1024,
	OPEN_MAX = 16384,
	ROW_NONE = -1,
};

/* Calls of one communicator. */
struct calls {
	uint32_t comm;
	bool is_over;		/* it was finalized: its last calls say nothing any more */
	struct op_record *open; /* in the order in which they were met */
	size_t open_count;
	uint64_t lowest;	/* number of an open one that a later call may prove over */
	struct op_record *last; /* the n-th one that is done stands at n % RECORDING_LAST_CALLS */
	uint64_t done;
	int32_t rows[RECORDING_LAST_CALLS]; /* of the batch at hand, not yet copied to last */
	bool is_touched;
};

struct search {
	const struct recording_process *process;
	struct calls *comms; /* as process->comms, and one more for all that are not there */
	size_t count;
	size_t at; /* where the last one was found */
	uint32_t *touched;
	size_t touched_count;
	size_t open_count;
	enum status status;
};

static void read_row(const struct op_batch *batch, uint32_t row, struct op_record *op)
{
	uint64_t words[OP_RECORD_WORDS];

	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
		words[word] = batch->column[word][row];
	memcpy(op, words, sizeof(*op));
}

static struct calls *calls_of(struct search *search, uint32_t id)
{
	const struct recording_comm *comm;

	if (search->comms[search->at].comm == id)
		return &search->comms[search->at];
	comm = recording_comm(search->process, id);
	search->at = comm ? (size_t)(comm - search->process->comms) : search->count - 1;
	return &search->comms[search->at];
}

static bool is_open(uint8_t state)
{
	return state == OP_ISSUED || state == OP_LAUNCHED || state == OP_RUNNING;
}

/* Operations of a communicator run in order: what came before one that is done is over, or shows nothing
 * of its end. But for those that were seen to run. */
static void drop_before(struct search *search, struct calls *calls, uint64_t number)
{
	size_t kept = 0;

	if (calls->lowest >= number)
		return;
	calls->lowest = UINT64_MAX;
	for (size_t i = 0; i < calls->open_count; i++) {
		const struct op_record *op = &calls->open[i];

		if (op->number < number && op->state != OP_RUNNING)
			continue;
		if (op->state != OP_RUNNING && op->number < calls->lowest)
			calls->lowest = op->number;
		calls->open[kept++] = *op;
	}
	search->open_count -= calls->open_count - kept;
	calls->open_count = kept;
}

/* When there are too many, the older half goes of those that were not seen to run: nobody can tell whether
 * they are over. */
static void make_room(struct search *search, struct calls *calls)
{
	size_t idle = 0, gone = 0, kept = 0, most;

	for (size_t i = 0; i < calls->open_count; i++)
		idle += calls->open[i].state != OP_RUNNING;
	most = idle > 0 ? (idle + 1) / 2 : (calls->open_count + 1) / 2;
	for (size_t i = 0; i < calls->open_count; i++) {
		bool may_go = idle == 0 || calls->open[i].state != OP_RUNNING;

		if (may_go && gone < most)
			gone++;
		else
			calls->open[kept++] = calls->open[i];
	}
	calls->open_count -= gone;
	search->open_count -= gone;
}

static bool take_open(struct search *search, const struct op_batch *batch, uint32_t row)
{
	struct calls *calls = calls_of(search, op_kind_comm(batch->column[OP_WORD_KIND][row]));
	struct op_record *op;

	if (calls->open_count == OPEN_PER_COMM ||
	    (search->open_count == OPEN_MAX && calls->open_count > 1))
		make_room(search, calls);
	if (search->open_count == OPEN_MAX)
		return true;
	if (!list_grow(&calls->open, calls->open_count, sizeof(*calls->open))) {
		search->status = ERR_NO_SPACE;
		return false;
	}
	op = &calls->open[calls->open_count++];
	search->open_count++;
	read_row(batch, row, op);
	if (op->state != OP_RUNNING && op->number < calls->lowest)
		calls->lowest = op->number;
	return true;
}

static void take_done(struct search *search, const struct op_batch *batch, uint32_t row)
{
	struct calls *calls = calls_of(search, op_kind_comm(batch->column[OP_WORD_KIND][row]));

	/* Of strangers nobody knows which communicator is which. */
	if (calls->comm == 0)
		return;
	drop_before(search, calls, batch->column[OP_WORD_NUMBER][row]);
	if (calls->is_over)
		return;
	calls->rows[calls->done++ % RECORDING_LAST_CALLS] = (int32_t)row;
	if (!calls->is_touched)
		search->touched[search->touched_count++] = (uint32_t)search->at;
	calls->is_touched = true;
}

/* The batch's columns are about to go. */
static bool keep_last(struct search *search, const struct op_batch *batch)
{
	for (size_t i = 0; i < search->touched_count; i++) {
		struct calls *calls = &search->comms[search->touched[i]];

		if (calls->last == NULL)
			calls->last = calloc(RECORDING_LAST_CALLS, sizeof(*calls->last));
		if (calls->last == NULL) {
			search->status = ERR_NO_SPACE;
			return false;
		}
		for (unsigned int j = 0; j < RECORDING_LAST_CALLS; j++) {
			if (calls->rows[j] != ROW_NONE)
				read_row(batch, (uint32_t)calls->rows[j], &calls->last[j]);
			calls->rows[j] = ROW_NONE;
		}
		calls->is_touched = false;
	}
	search->touched_count = 0;
	return true;
}

static bool take_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct search *search = context;

	(void)place;
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint8_t state = op_state_state(batch->column[OP_WORD_STATE][row]);

		if (state == OP_DONE)
			take_done(search, batch, row);
		else if (is_open(state) && !take_open(search, batch, row))
			return false;
	}
	return keep_last(search, batch);
}

static enum status search_init(struct search *search, const struct recording_process *process)
{
	*search = (struct search){ .process = process, .count = process->comm_count + 1 };
	search->comms = calloc(search->count, sizeof(*search->comms));
	search->touched = calloc(search->count, sizeof(*search->touched));
	if (search->comms == NULL || search->touched == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < search->count; i++) {
		struct calls *calls = &search->comms[i];

		calls->lowest = UINT64_MAX;
		for (unsigned int j = 0; j < RECORDING_LAST_CALLS; j++)
			calls->rows[j] = ROW_NONE;
		if (i == process->comm_count)
			break;
		calls->comm = process->comms[i].info.id;
		calls->is_over = process->comms[i].info.finalize_ns != 0;
	}
	return OK;
}

static void search_release(struct search *search)
{
	for (size_t i = 0; search->comms != NULL && i < search->count; i++) {
		free(search->comms[i].open);
		free(search->comms[i].last);
	}
	free(search->comms);
	free(search->touched);
}

static struct recording_flight flight_of(const struct op_record *op)
{
	struct recording_flight flight = { .op = *op };

	if (op->kernels_started > op->kernels_stopped)
		flight.open_children = (uint32_t)(op->kernels_started - op->kernels_stopped);
	if (op->proxies_started > op->proxies_stopped)
		flight.open_children += (uint32_t)(op->proxies_started - op->proxies_stopped);
	if (op->state == OP_DONE)
		flight.open_children = 0;
	return flight;
}

static enum status make_flights(const struct search *search, struct recording_process *process)
{
	size_t most = search->open_count, count = 0;
	struct recording_flight *flights;

	for (size_t i = 0; i < search->count; i++)
		most += search->comms[i].last != NULL ? RECORDING_LAST_CALLS : 0;
	if (most == 0)
		return OK;
	flights = calloc(most, sizeof(*flights));
	if (flights == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < search->count; i++) {
		const struct calls *calls = &search->comms[i];

		for (size_t j = 0; j < calls->open_count; j++)
			flights[count++] = flight_of(&calls->open[j]);
		for (size_t j = 0; calls->last != NULL && j < RECORDING_LAST_CALLS; j++)
			if (calls->last[j].number != 0)
				flights[count++] = flight_of(&calls->last[j]);
	}
	process->flights = flights;
	process->flight_count = count;
	recording_flights_sort(process);
	recording_flights_unique(process);
	return OK;
}

/* One that ended cleanly has nothing in flight, and of one that was read from a region, or from a snapshot,
 * it is known. */
static bool is_searched(const struct recording_process *process)
{
	return process->region == NULL && process->foreign == NULL && process->file_count > 0 &&
	       process->flight_count == 0 && process->life != RECORDING_ENDED;
}

static enum status find_in(struct recording_process *process)
{
	enum status status = OK;
	struct search search;

	status = search_init(&search, process);
	if (status == OK)
		status = recording_each_batch(process, OP_WORDS_ALL, take_batch, &search, NULL);
	if (status == OK)
		status = search.status;
	if (status == OK)
		status = make_flights(&search, process);
	if (status == OK && search.open_count > 0)
		status = recording_flights_details(process);
	search_release(&search);
	return status;
}

enum status recording_find_flights(struct recording *recording)
{
	enum status status = OK;

	for (size_t i = 0; i < recording->count && status != ERR_NO_SPACE; i++) {
		enum status found;

		if (!is_searched(recording->processes[i]))
			continue;
		found = find_in(recording->processes[i]);
		if (found != OK)
			status = found;
	}
	return status;
}
