/*
 * Where lateness comes from, in jobs that exchange data by Send and Recv.
 *
 * There a rank is late for a collective because it waited for a peer's Send, or in another communicator: the
 * ranks that arrive late are mostly victims. What a victim waited, it spent inside an operation. Only the
 * origin of the lateness spends more time outside of all operations than its peers, which computes or waits
 * for data:
 *
 *	own(r) = time in which rank r is in no operation at all
 *
 * Peers are the other members of a rank's communicators; it must exceed the median of each. Members of one
 * pipeline are no peers, because stages may differ by design: a stage is compared with other stages only if
 * nothing else is left, and then with its own past. This needs GPU times of nearly all operations; without them
 * the network side of Sends shows a part of that time. No clocks are compared but for the borders of windows.
 */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "analysis/timeline_report.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/text.h"

enum { WINDOWS_LEAST = STRAGGLER_BLOCKS_LEAST, WINDOWS_ENOUGH = 8, RANKS_LEAST = 2 };

static const uint64_t window_least_ns = UINT64_C(1000000000);
static const double timed_least = 0.98; /* of a rank's collectives */
static const double sends_timed_least = 0.98;
static const double share_of_time_that_matters = 0.01;
/* What looks the same: a stage of a pipeline with more work, and a slow host. */
static const double sure_of_stage = 0.6;
static const double steady_share = 0.75;
static const double clear_second = 0.7; /* the next one must be below this share */

/* Ranks of one job over time. */
struct own_table {
	const struct straggler_search *search;
	uint32_t group;
	uint32_t windows;
	uint64_t start_ns; /* common time */
	uint64_t width_ns;
	double *share;	     /* [rank * windows + window]: of the window; NAN unknown */
	double *sure_share;  /* the same without what precedes operations not timed by the GPU */
	bool is_vague;	     /* of some rank, the beginning of these is unknown */
	bool is_by_network;  /* share is from the network side of Sends */
	bool *is_compared;   /* per communicator: its members are peers */
	double *scratch;     /* as many as ranks */
	double *comm_middle; /* [comm * windows + window]: of large communicators */
	bool has_experts;    /* then these are used: */
	double *bytes;	     /* of Sends and Recvs: [rank * windows + window] */
	double *comm_bytes;  /* like comm_middle */
};

/* ---- time outside of operations --------------------------------------------------------------- */

/*
 * What is known about an operation's beginning: the GPU's own time; or, where its timestamps were rejected, the
 * first kernel channel that was seen, unless its network side was seen earlier. Then it is vague.
 */
struct own_span {
	uint64_t start_ns;
	uint64_t end_ns;
	bool is_seen; /* not by the GPU's time; 0 in start_ns: vague */
};

/* Operations that are launched together begin together. */
struct own_launch {
	uint64_t launch_ns;
	uint64_t start_ns;
};

enum { LAUNCHES = 8 }; /* remembered */

struct own_reading {
	const struct own_table *table;
	uint32_t rank;
	struct own_launch launches[LAUNCHES];
	uint32_t next_launch;
	struct own_span *list; /* those that end together are one */
	size_t count;
	uint64_t operations[2]; /* collectives; Sends and Recvs */
	uint64_t timed[2];
	uint64_t vague;
	bool has_seen;
	bool is_sorted;
	bool is_out_of_memory;
};

/* What experts and their tokens exchange, in the window of its end. */
static void add_bytes(const struct own_table *table, uint32_t rank, uint64_t done_ns,
		      uint64_t bytes)
{
	uint64_t at_ns =
		align_ns(table->search->align, table->search->job->ranks[rank].process, done_ns);
	uint64_t window = (at_ns - table->start_ns) / table->width_ns;

	if (at_ns >= table->start_ns && window < table->windows)
		table->bytes[(size_t)rank * table->windows + window] += (double)bytes;
}

static void add_span(struct own_reading *to, const struct own_span *span)
{
	struct own_span *last = to->count > 0 ? &to->list[to->count - 1] : NULL;

	if (last != NULL && last->end_ns == span->end_ns && last->is_seen == span->is_seen) {
		last->start_ns = span->start_ns < last->start_ns ? span->start_ns : last->start_ns;
		return;
	}
	to->is_sorted = to->is_sorted && (last == NULL || last->end_ns <= span->end_ns);
	if (list_grow(&to->list, to->count, sizeof(*to->list)))
		to->list[to->count++] = *span;
	else
		to->is_out_of_memory = true;
}

/* When the GPU began it; 0: none of them has a time. */
static uint64_t launch_start(const struct own_reading *reading, uint64_t launch_ns)
{
	for (uint32_t i = 0; launch_ns > 0 && i < LAUNCHES; i++)
		if (reading->launches[i].launch_ns == launch_ns)
			return reading->launches[i].start_ns;
	return 0;
}

static void note_launch(struct own_reading *reading, uint64_t launch_ns, uint64_t start_ns)
{
	if (launch_start(reading, launch_ns) == 0)
		reading->launches[reading->next_launch++ % LAUNCHES] =
			(struct own_launch){ launch_ns, start_ns };
}

