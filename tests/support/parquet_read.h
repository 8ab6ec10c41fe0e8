/*
 * Reads back what src/output/parquet.c writes, written from the format's specification and not from the writer:
 * https://parquet.apache.org/docs/file-format/
 *
 * Whatever is wrong with a file sets is_bad.
 */
#ifndef PARQUET_READ_H
#define PARQUET_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "output/sink.h"

enum { PARQUET_READ_COLUMNS = 64, PARQUET_READ_PAGE = 4 << 20 };

struct parquet_cell {
	bool is_null;
	uint64_t number;
	char *text; /* strings */
};

struct parquet_read {
	const uint8_t *bytes;
	size_t size;
	bool is_bad;
	size_t column_count;
	int physical[PARQUET_READ_COLUMNS];
	bool is_optional[PARQUET_READ_COLUMNS];
	struct parquet_cell *cells[PARQUET_READ_COLUMNS];
	size_t counts[PARQUET_READ_COLUMNS];
	uint64_t rows;	     /* of the footer */
	uint64_t group_rows; /* sum over row groups */
	uint64_t groups;
	struct sink
		footer; /* its fields as text, "4.1.3.1 = 2"; what depends on the compressor is left out */
};

/* ---- Thrift's compact protocol ------------------------------------------------------------------ */

struct thrift_read {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad;
};

static inline uint8_t thrift_read_byte(struct thrift_read *from)
{
	if (from->at < from->end)
		return *from->at++;
	from->is_bad = true;
	return 0;
}

static inline uint64_t thrift_read_varint(struct thrift_read *from)
{
	uint64_t number = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = thrift_read_byte(from);

		number |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return number;
	}
	from->is_bad = true;
	return 0;
}

static inline int64_t thrift_read_zigzag(struct thrift_read *from)
{
	uint64_t number = thrift_read_varint(from);

	return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

/* Called for each scalar: its path of field ids, "4.1.3.5", and its number or bytes. */
typedef void thrift_visit(void *context, const char *path, int64_t number, const uint8_t *bytes,
			  size_t length);

static inline void thrift_walk(struct thrift_read *from, const char *path, thrift_visit *visit,
			       void *context);

static inline void thrift_value(struct thrift_read *from, unsigned int type, const char *path,
				thrift_visit *visit, void *context)
{
	uint64_t length, count;
	uint8_t head;

	switch (type) {
	case 1:
	case 2:
		visit(context, path, type == 1, NULL, 0);
		return;
	case 3:
		visit(context, path, (int8_t)thrift_read_byte(from), NULL, 0);
		return;
	case 4:
	case 5:
	case 6:
		visit(context, path, thrift_read_zigzag(from), NULL, 0);
		return;
	case 8:
		length = thrift_read_varint(from);
		if (length > (uint64_t)(from->end - from->at)) {
			from->is_bad = true;
			return;
		}
		visit(context, path, 0, from->at, length);
		from->at += length;
		return;
	case 9:
		head = thrift_read_byte(from);
		count = head >> 4 == 15 ? thrift_read_varint(from) : head >> 4;
		for (uint64_t i = 0; i < count && !from->is_bad; i++)
			thrift_value(from, head & 15, path, visit, context);
		return;
	case 12:
		thrift_walk(from, path, visit, context);
		return;
	default:
		from->is_bad = true;
	}
}

static inline void thrift_walk(struct thrift_read *from, const char *path, thrift_visit *visit,
			       void *context)
{
	int64_t id = 0;
	char below[64];

	visit(context, path, -1, NULL, 0); /* a struct begins */
	while (!from->is_bad) {
		uint8_t head = thrift_read_byte(from);

		if (head == 0)
			break;
		id = head >> 4 ? id + (head >> 4) : thrift_read_zigzag(from);
		snprintf(below, sizeof(below), "%s%s%lld", path, path[0] ? "." : "", (long long)id);
		thrift_value(from, head & 15, below, visit, context);
	}
}

/* ---- pages --------------------------------------------------------------------------------------- */

struct parquet_read_page {
	int64_t type, raw, packed, values, encoding;
};

static inline void parquet_read_header(void *context, const char *path, int64_t number,
				       const uint8_t *bytes, size_t length)
{
	struct parquet_read_page *page = context;

	(void)bytes, (void)length;
	if (strcmp(path, "1") == 0)
		page->type = number;
	else if (strcmp(path, "2") == 0)
		page->raw = number;
	else if (strcmp(path, "3") == 0)
		page->packed = number;
	else if ((strcmp(path, "5") == 0 || strcmp(path, "7") == 0) && number != -1)
		page->type = -2;
	else if (strcmp(path, "5.1") == 0 || strcmp(path, "7.1") == 0)
		page->values = number;
	else if (strcmp(path, "5.2") == 0 || strcmp(path, "7.2") == 0)
		page->encoding = number;
	else if ((strcmp(path, "5.3") == 0 || strcmp(path, "5.4") == 0) && number != 3)
		page->type = -2;
}

static inline uint64_t parquet_read_bits(struct parquet_read *file, const struct thrift_read *from,
					 size_t bit, unsigned int width)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < width; i++) {
		const uint8_t *at = from->at + (bit + i) / 8;

		if (at >= from->end) {
			file->is_bad = true;
			return 0;
		}
		number |= (uint64_t)(*at >> (bit + i) % 8 & 1) << i;
	}
	return number;
}

