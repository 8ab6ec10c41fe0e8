/*
 * A page of values. They are packed as they come: a page of rows is more than the processor's cache
 * holds, a few thousand values of one column are not.
 *
 * As long as all values of the page are the same nothing is packed at all. A page of one value is a
 * word of the dictionary; so are the pages of a column of few distinct values, until there are too
 * many. The first page that is not, and all after it, are packed as differences or as they are.
 */
#include <stdlib.h>
#include <string.h>

#include "view/parquet_chunk.h"
#include "view/parquet_pack.h"

void parquet_values_release(struct parquet_values *values)
{
	free(values->raw);
	free(values->bits);
	free(values->codes);
	values->raw = NULL;
	values->bits = NULL;
	values->codes = NULL;
}

/* Columns that are all the same from end to end never need it. */
static enum status reserve(struct parquet_values *page)
{
	if (page->raw == NULL)
		page->raw = malloc(PARQUET_HEAD_BYTES + PARQUET_BODY_BYTES);
	if (page->bits == NULL)
		page->bits = malloc(PARQUET_BITS_WORDS * sizeof(*page->bits));
	if (page->codes == NULL)
		page->codes = malloc(PARQUET_PAGE_ROWS_MAX * sizeof(*page->codes));
	return page->raw && page->bits && page->codes ? OK : ERR_NO_SPACE;
}

static uint8_t *body_of(const struct parquet_values *page)
{
	return page->raw + PARQUET_HEAD_BYTES;
}

/* ---- packing --------------------------------------------------------------------------------- */

static bool is_dictionary(const struct parquet_chunk *chunk)
{
	return chunk->column->style == PARQUET_DICTIONARY_DELTA ||
	       chunk->column->style == PARQUET_DICTIONARY_PLAIN;
}

/* As they are, and not by their differences. */
static bool is_plain(const struct parquet_chunk *chunk)
{
	return chunk->column->style == PARQUET_PLAIN ||
	       chunk->column->style == PARQUET_DICTIONARY_PLAIN;
}

static void put_block(struct parquet_chunk *chunk, const uint64_t *values, size_t count)
{
	struct parquet_values *page = &chunk->values;

	page->length += parquet_pack_delta_block(body_of(page) + page->length, values, count,
						 chunk->is_narrow);
}

/* What was left of the values before is made a block; then whole blocks; the rest is left. */
static void put_deltas(struct parquet_chunk *chunk, const uint64_t *values, size_t count)
{
	struct parquet_values *page = &chunk->values;
	size_t room = PARQUET_DELTA_BLOCK - page->left_count;
	size_t at = count < room ? count : room;

	if (count == 0)
		return;
	memcpy(page->left + 1 + page->left_count, values, at * sizeof(*values));
	page->left_count += at;
	if (page->left_count < PARQUET_DELTA_BLOCK)
		return;
	put_block(chunk, page->left + 1, PARQUET_DELTA_BLOCK);
	for (; count - at >= PARQUET_DELTA_BLOCK; at += PARQUET_DELTA_BLOCK)
		put_block(chunk, values + at, PARQUET_DELTA_BLOCK);
	page->left_count = count - at;
	memcpy(page->left, values + at - 1, (1 + page->left_count) * sizeof(*values));
}

static void put_packed(struct parquet_chunk *chunk, const uint64_t *values, size_t count,
		       bool is_first)
{
	struct parquet_values *page = &chunk->values;

	/* The first difference is to the first value, which stands in the head. */
	if (!is_plain(chunk))
		put_deltas(chunk, values + is_first, count - is_first);
	else
		page->length += parquet_pack_plain(body_of(page) + page->length, values, count,
						   chunk->is_narrow);
}

/* Too many distinct ones: back from codes to values, and on without a dictionary. */
static void fall(struct parquet_chunk *chunk)
{
	struct parquet_values *page = &chunk->values;
	uint64_t some[PARQUET_DELTA_BLOCK];

	chunk->is_fallen = true;
	page->is_coded = false;
	for (size_t at = 0; at < page->kept; at += PARQUET_DELTA_BLOCK) {
		size_t count = page->kept - at;

		count = count < PARQUET_DELTA_BLOCK ? count : PARQUET_DELTA_BLOCK;
		for (size_t i = 0; i < count; i++)
			some[i] = chunk->dictionary.keys[page->codes[at + i]];
		put_packed(chunk, some, count, at == 0);
	}
}

/* `count` more values after page->kept of them. */
static enum status put_kept(struct parquet_chunk *chunk, const uint64_t *values, size_t count)
{
	struct parquet_values *page = &chunk->values;
	enum status status;

	if (page->is_coded) {
		status = parquet_dictionary_numbers(&chunk->dictionary, values, count,
						    page->codes + page->kept);
		if (status == OK || status == ERR_NO_SPACE)
			return status;
		fall(chunk);
	}
	put_packed(chunk, values, count, page->kept == 0);
	return OK;
}

/* Not all values are the same any more, or no dictionary can have this one: pack those before. */
static enum status leave_constant(struct parquet_chunk *chunk)
{
	struct parquet_values *page = &chunk->values;
	uint64_t same[PARQUET_DELTA_BLOCK];
	size_t before = page->kept;
	enum status status = OK;

	page->is_constant = false;
	page->is_coded = !chunk->is_fallen && is_dictionary(chunk);
	chunk->is_fallen = !page->is_coded;
	if (reserve(page) != OK)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < PARQUET_DELTA_BLOCK; i++)
		same[i] = page->first;
	for (page->kept = 0; page->kept < before && status == OK;) {
		size_t count = before - page->kept;

		count = count < PARQUET_DELTA_BLOCK ? count : PARQUET_DELTA_BLOCK;
		status = put_kept(chunk, same, count);
		page->kept += count;
	}
	return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Bits are kept only in pages that have a null. The values that are none: where, and how many. */
