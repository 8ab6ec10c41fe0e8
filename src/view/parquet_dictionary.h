/* The distinct values of a column, each with a code: numbers, or texts. */
#ifndef PARQUET_DICTIONARY_H
#define PARQUET_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

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

#endif
