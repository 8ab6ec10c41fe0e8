/*
 * A word that several columns come from is looked up, not taken apart: most rows have a word that was
 * there before, often the one just before. A new process gets new entries for who it is, because the
 * same number of a communicator is another one there.
 */
#include "view/export_rows.h"

#include <stdlib.h>
#include <string.h>

#include "view/export_cells.h"

enum { SLOT_BITS = 15, SLOTS = 1 << SLOT_BITS };
enum { OFFSET_SPAN_NS = 100 * 1000 * 1000 };
_Static_assert(SLOTS == 2 * EXPORT_ENTRIES_MAX, "a search ends at an empty slot");

/* Columns that no word of the record is, and the entries of a frame's rows. */
enum {
	MADE_DURATION,
	MADE_ISSUE,
	MADE_LAUNCH,
	MADE_TASK,
	MADE_ACTIVE,
	MADE_DONE,
	MADE_OFFSET,
	MADE_START_SPREAD,
	MADE_STOP_SPREAD,
	MADE_SEND_STEPS,
	MADE_RECV_STEPS,
	MADE_COLUMNS,
};

struct export_scratch {
	uint64_t made[MADE_COLUMNS][EXPORT_FRAME_ROWS];
	uint64_t offset[EXPORT_FRAME_ROWS]; /* wall minus recorder's clock, 0 unknown */
	uint16_t entry[EXPORT_GROUPS][EXPORT_FRAME_ROWS];
};

static const uint8_t group_word[EXPORT_GROUPS] = {
	[EXPORT_WHO] = OP_WORD_KIND,
	[EXPORT_STATE] = OP_WORD_STATE,
	[EXPORT_ENDS] = OP_WORD_ENDS,
	[EXPORT_CHILDREN] = OP_WORD_CHILDREN,
};

/* ---- life ------------------------------------------------------------------------------------ */

struct export_rows *export_rows_new(void)
{
	struct export_rows *rows = calloc(1, sizeof(*rows));
	bool is_short;

	if (rows == NULL)
		return NULL;
	for (unsigned int i = 0; i < EXPORT_COLUMNS; i++)
		if (export_columns[i].group != EXPORT_EACH)
			rows->place[i] = (uint8_t)rows->entries[export_columns[i].group].width++;
	rows->scratch = calloc(1, sizeof(*rows->scratch));
	is_short = rows->scratch == NULL;
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++) {
		struct export_entries *entries = &rows->entries[i];
		size_t cells = (size_t)EXPORT_ENTRIES_MAX * entries->width;

		/* Pages of it that are never used are never there. */
		entries->cells = malloc(cells * sizeof(*entries->cells));
		entries->keys = malloc(EXPORT_ENTRIES_MAX * sizeof(*entries->keys));
		entries->slots = calloc(SLOTS, sizeof(*entries->slots));
		is_short |= !entries->cells || !entries->keys || !entries->slots;
	}
	if (is_short) {
		export_rows_free(rows);
		return NULL;
	}
	return rows;
}

void export_rows_free(struct export_rows *rows)
{
	if (rows == NULL)
		return;
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++) {
		free(rows->entries[i].cells);
		free(rows->entries[i].keys);
		free(rows->entries[i].slots);
	}
	export_string_free(&rows->strings);
	free(rows->scratch);
	free(rows);
}

static void empty_slots(struct export_entries *entries)
{
	memset(entries->slots, 0, SLOTS * sizeof(*entries->slots));
}

void export_rows_process(struct export_rows *rows, const struct recording_process *process)
{
	rows->process = process;
	rows->anchor_span = 0;
	rows->anchor_from = UINT64_MAX;
	empty_slots(&rows->entries[EXPORT_WHO]);
}

void export_rows_forget(struct export_rows *rows)
{
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++) {
		rows->entries[i].count = 0;
		empty_slots(&rows->entries[i]);
	}
	export_string_free(&rows->strings);
	rows->is_full = false;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The entry of a word that is not there yet; -1 when there is no room. */
static int add_entry(struct export_rows *rows, enum export_group group, uint64_t word,
		     uint32_t slot)
{
	struct export_entries *entries = &rows->entries[group];
	uint32_t entry = entries->count;

	if (entry == EXPORT_ENTRIES_MAX) {
		rows->is_full = true;
		return -1;
	}
	rows->status = export_cells_fill(&entries->cells[(size_t)entry * entries->width], group,
					 word, rows->process, &rows->strings);
	if (rows->status != OK)
		return -1;
	entries->keys[entry] = word;
	entries->slots[slot] = (uint16_t)(entry + 1);
	entries->count++;
	return (int)entry;
}

