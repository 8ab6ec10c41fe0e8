/*
 * What goes in comes out: through the real decoder, whole, in pieces and word by word, and through
 * a slow decoder that shares no code with either.
 */
#include "format/trace_write.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/op.h"
#include "format/trace_read.h"
#include "tests/support/slow_columns.h"
#include "tests/tap.h"

static uint64_t records[TRACE_ROWS_MAX * TRACE_WORDS_MAX];
static uint64_t fast[TRACE_WORDS_MAX][TRACE_ROWS_MAX], slow[TRACE_WORDS_MAX][TRACE_ROWS_MAX];
static struct trace_encoder *encoder;
static uint64_t state = 1;
static unsigned int packings[8]; /* how often each was used */
static unsigned int references[3];

static uint64_t next_random(void)
{
	return state = hash_word(state, 1);
}

static uint64_t below(uint64_t limit)
{
	return (next_random() >> 11) % limit;
}

/* A value of the kind that column and round require. */
static uint64_t value_of(unsigned int manner, uint32_t row, uint64_t before, uint64_t neighbour)
{
	switch (manner % 14) {
	case 0:
		return 0;
	case 1:
		return 0x123456789abcdef0;
	case 2:
		return 1000 + 7 * (uint64_t)row;
	case 3:
		return next_random();
	case 4:
		return UINT64_C(5000000000000) + below(1 << 20);
	case 5:
		return before + below(3000);
	case 6:
		return below(50) == 0 ? next_random() : 100 + below(20);
	case 7:
		return below(3) == 0 ? 0 : UINT64_C(7000000000000) + row * 1000 + below(500);
	case 8:
		return neighbour + 100 + below(64);
	case 9:
		return below(5) * 0x100000001;
	case 10:
		return below(4000) | below(4000) << 32;
	case 11:
		return UINT64_MAX - below(2);
	case 12:
		return neighbour;
	default:
		return below(40) == 0 ? before + (UINT64_C(1) << below(63)) : before + 1;
	}
}

static void make_records(unsigned int words, uint32_t rows, unsigned int round)
{
	unsigned int manners[TRACE_WORDS_MAX];

	for (unsigned int word = 0; word < words; word++)
		manners[word] = round == 0 ? word : (unsigned int)below(14);
	for (uint32_t row = 0; row < rows; row++)
		for (unsigned int word = 0; word < words; word++) {
			uint64_t *value = &records[row * words + word];

			*value = value_of(manners[word], row, row > 0 ? value[-(int)words] : 1000,
					  word > 0 ? value[-1] : 0);
		}
}

static bool is_record(uint64_t table[][TRACE_ROWS_MAX], unsigned int words, uint32_t from,
		      uint32_t rows, unsigned int word)
{
	for (uint32_t row = 0; row < rows; row++)
		if (table[word][row] != records[(from + row) * words + word])
			return false;
	return true;
}

static void count_packings(const struct trace_columns *columns)
{
	for (unsigned int word = 0; word < columns->words; word++) {
		const struct trace_stream *stream = &columns->streams[word];

		packings[stream->packing]++;
		packings[TRACE_HOLES] += stream->holes != NULL;
		packings[TRACE_HALVES] += columns->halves >> word & 1;
		references[stream->reference < 2 ? stream->reference : 2]++;
	}
}

/* Through the decoder, `most` rows at a time, for the requested words. */
static bool decodes(const unsigned char *payload, size_t size, unsigned int words, uint32_t rows,
		    uint32_t most, uint32_t wanted)
{
	struct trace_columns columns;
	uint64_t *to[TRACE_WORDS_MAX];
	uint32_t from = 0, got;

	for (unsigned int word = 0; word < TRACE_WORDS_MAX; word++)
		to[word] = fast[word];
	if (trace_columns_open(&columns, payload, size, words, rows, wanted) != OK)
		return false;
	for (; (got = trace_columns_next(&columns, most, to)) > 0; from += got)
		for (unsigned int word = 0; word < words; word++)
			if (wanted >> word & 1 && !is_record(fast, words, from, got, word))
				return false;
	if (wanted == UINT32_MAX)
		count_packings(&columns);
	return from == rows;
}

