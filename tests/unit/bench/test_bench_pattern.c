/*
 * Executes every function on small buffers in memory, with every type, operation and order, and checks with the
 * tables what the GPU would check: nothing correct is reported as wrong, and nothing wrong as correct.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_plan.h"
#include "bench/bench_result.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "tests/tap.h"

enum { RANKS_MAX = 12, ELEMENTS_MAX = 1 << 12 };

static struct bench_pattern patterns[RANKS_MAX];
static uint64_t send[RANKS_MAX][ELEMENTS_MAX];
static uint64_t recv[RANKS_MAX][ELEMENTS_MAX];

/* Round to nearest, ties to even, as hardware does. */
static uint64_t round_to(uint8_t datatype, double value)
{
	uint64_t below = number_below(datatype, value), above = number_above(datatype, value);
	double down = value - number_value(datatype, below);
	double up = number_value(datatype, above) - value;

	if (down != up)
		return down < up ? below : above;
	return below & 1 ? above : below;
}

static uint64_t whole_reduce(uint8_t redop, uint64_t a, uint64_t b)
{
	switch (redop) {
	case BENCH_PROD:
		return a * b;
	case BENCH_MAX:
		return a > b ? a : b;
	case BENCH_MIN:
		return a < b ? a : b;
	default:
		return a + b;
	}
}

static uint64_t float_reduce(uint8_t datatype, uint8_t redop, uint64_t a, uint64_t b)
{
	double x = number_value(datatype, a), y = number_value(datatype, b);

	switch (redop) {
	case BENCH_PROD:
		return round_to(datatype, x * y);
	case BENCH_MAX:
		return a > b ? a : b;
	case BENCH_MIN:
		return a < b ? a : b;
	default:
		return round_to(datatype, x + y);
	}
}

/* As NCCL does: floating-point means are multiplied first, integer means divided last. */
static uint64_t reduce(uint8_t datatype, uint8_t redop, const uint64_t *inputs, int nranks,
		       int start, int step)
{
	bool is_float = number_is_float(datatype), is_mean = redop == BENCH_AVG;
	uint64_t result = 0;

	for (int i = 0; i < nranks; i++) {
		uint64_t next = inputs[(start + i * step) % nranks];

		if (is_float && is_mean) {
			uint64_t share = round_to(datatype, 1.0 / nranks);

			next = round_to(datatype, number_value(datatype, next) *
							  number_value(datatype, share));
		}
		if (i == 0)
			result = next;
		else
			result = is_float ? float_reduce(datatype, redop, result, next)
					  : whole_reduce(redop, result, next);
	}
	return is_mean && !is_float ? result / (uint64_t)nranks : result;
}

static bool is_right(const struct bench_pattern *pattern, size_t k, uint64_t bits)
{
	return bits >= pattern->low[k] && bits <= pattern->high[k];
}

struct tally {
	int wrong;     /* correct results reported as wrong */
	int loose;     /* entries that accept more than one value */
	int missed;    /* one rank's part missing, but accepted */
	int changes;   /* ... of these, where it made a difference */
	int poisoned;  /* poison accepted */
	int different; /* neighbouring entries that differ */
};

static void reduce_entry(struct tally *tally, uint8_t datatype, uint8_t redop, int nranks, size_t k)
{
	uint64_t inputs[RANKS_MAX], result = 0;
	const struct bench_pattern *pattern = &patterns[0];

	for (int rank = 0; rank < nranks; rank++)
		inputs[rank] = patterns[rank].input[k];
	for (int start = 0; start < nranks; start++)
		for (int step = 1; step<nranks + 1; step += nranks> 1 ? nranks - 1 : 1) {
			if (step == nranks && nranks > 1)
				continue;
			result = reduce(datatype, redop, inputs, nranks, start, step);
			tally->wrong += !is_right(pattern, k, result);
		}
	tally->loose += pattern->low[k] != pattern->high[k];
	tally->poisoned += is_right(pattern, k, pattern->poison[k]);
	tally->different += k > 0 && pattern->low[k] != pattern->low[k - 1];
	if (nranks < 2)
		return;
	/* The last rank's part is lost; another's is used twice instead. */
	inputs[nranks - 1] = inputs[0];
	if (reduce(datatype, redop, inputs, nranks, 0, 1) == result)
		return;
	tally->changes++;
	tally->missed += is_right(pattern, k, reduce(datatype, redop, inputs, nranks, 0, 1));
}

static struct tally reduce_all(uint8_t datatype, uint8_t redop, int nranks)
{
	struct tally tally = { 0 };

