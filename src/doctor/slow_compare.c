/* Operations by communicator, function and size: rows of the table by BASELINE_BY, combined. */
#include "doctor/doctor.h"
#include "doctor/slow_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "analysis/straggler.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/search.h"
#include "common/text.h"

/* The first one of a cell has the most calls. */
static int by_cell(const void *left, const void *right)
{
	const struct tally_row *a = *(const struct tally_row *const *)left;
	const struct tally_row *b = *(const struct tally_row *const *)right;

	return ORDER(a->key.comm, b->key.comm) ?:
	       ORDER(a->key.function, b->key.function) ?:
	       ORDER(a->key.size_class, b->key.size_class) ?:
	       ORDER(b->calls, a->calls);
}

static bool is_same_cell(const struct tally_row *a, const struct tally_row *b)
{
	return a->key.comm == b->key.comm && a->key.function == b->key.function &&
	       a->key.size_class == b->key.size_class;
}

static struct slow_cell start_cell(const struct tally_row *row)
{
	return (struct slow_cell){ .comm = row->key.comm,
				   .function = row->key.function,
				   .size_class = row->key.size_class,
				   .algorithm = row->key.algorithm,
				   .protocol = row->key.protocol,
				   .is_transfer = true };
}

/* While adding up, busbw holds bus bytes, and mean_ns the sum of durations. */
static void add_to_cell(struct slow_cell *cell, const struct timeline_report *report,
			const struct tally_row *row)
{
	struct baseline_figures figures = baseline_figures(report, row);
	double weight = figures.samples, before = cell->samples;
	double mean, spread;

	if ((row->timed == 0 && !figures.is_wire) || weight <= 0)
		return;
	/* One with durations is not mixed with one without. */
	if (before > 0 && cell->is_wire != figures.is_wire)
		return;
	cell->is_wire = figures.is_wire;
	mean = (cell->log_mean * before + figures.log_mean * weight) / (before + weight);
	spread = before * (cell->log_variance + (cell->log_mean - mean) * (cell->log_mean - mean)) +
		 weight * (figures.log_variance +
			   (figures.log_mean - mean) * (figures.log_mean - mean));
	cell->log_variance = spread / (before + weight);
	cell->log_mean = mean;
	cell->samples += weight;
	cell->choices++;
	cell->is_transfer &= figures.is_joined && figures.is_gpu;
	cell->ranks = row->ranks > cell->ranks ? row->ranks : cell->ranks;
	cell->bytes += row->bytes;
	cell->calls += row->calls;
	cell->moves += figures.is_wire ? (uint64_t)figures.samples : row->moves;
	cell->p10_ns += (double)tally_quantile_ns(row, 0.1) * (double)row->calls;
	cell->busbw += figures.busbw * figures.mean_ns * (double)row->calls;
	cell->mean_ns += figures.mean_ns * (double)row->calls;
}

static void finish_cell(struct slow_cell *cell)
{
	cell->spent_ns = cell->mean_ns;
	cell->p10_ns = cell->calls > 0 ? cell->p10_ns / (double)cell->calls : 0;
	cell->busbw = cell->mean_ns > 0 ? cell->busbw / cell->mean_ns : 0;
	if (cell->is_wire)
		cell->busbw = 1e9 / exp(cell->log_mean);
	cell->mean_ns = cell->calls > 0 ? cell->mean_ns / (double)cell->calls : 0;
	cell->bytes = cell->calls > 0 ? cell->bytes / cell->calls : 0;
}

enum status slow_cells_make(struct slow_cells *cells, const struct timeline_report *report)
{
	const struct tally *table = baseline_table(report);
	const struct tally_row **sorted;
	size_t next;

	*cells = (struct slow_cells){ .list = NULL };
	if (table == NULL || table->count == 0)
		return OK;
	sorted = calloc(table->count, sizeof(*sorted));
	cells->list = calloc(table->count, sizeof(*cells->list));
	if (sorted == NULL || cells->list == NULL) {
		free(sorted);
		slow_cells_release(cells);
		return ERR_NO_SPACE;
	}
	for (size_t i = 0; i < table->count; i++)
		sorted[i] = &table->rows[i];
	qsort(sorted, table->count, sizeof(*sorted), by_cell);
	for (size_t i = 0; i < table->count; i = next) {
		struct slow_cell *cell = &cells->list[cells->count];

		*cell = start_cell(sorted[i]);
		for (next = i; next < table->count && is_same_cell(sorted[i], sorted[next]); next++)
			add_to_cell(cell, report, sorted[next]);
		finish_cell(cell);
		cells->count += cell->calls > 0 && cell->samples > 0;
	}
	free(sorted);
	return OK;
}

void slow_cells_release(struct slow_cells *cells)
{
	free(cells->list);
	*cells = (struct slow_cells){ .list = NULL };
}

static int cell_order(const struct slow_cell *cell, uint32_t comm, uint8_t function,
		      uint8_t size_class)
{
	return ORDER(cell->comm, comm) ?:
	       ORDER(cell->function, function) ?:
	       ORDER(cell->size_class, size_class);
}

const struct slow_cell *slow_cells_find(const struct slow_cells *cells, uint32_t comm,
					uint8_t function, uint8_t size_class)
{
	size_t at = SEARCH_FIRST(i, cells->count,
				 cell_order(&cells->list[i], comm, function, size_class) >= 0);

	if (at == cells->count || cell_order(&cells->list[at], comm, function, size_class) != 0)
		return NULL;
	return &cells->list[at];
}

/*
 * Where the time of a slow transfer goes: the network, or within a node. Records have, per operation, the
 * total time its transfers were on the wire, and how long received data waited for the GPU to consume it.
 * If inter-node collectives get slower but their transfers are not on the wire longer than before, it is
 * not the network; and the node whose GPUs take longer to consume is the one with slow links inside.
 *
 * It takes one pass over the operations of some processes, and is done only if needed.
 */

enum { PROCESSES_MAX = 256, TRANSFERS_LEAST = 64 };
static const double rise_ns = 5000, rise_ratio = 3;

struct wire_sums {
	double net_ns;
	double sends;
	double consume_ns;
	double receives;
	double channels; /* of all operations */
	double operations;
	/* Of operations that send: logarithms of the time on the wire of a transfer. */
	double logs;
	double log_sum;
	double log_squares;
};

struct walk {
	const struct job *job;
	const struct slow_cells *cells;
	size_t hosts;		/* 1: not separated */
	struct wire_sums *sums; /* [(cell * 2 + is_slow) * hosts + host] */
	/* [process * 2 + is_slow], of all cells, without channels; NULL: not wanted */
	struct wire_sums *senders;
	size_t process;
	size_t host;
	uint64_t from_clock_ns; /* operations that ended from here on, and before the next, are
				   slow */
	uint64_t until_clock_ns;
	uint64_t last_key;		   /* the owner of the cell below */
	const struct slow_cell *last_cell; /* NULL none */
};