static bool read_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct own_reading *to = context;
	const uint64_t *state = batch->column[OP_WORD_STATE], *done = batch->column[OP_WORD_DONE];
	const uint64_t *start = batch->column[OP_WORD_GPU_START];
	const uint64_t *stop = batch->column[OP_WORD_GPU_STOP];

	(void)place;
	for (uint32_t i = 0; i < batch->rows && !to->is_out_of_memory; i++) {
		uint64_t children = batch->column[OP_WORD_CHILDREN][i];
		uint64_t active_ns = batch->column[OP_WORD_ACTIVE][i];
		uint64_t launch_ns = batch->column[OP_WORD_LAUNCH][i];
		uint8_t function = (uint8_t)op_kind_names(batch->column[OP_WORD_KIND][i]);
		bool is_send = function == OP_SEND || function == OP_RECV;
		bool has_kernel = (uint16_t)children > 0,
		     has_proxy = (uint16_t)(children >> 32) > 0;
		struct own_span span = { .end_ns = done[i] };

		if (is_send && to->table->has_experts && done[i] > 0)
			add_bytes(to->table, to->rank, done[i], batch->column[OP_WORD_BYTES][i]);
		/* What it sends to itself is a copy without a kernel. */
		if (done[i] == 0 || op_state_flags(state[i]) & OP_FLAG_SELF)
			continue;
		to->operations[is_send]++;
		if (op_state_source(state[i]) == OP_TIME_KERNEL_GPU &&
		    stop[i] - start[i] <= done[i])
			span.start_ns = done[i] - (stop[i] - start[i]);
		else if (is_send)
			span.start_ns = launch_start(to, launch_ns);
		else if (has_kernel && active_ns > 0 && active_ns <= done[i])
			span = (struct own_span){ has_proxy ? 0 : active_ns, done[i], true };
		if (span.start_ns == 0 && !span.is_seen)
			continue;
		to->timed[is_send]++;
		to->vague += span.start_ns == 0;
		to->has_seen |= span.is_seen;
		if (is_send)
			note_launch(to, launch_ns, span.start_ns);
		add_span(to, &span);
	}
	return !to->is_out_of_memory;
}

static int by_end(const void *left, const void *right)
{
	const struct own_span *a = left, *b = right;

	return ORDER(a->end_ns, b->end_ns);
}

/* Adds [from, to), or takes it away (by: 1 or -1), in the windows that it is in. */
static void add_time(const struct own_table *table, double *share, uint64_t from, uint64_t to,
		     double by)
{
	uint64_t end_ns = table->start_ns + table->windows * table->width_ns;

	from = from > table->start_ns ? from : table->start_ns;
	to = to < end_ns ? to : end_ns;
	while (from < to) {
		uint64_t window = (from - table->start_ns) / table->width_ns;
		uint64_t border = table->start_ns + (window + 1) * table->width_ns;
		uint64_t until = to < border ? to : border;

		share[window] += by * (double)(until - from) / (double)table->width_ns;
		from = until;
	}
}

/* From the last end backwards: what ends earlier covers only what lies before all of them. A vague beginning
 * is the end of the one before. */
static void fill_shares(const struct own_table *table, uint32_t rank, double *share,
			const struct own_reading *reading, bool is_seen_vague)
{
	const struct align *align = table->search->align;
	uint32_t process = table->search->job->ranks[rank].process;
	uint64_t covered_ns = UINT64_MAX;

	for (uint32_t w = 0; w < table->windows; w++)
		share[w] = 1;
	for (size_t i = reading->count; i-- > 0;) {
		const struct own_span *span = &reading->list[i];
		bool is_vague = span->is_seen && (span->start_ns == 0 || is_seen_vague);
		uint64_t end_ns = span->end_ns < covered_ns ? span->end_ns : covered_ns;
		uint64_t start_ns = span->start_ns;

		if (is_vague)
			start_ns = i > 0 ? reading->list[i - 1].end_ns : end_ns;
		if (start_ns >= end_ns)
			continue;
		add_time(table, share, align_ns(align, process, start_ns),
			 align_ns(align, process, end_ns), -1);
		covered_ns = start_ns;
	}
}

static void fill_rank(struct own_table *table, uint32_t rank, struct own_reading *reading)
{
	size_t first = (size_t)rank * table->windows;

	if ((double)reading->timed[0] < timed_least * (double)reading->operations[0] ||
	    (double)reading->timed[1] < sends_timed_least * (double)reading->operations[1] ||
	    reading->timed[0] + reading->timed[1] == 0)
		return;
	if (!reading->is_sorted)
		qsort(reading->list, reading->count, sizeof(*reading->list), by_end);
	fill_shares(table, rank, &table->share[first], reading, false);
	if (reading->has_seen)
		fill_shares(table, rank, &table->sure_share[first], reading, true);
	else
		memcpy(&table->sure_share[first], &table->share[first],
		       table->windows * sizeof(*table->share));
	table->is_vague |= (double)reading->vague > (1 - timed_least) * (double)reading->timed[0];
}

static enum status read_rank(struct own_table *table, uint32_t rank)
{
	const struct job *job = table->search->job;
	struct own_reading reading = { .table = table, .rank = rank, .is_sorted = true };
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_BYTES) |
			       OP_WORD_BIT(OP_WORD_STATE) | OP_WORD_BIT(OP_WORD_LAUNCH) |
			       OP_WORD_BIT(OP_WORD_ACTIVE) | OP_WORD_BIT(OP_WORD_DONE) |
			       OP_WORD_BIT(OP_WORD_CHILDREN) | OP_WORD_BIT(OP_WORD_GPU_START) |
			       OP_WORD_BIT(OP_WORD_GPU_STOP);

	/* What cannot be read was reported when the report was made. */
	recording_each_batch(job->recording->processes[job->ranks[rank].process], words, read_batch,
			     &reading, NULL);
	if (!reading.is_out_of_memory)
		fill_rank(table, rank, &reading);
	free(reading.list);
	return reading.is_out_of_memory ? ERR_NO_SPACE : OK;
}

/* ---- the same from the network side ----------------------------------------------------------- */

/*
 * Without GPU times, Sends over the network tell when their GPU came: their transfers are posted, and wait until it
 * fills them (send_gpu). So the time from posting to that moment was spent outside of this operation, and unless
 * the rank was in another one, it computed. In a Recv that is not launched together with a Send the rank may be
 * as long as its data has not come; afterwards data waits until the GPU takes it (recv_gpu).
 *
 * Operations within the node do not show: waiting there counts like computing.
 */

