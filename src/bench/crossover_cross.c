/*
 * Where two curves cross. At each size that both have, one is clearly faster or neither is; a
 * crossing lies between the last size where the one and the first where the other is. Between sizes
 * ln(time) is a straight line over ln(bytes): the point is where the medians meet, the interval
 * where the best case of one meets the worst case of the other, both ways.
 */
#include "bench/crossover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/crossover_parts.h"

/* ---- one size -------------------------------------------------------------------------------- */

/* Both curves at one size: differences of ln(time), first minus second. */
struct meeting {
	double where; /* ln(bytes) */
	double middle;
	double low;
	double high;
	int clear; /* -1: the first is faster; 1: the second; 0: neither */
};

static bool meet(const struct crossover_point *a, const struct crossover_curve *second,
		 struct meeting *meeting)
{
	const struct crossover_point *b = crossover_point_at(second, a->bytes);

	if (a->wrong || b == NULL)
		return false;
	meeting->where = log((double)a->bytes);
	meeting->middle = log(a->median_ns / b->median_ns);
	meeting->low = log(a->low_ns / b->high_ns);
	meeting->high = log(a->high_ns / b->low_ns);
	meeting->clear = crossover_is_clear(a, b) ? -1 : crossover_is_clear(b, a) ? 1 : 0;
	return true;
}

/* ---- between sizes --------------------------------------------------------------------------- */

enum line { LINE_MIDDLE = 0, LINE_LOW = 1, LINE_HIGH = 2 };

static double value_of(const struct meeting *meeting, enum line line)
{
	return line == LINE_MIDDLE ? meeting->middle
	       : line == LINE_LOW  ? meeting->low
				   : meeting->high;
}

/* Where a line changes from the sign `before` to the other, from meetings[0] to meetings[count -
 * 1]: in the middle between the first and the last time that it does. */
static double zero_of(const struct meeting *meetings, size_t count, enum line line, int before)
{
	double first = 0, last = 0;
	bool is_found = false;

	for (size_t i = 0; i + 1 < count; i++) {
		double from = value_of(&meetings[i], line) * before;
		double to = value_of(&meetings[i + 1], line) * before, here;

		if ((from > 0) == (to > 0) || from == to)
			continue;
		here = meetings[i].where +
		       (meetings[i + 1].where - meetings[i].where) * from / (from - to);
		first = is_found ? first : here;
		last = here;
		is_found = true;
	}
	return is_found ? (first + last) / 2 : (meetings[0].where + meetings[count - 1].where) / 2;
}

static void cross(struct crossover_crossing *crossing, const struct meeting *meetings, size_t count)
{
	int before = meetings[0].clear;
	/* Rising from below 0, the upper line is there first; falling, the lower one. */
	double one = zero_of(meetings, count, before < 0 ? LINE_HIGH : LINE_LOW, before);
	double other = zero_of(meetings, count, before < 0 ? LINE_LOW : LINE_HIGH, before);

	crossing->answer = CROSSOVER_CROSSES;
	crossing->first = before < 0 ? 0 : 1;
	crossing->second = before < 0 ? 1 : 0;
	crossing->bytes = exp(zero_of(meetings, count, LINE_MIDDLE, before));
	crossing->low_bytes = exp(fmin(one, other));
	crossing->high_bytes = exp(fmax(one, other));
	crossing->low_bytes = fmin(crossing->low_bytes, crossing->bytes);
	crossing->high_bytes = fmax(crossing->high_bytes, crossing->bytes);
}

/* ---- two curves ------------------------------------------------------------------------------ */

/* Every change of who is clearly faster. */
static size_t find_changes(const struct meeting *meetings, size_t count,
			   struct crossover_crossing *found, size_t room)
{
	size_t changes = 0, last = SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		if (meetings[i].clear == 0)
			continue;
		if (last != SIZE_MAX && meetings[i].clear != meetings[last].clear) {
			if (changes < room)
				cross(&found[changes], meetings + last, i - last + 1);
			changes++;
		}
		last = i;
	}
	return changes;
}

static enum crossover_answer no_crossing(const struct meeting *meetings, size_t count)
{
	if (count < 2)
		return CROSSOVER_NO_DATA;
	for (size_t i = 0; i < count; i++)
		if (meetings[i].clear != 0)
			return meetings[i].clear < 0 ? CROSSOVER_FIRST_WINS : CROSSOVER_SECOND_WINS;
	return CROSSOVER_ALIKE;
}

static void find_most(const struct meeting *meetings, size_t count,
		      struct crossover_crossing *crossing)
{
	crossing->most_ratio = 1;
	for (size_t i = 0; i < count; i++)
		if (meetings[i].clear != 0 &&
		    exp(fabs(meetings[i].middle)) > crossing->most_ratio) {
			crossing->most_ratio = exp(fabs(meetings[i].middle));
			crossing->most_bytes = (uint64_t)llround(exp(meetings[i].where));
		}
}

size_t crossover_cross(const struct crossover_curve *first, const struct crossover_curve *second,
		       struct crossover_crossing *found, size_t room)
{
	struct meeting *meetings = calloc(first->count + 1, sizeof(*meetings));
	size_t count = 0, changes = 0;

	if (meetings == NULL || room == 0) {
		free(meetings);
		return 0;
	}
	memset(found, 0, room * sizeof(*found));
	found[0].second = 1;
	for (size_t i = 0; i < first->count; i++)
		count += meet(&first->points[i], second, &meetings[count]);
	changes = find_changes(meetings, count, found, room);
	if (changes == 0)
		found[0].answer = no_crossing(meetings, count);
	for (size_t i = 0; i < room && i < (changes ? changes : 1); i++) {
		find_most(meetings, count, &found[i]);
		found[i].is_repeated = changes > 1;
	}
	free(meetings);
	return changes ? changes : 1;
}

double crossover_time_at(const struct crossover_curve *curve, double bytes)
{
	for (size_t i = 0; i < curve->count; i++) {
		const struct crossover_point *here = &curve->points[i];
		double share;

		if ((double)here->bytes == bytes)
			return here->median_ns;
		if ((double)here->bytes < bytes)
			continue;
		if (i == 0)
			return 0;
		share = log(bytes / (double)here[-1].bytes) /
			log((double)here->bytes / (double)here[-1].bytes);
		return exp(log(here[-1].median_ns) +
			   share * log(here->median_ns / here[-1].median_ns));
	}
	return 0;
}