static const struct slow_cell *cell_of_op(struct walk *walk, uint64_t kind, uint64_t bytes)
{
	uint8_t size_class = (uint8_t)op_size_class(bytes);
	uint8_t function = (uint8_t)op_kind_names(kind);
	uint64_t key = (uint64_t)op_kind_comm(kind) << 16 | (uint64_t)function << 8 | size_class;
	const struct job_seat *seat;

	if (key == walk->last_key)
		return walk->last_cell;
	seat = job_seat(walk->job, walk->process, op_kind_comm(kind));
	walk->last_key = key;
	walk->last_cell =
		seat ? slow_cells_find(walk->cells, seat->comm,
				       job_name_number(walk->job, walk->process, function),
				       size_class)
		     : NULL;
	return walk->last_cell;
}

static void add_log(struct wire_sums *sums, double net_ns, double sends)
{
	double value;

	if (net_ns <= 0 || sends <= 0)
		return;
	value = log(net_ns / sends);
	sums->logs++;
	sums->log_sum += value;
	sums->log_squares += value * value;
}

static bool wire_visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct walk *walk = context;

	(void)place;
	for (uint32_t i = 0; i < batch->rows; i++) {
		uint64_t steps = batch->column[OP_WORD_STEPS][i];
		uint64_t done_ns = batch->column[OP_WORD_DONE][i];
		bool is_slow = done_ns >= walk->from_clock_ns && done_ns < walk->until_clock_ns;
		const struct slow_cell *cell;
		struct wire_sums *sums;

		cell = cell_of_op(walk, batch->column[OP_WORD_KIND][i],
				  batch->column[OP_WORD_BYTES][i]);
		if (cell == NULL)
			continue;
		sums = &walk->sums[((size_t)(cell - walk->cells->list) * 2 + is_slow) *
					   walk->hosts +
				   walk->host];
		sums->channels += (double)op_state_channels(batch->column[OP_WORD_STATE][i]);
		sums->operations++;
		if (steps == 0)
			continue;
		sums->net_ns += (double)batch->column[OP_WORD_WAITS + OP_WAIT_SEND_NET][i];
		sums->consume_ns += (double)batch->column[OP_WORD_WAITS + OP_WAIT_RECV_GPU][i];
		sums->sends += (double)(uint32_t)steps;
		sums->receives += (double)(steps >> 32);
		add_log(sums, (double)batch->column[OP_WORD_WAITS + OP_WAIT_SEND_NET][i],
			(double)(uint32_t)steps);
		if (walk->senders != NULL) {
			sums = &walk->senders[walk->process * 2 + is_slow];
			sums->net_ns += (double)batch->column[OP_WORD_WAITS + OP_WAIT_SEND_NET][i];
			sums->sends += (double)(uint32_t)steps;
			sums->consume_ns +=
				(double)batch->column[OP_WORD_WAITS + OP_WAIT_RECV_GPU][i];
			sums->receives += (double)(steps >> 32);
		}
	}
	return true;
}

static void walk_all(struct walk *walk, const struct timeline_report *report,
		     const struct slow_span *span)
{
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_BYTES) |
			       OP_WORD_BIT(OP_WORD_STATE) | OP_WORD_BIT(OP_WORD_DONE) |
			       OP_WORD_BIT(OP_WORD_STEPS) |
			       OP_WORD_BIT(OP_WORD_WAITS + OP_WAIT_SEND_NET) |
			       OP_WORD_BIT(OP_WORD_WAITS + OP_WAIT_RECV_GPU);
	const struct recording *recording = report->recording;
	size_t stride = recording->count / PROCESSES_MAX + 1;

	for (size_t p = 0; p < recording->count; p += stride) {
		walk->process = p;
		walk->host =
			walk->hosts > 1 ? report->job.ranks[report->job.process_rank[p]].host : 0;
		walk->last_key = UINT64_MAX;
		walk->from_clock_ns =
			span->from_ns ? align_clock_ns(&report->align, p, span->from_ns) : 0;
		walk->until_clock_ns = span->until_ns
					       ? align_clock_ns(&report->align, p, span->until_ns)
					       : UINT64_MAX;
		/* What cannot be read was reported when the report was made. */
		recording_each_batch(recording->processes[p], words, wire_visit, walk, NULL);
	}
}

static double per_send(const struct wire_sums *sums)
{
	return sums->sends >= TRANSFERS_LEAST ? sums->net_ns / sums->sends : 0;
}

static double per_receive(const struct wire_sums *sums)
{
	return sums->receives >= TRANSFERS_LEAST ? sums->consume_ns / sums->receives : 0;
}

/* 0 unknown. */
static double per_operation(const struct wire_sums *sums)
{
	return sums->operations > 0 ? sums->channels / sums->operations : 0;
}

/* ---- of all cells: for a baseline ------------------------------------------------------------- */

enum status slow_cells_wire(struct slow_cells *cells, const struct timeline_report *report)
{
	struct walk walk = { .job = &report->job, .cells = cells, .hosts = 1 };

	if (cells->count == 0)
		return OK;
	walk.sums = calloc(cells->count * 2, sizeof(*walk.sums));
	if (walk.sums == NULL)
		return ERR_NO_SPACE;
	walk_all(&walk, report, &(struct slow_span){ 0 });
	for (size_t i = 0; i < cells->count; i++) {
		cells->list[i].wire_ns = per_send(&walk.sums[i * 2 + 1]);
		cells->list[i].consume_ns = per_receive(&walk.sums[i * 2 + 1]);
		cells->list[i].channels = per_operation(&walk.sums[i * 2 + 1]);
	}
	free(walk.sums);
	return OK;
}

/* ---- of one row: to find the cause ----------------------------------------------------------- */

static bool is_consumed_later(double was, double is)
{
	return is >= was + rise_ns && is >= rise_ratio * was;
}

/* The only host of several whose GPUs consume later than before; UINT32_MAX: none, or more. */
static uint32_t find_host(const struct wire_sums *before, const struct wire_sums *after,
			  size_t hosts, double before_ns)
{
	uint32_t found = UINT32_MAX;
	size_t count = 0, seen = 0;

	for (size_t h = 0; h < hosts; h++) {
		double was = before_ns > 0 ? before_ns : per_receive(&before[h]);
		double is = per_receive(&after[h]);

		seen += after[h].receives >= TRANSFERS_LEAST;
		if (!is_consumed_later(was, is))
			continue;
		found = (uint32_t)h;
		count++;
	}
	return count == 1 && seen > 1 ? found : UINT32_MAX;
}

/*
 * Does the data wait at one rank of the host only? Links inside a node are used by rings that enter it at several ranks;
 * where at least two of them are not affected, it is this rank that takes its data late.
 */
static void find_receiver(struct slow_wire *wire, const struct timeline_report *report,
			  const struct wire_sums *processes, double before_ns)
{
	enum { NOT_AFFECTED_LEAST = 2 };
	const struct job *job = &report->job;
	uint32_t receivers = 0, late = 0, found = UINT32_MAX;

	for (size_t p = 0; p < report->recording->count && wire->host != UINT32_MAX; p++) {
		double was = before_ns > 0 ? before_ns : per_receive(&processes[p * 2]);

		if (job->ranks[job->process_rank[p]].host != wire->host ||
		    processes[p * 2 + 1].receives < TRANSFERS_LEAST)
			continue;
		receivers++;
		if (!is_consumed_later(was, per_receive(&processes[p * 2 + 1])))
			continue;
		late++;
		found = job->process_rank[p];
	}
	wire->is_one_receiver = late == 1;
	if (late == 1 && receivers > NOT_AFFECTED_LEAST)
		wire->slow_receiver = found;
}