/* The hybrid of runs and packed bits. */
static inline void parquet_read_hybrid(struct parquet_read *file, struct thrift_read *from,
				       unsigned int width, uint32_t *to, size_t count)
{
	size_t at = 0;

	while (at < count && !from->is_bad && !file->is_bad) {
		uint64_t head = thrift_read_varint(from);

		if (head & 1) {
			uint64_t values = (head >> 1) * 8;

			for (size_t i = 0; i < values && at < count; i++)
				to[at++] =
					(uint32_t)parquet_read_bits(file, from, i * width, width);
			from->at += (head >> 1) * width;
		} else {
			uint32_t value = 0;

			for (unsigned int i = 0; i < (width + 7) / 8; i++)
				value |= (uint32_t)thrift_read_byte(from) << 8 * i;
			file->is_bad |= head == 0;
			for (uint64_t i = 0; i < head >> 1 && at < count; i++)
				to[at++] = value;
		}
	}
	file->is_bad |= at != count || from->is_bad || from->at > from->end;
}

static inline void parquet_read_deltas(struct parquet_read *file, struct thrift_read *from,
				       struct parquet_cell *to, size_t count)
{
	uint64_t block = thrift_read_varint(from), minis = thrift_read_varint(from);
	uint64_t total = thrift_read_varint(from), value = (uint64_t)thrift_read_zigzag(from);
	uint64_t of_mini = minis ? block / minis : 0;
	size_t at = 0;

	file->is_bad |= total != count || of_mini == 0 || of_mini % 32 != 0 || minis > 64;
	if (count > 0)
		to[at++].number = value;
	while (at < count && !file->is_bad && !from->is_bad) {
		uint64_t least = (uint64_t)thrift_read_zigzag(from);
		uint8_t widths[64];

		for (uint64_t i = 0; i < minis; i++)
			widths[i] = thrift_read_byte(from);
		for (uint64_t i = 0; i < minis && at < count; i++) {
			for (uint64_t j = 0; j < of_mini && at < count; j++) {
				value += least +
					 parquet_read_bits(file, from, j * widths[i], widths[i]);
				to[at++].number = value;
			}
			from->at += of_mini / 8 * widths[i];
		}
	}
	file->is_bad |= from->is_bad || from->at > from->end;
}

