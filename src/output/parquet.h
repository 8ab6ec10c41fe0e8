/*
 * Writes Parquet files in one pass. docs/EXPORT.md describes the parts of the format that are used.
 *
 *	parquet = parquet_new(&sink, columns, count);
 *	for each batch of rows {
 *		for each column
 *			parquet_put_values(parquet, c, values, rows);
 *			  or parquet_put_codes(parquet, c, entries, codes, rows);
 *		parquet_end_rows(parquet, rows);
 *		if (parquet_is_group_full(parquet))
 *			parquet_end_group(parquet);       invalidates all codes
 *	}
 *	status = parquet_finish(parquet);
 *	parquet_free(parquet);
 *
 * parquet_finish() returns the first failure. Memory is bounded: one unpacked page per column, the packed pages of a row
 * group (PARQUET_GROUP_BYTES plus the last page), and about 5 KiB of footer for each earlier row group.
 */
#ifndef PARQUET_H
#define PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "output/sink.h"

struct parquet;

enum parquet_type {
	PARQUET_BOOL, /* codes only */
	PARQUET_INT32,
	PARQUET_INT64,
	PARQUET_UINT8,
	PARQUET_UINT16,
	PARQUET_UINT32,
	PARQUET_UINT64,
	PARQUET_TIME_NS, /* since 1970, without time zone: all readers keep nanoseconds */
	PARQUET_STRING,	 /* UTF-8; codes only */
};

/* Encoding of values. A page with a single distinct value uses the dictionary in any case. */
enum parquet_style {
	PARQUET_DELTA,		  /* differences to the previous value */
	PARQUET_PLAIN,		  /* plain */
	PARQUET_DICTIONARY_DELTA, /* a dictionary, until it has too many values */
	PARQUET_DICTIONARY_PLAIN,
};

struct parquet_column {
	const char *name;
	enum parquet_type type;
	enum parquet_style style;
	bool is_nullable;
	uint64_t null; /* the value that means null */
};

enum {
	PARQUET_ROWS_AT_ONCE = 4096,
	PARQUET_PAGE_ROWS = 32768, /* a page ends at the first rows that reach this */
	PARQUET_GROUP_ROWS = 1 << 18,
	PARQUET_GROUP_BYTES = 32 << 20,
};

/* NULL without memory. `columns` and what it points to are borrowed until parquet_free(). */
struct parquet *parquet_new(struct sink *sink, const struct parquet_column *columns, size_t count);
void parquet_free(struct parquet *parquet);

/*
 * The code of a value in this column, valid until the end of the row group. Statistics treat every code as used, so
 * put its rows before requesting the next one if it might remain unused. At most PARQUET_DICTIONARY_MAX. Returns 0
 * after a failure.
 */
uint16_t parquet_code_number(struct parquet *parquet, size_t column, uint64_t number);
uint16_t parquet_code_text(struct parquet *parquet, size_t column, const char *text);
uint16_t parquet_code_null(struct parquet *parquet, size_t column);

/* The next rows of a column, at most PARQUET_ROWS_AT_ONCE. A column takes either values or codes. */
void parquet_put_values(struct parquet *parquet, size_t column, const uint64_t *values,
			size_t rows);
/* Row i has the code codes[entries[i]]. */
void parquet_put_codes(struct parquet *parquet, size_t column, const uint16_t *entries,
		       const uint16_t *codes, size_t rows);

/* The same for runs of rows with one entry. */
struct parquet_run {
	uint32_t rows;
	uint16_t entry;
};
void parquet_put_runs(struct parquet *parquet, size_t column, const struct parquet_run *runs,
		      size_t count, const uint16_t *codes);

/* Call after all columns got these rows. */
void parquet_end_rows(struct parquet *parquet, size_t rows);

bool parquet_is_group_full(const struct parquet *parquet);
void parquet_end_group(struct parquet *parquet);

/* Key-value metadata; may be called any time before the end. Copied. */
void parquet_pair(struct parquet *parquet, const char *key, const char *value);

enum status parquet_status(const struct parquet *parquet);

/* Ends the row group and writes the footer. Does not flush the sink. */
enum status parquet_finish(struct parquet *parquet);

