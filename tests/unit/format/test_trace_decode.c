/* Columns composed byte by byte according to docs/FORMATS.md, and invalid bytes. */
#include "format/trace_read.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "format/trace_write.h"
#include "tests/support/slow_columns.h"
#include "tests/tap.h"

static uint64_t fast[TRACE_WORDS_MAX][TRACE_ROWS_MAX], slow[TRACE_WORDS_MAX][TRACE_ROWS_MAX];
static uint64_t *to[TRACE_WORDS_MAX];

/* Decode a payload in memory of its exact size, so that a sanitizer catches reads past the end. */
static enum status decode(const void *bytes, size_t size, unsigned int words, uint32_t rows,
			  uint32_t wanted)
{
	unsigned char *copy = malloc(size > 0 ? size : 1);
	struct trace_columns columns;
	enum status status;

	if (copy == NULL)
		abort();
	memcpy(copy, bytes, size);
	status = trace_columns_open(&columns, copy, size, words, rows, wanted);
	if (status == OK && trace_columns_next(&columns, TRACE_ROWS_MAX, to) != rows)
		status = ERR_GONE;
	free(copy);
	return status;
}

/* Three rows of a record of ten words, of which the first `columns` words are present. */
static int gives(const char *bytes, size_t size, unsigned int columns, uint64_t a, uint64_t b,
		 uint64_t c)
{
	unsigned char payload[256] = { (unsigned char)((1u << columns) - 1), 0 };

	memcpy(payload + 2, bytes, size);
	return decode(payload, 2 + size, OP_DETAIL_WORDS, 3, UINT32_MAX) == OK &&
	       slow_columns(payload, 2 + size, OP_DETAIL_WORDS, 3, slow) &&
	       memcmp(fast[columns - 1], slow[columns - 1], 24) == 0 && fast[columns - 1][0] == a &&
	       fast[columns - 1][1] == b && fast[columns - 1][2] == c;
}

#define GIVES(bytes, columns, a, b, c) gives(bytes, sizeof(bytes) - 1, columns, a, b, c)

/* Tags: the low three bits are the packing, the others the reference. */
static void test_packings(void)
{
	EXPECT_THAT("same: a constant", GIVES("\x00\x0e", 1, 7, 7, 7));
	EXPECT_THAT("same: -1", GIVES("\x00\x01", 1, UINT64_MAX, UINT64_MAX, UINT64_MAX));
	EXPECT_THAT("same: a step of 3 from 10", GIVES("\x08\x0e\x06", 1, 10, 13, 16));
	EXPECT_THAT("same: 5 more than the word before",
		    GIVES("\x08\x0e\x06\x10\x0a", 2, 15, 18, 21));
	EXPECT_THAT("packed: four bits, from 100 on",
		    GIVES("\x01\xc8\x01\x04\x21\x0f", 1, 101, 102, 115));
	EXPECT_THAT("packed: three bits", GIVES("\x01\x00\x03\xd1\x01", 1, 1, 2, 7));
	EXPECT_THAT("packed: differences to the row before, at least -1",
		    GIVES("\x09\x14\x01\x02\x39", 1, 10, 11, 13));
	EXPECT_THAT("packed: all 64 bits",
		    GIVES("\x01\x00\x40\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\x80\3\0\0\0\0\0\0\0", 1, 1,
			  UINT64_C(0x8000000000000002), 3));
	EXPECT_THAT("patched: the second row is 300 more than the base",
		    GIVES("\x02\x14\x01\x01\x02\x05\x01\0\x58\x02", 1, 11, 310, 11));
	EXPECT_THAT("patched: a step of 301 from one row to the next",
		    GIVES("\x0a\x00\x02\x01\x01\x02\x00\x01\0\x58\x02", 1, 1, 302, 303));
	EXPECT_THAT("table: two entries of one byte",
		    GIVES("\x03\x02\x01\x12\x0c\x05", 1, 6, 9, 6));
	EXPECT_THAT("table: one entry takes no bits", GIVES("\x03\x01\x01\x12", 1, 9, 9, 9));
	EXPECT_THAT("table: an index past the last entry gives the first",
		    GIVES("\x03\x03\x01\x02\x04\x06\x34", 1, 1, 2, 1));
	EXPECT_THAT("halves: 1, 2, 3 below and 4, 4, 4 above",
		    GIVES("\x04\x08\x00\x02\x00\x08", 1, 0x400000001, 0x400000002, 0x400000003));
	EXPECT_THAT("holes: the second row is 0, the others count",
		    GIVES("\x05\x02\x08\x0c\x02", 1, 7, 0, 8));
	EXPECT_THAT("holes: also for differences to another word",
		    GIVES("\x00\x0e\x05\x04\x10\x02", 2, 8, 8, 0));
}

