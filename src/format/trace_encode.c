/*
 * Encodes records into the payload of a block: as columns, each as differences to the best
 * predictor, packed into as few bits as they need. The best predictor is found on a sample and kept
 * for the next blocks, because a job repeats itself for a long time.
 */
#include "format/trace_write.h"

#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "format/trace_code.h"

enum {
	TRACE_HINT_WORDS = 3,
	TRACE_PATCH_BITS = 80, /* upper bound of the cost of a patch */
	TRACE_SAMPLE_ROWS = 64,
};

/* What is known about a word in advance. It saves attempts and changes no value. */
struct trace_hint {
	bool is_table;	   /* may have few different values */
	bool is_time;	   /* 0 means "unknown", it is not a small number */
	bool is_halves;	   /* two numbers of 32 bits */
	bool is_signature; /* over all collectives so far */
	uint8_t words
		[TRACE_HINT_WORDS]; /* possible predictors: that many words before; 0: end of the list */
};

/* A column to be written. */
struct trace_column {
	const uint64_t *values;
	uint32_t rows;
	const struct trace_hint *hint;
	struct trace_choice *choice;
	bool is_choosing; /* choose again even if a choice was made */
	bool has_holes;
	const uint64_t *differences; /* once measured: `room`, or the values themselves */
	uint64_t *room;		     /* for differences */
	uint16_t *patches;	     /* rows */
};

struct trace_plan {
	unsigned int reference;
	uint64_t start;	 /* TRACE_REFERENCE_PREVIOUS: the value before the first row */
	uint64_t center; /* a typical difference */
	uint64_t base;
	unsigned int width;
	uint32_t patches;
	size_t bytes; /* approximately */
};

/*
 * Writing numbers and bits, for the encoder. All of these may touch up to eight bytes past the end
 * that they return.
 */

static inline unsigned int trace_bits_of(uint64_t value)
{
	return value == 0 ? 0 : 64 - (unsigned int)__builtin_clzll(value);
}

static inline unsigned char *trace_put_varint(unsigned char *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (unsigned char)(value | 0x80);
	*to++ = (unsigned char)value;
	return to;
}

static inline size_t trace_varint_bytes(uint64_t value)
{
	return value == 0 ? 1 : (trace_bits_of(value) + 6) / 7;
}

static inline unsigned char *trace_put_sized(unsigned char *to, uint64_t value, unsigned int bytes)
{
	memcpy(to, &value, sizeof(value));
	return to + bytes;
}

/* Bits that do not fill a byte yet. */
struct trace_bits {
	unsigned char *to;
	uint64_t word;
	unsigned int filled;
};

/* At most TRACE_WIDTH_MAX bits; those above must be 0. */
static inline void trace_add_bits(struct trace_bits *bits, uint64_t value, unsigned int width)
{
	bits->word |= value << bits->filled;
	bits->filled += width;
	memcpy(bits->to, &bits->word, sizeof(bits->word));
	bits->to += bits->filled / 8;
	bits->word >>= bits->filled & ~7u;
	bits->filled &= 7;
}

/* The low bits of value - base for each row; the other bits are dropped. */
static inline unsigned char *trace_put_bits(unsigned char *to, const uint64_t *values,
					    uint32_t rows, uint64_t base, unsigned int width)
{
	const uint64_t mask = trace_width_mask(width);
	unsigned char *end = to + trace_packed_bytes(rows, width);
	struct trace_bits bits = { .to = to };
	uint32_t i = 0;

	if (width == 64)
		for (; i < rows; i++)
			to = trace_put_sized(to, values[i] - base, 8);
	if (width == 64 || width == 0)
		return end;
	/* Each step depends on the previous one, so handle as many values per step as fit. */
	for (; 4 * width <= TRACE_WIDTH_MAX && i + 4 <= rows; i += 4)
		trace_add_bits(&bits,
			       ((values[i] - base) & mask) |
				       ((values[i + 1] - base) & mask) << width |
				       ((values[i + 2] - base) & mask) << 2 * width |
				       ((values[i + 3] - base) & mask) << 3 * width,
			       4 * width);
	for (; 2 * width <= TRACE_WIDTH_MAX && i + 2 <= rows; i += 2)
		trace_add_bits(&bits,
			       ((values[i] - base) & mask) | ((values[i + 1] - base) & mask)
								     << width,
			       2 * width);
	for (; i < rows; i++)
		trace_add_bits(&bits, (values[i] - base) & mask, width);
	return end;
}