enum { SLOTS = 8 /* transfers of a connection that are posted at a time */, SENDS_LEAST = 32 };

struct net_op {
	uint64_t launch_ns; /* common to those that are launched together */
	uint64_t posted_ns;
	uint64_t ready_ns; /* Send: its GPU is there; Recv: data is there */
	uint64_t taken_ns; /* Recv: its GPU is there, at the earliest */
	uint64_t done_ns;
	bool is_send;
};

struct net_reading {
	const struct own_table *table;
	uint32_t rank;
	struct net_op *list;
	size_t count;
	size_t sends;
	bool is_out_of_memory;
};

/* Each of the transfers that are posted first waits as long. */
static uint64_t wait_of_first(uint64_t wait_ns, uint64_t steps, uint64_t connections)
{
	uint64_t slots = connections * SLOTS;

	return wait_ns / (steps < slots ? steps : slots);
}

static bool read_network_batch(const struct op_batch *batch, enum recording_place place,
			       void *context)
{
	struct net_reading *to = context;

	(void)place;
	for (uint32_t i = 0; i < batch->rows; i++) {
		uint8_t function = (uint8_t)op_kind_names(batch->column[OP_WORD_KIND][i]);
		uint64_t connections = (uint16_t)(batch->column[OP_WORD_CHILDREN][i] >> 32);
		uint64_t steps = batch->column[OP_WORD_STEPS][i];
		uint64_t send_steps = (uint32_t)steps, recv_steps = steps >> 32;
		const uint64_t *const *wait = &batch->column[OP_WORD_WAITS];
		struct net_op op = { .launch_ns = batch->column[OP_WORD_LAUNCH][i],
				     .posted_ns = batch->column[OP_WORD_ACTIVE][i],
				     .done_ns = batch->column[OP_WORD_DONE][i],
				     .is_send = function == OP_SEND };

		if ((function == OP_SEND || function == OP_RECV) && to->table->has_experts &&
		    op.done_ns > 0)
			add_bytes(to->table, to->rank, op.done_ns, batch->column[OP_WORD_BYTES][i]);
		if ((function != OP_SEND && function != OP_RECV) || connections == 0 ||
		    op.done_ns == 0 || op.posted_ns == 0 ||
		    (op.is_send ? send_steps : recv_steps) == 0)
			continue;
		if (op.launch_ns == 0)
			op.launch_ns = op.posted_ns;
		op.ready_ns = op.taken_ns =
			op.posted_ns + (op.is_send ? wait_of_first(wait[OP_WAIT_SEND_GPU][i],
								   send_steps, connections)
						   : wait_of_first(wait[OP_WAIT_RECV_NET][i],
								   recv_steps, connections));
		if (!op.is_send)
			op.taken_ns +=
				wait_of_first(wait[OP_WAIT_RECV_GPU][i], recv_steps, connections);
		if (!list_grow(&to->list, to->count, sizeof(*to->list))) {
			to->is_out_of_memory = true;
			return false;
		}
		to->list[to->count++] = op;
		to->sends += op.is_send;
	}
	return true;
}

static int by_launch(const void *left, const void *right)
{
	const struct net_op *a = left, *b = right;

	return ORDER(a->launch_ns, b->launch_ns);
}

/* Where its own time begins or ends, and time in which it is or may be inside of an operation. */
struct net_mark {
	uint64_t ns;
	int8_t own, inside; /* 1 begins, -1 ends */
};

static int by_time(const void *left, const void *right)
{
	const struct net_mark *a = left, *b = right;

	return ORDER(a->ns, b->ns);
}

static size_t add_marks(struct net_mark *marks, size_t count, uint64_t from, uint64_t to,
			int8_t own)
{
	if (from >= to)
		return count;
	marks[count++] = (struct net_mark){ from, own, (int8_t)(1 - own) };
	marks[count++] = (struct net_mark){ to, (int8_t)-own, (int8_t)(own - 1) };
	return count;
}

/* Operations first..end-1 were launched together. At most four marks for each. */
static size_t mark_launch(struct net_mark *marks, size_t count, const struct net_op *first,
			  const struct net_op *end)
{
	struct net_op all = *first;

	for (const struct net_op *op = first; op < end; op++) {
		all.posted_ns = op->posted_ns < all.posted_ns ? op->posted_ns : all.posted_ns;
		all.done_ns = op->done_ns > all.done_ns ? op->done_ns : all.done_ns;
		if (op->is_send && (!all.is_send || op->ready_ns < all.ready_ns))
			all.ready_ns = op->ready_ns;
		all.is_send |= op->is_send;
	}
	if (all.is_send) {
		count = add_marks(marks, count, all.posted_ns, all.ready_ns, 1);
		return add_marks(marks, count, all.ready_ns, all.done_ns, 0);
	}
	for (const struct net_op *op = first; op < end; op++) {
		count = add_marks(marks, count, op->posted_ns, op->ready_ns, 0);
		if (op + 1 == end)
			count = add_marks(marks, count, op->ready_ns, op->taken_ns, 1);
	}
	return count;
}

static void sweep_marks(const struct own_table *table, uint32_t rank, const struct net_mark *marks,
			size_t count)
{
	double *share = &table->share[(size_t)rank * table->windows];
	uint32_t process = table->search->job->ranks[rank].process;
	int64_t own = 0, inside = 0;

	for (uint32_t w = 0; w < table->windows; w++)
		share[w] = 0;
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && own > 0 && inside == 0)
			add_time(table, share,
				 align_ns(table->search->align, process, marks[i - 1].ns),
				 align_ns(table->search->align, process, marks[i].ns), 1);
		own += marks[i].own;
		inside += marks[i].inside;
	}
}

