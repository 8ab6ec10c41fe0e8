/*
 * Pages and chunks of columns. A page of data is
 *
 *	header | [bytes of levels (4) | levels: which rows are not null] | values that are not null
 *
 * of which all but the header is compressed by zstd, unless the first page of the chunk shows that the column does not
 * compress.
 */
#include "output/parquet.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/hash.h"

enum { ZSTD_LEVEL = -1, WORTH_A_TRY = 256, TRY_BYTES = 16 << 10, BLOCK_BYTES = 1 << 20 };
enum page_type { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };

enum status parquet_scratch_init(struct parquet_scratch *scratch)
{
	size_t bytes = PARQUET_HEAD_BYTES + PARQUET_BODY_BYTES;

	sink_init_memory(&scratch->header);
	scratch->zstd = ZSTD_createCCtx();
	scratch->raw = malloc(bytes);
	scratch->packed_room = ZSTD_compressBound(bytes);
	scratch->packed = malloc(scratch->packed_room);
	if (scratch->zstd != NULL && scratch->raw != NULL && scratch->packed != NULL)
		return OK;
	parquet_scratch_release(scratch);
	return ERR_NO_SPACE;
}

void parquet_scratch_release(struct parquet_scratch *scratch)
{
	ZSTD_freeCCtx(scratch->zstd);
	free(scratch->raw);
	free(scratch->packed);
	sink_release(&scratch->header);
	scratch->zstd = NULL;
	scratch->raw = scratch->packed = NULL;
	while (scratch->first != NULL) {
		struct parquet_block *next = scratch->first->next;

		free(scratch->first);
		scratch->first = next;
	}
	scratch->block = NULL;
}

void parquet_scratch_empty(struct parquet_scratch *scratch)
{
	for (struct parquet_block *block = scratch->first; block != NULL; block = block->next)
		block->used = 0;
	scratch->block = scratch->first;
}

static struct parquet_block *add_block(struct parquet_scratch *scratch, size_t bytes)
{
	struct parquet_block **at = &scratch->first, *block;

	while (*at != NULL)
		at = &(*at)->next;
	block = malloc(sizeof(*block) + bytes);
	if (block == NULL)
		return NULL;
	*block = (struct parquet_block){ .room = bytes };
	return *at = block;
}

/* Memory for a page; NULL without memory. Aligned for any struct. */
static void *page_room(struct parquet_scratch *scratch, size_t bytes)
{
	struct parquet_block *block = scratch->block;
	void *room;

	bytes = (bytes + 15) / 16 * 16;
	while (block != NULL && block->room - block->used < bytes)
		block = block->next;
	if (block == NULL)
		block = add_block(scratch, bytes < BLOCK_BYTES ? BLOCK_BYTES : bytes);
	if (block == NULL)
		return NULL;
	scratch->block = block;
	room = block->bytes + block->used;
	block->used += bytes;
	return room;
}

static void write_header(struct parquet_scratch *scratch, enum page_type type, size_t raw,
			 size_t packed, size_t values, enum parquet_encoding encoding)
{
	struct thrift thrift;

	scratch->header.used = 0;
	thrift_init(&thrift, &scratch->header);
	thrift_struct(&thrift, 0);
	thrift_i32(&thrift, 1, type);
	thrift_i32(&thrift, 2, (int32_t)raw);
	thrift_i32(&thrift, 3, (int32_t)packed);
	thrift_struct(&thrift, type == PAGE_DATA ? 5 : 7);
	thrift_i32(&thrift, 1, (int32_t)values);
	thrift_i32(&thrift, 2, (int32_t)encoding);
	if (type == PAGE_DATA) {
		thrift_i32(&thrift, 3, PARQUET_ENCODING_RLE);
		thrift_i32(&thrift, 4, PARQUET_ENCODING_RLE);
	}
	thrift_end(&thrift);
	thrift_end(&thrift);
}

/* A dictionary may be larger than a page. */
static bool reserve_packed(struct parquet_scratch *scratch, size_t length)
{
	size_t needed = ZSTD_compressBound(length);
	uint8_t *packed;

	if (needed <= scratch->packed_room)
		return true;
	packed = realloc(scratch->packed, needed);
	if (packed == NULL)
		return false;
	scratch->packed = packed;
	scratch->packed_room = needed;
	return true;
}

static size_t page_compress(struct parquet_scratch *scratch, const uint8_t *raw, size_t length)
{
	return ZSTD_compressCCtx(scratch->zstd, scratch->packed, scratch->packed_room, raw, length,
				 ZSTD_LEVEL);
}

