#include "foreign/expected.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"

void expected_init(struct expected *expected)
{
	*expected = (struct expected){ 0 };
}

void expected_release(struct expected *expected)
{
	free(expected->rows);
	*expected = (struct expected){ 0 };
}

uint8_t expected_function(const char *name, size_t length)
{
	static const struct {
		const char *name;
		uint8_t function;
	} names[] = {
		{ "all_reduce", OP_ALL_REDUCE },
		{ "all_gather", OP_ALL_GATHER },
		{ "reduce_scatter", OP_REDUCE_SCATTER },
		{ "broadcast", OP_BROADCAST },
		{ "reduce", OP_REDUCE },
		{ "alltoall", OP_ALL_TO_ALL },
		{ "gather", OP_GATHER },
		{ "scatter", OP_SCATTER },
		{ "sendrecv", OP_SEND_RECV },
	};
	static const char suffix[] = "_perf";
	const size_t suffix_length = sizeof(suffix) - 1;

	if (length > suffix_length &&
	    memcmp(name + length - suffix_length, suffix, suffix_length) == 0)
		length -= suffix_length;
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strlen(names[i].name) == length && memcmp(names[i].name, name, length) == 0)
			return names[i].function;
	return OP_FUNCTION_UNKNOWN;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_rows(const void *one, const void *other)
{
	const struct expected_row *a = one, *b = other;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->nranks != b->nranks)
		return a->nranks < b->nranks ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static bool is_same_point(const struct expected_row *a, const struct expected_row *b)
{
	return a->function == b->function && a->nranks == b->nranks && a->bytes == b->bytes;
}

void expected_finish(struct expected *expected)
{
	size_t kept = 0;

	if (expected->count > 1)
		qsort(expected->rows, expected->count, sizeof(*expected->rows), compare_rows);
	/* Of the same point the fastest comes first. */
	for (size_t i = 0; i < expected->count; i++)
		if (kept == 0 || !is_same_point(&expected->rows[kept - 1], &expected->rows[i]))
			expected->rows[kept++] = expected->rows[i];
	expected->count = kept;
}

/* ---- looking up ------------------------------------------------------------------------------ */

/* The rows of one function and one number of ranks. */
struct curve {
	const struct expected_row *rows;
	size_t count;
};

/* How far apart are two numbers of ranks? Twice as many is as far as half as many. */
static double rank_distance(int32_t a, int32_t b)
{
	if (a <= 0 || b <= 0)
		return a == b ? 0 : 1e9;
	return fabs(log2((double)a / b));
}

static struct curve nearest_curve(const struct expected *expected, uint8_t function, int32_t nranks)
{
	struct curve best = { NULL, 0 };
	double best_distance = 0;

	for (size_t from = 0, to; from < expected->count; from = to) {
		const struct expected_row *first = &expected->rows[from];
		double distance = rank_distance(first->nranks, nranks);

		for (to = from + 1; to < expected->count &&
				    expected->rows[to].function == first->function &&
				    expected->rows[to].nranks == first->nranks;)
			to++;
		if (first->function != function || (best.rows != NULL && distance >= best_distance))
			continue;
		best = (struct curve){ first, to - from };
		best_distance = distance;
	}
	return best;
}

static double between(const struct expected_row *low, const struct expected_row *high,
		      uint64_t bytes)
{
	double part = (log((double)bytes) - log((double)low->bytes)) /
		      (log((double)high->bytes) - log((double)low->bytes));

	return exp(log((double)low->time_ns) * (1 - part) + log((double)high->time_ns) * part);
}

static double time_on(const struct curve *curve, uint64_t bytes, unsigned int *how)
{
	const struct expected_row *last = &curve->rows[curve->count - 1];
	size_t above = 0;

	while (above < curve->count && curve->rows[above].bytes < bytes)
		above++;
	if (above == curve->count) {
		*how |= EXPECTED_ABOVE;
		return (double)last->time_ns * ((double)bytes / (double)last->bytes);
	}
	if (curve->rows[above].bytes == bytes)
		return (double)curve->rows[above].time_ns;
	if (above == 0) {
		*how |= EXPECTED_BELOW;
		return (double)curve->rows[0].time_ns;
	}
	*how |= EXPECTED_BETWEEN;
	return between(&curve->rows[above - 1], &curve->rows[above], bytes);
}

bool expected_find(const struct expected *expected, uint8_t function, uint64_t bytes,
		   int32_t nranks, struct expected_value *value)
{
	struct curve curve = nearest_curve(expected, function, nranks);
	double factor = op_bus_factor(function, nranks), measured_factor;
	unsigned int how = 0;

	/* Both halves of what nccl-tests does at once. */
	if (curve.rows == NULL && (function == OP_SEND || function == OP_RECV))
		curve = nearest_curve(expected, OP_SEND_RECV, nranks);
	if (curve.rows == NULL)
		return false;
	measured_factor = op_bus_factor(function, curve.rows->nranks);
	value->nranks = curve.rows->nranks;
	value->time_ns = time_on(&curve, bytes, &how);
	value->algbw = (double)bytes / value->time_ns;
	value->busbw = value->algbw * measured_factor;
	if (curve.rows->nranks != nranks) {
		/* The bandwidth of the links is what stays. */
		how |= EXPECTED_OTHER_RANKS;
		if (factor > 0 && measured_factor > 0) {
			value->algbw *= measured_factor / factor;
			value->time_ns *= factor / measured_factor;
		}
	}
	value->how = how;
	return true;
}