static void wire_add(struct wire_sums *to, const struct wire_sums *from)
{
	to->net_ns += from->net_ns;
	to->sends += from->sends;
	to->consume_ns += from->consume_ns;
	to->receives += from->receives;
	to->channels += from->channels;
	to->operations += from->operations;
}

static struct wire_sums wire_sum(const struct wire_sums *list, size_t count)
{
	struct wire_sums all = { 0 };

	for (size_t i = 0; i < count; i++)
		wire_add(&all, &list[i]);
	return all;
}

static void count_senders(struct slow_wire *wire, const struct wire_sums *senders, size_t processes,
			  double ratio)
{
	for (size_t p = 0; p < processes; p++) {
		double before_ns = per_send(&senders[p * 2]);
		double after_ns = per_send(&senders[p * 2 + 1]);

		if (before_ns <= 0 || after_ns <= 0)
			continue;
		wire->senders++;
		wire->senders_slower += after_ns > before_ns * (1 + (ratio - 1) * 0.6);
		wire->senders_same += after_ns < before_ns * (1 + (ratio - 1) / 4);
	}
}

/*
 * Do the senders whose transfers take longer have something in common: one host, or one position (rail) on
 * every host? Compared with before; without that, with the median sender.
 */
static const double sender_that_matters = 1.3;

static bool is_sender_slower(const struct wire_sums *sums, double ratio, double middle_ns,
			     bool is_past)
{
	double before_ns = per_send(&sums[0]), after_ns = per_send(&sums[1]);

	if (!is_past)
		return after_ns > sender_that_matters * middle_ns;
	return before_ns > 0 && after_ns > before_ns * (1 + (ratio - 1) * 0.6);
}

/* How much longer its transfers take, 0.2 is 20%. */
static double sender_increase(const struct wire_sums *sums)
{
	return per_send(&sums[0]) > 0 ? per_send(&sums[1]) / per_send(&sums[0]) - 1 : 0;
}

/*
 * Not slower in proportion, but half as much as the one that is most: where the change is placed wrongly, all senders may be
 * equally slow. Those that only wait for a slow one are much faster than that.
 */
static bool is_sender_between(const struct wire_sums *sums, double ratio, double most)
{
	double increase = sender_increase(sums);

	return increase >= (ratio - 1) / 4 && increase <= (ratio - 1) * 0.6 && increase * 2 >= most;
}

static double middle_sender(const struct wire_sums *senders, size_t processes)
{
	double *values = calloc(processes + 1, sizeof(*values)), middle = 0;
	size_t count = 0;

	for (size_t p = 0; values != NULL && p < processes; p++)
		if (per_send(&senders[p * 2 + 1]) > 0)
			values[count++] = per_send(&senders[p * 2 + 1]);
	if (count > 0)
		middle = stats_lower_middle(values, count);
	free(values);
	return middle;
}

/* The only index with slower senders, if nearly all of its senders are; UINT32_MAX: none such. */
static uint32_t only_one(const uint32_t *pairs, size_t count)
{
	uint32_t found = UINT32_MAX;

	for (size_t i = 0; i < count; i++) {
		if (pairs[i * 2 + 1] == 0)
			continue;
		if (found != UINT32_MAX || pairs[i * 2 + 1] * 4 < pairs[i * 2] * 3)
			return UINT32_MAX;
		found = (uint32_t)i;
	}
	return found;
}

/* Of two ranks the one that the other sends to, and that does not send back; UINT32_MAX: none. */
static uint32_t receiver_of(const struct job *job, uint32_t comm, const uint32_t *ranks)
{
	uint32_t found = UINT32_MAX;

	for (int i = 0; i < 2; i++) {
		uint32_t place = job_place_in(job, comm, ranks[i]);

		if (place == UINT32_MAX ||
		    !link_has_peer(job, comm, ranks[1 - i],
				   job->seats[job->comms[comm].seats[place]].comm_rank))
			continue;
		if (found != UINT32_MAX)
			return UINT32_MAX;
		found = ranks[i];
	}
	return found;
}

static void find_place(struct slow_wire *wire, const struct timeline_report *report,
		       const struct wire_sums *senders, const struct slow_row *row, bool is_past)
{
	enum { RAILS = 64 };
	const struct job *job = &report->job;
	size_t processes = report->recording->count;
	uint32_t *of_host = calloc(job->host_count * 2 + 1, sizeof(*of_host));
	uint32_t of_rail[RAILS * 2] = { 0 }, count = 0, slower = 0, between = 0, hosts = 0;
	uint32_t slow[2] = { UINT32_MAX, UINT32_MAX };
	double middle_ns = middle_sender(senders, processes);
	bool has_rails = true;
	double most = 0;

	for (size_t p = 0; p < processes; p++)
		most = fmax(most, sender_increase(&senders[p * 2]));
	for (size_t p = 0; of_host != NULL && p < processes; p++) {
		const struct job_rank *rank = &job->ranks[job->process_rank[p]];
		bool is_slower = is_sender_slower(&senders[p * 2], row->ratio, middle_ns, is_past);

		/* Of a sender of which nothing is known before it is not known whether it is slower. */
		if (per_send(&senders[p * 2 + 1]) <= 0 ||
		    (is_past && per_send(&senders[p * 2]) <= 0))
			continue;
		hosts += of_host[(size_t)rank->host * 2] == 0;
		of_host[(size_t)rank->host * 2]++;
		of_host[(size_t)rank->host * 2 + 1] += is_slower;
		has_rails &= rank->gpu >= 0 && rank->gpu < RAILS;
		if (has_rails) {
			of_rail[rank->gpu * 2]++;
			of_rail[rank->gpu * 2 + 1] += is_slower;
		}
		count++;
		between += is_past && is_sender_between(&senders[p * 2], row->ratio, most);
		if (is_slower && slower++ < 2)
			slow[slower - 1] = job->process_rank[p];
	}
	if (of_host != NULL && slower > 0 && slower * 4 < count * 3 && between * 20 <= count &&
	    hosts > 1) {
		wire->slow_host = only_one(of_host, job->host_count);
		wire->slow_rail = has_rails ? only_one(of_rail, RAILS) : UINT32_MAX;
		if (slower == 1)
			wire->slow_sender = slow[0];
		if (slower == 2)
			wire->slow_both = receiver_of(job, row->comm, slow);
		wire->has_place = true;
	}
	free(of_host);
}

static int by_place(const void *left, const void *right)
{
	const struct slow_cell *a = left, *b = right;

	return ORDER(a->comm, b->comm) ?:
	       ORDER(a->function, b->function) ?:
	       ORDER(a->size_class, b->size_class);
}

/* The Sends of a job between nodes, of all sizes or of that of a row; without what they took. ERR_NO_SPACE. */
static enum status cells_of_sends(struct slow_cells *cells, const struct timeline_report *report,
				  uint32_t group, const struct slow_row *row)
{
	const struct tally *table = baseline_table(report);
	const struct job *job = &report->job;
	size_t kept = 0;

	*cells = (struct slow_cells){ .list = calloc(table ? table->count + 1 : 1,
						     sizeof(*cells->list)) };
	if (cells->list == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; table != NULL && i < table->count; i++) {
		const struct tally_key *key = &table->rows[i].key;

		if (key->function == OP_SEND && job->comms[key->comm].group == group &&
		    (row == NULL || (key->size_class == row->size_class &&
				     job->comms[key->comm].kind == row->kind)))
			cells->list[cells->count++] = start_cell(&table->rows[i]);
	}
	if (cells->count > 1)
		qsort(cells->list, cells->count, sizeof(*cells->list), by_place);
	/* Of one size there may be several algorithms. */
	for (size_t i = 0; i < cells->count; i++)
		if (i == 0 || by_place(&cells->list[kept - 1], &cells->list[i]) != 0)
			cells->list[kept++] = cells->list[i];
	cells->count = kept;
	return OK;
}