/* At most seven bits each. */
static inline unsigned char *trace_put_indexes(unsigned char *to, const uint8_t *indexes,
					       uint32_t rows, unsigned int width)
{
	unsigned char *end = to + trace_packed_bytes(rows, width);
	struct trace_bits bits = { .to = to };
	uint32_t i = 0;

	for (; i + 8 <= rows; i += 8) {
		uint64_t eight = 0;

		for (unsigned int k = 8; k-- > 0;)
			eight = eight << width | indexes[i + k];
		trace_add_bits(&bits, eight, 8 * width);
	}
	for (; i < rows; i++)
		trace_add_bits(&bits, indexes[i], width);
	return end;
}

enum { CENTER_ROWS = 9 };

/* The column that many words before, as given by a reference. */
static const uint64_t *trace_plan_word(const struct trace_column *column, unsigned int reference)
{
	return column->values - (size_t)(reference - 1) * TRACE_ENCODE_STRIDE;
}

/* The n-th possible predictor of a column: zero, the previous row, other words. False: no more. */
static bool trace_plan_reference(const struct trace_column *column, unsigned int nth,
				 unsigned int *reference)
{
	if (nth >= 2 + TRACE_HINT_WORDS || (nth >= 2 && column->hint->words[nth - 2] == 0))
		return false;
	*reference = nth < 2 ? nth : column->hint->words[nth - 2] + 1u;
	return true;
}

/* A value wider than TRACE_WIDTH_MAX might not be within eight bytes. */
static unsigned int width_of(uint64_t range)
{
	unsigned int bits = trace_bits_of(range);

	return bits > TRACE_WIDTH_MAX ? 64 : bits;
}

/* ---- choosing by a sample --------------------------------------------------------------------- */

/*
 * The differences of a sample of rows that have one; of all rows if there are at most `most`.
 * Returns how many.
 */
static uint32_t trace_plan_sample(const struct trace_column *column, unsigned int reference,
				  uint32_t most, uint64_t *some)
{
	const uint64_t *values = column->values;
	const uint64_t *other = values;
	uint32_t first = reference == TRACE_REFERENCE_PREVIOUS;
	uint32_t rows = column->rows - first;
	uint32_t count = 0;

	if (reference >= TRACE_REFERENCE_WORD)
		other = trace_plan_word(column, reference);
	for (uint32_t k = 0; k < most && k < rows; k++) {
		uint32_t i = first + k;

		/* Golden-ratio steps, to avoid resonance with periodic rows. */
		if (rows > most)
			i = first + (uint32_t)((uint64_t)(k * 0x9e3779b9u) * rows >> 32);
		if (column->has_holes && (values[i] == 0 || (first && values[i - 1] == 0)))
			continue;
		some[count] = values[i];
		if (reference != TRACE_REFERENCE_NONE)
			some[count] -= other[i - first];
		count++;
	}
	return count;
}

/* The median of three. */
static uint64_t middle_of_three(uint64_t a, uint64_t b, uint64_t c)
{
	bool is_ab = (int64_t)(b - a) >= 0, is_bc = (int64_t)(c - b) >= 0;

	if (is_ab == is_bc)
		return b;
	return ((int64_t)(c - a) >= 0) == is_ab ? c : a;
}

/* A typical value, even if there are outliers. */
static uint64_t find_center(const uint64_t *some, uint32_t count)
{
	uint32_t eighth = count / 8;

	if (count < 3)
		return count > 0 ? some[0] : 0;
	if (count < 9)
		return middle_of_three(some[0], some[count / 2], some[count - 1]);
	return middle_of_three(
		middle_of_three(some[0], some[eighth], some[2 * eighth]),
		middle_of_three(some[3 * eighth], some[4 * eighth], some[5 * eighth]),
		middle_of_three(some[6 * eighth], some[7 * eighth], some[count - 1]));
}

/* The cheapest width, given how many differences to the center need how many bits. */
static unsigned int find_width(const uint16_t counts[65], uint32_t rows, size_t *cost)
{
	unsigned int best = 64;
	uint32_t outside = 0;

	while (best > 0 && counts[best] == 0)
		best--;
	if (best > TRACE_WIDTH_MAX)
		best = 64;
	*cost = (size_t)rows * best;
	for (unsigned int bits = best; bits > 0; bits--) {
		unsigned int width = bits - 1 > TRACE_WIDTH_MAX ? 64 : bits - 1;
		size_t sum;

		outside += counts[bits];
		sum = (size_t)rows * width + (size_t)outside * TRACE_PATCH_BITS;
		if (sum < *cost) {
			*cost = sum;
			best = width;
		}
	}
	return best;
}

