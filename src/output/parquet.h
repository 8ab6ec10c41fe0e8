/*
 * Parquet files, written in one pass into a sink. docs/EXPORT.md says which parts of the format are
 * used and why.
 *
 *	parquet = parquet_new(&sink, columns, count);
 *	for each few rows {
 *		for each column
 *			parquet_put_values(parquet, c, values, rows);
 *			  or parquet_put_codes(parquet, c, entries, codes, rows);
 *		parquet_end_rows(parquet, rows);
 *		if (parquet_is_group_full(parquet))
 *			parquet_end_group(parquet);       codes are void from here on
 *	}
 *	status = parquet_finish(parquet);
 *	parquet_free(parquet);
 *
 * The first failure sticks; parquet_finish() says it. Memory is bounded: a page of every column as it
 * comes, the pages of one row group packed (PARQUET_GROUP_BYTES, and what the last page adds), and
 * what the footer says about the row groups before: some 5 KiB each.
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
	PARQUET_TIME_NS, /* since 1970, of no time zone: nanoseconds survive in every reader */
	PARQUET_STRING,	 /* UTF-8; codes only */
};

/* How values are packed when they are put as they are. A page of one value only is a word of a
 * dictionary in any case. */
enum parquet_style {
	PARQUET_DELTA,		  /* differences to the value before */
	PARQUET_PLAIN,		  /* as they are */
	PARQUET_DICTIONARY_DELTA, /* words of a dictionary, until there are too many of them */
	PARQUET_DICTIONARY_PLAIN,
};

struct parquet_column {
	const char *name;
	enum parquet_type type;
	enum parquet_style style;
	bool is_nullable;
	uint64_t null; /* what stands for null among values */
};

enum {
	PARQUET_ROWS_AT_ONCE = 4096,
	PARQUET_PAGE_ROWS = 32768, /* a page ends with the rows that reach this */
	PARQUET_GROUP_ROWS = 1 << 18,
	PARQUET_GROUP_BYTES = 32 << 20,
};

/* NULL when there is no memory. `columns` and what it points to are borrowed until parquet_free(). */
struct parquet *parquet_new(struct sink *sink, const struct parquet_column *columns, size_t count);
void parquet_free(struct parquet *parquet);

/* The code of a value in this column, good until the row group ends. Put rows with it before asking
 * for the next one where it may not be used at all: statistics take each as present. There are
 * PARQUET_DICTIONARY_MAX at most. 0 after a failure, which sticks. */
uint16_t parquet_code_number(struct parquet *parquet, size_t column, uint64_t number);
uint16_t parquet_code_text(struct parquet *parquet, size_t column, const char *text);
uint16_t parquet_code_null(struct parquet *parquet, size_t column);

/* The next rows of a column, PARQUET_ROWS_AT_ONCE at most. A column takes either values or codes. */
void parquet_put_values(struct parquet *parquet, size_t column, const uint64_t *values,
			size_t rows);
/* Row i has the code codes[entries[i]]. */
void parquet_put_codes(struct parquet *parquet, size_t column, const uint16_t *entries,
		       const uint16_t *codes, size_t rows);

/* The same for rows that come in runs of one entry. */
struct parquet_run {
	uint32_t rows;
	uint16_t entry;
};
void parquet_put_runs(struct parquet *parquet, size_t column, const struct parquet_run *runs,
		      size_t count, const uint16_t *codes);

/* All columns have got these rows. */
void parquet_end_rows(struct parquet *parquet, size_t rows);

bool parquet_is_group_full(const struct parquet *parquet);
void parquet_end_group(struct parquet *parquet);

/* Key-value metadata, at any time before the end. Copied. */
void parquet_pair(struct parquet *parquet, const char *key, const char *value);

enum status parquet_status(const struct parquet *parquet);

/* Ends the row group and writes the footer. The sink is not flushed. */
enum status parquet_finish(struct parquet *parquet);

/* The distinct values of a column, each with a code: numbers, or texts. */

enum { PARQUET_DICTIONARY_MAX = 1 << 14 };