/* Those whose senders are compared: Sends on all communicators, as each position of a pipeline has its own. */
static enum status cells_of_row(struct slow_cells *cells, const struct timeline_report *report,
				const struct slow_row *row)
{
	if (row->function == OP_SEND)
		return cells_of_sends(cells, report, report->job.comms[row->comm].group, row);
	*cells = (struct slow_cells){ .list = calloc(1, sizeof(*cells->list)), .count = 1 };
	if (cells->list == NULL)
		return ERR_NO_SPACE;
	cells->list[0] = (struct slow_cell){ .comm = row->comm,
					     .function = row->function,
					     .size_class = row->size_class };
	return OK;
}

enum status slow_wire(struct slow_wire *wire, const struct timeline_report *report,
		      const struct slow_row *row)
{
	size_t hosts = report->job.host_count, processes = report->recording->count;
	struct slow_cells cells;
	struct walk walk = { .job = &report->job, .cells = &cells, .hosts = hosts };
	bool is_past = row->span.from_ns > 0 || row->span.until_ns > 0;
	struct wire_sums *fast, *slow, all;

	*wire = (struct slow_wire){ .host = UINT32_MAX,
				    .slow_receiver = UINT32_MAX,
				    .slow_sender = UINT32_MAX,
				    .slow_both = UINT32_MAX,
				    .slow_host = UINT32_MAX,
				    .slow_rail = UINT32_MAX };
	if (cells_of_row(&cells, report, row) != OK)
		return ERR_NO_SPACE;
	walk.sums = calloc(cells.count * hosts * 2 + 1, sizeof(*walk.sums));
	walk.senders = calloc(processes * 2 + 1, sizeof(*walk.senders));
	if (walk.sums == NULL || walk.senders == NULL) {
		slow_cells_release(&cells);
		free(walk.sums);
		free(walk.senders);
		return ERR_NO_SPACE;
	}
	walk_all(&walk, report, &row->span);
	for (size_t i = hosts * 2; i < cells.count * hosts * 2; i++)
		wire_add(&walk.sums[i % (hosts * 2)], &walk.sums[i]);
	fast = walk.sums;
	slow = walk.sums + hosts;
	all = wire_sum(fast, hosts);
	wire->before_ns = is_past ? per_send(&all) : row->wire_then_ns;
	wire->channels_before = is_past ? per_operation(&all) : row->channels_then;
	all = wire_sum(slow, hosts);
	wire->channels_after = per_operation(&all);
	wire->after_ns = per_send(&all);
	/* Of Sends on several communicators only some may be slower. */
	if (row->is_wire && row->function == OP_SEND) {
		wire->before_ns = 1e9 / row->before;
		wire->after_ns = 1e9 / row->after;
	}
	wire->is_known = wire->before_ns > 0 && wire->after_ns > 0;
	if (is_past || row->consume_then_ns > 0)
		wire->host = find_host(fast, slow, hosts, is_past ? 0 : row->consume_then_ns);
	find_receiver(wire, report, walk.senders, is_past ? 0 : row->consume_then_ns);
	if (is_past)
		count_senders(wire, walk.senders, processes, row->ratio);
	find_place(wire, report, walk.senders, row, is_past);
	slow_cells_release(&cells);
	free(walk.sums);
	free(walk.senders);
	return OK;
}

/* Transfers compared with a reference, with the intervals of compare.h. */

/* A quantile is accurate to 9%: Sends have to differ by more. Their confidence is unknown. */
static const double sends_that_matter = 0.25, sends_confidence = 0.85;
enum { SENDS_LEAST = 32 };
/* Large messages normally reach this share of a link's peak; smaller ones never do. */
static const double share_of_peak = 0.8;
enum { PEAK_SIZE_LEAST = 2 + 24 }; /* 16 MiB */

struct then {
	bool is_found;
	bool is_joined;
	bool is_other_ranks;
	double log_mean;
	double log_variance;
	double samples; /* 0: exact */
	double busbw;
	double p10_ns;
	double wire_ns;
	double consume_ns;
	double channels;
	char algorithm[48]; /* "RING SIMPLE" */
};

static void judge_cell(struct slow_cell *cell, const struct then *then, double gap,
		       double threshold, double comparisons)
{
	const struct compare_sample before = {
		.error = then->samples > 0 ? sqrt(then->log_variance / then->samples) : 0,
		.samples = then->samples,
	};
	const struct compare_sample now = { .mean = gap,
					    .error = sqrt(cell->log_variance / cell->samples),
					    .samples = cell->samples };
	const struct compare_result result = compare_judge(&before, &now, threshold, comparisons);

	if (cell->samples < COMPARE_SAMPLES_LEAST ||
	    (then->samples > 0 && then->samples < COMPARE_SAMPLES_LEAST))
		return;
	cell->is_compared = true;
	cell->is_other_ranks = then->is_other_ranks;
	cell->ratio = result.ratio;
	cell->ratio_low = result.ratio_low;
	cell->ratio_high = result.ratio_high;
	cell->busbw_then = then->busbw;
	cell->wire_then_ns = then->wire_ns;
	cell->consume_then_ns = then->consume_ns;
	cell->channels_then = then->channels;
	cell->is_slow = result.is_slower;
	cell->confidence = result.confidence;
}

/* ---- a baseline ------------------------------------------------------------------------------ */

struct wanted {
	const char *comm_name;
	const char *kind;
	const char *function;
	char size[16];
	int32_t nranks;
	int32_t nnodes;
	bool is_wire;
};

static bool is_wanted(const struct baseline_row *row, const struct wanted *wanted, bool by_name,
		      bool is_joined)
{
	return row->is_joined == is_joined && row->is_wire == wanted->is_wire &&
	       strcmp(row->function, wanted->function) == 0 &&
	       strcmp(row->size, wanted->size) == 0 && strcmp(row->kind, wanted->kind) == 0 &&
	       (!by_name || strcmp(row->comm_name, wanted->comm_name) == 0);
}

/* Rows of other algorithms are added as well: a changed choice is part of the result. */
static void add_then(struct then *then, const struct baseline_row *row, double *most_calls)
{
	double weight = row->samples, before = then->samples;
	double variance = row->log_deviation * row->log_deviation;
	double mean, calls = (double)row->calls;

	if (weight <= 0)
		return;
	mean = (then->log_mean * before + row->log_mean * weight) / (before + weight);
	then->log_variance =
		(before * (then->log_variance + (then->log_mean - mean) * (then->log_mean - mean)) +
		 weight * (variance + (row->log_mean - mean) * (row->log_mean - mean))) /
		(before + weight);
	then->log_mean = mean;
	then->busbw = (then->busbw * before + row->busbw * weight) / (before + weight);
	then->p10_ns = (then->p10_ns * before + row->p10_ns * weight) / (before + weight);
	then->wire_ns = fmax(then->wire_ns, row->wire_ns);
	then->consume_ns = fmax(then->consume_ns, row->consume_ns);
	then->channels = fmax(then->channels, row->channels);
	then->samples = before + weight;
	then->is_found = true;
	then->is_joined = row->is_joined;
	if (calls <= *most_calls)
		return;
	*most_calls = calls;
	text_format(then->algorithm, sizeof(then->algorithm), "%s%s%s", row->algorithm,
		    row->protocol[0] ? " " : "", row->protocol);
}

