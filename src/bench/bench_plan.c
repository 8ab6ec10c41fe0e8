/* Parses what to measure; defines what buffers contain and which results are correct. Does not use CUDA or NCCL. */
#include "bench/bench_plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

enum { SIZES_ITEM_BYTES = 128, FACTOR_MOST = 1 << 20 };
/* More than any GPU has. */
#define SIZES_MOST (UINT64_C(1) << 42)

struct sizes {
	uint64_t of[PLAN_SIZES];
	size_t count;
	char *problem;
	size_t problem_size;
};

static int size_of(struct sizes *sizes, const char *word, uint64_t *bytes)
{
	if (text_size(word, bytes) != OK)
		return bench_problem(
			sizes->problem, sizes->problem_size,
			"'%s' is not a size; use 4096, 32K, 1M, 1G, lists (1K,32K) or ranges "
			"(1K..1G, 1K..1G*4, 1M..8M+1M)",
			word);
	if (*bytes == 0 || *bytes > SIZES_MOST)
		return bench_problem(sizes->problem, sizes->problem_size,
				     "size '%s' is out of range: 1 to 4T "
				     "bytes",
				     word);
	return 0;
}

static int add_size(struct sizes *sizes, uint64_t bytes)
{
	for (size_t i = 0; i < sizes->count; i++)
		if (sizes->of[i] == bytes)
			return 0;
	if (sizes->count == PLAN_SIZES)
		return bench_problem(sizes->problem, sizes->problem_size,
				     "more than %d sizes; use a larger factor or step", PLAN_SIZES);
	sizes->of[sizes->count++] = bytes;
	return 0;
}

/* After the end of a range: "*4", "+1M" or nothing, which means "*2". */
static int take_step(struct sizes *sizes, const char *text, int64_t *factor, uint64_t *step)
{
	*factor = 1;
	*step = 0;
	if (*text == '\0')
		*factor = 2;
	else if (*text == '+')
		return size_of(sizes, text + 1, step);
	else if (text_number(text + 1, 2, FACTOR_MOST, factor) != OK)
		return bench_problem(sizes->problem, sizes->problem_size,
				     "'%s': expected a factor from 2 to %d, as in 1K..1G*4",
				     text + 1, FACTOR_MOST);
	return 0;
}

static int add_range(struct sizes *sizes, char *first, char *last)
{
	char *mark = last + strcspn(last, "*+");
	char step_text[SIZES_ITEM_BYTES];
	uint64_t from, to, step;
	int64_t factor;

	text_copy(step_text, sizeof(step_text), mark);
	*mark = '\0';
	if (size_of(sizes, first, &from) != 0 || size_of(sizes, last, &to) != 0 ||
	    take_step(sizes, step_text, &factor, &step) != 0)
		return -1;
	if (from > to)
		return bench_problem(sizes->problem, sizes->problem_size,
				     "range %s..%s ends before it starts", first, last);
	for (uint64_t bytes = from; bytes <= to; bytes = bytes * (uint64_t)factor + step)
		if (add_size(sizes, bytes) != 0)
			return -1;
	return 0;
}

static int sizes_add_item(struct sizes *sizes, const char *text, size_t length)
{
	char item[SIZES_ITEM_BYTES];
	uint64_t bytes;
	char *dots;

	if (length >= sizeof(item))
		return bench_problem(sizes->problem, sizes->problem_size,
				     "'%.40s...' is too long for a size", text);
	memcpy(item, text, length);
	item[length] = '\0';
	dots = strstr(item, "..");
	if (dots != NULL) {
		*dots = '\0';
		return add_range(sizes, item, dots + 2);
	}
	if (size_of(sizes, item, &bytes) != 0)
		return -1;
	return add_size(sizes, bytes);
}

int plan_sizes(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct sizes sizes = { .problem = problem, .problem_size = size };

	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		if (sizes_add_item(&sizes, at, length) != 0)
			return -1;
		at += length;
		if (*at == '\0')
			break;
	}
	memcpy(plan->sizes, sizes.of, sizes.count * sizeof(sizes.of[0]));
	plan->size_count = sizes.count;
	return 0;
}

uint32_t budget_calls_limit(int nranks)
{
	uint64_t bytes = sizeof(struct bench_call) * (uint64_t)(nranks > 0 ? nranks : 1);
	uint64_t limit = BUDGET_CALLS_BYTES / bytes;

	if (limit == 0)
		return 1;
	return limit < BUDGET_CALLS_MAX ? (uint32_t)limit : BUDGET_CALLS_MAX;
}