static int find_entry(struct export_rows *rows, enum export_group group, uint64_t word)
{
	struct export_entries *entries = &rows->entries[group];
	uint32_t slot = (uint32_t)(((word ^ word >> 32) * UINT64_C(0x9e3779b97f4a7c15)) >>
				   (64 - SLOT_BITS));

	while (entries->slots[slot] != 0) {
		uint32_t entry = entries->slots[slot] - 1u;

		if (entries->keys[entry] == word)
			return (int)entry;
		slot = (slot + 1) & (SLOTS - 1);
	}
	return add_entry(rows, group, word, slot);
}

/* How many rows have an entry now: less than asked for when there is no room. */
static uint32_t find_entries(struct export_rows *rows, enum export_group group,
			     const uint64_t *words, uint32_t count)
{
	uint16_t *entry = rows->scratch->entry[group];
	uint64_t last = ~words[0];
	int found = -1;

	for (uint32_t i = 0; i < count; i++) {
		if (words[i] != last) {
			found = find_entry(rows, group, words[i]);
			if (found < 0)
				return i;
			last = words[i];
		}
		entry[i] = (uint16_t)found;
	}
	return count;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* The stretch of the recorder's clock around `clock_ns` within which one anchor holds. */
static void find_anchor(struct export_rows *rows, uint64_t clock_ns)
{
	const struct recording_process *process = rows->process;
	size_t from = 0, to = process->anchor_count;
	uint64_t wall_ns = 0;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (process->anchors[middle].clock_ns > clock_ns)
			to = middle;
		else
			from = middle + 1;
	}
	/* `to` is the first anchor after it; what lies before all anchors goes by the first one. */
	rows->anchor_from = to > 0 ? clock_ns : 0;
	rows->anchor_span =
		(to < process->anchor_count ? process->anchors[to].clock_ns - 1 : UINT64_MAX) -
		rows->anchor_from;
	/* Between anchors the offset changes as far as the clocks differ: 5 us in this time at 50 ppm. */
	if (to > 0 && rows->anchor_span > OFFSET_SPAN_NS)
		rows->anchor_span = OFFSET_SPAN_NS;
	rows->anchor_offset =
		recording_wall_ns(process, clock_ns, &wall_ns) ? wall_ns - clock_ns : 0;
}

/* Of each row, by the earliest of its times that is known: all its times move by the same. */
static void find_offsets(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			 uint32_t count)
{
	uint64_t *offset = rows->scratch->offset;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t clock_ns = batch->column[OP_WORD_ISSUE][at + i];

		for (unsigned int word = OP_WORD_LAUNCH; clock_ns == 0 && word <= OP_WORD_DONE;
		     word++)
			clock_ns = batch->column[word][at + i];
		if (clock_ns - rows->anchor_from > rows->anchor_span)
			find_anchor(rows, clock_ns);
		offset[i] = rows->anchor_offset;
	}
}

/* Two at a time, without a branch: most of the work on times. */
static void move_times(uint64_t *to, const uint64_t *from, const uint64_t *offset, uint32_t count)
{
	typedef uint64_t lanes __attribute__((vector_size(16), aligned(8), may_alias));
	const lanes null = { EXPORT_NULL_SIGNED, EXPORT_NULL_SIGNED }, zero = { 0, 0 };
	uint32_t i = 0;

	for (; i + 2 <= count; i += 2) {
		const lanes time = *(const lanes *)(const void *)(from + i);
		const lanes by = *(const lanes *)(const void *)(offset + i);
		const lanes is_null = (lanes)(time == zero);

		*(lanes *)(void *)(to + i) = (null & is_null) | ((time + by) & ~is_null);
	}
	for (; i < count; i++)
		to[i] = from[i] ? from[i] + offset[i] : EXPORT_NULL_SIGNED;
}

static void make_times(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
		       uint32_t count)
{
	struct export_scratch *scratch = rows->scratch;
	const uint64_t *offset = scratch->offset;

	find_offsets(rows, batch, at, count);
	for (unsigned int word = OP_WORD_ISSUE; word <= OP_WORD_DONE; word++) {
		const uint64_t *from = batch->column[word] + at;
		uint64_t *to = scratch->made[MADE_ISSUE + word - OP_WORD_ISSUE];

		move_times(to, from, offset, count);
	}
	if (rows->process->anchor_count > 0)
		memcpy(scratch->made[MADE_OFFSET], offset, count * sizeof(*offset));
	else
		for (uint32_t i = 0; i < count; i++)
			scratch->made[MADE_OFFSET][i] = EXPORT_NULL_SIGNED;
}