/* What a column gives without decoding its rows. Three rows, of which the word is the only one. */
static const struct {
	const char *sentence, *bytes;
	size_t size;
	uint32_t count;
	uint64_t values[3];
	bool is_constant, is_rising;
	uint64_t next, last;
} summaries[] = {
#define BYTES(text) text, sizeof(text) - 1
	{ "a constant", BYTES("\x00\x0e"), 1, { 7 }, true, false, 0, 0 },
	{ "a constant with holes", BYTES("\x05\x02\x00\x0e"), 2, { 7, 0 }, false, false, 0, 0 },
	{ "a table", BYTES("\x03\x02\x01\x12\x0c\x05"), 2, { 9, 6 }, false, false, 0, 0 },
	{ "a step", BYTES("\x08\x0e\x06"), 0, { 0 }, false, true, 10, 16 },
	{ "a step back", BYTES("\x08\x0e\x05"), 0, { 0 }, false, false, 0, 0 },
	{ "no step", BYTES("\x08\x0e\x00"), 0, { 0 }, false, false, 0, 0 },
	{ "a step with holes", BYTES("\x05\x02\x08\x0c\x02"), 0, { 0 }, false, false, 0, 0 },
	{ "packed numbers", BYTES("\x01\xc8\x01\x04\x21\x0f"), 0, { 0 }, false, false, 0, 0 },
	{ "halves", BYTES("\x04\x00\x02\x00\x08"), 0, { 0 }, false, false, 0, 0 },
	/* From 2^64 - 10 on in steps of 3 it ends at 2^64 - 1, in steps of 4 it would wrap. */
	{ "a step to the end",
	  BYTES("\x08\x13\x06"),
	  0,
	  { 0 },
	  false,
	  true,
	  UINT64_MAX - 6,
	  UINT64_MAX },
	{ "a step past the end", BYTES("\x08\x13\x08"), 0, { 0 }, false, false, 0, 0 },
};

static void test_summaries(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(summaries); i++) {
		unsigned char payload[32] = { 1, 0 };
		uint64_t values[TRACE_VALUES_MAX], value = 0, next = 0, last = 0;
		struct trace_columns columns;
		bool is_good;

		memcpy(payload + 2, summaries[i].bytes, summaries[i].size);
		is_good = trace_columns_open(&columns, payload, 2 + summaries[i].size,
					     OP_DETAIL_WORDS, 3, UINT32_MAX) == OK;
		is_good = is_good &&
			  trace_columns_values(&columns, 0, values) == summaries[i].count &&
			  memcmp(values, summaries[i].values, 8 * summaries[i].count) == 0;
		is_good = is_good &&
			  trace_columns_constant(&columns, 0, &value) == summaries[i].is_constant;
		is_good =
			is_good && value == (summaries[i].is_constant ? summaries[i].values[0] : 0);
		is_good = is_good &&
			  trace_columns_rising(&columns, 0, &next, &last) == summaries[i].is_rising;
		EXPECT_THAT(summaries[i].sentence,
			    is_good && next == summaries[i].next && last == summaries[i].last);
	}
}

/* After some rows, only the others are left. */
static void test_rising_on(void)
{
	static const unsigned char payload[] = { 1, 0, 0x08, 0x0e, 0x06 };
	struct trace_columns columns;
	uint64_t next = 0, last = 0;

	EXPECT_EQUAL(trace_columns_open(&columns, payload, sizeof(payload), OP_DETAIL_WORDS, 3,
					UINT32_MAX),
		     OK);
	EXPECT_EQUAL(trace_columns_next(&columns, 2, to), 2);
	EXPECT_THAT("the last row is left",
		    trace_columns_rising(&columns, 0, &next, &last) && next == 16 && last == 16);
	EXPECT_EQUAL(trace_columns_next(&columns, 2, to), 1);
	EXPECT_THAT("nothing is", !trace_columns_rising(&columns, 0, &next, &last));
}

