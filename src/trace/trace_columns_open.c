/* All columns of a block are looked at, for their lengths and for what could go wrong. None is decoded. */
#include "trace/trace_decode.h"

#include <stdbool.h>
#include <string.h>

#include "base/attributes.h"

/* What is still to be read. */
struct bytes {
	const unsigned char *at;
	const unsigned char *end;
	bool is_bad; /* sticks */
};

static const unsigned char *take(struct bytes *bytes, size_t count)
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
	const unsigned char *here = take(bytes, 1);

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

/* Rows in ascending order, so that they are met one after the other. */
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
	stream->positions = take(bytes, (size_t)2 * stream->patches);
	if (!bytes->is_bad && !is_ascending(stream->positions, stream->patches, rows))
		bytes->is_bad = true;
	stream->values = take(bytes, (size_t)stream->value_bytes * stream->patches);
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
	stream->bits = take(bytes, trace_packed_bytes(rows, stream->width));
	if (stream->packing == TRACE_PATCHED)
		take_patches(bytes, stream, rows);
}

static void take_table(struct bytes *bytes, struct trace_stream *stream, uint32_t rows)
{
	stream->entries = take_byte(bytes);
	stream->value_bytes = take_value_bytes(bytes);
	bytes->is_bad |= stream->entries == 0;
	stream->width = (uint8_t)trace_index_width(stream->entries);
	stream->values = take(bytes, (size_t)stream->entries * stream->value_bytes);
	stream->bits = take(bytes, trace_packed_bytes(rows, stream->width));
}

/* A column behind its tag, without halves and holes. */
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
		holes = take(bytes, trace_packed_bytes(columns->rows, 1));
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
	/* Signatures are computed last, so nothing can be a difference to them. */
	bytes->is_bad |= stream->reference - 1u > word ||
			 columns->streams[word - (stream->reference - 1u)].packing == TRACE_SIGNED;
}

/* Columns refer to earlier ones, but for signatures, which are computed from four others. */
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
	memcpy(&present, take(&left, trace_presence_bytes(words)), trace_presence_bytes(words));
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