/* Which predictor gives small differences, and how wide are they, except for outliers? */
static void choose_reference(const struct trace_column *column)
{
	struct trace_choice *choice = column->choice;
	size_t least = SIZE_MAX, cost;
	unsigned int reference, width;

	for (unsigned int nth = 0; trace_plan_reference(column, nth, &reference); nth++) {
		uint64_t some[TRACE_SAMPLE_ROWS], center;
		uint32_t count = trace_plan_sample(column, reference, TRACE_SAMPLE_ROWS, some);
		uint16_t counts[65] = { 0 };

		center = find_center(some, count);
		for (uint32_t i = 0; i < count; i++)
			counts[trace_bits_of(trace_zigzag(some[i] - center))]++;
		width = find_width(counts, count, &cost);
		cost = count > 0 ? cost * column->rows / count : 0;
		cost += 8 * trace_varint_bytes(trace_zigzag(center));
		if (reference == TRACE_REFERENCE_PREVIOUS)
			cost += 8 * trace_varint_bytes(trace_zigzag(column->values[0]));
		if (cost < least) {
			least = cost;
			choice->reference = (uint8_t)reference;
			choice->width = (uint8_t)width;
		}
	}
	choice->bits = least / column->rows < 255 ? (uint8_t)(least / column->rows) : 255;
	choice->is_patched = true;
	choice->is_made = true;
}

/* Find a plan from a sample. */
static struct trace_plan trace_plan_find(const struct trace_column *column)
{
	uint64_t some[CENTER_ROWS];
	struct trace_plan plan = { .width = 0 };
	uint32_t count;

	if (column->is_choosing || !column->choice->is_made)
		choose_reference(column);
	plan.reference = column->choice->reference;
	count = trace_plan_sample(column, plan.reference, CENTER_ROWS, some);
	plan.center = find_center(some, count);
	plan.bytes = 2 + (size_t)column->choice->bits * column->rows / 8;
	return plan;
}

/* ---- measuring all rows ----------------------------------------------------------------------- */

/*
 * Differences to the previous row. Holes are skipped; they and the first row get a typical
 * difference.
 */
static void subtract_previous(const struct trace_column *column, struct trace_plan *plan)
{
	uint64_t *restrict differences = column->room;
	const uint64_t *values = column->values;
	uint64_t before;
	uint32_t i = 0;

	for (; column->has_holes && values[i] == 0 && i + 1 < column->rows; i++)
		differences[i] = plan->center;
	differences[i] = plan->center;
	plan->start = values[i] - plan->center;
	before = values[i++];
	if (column->has_holes) {
		for (; i < column->rows; i++) {
			differences[i] = values[i] != 0 ? values[i] - before : plan->center;
			before = values[i] != 0 ? values[i] : before;
		}
	} else {
		for (; i < column->rows; i++)
			differences[i] = values[i] - values[i - 1];
	}
}

static void subtract_word(const struct trace_column *column, const struct trace_plan *plan)
{
	const uint64_t *values = column->values;
	const uint64_t *other = trace_plan_word(column, plan->reference);
	uint64_t *restrict differences = column->room;

	if (column->has_holes)
		for (uint32_t i = 0; i < column->rows; i++)
			differences[i] = values[i] != 0 ? values[i] - other[i] : plan->center;
	else
		for (uint32_t i = 0; i < column->rows; i++)
			differences[i] = values[i] - other[i];
}

static void subtract(struct trace_column *column, struct trace_plan *plan)
{
	const uint64_t *values = column->values;

	column->differences = column->room;
	if (plan->reference == TRACE_REFERENCE_PREVIOUS)
		subtract_previous(column, plan);
	else if (plan->reference != TRACE_REFERENCE_NONE)
		subtract_word(column, plan);
	else if (column->has_holes)
		for (uint32_t i = 0; i < column->rows; i++)
			column->room[i] = values[i] != 0 ? values[i] : plan->center;
	else
		column->differences = values;
}

/* Base and width that fit all rows. */
static void frame_all(const struct trace_column *column, struct trace_plan *plan)
{
	const uint64_t *differences = column->differences;
	int64_t lowest = 0, highest = 0;

	for (uint32_t i = 0; i < column->rows; i++) {
		int64_t distance = (int64_t)(differences[i] - plan->center);

		lowest = distance < lowest ? distance : lowest;
		highest = distance > highest ? distance : highest;
	}
	plan->base = plan->center + (uint64_t)lowest;
	plan->width = width_of((uint64_t)highest - (uint64_t)lowest);
}

/*
 * Base and width that fit the rows near the center, as when the choice was made; the others are
 * patched.
 */
static void frame_most(const struct trace_column *column, struct trace_plan *plan)
{
	const uint64_t *differences = column->differences;
	const uint64_t most = trace_width_mask(column->choice->width), half = most - most / 2;
	int64_t lowest = 0, highest = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < column->rows; i++) {
		uint64_t distance = differences[i] - plan->center;
		bool is_far = distance + half > most;
		int64_t near = is_far ? 0 : (int64_t)distance;

		column->patches[count] = (uint16_t)i;
		count += is_far;
		lowest = near < lowest ? near : lowest;
		highest = near > highest ? near : highest;
	}
	plan->base = plan->center + (uint64_t)lowest;
	plan->width = width_of((uint64_t)highest - (uint64_t)lowest);
	plan->patches = count;
}

