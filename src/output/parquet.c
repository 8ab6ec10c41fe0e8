/* Row groups, statistics, schema and footer; parquet_chunk.c encodes the values. */
#include "output/parquet.h"

#include <stdlib.h>
#include <string.h>

/* The footer of a Parquet file: schema, row groups, key-value metadata. */

struct parquet_meta {
	const struct parquet_column *columns; /* borrowed */
	size_t column_count;
	struct sink groups; /* in the format of the footer */
	size_t group_count;
	struct sink pairs; /* the same */
	size_t pair_count;
};

enum thrift_type {
	THRIFT_TRUE = 1,
	THRIFT_FALSE = 2,
	THRIFT_I8 = 3,
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_BINARY = 8,
	THRIFT_LIST = 9,
	THRIFT_STRUCT = 12,
};

void thrift_init(struct thrift *thrift, struct sink *sink)
{
	*thrift = (struct thrift){ .sink = sink };
}

static void put_varint(struct thrift *thrift, uint64_t number)
{
	uint8_t bytes[PARQUET_VARINT_MAX];

	sink_write(thrift->sink, bytes, parquet_pack_varint(bytes, number));
}

/* The header of a field whose content was already encoded. */
static void thrift_head(struct thrift *thrift, int id, enum thrift_type type)
{
	int *last = &thrift->last[thrift->depth];
	int step = id - *last;

	if (step > 0 && step <= 15) {
		sink_byte(thrift->sink, (char)(step << 4 | (int)type));
	} else {
		sink_byte(thrift->sink, (char)type);
		put_varint(thrift, parquet_zigzag(id));
	}
	*last = id;
}

void thrift_struct(struct thrift *thrift, int id)
{
	if (id != 0)
		thrift_head(thrift, id, THRIFT_STRUCT);
	if (thrift->depth + 1 < THRIFT_DEPTH_MAX)
		thrift->last[++thrift->depth] = 0;
}

void thrift_end(struct thrift *thrift)
{
	sink_byte(thrift->sink, 0);
	if (thrift->depth > 0)
		thrift->depth--;
}

static void thrift_bool(struct thrift *thrift, int id, bool is_true)
{
	thrift_head(thrift, id, is_true ? THRIFT_TRUE : THRIFT_FALSE);
}

static void thrift_i8(struct thrift *thrift, int id, int8_t number)
{
	thrift_head(thrift, id, THRIFT_I8);
	sink_byte(thrift->sink, (char)number);
}

void thrift_i32(struct thrift *thrift, int id, int32_t number)
{
	thrift_head(thrift, id, THRIFT_I32);
	put_varint(thrift, parquet_zigzag(number));
}

static void thrift_i64(struct thrift *thrift, int id, int64_t number)
{
	thrift_head(thrift, id, THRIFT_I64);
	put_varint(thrift, parquet_zigzag(number));
}

static void thrift_binary(struct thrift *thrift, int id, const void *bytes, size_t length)
{
	thrift_head(thrift, id, THRIFT_BINARY);
	put_varint(thrift, length);
	sink_write(thrift->sink, bytes, length);
}

static void thrift_text(struct thrift *thrift, int id, const char *text)
{
	thrift_binary(thrift, id, text, strlen(text));
}

/* A list as a field; its elements follow. */
static void thrift_list(struct thrift *thrift, int id, enum thrift_type type, size_t count)
{
	thrift_head(thrift, id, THRIFT_LIST);
	if (count < 15) {
		sink_byte(thrift->sink, (char)(count << 4 | type));
	} else {
		sink_byte(thrift->sink, (char)(0xf0 | type));
		put_varint(thrift, count);
	}
}

static void thrift_element_i32(struct thrift *thrift, int32_t number)
{
	put_varint(thrift, parquet_zigzag(number));
}

static void thrift_element_text(struct thrift *thrift, const char *text)
{
	put_varint(thrift, strlen(text));
	sink_write(thrift->sink, text, strlen(text));
}

