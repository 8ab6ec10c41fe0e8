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

/* Shared by parquet*.c. */

enum { PARQUET_VARINT_MAX = 10 };
size_t parquet_pack_varint(uint8_t *to, uint64_t number);

static inline uint64_t parquet_zigzag(int64_t number)
{
	return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

/* Values of the format. */
enum parquet_encoding {
	PARQUET_ENCODING_PLAIN = 0,
	PARQUET_ENCODING_RLE = 3,
	PARQUET_ENCODING_DELTA = 5,
	PARQUET_ENCODING_DICTIONARY = 8,
	PARQUET_ENCODINGS = 9,
};

enum parquet_codec { PARQUET_UNDECIDED = -1, PARQUET_RAW = 0, PARQUET_ZSTD = 6 };

enum {
	PARQUET_PAGE_ROWS_MAX = PARQUET_PAGE_ROWS + PARQUET_ROWS_AT_ONCE,
	PARQUET_BITS_WORDS = PARQUET_PAGE_ROWS_MAX / 64 + 1,
	/* Space before the values of a page: levels, header of the differences. */
	PARQUET_HEAD_BYTES = PARQUET_BITS_WORDS * 8 + 64,
	PARQUET_BODY_BYTES = PARQUET_DELTA_BYTES(PARQUET_PAGE_ROWS_MAX),
};

/* Header and content as in the file. */
struct parquet_page {
	struct parquet_page *next;
	size_t length;
	uint8_t bytes[];
};

/* Memory of pages, reused by the next row group. */
struct parquet_block {
	struct parquet_block *next;
	size_t room;
	size_t used;
	uint8_t bytes[];
};

/* Shared by all columns while values are packed. */
struct parquet_scratch {
	struct parquet_block *first; /* all blocks, used ones first */
	struct parquet_block *block; /* position of the next page */
	void *zstd;		     /* ZSTD_CCtx */
	struct sink header;
	uint8_t *raw; /* a page of codes: PARQUET_HEAD_BYTES, then PARQUET_BODY_BYTES */
	uint8_t *packed;
	size_t packed_room;
	uint64_t bits[PARQUET_BITS_WORDS];
	uint16_t codes[PARQUET_PAGE_ROWS_MAX];
	uint64_t kept[PARQUET_ROWS_AT_ONCE]; /* non-null values */
};

enum status parquet_scratch_init(struct parquet_scratch *scratch);
void parquet_scratch_release(struct parquet_scratch *scratch);

/* Frees the memory of all written pages for the next ones. */
void parquet_scratch_empty(struct parquet_scratch *scratch);

/* A page of values, packed while they are in the CPU cache. */
struct parquet_values {
	uint8_t *raw;	/* room for the header, then packed values */
	size_t length;	/* of the packed values */
	uint64_t *bits; /* bits of non-null rows; only if some row is null */
	uint16_t *codes;
	size_t rows;
	size_t kept;	  /* non-null rows */
	bool is_constant; /* all values are `first`, nothing is packed */
	bool is_coded;	  /* encoded by the dictionary: see codes */
	uint64_t first;
	uint64_t left
		[1 +
		 PARQUET_DELTA_BLOCK]; /* the previous value, and those of an incomplete block */
	size_t left_count;	       /* without the previous value */
};

/* A page of codes. */
struct parquet_codes {
	uint16_t *codes;
	size_t rows;	  /* in codes */
	size_t lazy_rows; /* pending run of one code, not yet written */
	uint16_t lazy_code;
};

struct parquet_chunk {
	const struct parquet_column *column;
	struct parquet_dictionary dictionary;
	bool is_narrow;	  /* 32 bits in the file */
	bool is_unsigned; /* in order of values */
	bool is_coded;	  /* given by codes */
	bool has_null;	  /* codes: null may occur */
	bool is_fallen;	  /* the dictionary is full: pages with other encodings follow */
	enum parquet_codec codec;
	/* The current page: one of the two. */
	struct parquet_values values;
	struct parquet_codes codes;
	/* Completed pages. */
	struct parquet_page *first;
	struct parquet_page *last;
	size_t dictionary_bytes;	   /* of the first page if it is the dictionary, else 0 */
	uint32_t pages[PARQUET_ENCODINGS]; /* by encoding */
	uint64_t total_rows;
	uint64_t raw_bytes; /* including headers */
	uint64_t packed_bytes;
	/* Statistics. */
	uint64_t nulls;
	bool has_range; /* minimum and maximum are known */
	uint64_t least;
	uint64_t most;
};

void parquet_chunk_init(struct parquet_chunk *chunk, const struct parquet_column *column);
void parquet_chunk_release(struct parquet_chunk *chunk);

/* Add rows to the page. Return OK or ERR_NO_SPACE. */
enum status parquet_chunk_put_values(struct parquet_chunk *chunk, struct parquet_scratch *scratch,
				     const uint64_t *values, size_t rows);
enum status parquet_chunk_put_codes(struct parquet_chunk *chunk, const uint16_t *entries,
				    const uint16_t *codes, size_t rows);
enum status parquet_chunk_put_runs(struct parquet_chunk *chunk, const struct parquet_run *runs,
				   size_t count, const uint16_t *codes);

/* Ends the page. Returns OK or ERR_NO_SPACE. */
enum status parquet_chunk_end_page(struct parquet_chunk *chunk, struct parquet_scratch *scratch);

/* After the last page: puts the dictionary first, if pages use it. */
enum status parquet_chunk_dictionary(struct parquet_chunk *chunk, struct parquet_scratch *scratch);

/* Resets it for the next row group. */
void parquet_chunk_empty(struct parquet_chunk *chunk);

/*
 * The part of Thrift's compact protocol that Parquet's headers need, written into a memory sink. Fields must be written
 * in order of their ids.
 *
 *	thrift_struct(&thrift, 0);
 *	thrift_i32(&thrift, 1, version);
 *	thrift_list(&thrift, 2, THRIFT_STRUCT, columns);
 *		thrift_element(&thrift); ... thrift_end(&thrift);      each
 *	thrift_end(&thrift);
 */

enum { THRIFT_DEPTH_MAX = 8 };

struct thrift {
	struct sink *sink;
	unsigned int depth;
	int last[THRIFT_DEPTH_MAX]; /* id of the previous field, per open struct */
};

void thrift_init(struct thrift *thrift, struct sink *sink);

/* A struct as a field; id 0: the outermost struct or an element of a list. */
void thrift_struct(struct thrift *thrift, int id);
void thrift_end(struct thrift *thrift);

void thrift_i32(struct thrift *thrift, int id, int32_t number);

#endif