static bool comes_back(unsigned int words, uint32_t rows)
{
	unsigned char *room = malloc(TRACE_ENCODED_MAX(words, rows)), *payload;
	size_t size = trace_encode(encoder, records, words, rows, room);
	bool is_good = true;

	/* In memory of its exact size, so that a sanitizer catches reads past the end. */
	payload = malloc(size);
	memcpy(payload, room, size);
	is_good &= decodes(payload, size, words, rows, TRACE_ROWS_MAX, UINT32_MAX);
	is_good &= decodes(payload, size, words, rows, 1 + (uint32_t)below(40), UINT32_MAX);
	is_good &= decodes(payload, size, words, rows, 64, (uint32_t)next_random());
	is_good &= decodes(payload, size, words, rows, TRACE_ROWS_MAX, 1u << below(words));
	is_good &= slow_columns(payload, size, words, rows, slow);
	for (unsigned int word = 0; word < words; word++)
		is_good &= is_record(slow, words, 0, rows, word);
	free(room);
	free(payload);
	return is_good;
}

static void test_any_records(unsigned int words, const char *sentence)
{
	static const uint32_t counts[] = { 1,  2,  3,  4,  7,  8,   9,	 15,   16,
					   17, 31, 63, 64, 65, 100, 255, 1000, TRACE_ROWS_MAX };
	unsigned int wrong = 0;

	for (unsigned int round = 0; round < 25; round++)
		for (unsigned int i = 0; i < ARRAY_LENGTH(counts); i++) {
			make_records(words, counts[i], round);
			if (!comes_back(words, counts[i]) && wrong++ == 0)
				printf("# %u words, %u rows, round %u\n", words, counts[i], round);
		}
	EXPECT_THAT(sentence, wrong == 0);
}

/* Operations on several communicators, with signatures as computed by the recorder. */
static struct op_record ops[TRACE_ROWS_MAX];

static void make_signed(uint32_t rows)
{
	uint64_t signatures[4] = { 0 };

	for (uint32_t i = 0; i < rows; i++) {
		uint32_t comm = (uint32_t)below(4);

		ops[i] = (struct op_record){ .sequence = i + 1,
					     .comm = comm + 1,
					     .function = 1 + (uint8_t)below(7),
					     .datatype = OP_FLOAT32,
					     .number = i + 1,
					     .count = 1024 << below(6),
					     .root = (int32_t)below(3) - 1,
					     .peer = OP_NOBODY,
					     .flags = below(10) == 0 ? OP_FLAG_REPLAY : 0,
					     .state = OP_DONE };
		if (ops[i].function == OP_SEND || ops[i].function == OP_RECV ||
		    ops[i].flags & OP_FLAG_REPLAY)
			continue;
		signatures[comm] = op_signature(
			signatures[comm], op_signature_name(OP_NAMES_FUNCTION, ops[i].function),
			op_signature_name(OP_NAMES_DATATYPE, ops[i].datatype), ops[i].root,
			ops[i].count);
		ops[i].signature = signatures[comm];
	}
	memcpy(records, ops, sizeof(ops));
}

static void test_signatures(void)
{
	static unsigned char payload[TRACE_ENCODED_MAX(OP_RECORD_WORDS, TRACE_ROWS_MAX)];
	size_t computed, odd;

	make_signed(1000);
	EXPECT_THAT("signatures come back", comes_back(OP_RECORD_WORDS, 1000));
	EXPECT(packings[TRACE_SIGNED] > 0);
	computed = trace_encode(encoder, records, OP_RECORD_WORDS, 1000, payload);
	EXPECT_THAT("those that can be computed take no room", computed < 4000);
	for (int i = 0; i < 1000; i += 50)
		ops[i].signature ^= 1;
	memcpy(records, ops, sizeof(ops));
	EXPECT_THAT("those that cannot be computed come back as well",
		    comes_back(OP_RECORD_WORDS, 1000));
	odd = trace_encode(encoder, records, OP_RECORD_WORDS, 1000, payload);
	EXPECT(odd > computed && odd < computed + 1000);
	for (int i = 0; i < 1000; i++)
		ops[i].signature = next_random();
	memcpy(records, ops, sizeof(ops));
	EXPECT_THAT("and so does any number there", comes_back(OP_RECORD_WORDS, 1000));
}