/* Skip incompressible data, judged by its beginning. */
static enum parquet_codec choose_codec(struct parquet_scratch *scratch, const uint8_t *raw,
				       size_t length)
{
	size_t some = length < TRY_BYTES ? length : TRY_BYTES;

	if (length < WORTH_A_TRY)
		return PARQUET_ZSTD;
	return page_compress(scratch, raw, some) > some - some / 4 ? PARQUET_RAW : PARQUET_ZSTD;
}

/* The bytes to write to the file; *length is set to their length. */
static const uint8_t *page_pack(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
				const uint8_t *raw, size_t *length)
{
	size_t packed;

	if (!reserve_packed(scratch, *length))
		return NULL;
	if (chunk->codec == PARQUET_UNDECIDED)
		chunk->codec = choose_codec(scratch, raw, *length);
	if (chunk->codec == PARQUET_RAW)
		return raw;
	packed = page_compress(scratch, raw, *length);
	if (ZSTD_isError(packed))
		return NULL;
	*length = packed;
	return scratch->packed;
}

static struct parquet_page *make_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
				      enum page_type type, const uint8_t *raw, size_t raw_length,
				      size_t values, enum parquet_encoding encoding)
{
	size_t length = raw_length;
	const uint8_t *bytes = page_pack(chunk, scratch, raw, &length);
	struct parquet_page *page;

	write_header(scratch, type, raw_length, length, values, encoding);
	if (bytes == NULL || scratch->header.status != OK)
		return NULL;
	page = page_room(scratch, sizeof(*page) + scratch->header.used + length);
	if (page == NULL)
		return NULL;
	page->next = NULL;
	page->length = scratch->header.used + length;
	memcpy(page->bytes, scratch->header.bytes, scratch->header.used);
	memcpy(page->bytes + scratch->header.used, bytes, length);
	chunk->raw_bytes += scratch->header.used + raw_length;
	chunk->packed_bytes += page->length;
	return page;
}

/* Adds a page whose levels and values end at `body`, which has PARQUET_HEAD_BYTES before it. */
static enum status parquet_page_add(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
				    const uint8_t *raw, size_t length, size_t rows,
				    enum parquet_encoding encoding)
{
	struct parquet_page *page =
		make_page(chunk, scratch, PAGE_DATA, raw, length, rows, encoding);

	if (page == NULL)
		return ERR_NO_SPACE;
	if (chunk->last != NULL)
		chunk->last->next = page;
	else
		chunk->first = page;
	chunk->last = page;
	chunk->pages[encoding]++;
	chunk->total_rows += rows;
	return OK;
}

enum status parquet_chunk_dictionary(struct parquet_chunk *chunk, struct parquet_scratch *scratch)
{
	const struct parquet_dictionary *dictionary = &chunk->dictionary;
	const uint8_t *bytes = dictionary->text_bytes;
	size_t length = dictionary->text_used;
	struct parquet_page *page;

	if (chunk->pages[PARQUET_ENCODING_DICTIONARY] == 0)
		return OK;
	if (chunk->column->type != PARQUET_STRING)
		length = parquet_pack_plain(scratch->raw, dictionary->keys, dictionary->count,
					    chunk->is_narrow);
	/* All null: an empty dictionary is required. */
	if (chunk->column->type != PARQUET_STRING || length == 0)
		bytes = scratch->raw;
	page = make_page(chunk, scratch, PAGE_DICTIONARY, bytes, length, dictionary->count,
			 PARQUET_ENCODING_PLAIN);
	if (page == NULL)
		return ERR_NO_SPACE;
	page->next = chunk->first;
	chunk->first = page;
	chunk->dictionary_bytes = page->length;
	return OK;
}

/*
 * Levels: which rows are not null. `kept` rows are; bits are needed only if that is neither all nor none. Written
 * so that they end at `end`; returns the length, 0 if the column is not nullable.
 */
static size_t parquet_page_levels(uint8_t *end, const struct parquet_chunk *chunk,
				  const uint64_t *bits, size_t rows, size_t kept)
{
	uint8_t head[PARQUET_VARINT_MAX + 1];
	size_t bit_bytes = 0, head_length;
	uint32_t length;

	if (!chunk->column->is_nullable)
		return 0;
	if (kept == 0 || kept == rows) {
		head_length = parquet_pack_run(head, rows, kept > 0, 1);
	} else {
		bit_bytes = (rows + 7) / 8;
		head_length = parquet_pack_varint(head, bit_bytes << 1 | 1);
	}
	length = (uint32_t)(head_length + bit_bytes);
	memcpy(end - length - 4, &length, 4);
	memcpy(end - length, head, head_length);
	if (bit_bytes > 0)
		memcpy(end - bit_bytes, bits, bit_bytes);
	return length + 4;
}