static inline void parquet_read_plain(struct parquet_read *file, struct thrift_read *from,
				      size_t column, struct parquet_cell *to, size_t count)
{
	int physical = file->physical[column];

	for (size_t i = 0; i < count && !from->is_bad; i++) {
		unsigned int bytes = physical == 1 ? 4 : 8;
		uint32_t length = 0;

		if (physical == 0) {
			to[i].number = parquet_read_bits(file, from, i, 1);
			continue;
		}
		if (physical == 6) {
			for (unsigned int j = 0; j < 4; j++)
				length |= (uint32_t)thrift_read_byte(from) << 8 * j;
			if (length > (size_t)(from->end - from->at)) {
				file->is_bad = true;
				return;
			}
			to[i].text = strndup((const char *)from->at, length);
			from->at += length;
			continue;
		}
		for (unsigned int j = 0; j < bytes; j++)
			to[i].number |= (uint64_t)thrift_read_byte(from) << 8 * j;
	}
	file->is_bad |= from->is_bad;
}

struct parquet_read_chunk {
	struct parquet_read *file;
	size_t column;
	int64_t codec, values, raw, packed, data_at, dictionary_at;
	struct parquet_cell *dictionary;
	size_t dictionary_count;
	int64_t raw_seen;
};

static inline void parquet_read_data(struct parquet_read_chunk *chunk, struct thrift_read *from,
				     const struct parquet_read_page *page)
{
	struct parquet_read *file = chunk->file;
	struct parquet_cell *to = file->cells[chunk->column] + file->counts[chunk->column];
	size_t rows = (size_t)page->values, kept = rows;
	uint32_t *levels = calloc(rows + 1, sizeof(*levels));
	struct parquet_cell *values = calloc(rows + 1, sizeof(*values));

	if (levels == NULL || values == NULL)
		abort();
	if (file->is_optional[chunk->column]) {
		struct thrift_read inner = { .at = from->at + 4, .end = from->end };
		uint32_t length = 0;

		for (unsigned int j = 0; j < 4; j++)
			length |= (uint32_t)thrift_read_byte(from) << 8 * j;
		if (length > (size_t)(from->end - from->at)) {
			file->is_bad = true;
			length = 0;
		}
		inner.end = from->at + length;
		parquet_read_hybrid(file, &inner, 1, levels, rows);
		file->is_bad |= inner.at != inner.end;
		from->at += length;
		kept = 0;
		for (size_t i = 0; i < rows; i++)
			kept += levels[i];
	}
	if (page->encoding == 0) {
		parquet_read_plain(file, from, chunk->column, values, kept);
		if (file->physical[chunk->column] == 0)
			from->at += (kept + 7) / 8;
	} else if (page->encoding == 5) {
		parquet_read_deltas(file, from, values, kept);
	} else if (page->encoding == 8) {
		uint32_t *codes = calloc(kept + 1, sizeof(*codes));
		unsigned int width = thrift_read_byte(from);

		if (codes == NULL)
			abort();
		parquet_read_hybrid(file, from, width, codes, kept);
		for (size_t i = 0; i < kept && !file->is_bad; i++) {
			if (codes[i] >= chunk->dictionary_count) {
				file->is_bad = true;
				break;
			}
			values[i] = chunk->dictionary[codes[i]];
			if (values[i].text != NULL)
				values[i].text = strdup(values[i].text);
		}
		free(codes);
	} else {
		file->is_bad = true;
	}
	file->is_bad |= from->at != from->end;
	for (size_t i = 0, next = 0; i < rows && !file->is_bad; i++) {
		bool is_null = file->is_optional[chunk->column] && !levels[i];

		to[i] = is_null ? (struct parquet_cell){ .is_null = true } : values[next++];
		if (file->physical[chunk->column] == 1)
			to[i].number = (uint32_t)to[i].number;
	}
	file->counts[chunk->column] += rows;
	free(levels);
	free(values);
}

