/*
 * Decodes the columns of a coded block. First all columns are checked for their lengths and for
 * everything that could go wrong, without decoding; then the needed ones are decoded, some rows at
 * a time.
 */
#include "format/trace_read.h"

#include <string.h>

#include "common/attributes.h"

/* What is left to read. */
struct bytes {
	const unsigned char *at;
	const unsigned char *end;
	bool is_bad; /* sticks */
};

static const unsigned char *take_bytes(struct bytes *bytes, size_t count)
{
	const unsigned char *here = bytes->at;

	if (count > (size_t)(bytes->end - here)) {
		bytes->is_bad = true;
		return here;
	}
	bytes->at += count;
	return here;
}

static unsigned int take_byte(struct bytes *bytes)
{
	const unsigned char *here = take_bytes(bytes, 1);

	return bytes->is_bad ? 0 : *here;
}

static uint64_t take_varint(struct bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		unsigned int byte = take_byte(bytes);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	bytes->is_bad = true;
	return 0;
}

/* Rows must be in ascending order, so that they can be processed in one pass. */
static bool is_ascending(const unsigned char *positions, uint32_t count, uint32_t rows)
{
	uint32_t least = 0;
	bool is_wrong = false;

	for (uint32_t i = 0; i < count; i++) {
		uint16_t row;

		memcpy(&row, positions + 2 * i, sizeof(row));
		is_wrong |= row < least;
		least = row + 1u;
	}
	return !is_wrong && least <= rows;
}

static void take_patches(struct bytes *bytes, struct trace_stream *stream, uint32_t rows)
{
	stream->positions = take_bytes(bytes, (size_t)2 * stream->patches);
	if (!bytes->is_bad && !is_ascending(stream->positions, stream->patches, rows))
		bytes->is_bad = true;
	stream->values = take_bytes(bytes, (size_t)stream->value_bytes * stream->patches);
}

static uint16_t take_count(struct bytes *bytes, uint32_t rows)
{
	uint64_t count = take_varint(bytes);

	bytes->is_bad |= count > rows;
	return bytes->is_bad ? 0 : (uint16_t)count;
}

static uint8_t take_value_bytes(struct bytes *bytes)
{
	unsigned int count = take_byte(bytes);

	bytes->is_bad |= count < 1 || count > 8;
	return bytes->is_bad ? 1 : (uint8_t)count;
}

static void take_numbers(struct bytes *bytes, struct trace_stream *stream, uint32_t rows)
{
	if (stream->reference == TRACE_REFERENCE_PREVIOUS)
		stream->running = trace_unzigzag(take_varint(bytes));
	stream->base = trace_unzigzag(take_varint(bytes));
	stream->bits = bytes->at;
	if (stream->packing == TRACE_SAME)
		return;
	stream->width = (uint8_t)take_byte(bytes);
	bytes->is_bad |= stream->width > TRACE_WIDTH_MAX && stream->width != 64;
	if (stream->packing == TRACE_PATCHED) {
		stream->patches = take_count(bytes, rows);
		stream->value_bytes = take_value_bytes(bytes);
	}
	stream->bits = take_bytes(bytes, trace_packed_bytes(rows, stream->width));
	if (stream->packing == TRACE_PATCHED)
		take_patches(bytes, stream, rows);
}

static void take_table(struct bytes *bytes, struct trace_stream *stream, uint32_t rows)
{
	stream->entries = take_byte(bytes);
	stream->value_bytes = take_value_bytes(bytes);
	bytes->is_bad |= stream->entries == 0;
	stream->width = (uint8_t)trace_index_width(stream->entries);
	stream->values = take_bytes(bytes, (size_t)stream->entries * stream->value_bytes);
	stream->bits = take_bytes(bytes, trace_packed_bytes(rows, stream->width));
}