static enum status read_network(struct own_table *table, uint32_t rank)
{
	const struct job *job = table->search->job;
	struct net_reading reading = { .table = table, .rank = rank };
	struct net_mark *marks = NULL;
	size_t count = 0, first = 0;
	enum status status = OK;
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_BYTES) |
			       OP_WORD_BIT(OP_WORD_LAUNCH) | OP_WORD_BIT(OP_WORD_ACTIVE) |
			       OP_WORD_BIT(OP_WORD_DONE) | OP_WORD_BIT(OP_WORD_CHILDREN) |
			       OP_WORD_BIT(OP_WORD_STEPS) |
			       OP_WORD_BIT(OP_WORD_WAITS + OP_WAIT_SEND_GPU) |
			       OP_WORD_BIT(OP_WORD_WAITS + OP_WAIT_RECV_NET) |
			       OP_WORD_BIT(OP_WORD_WAITS + OP_WAIT_RECV_GPU);

	recording_each_batch(job->recording->processes[job->ranks[rank].process], words,
			     read_network_batch, &reading, NULL);
	if (!reading.is_out_of_memory && reading.sends >= SENDS_LEAST)
		marks = calloc(4 * reading.count, sizeof(*marks));
	if (reading.is_out_of_memory || (reading.sends >= SENDS_LEAST && marks == NULL))
		status = ERR_NO_SPACE;
	if (marks != NULL) {
		qsort(reading.list, reading.count, sizeof(*reading.list), by_launch);
		for (size_t i = 1; i <= reading.count; i++)
			if (i == reading.count ||
			    reading.list[i].launch_ns != reading.list[first].launch_ns) {
				count = mark_launch(marks, count, &reading.list[first],
						    &reading.list[i]);
				first = i;
			}
		qsort(marks, count, sizeof(*marks), by_time);
		sweep_marks(table, rank, marks, count);
	}
	free(marks);
	free(reading.list);
	return status;
}

/* ---- the table -------------------------------------------------------------------------------- */

static bool is_known(const struct own_table *table, uint32_t rank)
{
	return table->search->job->ranks[rank].group == table->group &&
	       !isnan(table->share[(size_t)rank * table->windows]);
}

/* Whole iterations: otherwise windows differ by what part of an iteration they have. */
static void cut_windows(struct own_table *table, uint64_t span_ns)
{
	uint64_t least_ns = span_ns / STRAGGLER_BLOCKS, whole_ns = table->search->iteration_ns;

	if (least_ns < window_least_ns)
		least_ns = window_least_ns;
	table->width_ns = whole_ns > 0 ? (least_ns + whole_ns - 1) / whole_ns * whole_ns : least_ns;
	if (table->width_ns * WINDOWS_ENOUGH > span_ns)
		table->width_ns = least_ns;
	table->windows = (uint32_t)(span_ns / table->width_ns);
	if (table->windows > STRAGGLER_BLOCKS)
		table->windows = STRAGGLER_BLOCKS;
	if (whole_ns == 0)
		table->width_ns = span_ns / table->windows;
}

/* The time in which all ranks of the job run; false: too short, or several ranks share a process. */
static bool find_time(struct own_table *table, const struct timeline_rank *ranks)
{
	const struct job *job = table->search->job;
	uint64_t from_ns = 0, until_ns = UINT64_MAX;
	uint32_t count = 0, process = UINT32_MAX;

	for (uint32_t r = 0; r < job->rank_count; r++) {
		if (job->ranks[r].group != table->group)
			continue;
		if (job->ranks[r].process == process || ranks[r].last_ns == 0)
			return false;
		process = job->ranks[r].process;
		from_ns = ranks[r].first_ns > from_ns ? ranks[r].first_ns : from_ns;
		until_ns = ranks[r].last_ns < until_ns ? ranks[r].last_ns : until_ns;
		count++;
	}
	if (count < RANKS_LEAST || until_ns < from_ns + WINDOWS_LEAST * window_least_ns)
		return false;
	table->start_ns = from_ns;
	cut_windows(table, until_ns - from_ns);
	return true;
}

static void own_table_release(struct own_table *table)
{
	free(table->share);
	free(table->sure_share);
	free(table->is_compared);
	free(table->scratch);
	free(table->comm_middle);
	free(table->bytes);
	free(table->comm_bytes);
	*table = (struct own_table){ .search = NULL };
}

static enum status own_table_allocate(struct own_table *table)
{
	const struct job *job = table->search->job;
	size_t cells = job->rank_count * table->windows;

	table->share = calloc(cells + 1, sizeof(*table->share));
	table->sure_share = calloc(cells + 1, sizeof(*table->sure_share));
	table->is_compared = calloc(job->comm_count + 1, sizeof(*table->is_compared));
	table->scratch = calloc(job->rank_count + 1, sizeof(*table->scratch));
	table->comm_middle =
		calloc(job->comm_count * table->windows + 1, sizeof(*table->comm_middle));
	table->bytes = calloc(cells + 1, sizeof(*table->bytes));
	table->comm_bytes =
		calloc(job->comm_count * table->windows + 1, sizeof(*table->comm_bytes));
	if (table->share == NULL || table->sure_share == NULL || table->is_compared == NULL ||
	    table->scratch == NULL || table->comm_middle == NULL || table->bytes == NULL ||
	    table->comm_bytes == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < cells; i++)
		table->sure_share[i] = NAN;
	return OK;
}

/* ---- peers ------------------------------------------------------------------------------------ */

enum { SMALL = 16 }; /* the median of fewer must not contain the rank that is compared with it */

/* The median of the members' shares or bytes; of small communicators without those of one host, or without one
 * rank (UINT32_MAX: none). NAN: nobody is left. */
