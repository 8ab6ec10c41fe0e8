#include "view/parquet_chunk.h"

#include <stdlib.h>
#include <string.h>

#include "view/parquet_pack.h"

static bool is_narrow(enum parquet_type type)
{
	return type == PARQUET_INT32 || type == PARQUET_UINT8 || type == PARQUET_UINT16 ||
	       type == PARQUET_UINT32;
}

static bool is_unsigned(enum parquet_type type)
{
	return type == PARQUET_UINT8 || type == PARQUET_UINT16 || type == PARQUET_UINT32 ||
	       type == PARQUET_UINT64 || type == PARQUET_BOOL;
}

void parquet_chunk_init(struct parquet_chunk *chunk, const struct parquet_column *column)
{
	*chunk = (struct parquet_chunk){ .column = column,
					 .is_narrow = is_narrow(column->type),
					 .is_unsigned = is_unsigned(column->type),
					 .codec = PARQUET_UNDECIDED };
	parquet_dictionary_init(&chunk->dictionary);
}

void parquet_chunk_release(struct parquet_chunk *chunk)
{
	parquet_dictionary_release(&chunk->dictionary);
	parquet_values_release(&chunk->values);
	free(chunk->codes.codes);
	chunk->codes.codes = NULL;
}

void parquet_chunk_empty(struct parquet_chunk *chunk)
{
	chunk->first = chunk->last = NULL;
	chunk->dictionary_bytes = 0;
	parquet_dictionary_empty(&chunk->dictionary);
	chunk->has_null = chunk->is_fallen = chunk->has_range = false;
	chunk->codec = PARQUET_UNDECIDED;
	memset(chunk->pages, 0, sizeof(chunk->pages));
	chunk->total_rows = chunk->raw_bytes = chunk->packed_bytes = chunk->nulls = 0;
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* Only one code can occur, as far as is known: then rows need not be looked at. */
static bool is_uniform(const struct parquet_chunk *chunk)
{
	return chunk->dictionary.count + chunk->has_null == 1;
}

static enum status write_lazy_rows(struct parquet_codes *page)
{
	if (page->codes == NULL)
		page->codes = malloc(PARQUET_PAGE_ROWS_MAX * sizeof(*page->codes));
	if (page->codes == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < page->lazy_rows; i++)
		page->codes[page->rows++] = page->lazy_code;
	page->lazy_rows = 0;
	return OK;
}

/* True: these rows need not be looked at. Else there is room for them at page->codes + page->rows. */
static bool take_lazily(struct parquet_chunk *chunk, size_t rows, enum status *status)
{
	struct parquet_codes *page = &chunk->codes;

	chunk->is_coded = true;
	if (is_uniform(chunk)) {
		page->lazy_code = chunk->has_null ? PARQUET_NULL_CODE : 0;
		page->lazy_rows += rows;
		return true;
	}
	*status = write_lazy_rows(page);
	return *status != OK;
}

enum status parquet_chunk_put_codes(struct parquet_chunk *chunk, const uint16_t *entries,
				    const uint16_t *codes, size_t rows)
{
	enum status status = OK;
	size_t i = 0;
	uint16_t *to;

	if (take_lazily(chunk, rows, &status))
		return status;
	to = chunk->codes.codes + chunk->codes.rows;
	/* Four at a time: this is most of what such a column costs. */
	for (; i + 4 <= rows; i += 4) {
		uint16_t a = codes[entries[i]], b = codes[entries[i + 1]];
		uint16_t c = codes[entries[i + 2]], d = codes[entries[i + 3]];

		to[i] = a;
		to[i + 1] = b;
		to[i + 2] = c;
		to[i + 3] = d;
	}
	for (; i < rows; i++)
		to[i] = codes[entries[i]];
	chunk->codes.rows += rows;
	return OK;
}

enum status parquet_chunk_put_runs(struct parquet_chunk *chunk, const struct parquet_run *runs,
				   size_t count, const uint16_t *codes)
{
	enum status status = OK;
	size_t rows = 0;
	uint16_t *to;

	for (size_t i = 0; i < count; i++)
		rows += runs[i].rows;
	if (take_lazily(chunk, rows, &status))
		return status;
	to = chunk->codes.codes + chunk->codes.rows;
	for (size_t i = 0; i < count; i++) {
		const uint16_t code = codes[runs[i].entry];
		const uint64_t four = code * UINT64_C(0x0001000100010001);
		size_t left = runs[i].rows;

		for (; left >= 4; left -= 4, to += 4)
			memcpy(to, &four, sizeof(four));
		while (left-- > 0)
			*to++ = code;
	}
	chunk->codes.rows += rows;
	return OK;
}

/* They have no dictionary in this format. */
static size_t put_booleans(uint8_t *to, const struct parquet_chunk *chunk, const uint16_t *codes,
			   size_t count)
{
	memset(to, 0, (count + 7) / 8);
	for (size_t i = 0; i < count; i++)
		to[i / 8] |= (uint8_t)((chunk->dictionary.keys[codes[i]] != 0) << i % 8);
	return (count + 7) / 8;
}

/* Levels before, and the values as codes; or the booleans they stand for. */
static enum status add_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
			    const uint16_t *codes, size_t kept, size_t rows)
{
	uint8_t *body = scratch->raw + PARQUET_HEAD_BYTES;
	size_t head = parquet_page_levels(body, chunk, scratch->bits, rows, kept), length;
	bool is_boolean = chunk->column->type == PARQUET_BOOL;

	chunk->nulls += rows - kept;
	if (is_boolean)
		length = put_booleans(body, chunk, codes, kept);
	else if (chunk->codes.lazy_rows > 0)
		length = parquet_page_one_code(body, chunk, chunk->codes.lazy_code, kept);
	else
		length = parquet_page_codes(body, chunk, codes, kept);
	chunk->codes.rows = chunk->codes.lazy_rows = 0;
	return parquet_page_add(chunk, scratch, body - head, head + length, rows,
				is_boolean ? PARQUET_ENCODING_PLAIN : PARQUET_ENCODING_DICTIONARY);
}

enum status parquet_chunk_end_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch)
{
	struct parquet_codes *page = &chunk->codes;
	size_t kept;

	if (!chunk->is_coded)
		return parquet_values_end_page(chunk, scratch);
	if (page->lazy_rows > 0) {
		kept = page->lazy_code == PARQUET_NULL_CODE ? 0 : page->lazy_rows;
		/* Only booleans look at them. */
		memset(scratch->codes, 0, sizeof(scratch->codes));
		return add_page(chunk, scratch, scratch->codes, kept, page->lazy_rows);
	}
	if (!chunk->has_null)
		return add_page(chunk, scratch, page->codes, page->rows, page->rows);
	memset(scratch->bits, 0, sizeof(scratch->bits));
	kept = parquet_drop_null_codes(scratch->codes, scratch->bits, page->codes, page->rows);
	return add_page(chunk, scratch, scratch->codes, kept, page->rows);
}