	for (int rank = 0; rank < nranks; rank++)
		if (!pattern_reduce(&patterns[rank], datatype, redop, rank, nranks))
			tally.wrong++;
	for (size_t k = 0; k < PATTERN_PERIOD; k += TAP_IS_SLOW ? 61 : 7)
		reduce_entry(&tally, datatype, redop, nranks, k);
	return tally;
}

static void test_reductions(uint8_t datatype, uint8_t redop)
{
	static const int sizes[] = { 1, 2, 3, 4, 6, 7, 8, 12 };
	struct tally sum = { 0 };
	int loose_exact = 0;
	char what[120];

	for (size_t i = TAP_IS_SLOW; i < sizeof(sizes) / sizeof(sizes[0]); i += 1 + TAP_IS_SLOW) {
		struct tally tally = reduce_all(datatype, redop, sizes[i]);
		bool may_round = redop == BENCH_AVG && number_is_float(datatype) &&
				 (sizes[i] & (sizes[i] - 1));

		sum.wrong += tally.wrong;
		sum.poisoned += tally.poisoned;
		loose_exact += may_round ? 0 : tally.loose + tally.missed;
		sum.missed += tally.missed;
		sum.changes += tally.changes;
		sum.different += tally.different;
	}
	snprintf(what, sizeof(what), "%s %s: correct in every order", op_datatype_name(datatype),
		 bench_redop_name(redop));
	if (!EXPECT_THAT(what, sum.wrong == 0 && sum.poisoned == 0 && loose_exact == 0))
		printf("#   wrong %d, poisoned %d, loose %d\n", sum.wrong, sum.poisoned,
		       loose_exact);
	snprintf(what, sizeof(what), "%s %s: a lost part is detected", op_datatype_name(datatype),
		 bench_redop_name(redop));
	if (!EXPECT_THAT(what,
			 sum.changes > 50 && sum.missed * 2 < sum.changes && sum.different > 50))
		printf("#   missed %d of %d, %d different\n", sum.missed, sum.changes,
		       sum.different);
}

/* Thousands of ranks: checks that the tables are consistent, without simulating sums in all orders. */
static void test_many_ranks(uint8_t datatype)
{
	enum { MANY = TAP_IS_SLOW ? 200 : 1200, LOOK = 64 };
	static struct bench_pattern pattern;
	uint64_t sums[LOOK] = { 0 };
	bool has_spoken = true;
	int wrong = 0;

	for (int rank = 0; rank < MANY; rank++) {
		uint64_t own = 0;

		pattern_reduce(&pattern, datatype, BENCH_SUM, rank, MANY);
		for (size_t k = 0; k < LOOK; k++)
			sums[k] = number_is_float(datatype)
					  ? float_reduce(datatype, BENCH_SUM, sums[k],
							 pattern.input[k])
					  : sums[k] + pattern.input[k];
		for (size_t k = 0; k < PATTERN_PERIOD; k++)
			own |= pattern.input[k];
		has_spoken = has_spoken && own;
	}
	for (size_t k = 0; k < LOOK; k++)
		wrong += !is_right(&pattern, k, sums[k]);
	EXPECT_EQUAL(wrong, 0);
	EXPECT_THAT("every one of many ranks contributes somewhere", has_spoken);
}

static void test_numbers(void)
{
	EXPECT_EQUAL(number_bits(OP_FLOAT16, 1), 0x3c00);
	EXPECT_EQUAL(number_bits(OP_FLOAT16, 2048), 0x6800);
	EXPECT_EQUAL(number_bits(OP_BFLOAT16, 1), 0x3f80);
	EXPECT_EQUAL(number_bits(OP_BFLOAT16, 3), 0x4040);
	EXPECT_EQUAL(number_bits(OP_FLOAT8_E4M3, 1), 0x38);
	EXPECT_EQUAL(number_bits(OP_FLOAT8_E4M3, 15), 0x57);
	EXPECT_EQUAL(number_bits(OP_FLOAT8_E5M2, 1), 0x3c);
	EXPECT_EQUAL(number_bits(OP_FLOAT8_E5M2, 7), 0x47);
	EXPECT_EQUAL(number_bits(OP_FLOAT64, UINT64_C(1) << 53), 0x4340000000000000);
	EXPECT(number_value(OP_FLOAT8_E4M3, 0x7e) == 448);
	EXPECT(number_value(OP_FLOAT8_E5M2, 0x7b) == 57344);
	EXPECT(number_value(OP_FLOAT16, 0x7bff) == 65504);
	EXPECT(number_value(OP_FLOAT16, 1) == 0x1p-24);
	for (uint64_t whole = 1; whole < 2000; whole += 37) {
		float number = (float)whole;
		double wide = (double)whole;
		uint32_t bits;
		uint64_t wide_bits;

		memcpy(&bits, &number, sizeof(bits));
		memcpy(&wide_bits, &wide, sizeof(wide_bits));
		if (number_bits(OP_FLOAT32, whole) != bits ||
		    number_bits(OP_FLOAT64, whole) != wide_bits)
			EXPECT_EQUAL(whole, 0);
	}
	EXPECT_EQUAL(number_below(OP_FLOAT16, 1.0 / 3), 0x3555);
	EXPECT_EQUAL(number_above(OP_FLOAT16, 1.0 / 3), 0x3556);
	EXPECT_EQUAL(number_top(OP_DATATYPE_UNKNOWN), 0);
	EXPECT(!pattern_reduce(&patterns[0], OP_DATATYPE_UNKNOWN, BENCH_SUM, 0, 2));
	EXPECT(!pattern_reduce(&patterns[0], OP_INT8, BENCH_NO_REDOP, 0, 2));
}