/* A column after its tag, without halves and holes. */
static void take_stream(struct bytes *bytes, unsigned int tag, const unsigned char *holes,
			uint32_t rows, struct trace_stream *stream)
{
	*stream = (struct trace_stream){ .packing = tag & 7,
					 .reference = (uint8_t)(tag >> 3),
					 .holes = holes };
	switch (stream->packing) {
	case TRACE_SAME:
	case TRACE_PACKED:
	case TRACE_PATCHED:
		take_numbers(bytes, stream, rows);
		break;
	case TRACE_TABLE:
		bytes->is_bad |= stream->reference != TRACE_REFERENCE_NONE;
		take_table(bytes, stream, rows);
		break;
	default:
		bytes->is_bad = true;
	}
}

static void take_signed(struct bytes *bytes, struct trace_stream *stream, uint32_t rows)
{
	*stream = (struct trace_stream){ .packing = TRACE_SIGNED, .value_bytes = 8 };
	stream->patches = take_count(bytes, rows);
	take_patches(bytes, stream, rows);
}

static void take_half(struct bytes *bytes, struct trace_stream *stream, uint32_t rows)
{
	take_stream(bytes, take_byte(bytes), NULL, rows, stream);
	bytes->is_bad |= stream->reference > TRACE_REFERENCE_PREVIOUS;
}

static void take_column(struct bytes *bytes, struct trace_columns *columns, unsigned int word)
{
	struct trace_stream *stream = &columns->streams[word];
	unsigned int tag = take_byte(bytes);
	const unsigned char *holes;

	switch (tag) {
	case TRACE_HALVES:
		columns->halves |= UINT32_C(1) << word;
		take_half(bytes, stream, columns->rows);
		take_half(bytes, &columns->high[word], columns->rows);
		return;
	case TRACE_HOLES:
		holes = take_bytes(bytes, trace_packed_bytes(columns->rows, 1));
		take_stream(bytes, take_byte(bytes), holes, columns->rows, stream);
		break;
	case TRACE_SIGNED:
		bytes->is_bad |= columns->words != OP_RECORD_WORDS || word != OP_WORD_SIGNATURE;
		take_signed(bytes, stream, columns->rows);
		return;
	default:
		take_stream(bytes, tag, NULL, columns->rows, stream);
	}
	if (stream->reference < TRACE_REFERENCE_WORD)
		return;
	/* Signatures are computed last, so nothing can refer to them. */
	bytes->is_bad |= stream->reference - 1u > word ||
			 columns->streams[word - (stream->reference - 1u)].packing == TRACE_SIGNED;
}

/* Columns refer to earlier ones, except for signatures, which are computed from four others. */
static uint32_t find_needed(const struct trace_columns *columns, uint32_t wanted)
{
	uint32_t needed = wanted;

	if (columns->words == OP_RECORD_WORDS && needed & OP_WORD_BIT(OP_WORD_SIGNATURE) &&
	    columns->streams[OP_WORD_SIGNATURE].packing == TRACE_SIGNED)
		needed |= OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_COUNT) |
			  OP_WORD_BIT(OP_WORD_ENDS) | OP_WORD_BIT(OP_WORD_STATE);
	for (unsigned int word = columns->words; word-- > 0;) {
		unsigned int reference = columns->streams[word].reference;

		if (needed & UINT32_C(1) << word && reference >= TRACE_REFERENCE_WORD)
			needed |= UINT32_C(1) << (word - (reference - 1));
	}
	return needed;
}

static bool has_signatures(const struct trace_columns *columns)
{
	return columns->words == OP_RECORD_WORDS &&
	       columns->needed & OP_WORD_BIT(OP_WORD_SIGNATURE) &&
	       columns->streams[OP_WORD_SIGNATURE].packing == TRACE_SIGNED;
}