static void find_rows(struct then *then, const struct baseline *baseline,
		      const struct wanted *wanted, bool by_name, bool by_shape, bool is_joined)
{
	double most_calls = -1;

	*then = (struct then){ .is_other_ranks = !by_shape };
	for (size_t i = 0; i < baseline->count; i++) {
		const struct baseline_row *row = &baseline->rows[i];

		if (is_wanted(row, wanted, by_name, is_joined) &&
		    (!by_shape || (row->nranks == wanted->nranks && row->nnodes == wanted->nnodes)))
			add_then(then, row, &most_calls);
	}
}

/* The same name and shape; any name of that shape; the same name, any shape; any at all. */
static struct then find_then(const struct baseline *baseline, const struct wanted *wanted,
			     bool is_joined)
{
	struct then then = { .is_found = false };

	for (int way = 0; way < 4 && !then.is_found; way++)
		find_rows(&then, baseline, wanted, way == 0 || way == 2, way < 2, is_joined);
	return then;
}

static void note_choice(struct slow_cell *cell, const struct job *job, const struct then *then)
{
	char now[48];

	if (cell->algorithm == 0 || then->algorithm[0] == '\0')
		return;
	text_format(now, sizeof(now), "%s %s", job_name(job, OP_NAMES_ALGORITHM, cell->algorithm),
		    job_name(job, OP_NAMES_PROTOCOL, cell->protocol));
	if (strcmp(now, then->algorithm) != 0)
		text_copy(cell->was, sizeof(cell->was), then->algorithm);
}

static void clear_comparison(struct slow_cells *cells)
{
	for (size_t i = 0; i < cells->count; i++) {
		cells->list[i].is_compared = cells->list[i].is_slow = cells->list[i].is_send =
			false;
		cells->list[i].was[0] = '\0';
	}
}

static double transfers(const struct slow_cells *cells)
{
	size_t count = 0;

	for (size_t i = 0; i < cells->count; i++)
		count += cells->list[i].is_transfer || cells->list[i].is_wire;
	return count > 0 ? (double)count : 1;
}

/* The fastest of many Sends found their receiver waiting: they are pure transfer time. */
static void judge_sends(struct slow_cell *cell, const struct then *then)
{
	cell->is_compared = cell->is_send = true;
	cell->is_other_ranks = then->is_other_ranks;
	cell->ratio = cell->ratio_low = cell->ratio_high = cell->p10_ns / then->p10_ns;
	cell->busbw_then = cell->busbw * cell->ratio;
	cell->is_slow = cell->ratio > 1 + sends_that_matter;
	cell->confidence = sends_confidence;
}

static void compare_cell(struct slow_cell *cell, const struct job *job,
			 const struct slow_options *options, double comparisons,
			 struct slow_rows *rows)
{
	const struct job_comm *comm = &job->comms[cell->comm];
	struct wanted wanted = { .is_wire = cell->is_wire,
				 .comm_name = comm->name,
				 .kind = job_comm_kind_name(comm->kind),
				 .function = job_name(job, OP_NAMES_FUNCTION, cell->function),
				 .nranks = comm->nranks,
				 .nnodes = comm->nnodes };
	double threshold = options->threshold > 0 ? options->threshold : 0.05;
	bool is_send = !cell->is_transfer;
	struct then then;
	double gap;

	op_size_text(wanted.size, sizeof(wanted.size), cell->size_class);
	then = find_then(options->baseline, &wanted, !is_send);
	if (cell->is_wire) {
		note_choice(cell, job, &then);
		/* Transfers of a tree are not those of a ring. */
		if (!then.is_found || cell->was[0] != '\0' || cell->choices > 1) {
			cell->was[0] = '\0';
			rows->unmatched++;
			return;
		}
		then.busbw = 1e9 / exp(then.log_mean);
		judge_cell(cell, &then, cell->log_mean - then.log_mean, threshold, comparisons);
		return;
	}
	if (!then.is_found || (is_send && then.p10_ns <= 0) ||
	    (then.is_other_ranks && (then.busbw <= 0 || cell->busbw <= 0))) {
		rows->unmatched++;
		return;
	}
	rows->is_other_ranks |= then.is_other_ranks;
	if (is_send) {
		judge_sends(cell, &then);
		return;
	}
	note_choice(cell, job, &then);
	gap = then.is_other_ranks ? log(then.busbw / cell->busbw) : cell->log_mean - then.log_mean;
	judge_cell(cell, &then, gap, threshold, comparisons);
}

void slow_compare_baseline(struct slow_cells *cells, const struct timeline_report *report,
			   const struct slow_options *options, struct slow_rows *rows)
{
	double comparisons = transfers(cells);

	clear_comparison(cells);
	for (size_t i = 0; i < cells->count; i++) {
		struct slow_cell *cell = &cells->list[i];

		if (cell->is_transfer || cell->is_wire ||
		    (cell->function == OP_SEND && cell->size_class > 1 &&
		     cell->calls >= SENDS_LEAST))
			compare_cell(cell, &report->job, options, comparisons, rows);
	}
}

/* ---- measured values and data sheets --------------------------------------------------------- */

void slow_compare_expected(struct slow_cells *cells, const struct timeline_report *report,
			   const struct slow_options *options, struct slow_rows *rows)
{
	double threshold = options->threshold > 0 ? options->threshold : 0.05;

	clear_comparison(cells);
	for (size_t i = 0; i < cells->count; i++) {
		struct slow_cell *cell = &cells->list[i];
		int32_t nranks = report->job.comms[cell->comm].nranks;
		struct expected_value value;
		struct then then = { .is_found = true };

		if (!cell->is_transfer || cell->size_class < 2)
			continue;
		if (!expected_find(options->expected, cell->function, cell->bytes, nranks,
				   &value) ||
		    value.busbw <= 0 || cell->busbw <= 0) {
			rows->unmatched++;
			continue;
		}
		then.busbw = value.busbw * 1e9;
		then.is_other_ranks = value.how & EXPECTED_OTHER_RANKS;
		judge_cell(cell, &then, log(then.busbw / cell->busbw), threshold, transfers(cells));
		rows->is_other_ranks |= then.is_other_ranks;
	}
}

/* An inter-node communicator: each of a node's ranks has its own way out, and the rings use all of them,
 * until NVLink is the limit. */
static double peak_of(const struct job_comm *comm, const struct slow_options *options)
{
	double peak;

	if (comm->kind == JOB_COMM_NVLINK)
		return options->peak_nvlink;
	if (comm->kind != JOB_COMM_NET && comm->kind != JOB_COMM_MIXED)
		return 0;
	peak = options->peak_network * comm->nranks / (comm->nnodes > 0 ? comm->nnodes : 1);
	if (comm->kind == JOB_COMM_MIXED && options->peak_nvlink > 0)
		peak = fmin(peak, options->peak_nvlink);
	return peak;
}