/* The distinct values of a column with their codes: numbers or texts. */

enum { PARQUET_DICTIONARY_MAX = 1 << 14 };

struct parquet_dictionary {
	uint32_t count;
	uint64_t *keys;	     /* numbers, or hashes of texts */
	uint32_t *slots;     /* code + 1, 0 empty */
	uint32_t *text_at;   /* texts: offsets into text_bytes */
	uint8_t *text_bytes; /* length (4 bytes) and text, in Parquet's layout */
	size_t text_used;
	size_t text_room;
};

/* Allocates nothing before the first value. */
void parquet_dictionary_init(struct parquet_dictionary *dictionary);
void parquet_dictionary_release(struct parquet_dictionary *dictionary);

/* Forgets all values but keeps the memory. */
void parquet_dictionary_empty(struct parquet_dictionary *dictionary);

/* Return ERR_RANGE if there are PARQUET_DICTIONARY_MAX others, ERR_NO_SPACE. */
enum status parquet_dictionary_number(struct parquet_dictionary *dictionary, uint64_t number,
				      uint16_t *code);
enum status parquet_dictionary_text(struct parquet_dictionary *dictionary, const char *text,
				    uint16_t *code);

/* All of them. On failure the output is invalid, but some values may have got a code. */
enum status parquet_dictionary_numbers(struct parquet_dictionary *dictionary,
				       const uint64_t *numbers, size_t count, uint16_t *codes);

/* A text and its length, without terminator. */
const uint8_t *parquet_dictionary_bytes(const struct parquet_dictionary *dictionary, uint32_t code,
					uint32_t *length);

/*
 * Parquet's encodings of numbers, into memory of the caller; each function documents the size it needs.
 * https://parquet.apache.org/docs/file-format/data-pages/encodings/
 */

/* The code that means null. */
enum { PARQUET_NULL_CODE = 0xffff };

/* Number of bits of `most`. */
unsigned int parquet_bit_width(uint64_t most);

/* Hybrid of RLE and bit packing: codes below 2^width, width up to 16. */
#define PARQUET_CODES_BYTES(count) ((count)*2 + (count) / 4 + 64)
size_t parquet_pack_codes(uint8_t *to, const uint16_t *codes, size_t count, unsigned int width);

/* The same for `count` times one code. */
size_t parquet_pack_run(uint8_t *to, uint64_t count, uint16_t code, unsigned int width);

/*
 * DELTA_BINARY_PACKED: a header, then blocks of PARQUET_DELTA_BLOCK values, each stored as the difference to the
 * previous one, so values[-1] is read; the last block may be shorter. is_narrow: for 32-bit columns, which ignore
 * the upper half.
 */
enum { PARQUET_DELTA_BLOCK = 128, PARQUET_DELTA_HEAD = 24 };
#define PARQUET_DELTA_BYTES(count) (((count) + 127) / 128 * (128 * 8 + 4 + 10) + 64)
size_t parquet_pack_delta_head(uint8_t *to, size_t count, uint64_t first, bool is_narrow);
size_t parquet_pack_delta_block(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow);

/* PLAIN: 8 or 4 bytes each, little-endian. */
size_t parquet_pack_plain(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow);

/* Minimum and maximum of at least one value, in unsigned or signed order. */
void parquet_find_range(const uint64_t *values, size_t count, bool is_unsigned, uint64_t *least,
			uint64_t *most);

/* Counts the values equal to this one. */
size_t parquet_count(const uint64_t *values, size_t count, uint64_t wanted);

/*
 * Copies the non-null values to the front of `to` and returns how many. Bits from `bit` on, least significant
 * first, mark their rows; bits not yet written must be 0. `to` may be `values`, but not `codes`.
 */
size_t parquet_drop_null_values(uint64_t *to, uint64_t *bits, size_t bit, const uint64_t *values,
				size_t count, uint64_t null);
size_t parquet_drop_null_codes(uint16_t *to, uint64_t *bits, const uint16_t *codes, size_t count);

/* Sets bits from bit `from` on. */
void parquet_set_bits(uint64_t *bits, size_t from, size_t count);

#endif
