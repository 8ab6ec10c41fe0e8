#include "timeline/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/hash.h"
#include "op/op_bytes.h"
#include "timeline/filter.h"
#include "timeline/meet_cursor.h"

enum { CURSORS = 4, MODE_REPLAY = 4, MODE_USED = 8 };

/* ---- entries --------------------------------------------------------------------------------- */

static uint32_t map_names(const struct scan *scan, uint32_t names)
{
	uint32_t mapped = 0;

	for (unsigned int i = 0; i < OP_NAME_TABLES; i++)
		mapped |= (uint32_t)job_name_number(scan->job, scan->process,
						    (uint8_t)(names >> (8 * i)))
			  << (8 * i);
	return mapped;
}

static void forget_cache(struct scan *scan)
{
	for (size_t i = 0; i < SCAN_CACHE; i++)
		scan->cache[i].mode = 0;
}

static struct scan_cell *find_cell(struct scan *scan, const struct scan_cell *like)
{
	uint64_t hash = hash_word(hash_word(like->tag, (uint64_t)like->seat << 32 | like->names),
				  (uint64_t)like->size_class << 8 | like->source);
	size_t place = (size_t)hash % ARRAY_LENGTH(scan->cell_table);
	struct scan_cell *cell;

	for (; scan->cell_table[place] != 0; place = (place + 1) % ARRAY_LENGTH(scan->cell_table)) {
		cell = &scan->cells[scan->cell_table[place] - 1];
		if (cell->seat == like->seat && cell->names == like->names &&
		    cell->tag == like->tag && cell->size_class == like->size_class &&
		    cell->source == like->source)
			return cell;
	}
	if (scan->cell_count == SCAN_CELLS) {
		/* All to the tables, and begin anew: keys may come without end. */
		scan->status = scan_flush(scan);
		forget_cache(scan);
		return scan->status == OK ? find_cell(scan, like) : NULL;
	}
	cell = &scan->cells[scan->cell_count++];
	memset(cell, 0, sizeof(*cell));
	cell->seat = like->seat;
	cell->names = like->names;
	cell->tag = like->tag;
	cell->size_class = like->size_class;
	cell->source = like->source;
	cell->min_ns = UINT64_MAX;
	scan->cell_table[place] = (uint16_t)scan->cell_count;
	return cell;
}

static struct meet_cursor *find_cursor(struct scan *scan, const struct job_seat *seat,
				       uint8_t source, bool is_replay)
{
	size_t index = (size_t)(seat - scan->job->seats) - scan->job->first_seat[scan->process];
	struct meet_cursor **cursor =
		&scan->cursors[index * CURSORS + (source == OP_TIME_PROXY ? 1u : 0u) +
			       (is_replay ? 2u : 0u)];

	if (*cursor == NULL)
		*cursor = meet_cursor_new(&scan->meet, seat, source, is_replay);
	return *cursor;
}

static void join_entry(struct scan *scan, struct scan_entry *entry, const struct scan_cell *like,
		       bool is_replay)
{
	const struct meet_kind kind = { .tag = like->tag,
					.names = like->names,
					.size_class = like->size_class };

	if ((uint8_t)(like->names >> 16) == OP_RING)
		entry->wire_class = like->size_class;
	entry->is_sync = meet_is_synchronising((uint8_t)like->names);
	if (!entry->is_sync || scan->options->without_joins)
		return;
	entry->cursor = find_cursor(scan, entry->seat, like->source, is_replay);
	if (entry->cursor != NULL)
		entry->meet_kind = meet_kind(&scan->meet, entry->seat->comm, &kind);
}

/* Without the exact size: sizes may vary from iteration to iteration, kinds of calls do not. */
static uint32_t symbol_of(const struct scan_cell *like)
{
	uint64_t what = like->names & 0xffff;

	if (op_is_collective((uint8_t)like->names))
		what |= (uint64_t)like->size_class << 16;
	return (uint32_t)hash_word(like->seat, what);
}

static void start_series(struct scan *scan, struct scan_cell *cell, const struct scan_entry *entry)
{
	const struct job_comm *comm = &scan->job->comms[entry->seat->comm];
	uint8_t function = (uint8_t)cell->names;

	cell->bus_factor = tally_bus_factor(function, comm->nranks);
	cell->series = UINT32_MAX;
	if (scan->local != NULL && entry->rank->is_shown && cell->source != OP_TIME_NONE)
		cell->series =
			windows_local_series(scan->local, scan_series_id(comm->kind, function));
}