static unsigned int code_width(const struct parquet_chunk *chunk)
{
	return chunk->dictionary.count > 1 ? parquet_bit_width(chunk->dictionary.count - 1) : 0;
}

/* Dictionary codes: width, then the codes, or `count` times one code. Returns the length. */
static size_t parquet_page_codes(uint8_t *to, const struct parquet_chunk *chunk,
				 const uint16_t *codes, size_t count)
{
	to[0] = (uint8_t)code_width(chunk);
	return 1 + parquet_pack_codes(to + 1, codes, count, to[0]);
}

static size_t parquet_page_one_code(uint8_t *to, const struct parquet_chunk *chunk, uint16_t code,
				    size_t count)
{
	to[0] = (uint8_t)code_width(chunk);
	return 1 + (count ? parquet_pack_run(to + 1, count, code, to[0]) : 0);
}

/*
 * A page of values. Values are packed as they come, because a page does not fit the CPU cache but a few thousand
 * values of a column do. While all values of a page are equal, nothing is packed: such a page uses the dictionary,
 * like the pages of a column with few distinct values. Once there are too many, this page and all later ones are
 * packed as differences or plain.
 */

static void parquet_values_release(struct parquet_values *values)
{
	free(values->raw);
	free(values->bits);
	free(values->codes);
	values->raw = NULL;
	values->bits = NULL;
	values->codes = NULL;
}

/* Allocated late: columns with a single value never need it. */
static enum status values_reserve(struct parquet_values *page)
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

/* Plain, not as differences. */
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

/* Completes the pending block, then packs whole blocks and keeps the rest. */
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

	/* The first difference is relative to the first value, which is in the header. */
	if (!is_plain(chunk))
		put_deltas(chunk, values + is_first, count - is_first);
	else
		page->length += parquet_pack_plain(body_of(page) + page->length, values, count,
						   chunk->is_narrow);
}

/* Too many distinct values: converts codes back to values and stops using the dictionary. */
static void values_fall_back(struct parquet_chunk *chunk)
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

/* Appends `count` values after page->kept. */
static enum status put_kept(struct parquet_chunk *chunk, const uint64_t *values, size_t count)
{
	struct parquet_values *page = &chunk->values;
	enum status status;

	if (page->is_coded) {
		status = parquet_dictionary_numbers(&chunk->dictionary, values, count,
						    page->codes + page->kept);
		if (status == OK || status == ERR_NO_SPACE)
			return status;
		values_fall_back(chunk);
	}
	put_packed(chunk, values, count, page->kept == 0);
	return OK;
}

/* Values now differ, or the dictionary cannot hold this one: pack the previous ones. */
static enum status leave_constant(struct parquet_chunk *chunk)
{
	struct parquet_values *page = &chunk->values;
	uint64_t same[PARQUET_DELTA_BLOCK];
	size_t before = page->kept;
	enum status status = OK;

	page->is_constant = false;
	page->is_coded = !chunk->is_fallen && is_dictionary(chunk);
	chunk->is_fallen = !page->is_coded;
	if (values_reserve(page) != OK)
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

/* Bits are kept only in pages with nulls. Finds the non-null values and their number. */
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
	if (values_reserve(page) != OK)
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

/* With the sign bit flipped, signed numbers sort like unsigned ones. */
static uint64_t values_order_key(const struct parquet_chunk *chunk, uint64_t value)
{
	return chunk->is_unsigned ? value : value ^ UINT64_C(1) << 63;
}

/* Are all values equal? Also updates the minimum and maximum of the chunk. */
static bool find_range(struct parquet_chunk *chunk, const uint64_t *values, size_t count)
{
	uint64_t least, most;

	parquet_find_range(values, count, chunk->is_unsigned, &least, &most);
	if (!chunk->has_range ||
	    values_order_key(chunk, least) < values_order_key(chunk, chunk->least))
		chunk->least = least;
	if (!chunk->has_range ||
	    values_order_key(chunk, most) > values_order_key(chunk, chunk->most))
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

/* Writes levels before `body`, which has `head` bytes of its own before it. */
static enum status add_value_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
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
		return add_value_page(chunk, scratch, body, 0, page->length,
				      PARQUET_ENCODING_PLAIN);
	if (page->left_count > 0)
		page->length += parquet_pack_delta_block(body + page->length, page->left + 1,
							 page->left_count, chunk->is_narrow);
	length = parquet_pack_delta_head(head, page->kept, page->kept ? page->first : 0,
					 chunk->is_narrow);
	memcpy(body - length, head, length);
	return add_value_page(chunk, scratch, body, length, page->length, PARQUET_ENCODING_DELTA);
}

static enum status parquet_values_end_page(struct parquet_chunk *chunk,
					   struct parquet_scratch *scratch)
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
		return add_value_page(chunk, scratch, body, 0,
				      parquet_page_one_code(body, chunk, code, page->kept),
				      PARQUET_ENCODING_DICTIONARY);
	if (page->is_constant) {
		chunk->is_fallen = true;
		if (leave_constant(chunk) != OK)
			return ERR_NO_SPACE;
	}
	if (!page->is_coded)
		return end_packed_page(chunk, scratch);
	return add_value_page(chunk, scratch, body, 0,
			      parquet_page_codes(body, chunk, page->codes, page->kept),
			      PARQUET_ENCODING_DICTIONARY);
}

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