/* Executes one call of a function. In place there is one buffer: recv. */
static void play(const struct bench_cell *cell, const struct bench_layout *layouts)
{
	static uint64_t before[RANKS_MAX][ELEMENTS_MAX];
	int n = cell->nranks;
	uint64_t count = layouts[0].count;

	memcpy(before, cell->is_in_place ? recv : send, sizeof(before));
	for (int r = 0; r < n; r++) {
		uint64_t *to = recv[r] + layouts[r].recv_at;

		for (uint64_t i = 0; i < layouts[r].recv_count; i++) {
			uint64_t part = i / count, at = i % count, inputs[RANKS_MAX];
			int from = cell->root;
			uint64_t reduced_at =
				i + (cell->function == OP_REDUCE_SCATTER ? (uint64_t)r * count : 0);

			for (int s = 0; s < n; s++)
				inputs[s] = before[s][layouts[s].send_at + reduced_at];
			switch (cell->function) {
			case OP_ALL_REDUCE:
			case OP_REDUCE_SCATTER:
				to[i] = reduce(cell->datatype, cell->redop, inputs, n, 0, 1);
				break;
			case OP_REDUCE:
				if (r == cell->root)
					to[i] = reduce(cell->datatype, cell->redop, inputs, n, 0,
						       1);
				break;
			case OP_BROADCAST:
				to[i] = before[from][layouts[from].send_at + i];
				break;
			case OP_SCATTER:
				to[i] = before[from]
					      [layouts[from].send_at + (uint64_t)r * count + i];
				break;
			case OP_SEND_RECV:
				from = layout_recv_peer(cell, r);
				if (from >= 0)
					to[i] = before[from][layouts[from].send_at + i];
				break;
			case OP_ALL_TO_ALL:
				to[i] = before[part]
					      [layouts[part].send_at + (uint64_t)r * count + at];
				break;
			case OP_ALL_GATHER:
				to[i] = before[part][layouts[part].send_at + at];
				break;
			case OP_GATHER:
				if (r == cell->root)
					to[i] = before[part][layouts[part].send_at + at];
				break;
			}
		}
	}
}

static void fill(uint64_t *buffer, const struct layout_part *part, const uint64_t *table)
{
	for (uint64_t i = 0; i < part->count; i++)
		buffer[part->at + i] = table[pattern_advance(part->phase, i)];
}

static void prepare(const struct bench_cell *cell, struct bench_layout *layouts)
{
	struct layout_part part;

	memset(send, 0, sizeof(send));
	memset(recv, 0, sizeof(recv));
	for (int r = 0; r < cell->nranks; r++) {
		if (layout_is_reduction(cell->function))
			pattern_reduce(&patterns[r], cell->datatype, cell->redop, r, cell->nranks);
		else
			pattern_move(&patterns[r], op_datatype_bytes(cell->datatype));
		layout_of(&layouts[r], cell, r);
		for (int i = 0; layout_expected(&layouts[r], cell, r, i, &part); i++)
			fill(recv[r], &part, patterns[r].poison);
		if (layout_input(&layouts[r], cell, r, &part))
			fill(cell->is_in_place ? recv[r] : send[r], &part, patterns[r].input);
	}
}

static uint64_t wrong_of(const struct bench_cell *cell, const struct bench_layout *layouts)
{
	struct layout_part part;
	uint64_t wrong = 0;

	for (int r = 0; r < cell->nranks; r++)
		for (int i = 0; layout_expected(&layouts[r], cell, r, i, &part); i++)
			for (uint64_t e = 0; e < part.count; e++)
				wrong += !is_right(&patterns[r], pattern_advance(part.phase, e),
						   recv[r][part.at + e]);
	return wrong;
}

static uint64_t expected_elements(const struct bench_cell *cell, const struct bench_layout *layouts)
{
	struct layout_part part;
	uint64_t elements = 0;

	for (int r = 0; r < cell->nranks; r++)
		for (int i = 0; layout_expected(&layouts[r], cell, r, i, &part); i++)
			elements += part.count;
	return elements;
}