static size_t bits_of_plan(const struct trace_column *column, const struct trace_plan *plan)
{
	return (size_t)column->rows * plan->width + (size_t)plan->patches * TRACE_PATCH_BITS;
}

/* Compute and measure all differences. What was good for the last block is tried first. */
static void trace_plan_measure(struct trace_column *column, struct trace_plan *plan)
{
	struct trace_choice *choice = column->choice;
	struct trace_plan patched;

	subtract(column, plan);
	patched = *plan;
	if (choice->is_patched)
		frame_most(column, &patched);
	if (choice->is_patched && patched.patches <= column->rows / 16)
		*plan = patched;
	else
		frame_all(column, plan);
	if (!choice->is_patched && plan->width > choice->width + 1u)
		frame_most(column, &patched);
	if (patched.patches > 0 && bits_of_plan(column, &patched) < bits_of_plan(column, plan))
		*plan = patched;
	choice->is_patched = plan->patches > 0;
	choice->is_made = bits_of_plan(column, plan) / column->rows <= choice->bits + 2u;
	plan->bytes = 4 + trace_varint_bytes(trace_zigzag(plan->base)) +
		      (bits_of_plan(column, plan) + 7) / 8;
}

/*
 * Records become columns, and each column is written in the cheapest form:
 *
 *	same     one difference for all rows (to zero: a constant; to the previous row: a step)
 *	signed   signatures, which can be recomputed
 *	table    few distinct values
 *	packed   differences, in as few bits as the widest needs
 *	patched  the same, except for a few outliers
 *	halves   as two columns of 32 bits
 *	holes    packed or patched, with rows that are 0 (an unknown time) marked separately
 *
 * No column takes more than its values plus a few bytes.
 */

enum {
	CHOOSE_ROWS = 8192, /* at most this many rows between two choices */
	HOLE_PATCH_BYTES = 10,
	TABLE_SAMPLE = 20, /* rows sampled to see whether a table is worth trying */
	TABLE_BITS = 4,	   /* a table that costs less per row */
	TABLE_BYTES = 8,   /* and this many bytes is not compared with anything */
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
	[DETAIL_WORD(comm)] = { .is_table = true }, /* also kind, channel, flags */
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

/* The start of every column of differences. */
static unsigned char *put_head(unsigned char *to, enum trace_packing packing,
			       const struct trace_plan *plan)
{
	to = put_tag(to, packing, plan->reference);
	if (plan->reference == TRACE_REFERENCE_PREVIOUS)
		to = trace_put_varint(to, trace_zigzag(plan->start));
	return trace_put_varint(to, trace_zigzag(plan->base));
}

/* ---- same ------------------------------------------------------------------------------------- */

/*
 * Is the difference to the other column the same for all rows? The previous row counts as a column,
 * too: the same one, shifted by a row.
 */
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

/* One difference for all rows? A constant or a step suffices; for few rows the cheapest. */
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

/* Signatures that match their prediction are omitted. NULL: too many do not match. */
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

/* Find or insert a value in the table; TRACE_ENCODE_TABLE if it is full. */
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

/*
 * The entries of a table and the index of each row; 0: too many. A slot says where a value was last
 * found; initially it points to the first entry.
 */
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

/* Do any of a few rows have equal values? If not, a table is not worth trying. */
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

/* Write a table unless packed numbers are cheaper. NULL: they are, or no table is possible. */
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

/* Is it cheaper to mark zeros with one bit per row than to patch them? */
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

/* Both halves as columns of their own, and their cost. */
static size_t split_halves(struct trace_encoder *encoder, struct trace_habits *habits,
			   unsigned int word, const struct trace_column *column,
			   struct trace_column halves[2], struct trace_plan plans[2])
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
	    split_halves(encoder, habits, word, column, halves, plans) < plan.bytes) {
		to = put_tag(to, TRACE_HALVES, TRACE_REFERENCE_NONE);
		to = put_numbers(&halves[0], &plans[0], to);
		return put_numbers(&halves[1], &plans[1], to);
	}
	return put_numbers(column, &plan, to);
}

/* ---- records ---------------------------------------------------------------------------------- */

/* A word of any kind of record, and a pair of words as the processor handles them. */
typedef uint64_t record_word __attribute__((may_alias));
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Move two words of eight records into their columns. */
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

/*
 * Eight records at a time, so that everything stays in the cache. Both kinds of records have an
 * even number of words.
 */
static void turn_records(struct trace_encoder *encoder, const record_word *records,
			 unsigned int words, uint32_t rows)
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

/* Often at first, rarely later. */
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

	turn_records(encoder, records, words, rows);
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
