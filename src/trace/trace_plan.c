#include "trace/trace_plan.h"

#include "trace/trace_code.h"
#include "trace/trace_encode.h"
#include "trace/trace_put.h"

enum { CENTER_ROWS = 9 };

const uint64_t *trace_plan_word(const struct trace_column *column, unsigned int reference)
{
	return column->values - (size_t)(reference - 1) * TRACE_ENCODE_STRIDE;
}

bool trace_plan_reference(const struct trace_column *column, unsigned int nth,
			  unsigned int *reference)
{
	if (nth >= 2 + TRACE_HINT_WORDS || (nth >= 2 && column->hint->words[nth - 2] == 0))
		return false;
	*reference = nth < 2 ? nth : column->hint->words[nth - 2] + 1u;
	return true;
}

/* Wider than TRACE_WIDTH_MAX, a value may not lie within eight bytes. */
static unsigned int width_of(uint64_t range)
{
	unsigned int bits = trace_bits_of(range);

	return bits > TRACE_WIDTH_MAX ? 64 : bits;
}

/* ---- by a sample ------------------------------------------------------------------------------ */

uint32_t trace_plan_sample(const struct trace_column *column, unsigned int reference, uint32_t most,
			   uint64_t *some)
{
	const uint64_t *values = column->values;
	const uint64_t *other = values;
	uint32_t first = reference == TRACE_REFERENCE_PREVIOUS;
	uint32_t rows = column->rows - first;
	uint32_t count = 0;

	if (reference >= TRACE_REFERENCE_WORD)
		other = trace_plan_word(column, reference);
	for (uint32_t k = 0; k < most && k < rows; k++) {
		uint32_t i = first + k;

		/* Steps of the golden ratio: no rhythm of the rows is hit over and over. */
		if (rows > most)
			i = first + (uint32_t)((uint64_t)(k * 0x9e3779b9u) * rows >> 32);
		if (column->has_holes && (values[i] == 0 || (first && values[i - 1] == 0)))
			continue;
		some[count] = values[i];
		if (reference != TRACE_REFERENCE_NONE)
			some[count] -= other[i - first];
		count++;
	}
	return count;
}

/* The one in the middle of three. */
static uint64_t middle(uint64_t a, uint64_t b, uint64_t c)
{
	bool is_ab = (int64_t)(b - a) >= 0, is_bc = (int64_t)(c - b) >= 0;

	if (is_ab == is_bc)
		return b;
	return ((int64_t)(c - a) >= 0) == is_ab ? c : a;
}

/* An ordinary one, even when some are far off. */
static uint64_t find_center(const uint64_t *some, uint32_t count)
{
	uint32_t eighth = count / 8;

	if (count < 3)
		return count > 0 ? some[0] : 0;
	if (count < 9)
		return middle(some[0], some[count / 2], some[count - 1]);
	return middle(middle(some[0], some[eighth], some[2 * eighth]),
		      middle(some[3 * eighth], some[4 * eighth], some[5 * eighth]),
		      middle(some[6 * eighth], some[7 * eighth], some[count - 1]));
}

/* The cheapest width, when `counts` says how many differences to the center need how many bits. */
static unsigned int find_width(const uint16_t counts[65], uint32_t rows, size_t *cost)
{
	unsigned int best = 64;
	uint32_t outside = 0;

	while (best > 0 && counts[best] == 0)
		best--;
	if (best > TRACE_WIDTH_MAX)
		best = 64;
	*cost = (size_t)rows * best;
	for (unsigned int bits = best; bits > 0; bits--) {
		unsigned int width = bits - 1 > TRACE_WIDTH_MAX ? 64 : bits - 1;
		size_t sum;

		outside += counts[bits];
		sum = (size_t)rows * width + (size_t)outside * TRACE_PATCH_BITS;
		if (sum < *cost) {
			*cost = sum;
			best = width;
		}
	}
	return best;
}

/* To what are differences small, and how wide are they then, but for a few? */
static void choose(const struct trace_column *column)
{
	struct trace_choice *choice = column->choice;
	size_t least = SIZE_MAX, cost;
	unsigned int reference, width;

	for (unsigned int nth = 0; trace_plan_reference(column, nth, &reference); nth++) {
		uint64_t some[TRACE_SAMPLE_ROWS], center;
		uint32_t count = trace_plan_sample(column, reference, TRACE_SAMPLE_ROWS, some);
		uint16_t counts[65] = { 0 };

		center = find_center(some, count);
		for (uint32_t i = 0; i < count; i++)
			counts[trace_bits_of(trace_zigzag(some[i] - center))]++;
		width = find_width(counts, count, &cost);
		cost = count > 0 ? cost * column->rows / count : 0;
		cost += 8 * trace_varint_bytes(trace_zigzag(center));
		if (reference == TRACE_REFERENCE_PREVIOUS)
			cost += 8 * trace_varint_bytes(trace_zigzag(column->values[0]));
		if (cost < least) {
			least = cost;
			choice->reference = (uint8_t)reference;
			choice->width = (uint8_t)width;
		}
	}
	choice->bits = least / column->rows < 255 ? (uint8_t)(least / column->rows) : 255;
	choice->is_patched = true;
	choice->is_made = true;
}