uint32_t budget_calls(const struct bench_plan *plan, double call_ns, int nranks)
{
	uint32_t limit = budget_calls_limit(nranks), calls = plan->calls ? plan->calls : limit;
	double fitting;

	if (plan->seconds > 0 && call_ns > 0) {
		fitting = plan->seconds * 1e9 / call_ns;
		if (fitting < plan->least_calls)
			fitting = plan->least_calls;
		if (fitting < calls)
			calls = (uint32_t)fitting;
	}
	if (calls > limit)
		calls = limit;
	return calls ? calls : 1;
}

uint32_t budget_warmups(const struct bench_plan *plan, uint32_t made, double spent_ns,
			double last_ns)
{
	uint32_t left = plan->warmups > made ? plan->warmups - made : 0;
	double left_ns = plan->seconds * 1e9 / 2 - spent_ns;

	if (plan->seconds <= 0)
		return left;
	if (left_ns <= 0)
		return 0;
	if (last_ns > 0 && left_ns / last_ns < left)
		left = (uint32_t)(left_ns / last_ns);
	return left;
}

struct number_form {
	int mantissa_bits; /* 0: integer type */
	int bias;
	uint64_t finite_most; /* bits of the largest finite number */
	uint64_t top;
};

static const struct number_form forms[OP_DATATYPES] = {
	[OP_INT8] = { 0, 0, 0, INT8_MAX },
	[OP_UINT8] = { 0, 0, 0, UINT8_MAX },
	[OP_INT32] = { 0, 0, 0, INT32_MAX },
	[OP_UINT32] = { 0, 0, 0, UINT32_MAX },
	[OP_INT64] = { 0, 0, 0, INT64_MAX },
	[OP_UINT64] = { 0, 0, 0, UINT64_MAX },
	[OP_FLOAT16] = { 10, 15, 0x7bff, 1u << 11 },
	[OP_FLOAT32] = { 23, 127, 0x7f7fffff, 1u << 24 },
	[OP_FLOAT64] = { 52, 1023, 0x7fefffffffffffff, UINT64_C(1) << 53 },
	[OP_BFLOAT16] = { 7, 127, 0x7f7f, 1u << 8 },
	[OP_FLOAT8_E4M3] = { 3, 7, 0x7e, 1u << 4 },
	[OP_FLOAT8_E5M2] = { 2, 15, 0x7b, 1u << 3 },
};

static const struct number_form *form_of(uint8_t datatype)
{
	return &forms[datatype < OP_DATATYPES ? datatype : OP_DATATYPE_UNKNOWN];
}

bool number_is_float(uint8_t datatype)
{
	return form_of(datatype)->mantissa_bits > 0;
}

uint64_t number_top(uint8_t datatype)
{
	return form_of(datatype)->top;
}

uint64_t number_bits(uint8_t datatype, uint64_t whole)
{
	return number_is_float(datatype) ? number_below(datatype, (double)whole) : whole;
}

double number_value(uint8_t datatype, uint64_t bits)
{
	const struct number_form *form = form_of(datatype);
	uint64_t one = UINT64_C(1) << form->mantissa_bits;
	uint64_t mantissa = bits & (one - 1);
	int exponent = (int)(bits >> form->mantissa_bits);

	if (exponent == 0) /* subnormal */
		return ldexp((double)mantissa, 1 - form->bias - form->mantissa_bits);
	return ldexp((double)(one + mantissa), exponent - form->bias - form->mantissa_bits);
}

uint64_t number_below(uint8_t datatype, double value)
{
	const struct number_form *form = form_of(datatype);
	int bits = form->mantissa_bits, exponent;
	double fraction;
	uint64_t below;

	if (!(value > 0))
		return 0;
	fraction = frexp(value, &exponent); /* in [1/2, 1) */
	exponent += form->bias - 1;
	if (exponent < 1) /* subnormal */
		below = (uint64_t)ldexp(value, form->bias - 1 + bits);
	else
		below = ((uint64_t)exponent << bits) + (uint64_t)ldexp(2 * fraction - 1, bits);
	return below < form->finite_most ? below : form->finite_most;
}

