/*
 * How the numbers of a column are written: as differences to what, with how many bits, and which of
 * them are patched. Part of the encoder.
 *
 * What the differences are best taken to is found on a sample and remembered for the next blocks: a
 * job does the same for a long time.
 */
#ifndef TRACE_PLAN_H
#define TRACE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace_layout.h"

enum {
	TRACE_HINT_WORDS = 3,
	TRACE_PATCH_BITS = 80, /* most that a patch costs */
	TRACE_SAMPLE_ROWS = 64,
};

/* What is known of a word beforehand. It saves trying, and changes no value. */
struct trace_hint {
	bool is_table;	   /* may have few different values */
	bool is_time;	   /* 0 is "not known" and not a small number */
	bool is_halves;	   /* two numbers of 32 bits */
	bool is_signature; /* of all collectives so far */
	uint8_t words
		[TRACE_HINT_WORDS]; /* what it may be near to: so many words before; 0: no more */
};

/* What was best for a column, for the next blocks. */
struct trace_choice {
	uint8_t is_made;    /* else: to be made */
	uint8_t reference;  /* enum trace_reference */
	uint8_t width;	    /* of most differences */
	uint8_t bits;	    /* what a row costs with patches, about */
	uint8_t is_patched; /* the last block had patches */
};

/* A column to be written. */
struct trace_column {
	const uint64_t *values;
	uint32_t rows;
	const struct trace_hint *hint;
	struct trace_choice *choice;
	bool is_choosing; /* even if a choice is made */
	bool has_holes;
	const uint64_t *differences; /* once they were measured: `room`, or the values themselves */
	uint64_t *room;		     /* for differences */
	uint16_t *patches;	     /* rows */
};

struct trace_plan {
	unsigned int reference;
	uint64_t start;	 /* TRACE_REFERENCE_PREVIOUS: the value before the first */
	uint64_t center; /* an ordinary difference */
	uint64_t base;
	unsigned int width;
	uint32_t patches;
	size_t bytes; /* about */
};

/* The column so many words before, as a reference says. */
const uint64_t *trace_plan_word(const struct trace_column *column, unsigned int reference);

/* The n-th thing that a column may be near to: nothing, the row before, other words. False: no more. */
bool trace_plan_reference(const struct trace_column *column, unsigned int nth,
			  unsigned int *reference);

/* The differences of rows here and there that have one; of all rows when these are not more than
 * `most`. Gives back how many. */
uint32_t trace_plan_sample(const struct trace_column *column, unsigned int reference, uint32_t most,
			   uint64_t *some);

/* By a sample. */
struct trace_plan trace_plan_find(const struct trace_column *column);

/* Take all differences and look at them. */
void trace_plan_measure(struct trace_column *column, struct trace_plan *plan);

#endif