/* If only one code is in use, rows need not be read. */
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

/* True: the rows need not be read. Otherwise there is room for them at page->codes + page->rows. */
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
	/* Unrolled: this dominates the cost of such a column. */
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

/* Booleans have no dictionary in this format. */
static size_t put_booleans(uint8_t *to, const struct parquet_chunk *chunk, const uint16_t *codes,
			   size_t count)
{
	memset(to, 0, (count + 7) / 8);
	for (size_t i = 0; i < count; i++)
		to[i / 8] |= (uint8_t)((chunk->dictionary.keys[codes[i]] != 0) << i % 8);
	return (count + 7) / 8;
}

/* Levels, then codes, or booleans. */
static enum status add_code_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
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
		/* Used by booleans only. */
		memset(scratch->codes, 0, sizeof(scratch->codes));
		return add_code_page(chunk, scratch, scratch->codes, kept, page->lazy_rows);
	}
	if (!chunk->has_null)
		return add_code_page(chunk, scratch, page->codes, page->rows, page->rows);
	memset(scratch->bits, 0, sizeof(scratch->bits));
	kept = parquet_drop_null_codes(scratch->codes, scratch->bits, page->codes, page->rows);
	return add_code_page(chunk, scratch, scratch->codes, kept, page->rows);
}

/*
 * Numbers are packed 32 at a time by code generated for each width, so that all shifts are constants: 4x faster
 * than a loop over bits.
 */

enum { MINIBLOCKS = 4, MINIBLOCK = PARQUET_DELTA_BLOCK / MINIBLOCKS };
/* Shorter runs are smaller packed than as RLE. */
enum { RUN_LEAST = 64 };

/* Portable vectors of two numbers. */
typedef uint64_t lanes __attribute__((vector_size(16)));
typedef int64_t signed_lanes __attribute__((vector_size(16)));
typedef uint64_t loose_lanes __attribute__((vector_size(16), aligned(8), may_alias));

/* Minimum per lane. A comparison gives a lane of all ones or zeros. */
#define PICK(mask, a, b) (((a) & (mask)) | ((b) & ~(mask)))
#define LEAST(a, b) PICK((b) < (a), b, a)
#define MOST(a, b) PICK((b) > (a), b, a)

static inline const loose_lanes *lanes_at(const uint64_t *values)
{
	return (const loose_lanes *)(const void *)values;
}

size_t parquet_pack_varint(uint8_t *to, uint64_t number)
{
	size_t length = 0;

	while (number >= 0x80) {
		to[length++] = (uint8_t)(number | 0x80);
		number >>= 7;
	}
	to[length++] = (uint8_t)number;
	return length;
}

unsigned int parquet_bit_width(uint64_t most)
{
	return most ? 64u - (unsigned int)__builtin_clzll(most) : 0;
}

/* ---- codes ----------------------------------------------------------------------------------- */

size_t parquet_pack_run(uint8_t *to, uint64_t count, uint16_t code, unsigned int width)
{
	size_t length = parquet_pack_varint(to, count << 1);

	for (unsigned int bits = 0; bits < width; bits += 8)
		to[length++] = (uint8_t)(code >> bits);
	return length;
}

/* Eight codes take `width` bytes; bytes beyond are written too, and overwritten by the next ones. */
static void pack_eight(uint8_t *to, const uint16_t *codes, unsigned int width)
{
	uint64_t low = 0, high = 0;

	for (unsigned int i = 0; i < 4; i++) {
		low |= (uint64_t)codes[i] << (i * width);
		high |= (uint64_t)codes[i + 4] << (i * width);
	}
	if (width <= 8) {
		low |= high << (4 * width);
		memcpy(to, &low, 8);
		return;
	}
	/* Four codes of an odd width end inside a byte. */
	memcpy(to, &low, 8);
	if (4 * width < 64)
		low |= high << (4 * width);
	memcpy(to, &low, 8);
	high >>= 64 - 4 * width;
	memcpy(to + 8, &high, 8);
}