void slow_compare_peak(struct slow_cells *cells, const struct timeline_report *report,
		       const struct slow_options *options, struct slow_rows *rows)
{
	double threshold = options->threshold > 0 ? options->threshold : 0.05;

	clear_comparison(cells);
	for (size_t i = 0; i < cells->count; i++) {
		struct slow_cell *cell = &cells->list[i];
		struct then then = { .busbw = peak_of(&report->job.comms[cell->comm], options) };

		if (!cell->is_transfer || cell->size_class < PEAK_SIZE_LEAST || then.busbw <= 0 ||
		    cell->busbw <= 0) {
			rows->unmatched++;
			continue;
		}
		then.busbw *= share_of_peak;
		judge_cell(cell, &then, log(then.busbw / cell->busbw), threshold, transfers(cells));
	}
}

/*
 * Cells of all similar communicators (kind, function, size, algorithm, protocol) make a row: the number of
 * slow ones shows whether it is one of them or all. Changes of the report are such rows already; the rows
 * that did not change are made of cells, for contrast.
 */

enum {
	MOVES_LEAST = 16,    /* required for changes, see windows.c */
	EACH_SIDE_LEAST = 8, /* collectives before a change, and after it */
	LATENCY_BYTES = 1024,
};

enum status slow_rows_init(struct slow_rows *rows, enum slow_against against)
{
	*rows = (struct slow_rows){ .against = against };
	rows->list = calloc(SLOW_ROWS_MAX, sizeof(*rows->list));
	return rows->list ? OK : ERR_NO_SPACE;
}

void slow_rows_release(struct slow_rows *rows)
{
	free(rows->list);
	*rows = (struct slow_rows){ .list = NULL };
}

/* The row of the same kind of communicator and call; NULL none. */
static struct slow_row *find_row(struct slow_rows *rows, const struct slow_row *like)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct slow_row *row = &rows->list[i];

		if (row->kind == like->kind && row->function == like->function &&
		    row->size_class == like->size_class && row->algorithm == like->algorithm &&
		    row->protocol == like->protocol && row->is_wire == like->is_wire)
			return row;
	}
	return NULL;
}

static struct slow_row *row_for_cell(struct slow_rows *rows, const struct job *job,
				     const struct slow_cell *cell)
{
	const struct slow_row like = { .kind = job->comms[cell->comm].kind,
				       .function = cell->function,
				       .size_class = cell->size_class,
				       .algorithm = cell->algorithm,
				       .protocol = cell->protocol,
				       .comm = cell->comm,
				       .is_wire = cell->is_wire,
				       .host = UINT32_MAX };
	struct slow_row *row = find_row(rows, &like);

	if (row != NULL)
		return row;
	if (rows->count == SLOW_ROWS_MAX) {
		rows->left_out++;
		return NULL;
	}
	rows->list[rows->count] = like;
	return &rows->list[rows->count++];
}

/* The host of all ranks; UINT32_MAX if they are on several. */
static uint32_t host_of(const struct job *job, uint32_t comm)
{
	const struct job_comm *of = &job->comms[comm];
	uint32_t host = UINT32_MAX;

	for (uint32_t i = 0; i < of->seat_count; i++) {
		uint32_t here = job->ranks[job->seats[of->seats[i]].rank].host;

		if (host != UINT32_MAX && host != here)
			return UINT32_MAX;
		host = here;
	}
	return host;
}

bool slow_is_same_name(const struct job_comm *a, const struct job_comm *b)
{
	if (a->name[0] != '\0' || b->name[0] != '\0')
		return strcmp(a->name, b->name) == 0;
	return a->nranks == b->nranks && a->nnodes == b->nnodes;
}

/* The largest loss provides the values of the row. */
static void add_slow(struct slow_row *row, const struct job *job, const struct slow_cell *cell)
{
	double spent_ns = cell->is_send ? cell->p10_ns * (double)cell->calls : cell->spent_ns;
	double lost_ns = spent_ns * (1 - 1 / cell->ratio);
	uint32_t host = host_of(job, cell->comm);

	row->host = row->comms_slow == 0 || row->host == host ? host : UINT32_MAX;
	row->is_one_name = row->comms_slow == 0 ||
			   (row->is_one_name &&
			    slow_is_same_name(&job->comms[row->comm], &job->comms[cell->comm]));
	if (row->comms_slow == 0 || lost_ns * row->comms_slow > row->lost_ns) {
		row->comm = cell->comm;
		row->before = cell->busbw_then;
		row->after = cell->busbw;
		row->ratio = cell->ratio;
		row->ratio_low = cell->ratio_low;
		row->ratio_high = cell->ratio_high;
		row->wire_then_ns = cell->wire_then_ns;
		row->consume_then_ns = cell->consume_then_ns;
		row->channels_then = cell->channels_then;
		row->span.is_unbound = cell->is_wire;
		text_copy(row->was, sizeof(row->was), cell->was);
	}
	row->confidence = cell->confidence > row->confidence ? cell->confidence : row->confidence;
	row->is_slow = true;
	row->is_send = cell->is_send;
	row->comms_slow++;
	row->ranks += job->comms[cell->comm].seat_count;
	row->lost_ns += lost_ns;
}

void slow_rows_collect(struct slow_rows *rows, const struct timeline_report *report,
		       const struct slow_cells *cells, uint32_t group)
{
	for (size_t i = 0; i < cells->count; i++) {
		const struct slow_cell *cell = &cells->list[i];
		struct slow_row *row;

		if (!cell->is_compared || report->job.comms[cell->comm].group != group)
			continue;
		row = row_for_cell(rows, &report->job, cell);
		if (row == NULL)
			continue;
		row->comms++;
		if (cell->is_slow)
			add_slow(row, &report->job, cell);
		else
			row->bound = fmax(row->bound, cell->ratio_high);
	}
}

/* ---- the job's own past ----------------------------------------------------------------------- */

static const struct windows_change *change_of(const struct windows *windows,
					      const struct job_comm *comm,
					      const struct slow_cell *cell, double threshold)
{
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (change->kind == comm->kind && change->function == cell->function &&
		    change->size_class == cell->size_class &&
		    fabs(change->percent) >= 100 * threshold / (1 + threshold))
			return change;
	}
	return NULL;
}

/* Are all communicators of the example's name, and no others, affected? As many as changed. */
static bool is_one_name(const struct job *job, const struct slow_cells *cells,
			const struct windows_change *change)
{
	const struct job_comm *example = &job->comms[change->example_comm];
	uint32_t count = 0;

	for (size_t i = 0; i < cells->count; i++)
		count += cells->list[i].function == change->function &&
			 cells->list[i].size_class == change->size_class &&
			 job->comms[cells->list[i].comm].kind == change->kind &&
			 slow_is_same_name(&job->comms[cells->list[i].comm], example);
	return change->comms_changed == 1 || count == change->comms_changed;
}

/* When the speed recovered, if it did. */
static uint64_t change_end(const struct windows *windows, const struct windows_change *fall)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (windows_is_same_kind(change, fall) && change->percent > 0 &&
		    change->at_ns > fall->at_ns && (end_ns == 0 || change->at_ns < end_ns))
			end_ns = change->at_ns;
	}
	return end_ns;
}

