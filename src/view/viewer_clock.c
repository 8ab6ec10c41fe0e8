#include "view/viewer_clock.h"

#include <stdlib.h>

enum {
	FIRST_WIDTH_NS = 10 * 1000 * 1000,
	LEAST_FOR_DRIFT = 8, /* stretches */
};

/* Clocks that drift apart faster than this do not exist: what looks so is noise. */
#define MOST_DRIFT 2e-4

void viewer_clock_init(struct viewer_clock *clock)
{
	*clock = (struct viewer_clock){ .width_ns = FIRST_WIDTH_NS };
}

static void keep_better(struct viewer_clock_best *best, const struct viewer_clock_best *other)
{
	if (other->seen_ns != 0 && (best->seen_ns == 0 || other->offset_ns > best->offset_ns))
		*best = *other;
}

/* Twice as long stretches: two become one, and the upper half is free. */
static void widen(struct viewer_clock *clock)
{
	for (unsigned int i = 0; i < VIEWER_CLOCK_STRETCHES; i++) {
		struct viewer_clock_best best = { 0 };

		if (i < VIEWER_CLOCK_STRETCHES / 2) {
			best = clock->best[2 * i];
			keep_better(&best, &clock->best[2 * i + 1]);
		}
		clock->best[i] = best;
	}
	clock->width_ns *= 2;
}

void viewer_clock_add(struct viewer_clock *clock, uint64_t gpu_ns, uint64_t seen_ns)
{
	struct viewer_clock_best one = { seen_ns, (int64_t)(gpu_ns - seen_ns) };
	uint64_t stretch;

	if (seen_ns == 0)
		return;
	if (clock->origin_ns == 0)
		clock->origin_ns = seen_ns;
	stretch = seen_ns > clock->origin_ns ? (seen_ns - clock->origin_ns) / clock->width_ns : 0;
	while (stretch >= VIEWER_CLOCK_STRETCHES) {
		widen(clock);
		stretch /= 2;
	}
	keep_better(&clock->best[stretch], &one);
}

/* To a whole number, also where there is none for it. */
static int64_t whole(double value)
{
	return value > -9e18 && value < 9e18 ? (int64_t)value : 0;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static double difference_ns(uint64_t later, uint64_t earlier)
{
	return (double)(int64_t)(later - earlier);
}

/* How much the offsets of two stretches differ. Damaged stamps may be anything. */
static double apart(const struct viewer_clock_best *a, const struct viewer_clock_best *b)
{
	return difference_ns((uint64_t)a->offset_ns, (uint64_t)b->offset_ns);
}

/* The median slope between stretches half the time apart. */
static double drift_of(const struct viewer_clock_best *points, unsigned int count)
{
	unsigned int half = count / 2, used = 0;
	double slopes[VIEWER_CLOCK_STRETCHES];
	double drift;

	if (count < LEAST_FOR_DRIFT)
		return 0;
	for (unsigned int i = 0; i + half < count; i++) {
		double time = difference_ns(points[i + half].seen_ns, points[i].seen_ns);

		if (time > 0)
			slopes[used++] =
				(double)(points[i + half].offset_ns - points[i].offset_ns) / time;
	}
	if (used == 0)
		return 0;
	qsort(slopes, used, sizeof(slopes[0]), by_value);
	drift = slopes[used / 2];
	return drift > MOST_DRIFT || drift < -MOST_DRIFT ? 0 : drift;
}

struct viewer_clock_fit viewer_clock_fit(const struct viewer_clock *clock)
{
	struct viewer_clock_best points[VIEWER_CLOCK_STRETCHES];
	struct viewer_clock_fit fit = { .is_known = false };
	double rest[VIEWER_CLOCK_STRETCHES];
	unsigned int count = 0;

	for (unsigned int i = 0; i < VIEWER_CLOCK_STRETCHES; i++)
		if (clock->best[i].seen_ns != 0)
			points[count++] = clock->best[i];
	if (count == 0)
		return fit;
	fit.is_known = true;
	fit.middle_ns = points[count / 2].seen_ns;
	fit.drift = drift_of(points, count);
	/* From one of the points, so that the doubles stay small: offsets may be as large as 1970. */
	for (unsigned int i = 0; i < count; i++)
		rest[i] = apart(&points[i], &points[0]) -
			  fit.drift * difference_ns(points[i].seen_ns, fit.middle_ns);
	qsort(rest, count, sizeof(rest[0]), by_value);
	/* Callbacks may be late, never early: the truth is near the greatest. */
	fit.offset_ns = (int64_t)((uint64_t)points[0].offset_ns +
				  (uint64_t)whole(rest[count - 1 - count / 10]));
	return fit;
}

uint64_t viewer_clock_ns(const struct viewer_clock_fit *fit, uint64_t gpu_ns, uint64_t near_ns)
{
	double drifted = fit->drift * difference_ns(near_ns, fit->middle_ns);

	return gpu_ns - ((uint64_t)fit->offset_ns + (uint64_t)whole(drifted));
}