uint64_t number_above(uint8_t datatype, double value)
{
	uint64_t bits = number_below(datatype, value);

	if (number_value(datatype, bits) < value && bits < form_of(datatype)->finite_most)
		bits++;
	return bits;
}

/* Half the distance between 1 and the next number: the maximum relative rounding error; */
static double number_rounding(uint8_t datatype)
{
	return ldexp(1, -form_of(datatype)->mantissa_bits - 1);
}

/* and the smallest number above 0. */
static double number_least(uint8_t datatype)
{
	return number_value(datatype, 1);
}

enum {
	PHASE_STEP = 5021,  /* far from any small number of elements */
	DENSE_RANKS = 1024, /* up to here all ranks contribute; above, some at each element */
	PRODUCT_RANKS = 5,  /* factors above 1: 3 * 2 * 2 * 2 * 2 fits the narrowest type */
	EXTREME_RANKS =
		3, /* ranks that can have the maximum or minimum: with more, it would almost always be the top value */
	ROUNDED_RANKS = 2, /* the fewer summands a rounded mean has, the narrower its range */
};

/* Mixes all bits into all bits (Steele, Lea and Flood: SplitMix64). */
static uint64_t mix_bits(uint64_t value)
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

/* Where a rank's input starts in the table of moved data; for reduced data all start at 0. */
static uint32_t pattern_phase(int rank)
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
		uint64_t bits = mix_bits(k) & mask;

		pattern->input[k] = bits;
		pattern->low[k] = bits;
		pattern->high[k] = bits;
		pattern->poison[k] = ~bits & mask;
	}
}

/* A parsed reduction: how many ranks contribute at each element, and the range of values. */
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

/* Whether the mean is exact; 1/n must be representable, too. */
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

/* The rank that contributes value number `place` at entry k: ranks take turns. */
static uint64_t speaker_at(const struct reduction *reduction, uint64_t k, uint64_t place)
{
	return (k * reduction->speakers + place) % reduction->nranks;
}

