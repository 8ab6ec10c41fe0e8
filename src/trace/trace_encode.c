/*
 * Records become columns, and each column is written in the way that costs least:
 *
 *	same		one difference for all rows (to nothing: a constant; to the row before: a step)
 *	signed		signatures, which can be computed
 *	table		few different values
 *	packed		differences, in as few bits as the widest needs
 *	patched		the same, but for a few rows whose difference is far off
 *	halves		as two columns of 32 bits
 *	holes		packed or patched, with rows that are 0 (a time that is not known) told apart
 *
 * No column takes more than its values do, and a few bytes.
 */
#include "trace/trace_encode.h"

#include <stdlib.h>
#include <string.h>

#include "op/op_batch.h"
#include "op/op_layout.h"
#include "trace/trace_code.h"
#include "trace/trace_put.h"

enum {
	CHOOSE_ROWS = 8192, /* from one choice to the next, at most */
	HOLE_PATCH_BYTES = 10,
	TABLE_SAMPLE = 20, /* rows, to see whether a table is worth a try */
	TABLE_BITS = 4,	   /* a table that costs less a row, */
	TABLE_BYTES = 8,   /* and these bytes, is not compared with anything */
};

static const struct trace_hint op_hints[OP_RECORD_WORDS] = {
	[OP_WORD_KIND] = { .is_table = true },
	[OP_WORD_NUMBER] = { .words = { 2 } },
	[OP_WORD_MATCH] = { .words = { 1 } },
	[OP_WORD_SIGNATURE] = { .is_signature = true },
	[OP_WORD_COUNT] = { .is_table = true },
	[OP_WORD_BYTES] = { .is_table = true },
	[OP_WORD_NCCL_SEQUENCE] = { .words = { 4 } },
	[OP_WORD_USER_TAG] = { .is_table = true },
	[OP_WORD_STREAM] = { .is_table = true },
	[OP_WORD_ENDS] = { .is_table = true, .is_halves = true },
	[OP_WORD_STATE] = { .is_table = true },
	[OP_WORD_ISSUE] = { .is_time = true },
	[OP_WORD_LAUNCH] = { .is_time = true, .words = { 1 } },
	[OP_WORD_TASK] = { .is_time = true, .words = { 1, 2 } },
	[OP_WORD_ACTIVE] = { .is_time = true, .words = { 3 } },
	[OP_WORD_DONE] = { .is_time = true, .words = { 1 } },
	[OP_WORD_GPU_START] = { .is_time = true, .words = { 1, 2 } },
	[OP_WORD_GPU_STOP] = { .is_time = true, .words = { 1, 2 } },
	[OP_WORD_SPREADS] = { .is_table = true, .is_halves = true },
	[OP_WORD_CHILDREN] = { .is_table = true },
	[OP_WORD_CAPTURED_NUMBER] = { .is_table = true, .words = { 19 } },
	[OP_WORD_SEND_BYTES] = { .is_table = true },
	[OP_WORD_RECV_BYTES] = { .is_table = true, .words = { 1 } },
	[OP_WORD_WAITS + OP_WAIT_SEND_GPU] = { .is_table = true },
	[OP_WORD_WAITS + OP_WAIT_SEND_PEER] = { .is_table = true },
	[OP_WORD_WAITS + OP_WAIT_SEND_NET] = { .is_table = true },
	[OP_WORD_WAITS + OP_WAIT_RECV_NET] = { .is_table = true, .words = { 3 } },
	[OP_WORD_WAITS + OP_WAIT_RECV_FLUSH] = { .is_table = true },
	[OP_WORD_WAITS + OP_WAIT_RECV_GPU] = { .is_table = true, .words = { 3 } },
	[OP_WORD_STEPS] = { .is_table = true, .is_halves = true },
	[OP_WORD_RESERVED] = { .is_table = true },
};

#define DETAIL_WORD(field) (offsetof(struct op_detail, field) / 8)

