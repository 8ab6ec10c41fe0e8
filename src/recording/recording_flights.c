/* Operations in flight: their order, their details, and how to find them without a region. */
#include "recording/recording.h"
#include "recording/recording_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/search.h"
#include "common/status.h"

enum { RECORDING_LAST_CALLS = 4 };

int recording_compare_proxies(const void *one, const void *other)
{
	const struct region_proxy *a = &((const struct recording_proxy *)one)->proxy;
	const struct region_proxy *b = &((const struct recording_proxy *)other)->proxy;

	return ORDER(a->channel, b->channel) ?:
	       ORDER(a->peer, b->peer) ?:
	       ORDER(b->flags & PROXY_IS_SEND, a->flags & PROXY_IS_SEND);
}

static int compare_flights(const void *one, const void *other)
{
	const struct op_record *a = &((const struct recording_flight *)one)->op;
	const struct op_record *b = &((const struct recording_flight *)other)->op;

	return ORDER(a->comm, b->comm) ?: ORDER(a->number, b->number) ?: ORDER(a->state, b->state);
}

void recording_flight_clean(struct op_record *op)
{
	if (!(op->flags & OP_FLAG_CUDA_EVENT) || op->gpu_stop_ns != 0 ||
	    (op->state != OP_LAUNCHED && op->state != OP_RUNNING))
		op->flags &= ~(uint32_t)OP_FLAG_SEEN_OPEN;
}

void recording_flights_sort(struct recording_process *process)
{
	for (size_t i = 0; i < process->flight_count; i++)
		if (process->flights[i].proxy_count > 1)
			qsort(process->flights[i].proxies, process->flights[i].proxy_count,
			      sizeof(struct recording_proxy), recording_compare_proxies);
	if (process->proxy_count > 1)
		qsort(process->proxies, process->proxy_count, sizeof(*process->proxies),
		      recording_compare_proxies);
	if (process->flight_count > 1)
		qsort(process->flights, process->flight_count, sizeof(*process->flights),
		      compare_flights);
}

void recording_flights_unique(struct recording_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->flight_count; i++) {
		const struct op_record *op = &process->flights[i].op, *next = op;

		if (i + 1 < process->flight_count)
			next = &process->flights[i + 1].op;
		/* The one that is further on comes later. */
		if (next == op || next->comm != op->comm || next->number != op->number)
			process->flights[kept++] = process->flights[i];
	}
	process->flight_count = kept;
}

/* The flight with this number in the sorted list; NULL: none. */
static struct recording_flight *recording_flights_at(const struct recording_process *process,
						     uint32_t comm, uint64_t number)
{
	size_t at = SEARCH_FIRST(i, process->flight_count,
				 process->flights[i].op.comm > comm ||
					 (process->flights[i].op.comm == comm &&
					  process->flights[i].op.number >= number));

	if (at < process->flight_count && process->flights[at].op.comm == comm &&
	    process->flights[at].op.number == number)
		return &process->flights[at];
	return NULL;
}

/*
 * From details back to what a region would show. Sorted by sequence, the details of one proxy
 * operation are adjacent:
 *
 *	PROXY  queued, first transfer, -, stopped  one proxy operation
 *	STEP   posted, ready, sent, done           one of its transfers; done 0: it is open
 *	STEP   ...
 *
 * Transfers finish in order, so those before the first open one are done. The last stamp that is
 * not 0 gives the state of a transfer.
 */

/*
 * Of a process at one moment: 4096 proxy operations with eight transfers each, and their kernels.
 */
enum { DETAILS_MAX = 1 << 16 };

struct gather {
	struct recording_process *process;
	struct op_detail *details;
	size_t count;
	enum status status;
};

static bool is_foreign(const struct op_detail *detail)
{
	return detail->flags & OP_DETAIL_IS_FOREIGN || detail->comm == 0 || detail->number == 0;
}

