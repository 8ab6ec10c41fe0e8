/*
 * The columns of coded blocks. The input is used three times: as a payload, which the decoder must
 * accept or reject like a slow one, with the same values; as changes to a valid payload; and as
 * records, which must survive encoding and decoding.
 */
#include <stdlib.h>
#include <string.h>

#include "format/trace_read.h"
#include "format/trace_write.h"
#include "fuzz/fuzz_main.h"
#include "tests/support/slow_columns.h"

static uint64_t fast[TRACE_WORDS_MAX][TRACE_ROWS_MAX], slow[TRACE_WORDS_MAX][TRACE_ROWS_MAX];
static uint64_t records[TRACE_ROWS_MAX * TRACE_WORDS_MAX];

/* In pieces of `most` rows; false: rejected. */
static bool decode(const unsigned char *payload, size_t size, unsigned int words, uint32_t rows,
		   uint32_t most, uint32_t wanted)
{
	struct trace_columns columns;
	uint64_t *to[TRACE_WORDS_MAX], values[TRACE_VALUES_MAX];
	uint32_t at = 0, got;

	if (trace_columns_open(&columns, payload, size, words, rows, wanted) != OK)
		return false;
	for (unsigned int word = 0; word < words; word++)
		trace_columns_values(&columns, word, values);
	do {
		for (unsigned int word = 0; word < TRACE_WORDS_MAX; word++)
			to[word] = fast[word] + at;
		got = trace_columns_next(&columns, most, to);
		at += got;
	} while (got > 0);
	if (at != rows)
		abort();
	return true;
}

static void check(const unsigned char *bytes, size_t size, unsigned int words, uint32_t rows,
		  uint32_t most, uint32_t wanted)
{
	/* The exact size, so that reads past the end are caught. */
	unsigned char *payload = malloc(size > 0 ? size : 1);
	bool is_good;

	if (payload == NULL)
		return;
	if (size > 0)
		memcpy(payload, bytes, size);
	is_good = decode(payload, size, words, rows, most, wanted);
	if (is_good != slow_columns(payload, size, words, rows, slow))
		abort();
	for (unsigned int word = 0; is_good && word < words; word++)
		if (wanted >> word & 1 && memcmp(fast[word], slow[word], rows * 8) != 0)
			abort();
	free(payload);
}

/* The first byte selects how similar the records are. */
static void make_records(const uint8_t *data, size_t size, unsigned int words, uint32_t rows)
{
	unsigned int manner = size > 0 ? data[0] : 0;
	size_t at = 0;

	for (uint32_t i = 0; i < rows * words; i++) {
		uint64_t value = 0;
		uint8_t byte = size > 0 ? data[at++ % size] : 0;

		if (manner & 1 && byte & 1)
			value = i >= words ? records[i - words] : 0;
		if (manner & 2 && byte & 2 && i > 0)
			value += records[i - 1];
		if (manner & 4)
			value += byte;
		else
			value += (uint64_t)byte << (manner >> 2 & 63);
		records[i] = value;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char payload[TRACE_ENCODED_MAX(TRACE_WORDS_MAX, TRACE_ROWS_MAX)];
	static struct trace_encoder encoder;
	unsigned int words;
	uint32_t rows, most, wanted;
	size_t coded = 0, changes;

	if (size < 8)
		return 0;
	words = data[0] & 1 ? OP_RECORD_WORDS : OP_DETAIL_WORDS;
	rows = 1 + ((data[1] * 4u + 3) >> 2 * (data[0] >> 6));
	most = data[0] & 2 ? TRACE_ROWS_MAX : 1 + data[2] % 64;
	wanted = data[0] & 4 ? UINT32_MAX : 1u << data[3] % words;
	changes = data[0] >> 3 & 7;
	data += 4;
	size -= 4;
	check(data, size, words, rows, most, wanted);

	/* The second time with what was remembered from the first. */
	make_records(data, size, words, rows);
	memset(&encoder.habits, 0, sizeof(encoder.habits));
	for (int again = 0; again < 2; again++) {
		coded = trace_encode(&encoder, records, words, rows, payload);
		check(payload, coded, words, rows, most, UINT32_MAX);
		for (uint32_t i = 0; i < rows * words; i++)
			if (fast[i % words][i / words] != records[i])
				abort();
	}
	for (; changes > 0 && size >= 3; changes--, data += 3, size -= 3)
		payload[(data[0] | (uint32_t)data[1] << 8) % coded] = data[2];
	check(payload, coded, words, rows, most, wanted);
	return 0;
}