/* The value of that rank. */
static uint64_t word_at(const struct reduction *reduction, uint64_t k, uint64_t place,
			uint64_t rank)
{
	uint64_t random = mix_bits(mix_bits(k) ^ rank);

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

/* The identity element. */
static uint64_t neutral_value(const struct reduction *reduction)
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

static uint64_t reduce_two(uint8_t redop, uint64_t a, uint64_t b)
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

/*
 * NCCL rounds 1/n, each product and each sum, and may convert 8-bit types through half. The error of a rounding is
 * relative or, near 0, half of the smallest number.
 */
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

static void pattern_expect(const struct reduction *reduction, uint64_t k, uint64_t *low,
			   uint64_t *high)
{
	uint64_t whole = neutral_value(reduction);

	for (uint64_t place = 0; place < reduction->speakers; place++)
		whole = reduce_two(reduction->redop, whole,
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
					: neutral_value(&reduction);

		pattern->input[k] = number_bits(datatype, word);
		pattern_expect(&reduction, k, &pattern->low[k], &pattern->high[k]);
		pattern->poison[k] = poison_of(pattern->low[k], pattern->high[k], mask);
	}
	return true;
}

enum { PART_ALIGN_BYTES = 16 };

bool layout_is_reduction(uint8_t function)
{
	return function == OP_ALL_REDUCE || function == OP_REDUCE_SCATTER || function == OP_REDUCE;
}

bool layout_is_rooted(uint8_t function)
{
	return function == OP_BROADCAST || function == OP_REDUCE || function == OP_GATHER ||
	       function == OP_SCATTER;
}

bool layout_has_in_place(uint8_t function)
{
	return function != OP_ALL_TO_ALL && function != OP_SEND_RECV;
}

bool layout_is_repeatable(const struct bench_cell *cell)
{
	if (!cell->is_in_place || !layout_is_reduction(cell->function))
		return true;
	return cell->redop == BENCH_MAX || cell->redop == BENCH_MIN;
}

static uint64_t part_of(uint64_t bytes, unsigned int element_bytes, uint64_t nranks)
{
	uint64_t part = bytes / element_bytes / nranks;
	uint64_t aligned = part - part % (PART_ALIGN_BYTES / element_bytes);

	return aligned ? aligned : part;
}

static bool counts_of(struct bench_layout *layout, const struct bench_cell *cell, int rank)
{
	unsigned int element_bytes = op_datatype_bytes(cell->datatype);
	uint64_t nranks = (uint64_t)cell->nranks, at = 0;
	uint64_t part = part_of(cell->bytes, element_bytes, nranks);

	switch (cell->function) {
	case OP_ALL_REDUCE:
	case OP_BROADCAST:
	case OP_REDUCE:
	case OP_SEND_RECV:
		part = cell->bytes / element_bytes;
		*layout = (struct bench_layout){ .send_count = part, .recv_count = part };
		break;
	case OP_ALL_GATHER:
	case OP_GATHER:
		at = cell->is_in_place ? (uint64_t)rank * part : 0;
		*layout = (struct bench_layout){ .send_count = part,
						 .recv_count = part * nranks,
						 .send_at = at };
		break;
	case OP_REDUCE_SCATTER:
	case OP_SCATTER:
		at = cell->is_in_place ? (uint64_t)rank * part : 0;
		*layout = (struct bench_layout){ .send_count = part * nranks,
						 .recv_count = part,
						 .recv_at = at };
		break;
	case OP_ALL_TO_ALL:
		*layout = (struct bench_layout){ .send_count = part * nranks,
						 .recv_count = part * nranks };
		break;
	default:
		return false;
	}
	layout->count = part;
	return part > 0;
}

bool layout_of(struct bench_layout *layout, const struct bench_cell *cell, int rank)
{
	unsigned int element_bytes = op_datatype_bytes(cell->datatype);

	if (element_bytes == 0 || cell->nranks < 1 || !counts_of(layout, cell, rank))
		return false;
	layout->whole_count =
		layout->send_count > layout->recv_count ? layout->send_count : layout->recv_count;
	layout->bytes =
		op_message_bytes(cell->function, layout->count, element_bytes, cell->nranks);
	return true;
}

int layout_send_peer(const struct bench_cell *cell, int rank)
{
	return cell->peers ? cell->peers[rank] : (rank + 1) % cell->nranks;
}

int layout_recv_peer(const struct bench_cell *cell, int rank)
{
	return cell->peers ? cell->peers[rank] : (rank + cell->nranks - 1) % cell->nranks;
}

bool layout_input(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		  struct layout_part *part)
{
	bool is_only_of_root = cell->function == OP_BROADCAST || cell->function == OP_SCATTER;

	if (is_only_of_root && rank != cell->root)
		return false;
	if (cell->function == OP_SEND_RECV && layout_send_peer(cell, rank) < 0)
		return false;
	*part = (struct layout_part){
		.at = layout->send_at,
		.count = layout->send_count,
		.phase = layout_is_reduction(cell->function) ? 0 : pattern_phase(rank),
	};
	return true;
}

/* Everything at once, from one rank or from the reduction. */
static bool expected_whole(const struct bench_layout *layout, const struct bench_cell *cell,
			   int rank, uint32_t *phase)
{
	uint64_t own = (uint64_t)rank * layout->count;
	int peer;

	switch (cell->function) {
	case OP_ALL_REDUCE:
		*phase = 0;
		return true;
	case OP_REDUCE:
		*phase = 0;
		return rank == cell->root;
	case OP_REDUCE_SCATTER:
		*phase = pattern_advance(0, own);
		return true;
	case OP_BROADCAST:
		*phase = pattern_phase(cell->root);
		return true;
	case OP_SCATTER:
		*phase = pattern_advance(pattern_phase(cell->root), own);
		return true;
	case OP_SEND_RECV:
		peer = layout_recv_peer(cell, rank);
		*phase = peer < 0 ? 0 : pattern_phase(peer);
		return peer >= 0;
	default:
		return false;
	}
}

/* Part `from` comes from that rank. */
static bool expected_part(const struct bench_layout *layout, const struct bench_cell *cell,
			  int rank, int from, uint32_t *phase)
{
	*phase = pattern_phase(from);
	if (cell->function == OP_ALL_TO_ALL)
		*phase = pattern_advance(*phase, (uint64_t)rank * layout->count);
	return cell->function != OP_GATHER || rank == cell->root;
}

bool layout_expected(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		     int index, struct layout_part *part)
{
	bool has_parts = cell->function == OP_ALL_GATHER || cell->function == OP_GATHER ||
			 cell->function == OP_ALL_TO_ALL;

	*part = (struct layout_part){ .at = layout->recv_at, .count = layout->recv_count };
	if (!has_parts)
		return index == 0 && expected_whole(layout, cell, rank, &part->phase);
	part->at += (uint64_t)index * layout->count;
	part->count = layout->count;
	return index < cell->nranks && expected_part(layout, cell, rank, index, &part->phase);
}

enum { PLAN_WORD_BYTES = 64 };

/*
 * Error messages list the first spelling. Words are compared in lower case without separators: all_reduce_perf,
 * AllReduce and all-reduce are the same.
 */
struct plan_word {
	const char *name;
	uint8_t number;
};

static const struct plan_word functions[] = {
	{ "allreduce", OP_ALL_REDUCE },
	{ "allgather", OP_ALL_GATHER },
	{ "reducescatter", OP_REDUCE_SCATTER },
	{ "broadcast", OP_BROADCAST },
	{ "bcast", OP_BROADCAST },
	{ "reduce", OP_REDUCE },
	{ "alltoall", OP_ALL_TO_ALL },
	{ "sendrecv", OP_SEND_RECV },
	{ "gather", OP_GATHER },
	{ "scatter", OP_SCATTER },
};

static const struct plan_word datatypes[] = {
	{ "float32", OP_FLOAT32 },
	{ "float", OP_FLOAT32 },
	{ "fp32", OP_FLOAT32 },
	{ "f32", OP_FLOAT32 },
	{ "float16", OP_FLOAT16 },
	{ "half", OP_FLOAT16 },
	{ "fp16", OP_FLOAT16 },
	{ "f16", OP_FLOAT16 },
	{ "bfloat16", OP_BFLOAT16 },
	{ "bf16", OP_BFLOAT16 },
	{ "float64", OP_FLOAT64 },
	{ "double", OP_FLOAT64 },
	{ "fp64", OP_FLOAT64 },
	{ "f64", OP_FLOAT64 },
	{ "int8", OP_INT8 },
	{ "char", OP_INT8 },
	{ "uint8", OP_UINT8 },
	{ "int32", OP_INT32 },
	{ "int", OP_INT32 },
	{ "uint32", OP_UINT32 },
	{ "int64", OP_INT64 },
	{ "uint64", OP_UINT64 },
	{ "float8e4m3", OP_FLOAT8_E4M3 },
	{ "fp8e4m3", OP_FLOAT8_E4M3 },
	{ "f8e4m3", OP_FLOAT8_E4M3 },
	{ "float8e5m2", OP_FLOAT8_E5M2 },
	{ "fp8e5m2", OP_FLOAT8_E5M2 },
	{ "f8e5m2", OP_FLOAT8_E5M2 },
};

static const struct plan_word redops[] = {
	{ "sum", BENCH_SUM }, { "prod", BENCH_PROD }, { "max", BENCH_MAX },
	{ "min", BENCH_MIN }, { "avg", BENCH_AVG },
};

static const struct plan_word modes[] = {
	{ "blocking", BENCH_BLOCKING }, { "back-to-back", BENCH_BACK_TO_BACK },
	{ "b2b", BENCH_BACK_TO_BACK },	{ "graph", BENCH_GRAPH },
	{ "cudagraph", BENCH_GRAPH },	{ "loop", BENCH_LOOP },
};

/* ---- words ------------------------------------------------------------------------------------ */

struct plan_list {
	const char *what; /* "function" */
	const struct plan_word *words;
	size_t word_count;
	uint8_t *numbers;
	size_t room;
	size_t *count;
};

static void word_simplify(char *to, size_t size, const char *from, size_t length)
{
	size_t at = 0;

	for (size_t i = 0; i < length && at + 1 < size; i++)
		if (isalnum((unsigned char)from[i]))
			to[at++] = (char)tolower((unsigned char)from[i]);
	to[at] = '\0';
	if (at > 4 && strcmp(to + at - 4, "perf") == 0)
		to[at - 4] = '\0';
	if (at > 4 && strncmp(to, "nccl", 4) == 0)
		memmove(to, to + 4, strlen(to + 4) + 1);
}

static void list_allowed(const struct plan_list *list, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < list->word_count; i++)
		if (i == 0 || list->words[i].number != list->words[i - 1].number)
			text_append(text, size, "%s%s", i > 0 ? ", " : "", list->words[i].name);
}