static bool has_fall_before(const struct windows *windows, const struct windows_change *rise)
{
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (windows_is_same_kind(change, rise) && change->percent < 0 &&
		    change->at_ns <= rise->at_ns)
			return true;
	}
	return false;
}

static void add_change(struct slow_rows *rows, const struct timeline_report *report,
		       const struct slow_cells *cells, const struct windows_change *change)
{
	const struct slow_cell *cell =
		slow_cells_find(cells, change->example_comm, change->function, change->size_class);
	bool is_rise = change->percent > 0;
	struct slow_row *row;

	if (rows->count == SLOW_ROWS_MAX) {
		rows->left_out++;
		return;
	}
	row = &rows->list[rows->count++];
	*row = (struct slow_row){ .kind = change->kind,
				  .function = change->function,
				  .size_class = change->size_class,
				  .algorithm = cell ? cell->algorithm : 0,
				  .protocol = cell ? cell->protocol : 0,
				  .is_slow = true,
				  .comms = change->comms,
				  .comms_slow = change->comms_changed,
				  .comm = change->example_comm,
				  .is_one_name = is_one_name(&report->job, cells, change),
				  .host = UINT32_MAX,
				  .ranks = change->ranks_changed,
				  .before = is_rise ? change->after : change->before,
				  .after = is_rise ? change->before : change->after,
				  .lost_ns = (double)change->lost_ns,
				  .confidence = change->confidence,
				  .is_wire = change->is_wire,
				  .is_over = is_rise };
	row->ratio = row->ratio_low = row->ratio_high = row->before / row->after;
	if (is_rise)
		row->span.until_ns = change->at_ns;
	else
		row->span = (struct slow_span){ .from_ns = change->at_ns,
						.until_ns = change_end(&report->windows, change) };
	row->span.is_unbound = change->is_wire;
	if (change->comms_changed == 1)
		row->host = host_of(&report->job, change->example_comm);
}

/*
 * Ranks that share a GPU, as in tests, have no link between them and take time from each other; and between ranks of one
 * host that exchange data over sockets there is no network.
 */
static bool is_without_link(const struct job *job, uint32_t comm, bool is_wire)
{
	const struct job_comm *of = &job->comms[comm];

	if (is_wire || job_comm_is_over_network(of->kind))
		return job_is_on_one_host(job, comm);
	for (uint32_t i = 0; of->kind == JOB_COMM_NVLINK && i < of->seat_count; i++)
		for (uint32_t j = 0; j < i; j++) {
			const struct job_rank *one = &job->ranks[job->seats[of->seats[i]].rank];
			const struct job_rank *other = &job->ranks[job->seats[of->seats[j]].rank];

			if (one->host == other->host && one->gpu_uuid[0] != '\0' &&
			    strcmp(one->gpu_uuid, other->gpu_uuid) == 0)
				return true;
		}
	return false;
}

/* Enough on both sides to rule out a short moment, such as the last one before a hang. */
static bool has_enough(const struct windows_change *change)
{
	return change->matches_before >= EACH_SIDE_LEAST &&
	       change->matches_after >= EACH_SIDE_LEAST;
}

/*
 * A few bytes are on the wire for no time. If such messages take longer, ranks arrive less evenly, for example because
 * all GPUs compute longer: only larger messages tell about a network or NVLink.
 */
static bool is_only_latency(const struct windows_change *change)
{
	uint64_t least, most;

	return op_size_range(change->size_class, &least, &most) && most < LATENCY_BYTES;
}

void slow_rows_past(struct slow_rows *rows, const struct timeline_report *report,
		    const struct slow_cells *cells, uint32_t group, double threshold)
{
	const struct windows *windows = &report->windows;
	bool has_sends = false;

	for (size_t i = 0; i < rows->count; i++)
		has_sends |= rows->list[i].function == OP_SEND;
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];
		double ratio = change->percent < 0 ? change->before / change->after
						   : change->after / change->before;

		if (ratio < 1 + threshold ||
		    report->job.comms[change->example_comm].group != group ||
		    (change->percent > 0 && has_fall_before(windows, change)) ||
		    !has_enough(change) || is_only_latency(change) ||
		    is_without_link(&report->job, change->example_comm, change->is_wire))
			continue;
		add_change(rows, report, cells, change);
	}
	for (size_t i = 0; i < cells->count; i++) {
		const struct slow_cell *cell = &cells->list[i];
		const struct job_comm *comm = &report->job.comms[cell->comm];
		struct slow_row *row;

		if (cell->moves < MOVES_LEAST || !(cell->is_transfer || cell->is_wire) ||
		    comm->group != group || (has_sends && cell->function == OP_SEND) ||
		    change_of(windows, comm, cell, threshold) != NULL)
			continue;
		row = row_for_cell(rows, &report->job, cell);
		if (row == NULL || row->is_slow)
			continue;
		row->comms++;
		/* A larger change between its halves would have been found. */
		row->bound = fmax(row->bound, exp(4 * sqrt(cell->log_variance / cell->samples)));
	}
}

/*
 * Sends are not matched between ranks, so the report has no changes of them. When iterations became longer, the time
 * on the wire of their transfers then is compared with that of the rest. Every transfer counts alike, so that a few
 * that were lost and repeated do not decide.
 */

enum { SENDS_EACH_LEAST = 32 };
static const double sends_slower = 1.2, errors_of_sends = 5, sure_of_sends = 0.95;

static double variance_of(const struct wire_sums *sums)
{
	double mean = sums->log_sum / sums->logs;

	return fmax(0, sums->log_squares / sums->logs - mean * mean);
}

static void add_sends(struct slow_rows *rows, const struct timeline_report *report,
		      const struct slow_cell *cell, const struct wire_sums *sums,
		      const struct slow_span *span)
{
	const struct wire_sums *before = &sums[0], *after = &sums[1];
	/* Without what they took: what more time on the wire costs is not known. */
	struct slow_cell wire = *cell;
	struct slow_row *row;
	double gap, error;

	wire.is_wire = true;
	if (before->logs < SENDS_EACH_LEAST || after->logs < SENDS_EACH_LEAST ||
	    is_without_link(&report->job, cell->comm, true))
		return;
	row = row_for_cell(rows, &report->job, &wire);
	if (row == NULL)
		return;
	gap = after->log_sum / after->logs - before->log_sum / before->logs;
	error = sqrt(variance_of(before) / before->logs + variance_of(after) / after->logs);
	row->comms++;
	wire.ratio = wire.ratio_low = wire.ratio_high = exp(gap);
	if (gap < log(sends_slower) + errors_of_sends * error) {
		row->bound = fmax(row->bound, exp(gap + 2 * error));
		return;
	}
	wire.busbw_then = 1e9 / exp(before->log_sum / before->logs);
	wire.busbw = 1e9 / exp(after->log_sum / after->logs);
	wire.confidence = sure_of_sends;
	add_slow(row, &report->job, &wire);
	row->span = *span;
	row->span.is_unbound = true;
}