static const struct trace_hint detail_hints[OP_DETAIL_WORDS] = {
	[DETAIL_WORD(comm)] = { .is_table = true }, /* kind, channel, flags, too */
	[DETAIL_WORD(number)] = { .is_table = true },
	[DETAIL_WORD(peer)] = { .is_table = true, .is_halves = true }, /* and step */
	[DETAIL_WORD(time_ns[0])] = { .is_time = true },
	[DETAIL_WORD(time_ns[1])] = { .is_time = true, .words = { 1 } },
	[DETAIL_WORD(time_ns[2])] = { .is_time = true, .words = { 1, 2 } },
	[DETAIL_WORD(time_ns[3])] = { .is_time = true, .words = { 1, 2, 3 } },
	[DETAIL_WORD(bytes)] = { .is_table = true },
	[DETAIL_WORD(origin_pid)] = { .is_table = true },
};

static unsigned char *put_tag(unsigned char *to, enum trace_packing packing, unsigned int reference)
{
	*to = (unsigned char)(packing | reference << 3);
	return to + 1;
}

/* How every column of differences begins. */
static unsigned char *put_head(unsigned char *to, enum trace_packing packing,
			       const struct trace_plan *plan)
{
	to = put_tag(to, packing, plan->reference);
	if (plan->reference == TRACE_REFERENCE_PREVIOUS)
		to = trace_put_varint(to, trace_zigzag(plan->start));
	return trace_put_varint(to, trace_zigzag(plan->base));
}

/* ---- same ------------------------------------------------------------------------------------- */

/* Is the difference to the other column the same for all rows? The row before is a column, too: the
 * same one, a row up. */
static bool is_apart(const uint64_t *values, const uint64_t *other, uint32_t rows,
		     uint64_t distance)
{
	uint64_t wrong = 0;
	uint32_t i = 0;

	for (; i + 16 <= rows && wrong == 0; i += 16)
		for (unsigned int k = 0; k < 16; k++)
			wrong |= (values[i + k] - other[i + k]) ^ distance;
	for (; i < rows && wrong == 0; i++)
		wrong = (values[i] - other[i]) ^ distance;
	return wrong == 0;
}

/* One difference for all rows? A constant or a step will do; of few rows the cheapest. */
static bool find_same(const struct trace_column *column, bool is_constant, struct trace_plan *best)
{
	const uint64_t *values = column->values;
	size_t least = SIZE_MAX;
	unsigned int reference;

	if (is_constant) {
		*best = (struct trace_plan){ .base = values[0] };
		least = trace_varint_bytes(trace_zigzag(values[0]));
	} else if (is_apart(values + 1, values, column->rows - 1, values[1] - values[0])) {
		*best = (struct trace_plan){ .reference = TRACE_REFERENCE_PREVIOUS,
					     .base = values[1] - values[0],
					     .start = 2 * values[0] - values[1] };
		least = trace_varint_bytes(trace_zigzag(best->start)) +
			trace_varint_bytes(trace_zigzag(best->base));
	}
	if (least != SIZE_MAX && column->rows > TRACE_SAMPLE_ROWS)
		return true;
	for (unsigned int nth = 2; trace_plan_reference(column, nth, &reference); nth++) {
		const uint64_t *other = trace_plan_word(column, reference);
		uint64_t distance = values[0] - other[0];
		size_t bytes = trace_varint_bytes(trace_zigzag(distance));

		if (bytes >= least || !is_apart(values, other, column->rows, distance))
			continue;
		*best = (struct trace_plan){ .reference = reference, .base = distance };
		least = bytes;
	}
	return least != SIZE_MAX;
}

/* ---- signed ----------------------------------------------------------------------------------- */

/* Signatures that are as computed are left out. NULL: too many are not. */
static unsigned char *put_signed(struct trace_encoder *encoder, uint32_t rows, unsigned char *to)
{
	const uint64_t *values = encoder->columns[OP_WORD_SIGNATURE];
	struct trace_signatures signatures = { { 0 } };
	struct trace_signature_run run = { .place = 0 };
	uint32_t count = 0;

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t kind = encoder->columns[OP_WORD_KIND][i];
		uint64_t guess;

		trace_signature_turn(&signatures, &run, kind);
		guess = trace_signature_guess(run.last, kind, encoder->columns[OP_WORD_COUNT][i],
					      encoder->columns[OP_WORD_ENDS][i],
					      encoder->columns[OP_WORD_STATE][i]);
		encoder->patches[count] = (uint16_t)i;
		count += guess != values[i];
		if (values[i] != 0)
			run.last = values[i];
	}
	if (count * 10 > rows * 8)
		return NULL;
	to = put_tag(to, TRACE_SIGNED, TRACE_REFERENCE_NONE);
	to = trace_put_varint(to, count);
	memcpy(to, encoder->patches, count * sizeof(encoder->patches[0]));
	to += count * sizeof(encoder->patches[0]);
	for (uint32_t i = 0; i < count; i++)
		to = trace_put_sized(to, values[encoder->patches[i]], 8);
	return to;
}