static int list_refuse(const struct plan_list *list, const char *word, size_t length, char *problem,
		       size_t size)
{
	char allowed[256];

	list_allowed(list, allowed, sizeof(allowed));
	if (length == 0)
		snprintf(problem, size, "an empty %s; allowed are %s and all", list->what, allowed);
	else
		snprintf(problem, size, "unknown %s '%.*s'; allowed are %s and all", list->what,
			 length < 40 ? (int)length : 40, word, allowed);
	return -1;
}

/* Ignores duplicates: "half,float16" is one type. */
static bool list_add(struct plan_list *list, uint8_t number)
{
	for (size_t i = 0; i < *list->count; i++)
		if (list->numbers[i] == number)
			return true;
	if (*list->count == list->room)
		return false;
	list->numbers[(*list->count)++] = number;
	return true;
}

static bool list_add_all(struct plan_list *list)
{
	for (size_t i = 0; i < list->word_count; i++)
		if (!list_add(list, list->words[i].number))
			return false;
	return true;
}

static bool list_add_word(struct plan_list *list, const char *word)
{
	char known[PLAN_WORD_BYTES];

	if (strcmp(word, "all") == 0)
		return list_add_all(list);
	for (size_t i = 0; i < list->word_count; i++) {
		word_simplify(known, sizeof(known), list->words[i].name,
			      strlen(list->words[i].name));
		if (strcmp(known, word) == 0)
			return list_add(list, list->words[i].number);
	}
	return false;
}