/* The codes between two runs: whole groups of eight, the last one padded with 0. */
static size_t pack_literals(uint8_t *to, const uint16_t *codes, size_t count, unsigned int width)
{
	uint16_t last[8] = { 0 };
	size_t groups = (count + 7) / 8, length;

	if (count == 0)
		return 0;
	length = parquet_pack_varint(to, groups << 1 | 1);
	for (size_t i = 0; i < count / 8; i++, length += width)
		pack_eight(to + length, codes + 8 * i, width);
	if (count % 8 == 0)
		return length;
	memcpy(last, codes + count / 8 * 8, count % 8 * sizeof(*codes));
	pack_eight(to + length, last, width);
	return length + width;
}

static bool begins_run(const uint16_t *codes)
{
	return codes[0] == codes[RUN_LEAST - 1] && codes[0] == codes[RUN_LEAST / 2] &&
	       memcmp(codes, codes + 1, (RUN_LEAST - 1) * sizeof(*codes)) == 0;
}

size_t parquet_pack_codes(uint8_t *to, const uint16_t *codes, size_t count, unsigned int width)
{
	size_t length = 0, from = 0, at = 0;

	while (at + RUN_LEAST <= count) {
		size_t end = at + RUN_LEAST;

		if (!begins_run(codes + at)) {
			at += 8;
			continue;
		}
		while (end + RUN_LEAST <= count &&
		       memcmp(codes + at, codes + end, RUN_LEAST * sizeof(*codes)) == 0)
			end += RUN_LEAST;
		while (end < count && codes[end] == codes[at])
			end++;
		length += pack_literals(to + length, codes + from, at - from, width);
		length += parquet_pack_run(to + length, end - at, codes[at], width);
		from = at = end;
	}
	return length + pack_literals(to + length, codes + from, count - from, width);
}

/* ---- deltas ---------------------------------------------------------------------------------- */

/* Adds the i-th number; with a constant width most of this is folded at compile time. */
#define PUT(i)                                                                  \
	do {                                                                    \
		const unsigned int bit = (i)*width % 64;                        \
		const uint64_t value = deltas[i] - least;                       \
                                                                                \
		word |= value << bit;                                           \
		if (bit + width >= 64) {                                        \
			memcpy(to, &word, 8);                                   \
			to += 8;                                                \
			word = bit + width > 64 ? value >> (64 - bit) % 64 : 0; \
		}                                                               \
	} while (0)
#define PUT_4(i)    \
	PUT(i);     \
	PUT(i + 1); \
	PUT(i + 2); \
	PUT(i + 3)
#define PUT_16(i)     \
	PUT_4(i);     \
	PUT_4(i + 4); \
	PUT_4(i + 8); \
	PUT_4(i + 12)

/* 32 numbers take a multiple of 4 bytes, so half a word can remain. */
static inline __attribute__((always_inline)) void pack_32(uint8_t *to, const uint64_t *deltas,
							  uint64_t least, const unsigned int width)
{
	uint64_t word = 0;

	PUT_16(0);
	PUT_16(16);
	if (width % 2)
		memcpy(to, &word, 4);
}

#define WIDTH(n)                                 \
	case (n):                                \
		pack_32(to, deltas, least, (n)); \
		break
#define WIDTHS_4(n)   \
	WIDTH(n);     \
	WIDTH(n + 1); \
	WIDTH(n + 2); \
	WIDTH(n + 3)
#define WIDTHS_16(n)     \
	WIDTHS_4(n);     \
	WIDTHS_4(n + 4); \
	WIDTHS_4(n + 8); \
	WIDTHS_4(n + 12)

/* Subtracts the minimum from 32 differences. */
static void pack_miniblock(uint8_t *to, const uint64_t *deltas, uint64_t least, unsigned int width)
{
	switch (width) {
		WIDTHS_16(1);
		WIDTHS_16(17);
		WIDTHS_16(33);
		WIDTHS_16(49);
	default:
		break;
	}
}