enum status trace_columns_open(struct trace_columns *columns, const unsigned char *payload,
			       size_t bytes, unsigned int words, uint32_t rows, uint32_t wanted)
{
	struct bytes left = { .at = payload, .end = payload + bytes };
	uint32_t present = 0;

	if (words == 0 || words > TRACE_WORDS_MAX || rows > TRACE_ROWS_MAX ||
	    bytes < trace_presence_bytes(words))
		return ERR_FORMAT;
	columns->end = left.end;
	columns->rows = rows;
	columns->next = 0;
	columns->words = words;
	columns->halves = 0;
	memcpy(&present, take_bytes(&left, trace_presence_bytes(words)),
	       trace_presence_bytes(words));
	if (words < 32 && present >> words != 0)
		return ERR_FORMAT;
	for (unsigned int word = 0; word < words && !left.is_bad; word++)
		if (present & UINT32_C(1) << word)
			take_column(&left, columns, word);
		else
			columns->streams[word] = (struct trace_stream){ .packing = TRACE_SAME };
	if (left.is_bad || left.at != left.end)
		return ERR_FORMAT;
	columns->needed =
		find_needed(columns, words < 32 ? wanted & ((UINT32_C(1) << words) - 1) : wanted);
	columns->has_signatures = has_signatures(columns);
	if (columns->has_signatures)
		memset(&columns->signatures, 0, sizeof(columns->signatures));
	return OK;
}

/*
 * Needed columns are decoded with one pass per step: bits, patches, references, holes. Errors were
 * ruled out before by trace_columns_open().
 */

static inline uint64_t load_some(const unsigned char *from, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, from, bytes < sizeof(value) ? bytes : sizeof(value));
	return value;
}