/* Replaces the list only if the whole text is valid. */
static int parse_words(struct plan_list *list, const char *text, char *problem, size_t size)
{
	uint8_t found[PLAN_TYPES];
	size_t count = 0;
	struct plan_list copy = *list;
	char word[PLAN_WORD_BYTES];

	copy.numbers = found;
	copy.count = &count;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		word_simplify(word, sizeof(word), at, length);
		if (length >= PLAN_WORD_BYTES || !list_add_word(&copy, word))
			return list_refuse(list, at, length, problem, size);
		at += length;
		if (*at == '\0')
			break;
	}
	memcpy(list->numbers, found, count * sizeof(*found));
	*list->count = count;
	return 0;
}

int plan_functions(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct plan_list list = { "function",	   functions,	   ARRAY_LENGTH(functions),
				  plan->functions, PLAN_FUNCTIONS, &plan->function_count };

	return parse_words(&list, text, problem, size);
}

int plan_datatypes(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct plan_list list = { "type",	   datatypes,  ARRAY_LENGTH(datatypes),
				  plan->datatypes, PLAN_TYPES, &plan->datatype_count };

	return parse_words(&list, text, problem, size);
}

int plan_redops(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct plan_list list = { "reduction",	redops,	      ARRAY_LENGTH(redops),
				  plan->redops, BENCH_REDOPS, &plan->redop_count };

	return parse_words(&list, text, problem, size);
}

int plan_modes(struct bench_plan *plan, const char *text, char *problem, size_t size)
{
	struct plan_list list = { "mode",      modes,	   ARRAY_LENGTH(modes),
				  plan->modes, PLAN_MODES, &plan->mode_count };

	return parse_words(&list, text, problem, size);
}

void plan_init(struct bench_plan *plan)
{
	char problem[128];

	memset(plan, 0, sizeof(*plan));
	plan_functions(plan, "allreduce", problem, sizeof(problem));
	plan_datatypes(plan, "float32", problem, sizeof(problem));
	plan_redops(plan, "sum", problem, sizeof(problem));
	plan_modes(plan, "blocking", problem, sizeof(problem));
	plan_sizes(plan, "1K..128M*4", problem, sizeof(problem));
	plan->places = PLAN_BOTH_PLACES;
	plan->calls = 20;
	plan->least_calls = 5;
	plan->warmups = 5;
	plan->graph_calls = 10;
	plan->align = PLAN_ALIGN_HUB;
	plan->is_checked = true;
	plan->over = BENCH_OVER_MEAN;
}

size_t plan_cells(const struct bench_plan *plan)
{
	size_t places = plan->places == PLAN_BOTH_PLACES ? 2 : 1, cells = 0;

	for (size_t i = 0; i < plan->function_count; i++)
		cells += plan->datatype_count * plan->mode_count * plan->size_count *
			 (layout_is_reduction(plan->functions[i]) ? plan->redop_count : 1) *
			 (layout_has_in_place(plan->functions[i]) ? places : 1);
	return cells > 0 ? cells : 1;
}