/* 32 differences to the previous number, with minimum and maximum. 32-bit differences wrap around. */
static inline __attribute__((always_inline)) void make_deltas(uint64_t *deltas,
							      const uint64_t *values,
							      const bool is_narrow, int64_t *least,
							      int64_t *most)
{
	signed_lanes low[2] = { { INT64_MAX, INT64_MAX }, { INT64_MAX, INT64_MAX } };
	signed_lanes high[2] = { { INT64_MIN, INT64_MIN }, { INT64_MIN, INT64_MIN } };

	for (unsigned int i = 0; i < MINIBLOCK; i += 4) {
		for (unsigned int k = 0; k < 2; k++) {
			const uint64_t *at = values + i + 2 * k;
			signed_lanes delta = (signed_lanes)(*lanes_at(at) - *lanes_at(at - 1));

			if (is_narrow)
				delta = delta << 32 >> 32;
			memcpy(deltas + i + 2 * k, &delta, sizeof(delta));
			low[k] = LEAST(low[k], delta);
			high[k] = MOST(high[k], delta);
		}
	}
	low[0] = LEAST(low[0], low[1]);
	high[0] = MOST(high[0], high[1]);
	*least = low[0][0] < low[0][1] ? low[0][0] : low[0][1];
	*most = high[0][0] > high[0][1] ? high[0][0] : high[0][1];
}

static size_t pack_block(uint8_t *to, const uint64_t *values, unsigned int miniblocks,
			 bool is_narrow)
{
	uint64_t deltas[PARQUET_DELTA_BLOCK];
	int64_t least[MINIBLOCKS], most[MINIBLOCKS], all = INT64_MAX;
	uint8_t *widths;
	size_t length;

	for (unsigned int i = 0; i < miniblocks; i++) {
		const unsigned int at = i * MINIBLOCK;

		if (is_narrow)
			make_deltas(deltas + at, values + at, true, &least[i], &most[i]);
		else
			make_deltas(deltas + at, values + at, false, &least[i], &most[i]);
		all = least[i] < all ? least[i] : all;
	}
	length = parquet_pack_varint(to, parquet_zigzag(all));
	widths = to + length;
	memset(widths, 0, MINIBLOCKS);
	length += MINIBLOCKS;
	for (unsigned int i = 0; i < miniblocks; i++) {
		widths[i] = (uint8_t)parquet_bit_width((uint64_t)most[i] - (uint64_t)all);
		pack_miniblock(to + length, deltas + i * MINIBLOCK, (uint64_t)all, widths[i]);
		length += widths[i] * (MINIBLOCK / 8u);
	}
	return length;
}

size_t parquet_pack_delta_block(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow)
{
	uint64_t filled[1 + PARQUET_DELTA_BLOCK];
	unsigned int miniblocks = (unsigned int)((count + MINIBLOCK - 1) / MINIBLOCK);

	if (count == PARQUET_DELTA_BLOCK)
		return pack_block(to, values, MINIBLOCKS, is_narrow);
	/* Padding that readers skip: repeats the last value. */
	memcpy(filled, values - 1, (1 + count) * sizeof(*filled));
	for (size_t i = count; i < (size_t)miniblocks * MINIBLOCK; i++)
		filled[1 + i] = filled[count];
	return pack_block(to, filled + 1, miniblocks, is_narrow);
}

size_t parquet_pack_delta_head(uint8_t *to, size_t count, uint64_t first, bool is_narrow)
{
	int64_t value = is_narrow ? (int32_t)(uint32_t)first : (int64_t)first;
	size_t length = parquet_pack_varint(to, PARQUET_DELTA_BLOCK);

	length += parquet_pack_varint(to + length, MINIBLOCKS);
	length += parquet_pack_varint(to + length, count);
	return length + parquet_pack_varint(to + length, parquet_zigzag(value));
}

/* ---- plain ----------------------------------------------------------------------------------- */

size_t parquet_pack_plain(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow)
{
	if (!is_narrow) {
		if (count > 0)
			memcpy(to, values, count * 8);
		return count * 8;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t value = (uint32_t)values[i];

		memcpy(to + 4 * i, &value, 4);
	}
	return count * 4;
}

/* ---- what a page has ------------------------------------------------------------------------- */