/* An operation unlike those in the cache: find out what is to be done with such. */
static COLD void fill_entry(struct scan *scan, uint64_t kind, uint64_t bytes, uint64_t tag,
			    uint32_t mode, struct scan_entry *entry)
{
	struct scan_cell like = { .tag = tag, .names = map_names(scan, op_kind_names(kind)) };
	const struct job_seat *seat = job_seat(scan->job, scan->process, op_kind_comm(kind));

	*entry = (struct scan_entry){ .kind = kind,
				      .bytes = bytes,
				      .tag = tag,
				      .mode = mode,
				      .size = bytes == OP_BYTES_UNKNOWN ? 0 : (float)bytes,
				      .seat = seat };
	if (seat == NULL || !filter_has_comm(scan->filter, &scan->job->comms[seat->comm]) ||
	    !filter_has_function(scan->filter, scan->job, (uint8_t)like.names))
		return;
	for (size_t i = 0; i < scan->rank_count; i++)
		if (scan->ranks[i].rank == seat->rank)
			entry->rank = &scan->ranks[i];
	if (entry->rank == NULL)
		return;
	like.seat = (uint32_t)(seat - scan->job->seats);
	like.size_class = (uint8_t)op_size_class(bytes);
	like.source = mode & 3;
	entry->is_send = (uint8_t)like.names == OP_SEND;
	entry->symbol = symbol_of(&like);
	join_entry(scan, entry, &like, mode & MODE_REPLAY);
	/* Last: it may empty the cache. */
	entry->cell = find_cell(scan, &like);
	if (entry->cell != NULL && entry->cell->calls == 0)
		start_series(scan, entry->cell, entry);
	entry->mode = mode;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* A row of a batch, as far as it is needed more than once. */
struct row {
	uint64_t state_word;
	uint64_t duration_ns;
	uint64_t done_ns;
	uint32_t index;
};

static uint64_t column(const struct op_batch *batch, unsigned int word, uint32_t row)
{
	return batch->column[word][row];
}

static COLD void count_unjoined(struct scan *scan, uint8_t source)
{
	if (source == OP_TIME_KERNEL_GPU || source == OP_TIME_PROXY)
		scan->meet.unmatched++;
	else
		scan->meet.untimed++;
}

/* No duration. Neither done nor captured: in flight, or never seen to end. */
static COLD void take_untimed(struct scan *scan, const struct scan_entry *entry,
			      const struct op_batch *batch, const struct row *row)
{
	const uint32_t blind =
		OP_FLAG_API_ONLY | OP_FLAG_COPY_ENGINE | OP_FLAG_SELF | OP_FLAG_UNTRACKED;
	size_t index = (size_t)(entry->seat - scan->job->seats);
	const struct recording_process *process = scan->job->recording->processes[scan->process];
	const struct recording_comm *comm =
		&process->comms[index - scan->job->first_seat[scan->process]];
	struct scan_open *open = &scan->opens[index];
	uint8_t state = op_state_state(row->state_word);

	if (entry->is_sync)
		count_unjoined(scan, OP_TIME_NONE);
	if (state >= OP_DONE || row->done_ns != 0 || op_state_flags(row->state_word) & blind ||
	    process->life == RECORDING_ENDED)
		return;
	/* They run in order: what is before one that is done is over. */
	if (state != OP_RUNNING && comm->has_counts &&
	    column(batch, OP_WORD_NUMBER, row->index) <= comm->counts.last_done_number)
		return;
	entry->cell->open++;
	scan->report->completeness.in_flight++;
	if (open->count++ > 0)
		return;
	open->match = column(batch, OP_WORD_MATCH, row->index);
	open->signature = column(batch, OP_WORD_SIGNATURE, row->index);
	open->issue_ns = column(batch, OP_WORD_ISSUE, row->index);
	open->function = (uint8_t)entry->cell->names;
	open->state = state;
}

static COLD void take_iteration_op(struct scan *scan, const struct scan_entry *entry,
				   const struct op_batch *batch, const struct row *row)
{
	if (scan->iteration_count == scan->iteration_room) {
		size_t room = scan->iteration_room ? scan->iteration_room * 2 : 4096;
		void *grown;

		if (scan->iteration_count >= ITERATIONS_OPS_MAX) {
			scan->is_iteration_cut = true;
			return;
		}
		grown = realloc(scan->iteration_ops, room * sizeof(*scan->iteration_ops));
		if (grown == NULL) {
			scan->status = ERR_NO_SPACE;
			return;
		}
		scan->iteration_ops = grown;
		scan->iteration_room = room;
	}
	scan->iteration_ops[scan->iteration_count++] = (struct iterations_op){
		.symbol = entry->symbol,
		.tag = column(batch, OP_WORD_USER_TAG, row->index),
		.issue_ns = column(batch, OP_WORD_ISSUE, row->index),
		.done_ns = row->done_ns,
		.duration_ns = row->duration_ns,
		.bytes = entry->bytes == OP_BYTES_UNKNOWN ? 0 : entry->bytes,
	};
}

static void take_send(struct scan *scan, const struct scan_entry *entry,
		      const struct op_batch *batch, const struct row *row)
{
	uint64_t steps = (uint32_t)column(batch, OP_WORD_STEPS, row->index);
	int32_t peer = (int32_t)(column(batch, OP_WORD_ENDS, row->index) >> 32);
	struct link *link;

	if (scan->options->without_joins)
		return;
	link = links_get(&scan->links, entry->seat->comm,
			 (uint32_t)(entry->seat - scan->job->seats), peer);
	if (link == NULL)
		return;
	link->sends++;
	link->send_steps += steps;
	link->send_net_ns += column(batch, OP_WORD_WAITS + OP_WAIT_SEND_NET, row->index);
	link->bytes += entry->bytes == OP_BYTES_UNKNOWN ? 0 : entry->bytes;
}

static void join(struct scan *scan, const struct scan_entry *entry, const struct op_batch *batch,
		 const struct row *row)
{
	const struct meet_op op = {
		.match = column(batch, OP_WORD_MATCH, row->index),
		.signature = column(batch, OP_WORD_SIGNATURE, row->index),
		.duration_ns = row->duration_ns,
		.end_ns = row->done_ns,
		.send_net_ns = column(batch, OP_WORD_WAITS + OP_WAIT_SEND_NET, row->index),
		.send_steps = (uint32_t)column(batch, OP_WORD_STEPS, row->index),
		.kind = entry->meet_kind,
		.bytes = entry->size,
		.wire_class = entry->wire_class,
	};

	if (op.match == 0) {
		scan->meet.unmatched++;
	} else if (meet_add(entry->cursor, &op)) {
		entry->cell->joined++;
		entry->cell->joined_ns += op.duration_ns;
	}
}

static void take_timed(struct scan *scan, const struct scan_entry *entry,
		       const struct op_batch *batch, const struct row *row)
{
	struct scan_cell *cell = entry->cell;
	uint64_t ns = row->duration_ns;

	cell->sum_ns += ns;
	cell->min_ns = ns < cell->min_ns ? ns : cell->min_ns;
	cell->max_ns = ns > cell->max_ns ? ns : cell->max_ns;
	cell->square_sum += (double)ns * (double)ns;
	cell->buckets[tally_bucket(&scan->scale, ns)]++;
	if (LIKELY(entry->cursor != NULL))
		join(scan, entry, batch, row);
	else if (entry->is_sync)
		count_unjoined(scan, cell->source);
	if (LIKELY(row->done_ns >= ns && row->done_ns != 0))
		busy_add(&entry->rank->busy, row->done_ns - ns, row->done_ns);
}

static void take(struct scan *scan, const struct scan_entry *entry, const struct op_batch *batch,
		 const struct row *row)
{
	struct scan_cell *cell = entry->cell;
	uint8_t state = op_state_state(row->state_word);

	if (UNLIKELY(state == OP_CAPTURED)) {
		cell->captured++;
		return;
	}
	if (UNLIKELY(row->done_ns >= scan->stretch_end_ns)) {
		scan_tell_series(scan);
		windows_local_move(scan->local, row->done_ns);
		scan->stretch_end_ns = scan->local->current_end_ns;
	}
	cell->calls++;
	if (entry->bytes != OP_BYTES_UNKNOWN)
		cell->bytes += entry->bytes;
	cell->untrusted += (op_state_flags(row->state_word) & OP_STAMPS_UNTRUSTED) != 0;
	if (LIKELY(cell->source != OP_TIME_NONE))
		take_timed(scan, entry, batch, row);
	else
		take_untimed(scan, entry, batch, row);
	if (UNLIKELY(entry->is_send))
		take_send(scan, entry, batch, row);
	if (UNLIKELY(scan->process == scan->iteration_process))
		take_iteration_op(scan, entry, batch, row);
}

static uint64_t duration_of(const struct op_batch *batch, uint32_t i, uint8_t source)
{
	switch (source) {
	case OP_TIME_KERNEL_GPU:
		return column(batch, OP_WORD_GPU_STOP, i) - column(batch, OP_WORD_GPU_START, i);
	case OP_TIME_PROXY:
		return column(batch, OP_WORD_DONE, i) - column(batch, OP_WORD_ACTIVE, i);
	case OP_TIME_HOST:
		return column(batch, OP_WORD_DONE, i) - column(batch, OP_WORD_ISSUE, i);
	default:
		return 0;
	}
}

/* What tells entries apart, and where in the cache one would be. */
struct lookup {
	uint64_t kind;
	uint64_t bytes;
	uint64_t tag;
	uint32_t mode;
	struct scan_entry *place;
};

/* The entry for row i, if the cache has it. */
static inline const struct scan_entry *look_up(struct scan *scan, const struct op_batch *batch,
					       uint32_t i, struct lookup *lookup)
{
	uint64_t kind = column(batch, OP_WORD_KIND, i), bytes = column(batch, OP_WORD_BYTES, i);
	uint64_t state_word = column(batch, OP_WORD_STATE, i);
	uint64_t tag = scan->has_tags ? column(batch, OP_WORD_USER_TAG, i) : 0;
	uint32_t mode = op_state_source(state_word) |
			(op_state_flags(state_word) & OP_FLAG_REPLAY ? MODE_REPLAY : 0) | MODE_USED;
	uint64_t mixed =
		(kind ^ bytes << 7 ^ tag ^ (uint64_t)mode << 40) * UINT64_C(0x9e3779b97f4a7c15);
	struct scan_entry *entry = &scan->cache[mixed >> 56];

	_Static_assert(SCAN_CACHE == 256, "the hash has 8 bits");
	if (LIKELY(entry->kind == kind && entry->bytes == bytes && entry->mode == mode &&
		   entry->tag == tag))
		return entry;
	*lookup = (struct lookup){ kind, bytes, tag, mode, entry };
	return NULL;
}

static bool is_within(const struct scan *scan, const struct op_batch *batch, const struct row *row)
{
	uint64_t ns = row->done_ns ? row->done_ns : column(batch, OP_WORD_ISSUE, row->index);

	return (ns >= scan->since_ns && ns < scan->until_ns) || ns == 0;
}

/*
 * Rows are gone through in two steps, some dozens at a time: first what each of them is, then what is done
 * with it. The first step waits for memory and depends on nothing, so the processor does many rows of it
 * at once.
 */
enum { ROWS_AT_ONCE = 64 };

struct step {
	const struct scan_entry *entries[ROWS_AT_ONCE];
	uint64_t durations_ns[ROWS_AT_ONCE];
};

/* How many rows from `first` on are like some before. 0: the first is new, and has an entry now. */
static uint32_t first_step(struct scan *scan, const struct op_batch *batch, uint32_t first,
			   struct step *step)
{
	uint32_t most = batch->rows - first, n = 0;
	struct lookup lookup = { 0 };

	most = most < ROWS_AT_ONCE ? most : ROWS_AT_ONCE;
	for (; n < most; n++) {
		const struct scan_entry *entry = look_up(scan, batch, first + n, &lookup);

		/* A new one may take the place of one that is still needed: not now. */
		if (entry == NULL)
			break;
		step->entries[n] = entry;
		step->durations_ns[n] = duration_of(batch, first + n, (uint8_t)(entry->mode & 3));
	}
	if (n == 0)
		fill_entry(scan, lookup.kind, lookup.bytes, lookup.tag, lookup.mode, lookup.place);
	return n;
}

/* How many rows passed the filter. */
static uint32_t second_step(struct scan *scan, const struct op_batch *batch, uint32_t first,
			    uint32_t rows, const struct step *step)
{
	bool has_limits = scan->since_ns != 0 || scan->until_ns != UINT64_MAX;
	uint32_t passed = 0;

	for (uint32_t n = 0; n < rows && scan->status == OK; n++) {
		const struct scan_entry *entry = step->entries[n];
		const struct row row = { .state_word = column(batch, OP_WORD_STATE, first + n),
					 .done_ns = column(batch, OP_WORD_DONE, first + n),
					 .duration_ns = step->durations_ns[n],
					 .index = first + n };

		if (entry->cell == NULL || (has_limits && !is_within(scan, batch, &row)))
			continue;
		if (UNLIKELY(scan->filter->has_tag) &&
		    column(batch, OP_WORD_USER_TAG, first + n) != scan->filter->tag)
			continue;
		take(scan, entry, batch, &row);
		passed++;
	}
	return passed;
}

/* Cells count in 32 bits: to the tables long before they are full. */
static void flush_in_time(struct scan *scan, uint32_t rows)
{
	scan->unflushed += rows;
	if (UNLIKELY(scan->unflushed > UINT32_MAX / 2)) {
		scan->status = scan_flush(scan);
		forget_cache(scan);
		scan->unflushed = 0;
	}
}

static void tell_progress(struct scan *scan)
{
	double fraction = scan->ops_expected
				  ? 0.95 * (double)scan->ops_done / (double)scan->ops_expected
				  : 0.5;

	if (scan->status == OK && scan->options->progress != NULL &&
	    !scan->options->progress(fraction, scan->options->progress_context))
		scan->status = ERR_GONE;
}

static bool visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct scan *scan = context;
	struct step step;

	(void)place;
	for (uint32_t first = 0, rows; first < batch->rows && scan->status == OK; first += rows) {
		rows = first_step(scan, batch, first, &step);
		scan->report->completeness.looked_at +=
			second_step(scan, batch, first, rows, &step);
	}
	flush_in_time(scan, batch->rows);
	scan->ops_done += batch->rows;
	tell_progress(scan);
	return scan->status == OK;
}

