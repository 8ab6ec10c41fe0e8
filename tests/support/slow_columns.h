/*
 * A simple, slow decoder of a coded block, written from docs/FORMATS.md, to check the real encoder
 * and decoder against. Shares nothing with them but the numbers of the packings.
 */
#ifndef SLOW_COLUMNS_H
#define SLOW_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/hash.h"
#include "common/op_layout.h"
#include "format/trace_layout.h"

struct slow {
	const unsigned char *bytes;
	size_t size;
	size_t at;
	bool is_bad;
	unsigned int words;
	uint32_t rows;
	uint32_t signed_words; /* bit per word */
	uint64_t (*table)[TRACE_ROWS_MAX];
};

static inline uint64_t slow_byte(struct slow *slow)
{
	if (slow->at >= slow->size) {
		slow->is_bad = true;
		return 0;
	}
	return slow->bytes[slow->at++];
}

static inline uint64_t slow_number(struct slow *slow, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++)
		value |= slow_byte(slow) << 8 * i;
	return value;
}

static inline uint64_t slow_varint(struct slow *slow)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < 10; i++) {
		uint64_t byte = slow_byte(slow);

		value |= (byte & 127) << 7 * i;
		if (byte < 128)
			return value;
	}
	slow->is_bad = true;
	return 0;
}

static inline uint64_t slow_unzigzag(uint64_t code)
{
	return code % 2 == 0 ? code / 2 : ~(code / 2);
}

/* The next `rows` numbers of `width` bits, in as many whole bytes as they need. */
static inline void slow_bits(struct slow *slow, unsigned int width, uint64_t *to)
{
	size_t bit = 0, bytes = ((size_t)slow->rows * width + 7) / 8;

	if (slow->is_bad || bytes > slow->size - slow->at) {
		slow->is_bad = true;
		return;
	}
	for (uint32_t row = 0; row < slow->rows; row++) {
		to[row] = 0;
		for (unsigned int i = 0; i < width; i++, bit++)
			to[row] |= (uint64_t)(slow->bytes[slow->at + bit / 8] >> bit % 8 & 1) << i;
	}
	slow->at += bytes;
}

/* Rows and values of patches; the values are as stored. */
static inline uint32_t slow_patches(struct slow *slow, uint64_t count, unsigned int bytes,
				    uint16_t *rows, uint64_t *values)
{
	uint32_t least = 0;

	if (slow->is_bad || count > slow->rows) {
		slow->is_bad = true;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		rows[i] = (uint16_t)slow_number(slow, 2);
		if (rows[i] < least || rows[i] >= slow->rows)
			slow->is_bad = true;
		least = rows[i] + 1u;
	}
	for (uint32_t i = 0; i < count; i++)
		values[i] = slow_number(slow, bytes);
	return slow->is_bad ? 0 : (uint32_t)count;
}

/* SAME, PACKED, PATCHED after their tag: the differences, and the start. */
static inline void slow_differences(struct slow *slow, unsigned int packing, uint64_t *to,
				    uint64_t base)
{
	uint16_t rows[TRACE_ROWS_MAX];
	uint64_t values[TRACE_ROWS_MAX], count = 0;
	unsigned int width = 0, bytes = 0;

	if (packing != TRACE_SAME)
		width = (unsigned int)slow_byte(slow);
	slow->is_bad |= width > TRACE_WIDTH_MAX && width != 64;
	if (packing == TRACE_PATCHED) {
		count = slow_varint(slow);
		bytes = (unsigned int)slow_byte(slow);
		slow->is_bad |= bytes < 1 || bytes > 8;
	}
	slow_bits(slow, width, to);
	for (uint32_t i = 0; i < slow->rows; i++)
		to[i] += base;
	if (packing != TRACE_PATCHED)
		return;
	count = slow_patches(slow, count, bytes, rows, values);
	for (uint32_t i = 0; i < count; i++)
		to[rows[i]] = base + slow_unzigzag(values[i]);
}

static inline void slow_table(struct slow *slow, uint64_t *to)
{
	uint64_t entries = slow_byte(slow), bytes = slow_byte(slow), values[256];
	unsigned int width = 0;

	slow->is_bad |= entries == 0 || bytes < 1 || bytes > 8;
	if (slow->is_bad)
		return;
	while (entries > 1u << width)
		width++;
	for (uint64_t i = 0; i < entries; i++)
		values[i] = slow_unzigzag(slow_number(slow, (unsigned int)bytes));
	slow_bits(slow, width, to);
	for (uint32_t i = 0; i < slow->rows && !slow->is_bad; i++)
		to[i] = values[to[i] < entries ? to[i] : 0];
}

static inline bool slow_is_hole(const unsigned char *holes, uint32_t row)
{
	return holes != NULL && holes[row / 8] >> row % 8 & 1;
}