static void note_kernel(struct recording_flight *flight, const struct op_detail *detail)
{
	uint64_t bit = UINT64_C(1) << detail->channel % 64;

	flight->started[detail->channel / 64] |= bit;
	if (detail->time_ns[1] != 0 || detail->time_ns[3] != 0 || detail->flags & OP_DETAIL_IS_OVER)
		flight->stopped[detail->channel / 64] |= bit;
}

/*
 * Is it about this moment? Mode full also has the details of everything that is over. A snapshot
 * does not, but it has proxy operations with unknown owners.
 */
static bool is_of_now(const struct recording_process *process, const struct op_detail *detail,
		      const struct recording_flight *flight)
{
	if (process->is_snapshot)
		return flight != NULL || detail->kind != OP_DETAIL_KERNEL;
	if (is_foreign(detail))
		return detail->kind != OP_DETAIL_KERNEL &&
		       (detail->time_ns[3] == 0 || detail->flags & OP_DETAIL_IS_OVER);
	return flight != NULL && flight->op.state != OP_DONE;
}

static bool take_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	struct gather *gather = context;
	struct recording_flight *flight = NULL;

	(void)place;
	if (!is_foreign(detail))
		flight = recording_flights_at(gather->process, detail->comm, detail->number);
	if (!is_of_now(gather->process, detail, flight))
		return true;
	if (detail->kind == OP_DETAIL_KERNEL) {
		note_kernel(flight, detail);
		return true;
	}
	if (gather->count == DETAILS_MAX)
		return true;
	if (!list_grow(&gather->details, gather->count, sizeof(*gather->details))) {
		gather->status = ERR_NO_SPACE;
		return false;
	}
	gather->details[gather->count++] = *detail;
	return true;
}

/* Compare connections: 0 for the same. */
static int compare_owners(const struct op_detail *a, const struct op_detail *b)
{
	const uint16_t mask = OP_DETAIL_IS_SEND | OP_DETAIL_IS_FOREIGN;

	return ORDER(a->comm, b->comm) ?:
	       ORDER(a->number, b->number) ?:
	       ORDER(a->origin_pid, b->origin_pid) ?:
	       ORDER(a->channel, b->channel) ?:
	       ORDER((uint32_t)a->peer, (uint32_t)b->peer) ?:
	       ORDER(a->flags & mask, b->flags & mask);
}

static int compare_details(const void *one, const void *other)
{
	const struct op_detail *a = one, *b = other;

	return compare_owners(a, b) ?: ORDER(a->sequence, b->sequence);
}

static void keep_later(uint64_t *latest, uint64_t ns)
{
	if (ns > *latest)
		*latest = ns;
}

static void fill_proxy(struct region_proxy *proxy, const struct op_detail *detail)
{
	proxy->comm = detail->comm;
	proxy->number = detail->number;
	proxy->peer = detail->peer;
	proxy->origin_pid = (int32_t)detail->origin_pid;
	proxy->channel = detail->channel;
	proxy->flags |= (uint8_t)(detail->flags & (PROXY_IS_SEND | PROXY_IS_FOREIGN));
	if (detail->kind != OP_DETAIL_PROXY)
		return;
	proxy->steps = detail->step;
	proxy->start_ns = detail->time_ns[0];
	proxy->active_ns = detail->time_ns[1];
	proxy->bytes = detail->bytes;
	keep_later(&proxy->since_ns, detail->time_ns[1]);
	if (detail->time_ns[1] != 0)
		proxy->flags |= PROXY_IN_PROGRESS;
}

/* NCCL's numbers of the three states, sending and receiving. */
static uint8_t step_state(const struct op_detail *detail)
{
	static const uint8_t states[2][3] = { { 10, 11, 12 }, { 8, 20, 9 } };
	const uint8_t *of = states[detail->flags & OP_DETAIL_IS_SEND ? 1 : 0];
	uint8_t said = (uint8_t)((detail->flags & OP_DETAIL_STATE) >> 8);

	if ((said >= 8 && said <= 12) || said == 20)
		return said;
	for (unsigned int i = 3; i-- > 0;)
		if (detail->time_ns[i] != 0)
			return of[i];
	return 0;
}