/* Reads the page at `from`. */
static inline void parquet_read_next(struct parquet_read_chunk *chunk, struct thrift_read *from)
{
	struct parquet_read_page page = { .type = -1 };
	const uint8_t *start = from->at;
	struct parquet_read *file = chunk->file;
	struct thrift_read body;
	size_t length;
	uint8_t *raw;

	thrift_walk(from, "", parquet_read_header, &page);
	chunk->raw_seen += from->at - start + page.raw;
	file->is_bad |= from->is_bad || page.packed < 0 || page.packed > from->end - from->at ||
			page.raw < 0 || page.raw > PARQUET_READ_PAGE || page.values < 0;
	if (file->is_bad)
		return;
	raw = malloc((size_t)page.raw + 1);
	if (raw == NULL)
		abort();
	length = (size_t)page.packed;
	if (chunk->codec == 6)
		length = ZSTD_decompress(raw, (size_t)page.raw, from->at, length);
	else if (length <= (size_t)page.raw)
		memcpy(raw, from->at, length);
	from->at += page.packed;
	body = (struct thrift_read){ .at = raw, .end = raw + length };
	if (length != (size_t)page.raw || (chunk->codec != 6 && chunk->codec != 0)) {
		file->is_bad = true;
	} else if (page.type == 2 && chunk->dictionary == NULL && page.encoding == 0) {
		chunk->dictionary_count = (size_t)page.values;
		chunk->dictionary = calloc(chunk->dictionary_count + 1, sizeof(*chunk->dictionary));
		if (chunk->dictionary == NULL)
			abort();
		parquet_read_plain(file, &body, chunk->column, chunk->dictionary,
				   chunk->dictionary_count);
	} else if (page.type == 0 &&
		   file->counts[chunk->column] + (size_t)page.values <= file->rows) {
		parquet_read_data(chunk, &body, &page);
	} else {
		file->is_bad = true;
	}
	free(raw);
}

static inline void parquet_read_pages(struct parquet_read_chunk *chunk)
{
	struct parquet_read *file = chunk->file;
	int64_t start = chunk->dictionary_at > 0 ? chunk->dictionary_at : chunk->data_at;
	struct thrift_read from = { .at = file->bytes + start,
				    .end = file->bytes + start + chunk->packed };
	size_t before = file->counts[chunk->column];

	file->is_bad |= start < 4 || chunk->packed < 0 ||
			(size_t)(start + chunk->packed) > file->size ||
			chunk->column >= file->column_count;
	while (!file->is_bad && from.at < from.end) {
		parquet_read_next(chunk, &from);
		if (chunk->dictionary_at > 0 && file->counts[chunk->column] == before &&
		    from.at != file->bytes + chunk->data_at)
			file->is_bad = true;
	}
	file->is_bad |= chunk->raw_seen != chunk->raw ||
			file->counts[chunk->column] - before != (size_t)chunk->values;
	for (size_t i = 0; i < chunk->dictionary_count; i++)
		free(chunk->dictionary[i].text);
	free(chunk->dictionary);
}

/* ---- footer -------------------------------------------------------------------------------------- */

struct parquet_read_footer {
	struct parquet_read *file;
	struct parquet_read_chunk chunk;
	bool has_chunk;
	int64_t first_at, raw_sum, packed_sum; /* of the row group */
};

static inline void parquet_read_end_chunk(struct parquet_read_footer *footer)
{
	if (!footer->has_chunk)
		return;
	if (footer->first_at == 0)
		footer->first_at = footer->chunk.dictionary_at > 0 ? footer->chunk.dictionary_at
								   : footer->chunk.data_at;
	footer->raw_sum += footer->chunk.raw;
	footer->packed_sum += footer->chunk.packed;
	parquet_read_pages(&footer->chunk);
	footer->has_chunk = false;
}

static inline void parquet_read_show(struct sink *to, const char *path, int64_t number,
				     const uint8_t *bytes, size_t length)
{
	sink_format(to, "%s =", path);
	for (size_t i = 0; bytes != NULL && i < length; i++) {
		bool is_plain = bytes[i] > 32 && bytes[i] < 127;

		sink_format(to, is_plain ? "%s%c" : "%s\\%02x", i == 0 ? " " : "", bytes[i]);
	}
	if (bytes == NULL)
		sink_format(to, " %lld", (long long)number);
	sink_text(to, "\n");
}