/* A column after its tag, including holes; `word` is -1 for half a column. */
static inline void slow_stream(struct slow *slow, int word, const unsigned char *holes,
			       uint64_t *to)
{
	unsigned int tag = (unsigned int)slow_byte(slow), packing = tag % 8, reference = tag / 8;
	uint64_t before = 0;

	if (packing == TRACE_TABLE && reference == 0) {
		slow_table(slow, to);
	} else if (packing <= TRACE_PATCHED) {
		if (reference == 1)
			before = slow_unzigzag(slow_varint(slow));
		slow_differences(slow, packing, to, slow_unzigzag(slow_varint(slow)));
	} else {
		slow->is_bad = true;
	}
	if (reference >= 2 &&
	    ((int)reference - 1 > word || slow->signed_words >> (word - ((int)reference - 1)) & 1))
		slow->is_bad = true;
	for (uint32_t i = 0; i < slow->rows && !slow->is_bad; i++) {
		if (slow_is_hole(holes, i)) {
			to[i] = 0;
			continue;
		}
		if (reference == 1)
			to[i] += before;
		else if (reference >= 2)
			to[i] += slow->table[word - ((int)reference - 1)][i];
		before = to[i];
	}
}

/* Computed last, from the other columns. */
static inline void slow_signatures(struct slow *slow, const unsigned char *from, size_t size)
{
	struct slow own = *slow;
	uint64_t last[TRACE_SIGNATURE_PLACES] = { 0 }, values[TRACE_ROWS_MAX], count;
	uint16_t rows[TRACE_ROWS_MAX];
	uint32_t next = 0;

	own.bytes = from;
	own.size = size;
	own.at = 0;
	count = slow_varint(&own);
	count = slow_patches(&own, count, 8, rows, values);
	for (uint32_t i = 0; i < slow->rows; i++) {
		uint64_t signature = 0, words[OP_RECORD_WORDS], *slot;
		struct op_record op;

		for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
			words[word] = slow->table[word][i];
		memcpy(&op, words, sizeof(op));
		slot = &last[op.comm % TRACE_SIGNATURE_PLACES];
		if (!(op.flags & OP_FLAG_REPLAY) && op.function != OP_SEND &&
		    op.function != OP_RECV && op.function != OP_SEND_RECV &&
		    op.function != OP_PUT_SIGNAL && op.function != OP_SIGNAL &&
		    op.function != OP_WAIT_SIGNAL)
			signature = hash_word(
				hash_word(*slot, (uint64_t)op.function ^
							 (uint64_t)(256 + op.datatype) << 16 ^
							 (uint64_t)(uint32_t)op.root << 32),
				op.count);
		if (next < count && rows[next] == i)
			signature = values[next++];
		if (signature != 0)
			*slot = signature;
		slow->table[4][i] = signature;
	}
}

/* Skip a column of signatures; they come last. */
static inline void slow_skip_signatures(struct slow *slow)
{
	uint16_t rows[TRACE_ROWS_MAX];
	uint64_t values[TRACE_ROWS_MAX];

	slow_patches(slow, slow_varint(slow), 8, rows, values);
}

static inline void slow_column(struct slow *slow, int word)
{
	uint64_t *to = slow->table[word], high[TRACE_ROWS_MAX];
	unsigned int tag = slow->at < slow->size ? slow->bytes[slow->at] : 7;
	size_t bytes = (slow->rows + 7) / 8;

	if (tag == TRACE_HALVES) {
		slow->at++;
		slow_stream(slow, -1, NULL, to);
		slow_stream(slow, -1, NULL, high);
		for (uint32_t i = 0; i < slow->rows && !slow->is_bad; i++)
			to[i] = (to[i] & UINT32_MAX) | high[i] << 32;
	} else if (tag == TRACE_HOLES && bytes < slow->size - slow->at) {
		slow->at += 1 + bytes;
		slow_stream(slow, word, slow->bytes + slow->at - bytes, to);
	} else if (tag == TRACE_SIGNED && word == 4 && slow->words == OP_RECORD_WORDS) {
		slow->at++;
		slow->signed_words = 1u << word;
		slow_skip_signatures(slow);
	} else {
		slow_stream(slow, word, NULL, to);
	}
}

/* False: these bytes are not valid columns. table[w][i] is word w of record i. */
static inline bool slow_columns(const unsigned char *bytes, size_t size, unsigned int words,
				uint32_t rows, uint64_t table[TRACE_WORDS_MAX][TRACE_ROWS_MAX])
{
	struct slow slow = {
		.bytes = bytes, .size = size, .words = words, .rows = rows, .table = table
	};
	uint64_t present = slow_number(&slow, (words + 7) / 8);
	size_t signatures = 0;

	if (slow.is_bad || rows > TRACE_ROWS_MAX || present >> words != 0)
		return false;
	for (unsigned int word = 0; word < words && !slow.is_bad; word++) {
		memset(table[word], 0, sizeof(table[word]));
		if (word == 4)
			signatures = slow.at + 1;
		if (present >> word & 1)
			slow_column(&slow, (int)word);
	}
	if (slow.is_bad || slow.at != size)
		return false;
	if (slow.signed_words != 0)
		slow_signatures(&slow, bytes + signatures, size - signatures);
	return true;
}

#endif
