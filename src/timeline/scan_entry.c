/* What is known of operations that are alike: found once, and again by a few words of their records. */
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"
#include "timeline/filter.h"
#include "timeline/meet_cursor.h"
#include "timeline/scan.h"

static uint32_t map_names(const struct scan *scan, uint32_t names)
{
	uint32_t mapped = 0;

	for (unsigned int i = 0; i < OP_NAME_TABLES; i++)
		mapped |= (uint32_t)job_name_number(scan->job, scan->process,
						    (uint8_t)(names >> (8 * i)))
			  << (8 * i);
	return mapped;
}

void scan_entry_forget(struct scan *scan)
{
	for (size_t i = 0; i < SCAN_CACHE; i++) {
		scan->cache[i].kind = 0;
		scan->cache[i].next = &scan->cache[0];
	}
	scan->latest = &scan->cache[0];
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
		scan_entry_forget(scan);
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
		&scan->cursors[index * SCAN_CURSORS + (source == OP_TIME_PROXY ? 1u : 0u) +
			       (is_replay ? 2u : 0u)];

	if (source != OP_TIME_KERNEL_GPU && source != OP_TIME_PROXY)
		return NULL;
	if (*cursor == NULL)
		*cursor = meet_cursor_new(&scan->meet, seat, source, is_replay);
	return *cursor;
}

static void join_entry(struct scan *scan, const struct job_seat *seat, struct scan_entry *entry,
		       const struct scan_cell *like, bool is_replay)
{
	const struct meet_kind kind = { .tag = like->tag,
					.names = like->names,
					.size_class = like->size_class };

	if ((uint8_t)(like->names >> 16) == OP_RING)
		entry->meet.wire_class = like->size_class;
	if (!meet_is_synchronising((uint8_t)like->names))
		return;
	if (!scan->options->without_joins)
		entry->meet.cursor = find_cursor(scan, seat, like->source, is_replay);
	if (entry->meet.cursor != NULL)
		entry->meet.kind = meet_kind(&scan->meet, seat->comm, &kind);
	entry->marks |= entry->meet.cursor != NULL ? SCAN_JOINED : SCAN_APART;
}

/* Without the exact size: sizes may vary from iteration to iteration, kinds of calls do not. */
static uint32_t symbol_of(const struct scan_cell *like)
{
	uint64_t what = like->names & 0xffff;

	if (op_is_collective((uint8_t)like->names))
		what |= (uint64_t)like->size_class << 16;
	return (uint32_t)hash_word(like->seat, what);
}

static void start_series(struct scan *scan, struct scan_cell *cell, const struct job_seat *seat,
			 bool is_shown)
{
	const struct job_comm *comm = &scan->job->comms[seat->comm];
	uint8_t function = (uint8_t)cell->names;

	cell->bus_factor = op_bus_factor(function, comm->nranks);
	cell->series = UINT32_MAX;
	if (scan->local != NULL && is_shown && cell->source != OP_TIME_NONE)
		cell->series =
			windows_local_series(scan->local, scan_series_id(comm->kind, function));
}

static uint32_t marks_of(uint64_t what, uint32_t names)
{
	uint8_t source = op_state_source(what);
	uint32_t marks = source != OP_TIME_NONE ? SCAN_TIMED << source : SCAN_UNTIMED;

	if (op_state_state(what) == OP_CAPTURED)
		marks = SCAN_CAPTURED;
	if (op_state_flags(what) & OP_STAMPS_UNTRUSTED)
		marks |= SCAN_UNTRUSTED;
	if ((uint8_t)names == OP_SEND)
		marks |= SCAN_SEND;
	return marks;
}

COLD void scan_entry_fill(struct scan *scan, const struct scan_key *key, struct scan_entry *entry)
{
	const struct job_seat *seat = job_seat(scan->job, scan->process, op_kind_comm(key->kind));
	struct scan_cell like = { .tag = key->tag,
				  .names = map_names(scan, op_kind_names(key->kind)),
				  .size_class = (uint8_t)op_size_class(key->bytes),
				  .source = op_state_source(key->what) };

	*entry = (struct scan_entry){ .kind = key->kind,
				      .what = key->what,
				      .tag = key->tag,
				      .marks = SCAN_IGNORED,
				      .next = &scan->cache[0] };
	if (seat == NULL || !filter_has_comm(scan->filter, &scan->job->comms[seat->comm]) ||
	    !filter_has_function(scan->filter, scan->job, (uint8_t)like.names))
		return;
	for (size_t i = 0; i < scan->rank_count; i++)
		if (scan->ranks[i].rank == seat->rank)
			entry->rank = &scan->ranks[i];
	if (entry->rank == NULL)
		return;
	like.seat = (uint32_t)(seat - scan->job->seats);
	entry->symbol = symbol_of(&like);
	entry->marks = marks_of(key->what, like.names) | (entry->rank->is_shown ? 0 : SCAN_HIDDEN);
	join_entry(scan, seat, entry, &like, op_state_flags(key->what) & OP_FLAG_REPLAY);
	/* Last: it may empty the cache. */
	entry->cell = find_cell(scan, &like);
	if (entry->cell == NULL)
		entry->marks = SCAN_IGNORED;
	else if (entry->cell->calls == 0)
		start_series(scan, entry->cell, seat, entry->rank->is_shown);
	entry->kind = key->kind;
}