void parquet_find_range(const uint64_t *values, size_t count, bool is_unsigned, uint64_t *least,
			uint64_t *most)
{
	/* With the sign bit flipped, unsigned numbers sort like signed ones. */
	const uint64_t turn = is_unsigned ? UINT64_C(1) << 63 : 0;
	const lanes turns = { turn, turn };
	int64_t low = (int64_t)(values[0] ^ turn), high = low;
	signed_lanes lows[2] = { { low, low }, { low, low } };
	signed_lanes highs[2] = { { high, high }, { high, high } };
	size_t i = 0;

	for (; i + 4 <= count; i += 4) {
		for (unsigned int k = 0; k < 2; k++) {
			signed_lanes value = (signed_lanes)(*lanes_at(values + i + 2 * k) ^ turns);

			lows[k] = LEAST(lows[k], value);
			highs[k] = MOST(highs[k], value);
		}
	}
	lows[0] = LEAST(lows[0], lows[1]);
	highs[0] = MOST(highs[0], highs[1]);
	low = lows[0][0] < lows[0][1] ? lows[0][0] : lows[0][1];
	high = highs[0][0] > highs[0][1] ? highs[0][0] : highs[0][1];
	for (; i < count; i++) {
		int64_t value = (int64_t)(values[i] ^ turn);

		low = value < low ? value : low;
		high = value > high ? value : high;
	}
	*least = (uint64_t)low ^ turn;
	*most = (uint64_t)high ^ turn;
}

size_t parquet_count(const uint64_t *values, size_t count, uint64_t wanted)
{
	const lanes wanted_lanes = { wanted, wanted };
	lanes found[2] = { { 0, 0 }, { 0, 0 } };
	size_t i = 0, sum;

	for (; i + 4 <= count; i += 4)
		for (unsigned int k = 0; k < 2; k++)
			found[k] -= (lanes)(*lanes_at(values + i + 2 * k) == wanted_lanes);
	found[0] += found[1];
	sum = found[0][0] + found[0][1];
	for (; i < count; i++)
		sum += values[i] == wanted;
	return sum;
}

/* ---- null ------------------------------------------------------------------------------------ */

size_t parquet_drop_null_values(uint64_t *to, uint64_t *bits, size_t bit, const uint64_t *values,
				size_t count, uint64_t null)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++, bit++) {
		uint64_t is_there = values[i] != null;

		bits[bit / 64] |= is_there << bit % 64;
		to[kept] = values[i];
		kept += is_there;
	}
	return kept;
}

/* The bits of the non-null ones of 64 codes. */
static uint64_t find_codes(const uint16_t *codes)
{
	uint64_t bits = 0;

	for (unsigned int i = 0; i < 64; i += 4) {
		uint64_t four, found;

		memcpy(&four, codes + i, sizeof(four));
		/* The first bit of each code that is not all ones, shifted to the end. */
		found = ~four;
		found = (((found & UINT64_C(0x7fff7fff7fff7fff)) + UINT64_C(0x7fff7fff7fff7fff)) |
			 found) &
			UINT64_C(0x8000800080008000);
		found = found >> 15 | found >> 30 | found >> 45 | found >> 60;
		bits |= (found & 0xf) << i;
	}
	return bits;
}

size_t parquet_drop_null_codes(uint16_t *to, uint64_t *bits, const uint16_t *codes, size_t count)
{
	size_t kept = 0, i = 0;

	for (; i + 64 <= count; i += 64) {
		uint64_t found = bits[i / 64] = find_codes(codes + i);

		if (found == UINT64_MAX) {
			memcpy(to + kept, codes + i, 64 * sizeof(*codes));
			kept += 64;
			continue;
		}
		for (; found != 0; found &= found - 1)
			to[kept++] = codes[i + (unsigned int)__builtin_ctzll(found)];
	}
	for (; i < count; i++) {
		uint64_t is_there = codes[i] != PARQUET_NULL_CODE;

		bits[i / 64] |= is_there << i % 64;
		to[kept] = codes[i];
		kept += is_there;
	}
	return kept;
}

void parquet_set_bits(uint64_t *bits, size_t from, size_t count)
{
	for (; count > 0 && from % 64 != 0; from++, count--)
		bits[from / 64] |= UINT64_C(1) << from % 64;
	memset(bits + from / 64, 0xff, count / 64 * 8);
	if (count % 64 != 0)
		bits[(from + count) / 64] |= (UINT64_C(1) << count % 64) - 1;
}

enum { SLOT_BITS = 15, SLOTS = 1 << SLOT_BITS };
_Static_assert(SLOTS == 2 * PARQUET_DICTIONARY_MAX, "a search ends at an empty slot");

void parquet_dictionary_init(struct parquet_dictionary *dictionary)
{
	*dictionary = (struct parquet_dictionary){ 0 };
}

void parquet_dictionary_release(struct parquet_dictionary *dictionary)
{
	free(dictionary->keys);
	free(dictionary->slots);
	free(dictionary->text_at);
	free(dictionary->text_bytes);
	parquet_dictionary_init(dictionary);
}

