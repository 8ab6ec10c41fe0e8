#include "view/parquet.h"

#include <stdlib.h>
#include <string.h>

#include "view/parquet_chunk.h"
#include "view/parquet_meta.h"
#include "view/parquet_pack.h"

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

static void note(struct parquet *parquet, enum status status)
{
	if (parquet->status == OK)
		parquet->status = status;
}

enum status parquet_status(const struct parquet *parquet)
{
	return parquet->status != OK ? parquet->status : parquet->sink->status;
}

uint64_t parquet_rows(const struct parquet *parquet)
{
	return parquet->rows;
}

uint16_t parquet_code_number(struct parquet *parquet, size_t column, uint64_t number)
{
	uint16_t code = 0;

	note(parquet,
	     parquet_dictionary_number(&parquet->chunks[column].dictionary, number, &code));
	return code;
}

uint16_t parquet_code_text(struct parquet *parquet, size_t column, const char *text)
{
	uint16_t code = 0;

	note(parquet, parquet_dictionary_text(&parquet->chunks[column].dictionary, text, &code));
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
		note(parquet, parquet_chunk_put_values(&parquet->chunks[column], parquet->scratch,
						       values, rows));
}

void parquet_put_codes(struct parquet *parquet, size_t column, const uint16_t *entries,
		       const uint16_t *codes, size_t rows)
{
	if (parquet->status == OK)
		note(parquet,
		     parquet_chunk_put_codes(&parquet->chunks[column], entries, codes, rows));
}

void parquet_put_runs(struct parquet *parquet, size_t column, const struct parquet_run *runs,
		      size_t count, const uint16_t *codes)
{
	if (parquet->status == OK)
		note(parquet, parquet_chunk_put_runs(&parquet->chunks[column], runs, count, codes));
}

static void end_page(struct parquet *parquet)
{
	parquet->group_bytes = 0;
	for (size_t i = 0; i < parquet->count && parquet->status == OK; i++) {
		note(parquet, parquet_chunk_end_page(&parquet->chunks[i], parquet->scratch));
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
		note(parquet, parquet_chunk_dictionary(&parquet->chunks[i], parquet->scratch));
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
	note(parquet, parquet_meta_footer(&parquet->meta, &footer, parquet->rows));
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
