/*
 * Where the time of a slow transfer goes: with the network, or within a node. Records sum up, per operation, how
 * long its transfers were on the wire, and how long what had arrived waited for the GPU to take it on. When
 * collectives over nodes get slower and their transfers are on the wire no longer than before, it is not the
 * network; and the node whose GPUs take longer to take over is the one with slow links inside.
 *
 * One walk over the operations of some processes, and only when there is something to tell apart.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "doctor/slow_find.h"

enum { PROCESSES_MAX = 256, TRANSFERS_LEAST = 64 };
static const double rise_ns = 5000, rise_ratio = 3;

struct wire_sums {
	double net_ns;
	double sends;
	double consume_ns;
	double receives;
};

struct walk {
	const struct job *job;
	const struct slow_cell *cells;
	size_t count;
	size_t hosts;		   /* 1: not told apart */
	struct wire_sums *sums;	   /* [(cell * 2 + is_slow) * hosts + host] */
	struct wire_sums *senders; /* [process * 2 + is_slow], of all cells; NULL: not wanted */
	size_t process;
	size_t host;
	uint64_t from_clock_ns; /* what ended from here on, and before the next, is slow */
	uint64_t until_clock_ns;
	uint64_t last_key; /* what the cell below belongs to */
	size_t last_cell;  /* SIZE_MAX: none */
};

static size_t find_cell(const struct walk *walk, uint32_t comm, uint8_t function,
			uint8_t size_class)
{
	size_t low = 0, high = walk->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct slow_cell *cell = &walk->cells[middle];
		bool is_before = cell->comm != comm	      ? cell->comm < comm
				 : cell->function != function ? cell->function < function
							      : cell->size_class < size_class;

		if (is_before)
			low = middle + 1;
		else
			high = middle;
	}
	return low < walk->count && walk->cells[low].comm == comm &&
			       walk->cells[low].function == function &&
			       walk->cells[low].size_class == size_class
		       ? low
		       : SIZE_MAX;
}

static size_t cell_of(struct walk *walk, uint64_t kind, uint64_t bytes)
{
	uint8_t size_class = (uint8_t)op_size_class(bytes);
	uint8_t function = (uint8_t)op_kind_names(kind);
	uint64_t key = (uint64_t)op_kind_comm(kind) << 16 | (uint64_t)function << 8 | size_class;
	const struct job_seat *seat;

	if (key == walk->last_key)
		return walk->last_cell;
	seat = job_seat(walk->job, walk->process, op_kind_comm(kind));
	walk->last_key = key;
	walk->last_cell = seat == NULL
				  ? SIZE_MAX
				  : find_cell(walk, seat->comm,
					      job_name_number(walk->job, walk->process, function),
					      size_class);
	return walk->last_cell;
}

static bool visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct walk *walk = context;

	(void)place;
	for (uint32_t i = 0; i < batch->rows; i++) {
		uint64_t steps = batch->column[OP_WORD_STEPS][i];
		uint64_t done_ns = batch->column[OP_WORD_DONE][i];
		bool is_slow = done_ns >= walk->from_clock_ns && done_ns < walk->until_clock_ns;
		struct wire_sums *sums;
		size_t cell;

		if (steps == 0)
			continue;
		cell = cell_of(walk, batch->column[OP_WORD_KIND][i],
			       batch->column[OP_WORD_BYTES][i]);
		if (cell == SIZE_MAX)
			continue;
		sums = &walk->sums[(cell * 2 + is_slow) * walk->hosts + walk->host];
		sums->net_ns += (double)batch->column[OP_WORD_WAITS + OP_WAIT_SEND_NET][i];
		sums->consume_ns += (double)batch->column[OP_WORD_WAITS + OP_WAIT_RECV_GPU][i];
		sums->sends += (double)(uint32_t)steps;
		sums->receives += (double)(steps >> 32);
		if (walk->senders != NULL) {
			sums = &walk->senders[walk->process * 2 + is_slow];
			sums->net_ns += (double)batch->column[OP_WORD_WAITS + OP_WAIT_SEND_NET][i];
			sums->sends += (double)(uint32_t)steps;
		}
	}
	return true;
}