/* ---- table ------------------------------------------------------------------------------------ */

/* Where a value is in the table, or is put; TRACE_ENCODE_TABLE when that is full. */
static uint32_t find_entry(struct trace_encoder *encoder, uint32_t *entries, uint64_t value)
{
	uint32_t entry = 0;

	while (entry < *entries && encoder->table[entry] != value)
		entry++;
	if (entry < *entries || entry == TRACE_ENCODE_TABLE)
		return entry;
	encoder->table[(*entries)++] = value;
	return entry;
}

/* Entries of a table, and the index of each row; 0: too many. A slot says where a value was found
 * last; as long as nothing was, it leads to the first entry. */
static uint32_t build_table(struct trace_encoder *encoder, const struct trace_column *column)
{
	uint8_t *slots = encoder->slots, *indexes = encoder->indexes;
	const uint64_t *table = encoder->table;
	uint32_t entries = 1;

	memset(slots, 0, TRACE_ENCODE_SLOTS);
	encoder->table[0] = column->values[0];
	for (uint32_t i = 0; i < column->rows; i++) {
		uint64_t value = column->values[i];
		uint32_t at = (uint32_t)(value ^ value >> 32) * 0x9e3779b9u >> 24;

		if (UNLIKELY(table[slots[at]] != value)) {
			uint32_t entry = find_entry(encoder, &entries, value);

			if (entry == TRACE_ENCODE_TABLE)
				return 0;
			slots[at] = (uint8_t)entry;
		}
		indexes[i] = slots[at];
	}
	return entries;
}

static unsigned int entry_bytes(const struct trace_encoder *encoder, uint32_t entries)
{
	uint64_t largest = 1;

	for (uint32_t i = 0; i < entries; i++)
		largest |= trace_zigzag(encoder->table[i]);
	return (trace_bits_of(largest) + 7) / 8;
}

static unsigned char *put_table(const struct trace_encoder *encoder, uint32_t entries,
				uint32_t rows, unsigned char *to)
{
	unsigned int bytes = entry_bytes(encoder, entries);

	to = put_tag(to, TRACE_TABLE, TRACE_REFERENCE_NONE);
	*to++ = (unsigned char)entries;
	*to++ = (unsigned char)bytes;
	for (uint32_t i = 0; i < entries; i++)
		to = trace_put_sized(to, trace_zigzag(encoder->table[i]), bytes);
	return trace_put_indexes(to, encoder->indexes, rows, trace_index_width(entries));
}