static enum status drop_nulls(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
			      const uint64_t **values, size_t *count)
{
	struct parquet_values *page = &chunk->values;
	size_t nulls, rows = *count;

	if (!chunk->column->is_nullable)
		return OK;
	nulls = parquet_count(*values, rows, chunk->column->null);
	if (nulls == 0 && page->kept == page->rows)
		return OK;
	if (reserve(page) != OK)
		return ERR_NO_SPACE;
	if (page->kept == page->rows) {
		memset(page->bits, 0, PARQUET_BITS_WORDS * sizeof(*page->bits));
		parquet_set_bits(page->bits, 0, page->rows);
	}
	if (nulls == 0) {
		parquet_set_bits(page->bits, page->rows, rows);
		return OK;
	}
	*count = 0;
	if (nulls < rows)
		*count = parquet_drop_null_values(scratch->kept, page->bits, page->rows, *values,
						  rows, chunk->column->null);
	*values = scratch->kept;
	return OK;
}

/* Signed numbers are in the order of unsigned ones once their first bit is turned. */
static uint64_t turned(const struct parquet_chunk *chunk, uint64_t value)
{
	return chunk->is_unsigned ? value : value ^ UINT64_C(1) << 63;
}

/* Is it one value only? The chunk's least and most are found on the way. */
static bool find_range(struct parquet_chunk *chunk, const uint64_t *values, size_t count)
{
	uint64_t least, most;

	parquet_find_range(values, count, chunk->is_unsigned, &least, &most);
	if (!chunk->has_range || turned(chunk, least) < turned(chunk, chunk->least))
		chunk->least = least;
	if (!chunk->has_range || turned(chunk, most) > turned(chunk, chunk->most))
		chunk->most = most;
	chunk->has_range = true;
	return least == most;
}

static enum status put_some(struct parquet_chunk *chunk, const uint64_t *values, size_t count)
{
	struct parquet_values *page = &chunk->values;
	bool is_one = find_range(chunk, values, count);
	enum status status = OK;

	if (page->kept == 0) {
		page->is_constant = true;
		page->first = page->left[0] = values[0];
		page->left_count = page->length = 0;
	}
	if (page->is_constant && (!is_one || values[0] != page->first))
		status = leave_constant(chunk);
	if (!page->is_constant && status == OK)
		status = put_kept(chunk, values, count);
	page->kept += count;
	return status;
}

enum status parquet_chunk_put_values(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
				     const uint64_t *values, size_t rows)
{
	size_t count = rows;
	enum status status = drop_nulls(chunk, scratch, &values, &count);

	chunk->values.rows += rows;
	return status != OK || count == 0 ? status : put_some(chunk, values, count);
}

/* ---- the page's end -------------------------------------------------------------------------- */

/* Levels go before what lies at `body`, with `head` bytes of its own before it. */
static enum status add_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
			    uint8_t *body, size_t head, size_t length,
			    enum parquet_encoding encoding)
{
	struct parquet_values *page = &chunk->values;
	uint8_t *from = body - head;
	size_t levels = parquet_page_levels(from, chunk, page->bits, page->rows, page->kept);
	size_t rows = page->rows;

	chunk->nulls += page->rows - page->kept;
	page->rows = page->kept = page->length = page->left_count = 0;
	page->is_constant = page->is_coded = false;
	return parquet_page_add(chunk, scratch, from - levels, levels + head + length, rows,
				encoding);
}

static enum status end_packed_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch)
{
	struct parquet_values *page = &chunk->values;
	uint8_t head[PARQUET_DELTA_HEAD];
	uint8_t *body = body_of(page);
	size_t length;

	if (is_plain(chunk))
		return add_page(chunk, scratch, body, 0, page->length, PARQUET_ENCODING_PLAIN);
	if (page->left_count > 0)
		page->length += parquet_pack_delta_block(body + page->length, page->left + 1,
							 page->left_count, chunk->is_narrow);
	length = parquet_pack_delta_head(head, page->kept, page->kept ? page->first : 0,
					 chunk->is_narrow);
	memcpy(body - length, head, length);
	return add_page(chunk, scratch, body, length, page->length, PARQUET_ENCODING_DELTA);
}

enum status parquet_values_end_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch)
{
	struct parquet_values *page = &chunk->values;
	uint8_t *body = scratch->raw + PARQUET_HEAD_BYTES;
	enum status status = OK;
	uint16_t code = 0;

	if (page->kept == 0)
		page->is_constant = true;
	if (page->is_constant && !chunk->is_fallen && page->kept > 0)
		status = parquet_dictionary_number(&chunk->dictionary, page->first, &code);
	if (status == ERR_NO_SPACE)
		return status;
	if (page->is_constant && !chunk->is_fallen && status == OK)
		return add_page(chunk, scratch, body, 0,
				parquet_page_one_code(body, chunk, code, page->kept),
				PARQUET_ENCODING_DICTIONARY);
	if (page->is_constant) {
		chunk->is_fallen = true;
		if (leave_constant(chunk) != OK)
			return ERR_NO_SPACE;
	}
	if (!page->is_coded)
		return end_packed_page(chunk, scratch);
	return add_page(chunk, scratch, body, 0,
			parquet_page_codes(body, chunk, page->codes, page->kept),
			PARQUET_ENCODING_DICTIONARY);
}