static void add_step(struct recording_proxy *to, const struct op_detail *detail)
{
	struct region_step step = { .step_plus_1 = (uint32_t)detail->step + 1,
				    .state = step_state(detail),
				    .bytes = detail->bytes };
	unsigned int at = to->step_count;

	memcpy(step.time_ns, detail->time_ns, sizeof(step.time_ns));
	for (unsigned int i = 0; i < 4; i++)
		keep_later(&to->proxy.since_ns, detail->time_ns[i]);
	if (detail->flags & OP_DETAIL_IS_OVER) {
		to->proxy.done = (uint32_t)detail->step + 1;
		return;
	}
	if (detail->time_ns[3] != 0) {
		to->proxy.done++;
		return;
	}
	if (step.state == 0 || detail->step < 0 || at == WINDOW_STEPS)
		return;
	for (; at > 0 && to->steps[at - 1].step_plus_1 > step.step_plus_1; at--)
		to->steps[at] = to->steps[at - 1];
	to->steps[at] = step;
	to->step_count++;
}

/* Derive the rest from the transfers. */
static void complete_proxy(struct recording_proxy *of, bool is_done_known)
{
	struct region_proxy *proxy = &of->proxy;

	if (!is_done_known && of->step_count > 0 && of->steps[0].step_plus_1 - 1 > proxy->done)
		proxy->done = of->steps[0].step_plus_1 - 1;
	proxy->posted = proxy->done + of->step_count;
	proxy->transmitted = proxy->done;
	for (unsigned int i = 0; i < of->step_count; i++) {
		const struct region_step *step = &of->steps[i];

		proxy->open[(step->step_plus_1 - 1) % WINDOW_STEPS] = *step;
		proxy->transmitted += step->state == 9 || step->state == 11 || step->state == 12;
	}
}

/* Read one proxy operation; returns how many details were used. */
static size_t read_proxy(const struct op_detail *details, size_t count, struct recording_proxy *to,
			 bool *is_stopped)
{
	bool is_done_known = false, has_proxy = false;
	size_t taken = 0;

	memset(to, 0, sizeof(*to));
	*is_stopped = false;
	for (; taken < count && compare_owners(&details[0], &details[taken]) == 0; taken++) {
		const struct op_detail *detail = &details[taken];

		if (detail->kind == OP_DETAIL_PROXY && has_proxy)
			break;
		/* Finished transfers come before their proxy operation if that is finished, too. */
		if (detail->kind == OP_DETAIL_PROXY && taken > 0 && detail->time_ns[3] == 0)
			break;
		if (detail->kind == OP_DETAIL_PROXY || taken == 0)
			fill_proxy(&to->proxy, detail);
		if (detail->kind == OP_DETAIL_PROXY) {
			has_proxy = true;
			*is_stopped = detail->time_ns[3] != 0;
		}
		if (detail->kind == OP_DETAIL_STEP) {
			add_step(to, detail);
			is_done_known |= detail->flags & OP_DETAIL_IS_OVER;
		}
	}
	complete_proxy(to, is_done_known);
	return taken;
}

static enum status keep_proxy(struct recording_process *process, const struct op_detail *detail,
			      const struct recording_proxy *proxy)
{
	struct recording_proxy **list = &process->proxies;
	struct recording_flight *flight = NULL;
	size_t *count = &process->proxy_count;

	if (!is_foreign(detail))
		flight = recording_flights_at(process, detail->comm, detail->number);
	if (flight != NULL) {
		list = &flight->proxies;
		count = &flight->proxy_count;
	}
	if (!list_grow(list, *count, sizeof(**list)))
		return ERR_NO_SPACE;
	(*list)[(*count)++] = *proxy;
	return OK;
}

static enum status make_proxies(struct recording_process *process, const struct gather *gather)
{
	enum status status = OK;