/* No stamp of the GPU: how far the channels were apart is not known, which is not 0. */
static void null_unless(uint64_t *to, const uint64_t *stamps, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		to[i] = stamps[i] ? to[i] : EXPORT_NULL_SIGNED;
}

/* As cli_op_duration(): null where there is none, or where the times contradict each other. */
static void make_durations(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			   uint32_t count)
{
	static const uint8_t ends[OP_TIME_SOURCES][2] = {
		[OP_TIME_KERNEL_GPU] = { OP_WORD_GPU_START, OP_WORD_GPU_STOP },
		[OP_TIME_PROXY] = { OP_WORD_ACTIVE, OP_WORD_DONE },
		[OP_TIME_HOST] = { OP_WORD_ISSUE, OP_WORD_DONE },
	};
	const uint64_t *states = batch->column[OP_WORD_STATE] + at;
	const uint64_t *first = NULL, *last = NULL;
	uint64_t *to = rows->scratch->made[MADE_DURATION];
	unsigned int before = OP_TIME_SOURCES;

	for (uint32_t i = 0; i < count; i++) {
		unsigned int source = op_state_source(states[i]);

		if (source != before) {
			before = source;
			source = source < OP_TIME_SOURCES ? source : OP_TIME_NONE;
			first = source == OP_TIME_NONE ? NULL : batch->column[ends[source][0]] + at;
			last = source == OP_TIME_NONE ? NULL : batch->column[ends[source][1]] + at;
		}
		to[i] = first == NULL || first[i] == 0 || last[i] < first[i] ? EXPORT_NULL_SIGNED
									     : last[i] - first[i];
	}
}

/* Two numbers of 32 bits in one word. */
static void split(const uint64_t *from, uint64_t *low, uint64_t *high, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		low[i] = (uint32_t)from[i];
		high[i] = from[i] >> 32;
	}
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void point(const struct export_rows *rows, const struct op_batch *batch, uint32_t at,
		  struct export_frame *frame)
{
	static const uint8_t made[MADE_COLUMNS] = {
		[MADE_DURATION] = EXPORT_DURATION,	 [MADE_ISSUE] = EXPORT_ISSUE_TIME,
		[MADE_LAUNCH] = EXPORT_LAUNCH_TIME,	 [MADE_TASK] = EXPORT_TASK_TIME,
		[MADE_ACTIVE] = EXPORT_ACTIVE_TIME,	 [MADE_DONE] = EXPORT_DONE_TIME,
		[MADE_OFFSET] = EXPORT_CLOCK_OFFSET,	 [MADE_START_SPREAD] = EXPORT_START_SPREAD,
		[MADE_STOP_SPREAD] = EXPORT_STOP_SPREAD, [MADE_SEND_STEPS] = EXPORT_SEND_STEPS,
		[MADE_RECV_STEPS] = EXPORT_RECV_STEPS,
	};

	for (unsigned int i = 0; i < EXPORT_COLUMNS; i++) {
		const struct export_column *column = &export_columns[i];

		frame->values[i] = NULL;
		if (column->group == EXPORT_EACH && column->word != EXPORT_NO_WORD)
			frame->values[i] = batch->column[column->word] + at;
	}
	for (unsigned int i = 0; i < MADE_COLUMNS; i++)
		frame->values[made[i]] = rows->scratch->made[i];
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++)
		frame->entry[i] = rows->scratch->entry[i];
}

uint32_t export_rows_take(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			  struct export_frame *frame)
{
	struct export_scratch *scratch = rows->scratch;
	uint32_t count = batch->rows - at;

	if (count > EXPORT_FRAME_ROWS)
		count = EXPORT_FRAME_ROWS;
	for (unsigned int i = 0; i < EXPORT_GROUPS && count > 0; i++)
		count = find_entries(rows, i, batch->column[group_word[i]] + at, count);
	if (rows->status != OK)
		count = 0;
	frame->rows = count;
	if (count == 0)
		return 0;
	make_times(rows, batch, at, count);
	make_durations(rows, batch, at, count);
	split(batch->column[OP_WORD_SPREADS] + at, scratch->made[MADE_START_SPREAD],
	      scratch->made[MADE_STOP_SPREAD], count);
	null_unless(scratch->made[MADE_START_SPREAD], batch->column[OP_WORD_GPU_START] + at, count);
	null_unless(scratch->made[MADE_STOP_SPREAD], batch->column[OP_WORD_GPU_STOP] + at, count);
	split(batch->column[OP_WORD_STEPS] + at, scratch->made[MADE_SEND_STEPS],
	      scratch->made[MADE_RECV_STEPS], count);
	point(rows, batch, at, frame);
	return count;
}
