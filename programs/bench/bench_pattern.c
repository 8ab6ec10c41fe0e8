#include "programs/bench/bench_pattern.h"

#include <math.h>
#include <stddef.h>

#include "bench/bench_result.h"
#include "common/op.h"
#include "programs/bench/bench_number.h"

enum {
	PHASE_STEP = 5021,  /* far from any small number of elements */
	DENSE_RANKS = 1024, /* all ranks add something up to here; some at each element beyond */
	PRODUCT_RANKS = 5,  /* factors above 1: 3 * 2 * 2 * 2 * 2 fits the narrowest type */
	EXTREME_RANKS =
		3, /* who may have the greatest or least: more would always end at the top */
	ROUNDED_RANKS = 2, /* the fewer numbers a rounded mean has, the narrower its range */
};

/* A mixing function with all bits in all bits (Steele, Lea and Flood: SplitMix64). */
static uint64_t mix(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

static uint64_t mask_of(unsigned int element_bytes)
{
	return element_bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * element_bytes)) - 1;
}

static uint64_t poison_of(uint64_t low, uint64_t high, uint64_t mask)
{
	if (high < mask)
		return high + 1;
	return low > 0 ? low - 1 : low;
}

uint32_t pattern_phase(int rank)
{
	return (uint32_t)((uint64_t)rank * PHASE_STEP % PATTERN_PERIOD);
}

uint32_t pattern_advance(uint32_t phase, uint64_t steps)
{
	return (uint32_t)((phase + steps % PATTERN_PERIOD) % PATTERN_PERIOD);
}

void pattern_move(struct bench_pattern *pattern, unsigned int element_bytes)
{
	uint64_t mask = mask_of(element_bytes);

	for (size_t k = 0; k < PATTERN_PERIOD; k++) {
		uint64_t bits = mix(k) & mask;

		pattern->input[k] = bits;
		pattern->low[k] = bits;
		pattern->high[k] = bits;
		pattern->poison[k] = ~bits & mask;
	}
}

/* One reduction, understood: how many ranks have something to say at each element, and how much. */
struct reduction {
	uint8_t datatype;
	uint8_t redop;
	uint64_t nranks;
	uint64_t speakers;
	uint64_t top;
};

static bool is_power_of_two(uint64_t number)
{
	return (number & (number - 1)) == 0;
}

/* Is the mean computed without rounding? 1/n must be a number of the type, too. */
static bool is_mean_exact(const struct reduction *reduction)
{
	if (!number_is_float(reduction->datatype))
		return true;
	return is_power_of_two(reduction->nranks) &&
	       1 / (double)reduction->nranks >= number_least(reduction->datatype);
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t speakers_of(const struct reduction *reduction)
{
	uint64_t some = reduction->top / 4;

	switch (reduction->redop) {
	case BENCH_PROD:
		return least_of(reduction->nranks, PRODUCT_RANKS);
	case BENCH_MAX:
	case BENCH_MIN:
		return least_of(reduction->nranks, EXTREME_RANKS);
	case BENCH_AVG:
		if (!is_mean_exact(reduction))
			return least_of(reduction->nranks, ROUNDED_RANKS);
		/* fall through */
	default:
		return least_of(reduction->nranks, least_of(some, DENSE_RANKS));
	}
}

static bool reduction_init(struct reduction *reduction, uint8_t datatype, uint8_t redop, int nranks)
{
	*reduction = (struct reduction){
		.datatype = datatype,
		.redop = redop,
		.nranks = (uint64_t)nranks,
		.top = number_top(datatype),
	};
	if (reduction->top == 0 || redop == BENCH_NO_REDOP || redop >= BENCH_REDOPS || nranks < 1)
		return false;
	reduction->speakers = speakers_of(reduction);
	return true;
}

/* The rank that has the `place`-th word at entry k: ranks take turns. */
static uint64_t speaker_at(const struct reduction *reduction, uint64_t k, uint64_t place)
{
	return (k * reduction->speakers + place) % reduction->nranks;
}

/* What that rank says there. */
static uint64_t word_at(const struct reduction *reduction, uint64_t k, uint64_t place,
			uint64_t rank)
{
	uint64_t random = mix(mix(k) ^ rank);

	switch (reduction->redop) {
	case BENCH_PROD:
		return place == 0 ? 1 + 2 * (random & 1) : 1 + (random & 1);
	case BENCH_MAX:
	case BENCH_MIN:
		return reduction->top == UINT64_MAX ? random : random % (reduction->top + 1);
	default:
		return 1 + random % (reduction->top / reduction->speakers);
	}
}

/* What changes nothing. */
static uint64_t silence(const struct reduction *reduction)
{
	switch (reduction->redop) {
	case BENCH_PROD:
		return 1;
	case BENCH_MIN:
		return reduction->top;
	default:
		return 0;
	}
}

static uint64_t combine(uint8_t redop, uint64_t a, uint64_t b)
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

/* NCCL rounds 1/n, each product, each sum, and may go through half for 8 bits. A rounding is a relative one or,
 * near 0, half of the least number. */
static void mean_range(const struct reduction *reduction, uint64_t sum, uint64_t *low,
		       uint64_t *high)
{
	double least = number_least(reduction->datatype);
	double rounding = number_rounding(reduction->datatype);
	double steps = (double)reduction->speakers + 1;
	double mean = (double)sum / (double)reduction->nranks;
	double near_zero = least * (double)(sum + reduction->speakers) / 2;
	double slack = op_datatype_bytes(reduction->datatype) == 1 ? 0x1p-9 : 0x1p-50;
	double below = mean * pow(1 - rounding, steps) * (1 - slack) - near_zero;
	double above = mean * pow(1 + rounding, steps) * (1 + slack) + near_zero;

	*low = below > 0 ? number_below(reduction->datatype, below) : 0;
	*high = number_above(reduction->datatype, above);
}

static void expect(const struct reduction *reduction, uint64_t k, uint64_t *low, uint64_t *high)
{
	uint64_t whole = silence(reduction);

	for (uint64_t place = 0; place < reduction->speakers; place++)
		whole = combine(reduction->redop, whole,
				word_at(reduction, k, place, speaker_at(reduction, k, place)));
	if (reduction->redop != BENCH_AVG)
		*low = number_bits(reduction->datatype, whole);
	else if (!number_is_float(reduction->datatype))
		*low = whole / reduction->nranks;
	else if (is_mean_exact(reduction))
		*low = number_below(reduction->datatype, (double)whole / (double)reduction->nranks);
	else {
		mean_range(reduction, whole, low, high);
		return;
	}
	*high = *low;
}

bool pattern_reduce(struct bench_pattern *pattern, uint8_t datatype, uint8_t redop, int rank,
		    int nranks)
{
	struct reduction reduction;
	uint64_t mask = mask_of(op_datatype_bytes(datatype));

	if (!reduction_init(&reduction, datatype, redop, nranks))
		return false;
	for (uint64_t k = 0; k < PATTERN_PERIOD; k++) {
		uint64_t first = speaker_at(&reduction, k, 0);
		uint64_t place = ((uint64_t)rank + reduction.nranks - first) % reduction.nranks;
		uint64_t word = place < reduction.speakers
					? word_at(&reduction, k, place, (uint64_t)rank)
					: silence(&reduction);

		pattern->input[k] = number_bits(datatype, word);
		expect(&reduction, k, &pattern->low[k], &pattern->high[k]);
		pattern->poison[k] = poison_of(pattern->low[k], pattern->high[k], mask);
	}
	return true;
}
