/*
 * From bytes to a page. A page of data is
 *
 *	header | [bytes of levels (4) | levels: which rows are not null] | values that are not null
 *
 * of which all but the header is packed by zstd, or not: some columns are noise that no packer makes
 * much smaller, and the first page of a chunk shows it.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "view/parquet_chunk.h"
#include "view/parquet_pack.h"
#include "view/thrift.h"

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

/* Memory for a page; NULL when there is none. Pages begin where any struct may begin. */
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

/* A large dictionary can be more than a page. */
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

static size_t compress(struct parquet_scratch *scratch, const uint8_t *raw, size_t length)
{
	return ZSTD_compressCCtx(scratch->zstd, scratch->packed, scratch->packed_room, raw, length,
				 ZSTD_LEVEL);
}

/* Noise is not worth the time: its beginning shows it. */
static enum parquet_codec choose_codec(struct parquet_scratch *scratch, const uint8_t *raw,
				       size_t length)
{
	size_t some = length < TRY_BYTES ? length : TRY_BYTES;

	if (length < WORTH_A_TRY)
		return PARQUET_ZSTD;
	return compress(scratch, raw, some) > some - some / 4 ? PARQUET_RAW : PARQUET_ZSTD;
}

/* What goes into the file for these bytes; *length is changed to its length. */
static const uint8_t *pack(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
			   const uint8_t *raw, size_t *length)
{
	size_t packed;

	if (!reserve_packed(scratch, *length))
		return NULL;
	if (chunk->codec == PARQUET_UNDECIDED)
		chunk->codec = choose_codec(scratch, raw, *length);
	if (chunk->codec == PARQUET_RAW)
		return raw;
	packed = compress(scratch, raw, *length);
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
	const uint8_t *bytes = pack(chunk, scratch, raw, &length);
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

enum status parquet_page_add(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
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
	/* All null: there must be a dictionary, and nothing is in it. */
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

size_t parquet_page_levels(uint8_t *end, const struct parquet_chunk *chunk, const uint64_t *bits,
			   size_t rows, size_t kept)
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

size_t parquet_page_codes(uint8_t *to, const struct parquet_chunk *chunk, const uint16_t *codes,
			  size_t count)
{
	to[0] = (uint8_t)code_width(chunk);
	return 1 + parquet_pack_codes(to + 1, codes, count, to[0]);
}

size_t parquet_page_one_code(uint8_t *to, const struct parquet_chunk *chunk, uint16_t code,
			     size_t count)
{
	to[0] = (uint8_t)code_width(chunk);
	return 1 + (count ? parquet_pack_run(to + 1, count, code, to[0]) : 0);
}