void parquet_dictionary_empty(struct parquet_dictionary *dictionary)
{
	if (dictionary->count > 0)
		memset(dictionary->slots, 0, SLOTS * sizeof(*dictionary->slots));
	dictionary->count = 0;
	dictionary->text_used = 0;
}

static enum status dictionary_reserve(struct parquet_dictionary *dictionary)
{
	if (dictionary->slots != NULL)
		return OK;
	dictionary->keys = malloc(PARQUET_DICTIONARY_MAX * sizeof(*dictionary->keys));
	dictionary->slots = calloc(SLOTS, sizeof(*dictionary->slots));
	if (dictionary->keys != NULL && dictionary->slots != NULL)
		return OK;
	parquet_dictionary_release(dictionary);
	return ERR_NO_SPACE;
}

static uint32_t first_slot(uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SLOT_BITS));
}

static enum status dictionary_add(struct parquet_dictionary *dictionary, uint32_t slot,
				  uint64_t key, uint16_t *code)
{
	if (dictionary->count == PARQUET_DICTIONARY_MAX)
		return ERR_RANGE;
	dictionary->keys[dictionary->count] = key;
	*code = (uint16_t)dictionary->count;
	dictionary->slots[slot] = ++dictionary->count;
	return OK;
}

enum status parquet_dictionary_number(struct parquet_dictionary *dictionary, uint64_t number,
				      uint16_t *code)
{
	uint32_t slot = first_slot(number), found;
	enum status status = dictionary_reserve(dictionary);

	if (status != OK)
		return status;
	while ((found = dictionary->slots[slot]) != 0) {
		if (dictionary->keys[found - 1] == number) {
			*code = (uint16_t)(found - 1);
			return OK;
		}
		slot = (slot + 1) & (SLOTS - 1);
	}
	return dictionary_add(dictionary, slot, number, code);
}

enum status parquet_dictionary_numbers(struct parquet_dictionary *dictionary,
				       const uint64_t *numbers, size_t count, uint16_t *codes)
{
	enum status status = OK;
	uint16_t code = 0;

	for (size_t i = 0; i < count && status == OK; i++) {
		if (i == 0 || numbers[i] != numbers[i - 1])
			status = parquet_dictionary_number(dictionary, numbers[i], &code);
		codes[i] = code;
	}
	return status;
}

const uint8_t *parquet_dictionary_bytes(const struct parquet_dictionary *dictionary, uint32_t code,
					uint32_t *length)
{
	const uint8_t *at = dictionary->text_bytes + dictionary->text_at[code];

	memcpy(length, at, 4);
	return at + 4;
}

static enum status keep_text(struct parquet_dictionary *dictionary, const char *text,
			     uint32_t length)
{
	size_t needed = dictionary->text_used + 4 + length, room = dictionary->text_room;
	uint8_t *bytes;

	if (dictionary->text_at == NULL)
		dictionary->text_at = malloc(PARQUET_DICTIONARY_MAX * sizeof(uint32_t));
	if (dictionary->text_at == NULL)
		return ERR_NO_SPACE;
	while (room < needed)
		room = room ? 2 * room : 1024;
	if (room != dictionary->text_room) {
		bytes = realloc(dictionary->text_bytes, room);
		if (bytes == NULL)
			return ERR_NO_SPACE;
		dictionary->text_bytes = bytes;
		dictionary->text_room = room;
	}
	dictionary->text_at[dictionary->count] = (uint32_t)dictionary->text_used;
	memcpy(dictionary->text_bytes + dictionary->text_used, &length, 4);
	memcpy(dictionary->text_bytes + dictionary->text_used + 4, text, length);
	return OK;
}

enum status parquet_dictionary_text(struct parquet_dictionary *dictionary, const char *text,
				    uint16_t *code)
{
	uint32_t length = (uint32_t)strlen(text), kept_length;
	uint64_t key = hash_bytes(text, length);
	uint32_t slot = first_slot(key), found;
	enum status status = dictionary_reserve(dictionary);

	while (status == OK && (found = dictionary->slots[slot]) != 0) {
		const uint8_t *kept = parquet_dictionary_bytes(dictionary, found - 1, &kept_length);

		if (dictionary->keys[found - 1] == key && kept_length == length &&
		    memcmp(kept, text, length) == 0) {
			*code = (uint16_t)(found - 1);
			return OK;
		}
		slot = (slot + 1) & (SLOTS - 1);
	}
	if (status == OK && dictionary->count < PARQUET_DICTIONARY_MAX)
		status = keep_text(dictionary, text, length);
	if (status == OK)
		status = dictionary_add(dictionary, slot, key, code);
	if (status == OK)
		dictionary->text_used += 4 + length;
	return status;
}
