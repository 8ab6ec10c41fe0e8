/*
 * The columns of a coded block: only those that are asked for are decoded, the others are passed
 * over by their length. Whatever the bytes are, nothing outside of them is read, and the work is
 * bounded by rows and words.
 *
 *	trace_columns_open(&columns, payload, bytes, OP_RECORD_WORDS, rows, wanted);
 *	while ((count = trace_columns_next(&columns, 256, column)) > 0) ...
 */
#ifndef TRACE_DECODE_H
#define TRACE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "trace/trace_code.h"
#include "trace/trace_layout.h"

/* One column, or half of one, and how far it was read. */
struct trace_stream {
	uint8_t packing;   /* enum trace_packing: SAME, PACKED, PATCHED, TABLE or SIGNED */
	uint8_t reference; /* enum trace_reference */
	uint8_t width;
	uint8_t value_bytes; /* of a patch, of an entry of the table */
	uint16_t patches;
	uint16_t next_patch;
	uint32_t entries;
	uint64_t base;
	uint64_t running;	    /* the value of the row before */
	const unsigned char *holes; /* or NULL */
	const unsigned char *bits;
	const unsigned char *positions;
	const unsigned char *values; /* of patches, or the table */
};

struct trace_columns {
	const unsigned char *end;
	uint32_t rows;
	uint32_t next;	 /* row */
	uint32_t needed; /* bit per word: asked for, or referred to by one that is */
	unsigned int words;
	struct trace_stream streams[TRACE_WORDS_MAX]; /* SAME 0 where there is no column */
	struct trace_stream high[TRACE_WORDS_MAX];    /* of those in halves */
	uint32_t halves;			      /* bit per word */
	bool has_signatures; /* asked for, and to be computed from others */
	struct trace_signatures signatures;
};

/* The payload is borrowed while columns are read. ERR_FORMAT: these bytes are no such columns; or
 * more rows or words than the format has. After OK nothing can go wrong any more. */
enum status trace_columns_open(struct trace_columns *columns, const unsigned char *payload,
			       size_t bytes, unsigned int words, uint32_t rows, uint32_t wanted);

enum { TRACE_VALUES_MAX = 256 };

/* All values that a column can have, when these are a few: gives back how many, 0 when there may be
 * more. Some of them may be in no row. */
uint32_t trace_columns_values(const struct trace_columns *columns, unsigned int word,
			      uint64_t values[TRACE_VALUES_MAX]);

/* Has it the same value in all rows of the block? */
bool trace_columns_constant(const struct trace_columns *columns, unsigned int word,
			    uint64_t *value);

/* Does it rise from row to row, and nowhere by 0 or past the largest number? Then the values of the next row
 * and of the last one say all about its range. */
bool trace_columns_rising(const struct trace_columns *columns, unsigned int word, uint64_t *next,
			  uint64_t *last);

/* The next rows, at most `most`, of all columns of columns->needed: to[w] has room for them. Gives
 * back how many; 0 after the last. */
uint32_t trace_columns_next(struct trace_columns *columns, uint32_t most,
			    uint64_t *const to[TRACE_WORDS_MAX]);

#endif
