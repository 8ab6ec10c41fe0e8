/*
 * How large coded blocks are: columns of many kinds, alone and together, in one block and in several, so that a worse
 * choice of the encoder is noticed although its blocks can still be read. Bytes are the same on every machine.
 */
#include "format/trace_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "output/sink.h"
#include "tests/support/expected_file.h"
#include "tests/tap.h"

static uint64_t records[TRACE_ROWS_MAX * TRACE_WORDS_MAX];
static unsigned char payload[1 << 20];
static uint64_t state;

static uint64_t below(uint64_t limit)
{
	state = hash_word(state, 1);
	return (state >> 11) % limit;
}

enum manner {
	CONSTANT,
	COUNTER,
	RANDOM,
	NARROW,
	CLIMBING,
	FALLING,
	OUTLIERS,
	HOLES,
	MANY_HOLES,
	FEW_VALUES,
	SOME_VALUES,
	SIGNED,
	HALVES,
	HALF_CONSTANT,
	NEIGHBOUR,
	NEAR_NEIGHBOUR,
	JUMPS,
	LAST_DIFFERS,
	FIRST_DIFFERS,
	TWO_LEVELS,
	MANNERS,
};

static const char *const names[MANNERS] = {
	"constant",    "counter",  "random",	   "narrow",	    "climbing",
	"falling",     "outliers", "holes",	   "many holes",    "few values",
	"some values", "signed",   "halves",	   "half const",    "neighbour",
	"near one",    "jumps",	   "last differs", "first differs", "two levels",
};

static uint64_t value_of(enum manner manner, uint32_t row, uint32_t rows, uint64_t before,
			 uint64_t neighbour)
{
	switch (manner) {
	case CONSTANT:
		return 0x123456789abcdef0;
	case COUNTER:
		return 1000 + 7 * (uint64_t)row;
	case RANDOM:
		return below(UINT64_MAX >> 11) << 11 | below(2048);
	case NARROW:
		return UINT64_C(5000000000000) + below(1 << 12);
	case CLIMBING:
		return before + 100 + below(3000);
	case FALLING:
		return before - below(300) + (row == 0 ? 1000000 : 0);
	case OUTLIERS:
		return below(40) == 0 ? below(UINT64_C(1) << 40) : 100 + below(20);
	case HOLES:
		return below(5) == 0 ? 0 : UINT64_C(7000000000000) + row * 1000 + below(500);
	case MANY_HOLES:
		return below(5) != 0 ? 0 : UINT64_C(7000000000000) + row * 1000 + below(500);
	case FEW_VALUES:
		return below(3) * UINT64_C(0x10000000100001);
	case SOME_VALUES:
		return hash_word(below(60), 1);
	case SIGNED:
		return below(200) - 100;
	case HALVES:
		return below(4000) | below(4000) << 32;
	case HALF_CONSTANT:
		return below(4000) | UINT64_C(77) << 32;
	case NEIGHBOUR:
		return neighbour;
	case NEAR_NEIGHBOUR:
		return neighbour + 100 + below(64);
	case JUMPS:
		return before + (below(30) == 0 ? UINT64_C(1) << below(50) : 1);
	case LAST_DIFFERS:
		return row + 1 == rows ? 99999 : 5;
	case FIRST_DIFFERS:
		return row == 0 ? 99999 : 5;
	default:
		return (row / 37 % 2 ? 1000000 : 1000) + below(4);
	}
}

/* The neighbour of the first word is a counter that climbs at random. */
static void fill(unsigned int words, uint32_t rows, const enum manner *manners)
{
	for (uint32_t row = 0; row < rows; row++)
		for (unsigned int word = 0; word < words; word++) {
			uint64_t *value = &records[row * words + word];
			uint64_t before = row > 0 ? value[-(int)words] : 1000;

			*value = value_of(manners[word], row, rows, before,
					  word > 0 ? value[-1] : before);
		}
}

static struct trace_encoder *encoder_new(void)
{
	struct trace_encoder *encoder = trace_encoder_new();

	if (encoder == NULL)
		abort();
	return encoder;
}

static void show_block(struct sink *sink, struct trace_encoder *encoder, unsigned int words,
		       uint32_t rows)
{
	size_t bytes = trace_encode(encoder, records, words, rows, payload);

	sink_format(sink, " %zu (%08" PRIx32 ")", bytes, (uint32_t)hash_bytes(payload, bytes));
}

/* Beside a climbing column, with as many rows as there may be. */
static void show_alone(struct sink *sink)
{
	static const uint32_t rows[] = { 1, 2, 15, 16, 17, 64, 200, 1000, TRACE_ROWS_MAX };
	enum manner manners[OP_DETAIL_WORDS] = { CLIMBING };

	for (int manner = 0; manner < MANNERS; manner++) {
		sink_format(sink, "%s:", names[manner]);
		manners[1] = (enum manner)manner;
		for (unsigned int word = 2; word < OP_DETAIL_WORDS; word++)
			manners[word] = CONSTANT;
		for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
			struct trace_encoder *encoder = encoder_new();

			state = 1 + (uint64_t)manner;
			fill(OP_DETAIL_WORDS, rows[i], manners);
			show_block(sink, encoder, OP_DETAIL_WORDS, rows[i]);
			free(encoder);
		}
		sink_text(sink, "\n");
	}
}

/* One encoder for many blocks: what it has learnt is checked again when the column changes. */
static void show_series(struct sink *sink)
{
	struct trace_encoder *encoder = encoder_new();
	enum manner manners[TRACE_WORDS_MAX];

	for (unsigned int block = 0; block < 24; block++) {
		unsigned int words = block % 3 == 2 ? OP_DETAIL_WORDS : OP_RECORD_WORDS;
		uint32_t rows = block % 5 == 4 ? 30 : 500;

		state = 100 + block;
		for (unsigned int word = 0; word < words; word++)
			manners[word] = (enum manner)((word + block / 8) % MANNERS);
		fill(words, rows, manners);
		sink_format(sink, "block %u of %u rows, %u words:", block, rows, words);
		show_block(sink, encoder, words, rows);
		sink_text(sink, "\n");
	}
	free(encoder);
}

int main(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	show_alone(&sink);
	show_series(&sink);
	EXPECT_THAT("blocks are as large as expected",
		    sink.status == OK &&
			    expected_file(sink_string(&sink),
					  "tests/unit/format/expected/trace_sizes.txt"));
	sink_release(&sink);
	return tap_done();
}