/* Are two of a few rows alike? If not, a table is not worth a try. */
static bool has_repeats(const struct trace_column *column)
{
	uint64_t some[TABLE_SAMPLE];
	uint32_t count = trace_plan_sample(column, TRACE_REFERENCE_NONE, TABLE_SAMPLE, some);

	for (uint32_t i = 1; i < count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (some[i] == some[k])
				return true;
	return false;
}

/* A table, unless numbers cost less. NULL: they do, or there is none. */
static unsigned char *put_if_table(struct trace_encoder *encoder, struct trace_column *column,
				   struct trace_plan *plan, unsigned char *to)
{
	uint32_t entries;
	size_t bytes;

	if (!column->hint->is_table || !has_repeats(column))
		return NULL;
	entries = build_table(encoder, column);
	if (entries == 0)
		return NULL;
	bytes = 3 + (size_t)entries * entry_bytes(encoder, entries) +
		trace_packed_bytes(column->rows, trace_index_width(entries));
	if (bytes > column->rows * TABLE_BITS / 8 + TABLE_BYTES) {
		*plan = trace_plan_find(column);
		if (plan->bytes < bytes)
			trace_plan_measure(column, plan);
		if (plan->bytes < bytes)
			return NULL;
	}
	return put_table(encoder, entries, column->rows, to);
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static unsigned char *put_patched(const struct trace_column *column, const struct trace_plan *plan,
				  unsigned char *to)
{
	const uint64_t *differences = column->differences;
	unsigned int bytes;
	uint64_t largest = 1;

	for (uint32_t i = 0; i < plan->patches; i++)
		largest |= trace_zigzag(differences[column->patches[i]] - plan->base);
	bytes = (trace_bits_of(largest) + 7) / 8;
	to = put_head(to, TRACE_PATCHED, plan);
	*to++ = (unsigned char)plan->width;
	to = trace_put_varint(to, plan->patches);
	*to++ = (unsigned char)bytes;
	to = trace_put_bits(to, differences, column->rows, plan->base, plan->width);
	memcpy(to, column->patches, plan->patches * sizeof(column->patches[0]));
	to += plan->patches * sizeof(column->patches[0]);
	for (uint32_t i = 0; i < plan->patches; i++)
		to = trace_put_sized(to, trace_zigzag(differences[column->patches[i]] - plan->base),
				     bytes);
	return to;
}

/* Are zeros better told apart, a bit per row, than patched? */
static bool wants_holes(const struct trace_column *column)
{
	uint64_t zeros = 0;

	if (!column->hint->is_time)
		return false;
	for (uint32_t i = 0; i < column->rows; i++)
		zeros += column->values[i] == 0;
	return zeros * HOLE_PATCH_BYTES > column->rows / 8 + 1;
}

static unsigned char *put_holes(const struct trace_column *column, unsigned char *to)
{
	to = put_tag(to, TRACE_HOLES, TRACE_REFERENCE_NONE);
	memset(to, 0, trace_packed_bytes(column->rows, 1));
	for (uint32_t i = 0; i < column->rows; i++)
		to[i / 8] |= (unsigned char)((column->values[i] == 0) << i % 8);
	return to + trace_packed_bytes(column->rows, 1);
}

static unsigned char *put_numbers(struct trace_column *column, struct trace_plan *plan,
				  unsigned char *to)
{
	if (column->has_holes)
		to = put_holes(column, to);
	if (column->differences == NULL)
		trace_plan_measure(column, plan);
	if (plan->patches > 0)
		return put_patched(column, plan, to);
	if (plan->width == 0)
		return put_head(to, TRACE_SAME, plan);
	to = put_head(to, TRACE_PACKED, plan);
	*to++ = (unsigned char)plan->width;
	return trace_put_bits(to, column->differences, column->rows, plan->base, plan->width);
}

/* ---- halves ----------------------------------------------------------------------------------- */

/* Both halves as columns of their own, and what they cost. */
static size_t split(struct trace_encoder *encoder, struct trace_habits *habits, unsigned int word,
		    const struct trace_column *column, struct trace_column halves[2],
		    struct trace_plan plans[2])
{
	static const struct trace_hint plain;
	size_t bytes = 1;

	for (int half = 0; half < 2; half++) {
		for (uint32_t i = 0; i < column->rows; i++)
			encoder->halves[half][i] = (uint32_t)(column->values[i] >> 32 * half);
		halves[half] = *column;
		halves[half].values = encoder->halves[half];
		halves[half].hint = &plain;
		halves[half].choice = &habits->choices[1 + half][word];
		halves[half].differences = NULL;
		plans[half] = trace_plan_find(&halves[half]);
		bytes += 2 + plans[half].bytes;
	}
	return bytes;
}

static unsigned char *put_column(struct trace_encoder *encoder, struct trace_habits *habits,
				 unsigned int word, struct trace_column *column, unsigned char *to)
{
	struct trace_column halves[2];
	struct trace_plan plan, plans[2];
	unsigned char *end;

	if (find_same(column, encoder->differs[word] == 0, &plan))
		return put_head(to, TRACE_SAME, &plan);
	end = column->hint->is_signature ? put_signed(encoder, column->rows, to)
					 : put_if_table(encoder, column, &plan, to);
	if (end != NULL)
		return end;
	if (column->differences == NULL) {
		column->has_holes = wants_holes(column);
		plan = trace_plan_find(column);
	}
	if (column->hint->is_halves &&
	    split(encoder, habits, word, column, halves, plans) < plan.bytes) {
		to = put_tag(to, TRACE_HALVES, TRACE_REFERENCE_NONE);
		to = put_numbers(&halves[0], &plans[0], to);
		return put_numbers(&halves[1], &plans[1], to);
	}
	return put_numbers(column, &plan, to);
}

/* ---- records ---------------------------------------------------------------------------------- */

/* A word of a record, whatever it is a record of; and two neighbours, as the processor takes them. */
typedef uint64_t record_word __attribute__((may_alias));
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Two words of eight records into their columns. */
static inline void turn_pair(struct trace_encoder *encoder, const record_word *records,
			     unsigned int words, unsigned int word, uint32_t row)
{
	const record_word *from = records + (size_t)row * words + word;
	uint64_t *left = encoder->columns[word] + row, *right = encoder->columns[word + 1] + row;
	pair *all_any = (pair *)(encoder->any + word), any = *all_any;
	pair *all_differ = (pair *)(encoder->differs + word), differs = *all_differ;
	const pair first = *(const pair *)(records + word);

	for (unsigned int i = 0; i < 8; i += 2, from += 2 * words) {
		pair one = *(const pair *)from, two = *(const pair *)(from + words);

		any |= one | two;
		differs |= (one ^ first) | (two ^ first);
		*(pair *)(left + i) = (pair){ one[0], two[0] };
		*(pair *)(right + i) = (pair){ one[1], two[1] };
	}
	*all_any = any;
	*all_differ = differs;
}

/* Eight records at a time: what is read and written then stays in the cache. The number of words is
 * even for both kinds of records. */
static void turn(struct trace_encoder *encoder, const record_word *records, unsigned int words,
		 uint32_t rows)
{
	uint32_t row = 0;

	memset(encoder->any, 0, sizeof(encoder->any));
	memset(encoder->differs, 0, sizeof(encoder->differs));
	for (; row + 8 <= rows; row += 8)
		for (unsigned int word = 0; word < words; word += 2)
			turn_pair(encoder, records, words, word, row);
	for (; row < rows; row++)
		for (unsigned int word = 0; word < words; word++) {
			uint64_t value = records[(size_t)row * words + word];

			encoder->columns[word][row] = value;
			encoder->any[word] |= value;
			encoder->differs[word] |= value ^ records[word];
		}
}

/* Soon again at first, later now and then. */
static bool is_time_to_choose(struct trace_habits *habits, uint32_t rows)
{
	bool is_choosing = habits->rows >= habits->choose_at;

	habits->rows += rows;
	if (is_choosing)
		habits->choose_at =
			habits->rows + (habits->rows < CHOOSE_ROWS ? habits->rows : CHOOSE_ROWS);
	return is_choosing;
}

struct trace_encoder *trace_encoder_new(void)
{
	struct trace_encoder *encoder = aligned_alloc(CACHE_LINE, sizeof(*encoder));

	if (encoder != NULL)
		memset(encoder, 0, sizeof(*encoder));
	return encoder;
}

size_t trace_encode(struct trace_encoder *encoder, const void *records, unsigned int words,
		    uint32_t rows, unsigned char *to)
{
	bool is_ops = words == OP_RECORD_WORDS;
	const struct trace_hint *hints = is_ops ? op_hints : detail_hints;
	struct trace_habits *habits = &encoder->habits[is_ops ? 0 : 1];
	bool is_choosing = is_time_to_choose(habits, rows);
	unsigned char *at = to + trace_presence_bytes(words);
	uint32_t present = 0;

	turn(encoder, records, words, rows);
	for (unsigned int word = 0; word < words; word++) {
		struct trace_column column = { .values = encoder->columns[word],
					       .rows = rows,
					       .hint = &hints[word],
					       .choice = &habits->choices[0][word],
					       .is_choosing = is_choosing,
					       .room = encoder->differences,
					       .patches = encoder->patches };

		if (encoder->any[word] == 0)
			continue;
		present |= UINT32_C(1) << word;
		at = put_column(encoder, habits, word, &column, at);
	}
	memcpy(to, &present, trace_presence_bytes(words));
	return (size_t)(at - to);
}