/* Words 1 and 5 are present, and 4 is computed from them. */
static void test_signed(void)
{
	static const unsigned char payload[] = {
		0x32, 0,    0,	  0,		    /* presence */
		0x00, 0x82, 0x80, 0x80, 0x80, 0x20, /* kind: communicator 1, AllReduce */
		0x06, 0x01, 0x01, 0x00, 9,    0,
		0,    0,    0,	  0,	0,    0, /* signature: the second is 9 */
		0x08, 0x0c, 0x02,		 /* count: 7, 8, 9 */
	};

	EXPECT_EQUAL(decode(payload, sizeof(payload), OP_RECORD_WORDS, 3, 1u << 4), OK);
	EXPECT(slow_columns(payload, sizeof(payload), OP_RECORD_WORDS, 3, slow));
	EXPECT(memcmp(fast[4], slow[4], 24) == 0);
	EXPECT(fast[4][0] == hash_word(hash_word(0, 1 ^ 0x100 << 16), 7) && fast[4][1] == 9);
	EXPECT(fast[4][2] == hash_word(hash_word(9, 1 ^ 0x100 << 16), 9));
}

static int is_refused(const char *bytes, size_t size)
{
	unsigned char payload[64] = { 1, 0 };

	memcpy(payload + 2, bytes, size);
	return decode(payload, 2 + size, OP_DETAIL_WORDS, 3, 0) == ERR_FORMAT &&
	       !slow_columns(payload, 2 + size, OP_DETAIL_WORDS, 3, slow);
}

#define IS_REFUSED(bytes) is_refused(bytes, sizeof(bytes) - 1)

static void test_lies(void)
{
	static const unsigned char late[] = { 0x00, 0x04, 0x00, 0x02 };
	static const unsigned char to_signed[] = { 0x30, 0, 0, 0, 0x06, 0x00, 0x10, 0x00 };

	EXPECT_THAT("a byte too many", IS_REFUSED("\x00\x0e\x00"));
	EXPECT_THAT("a tag that does not exist", IS_REFUSED("\x07\x0e"));
	EXPECT_THAT("a word before the first", IS_REFUSED("\x10\x0e"));
	EXPECT_THAT("a table of differences", IS_REFUSED("\x0b\x01\x01\x12"));
	EXPECT_THAT("a table without entries", IS_REFUSED("\x03\x00\x01"));
	EXPECT_THAT("entries of nine bytes", IS_REFUSED("\x03\x01\x09\1\2\3\4\5\6\7\1\2"));
	EXPECT_THAT("an invalid width", IS_REFUSED("\x01\x00\x3a\1\2\3\4\5\6\7\1\2\3\4"
						   "\5\6\7\1\2\3\4\5\6\7\1\2\3"));
	EXPECT_THAT("more patches than rows", IS_REFUSED("\x02\x00\x00\x04\x01\0\0\1\0\2\0\3\0"
							 "\1\1\1\1"));
	EXPECT_THAT("a patch past the last row", IS_REFUSED("\x02\x00\x00\x01\x01\3\0\1"));
	EXPECT_THAT("patches that go backwards", IS_REFUSED("\x02\x00\x00\x02\x01\1\0\0\0\1\1"));
	EXPECT_THAT("a patch twice", IS_REFUSED("\x02\x00\x00\x02\x01\1\0\1\0\1\1"));
	EXPECT_THAT("an endless number",
		    IS_REFUSED("\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"));
	EXPECT_THAT("halves of halves", IS_REFUSED("\x04\x04\x00\x02\x00\x02\x00\x02"));
	EXPECT_THAT("half a column near another", IS_REFUSED("\x04\x10\x02\x00\x02"));
	EXPECT_THAT("holes in holes", IS_REFUSED("\x05\x01\x05\x01\x00\x02"));
	EXPECT_THAT("signatures of details", IS_REFUSED("\x06\x00"));
	EXPECT_THAT("a word that does not exist",
		    decode(late, 4, OP_DETAIL_WORDS, 3, 0) == ERR_FORMAT);
	EXPECT_THAT("differences to signatures",
		    decode(to_signed, sizeof(to_signed), OP_RECORD_WORDS, 3, 0) == ERR_FORMAT &&
			    !slow_columns(to_signed, sizeof(to_signed), OP_RECORD_WORDS, 3, slow));
	EXPECT_EQUAL(decode("\0", 1, OP_DETAIL_WORDS, 3, 0), ERR_FORMAT);
	EXPECT_EQUAL(decode("\0\0\0\0", 4, OP_RECORD_WORDS, TRACE_ROWS_MAX + 1, 0), ERR_FORMAT);
	EXPECT_EQUAL(decode("\0\0\0\0\0", 5, 33, 1, 0), ERR_FORMAT);
	EXPECT_EQUAL(decode("\0\0\0\0", 4, OP_RECORD_WORDS, TRACE_ROWS_MAX, UINT32_MAX), OK);
}