/*
 * The footer is Thrift; ids of fields and values of enums are those of parquet.thrift in the format's
 * specification.
 */

enum { FORMAT_VERSION = 2 };
enum physical { PHYSICAL_BOOLEAN = 0, PHYSICAL_INT32 = 1, PHYSICAL_INT64 = 2, PHYSICAL_BYTES = 6 };
enum { REQUIRED = 0, OPTIONAL = 1 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
/* Fields of the union LogicalType */
enum logical { LOGICAL_NONE = 0, LOGICAL_STRING = 1, LOGICAL_TIMESTAMP = 8, LOGICAL_INTEGER = 10 };

/* `converted` is for readers older than 2018; -1: none. */
static const struct type {
	enum physical physical;
	enum logical logical;
	int bits;
	int converted;
} types[] = {
	[PARQUET_BOOL] = { PHYSICAL_BOOLEAN, LOGICAL_NONE, 0, -1 },
	[PARQUET_INT32] = { PHYSICAL_INT32, LOGICAL_INTEGER, 32, 17 },
	[PARQUET_INT64] = { PHYSICAL_INT64, LOGICAL_INTEGER, 64, 18 },
	[PARQUET_UINT8] = { PHYSICAL_INT32, LOGICAL_INTEGER, 8, 11 },
	[PARQUET_UINT16] = { PHYSICAL_INT32, LOGICAL_INTEGER, 16, 12 },
	[PARQUET_UINT32] = { PHYSICAL_INT32, LOGICAL_INTEGER, 32, 13 },
	[PARQUET_UINT64] = { PHYSICAL_INT64, LOGICAL_INTEGER, 64, 14 },
	[PARQUET_TIME_NS] = { PHYSICAL_INT64, LOGICAL_TIMESTAMP, 64, -1 },
	[PARQUET_STRING] = { PHYSICAL_BYTES, LOGICAL_STRING, 0, 0 },
};

static void parquet_meta_init(struct parquet_meta *meta, const struct parquet_column *columns,
			      size_t count)
{
	*meta = (struct parquet_meta){ .columns = columns, .column_count = count };
	sink_init_memory(&meta->groups);
	sink_init_memory(&meta->pairs);
}

static void parquet_meta_release(struct parquet_meta *meta)
{
	sink_release(&meta->groups);
	sink_release(&meta->pairs);
}

static void parquet_meta_pair(struct parquet_meta *meta, const char *key, const char *value)
{
	struct thrift thrift;

	thrift_init(&thrift, &meta->pairs);
	thrift_struct(&thrift, 0);
	thrift_text(&thrift, 1, key);
	thrift_text(&thrift, 2, value);
	thrift_end(&thrift);
	meta->pair_count++;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static int compare_texts(const struct parquet_dictionary *dictionary, uint32_t a, uint32_t b)
{
	uint32_t a_length, b_length;
	const uint8_t *a_bytes = parquet_dictionary_bytes(dictionary, a, &a_length);
	const uint8_t *b_bytes = parquet_dictionary_bytes(dictionary, b, &b_length);
	int order = memcmp(a_bytes, b_bytes, a_length < b_length ? a_length : b_length);

	return order ? order : (a_length > b_length) - (a_length < b_length);
}

static void put_text_range(struct thrift *thrift, const struct parquet_dictionary *dictionary)
{
	uint32_t least = 0, most = 0, length;
	const uint8_t *bytes;

	for (uint32_t i = 1; i < dictionary->count; i++) {
		if (compare_texts(dictionary, i, least) < 0)
			least = i;
		if (compare_texts(dictionary, i, most) > 0)
			most = i;
	}
	bytes = parquet_dictionary_bytes(dictionary, most, &length);
	thrift_binary(thrift, 5, bytes, length);
	bytes = parquet_dictionary_bytes(dictionary, least, &length);
	thrift_binary(thrift, 6, bytes, length);
}

static uint64_t meta_order_key(const struct parquet_chunk *chunk, uint64_t number)
{
	return chunk->is_unsigned ? number : number ^ UINT64_C(1) << 63;
}

/* For numbers put as codes, every value of the dictionary occurs. */
static void code_range(const struct parquet_chunk *chunk, uint64_t *least, uint64_t *most)
{
	const uint64_t *keys = chunk->dictionary.keys;

	*least = *most = keys[0];
	for (uint32_t i = 1; i < chunk->dictionary.count; i++) {
		if (meta_order_key(chunk, keys[i]) < meta_order_key(chunk, *least))
			*least = keys[i];
		if (meta_order_key(chunk, keys[i]) > meta_order_key(chunk, *most))
			*most = keys[i];
	}
}

static void put_number_range(struct thrift *thrift, const struct parquet_chunk *chunk)
{
	enum physical physical = types[chunk->column->type].physical;
	size_t bytes = physical == PHYSICAL_BOOLEAN ? 1 : physical == PHYSICAL_INT32 ? 4 : 8;
	uint64_t least = chunk->least, most = chunk->most;

	if (chunk->is_coded)
		code_range(chunk, &least, &most);
	thrift_binary(thrift, 5, &most, bytes);
	thrift_binary(thrift, 6, &least, bytes);
}

static void put_statistics(struct thrift *thrift, const struct parquet_chunk *chunk)
{
	bool has_range = chunk->is_coded ? chunk->dictionary.count > 0 : chunk->has_range;

	thrift_struct(thrift, 12);
	thrift_i64(thrift, 3, (int64_t)chunk->nulls);
	if (has_range && chunk->column->type == PARQUET_STRING)
		put_text_range(thrift, &chunk->dictionary);
	else if (has_range)
		put_number_range(thrift, chunk);
	if (has_range) {
		thrift_bool(thrift, 7, true);
		thrift_bool(thrift, 8, true);
	}
	thrift_end(thrift);
}

/* ---- row groups ------------------------------------------------------------------------------ */

static void put_encodings(struct thrift *thrift, const struct parquet_chunk *chunk)
{
	bool has_dictionary = chunk->pages[PARQUET_ENCODING_DICTIONARY] > 0;
	bool is_used[PARQUET_ENCODINGS] = { [PARQUET_ENCODING_RLE] = true };
	size_t count = 0;

	for (unsigned int i = 0; i < PARQUET_ENCODINGS; i++) {
		is_used[i] |= chunk->pages[i] > 0;
		/* The dictionary. */
		is_used[i] |= has_dictionary && i == PARQUET_ENCODING_PLAIN;
		count += is_used[i];
	}
	thrift_list(thrift, 2, THRIFT_I32, count);
	for (unsigned int i = 0; i < PARQUET_ENCODINGS; i++)
		if (is_used[i])
			thrift_element_i32(thrift, (int32_t)i);
}

static void put_page_count(struct thrift *thrift, int type, int encoding, uint32_t count)
{
	thrift_struct(thrift, 0);
	thrift_i32(thrift, 1, type);
	thrift_i32(thrift, 2, encoding);
	thrift_i32(thrift, 3, (int32_t)count);
	thrift_end(thrift);
}

static void put_page_counts(struct thrift *thrift, const struct parquet_chunk *chunk)
{
	size_t count = chunk->dictionary_bytes > 0;

	for (unsigned int i = 0; i < PARQUET_ENCODINGS; i++)
		count += chunk->pages[i] > 0;
	thrift_list(thrift, 13, THRIFT_STRUCT, count);
	if (chunk->dictionary_bytes > 0)
		put_page_count(thrift, PAGE_DICTIONARY, PARQUET_ENCODING_PLAIN, 1);
	for (unsigned int i = 0; i < PARQUET_ENCODINGS; i++)
		if (chunk->pages[i] > 0)
			put_page_count(thrift, PAGE_DATA, (int)i, chunk->pages[i]);
}

static void put_chunk(struct thrift *thrift, const struct parquet_chunk *chunk, uint64_t offset)
{
	thrift_struct(thrift, 0);
	thrift_i64(thrift, 2, 0);
	thrift_struct(thrift, 3);
	thrift_i32(thrift, 1, (int32_t)types[chunk->column->type].physical);
	put_encodings(thrift, chunk);
	thrift_list(thrift, 3, THRIFT_BINARY, 1);
	thrift_element_text(thrift, chunk->column->name);
	thrift_i32(thrift, 4, (int32_t)chunk->codec);
	thrift_i64(thrift, 5, (int64_t)chunk->total_rows);
	thrift_i64(thrift, 6, (int64_t)chunk->raw_bytes);
	thrift_i64(thrift, 7, (int64_t)chunk->packed_bytes);
	thrift_i64(thrift, 9, (int64_t)(offset + chunk->dictionary_bytes));
	if (chunk->dictionary_bytes > 0)
		thrift_i64(thrift, 11, (int64_t)offset);
	put_statistics(thrift, chunk);
	put_page_counts(thrift, chunk);
	thrift_end(thrift);
	thrift_end(thrift);
}

/* A row group whose chunks are complete and written one after another from `offset` on. */
static void parquet_meta_group(struct parquet_meta *meta, const struct parquet_chunk *chunks,
			       size_t count, uint64_t rows, uint64_t offset)
{
	uint64_t raw = 0, packed = 0;
	struct thrift thrift;

	thrift_init(&thrift, &meta->groups);
	thrift_struct(&thrift, 0);
	thrift_list(&thrift, 1, THRIFT_STRUCT, count);
	for (size_t i = 0; i < count; i++) {
		put_chunk(&thrift, &chunks[i], offset + packed);
		raw += chunks[i].raw_bytes;
		packed += chunks[i].packed_bytes;
	}
	thrift_i64(&thrift, 2, (int64_t)raw);
	thrift_i64(&thrift, 3, (int64_t)rows);
	thrift_i64(&thrift, 5, (int64_t)offset);
	thrift_i64(&thrift, 6, (int64_t)packed);
	thrift_end(&thrift);
	meta->group_count++;
}

/* ---- schema and footer ----------------------------------------------------------------------- */

static void put_logical_type(struct thrift *thrift, const struct parquet_column *column)
{
	const struct type *type = &types[column->type];
	bool is_signed = column->type == PARQUET_INT32 || column->type == PARQUET_INT64;

	if (type->logical == LOGICAL_NONE)
		return;
	thrift_struct(thrift, 10);
	thrift_struct(thrift, (int)type->logical);
	if (type->logical == LOGICAL_INTEGER) {
		thrift_i8(thrift, 1, (int8_t)type->bits);
		thrift_bool(thrift, 2, is_signed);
	} else if (type->logical == LOGICAL_TIMESTAMP) {
		thrift_bool(thrift, 1, false); /* not adjusted to UTC */
		thrift_struct(thrift, 2);
		thrift_struct(thrift, 3); /* nanoseconds */
		thrift_end(thrift);
		thrift_end(thrift);
	}
	thrift_end(thrift);
	thrift_end(thrift);
}

static void put_schema(struct thrift *thrift, const struct parquet_meta *meta)
{
	thrift_list(thrift, 2, THRIFT_STRUCT, meta->column_count + 1);
	thrift_struct(thrift, 0);
	thrift_text(thrift, 4, "schema");
	thrift_i32(thrift, 5, (int32_t)meta->column_count);
	thrift_end(thrift);
	for (size_t i = 0; i < meta->column_count; i++) {
		const struct parquet_column *column = &meta->columns[i];

		thrift_struct(thrift, 0);
		thrift_i32(thrift, 1, (int32_t)types[column->type].physical);
		thrift_i32(thrift, 3, column->is_nullable ? OPTIONAL : REQUIRED);
		thrift_text(thrift, 4, column->name);
		if (types[column->type].converted >= 0)
			thrift_i32(thrift, 6, types[column->type].converted);
		put_logical_type(thrift, column);
		thrift_end(thrift);
	}
}

/* Without these, readers must ignore statistics of texts and unsigned numbers. */
static void put_orders(struct thrift *thrift, const struct parquet_meta *meta)
{
	thrift_list(thrift, 7, THRIFT_STRUCT, meta->column_count);
	for (size_t i = 0; i < meta->column_count; i++) {
		thrift_struct(thrift, 0);
		thrift_struct(thrift, 1);
		thrift_end(thrift);
		thrift_end(thrift);
	}
}

/* Returns OK or ERR_NO_SPACE. */
static enum status parquet_meta_footer(struct parquet_meta *meta, struct sink *footer,
				       uint64_t rows)
{
	struct thrift thrift;

	if (meta->groups.status != OK || meta->pairs.status != OK)
		return ERR_NO_SPACE;
	thrift_init(&thrift, footer);
	thrift_struct(&thrift, 0);
	thrift_i32(&thrift, 1, FORMAT_VERSION);
	put_schema(&thrift, meta);
	thrift_i64(&thrift, 3, (int64_t)rows);
	thrift_list(&thrift, 4, THRIFT_STRUCT, meta->group_count);
	if (meta->group_count > 0)
		sink_write(footer, meta->groups.bytes, meta->groups.used);
	if (meta->pair_count > 0) {
		thrift_list(&thrift, 5, THRIFT_STRUCT, meta->pair_count);
		sink_write(footer, meta->pairs.bytes, meta->pairs.used);
	}
	thrift_text(&thrift, 6, "ringside version " RINGSIDE_VERSION);
	put_orders(&thrift, meta);
	thrift_end(&thrift);
	return footer->status;
}

static const char magic[4] = { 'P', 'A', 'R', '1' };

struct parquet {
	struct sink *sink;
	size_t count;
	struct parquet_chunk *chunks; /* one per column */
	struct parquet_scratch *scratch;
	struct parquet_meta meta;
	uint64_t offset; /* bytes written so far */
	size_t page_rows;
	uint64_t group_rows;
	uint64_t group_bytes;
	uint64_t rows;
	enum status status;
};

struct parquet *parquet_new(struct sink *sink, const struct parquet_column *columns, size_t count)
{
	struct parquet *parquet = calloc(1, sizeof(*parquet));

	if (parquet == NULL)
		return NULL;
	parquet->sink = sink;
	parquet_meta_init(&parquet->meta, columns, count);
	parquet->chunks = calloc(count, sizeof(*parquet->chunks));
	parquet->scratch = calloc(1, sizeof(*parquet->scratch));
	if (parquet->chunks == NULL || parquet->scratch == NULL ||
	    parquet_scratch_init(parquet->scratch) != OK) {
		parquet_free(parquet);
		return NULL;
	}
	for (parquet->count = 0; parquet->count < count; parquet->count++)
		parquet_chunk_init(&parquet->chunks[parquet->count], &columns[parquet->count]);
	sink_write(sink, magic, sizeof(magic));
	parquet->offset = sizeof(magic);
	return parquet;
}

void parquet_free(struct parquet *parquet)
{
	if (parquet == NULL)
		return;
	for (size_t i = 0; i < parquet->count; i++)
		parquet_chunk_release(&parquet->chunks[i]);
	free(parquet->chunks);
	if (parquet->scratch != NULL)
		parquet_scratch_release(parquet->scratch);
	free(parquet->scratch);
	parquet_meta_release(&parquet->meta);
	free(parquet);
}

static void note_status(struct parquet *parquet, enum status status)
{
	if (parquet->status == OK)
		parquet->status = status;
}

enum status parquet_status(const struct parquet *parquet)
{
	return parquet->status != OK ? parquet->status : parquet->sink->status;
}

uint16_t parquet_code_number(struct parquet *parquet, size_t column, uint64_t number)
{
	uint16_t code = 0;

	note_status(parquet,
		    parquet_dictionary_number(&parquet->chunks[column].dictionary, number, &code));
	return code;
}

uint16_t parquet_code_text(struct parquet *parquet, size_t column, const char *text)
{
	uint16_t code = 0;

	note_status(parquet,
		    parquet_dictionary_text(&parquet->chunks[column].dictionary, text, &code));
	return code;
}

uint16_t parquet_code_null(struct parquet *parquet, size_t column)
{
	parquet->chunks[column].has_null = true;
	return PARQUET_NULL_CODE;
}

void parquet_put_values(struct parquet *parquet, size_t column, const uint64_t *values, size_t rows)
{
	if (parquet->status == OK)
		note_status(parquet, parquet_chunk_put_values(&parquet->chunks[column],
							      parquet->scratch, values, rows));
}

void parquet_put_codes(struct parquet *parquet, size_t column, const uint16_t *entries,
		       const uint16_t *codes, size_t rows)
{
	if (parquet->status == OK)
		note_status(parquet, parquet_chunk_put_codes(&parquet->chunks[column], entries,
							     codes, rows));
}

void parquet_put_runs(struct parquet *parquet, size_t column, const struct parquet_run *runs,
		      size_t count, const uint16_t *codes)
{
	if (parquet->status == OK)
		note_status(parquet,
			    parquet_chunk_put_runs(&parquet->chunks[column], runs, count, codes));
}

static void end_page(struct parquet *parquet)
{
	parquet->group_bytes = 0;
	for (size_t i = 0; i < parquet->count && parquet->status == OK; i++) {
		note_status(parquet, parquet_chunk_end_page(&parquet->chunks[i], parquet->scratch));
		parquet->group_bytes += parquet->chunks[i].packed_bytes;
	}
	parquet->page_rows = 0;
}

void parquet_end_rows(struct parquet *parquet, size_t rows)
{
	parquet->page_rows += rows;
	parquet->group_rows += rows;
	parquet->rows += rows;
	if (parquet->page_rows >= PARQUET_PAGE_ROWS)
		end_page(parquet);
}

bool parquet_is_group_full(const struct parquet *parquet)
{
	return parquet->group_rows >= PARQUET_GROUP_ROWS ||
	       parquet->group_bytes >= PARQUET_GROUP_BYTES;
}

void parquet_end_group(struct parquet *parquet)
{
	if (parquet->page_rows > 0)
		end_page(parquet);
	for (size_t i = 0; i < parquet->count && parquet->status == OK; i++)
		note_status(parquet,
			    parquet_chunk_dictionary(&parquet->chunks[i], parquet->scratch));
	if (parquet->group_rows > 0 && parquet->status == OK)
		parquet_meta_group(&parquet->meta, parquet->chunks, parquet->count,
				   parquet->group_rows, parquet->offset);
	for (size_t i = 0; i < parquet->count; i++) {
		const struct parquet_page *page = parquet->chunks[i].first;

		for (; page != NULL; page = page->next) {
			sink_write(parquet->sink, page->bytes, page->length);
			parquet->offset += page->length;
		}
		parquet_chunk_empty(&parquet->chunks[i]);
	}
	parquet_scratch_empty(parquet->scratch);
	parquet->group_rows = parquet->group_bytes = 0;
}

void parquet_pair(struct parquet *parquet, const char *key, const char *value)
{
	parquet_meta_pair(&parquet->meta, key, value);
}

enum status parquet_finish(struct parquet *parquet)
{
	uint32_t length;
	struct sink footer;

	parquet_end_group(parquet);
	sink_init_memory(&footer);
	note_status(parquet, parquet_meta_footer(&parquet->meta, &footer, parquet->rows));
	if (parquet->status == OK && footer.used > INT32_MAX)
		parquet->status = ERR_NO_SPACE;
	length = (uint32_t)footer.used;
	if (parquet->status == OK) {
		sink_write(parquet->sink, footer.bytes, footer.used);
		sink_write(parquet->sink, &length, sizeof(length));
		sink_write(parquet->sink, magic, sizeof(magic));
	}
	sink_release(&footer);
	return parquet_status(parquet);
}
