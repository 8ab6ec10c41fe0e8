#include "trace/trace_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/tap.h"

static uint64_t state = 1;

/* Small, large and extreme numbers alike. */
static uint64_t any_number(void)
{
	state = hash_word(state, 1);
	switch (state % 4) {
	case 0:
		return state >> 60;
	case 1:
		return UINT64_MAX - (state >> 58);
	case 2:
		return UINT64_C(1) << (state >> 58);
	default:
		return state;
	}
}

/* Records that differ from the one before in some of their words. */
static int comes_back(unsigned int words)
{
	unsigned char coded[TRACE_CODED_MAX(TRACE_CODE_WORDS_MAX)];
	uint64_t before[TRACE_CODE_WORDS_MAX] = { 0 }, record[TRACE_CODE_WORDS_MAX];
	uint64_t decoded[TRACE_CODE_WORDS_MAX];

	for (int round = 0; round < 2000; round++) {
		const unsigned char *at = coded;
		size_t size;

		for (unsigned int i = 0; i < words; i++)
			record[i] = any_number() % 3 ? before[i] : any_number();
		size = trace_code_record(coded, record, before, words);
		if (size > TRACE_CODED_MAX(words))
			return 0;
		if (trace_decode_record(&at, coded + size, decoded, before, words) != OK ||
		    at != coded + size || memcmp(decoded, record, words * 8) != 0)
			return 0;
		memcpy(before, record, sizeof(before));
	}
	return 1;
}

static int is_refused_when_cut(void)
{
	unsigned char coded[TRACE_CODED_MAX(10)];
	uint64_t before[10] = { 0 }, record[10], decoded[10];
	size_t size;

	for (unsigned int i = 0; i < 10; i++)
		record[i] = UINT64_MAX / (i + 1);
	size = trace_code_record(coded, record, before, 10);
	for (size_t cut = 0; cut < size; cut++) {
		/* A block of its own, so that a sanitizer sees one byte too far. */
		unsigned char *copy = malloc(cut ? cut : 1);
		const unsigned char *at = copy;
		enum status status;

		if (copy == NULL)
			return 0;
		memcpy(copy, coded, cut);
		status = trace_decode_record(&at, copy + cut, decoded, before, 10);
		free(copy);
		if (status != ERR_FORMAT)
			return 0;
	}
	return 1;
}

int main(void)
{
	uint64_t before[10] = { 0 }, record[10];
	unsigned char bytes[64] = { 0 };
	const unsigned char *at = bytes;
	struct trace_block block = { .type = TRACE_OPS, .payload_bytes = 8, .records = 2 };
	uint64_t sum;

	EXPECT_THAT("records of 32 words come back as they went", comes_back(32));
	EXPECT_THAT("records of 10 words come back as they went", comes_back(10));
	EXPECT_THAT("a record of one word comes back as it went", comes_back(1));
	EXPECT_THAT("a record cut anywhere is refused", is_refused_when_cut());

	EXPECT_EQUAL(trace_code_record(bytes, before, before, 10), 4);
	memset(bytes, 0, sizeof(bytes));
	bytes[1] = 4; /* word 10 of 10 */
	at = bytes;
	EXPECT_THAT("a mask that names words which a record does not have is refused",
		    trace_decode_record(&at, bytes + sizeof(bytes), record, before, 10) ==
			    ERR_FORMAT);
	memset(bytes, 0xff, sizeof(bytes));
	memset(bytes, 0, 4);
	bytes[0] = 1;
	at = bytes;
	EXPECT_THAT("a number without an end is refused",
		    trace_decode_record(&at, bytes + sizeof(bytes), record, before, 10) ==
			    ERR_FORMAT);

	memset(bytes, 0x5a, sizeof(bytes));
	sum = trace_block_checksum(&block, bytes);
	block.type = TRACE_DETAILS;
	EXPECT_THAT("the checksum covers the type", trace_block_checksum(&block, bytes) != sum);
	block.type = TRACE_OPS;
	block.records = 3;
	EXPECT_THAT("and how many records", trace_block_checksum(&block, bytes) != sum);
	block.records = 2;
	block.payload_bytes = 7;
	EXPECT_THAT("and the length", trace_block_checksum(&block, bytes) != sum);
	block.payload_bytes = 8;
	bytes[7] ^= 1;
	EXPECT_THAT("and every byte", trace_block_checksum(&block, bytes) != sum);
	bytes[7] ^= 1;
	EXPECT(trace_block_checksum(&block, bytes) == sum);
	return tap_done();
}