struct parquet_dictionary {
	uint32_t count;
	uint64_t *keys;	     /* the numbers; the texts' hashes */
	uint32_t *slots;     /* code + 1, 0 empty */
	uint32_t *text_at;   /* texts: where in text_bytes, as Parquet has them */
	uint8_t *text_bytes; /* length (4 bytes) and text, one after the other */
	size_t text_used;
	size_t text_room;
};

/* Nothing is taken before the first value. */
void parquet_dictionary_init(struct parquet_dictionary *dictionary);
void parquet_dictionary_release(struct parquet_dictionary *dictionary);

/* Forget all values, keep the memory. */
void parquet_dictionary_empty(struct parquet_dictionary *dictionary);

/* ERR_RANGE when there are PARQUET_DICTIONARY_MAX others, ERR_NO_SPACE (memory). */
enum status parquet_dictionary_number(struct parquet_dictionary *dictionary, uint64_t number,
				      uint16_t *code);
enum status parquet_dictionary_text(struct parquet_dictionary *dictionary, const char *text,
				    uint16_t *code);

/* All of them; on failure nothing is written that counts, but some may have a code now. */
enum status parquet_dictionary_numbers(struct parquet_dictionary *dictionary,
				       const uint64_t *numbers, size_t count, uint16_t *codes);

/* A text and its length; not terminated. */
const uint8_t *parquet_dictionary_bytes(const struct parquet_dictionary *dictionary, uint32_t code,
					uint32_t *length);

/*
 * Parquet's encodings of numbers, into memory that the caller has: every function says how much it
 * takes at most. https://parquet.apache.org/docs/file-format/data-pages/encodings/
 */

/* A number that stands for null among codes. */
enum { PARQUET_NULL_CODE = 0xffff };

/* Bits that the numbers up to `most` need. */
unsigned int parquet_bit_width(uint64_t most);

/* RLE and bit packing, mixed: codes below 2^width, width up to 16. */
#define PARQUET_CODES_BYTES(count) ((count)*2 + (count) / 4 + 64)
size_t parquet_pack_codes(uint8_t *to, const uint16_t *codes, size_t count, unsigned int width);

/* The same for `count` times one code. */
size_t parquet_pack_run(uint8_t *to, uint64_t count, uint16_t code, unsigned int width);

/*
 * DELTA_BINARY_PACKED: a head, and then blocks of PARQUET_DELTA_BLOCK values, each told by its
 * distance to the one before, so values[-1] is read; the last block may have less. is_narrow: for a
 * column of 32 bits, of which the upper half is not looked at.
 */
enum { PARQUET_DELTA_BLOCK = 128, PARQUET_DELTA_HEAD = 24 };
#define PARQUET_DELTA_BYTES(count) (((count) + 127) / 128 * (128 * 8 + 4 + 10) + 64)
size_t parquet_pack_delta_head(uint8_t *to, size_t count, uint64_t first, bool is_narrow);
size_t parquet_pack_delta_block(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow);

/* PLAIN: 8 or 4 bytes each, least first. */
size_t parquet_pack_plain(uint8_t *to, const uint64_t *values, size_t count, bool is_narrow);

/* The least and the most of one value or more, in the order of unsigned or of signed numbers. */
void parquet_find_range(const uint64_t *values, size_t count, bool is_unsigned, uint64_t *least,
			uint64_t *most);

/* How many of the values are this one. */
size_t parquet_count(const uint64_t *values, size_t count, uint64_t wanted);

/*
 * Those that are not null, moved to the front of `to`; how many there are. Bits from `bit` on, least
 * first, tell which rows they are; bits not written yet must be 0. `to` may be `values`, but not
 * `codes`.
 */
size_t parquet_drop_null_values(uint64_t *to, uint64_t *bits, size_t bit, const uint64_t *values,
				size_t count, uint64_t null);
size_t parquet_drop_null_codes(uint16_t *to, uint64_t *bits, const uint16_t *codes, size_t count);

/* Ones from bit `from` on. */
void parquet_set_bits(uint64_t *bits, size_t from, size_t count);

#endif