/* Blocks are independent of earlier blocks and of the kind of records. */
static void test_alone(void)
{
	unsigned char *again = malloc(TRACE_ENCODED_MAX(OP_DETAIL_WORDS, 50));
	size_t size;

	make_records(OP_RECORD_WORDS, 700, 3);
	EXPECT(comes_back(OP_RECORD_WORDS, 700));
	make_records(OP_DETAIL_WORDS, 50, 5);
	size = trace_encode(encoder, records, OP_DETAIL_WORDS, 50, again);
	for (int i = 0; i < 40; i++)
		trace_encode(encoder, records, OP_DETAIL_WORDS, 50, again);
	EXPECT_THAT("a block can be read without those before it",
		    slow_columns(again, size, OP_DETAIL_WORDS, 50, slow));
	free(again);
}

/* Trivial columns take almost no bytes. */
static void test_sizes(void)
{
	static unsigned char payload[TRACE_ENCODED_MAX(OP_RECORD_WORDS, TRACE_ROWS_MAX)];

	memset(records, 0, sizeof(records));
	EXPECT_EQUAL(trace_encode(encoder, records, OP_RECORD_WORDS, TRACE_ROWS_MAX, payload), 4);
	EXPECT(comes_back(OP_RECORD_WORDS, TRACE_ROWS_MAX));
	for (uint32_t i = 0; i < TRACE_ROWS_MAX; i++)
		records[i * OP_RECORD_WORDS] = i + 1;
	EXPECT_THAT("a column that counts takes three bytes",
		    trace_encode(encoder, records, OP_RECORD_WORDS, TRACE_ROWS_MAX, payload) == 7);
	for (size_t i = 0; i < ARRAY_LENGTH(records); i++)
		records[i] = next_random();
	EXPECT_THAT("random words take at most a few bytes more than themselves",
		    trace_encode(encoder, records, OP_RECORD_WORDS, TRACE_ROWS_MAX, payload) <=
			    sizeof(records) + 4 + 32 * 32);
	EXPECT(comes_back(OP_RECORD_WORDS, TRACE_ROWS_MAX));
}

/* ---- what a column costs ---------------------------------------------------------------------- */

enum { COST_ROWS = 1024, COST_WORD = offsetof(struct op_detail, time_ns) / 8, CENTER_STEP = 8 };
static const uint64_t LEVEL = UINT64_C(1000000000000); /* as a varint: six bytes */

/* The row that the encoder samples as its k-th: golden-ratio steps. */
static uint32_t sampled_row(uint32_t k)
{
	return (uint32_t)((uint64_t)(k * 0x9e3779b9u) * COST_ROWS >> 32);
}

static void make_noise(uint64_t level, uint64_t range)
{
	memset(records, 0, sizeof(records));
	for (uint32_t i = 0; i < COST_ROWS; i++)
		records[i * OP_DETAIL_WORDS + COST_WORD] = level + hash_word(i, 5) % range;
	/* Both ends occur. */
	records[700 * OP_DETAIL_WORDS + COST_WORD] = level;
	records[701 * OP_DETAIL_WORDS + COST_WORD] = level + range - 1;
}

/* Far away, up or down in turn. Returns 0 if the row was changed before. */
static unsigned int put_far(uint32_t row)
{
	static unsigned int turn;
	uint64_t *value = &records[row * OP_DETAIL_WORDS + COST_WORD];

	if (*value - LEVEL > UINT64_C(1) << 60)
		return 0;
	*value += turn++ % 2 == 0 ? UINT64_C(1) << 62 : UINT64_MAX << 62;
	return 1;
}

/* Bytes of a block with that column alone, by an encoder that has seen nothing else. */
static size_t cost(void)
{
	static unsigned char payload[TRACE_ENCODED_MAX(OP_DETAIL_WORDS, COST_ROWS)];
	struct trace_encoder *fresh = trace_encoder_new();
	size_t size = fresh == NULL
			      ? 0
			      : trace_encode(fresh, records, OP_DETAIL_WORDS, COST_ROWS, payload);

	free(fresh);
	return size;
}

/* Presence, tag, base, width; count and size of patches; rows; patches of a row number and eight bytes. */
static size_t packed_cost(size_t base, unsigned int width)
{
	return 2 + 1 + base + 1 + COST_ROWS * width / 8;
}

static size_t patched_cost(size_t base, unsigned int width, unsigned int patches)
{
	return packed_cost(base, width) + 2 + patches * (2 + 8u);
}