static void walk_all(struct walk *walk, const struct timeline_report *report,
		     const struct slow_span *span)
{
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_BYTES) |
			       OP_WORD_BIT(OP_WORD_DONE) | OP_WORD_BIT(OP_WORD_STEPS) |
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
		/* What cannot be read was told when the report was made. */
		recording_each_batch(recording->processes[p], words, visit, walk, NULL);
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

/* ---- of all cells: for a baseline ------------------------------------------------------------- */

enum status slow_cells_wire(struct slow_cells *cells, const struct timeline_report *report)
{
	struct walk walk = {
		.job = &report->job, .cells = cells->list, .count = cells->count, .hosts = 1
	};

	if (cells->count == 0)
		return OK;
	walk.sums = calloc(cells->count * 2, sizeof(*walk.sums));
	if (walk.sums == NULL)
		return ERR_NO_SPACE;
	walk_all(&walk, report, &(struct slow_span){ 0 });
	for (size_t i = 0; i < cells->count; i++) {
		cells->list[i].wire_ns = per_send(&walk.sums[i * 2 + 1]);
		cells->list[i].consume_ns = per_receive(&walk.sums[i * 2 + 1]);
	}
	free(walk.sums);
	return OK;
}

/* ---- of one row: to tell apart ---------------------------------------------------------------- */

/* The only host of several whose GPUs take over later than before; UINT32_MAX: none, or more. */
static uint32_t find_host(const struct wire_sums *before, const struct wire_sums *after,
			  size_t hosts, double before_ns)
{
	uint32_t found = UINT32_MAX;
	size_t count = 0, seen = 0;

	for (size_t h = 0; h < hosts; h++) {
		double was = before_ns > 0 ? before_ns : per_receive(&before[h]);
		double is = per_receive(&after[h]);

		seen += after[h].receives >= TRANSFERS_LEAST;
		if (is < was + rise_ns || is < rise_ratio * was)
			continue;
		found = (uint32_t)h;
		count++;
	}
	return count == 1 && seen > 1 ? found : UINT32_MAX;
}

static struct wire_sums add_up(const struct wire_sums *list, size_t count)
{
	struct wire_sums all = { 0 };

	for (size_t i = 0; i < count; i++) {
		all.net_ns += list[i].net_ns;
		all.sends += list[i].sends;
		all.consume_ns += list[i].consume_ns;
		all.receives += list[i].receives;
	}
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

enum status slow_wire(struct slow_wire *wire, const struct timeline_report *report,
		      const struct slow_row *row)
{
	size_t hosts = report->job.host_count, processes = report->recording->count;
	struct slow_cell cell = { .comm = row->comm,
				  .function = row->function,
				  .size_class = row->size_class };
	struct walk walk = { .job = &report->job, .cells = &cell, .count = 1, .hosts = hosts };
	bool is_past = row->span.from_ns > 0 || row->span.until_ns > 0;
	struct wire_sums *fast, *slow, all;

	*wire = (struct slow_wire){ .host = UINT32_MAX };
	walk.sums = calloc(hosts * 2 + 1, sizeof(*walk.sums));
	walk.senders = calloc(processes * 2 + 1, sizeof(*walk.senders));
	if (walk.sums == NULL || walk.senders == NULL) {
		free(walk.sums);
		free(walk.senders);
		return ERR_NO_SPACE;
	}
	walk_all(&walk, report, &row->span);
	fast = walk.sums;
	slow = walk.sums + hosts;
	all = add_up(fast, hosts);
	wire->before_ns = is_past ? per_send(&all) : row->wire_then_ns;
	all = add_up(slow, hosts);
	wire->after_ns = per_send(&all);
	wire->is_known = wire->before_ns > 0 && wire->after_ns > 0;
	if (is_past || row->consume_then_ns > 0)
		wire->host = find_host(fast, slow, hosts, is_past ? 0 : row->consume_then_ns);
	if (is_past)
		count_senders(wire, walk.senders, processes, row->ratio);
	free(walk.sums);
	free(walk.senders);
	return OK;
}