/* ---- processes ------------------------------------------------------------------------------- */

static enum status start_process(struct scan *scan, uint32_t p)
{
	const struct job *job = scan->job;
	size_t seats = job->first_seat[p + 1] - job->first_seat[p];
	size_t count = 0;

	scan->process = p;
	scan->rank_count = 0;
	for (size_t r = job->process_rank[p]; r < job->rank_count; r++)
		count += job->ranks[r].process == p;
	scan->ranks = calloc(count + 1, sizeof(*scan->ranks));
	scan->cursors = calloc(seats * CURSORS + 1, sizeof(*scan->cursors));
	if (scan->ranks == NULL || scan->cursors == NULL)
		return ERR_NO_SPACE;
	for (size_t r = job->process_rank[p]; scan->rank_count < count; r++) {
		struct scan_rank *rank = &scan->ranks[scan->rank_count];

		if (job->ranks[r].process != p)
			continue;
		*rank = (struct scan_rank){ .rank = (uint32_t)r,
					    .is_shown = scan->report->ranks[r].is_shown,
					    .busy = BUSY_INIT };
		scan->rank_count++;
	}
	scan_limits(scan, p);
	scan->local = scan->options->without_windows ? NULL : &scan->locals[p];
	scan->stretch_end_ns = scan->local != NULL ? 1 : UINT64_MAX;
	if (scan->local != NULL)
		windows_local_init(scan->local, scan->local_room);
	forget_cache(scan);
	return OK;
}