static double comm_middle(const struct own_table *table, const double *values, uint32_t comm,
			  uint32_t window, uint32_t but_rank, uint32_t but_host)
{
	const struct job *job = table->search->job;
	const struct job_comm *of = &job->comms[comm];
	uint32_t count = 0;

	for (uint32_t i = 0; i < of->seat_count; i++) {
		uint32_t rank = job->seats[of->seats[i]].rank;

		if (rank != but_rank && job->ranks[rank].host != but_host && is_known(table, rank))
			table->scratch[count++] = values[(size_t)rank * table->windows + window];
	}
	return count > 0 ? stats_lower_middle(table->scratch, count) : NAN;
}

/*
 * The time that peers have, for who exchanges as much as this one. An expert computes longer, the more tokens it gets. Half
 * of what a rank sends and receives are its own tokens, which come and go back, and half are those of the others: if
 * it exchanges a tenth more than its peers, it has up to a fifth more tokens, and at most that much more to do.
 */
static double expected_share(const struct own_table *table, double middle, double bytes,
			     double middle_bytes)
{
	if (!table->has_experts || !(middle_bytes > 0))
		return middle;
	return middle * (1 + 2 * fmax(0, bytes / middle_bytes - 1));
}

static void fill_middles(struct own_table *table)
{
	const struct job *job = table->search->job;

	for (uint32_t c = 0; c < job->comm_count; c++)
		for (uint32_t w = 0; table->is_compared[c] && job->comms[c].seat_count > SMALL &&
				     w < table->windows;
		     w++) {
			size_t at = (size_t)c * table->windows + w;

			table->comm_middle[at] =
				comm_middle(table, table->share, c, w, UINT32_MAX, UINT32_MAX);
			if (table->has_experts)
				table->comm_bytes[at] = comm_middle(table, table->bytes, c, w,
								    UINT32_MAX, UINT32_MAX);
		}
}

/* How much longer than its peers in every communicator; false: it has none. *with: the smallest of these. */
static bool rank_excess(const struct own_table *table, uint32_t rank, double *excess,
			uint32_t *with)
{
	const struct job *job = table->search->job;
	double most[STRAGGLER_BLOCKS];

	*with = UINT32_MAX;
	for (uint32_t c = 0; c < job->comm_count; c++) {
		if (!table->is_compared[c] || !job_is_member(job, c, rank))
			continue;
		for (uint32_t w = 0; w < table->windows; w++) {
			size_t at = (size_t)c * table->windows + w;
			bool is_large = job->comms[c].seat_count > SMALL;
			double middle =
				is_large ? table->comm_middle[at]
					 : comm_middle(table, table->share, c, w, rank, UINT32_MAX);
			double bytes = table->comm_bytes[at];

			if (table->has_experts && !is_large)
				bytes = comm_middle(table, table->bytes, c, w, rank, UINT32_MAX);
			middle = expected_share(table, middle,
						table->bytes[(size_t)rank * table->windows + w],
						bytes);
			if (*with == UINT32_MAX || isnan(most[w]) || middle > most[w])
				most[w] = middle;
		}
		if (*with == UINT32_MAX || job->comms[c].seat_count < job->comms[*with].seat_count)
			*with = c;
	}
	for (uint32_t w = 0; *with != UINT32_MAX && w < table->windows; w++)
		excess[w] = table->share[(size_t)rank * table->windows + w] - most[w];
	return *with != UINT32_MAX;
}

static double host_middle(const struct own_table *table, const double *values, uint32_t host,
			  uint32_t window)
{
	const struct job *job = table->search->job;
	uint32_t count = 0;

	for (uint32_t r = 0; r < job->rank_count; r++)
		if (job->ranks[r].host == host && is_known(table, r))
			table->scratch[count++] = values[(size_t)r * table->windows + window];
	return count > 0 ? stats_lower_middle(table->scratch, count) : NAN;
}

/* By the ranks of a communicator on other hosts. */
static double host_expected(const struct own_table *table, uint32_t host, uint32_t comm,
			    uint32_t window)
{
	double middle = comm_middle(table, table->share, comm, window, UINT32_MAX, host);

	if (!table->has_experts)
		return middle;
	return expected_share(table, middle, host_middle(table, table->bytes, host, window),
			      comm_middle(table, table->bytes, comm, window, UINT32_MAX, host));
}

/* Against the members on other hosts of every communicator that it shares with some; without one, against
 * all other hosts (*with is UINT32_MAX). */
static bool host_excess(const struct own_table *table, uint32_t host, const double *middles,
			double *excess, uint32_t *with)
{
	const struct job *job = table->search->job;
	uint32_t w, others = 0;
	double most[STRAGGLER_BLOCKS];

	*with = UINT32_MAX;
	for (w = 0; w < table->windows; w++)
		most[w] = NAN;
	for (uint32_t c = 0; c < job->comm_count; c++) {
		uint32_t here = table->is_compared[c] ? job_members_on(job, c, host) : 0;

		if (here == 0 || here == job->comms[c].seat_count)
			continue;
		for (w = 0; w < table->windows; w++)
			most[w] = fmax(most[w], host_expected(table, host, c, w));
		if (*with == UINT32_MAX || job->comms[c].seat_count < job->comms[*with].seat_count)
			*with = c;
	}
	for (uint32_t h = 0; *with == UINT32_MAX && h < job->host_count; h++) {
		if (h == host || isnan(middles[(size_t)h * table->windows]))
			continue;
		others++;
		for (w = 0; w < table->windows; w++)
			most[w] = fmax(most[w], middles[(size_t)h * table->windows + w]);
	}
	for (w = 0; w < table->windows; w++)
		excess[w] = middles[(size_t)host * table->windows + w] - most[w];
	return *with != UINT32_MAX || others > 0;
}

