/* Shared by parquet*.c. */
#ifndef PARQUET_INTERNAL_H
#define PARQUET_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "output/parquet.h"
#include "output/sink.h"

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