enum { SOME_ROWS = 40 };

/* A block with some of everything. */
static size_t make_block(unsigned char *payload)
{
	struct trace_encoder *encoder = trace_encoder_new();
	struct op_record ops[SOME_ROWS];
	uint64_t random = 1;
	size_t size;

	memset(ops, 0, sizeof(ops));
	for (uint32_t i = 0; i < SOME_ROWS; i++) {
		random = hash_word(random, i);
		ops[i].sequence = i + 1;
		ops[i].comm = 1 + random % 2;
		ops[i].function = OP_ALL_REDUCE;
		ops[i].number = i + 5;
		ops[i].signature = random;
		ops[i].bytes = i == 20 ? OP_BYTES_UNKNOWN : 4096;
		ops[i].issue_ns = 1000000 + 50 * i + random % 32;
		ops[i].done_ns = random % 5 == 0 ? 0 : ops[i].issue_ns + random % 1000;
		ops[i].start_spread_ns = random >> 40 & 1023;
		ops[i].stop_spread_ns = random >> 52 & 1023;
		ops[i].state = OP_DONE;
	}
	size = trace_encode(encoder, ops, OP_RECORD_WORDS, SOME_ROWS, payload);
	free(encoder);
	return size;
}

static int agrees(const unsigned char *payload, size_t size)
{
	int is_fast = decode(payload, size, OP_RECORD_WORDS, SOME_ROWS, UINT32_MAX) == OK;
	int is_slow = slow_columns(payload, size, OP_RECORD_WORDS, SOME_ROWS, slow);

	for (unsigned int word = 0; word < OP_RECORD_WORDS && is_fast && is_slow; word++)
		if (memcmp(fast[word], slow[word], SOME_ROWS * 8) != 0)
			return 0;
	return is_fast == is_slow;
}

static void test_damage(void)
{
	unsigned char payload[TRACE_ENCODED_MAX(OP_RECORD_WORDS, SOME_ROWS)];
	size_t size = make_block(payload), wrong = 0;

	for (size_t cut = 0; cut < size; cut++)
		wrong += decode(payload, cut, OP_RECORD_WORDS, SOME_ROWS, UINT32_MAX) != ERR_FORMAT;
	EXPECT_THAT("columns truncated anywhere are rejected", wrong == 0);
	for (size_t at = 0; at < size; at++)
		for (int bit = 0; bit < 8; bit++) {
			payload[at] ^= (unsigned char)(1u << bit);
			wrong += !agrees(payload, size);
			payload[at] ^= (unsigned char)(1u << bit);
		}
	EXPECT_THAT("with any bit flipped they agree with the slow decoder", wrong == 0);
}

int main(void)
{
	for (unsigned int word = 0; word < TRACE_WORDS_MAX; word++)
		to[word] = fast[word];
	test_packings();
	test_summaries();
	test_rising_on();
	test_signed();
	test_lies();
	test_damage();
	return tap_done();
}
