/*
 * Records into the payload of a block. Used by the trace thread inside the job: no system call, no
 * allocation; all memory is in the encoder, whatever the records are.
 */
#ifndef TRACE_ENCODE_H
#define TRACE_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "trace/trace_layout.h"
#include "trace/trace_plan.h"

enum {
	TRACE_ENCODE_STRIDE = TRACE_ROWS_MAX + 8, /* columns begin in different cache sets */
	TRACE_ENCODE_TABLE = 64,		  /* entries, at most */
	TRACE_ENCODE_SLOTS = 256,
};

/* What was good for earlier blocks of one kind of records. */
struct trace_habits {
	struct trace_choice choices[3]
				   [TRACE_WORDS_MAX]; /* whole columns, low halves, high halves */
	uint64_t rows;				      /* so far */
	uint64_t choose_at; /* as soon as there were so many, choices are made anew */
};

/* Made with trace_encoder_new(). It remembers what was good for earlier blocks; blocks do not
 * depend on each other. */
struct trace_encoder {
	uint64_t columns[TRACE_WORDS_MAX][TRACE_ENCODE_STRIDE] __attribute__((aligned(CACHE_LINE)));
	uint64_t any[TRACE_WORDS_MAX];	   /* all values of a column, or-ed */
	uint64_t differs[TRACE_WORDS_MAX]; /* the same of what they differ from the first in */
	uint64_t halves[2][TRACE_ROWS_MAX];
	uint64_t differences[TRACE_ROWS_MAX];
	uint16_t patches[TRACE_ROWS_MAX + 1];
	uint64_t table[TRACE_ENCODE_TABLE];
	uint8_t slots[TRACE_ENCODE_SLOTS]; /* by hash: entry of the table */
	uint8_t indexes[TRACE_ROWS_MAX];
	struct trace_habits habits[2]; /* operations, details */
};

/* Most bytes that trace_encode() touches. */
#define TRACE_ENCODED_MAX(words, rows) (16 + (words) * ((size_t)(rows)*9 + 128))

/* NULL: no memory. The caller frees it with free(3). */
struct trace_encoder *trace_encoder_new(void);

/* `rows` records of `words` words each (OP_RECORD_WORDS or OP_DETAIL_WORDS), one after the other; at
 * least one, at most TRACE_ROWS_MAX. Gives back the bytes written to `to`, which has room for
 * TRACE_ENCODED_MAX. */
size_t trace_encode(struct trace_encoder *encoder, const void *records, unsigned int words,
		    uint32_t rows, unsigned char *to);

#endif