/* ---- origins ---------------------------------------------------------------------------------- */

/* Experts get different numbers of tokens, for a while: who has more computes longer. */
static bool has_experts(const struct straggler_search *search, uint32_t group)
{
	const struct job *job = search->job;

	for (uint32_t c = 0; c < job->comm_count; c++)
		if (job->comms[c].group == group && search->is_exchange[c])
			return true;
	return false;
}

/* From its first to its last window, nearly always: not one that has more tokens now and then. */
static bool is_steady(const struct own_table *table, const double *excess,
		      const struct straggler_stretch *stretch)
{
	uint32_t first = table->windows, last = 0, on = 0;

	for (uint32_t w = 0; w < table->windows; w++) {
		if (!straggler_is_on(excess[w], stretch))
			continue;
		first = first < w ? first : w;
		last = w;
		on++;
	}
	return on >= steady_share * (last - first + 1);
}

static void take_times(struct straggler *origin, const struct own_table *table,
		       const double *excess, const struct straggler_stretch *stretch)
{
	struct straggler_table blocks = { .blocks = table->windows };
	uint64_t start_ns[STRAGGLER_BLOCKS], end_ns[STRAGGLER_BLOCKS];
	double sum = 0;

	for (uint32_t w = 0; w < table->windows; w++) {
		start_ns[w] = table->start_ns + w * table->width_ns;
		end_ns[w] = start_ns[w] + table->width_ns;
		sum += straggler_is_on(excess[w], stretch) ? excess[w] : 0;
	}
	blocks.start_ns = start_ns;
	blocks.end_ns = end_ns;
	straggler_times(origin, &blocks, excess, stretch);
	origin->own_excess = stretch->typical;
	origin->cost_share = sum / table->windows;
}

/* False: it is not named. */
static bool add_origin(struct straggler_search *search, const struct own_table *table,
		       struct straggler *origin, const double *excess,
		       const struct straggler_stretch *stretch)
{
	const struct job *job = search->job;
	uint32_t others = 0;
	double span_ns = (double)table->width_ns * table->windows;

	for (uint32_t r = 0; r < job->rank_count; r++)
		others += job->ranks[r].group == table->group &&
			  (origin->class == STRAGGLER_SLOW_HOST ? job->ranks[r].host != origin->host
								: r != origin->rank);
	origin->peer = UINT32_MAX;
	origin->channel = -1;
	origin->is_origin = true;
	origin->is_by_network = table->is_by_network;
	origin->confidence = 1 - fmax(stretch->chance, stretch->doubt);
	take_times(origin, table, excess, stretch);
	/* Where only stretches of the time are there, phases of a job, as evaluations are, look like bursts. */
	if (table->is_by_network && job->recording->shown != NULL &&
	    origin->pattern == STRAGGLER_BURSTS)
		return false;
	origin->caused_ns = units_whole(origin->cost_share * span_ns * others);
	origin->share_of_ns = 1 / (span_ns * (others + 1));
	straggler_add(search, origin);
	return true;
}

static uint32_t comm_of_host(const struct job *job, uint32_t group, uint32_t host)
{
	uint32_t best = 0, most = 0;

	for (uint32_t c = 0; c < job->comm_count; c++)
		if (job->comms[c].group == group && job->comms[c].seat_count > most &&
		    job_members_on(job, c, host) > 0) {
			best = c;
			most = job->comms[c].seat_count;
		}
	return best;
}

/* A host is slow if it stands out from its peers. Asynchronous Sends cover some compute of the ranks that wait
 * for it, and not of others: those stand out a little, too. So only the one that stands out most is named. */
struct own_best {
	uint32_t host; /* UINT32_MAX none */
	struct straggler_stretch stretch;
	double second; /* what the next one is above its peers */
};

static void add_host(struct straggler_search *search, const struct own_table *table,
		     const struct own_best *best, uint32_t with, const double *excess)
{
	struct straggler origin = {
		.class = STRAGGLER_SLOW_HOST, .rank = UINT32_MAX, .host = best->host, .comm = with
	};
	struct straggler *added;

	if (with == UINT32_MAX)
		origin.comm = comm_of_host(search->job, table->group, best->host);
	if (!add_origin(search, table, &origin, excess, &best->stretch) || search->status != OK)
		return;
	added = &search->found[search->count - 1];
	/* From the beginning, it may have more work by design. */
	added->is_stage = with == UINT32_MAX &&
			  (added->pattern == STRAGGLER_ALWAYS || added->pattern == STRAGGLER_UNTIL);
	if (added->is_stage || best->second > clear_second * best->stretch.typical)
		added->confidence *= sure_of_stage;
}

/*
 * Stages that have no peers, by the network side: how much time shows there depends on how Sends and Recvs alternate
 * in a stage. So each is compared with its own past, and by how much more it changed than the others.
 */
static void stage_excess(const struct own_table *table, const double *middles, double *excess)
{
	uint32_t hosts = table->search->job->host_count, count;
	double past[STRAGGLER_BLOCKS], others;

	for (uint32_t h = 0; h < hosts; h++) {
		const double *of = &middles[(size_t)h * table->windows];

		memcpy(past, of, table->windows * sizeof(*past));
		stats_sort(past, table->windows);
		for (uint32_t w = 0; w < table->windows; w++)
			excess[(size_t)h * table->windows + w] = of[w] - past[table->windows / 4];
	}
	for (uint32_t w = 0; w < table->windows; w++) {
		count = 0;
		for (uint32_t h = 0; h < hosts; h++)
			if (!isnan(excess[(size_t)h * table->windows + w]))
				table->scratch[count++] = excess[(size_t)h * table->windows + w];
		others = count > 0 ? stats_lower_middle(table->scratch, count) : NAN;
		for (uint32_t h = 0; h < hosts; h++)
			excess[(size_t)h * table->windows + w] -= others;
	}
}