	for (size_t at = 0; at < gather->count && status == OK;) {
		const struct op_detail *first = &gather->details[at];
		struct recording_proxy proxy;
		bool is_stopped;

		at += read_proxy(first, gather->count - at, &proxy, &is_stopped);
		/* A region has only those that are running. */
		if (!is_stopped)
			status = keep_proxy(process, first, &proxy);
	}
	recording_flights_sort(process);
	return status;
}

enum status recording_flights_details(struct recording_process *process)
{
	struct gather gather = { .process = process };
	uint64_t details = 0;
	enum status status;

	for (size_t i = 0; i < process->file_count; i++)
		details += process->files[i].details;
	if (details == 0)
		return OK;
	status = recording_each_detail(process, take_detail, &gather, NULL);
	if (status == OK)
		status = gather.status;
	if (gather.count > 1)
		qsort(gather.details, gather.count, sizeof(*gather.details), compare_details);
	if (status == OK)
		status = make_proxies(process, &gather);
	free(gather.details);
	return status;
}

/*
 * What was in flight at the end of a trace if there is no region of the process any more. A
 * recorder writes what is finished; a writer of one moment (a snapshot, a simulation of a hung job)
 * appends what is in flight with its state.
 *
 * One walk, block by block. Per communicator it keeps what is open and the last calls that are
 * done, and drops what a later call proves to be over:
 *
 *	calls of comm 1  open: 41 running, 42 launched  last: 37 38 39 40
 *	calls of comm 2  open: -                        last: 8 9
 */

enum {
	/* No recorder has more live slots than the second. */
	OPEN_PER_COMM = 1024,
	OPEN_MAX = 16384,
	ROW_NONE = -1,
};

/* Calls of one communicator. */
struct calls {
	uint32_t comm;
	bool is_over;		/* it was finalized: its last calls have no meaning any more */
	struct op_record *open; /* in the order they were found */
	size_t open_count;
	uint64_t lowest;	/* number of an open one that a later call may prove over */
	struct op_record *last; /* the n-th done one is at n % RECORDING_LAST_CALLS */
	uint64_t done;
	int32_t rows[RECORDING_LAST_CALLS]; /* of the current batch, not yet copied to last */
	bool is_touched;
};

struct search {
	const struct recording_process *process;
	struct calls *comms; /* like process->comms, plus one for all that are not there */
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

/*
 * Operations of a communicator run in order: what came before one that is done is over, or does not
 * show its end. Except for those that were seen running.
 */
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

/* This one is done, although an earlier record has it open. */
static void drop_itself(struct search *search, struct calls *calls, uint64_t number)
{
	size_t kept = 0;

	for (size_t i = 0; i < calls->open_count; i++)
		if (calls->open[i].number != number)
			calls->open[kept++] = calls->open[i];
	search->open_count -= calls->open_count - kept;
	calls->open_count = kept;
}

/*
 * If there are too many, drop the older half of those that were not seen running: whether they are
 * over is unknown.
 */
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

	/* Unknown communicators share this entry, so nothing follows from the order of their calls. */
	if (calls->comm == 0)
		return;
	drop_before(search, calls, batch->column[OP_WORD_NUMBER][row]);
	if (calls->is_over) {
		drop_itself(search, calls, batch->column[OP_WORD_NUMBER][row]);
		return;
	}
	calls->rows[calls->done++ % RECORDING_LAST_CALLS] = (int32_t)row;
	if (!calls->is_touched)
		search->touched[search->touched_count++] = (uint32_t)search->at;
	calls->is_touched = true;
}

/* The columns of the batch are about to become invalid. */
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

	recording_flight_clean(&flight.op);
	if (op->kernels_started > op->kernels_stopped)
		flight.open_children = (uint32_t)(op->kernels_started - op->kernels_stopped);
	if (op->proxies_started > op->proxies_stopped)
		flight.open_children += (uint32_t)(op->proxies_started - op->proxies_stopped);
	/* Its second CUDA event, which a recorder counts, too. */
	if (flight.op.flags & OP_FLAG_SEEN_OPEN)
		flight.open_children++;
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

/*
 * A process that ended cleanly has nothing in flight, and for one read from a region or a snapshot
 * it is known.
 */
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