static inline uint64_t load_word(const unsigned char *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

/* A number of one to eight bytes. */
static inline uint64_t load_value(const unsigned char *from, unsigned int bytes,
				  const unsigned char *end)
{
	if (end - from < 8)
		return load_some(from, bytes);
	return load_word(from) & (UINT64_MAX >> (64 - 8 * bytes));
}

/* How the bits of a row are used. */
enum use { AS_NUMBER, AS_DIFFERENCE, AS_STEP, AS_INDEX };

struct sums {
	uint64_t base;
	uint64_t running;
	const uint64_t *other; /* the column, or the table */
};

/* One loop per use, without a branch inside. */
#define INLINED static inline __attribute__((always_inline))

INLINED void use_bits(enum use use, uint64_t bits, struct sums *sums, unsigned int row,
		      uint64_t *to)
{
	if (use == AS_NUMBER)
		to[row] = bits + sums->base;
	else if (use == AS_DIFFERENCE)
		to[row] = bits + sums->base + sums->other[row];
	else if (use == AS_STEP)
		to[row] = sums->running += bits + sums->base;
	else
		to[row] = sums->other[bits];
}

/* The i-th of eight rows that begin at `from`. */
INLINED void use_one(enum use use, const unsigned char *from, unsigned int width, unsigned int i,
		     uint64_t mask, struct sums *sums, uint64_t *to)
{
	unsigned int bit = i * width;

	use_bits(use, load_word(from + bit / 8) >> bit % 8 & mask, sums, i, to);
}

/* Eight rows take `width` bytes, so their positions within these are the same each time. */
INLINED uint32_t use_eights(enum use use, const unsigned char *from, unsigned int width,
			    struct sums *sums, uint32_t rows, uint64_t *to)
{
	const uint64_t mask = trace_width_mask(width);
	struct sums here = *sums;
	uint32_t row = 0;

	for (; row + 8 <= rows; row += 8, from += width, to += 8) {
		use_one(use, from, width, 0, mask, &here, to);
		use_one(use, from, width, 1, mask, &here, to);
		use_one(use, from, width, 2, mask, &here, to);
		use_one(use, from, width, 3, mask, &here, to);
		use_one(use, from, width, 4, mask, &here, to);
		use_one(use, from, width, 5, mask, &here, to);
		use_one(use, from, width, 6, mask, &here, to);
		use_one(use, from, width, 7, mask, &here, to);
		if (use == AS_DIFFERENCE)
			here.other += 8;
	}
	sums->running = here.running;
	return row;
}

/* One by one: rows whose eight bytes are all inside the payload. */
INLINED void use_some(enum use use, const unsigned char *from, size_t bit, unsigned int width,
		      struct sums *sums, uint32_t row, uint32_t end, uint64_t *to)
{
	const uint64_t mask = trace_width_mask(width);

	for (bit += (size_t)row * width; row < end; row++, bit += width)
		use_bits(use, load_word(from + bit / 8) >> bit % 8 & mask, sums, row, to);
}

/*
 * Rows from `first` on. Near the end of the payload, where reading eight bytes could go past it,
 * they are copied first.
 */
INLINED uint64_t unpack_as(enum use use, const struct trace_stream *stream,
			   const unsigned char *end, uint32_t first, uint32_t rows,
			   struct sums sums, uint64_t *to)
{
	const unsigned int width = stream->width;
	size_t bit = (size_t)first * width, bytes = (size_t)(end - stream->bits), safe = 0;
	uint32_t row = 0, lead = -first % 8;

	if (width == 0) {
		for (; row < rows; row++)
			use_bits(use, 0, &sums, row, to);
		return sums.running;
	}
	if (bytes >= 8 && (bytes - 8) * 8 >= bit)
		safe = ((bytes - 8) * 8 - bit) / width;
	if (safe > rows)
		safe = rows;
	if (safe >= lead + 8) {
		struct sums rest = sums;

		use_some(use, stream->bits, bit, width, &sums, 0, lead, to);
		rest.running = sums.running;
		if (use == AS_DIFFERENCE)
			rest.other += lead;
		row = lead + use_eights(use, stream->bits + (bit + lead * width) / 8, width, &rest,
					(uint32_t)safe - lead, to + lead);
		sums.running = rest.running;
	}
	use_some(use, stream->bits, bit, width, &sums, row, (uint32_t)safe, to);
	for (row = row < safe ? (uint32_t)safe : row; row < rows; row++) {
		size_t at = bit + (size_t)row * width;

		use_bits(use,
			 load_some(stream->bits + at / 8, bytes - at / 8) >> at % 8 &
				 trace_width_mask(width),
			 &sums, row, to);
	}
	return sums.running;
}

/* Patches of the next rows replace their decoded values. */
static void apply_patches(struct trace_stream *stream, const unsigned char *end, uint32_t first,
			  uint32_t rows, const uint64_t *other, uint64_t *to)
{
	uint32_t next = stream->next_patch;

	for (; next < stream->patches; next++) {
		uint64_t value = load_value(stream->values + (size_t)next * stream->value_bytes,
					    stream->value_bytes, end);
		uint16_t row;

		memcpy(&row, stream->positions + 2 * next, sizeof(row));
		if (row - first >= rows)
			break;
		to[row - first] = stream->base + trace_unzigzag(value) +
				  (other != NULL ? other[row - first] : 0);
	}
	stream->next_patch = (uint16_t)next;
}

static uint64_t table_entry(const struct trace_stream *stream, const unsigned char *end, uint32_t i)
{
	return trace_unzigzag(load_value(stream->values + (size_t)i * stream->value_bytes,
					 stream->value_bytes, end));
}

/* An index past the last entry gives the first. */
static void look_up(const struct trace_stream *stream, const unsigned char *end, uint32_t first,
		    uint32_t rows, uint64_t *to)
{
	uint64_t table[256];

	for (uint32_t i = 0; i < stream->entries; i++)
		table[i] = table_entry(stream, end, i);
	for (uint32_t i = stream->entries; i < UINT32_C(1) << stream->width; i++)
		table[i] = table[0];
	unpack_as(AS_INDEX, stream, end, first, rows, (struct sums){ .other = table }, to);
}

uint32_t trace_columns_values(const struct trace_columns *columns, unsigned int word,
			      uint64_t values[TRACE_VALUES_MAX])
{
	const struct trace_stream *stream = &columns->streams[word];
	uint32_t count = 0;

	if (columns->halves >> word & 1 || stream->reference != TRACE_REFERENCE_NONE)
		return 0;
	if (stream->packing == TRACE_SAME)
		values[count++] = stream->base;
	for (uint32_t i = 0; stream->packing == TRACE_TABLE && i < stream->entries; i++)
		values[count++] = table_entry(stream, columns->end, i);
	if (count > 0 && stream->holes != NULL)
		values[count++] = 0;
	return count;
}

bool trace_columns_constant(const struct trace_columns *columns, unsigned int word, uint64_t *value)
{
	const struct trace_stream *stream = &columns->streams[word];

	if (columns->halves >> word & 1 || stream->packing != TRACE_SAME ||
	    stream->reference != TRACE_REFERENCE_NONE || stream->holes != NULL)
		return false;
	*value = stream->base;
	return true;
}

bool trace_columns_rising(const struct trace_columns *columns, unsigned int word, uint64_t *next,
			  uint64_t *last)
{
	const struct trace_stream *stream = &columns->streams[word];
	uint64_t left = columns->rows - columns->next, step = stream->base;

	if (columns->halves >> word & 1 || stream->packing != TRACE_SAME ||
	    stream->reference != TRACE_REFERENCE_PREVIOUS || stream->holes != NULL || step == 0 ||
	    step > UINT32_MAX || left == 0 || stream->running > UINT64_MAX - step * left)
		return false;
	*next = stream->running + step;
	*last = stream->running + step * left;
	return true;
}

static inline uint64_t hole_mask(const unsigned char *holes, uint32_t row)
{
	return (uint64_t)(holes[row / 8] >> row % 8 & 1) - 1; /* 0 for a hole */
}

static void add_steps(struct trace_stream *stream, uint32_t first, uint32_t rows, uint64_t *to)
{
	const unsigned char *holes = stream->holes;
	uint64_t running = stream->running;

	if (holes == NULL)
		for (uint32_t i = 0; i < rows; i++)
			to[i] = running += to[i];
	else
		for (uint32_t i = 0; i < rows; i++)
			to[i] = running += to[i] & hole_mask(holes, first + i);
	stream->running = running;
}

static void fill_holes(struct trace_stream *stream, uint32_t rows, const uint64_t *other,
		       uint64_t *to)
{
	const uint64_t base = stream->base;
	uint64_t running = stream->running;

	if (stream->reference == TRACE_REFERENCE_NONE) {
		for (uint32_t i = 0; i < rows; i++)
			to[i] = base;
	} else if (stream->reference == TRACE_REFERENCE_PREVIOUS) {
		for (uint32_t i = 0; i < rows; i++)
			to[i] = running += base;
		stream->running = running;
	} else {
		for (uint32_t i = 0; i < rows; i++)
			to[i] = other[i] + base;
	}
}

static void read_packed(struct trace_stream *stream, const unsigned char *end, uint32_t first,
			uint32_t rows, const uint64_t *other, uint64_t *to)
{
	struct sums sums = { .base = stream->base, .running = stream->running, .other = other };
	bool is_plain = stream->holes == NULL && stream->packing == TRACE_PACKED;

	if (stream->reference == TRACE_REFERENCE_PREVIOUS && is_plain) {
		stream->running = unpack_as(AS_STEP, stream, end, first, rows, sums, to);
		return;
	}
	if (stream->reference >= TRACE_REFERENCE_WORD)
		unpack_as(AS_DIFFERENCE, stream, end, first, rows, sums, to);
	else
		unpack_as(AS_NUMBER, stream, end, first, rows, sums, to);
	apply_patches(stream, end, first, rows,
		      stream->reference >= TRACE_REFERENCE_WORD ? other : NULL, to);
	if (stream->reference == TRACE_REFERENCE_PREVIOUS)
		add_steps(stream, first, rows, to);
}

static void read_stream(const struct trace_columns *columns, struct trace_stream *stream,
			uint32_t rows, const uint64_t *other, uint64_t *to)
{
	uint32_t first = columns->next;

	switch (stream->packing) {
	case TRACE_SAME:
		if (stream->holes == NULL || stream->reference != TRACE_REFERENCE_PREVIOUS)
			fill_holes(stream, rows, other, to);
		else
			read_packed(stream, columns->end, first, rows, other, to);
		break;
	case TRACE_PACKED:
	case TRACE_PATCHED:
		read_packed(stream, columns->end, first, rows, other, to);
		break;
	case TRACE_TABLE:
		look_up(stream, columns->end, first, rows, to);
		break;
	default:
		return;
	}
	for (uint32_t i = 0; stream->holes != NULL && i < rows; i++)
		to[i] &= hole_mask(stream->holes, first + i);
}

static void read_high(struct trace_columns *columns, unsigned int word, uint32_t rows, uint64_t *to)
{
	uint64_t high[TRACE_ROWS_MAX];

	read_stream(columns, &columns->high[word], rows, NULL, high);
	for (uint32_t i = 0; i < rows; i++)
		to[i] = (uint32_t)to[i] | high[i] << 32;
}

/* The row of the next patch; if there is none, a row that does not exist. */
static uint32_t next_patch(const struct trace_stream *stream)
{
	uint16_t row;

	if (stream->next_patch == stream->patches)
		return TRACE_ROWS_MAX;
	memcpy(&row, stream->positions + 2 * (size_t)stream->next_patch, sizeof(row));
	return row;
}

/*
 * Each signature depends on the previous one, so the speed is that of two dependent
 * multiplications. Everything else is kept out of that chain behind well-predicted branches.
 */
static void read_signatures(struct trace_columns *columns, uint32_t rows,
			    uint64_t *const to[TRACE_WORDS_MAX])
{
	const uint64_t *kinds = to[OP_WORD_KIND], *counts = to[OP_WORD_COUNT];
	const uint64_t *ends = to[OP_WORD_ENDS], *states = to[OP_WORD_STATE];
	uint64_t *signatures = to[OP_WORD_SIGNATURE];
	struct trace_stream *stream = &columns->streams[OP_WORD_SIGNATURE];
	struct trace_signature_run run = { .last = columns->signatures.last[0] };
	uint32_t patched = next_patch(stream) - columns->next;

	for (uint32_t i = 0; i < rows; i++) {
		trace_signature_turn(&columns->signatures, &run, kinds[i]);
		if (UNLIKELY(i == patched)) {
			signatures[i] =
				load_word(stream->values + 8 * (size_t)stream->next_patch++);
			patched = next_patch(stream) - columns->next;
		} else {
			signatures[i] = trace_signature_guess(run.last, kinds[i], counts[i],
							      ends[i], states[i]);
		}
		if (LIKELY(signatures[i] != 0))
			run.last = signatures[i];
	}
	columns->signatures.last[run.place] = run.last;
}

uint32_t trace_columns_next(struct trace_columns *columns, uint32_t most,
			    uint64_t *const to[TRACE_WORDS_MAX])
{
	uint32_t rows = columns->rows - columns->next;

	if (rows > most)
		rows = most;
	for (unsigned int word = 0; word < columns->words; word++) {
		struct trace_stream *stream = &columns->streams[word];
		const uint64_t *other = NULL;

		if (!(columns->needed & UINT32_C(1) << word))
			continue;
		if (stream->reference >= TRACE_REFERENCE_WORD)
			other = to[word - (stream->reference - 1u)];
		read_stream(columns, stream, rows, other, to[word]);
		if (columns->halves & UINT32_C(1) << word)
			read_high(columns, word, rows, to[word]);
	}
	if (columns->has_signatures)
		read_signatures(columns, rows, to);
	columns->next += rows;
	return rows;
}