/* excess: [host * windows + window] */
static void judge_hosts(struct straggler_search *search, const struct own_table *table,
			const double *middles, double *excess, uint32_t *with)
{
	const struct job *job = search->job;
	struct straggler_field field;
	struct own_best best = { .host = UINT32_MAX };
	uint32_t hosts = 0;
	bool has_stages = false;

	for (uint32_t h = 0; h < job->host_count; h++) {
		double *of = &excess[(size_t)h * table->windows];

		if (!host_excess(table, h, middles, of, &with[h]))
			of[0] = NAN;
		has_stages |= with[h] == UINT32_MAX;
	}
	has_stages = has_stages && table->is_by_network;
	if (has_stages)
		stage_excess(table, middles, excess);
	for (uint32_t h = 0; h < job->host_count; h++) {
		double *of = &excess[(size_t)h * table->windows];

		hosts += !isnan(of[0]);
		for (uint32_t w = 1; isnan(of[0]) && w < table->windows; w++)
			of[w] = NAN;
	}
	search->status = straggler_field_make(&field, excess, (uint32_t)job->host_count,
					      table->windows, share_of_time_that_matters);
	field.is_one_sided = true;
	field.is_uneven = table->has_experts;
	field.is_against_past = has_stages;
	for (uint32_t h = 0; search->status == OK && h < job->host_count && hosts > 1; h++) {
		const double *of = &excess[(size_t)h * table->windows];
		struct straggler_stretch stretch;

		if (isnan(of[0]))
			continue;
		stretch = straggler_field_stretch(&field, h);
		if (!stretch.is_found || (field.is_uneven && !is_steady(table, of, &stretch)))
			continue;
		/* From the beginning, it is how the stages are. */
		if (has_stages &&
		    (straggler_is_on(of[0], &stretch) || straggler_is_on(of[1], &stretch)))
			continue;
		if (best.host != UINT32_MAX && stretch.typical <= best.stretch.typical) {
			best.second = fmax(best.second, stretch.typical);
			continue;
		}
		best = (struct own_best){ h, stretch,
					  best.host != UINT32_MAX ? best.stretch.typical : 0 };
	}
	straggler_field_release(&field);
	if (best.host != UINT32_MAX)
		add_host(search, table, &best, with[best.host],
			 &excess[(size_t)best.host * table->windows]);
}

static void find_hosts(struct straggler_search *search, const struct own_table *table)
{
	const struct job *job = search->job;
	double *middles = calloc(job->host_count * table->windows + 1, sizeof(*middles));
	double *excess = calloc(job->host_count * table->windows + 1, sizeof(*excess));
	uint32_t *with = calloc(job->host_count + 1, sizeof(*with));

	if (middles == NULL || excess == NULL || with == NULL) {
		search->status = ERR_NO_SPACE;
	} else {
		for (uint32_t h = 0; h < job->host_count; h++)
			for (uint32_t w = 0; w < table->windows; w++)
				middles[(size_t)h * table->windows + w] =
					host_middle(table, table->share, h, w);
		judge_hosts(search, table, middles, excess, with);
	}
	free(middles);
	free(excess);
	free(with);
}

/* Is it one of found[first...]? */
static bool is_found_rank(const struct straggler_search *search, size_t first, uint32_t rank)
{
	for (size_t i = first; i < search->count; i++)
		if (search->found[i].rank == rank)
			return true;
	return false;
}

/* All but those of found[first...]. */
static void find_ranks(struct straggler_search *search, const struct own_table *table, size_t first)
{
	const struct job *job = search->job;
	size_t cells = job->rank_count * table->windows;
	double *excess = calloc(cells + 1, sizeof(*excess));
	uint32_t *with = calloc(job->rank_count + 1, sizeof(*with));
	struct straggler_field field = { .values = NULL };

	if (excess == NULL || with == NULL)
		search->status = ERR_NO_SPACE;
	for (uint32_t r = 0; search->status == OK && r < job->rank_count; r++) {
		double *of = &excess[(size_t)r * table->windows];

		with[r] = UINT32_MAX;
		if (!is_known(table, r) || !rank_excess(table, r, of, &with[r]) ||
		    is_found_rank(search, first, r)) {
			for (uint32_t w = 0; w < table->windows; w++)
				of[w] = NAN;
			with[r] = UINT32_MAX;
		}
	}
	if (search->status == OK)
		search->status = straggler_field_make(&field, excess, (uint32_t)job->rank_count,
						      table->windows, share_of_time_that_matters);
	field.is_one_sided = true;
	field.is_uneven = table->has_experts;
	for (uint32_t r = 0; search->status == OK && r < job->rank_count; r++) {
		struct straggler origin = { .class = STRAGGLER_SLOW_RANK,
					    .rank = r,
					    .host = job->ranks[r].host,
					    .comm = with[r] };
		struct straggler_stretch stretch;

		if (with[r] == UINT32_MAX)
			continue;
		stretch = straggler_field_stretch(&field, r);
		if (stretch.is_found &&
		    (!field.is_uneven ||
		     is_steady(table, &excess[(size_t)r * table->windows], &stretch)))
			add_origin(search, table, &origin, &excess[(size_t)r * table->windows],
				   &stretch);
	}
	straggler_field_release(&field);
	free(excess);
	free(with);
}

/*
 * An origin is above all others, and what a rank must be clear of includes it. So the others are judged once more
 * without it; it is still their peer. Asynchronous Sends make those that wait for it stand out a little: a second one
 * must stand out by a good part of what the first one does. And mostly at the same time: at other times the first one
 * hides nobody.
 */
static const double part_of_first = 0.3, sure_of_rest = 0.9;