/* The median of medians of three is not far away if one row of each group is, or a whole group and one row of the others. */
static unsigned int count_wrong_centers(uint32_t step)
{
	unsigned int wrong = 0;

	for (uint32_t a = 0; a < 3; a++)
		for (uint32_t b = 3; b < 6; b++)
			for (uint32_t c = 6; c < 9; c++) {
				uint32_t last = step == 1 || c < 8 ? c * step : 63;
				unsigned int count;

				make_noise(LEVEL, 256);
				count = put_far(sampled_row(a * step));
				count += put_far(sampled_row(b * step));
				count += put_far(sampled_row(last));
				wrong += cost() != patched_cost(6, 8, count);
			}
	for (uint32_t group = 0; group < 9; group += 3)
		for (uint32_t more = 0; more < 9; more++) {
			unsigned int count = 0;

			/* A whole group, and one of each other group. */
			make_noise(LEVEL, 256);
			for (uint32_t k = 0; k < 9; k++) {
				bool is_far = k / 3 == group / 3 ||
					      k % 3 == (k / 3 == (group / 3 + 1) % 3 ? more / 3
										     : more % 3);

				if (is_far)
					count += put_far(
						sampled_row(k == 8 && step > 1 ? 63 : k * step));
			}
			wrong += cost() != patched_cost(6, 8, count);
		}
	return wrong;
}

static void test_cost(void)
{
	make_noise(LEVEL, 256);
	EXPECT_EQUAL(cost(), packed_cost(6, 8));
	make_noise(LEVEL, 257);
	EXPECT_EQUAL(cost(), packed_cost(6, 9));
	make_noise(1, 2);
	EXPECT_EQUAL(cost(), packed_cost(1, 1));
	make_noise(LEVEL, 256);
	put_far(10);
	put_far(20);
	EXPECT_EQUAL(cost(), patched_cost(6, 8, 2));
	EXPECT_THAT("rows far away cost no others, wherever the sample meets them",
		    count_wrong_centers(1) == 0);
	EXPECT_THAT("also not in the choice of a reference", count_wrong_centers(CENTER_STEP) == 0);
	make_noise(0, UINT64_C(1) << 55);
	put_far(sampled_row(5));
	EXPECT_THAT("wide numbers are packed as well", cost() < patched_cost(9, 56, 1) + 1);
	make_noise(0, UINT64_MAX);
	EXPECT_THAT("the widest as they are", cost() <= packed_cost(10, 64));
	for (uint32_t i = 0; i < COST_ROWS; i++)
		records[i * OP_DETAIL_WORDS + COST_WORD] = LEVEL + 1000 * i;
	EXPECT_THAT("a step: presence, tag, start and step", cost() == 2 + 1 + 6 + 2);
	for (uint32_t i = 0; i < COST_ROWS; i++)
		records[i * OP_DETAIL_WORDS + COST_WORD + 1] =
			records[i * OP_DETAIL_WORDS + COST_WORD] + 50 + hash_word(i, 9) % 16;
	/* The next time refers to it: tag, base, width. */
	EXPECT_EQUAL(cost(), 2 + (1 + 6 + 2) + (1 + 1 + 1 + COST_ROWS * 4 / 8));
}

/* The largest distance that is one step too far in one row, at any place of a long column. */
static void test_almost_same(void)
{
	unsigned int wrong = 0;

	for (uint32_t odd = 2; odd < 70; odd++) {
		memset(records, 0, sizeof(records));
		for (uint32_t i = 0; i < 70; i++)
			records[i * OP_DETAIL_WORDS + COST_WORD] = LEVEL + 1000 * i + (i == odd);
		wrong += !comes_back(OP_DETAIL_WORDS, 70);
	}
	EXPECT_THAT("a step that one row breaks comes back", wrong == 0);
}

int main(void)
{
	encoder = trace_encoder_new();
	if (encoder == NULL)
		return tap_skip_all("no memory");
	test_any_records(OP_RECORD_WORDS, "operations come back as they went");
	test_any_records(OP_DETAIL_WORDS, "details come back as they went");
	test_signatures();
	test_alone();
	test_sizes();
	test_cost();
	test_almost_same();
	for (unsigned int i = TRACE_SAME; i <= TRACE_SIGNED; i++)
		EXPECT_THAT("every packing was used", packings[i] > 0);
	EXPECT_THAT("and every reference",
		    references[0] > 0 && references[1] > 0 && references[2] > 0);
	free(encoder);
	return tap_done();
}