static void test_function(uint8_t function, bool is_in_place, int32_t *peers)
{
	struct bench_cell cell = {
		.function = function,
		.datatype = OP_INT32,
		.redop = layout_is_reduction(function) ? BENCH_SUM : BENCH_NO_REDOP,
		.is_in_place = is_in_place,
		.root = layout_is_rooted(function) ? 1 : -1,
		.nranks = 4,
		.bytes = 4003,
		.peers = peers,
	};
	struct bench_layout layouts[RANKS_MAX];
	char what[120];
	uint64_t before, again;

	prepare(&cell, layouts);
	before = wrong_of(&cell, layouts);
	play(&cell, layouts);
	snprintf(what, sizeof(what), "%s %s: correct after the call, not before",
		 op_function_name(function), is_in_place ? "in place" : "out of place");
	if (!EXPECT_THAT(what, wrong_of(&cell, layouts) == 0 && before > 0))
		printf("#   wrong %llu, before %llu\n",
		       (unsigned long long)wrong_of(&cell, layouts), (unsigned long long)before);
	play(&cell, layouts);
	again = wrong_of(&cell, layouts);
	snprintf(what, sizeof(what), "%s: repeated, it is %s", op_function_name(function),
		 layout_is_repeatable(&cell) ? "right" : "wrong, as declared");
	EXPECT_THAT(what, (again == 0) == layout_is_repeatable(&cell));
	for (int r = 0; r < cell.nranks; r++)
		memmove(recv[r] + 1, recv[r], (ELEMENTS_MAX - 1) * sizeof(recv[r][0]));
	EXPECT_THAT("... and shifted by one element it is wrong almost everywhere",
		    wrong_of(&cell, layouts) * 10 > expected_elements(&cell, layouts) * 9);
	EXPECT(layouts[1].bytes <= cell.bytes && layouts[1].bytes + 64 > cell.bytes);
}

static void test_layouts(void)
{
	struct bench_cell cell = { .function = OP_ALL_GATHER, .datatype = OP_FLOAT32, .nranks = 4 };
	struct bench_layout layout;

	cell.bytes = 100;
	EXPECT(layout_of(&layout, &cell, 2));
	EXPECT_EQUAL(layout.count, 4); /* 25 bytes per rank: 16 of them */
	EXPECT_EQUAL(layout.bytes, 64);
	EXPECT_EQUAL(layout.recv_count, 16);
	EXPECT_EQUAL(layout.send_at, 0);
	cell.is_in_place = true;
	EXPECT(layout_of(&layout, &cell, 2));
	EXPECT_EQUAL(layout.send_at, 8);
	cell.bytes = 40; /* less than 16 bytes per rank: whole elements */
	EXPECT(layout_of(&layout, &cell, 2));
	EXPECT_EQUAL(layout.count, 2);
	cell.bytes = 15;
	EXPECT(!layout_of(&layout, &cell, 2));
	cell.function = OP_REDUCE_SCATTER;
	cell.bytes = 256;
	EXPECT(layout_of(&layout, &cell, 3));
	EXPECT_EQUAL(layout.count, 16);
	EXPECT_EQUAL(layout.recv_at, 48);
	EXPECT_EQUAL(layout.send_count, 64);
	cell.function = OP_ALL_REDUCE;
	cell.bytes = 7;
	EXPECT(layout_of(&layout, &cell, 0));
	EXPECT_EQUAL(layout.count, 1);
	EXPECT_EQUAL(layout.bytes, 4);
	cell.function = OP_PUT_SIGNAL;
	EXPECT(!layout_of(&layout, &cell, 0));
	EXPECT(!layout_has_in_place(OP_ALL_TO_ALL));
}

int main(void)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
					     OP_BROADCAST,  OP_REDUCE,	   OP_ALL_TO_ALL,
					     OP_SEND_RECV,  OP_GATHER,	   OP_SCATTER };
	int32_t pairs[] = { 2, -1, 0, -1 };

	test_numbers();
	test_layouts();
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		test_function(functions[i], false, NULL);
		if (layout_has_in_place(functions[i]))
			test_function(functions[i], true, NULL);
	}
	test_function(OP_SEND_RECV, false, pairs);
	for (uint8_t datatype = OP_INT8; datatype < OP_DATATYPES; datatype++)
		for (uint8_t redop = BENCH_SUM; redop < BENCH_REDOPS; redop++)
			test_reductions(datatype, redop);
	test_many_ranks(OP_FLOAT8_E5M2);
	test_many_ranks(OP_FLOAT8_E4M3);
	return tap_done();
}
