/*
 * Delta coding of records that are arrays of 64-bit words. For each record: a bit mask (4 bytes)
 * of the words that differ from the record before (the first: from zeros), then for each of them
 * the difference, zigzag, as a varint. Both sides bounded; a block is coded alone.
 */
#ifndef TRACE_CODE_H
#define TRACE_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "trace/trace_layout.h"

enum { TRACE_CODE_WORDS_MAX = 32 };

/* Most bytes one record can take. */
#define TRACE_CODED_MAX(words) (4 + 10 * (size_t)(words))

/* Code one record; gives back the bytes written to `to`, which has room for TRACE_CODED_MAX. */
size_t trace_code_record(unsigned char *to, const uint64_t *record, const uint64_t *before,
			 unsigned int words);

/* Decode one record from [*at, end); moves *at. ERR_FORMAT when the bytes are not such a record. */
enum status trace_decode_record(const unsigned char **at, const unsigned char *end,
				uint64_t *record, const uint64_t *before, unsigned int words);

uint64_t trace_block_checksum(const struct trace_block *block, const void *payload);

#endif