enum status slow_rows_sends(struct slow_rows *rows, const struct timeline_report *report,
			    uint32_t group, const struct slow_span *span)
{
	struct slow_cells cells;
	struct walk walk = { .job = &report->job, .cells = &cells, .hosts = 1 };
	enum status status = cells_of_sends(&cells, report, group, NULL);

	if (status == OK) {
		walk.sums = calloc(cells.count * 2 + 1, sizeof(*walk.sums));
		status = walk.sums != NULL ? OK : ERR_NO_SPACE;
	}
	if (status == OK && cells.count > 0)
		walk_all(&walk, report, span);
	for (size_t i = 0; status == OK && i < cells.count; i++)
		add_sends(rows, report, &cells.list[i], &walk.sums[i * 2], span);
	free(walk.sums);
	slow_cells_release(&cells);
	return status;
}

/*
 * Did NCCL switch to another, slower algorithm or protocol at some time? Totals show that there are two
 * choices for one kind of call, and how fast each is; one rank's operations show whether one came after the
 * other. Sizes of one class may also use different choices all the time: those alternate.
 */

enum { SWITCHES_MAX = 16, SWITCH_MOVES_LEAST = 16 };
static const double errors_apart = 4, other_time = 0.01;

/* Operations of one rank with two choices. */
struct watching {
	const struct job *job;
	const struct job_seat *seat;
	const struct tally_key *fast;
	const struct tally_key *slow;
	uint64_t last_fast_ns;
	uint64_t first_slow_ns;
};

static bool is_choice(const struct watching *watching, const struct op_record *op,
		      const struct tally_key *key)
{
	size_t process = watching->seat->process;

	return job_name_number(watching->job, process, op->algorithm) == key->algorithm &&
	       job_name_number(watching->job, process, op->protocol) == key->protocol;
}

static bool watch_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct watching *watching = context;

	(void)place;
	if (op->comm != watching->seat->comm_id || op->done_ns == 0 ||
	    job_name_number(watching->job, watching->seat->process, op->function) !=
		    watching->fast->function ||
	    op_size_class(op->bytes) != watching->fast->size_class)
		return true;
	if (is_choice(watching, op, watching->fast) && op->done_ns > watching->last_fast_ns)
		watching->last_fast_ns = op->done_ns;
	if (is_choice(watching, op, watching->slow) &&
	    (watching->first_slow_ns == 0 || op->done_ns < watching->first_slow_ns))
		watching->first_slow_ns = op->done_ns;
	return true;
}

/* When the slow choice took over, in common time; 0: they alternate. */
static uint64_t switched_at(const struct timeline_report *report, const struct tally_row *fast,
			    const struct tally_row *slow)
{
	const struct job *job = &report->job;
	const struct job_comm *comm = &job->comms[fast->key.comm];
	struct watching watching = { .job = job, .fast = &fast->key, .slow = &slow->key };

	if (comm->seat_count == 0)
		return 0;
	watching.seat = &job->seats[comm->seats[0]];
	if (recording_each_op(job->recording->processes[watching.seat->process], watch_op,
			      &watching, NULL) != OK ||
	    watching.last_fast_ns == 0 || watching.first_slow_ns <= watching.last_fast_ns)
		return 0;
	return align_ns(&report->align, watching.seat->process, watching.first_slow_ns);
}

/* ---- two choices of one cell ------------------------------------------------------------------ */

struct pair {
	const struct tally_row *fast;
	const struct tally_row *slow;
	struct baseline_figures fast_is;
	struct baseline_figures slow_is;
};

static struct pair pair_of(const struct timeline_report *report, const struct slow_cell *cell)
{
	const struct tally *table = baseline_table(report);
	struct pair pair = { .fast = NULL };

	for (size_t i = 0; i < table->count; i++) {
		const struct tally_row *row = &table->rows[i];
		struct baseline_figures figures;

		if (row->key.comm != cell->comm || row->key.function != cell->function ||
		    row->key.size_class != cell->size_class || row->moves < SWITCH_MOVES_LEAST)
			continue;
		figures = baseline_figures(report, row);
		if (pair.fast == NULL || figures.log_mean < pair.fast_is.log_mean) {
			pair.fast = row;
			pair.fast_is = figures;
		}
		if (pair.slow == NULL || figures.log_mean > pair.slow_is.log_mean) {
			pair.slow = row;
			pair.slow_is = figures;
		}
	}
	return pair;
}

static bool is_slower(const struct pair *pair, double threshold)
{
	double gap, error;

	if (pair->fast == NULL || pair->fast == pair->slow)
		return false;
	gap = pair->slow_is.log_mean - pair->fast_is.log_mean;
	error = sqrt(pair->slow_is.log_variance / pair->slow_is.samples +
		     pair->fast_is.log_variance / pair->fast_is.samples + other_time * other_time);
	return gap > log(1 + threshold) + errors_apart * error;
}

static struct slow_row switched_row(const struct timeline_report *report,
				    const struct slow_cell *cell, const struct pair *pair,
				    uint64_t at_ns)
{
	const struct job *job = &report->job;
	double ratio = exp(pair->slow_is.log_mean - pair->fast_is.log_mean);
	struct slow_row row = { .kind = job->comms[cell->comm].kind,
				.function = cell->function,
				.size_class = cell->size_class,
				.algorithm = pair->slow->key.algorithm,
				.protocol = pair->slow->key.protocol,
				.is_slow = true,
				.comms = 1,
				.comms_slow = 1,
				.comm = cell->comm,
				.is_one_name = true,
				.host = UINT32_MAX,
				.ranks = job->comms[cell->comm].seat_count,
				.before = pair->fast_is.busbw,
				.after = pair->slow_is.busbw,
				.ratio = ratio,
				.ratio_low = ratio,
				.ratio_high = ratio,
				.confidence = 0.99,
				.span = { .from_ns = at_ns } };

	row.lost_ns = pair->slow_is.mean_ns * (double)pair->slow->calls * (1 - 1 / ratio);
	text_format(row.was, sizeof(row.was), "%s %s",
		    job_name(job, OP_NAMES_ALGORITHM, pair->fast->key.algorithm),
		    job_name(job, OP_NAMES_PROTOCOL, pair->fast->key.protocol));
	return row;
}

/* The same on another communicator: one row for all. */
static bool merge_row(struct slow_rows *rows, const struct slow_row *row)
{
	struct slow_row *before = find_row(rows, row);

	if (before == NULL)
		return false;
	before->comms++;
	before->comms_slow++;
	before->is_one_name = false;
	before->ranks += row->ranks;
	before->lost_ns += row->lost_ns;
	return true;
}

void slow_rows_switched(struct slow_rows *rows, const struct timeline_report *report,
			const struct slow_cells *cells, uint32_t group, double threshold)
{
	size_t looked_at = 0;

	for (size_t i = 0; i < cells->count && looked_at < SWITCHES_MAX; i++) {
		const struct slow_cell *cell = &cells->list[i];
		struct slow_row row;
		struct pair pair;
		uint64_t at_ns;

		if (cell->choices < 2 || !cell->is_transfer || rows->count == SLOW_ROWS_MAX ||
		    report->job.comms[cell->comm].group != group)
			continue;
		pair = pair_of(report, cell);
		if (!is_slower(&pair, threshold))
			continue;
		looked_at++;
		at_ns = switched_at(report, pair.fast, pair.slow);
		if (at_ns == 0)
			continue;
		row = switched_row(report, cell, &pair, at_ns);
		if (!merge_row(rows, &row))
			rows->list[rows->count++] = row;
	}
}