static void end_process(struct scan *scan)
{
	size_t seats =
		scan->job->first_seat[scan->process + 1] - scan->job->first_seat[scan->process];

	for (size_t i = 0; scan->cursors != NULL && i < seats * CURSORS; i++)
		meet_cursor_free(scan->cursors[i]);
	for (size_t i = 0; i < scan->rank_count; i++) {
		struct timeline_rank *rank = &scan->report->ranks[scan->ranks[i].rank];
		const struct busy *busy = &scan->ranks[i].busy;

		rank->busy_ns = busy_total_ns(busy);
		if (busy->first_ns != UINT64_MAX) {
			rank->span_ns = busy_last_ns(busy) - busy->first_ns;
			/* Of its own clock, until it is aligned. */
			rank->first_ns = busy->first_ns;
			rank->last_ns = busy_last_ns(busy);
		}
	}
	if (scan->local != NULL) {
		windows_local_finish(scan->local);
		if (scan->local->status != OK)
			scan->status = scan->local->status;
	}
	free(scan->ranks);
	free(scan->cursors);
	scan->ranks = NULL;
	scan->cursors = NULL;
	scan->rank_count = 0;
}

static void add_walk(struct timeline_completeness *to, const struct recording_walk *walk)
{
	to->read += walk->in_trace + walk->in_ring + walk->in_live;
	to->refused += walk->refused;
	to->damages += walk->damages + walk->torn;
	to->untimed += walk->untimed;
}

static enum status scan_process(struct scan *scan, uint32_t p)
{
	struct recording_walk walk = { 0 };
	enum status status = start_process(scan, p), flushed;

	if (status == OK)
		status = recording_each_batch(scan->job->recording->processes[p],
					      scan_words(scan, p), visit, scan, &walk);
	add_walk(&scan->report->completeness, &walk);
	flushed = scan_flush(scan);
	end_process(scan);
	if (scan->status != OK)
		return scan->status;
	if (status == OK)
		status = flushed;
	if (status == OK)
		status = scan->meet.status != OK ? scan->meet.status : scan->links.status;
	return status;
}

enum status scan_run(struct scan *scan)
{
	for (uint32_t p = 0; p < scan->job->recording->count; p++) {
		enum status status = scan_process(scan, p);

		if (status != OK)
			return status;
	}
	return OK;
}