/* Paths of struct FileMetaData: 2 schema, 3 rows, 4 row groups; 4.1 column chunks, 4.1.3 their metadata. */
static inline void parquet_read_field(void *context, const char *path, int64_t number,
				      const uint8_t *bytes, size_t length)
{
	static const char *const hidden[] = { "4.2",	 "4.5",	    "4.6",	"4.1.3.6",
					      "4.1.3.7", "4.1.3.9", "4.1.3.11", "6" };
	struct parquet_read_footer *footer = context;
	struct parquet_read *file = footer->file;
	struct parquet_read_chunk *chunk = &footer->chunk;
	bool is_hidden = false;

	if (strcmp(path, "4.1") == 0) {
		size_t column = file->groups > 0 ? chunk->column + 1 : 0;

		parquet_read_end_chunk(footer);
		*chunk = (struct parquet_read_chunk){ .file = file, .column = column };
		footer->has_chunk = true;
	} else if (strcmp(path, "4") == 0) {
		file->groups++;
		footer->first_at = footer->raw_sum = footer->packed_sum = 0;
		chunk->column = (size_t)-1;
	} else if (strcmp(path, "4.2") == 0) {
		parquet_read_end_chunk(footer);
		file->is_bad |= number != footer->raw_sum;
	} else if (strcmp(path, "4.3") == 0) {
		file->group_rows += (uint64_t)number;
	} else if (strcmp(path, "4.5") == 0) {
		file->is_bad |= number != footer->first_at;
	} else if (strcmp(path, "4.6") == 0) {
		file->is_bad |= number != footer->packed_sum;
	} else if (strcmp(path, "2") == 0) {
		file->column_count++;
	} else if (strcmp(path, "2.1") == 0 && file->column_count > 1) {
		file->physical[file->column_count - 2] = (int)number;
	} else if (strcmp(path, "2.3") == 0 && file->column_count > 1) {
		file->is_optional[file->column_count - 2] = number == 1;
	} else if (strcmp(path, "3") == 0) {
		file->rows = (uint64_t)number;
		file->column_count--; /* without the root */
		for (size_t i = 0; i < file->column_count; i++)
			file->cells[i] = calloc(file->rows + 1, sizeof(*file->cells[i]));
	}
	if (strcmp(path, "4.1.3.4") == 0)
		chunk->codec = number;
	if (strcmp(path, "4.1.3.5") == 0)
		chunk->values = number;
	if (strcmp(path, "4.1.3.6") == 0)
		chunk->raw = number;
	if (strcmp(path, "4.1.3.7") == 0)
		chunk->packed = number;
	if (strcmp(path, "4.1.3.9") == 0)
		chunk->data_at = number;
	if (strcmp(path, "4.1.3.11") == 0)
		chunk->dictionary_at = number;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		is_hidden |= strcmp(path, hidden[i]) == 0;
	if (!is_hidden)
		parquet_read_show(&file->footer, path, number, bytes, length);
}

/* Release it in any case. */
static inline struct parquet_read parquet_read(const struct sink *sink)
{
	struct parquet_read file = { .bytes = (const uint8_t *)sink->bytes, .size = sink->used };
	struct parquet_read_footer footer = { .file = &file };
	struct thrift_read from = { .at = file.bytes };
	uint32_t length = 0;

	sink_init_memory(&file.footer);
	if (file.size < 12 || memcmp(file.bytes, "PAR1", 4) != 0 ||
	    memcmp(file.bytes + file.size - 4, "PAR1", 4) != 0) {
		file.is_bad = true;
		return file;
	}
	memcpy(&length, file.bytes + file.size - 8, 4);
	if (length > file.size - 12) {
		file.is_bad = true;
		return file;
	}
	from.end = file.bytes + file.size - 8;
	from.at = from.end - length;
	thrift_walk(&from, "", parquet_read_field, &footer);
	file.is_bad |= from.is_bad || from.at != from.end || file.group_rows != file.rows;
	for (size_t i = 0; i < file.column_count; i++)
		file.is_bad |= file.counts[i] != file.rows;
	return file;
}

static inline void parquet_read_release(struct parquet_read *file)
{
	for (size_t i = 0; i < file->column_count; i++) {
		for (size_t j = 0; file->cells[i] != NULL && j < file->rows; j++)
			free(file->cells[i][j].text);
		free(file->cells[i]);
	}
	sink_release(&file->footer);
}

#endif