static bool is_mostly_while(const struct straggler *other, const struct straggler *first)
{
	uint64_t from = other->first_ns > first->first_ns ? other->first_ns : first->first_ns;
	uint64_t until = other->last_ns < first->last_ns ? other->last_ns : first->last_ns;

	return until > from && (until - from) * 2 > other->last_ns - other->first_ns;
}

static bool is_beside(const struct straggler_search *search, size_t first, size_t until,
		      const struct straggler *other)
{
	for (size_t i = first; i < until; i++)
		if (is_mostly_while(other, &search->found[i]) &&
		    other->own_excess >= part_of_first * search->found[i].own_excess)
			return true;
	return false;
}

static void find_other_ranks(struct straggler_search *search, const struct own_table *table,
			     size_t first)
{
	size_t until = search->count;

	find_ranks(search, table, first);
	for (size_t i = until; i < search->count; i++) {
		struct straggler *other = &search->found[i];

		other->is_dropped = !is_beside(search, first, until, other);
		other->confidence = fmin(other->confidence, sure_of_rest);
	}
	straggler_drop_marked(search);
}

/*
 * Members of a chain are not compared with each other, and a Send covers some compute of the rank that waits for the
 * other one and not of the rest: it stands out as well. The one that stands out most is the origin.
 */
static void drop_chained(struct straggler_search *search, size_t first)
{
	const struct job *job = search->job;

	for (size_t i = first; i < search->count; i++) {
		struct straggler *one = &search->found[i];

		for (uint32_t c = 0; c < job->comm_count && !one->is_dropped; c++)
			for (size_t j = first; search->is_chain[c] && j < search->count; j++)
				one->is_dropped |= search->found[j].own_excess > one->own_excess &&
						   job_is_member(job, c, one->rank) &&
						   job_is_member(job, c, search->found[j].rank);
	}
	straggler_drop_marked(search);
}

/* Most ranks of a host stand out, about equally: it is the host. first: the job's first in search->found. */
static void merge_ranks(struct straggler_search *search, const struct own_table *table,
			size_t first)
{
	const struct job *job = search->job;

	for (size_t i = first; i < search->count; i++) {
		struct straggler *one = &search->found[i];
		uint32_t members = 0, late = 0;
		double most = 0;

		for (uint32_t r = 0; r < job->rank_count; r++)
			members += job->ranks[r].host == one->host && is_known(table, r);
		for (size_t j = first; j < search->count; j++)
			if (search->found[j].host == one->host)
				most = fmax(most, search->found[j].own_excess);
		for (size_t j = first; j < search->count; j++)
			late += search->found[j].host == one->host &&
				search->found[j].own_excess * 2 > most;
		if (members < 2 || late * 4 < members * 3 || job->host_count < 2)
			continue;
		one->class = STRAGGLER_SLOW_HOST;
		one->is_each = true;
		one->rank = UINT32_MAX;
		for (size_t j = i + 1; j < search->count;) {
			if (search->found[j].host == one->host)
				search->found[j] = search->found[--search->count];
			else
				j++;
		}
	}
}

/* ---- one job ---------------------------------------------------------------------------------- */

static uint32_t ranks_of(const struct own_table *table)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < table->search->job->rank_count; r++)
		count += table->search->job->ranks[r].group == table->group;
	return count;
}

typedef enum status read_rank_how(struct own_table *table, uint32_t rank);

/* Of nearly all ranks, in the same way; stops when that has become impossible. */
static bool read_ranks(struct straggler_search *search, struct own_table *table, read_rank_how *how)
{
	const struct job *job = search->job;
	uint32_t count = ranks_of(table), unknown = 0;

	for (size_t i = 0; i < job->rank_count * table->windows; i++) {
		table->share[i] = NAN;
		table->bytes[i] = 0;
	}
	for (uint32_t r = 0; search->status == OK && r < job->rank_count; r++) {
		if (job->ranks[r].group != table->group)
			continue;
		search->status = how(table, r);
		unknown += !is_known(table, r);
		if (unknown * 20 > count)
			return false;
	}
	return search->status == OK && count - unknown >= RANKS_LEAST;
}

static bool fill_table(struct straggler_search *search, struct own_table *table)
{
	const struct job *job = search->job;

	search->status = own_table_allocate(table);
	if (search->status == OK && !read_ranks(search, table, read_rank)) {
		table->is_by_network = true;
		table->is_vague = false;
		if (search->status != OK || !read_ranks(search, table, read_network))
			return false;
	}
	if (search->status != OK)
		return false;
	/* All ranks are compared by the same. */
	if (table->is_vague)
		memcpy(table->share, table->sure_share,
		       job->rank_count * table->windows * sizeof(*table->share));
	for (uint32_t c = 0; c < job->comm_count; c++)
		table->is_compared[c] = job->comms[c].group == table->group &&
					job->comms[c].seat_count > 1 && !search->is_staggered[c];
	fill_middles(table);
	return true;
}

bool straggler_origins(struct straggler_search *search, uint32_t group,
		       const struct timeline_rank *ranks)
{
	struct own_table table = { .search = search,
				   .group = group,
				   .has_experts = has_experts(search, group) };
	size_t first = search->count;
	bool is_judged;

	if (!find_time(&table, ranks))
		return false;
	is_judged = fill_table(search, &table);
	if (is_judged)
		find_ranks(search, &table, first);
	if (is_judged && search->status == OK && search->count > first)
		find_other_ranks(search, &table, first);
	if (is_judged && search->status == OK)
		drop_chained(search, first);
	if (is_judged && search->status == OK)
		merge_ranks(search, &table, first);
	if (is_judged && search->status == OK && search->count == first)
		find_hosts(search, &table);
	own_table_release(&table);
	return is_judged;
}