struct trace_plan trace_plan_find(const struct trace_column *column)
{
	uint64_t some[CENTER_ROWS];
	struct trace_plan plan = { .width = 0 };
	uint32_t count;

	if (column->is_choosing || !column->choice->is_made)
		choose(column);
	plan.reference = column->choice->reference;
	count = trace_plan_sample(column, plan.reference, CENTER_ROWS, some);
	plan.center = find_center(some, count);
	plan.bytes = 2 + (size_t)column->choice->bits * column->rows / 8;
	return plan;
}

/* ---- on all rows ------------------------------------------------------------------------------ */

/* To the row before. A hole is passed over; it and the first row get an ordinary difference. */
static void subtract_previous(const struct trace_column *column, struct trace_plan *plan)
{
	uint64_t *restrict differences = column->room;
	const uint64_t *values = column->values;
	uint64_t before;
	uint32_t i = 0;

	for (; column->has_holes && values[i] == 0 && i + 1 < column->rows; i++)
		differences[i] = plan->center;
	differences[i] = plan->center;
	plan->start = values[i] - plan->center;
	before = values[i++];
	if (column->has_holes) {
		for (; i < column->rows; i++) {
			differences[i] = values[i] != 0 ? values[i] - before : plan->center;
			before = values[i] != 0 ? values[i] : before;
		}
	} else {
		for (; i < column->rows; i++)
			differences[i] = values[i] - values[i - 1];
	}
}

static void subtract_word(const struct trace_column *column, const struct trace_plan *plan)
{
	const uint64_t *values = column->values;
	const uint64_t *other = trace_plan_word(column, plan->reference);
	uint64_t *restrict differences = column->room;

	if (column->has_holes)
		for (uint32_t i = 0; i < column->rows; i++)
			differences[i] = values[i] != 0 ? values[i] - other[i] : plan->center;
	else
		for (uint32_t i = 0; i < column->rows; i++)
			differences[i] = values[i] - other[i];
}

static void subtract(struct trace_column *column, struct trace_plan *plan)
{
	const uint64_t *values = column->values;

	column->differences = column->room;
	if (plan->reference == TRACE_REFERENCE_PREVIOUS)
		subtract_previous(column, plan);
	else if (plan->reference != TRACE_REFERENCE_NONE)
		subtract_word(column, plan);
	else if (column->has_holes)
		for (uint32_t i = 0; i < column->rows; i++)
			column->room[i] = values[i] != 0 ? values[i] : plan->center;
	else
		column->differences = values;
}

/* Base and width for all. */
static void frame(const struct trace_column *column, struct trace_plan *plan)
{
	const uint64_t *differences = column->differences;
	int64_t lowest = 0, highest = 0;

	for (uint32_t i = 0; i < column->rows; i++) {
		int64_t distance = (int64_t)(differences[i] - plan->center);

		lowest = distance < lowest ? distance : lowest;
		highest = distance > highest ? distance : highest;
	}
	plan->base = plan->center + (uint64_t)lowest;
	plan->width = width_of((uint64_t)highest - (uint64_t)lowest);
}

/* The same for those as near the center as most were when the choice was made; the others are
 * patched. */
static void frame_most(const struct trace_column *column, struct trace_plan *plan)
{
	const uint64_t *differences = column->differences;
	const uint64_t most = trace_width_mask(column->choice->width), half = most - most / 2;
	int64_t lowest = 0, highest = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < column->rows; i++) {
		uint64_t distance = differences[i] - plan->center;
		bool is_far = distance + half > most;
		int64_t near = is_far ? 0 : (int64_t)distance;

		column->patches[count] = (uint16_t)i;
		count += is_far;
		lowest = near < lowest ? near : lowest;
		highest = near > highest ? near : highest;
	}
	plan->base = plan->center + (uint64_t)lowest;
	plan->width = width_of((uint64_t)highest - (uint64_t)lowest);
	plan->patches = count;
}

static size_t bits_of_plan(const struct trace_column *column, const struct trace_plan *plan)
{
	return (size_t)column->rows * plan->width + (size_t)plan->patches * TRACE_PATCH_BITS;
}

/* What was good for the last block is tried first. */
void trace_plan_measure(struct trace_column *column, struct trace_plan *plan)
{
	struct trace_choice *choice = column->choice;
	struct trace_plan patched;

	subtract(column, plan);
	patched = *plan;
	if (choice->is_patched)
		frame_most(column, &patched);
	if (choice->is_patched && patched.patches <= column->rows / 16)
		*plan = patched;
	else
		frame(column, plan);
	if (!choice->is_patched && plan->width > choice->width + 1u)
		frame_most(column, &patched);
	if (patched.patches > 0 && bits_of_plan(column, &patched) < bits_of_plan(column, plan))
		*plan = patched;
	choice->is_patched = plan->patches > 0;
	choice->is_made = bits_of_plan(column, plan) / column->rows <= choice->bits + 2u;
	plan->bytes = 4 + trace_varint_bytes(trace_zigzag(plan->base)) +
		      (bits_of_plan(column, plan) + 7) / 8;
}
