/*
 * A job whose iterations became longer is slower, whatever the reason. If a straggler, a link or transfers that became
 * slower were found, those are the verdict, and what iterations take longer is its cost. Otherwise the rise itself is the
 * verdict: it says what was ruled out, and how the rest becomes visible.
 *
 *	ns of an iteration
 *	  |            .:.:..:.:     the stretch that differs most from the rest; it ends with the
 *	  |.:.:..:.:.:.              recording, or before (then there must be something after it)
 *	  +------------------------> time
 *
 * No iteration is like the other, so a rise must be more than the spread of those outside, and must last. A small one is a
 * note. Evaluations, checkpoints and other phases call other operations: they are no regular iterations and do not count.
 */
#include "doctor/slow_internal.h"

#include <math.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/text.h"

/* ---- the rise ----------------------------------------------------------------------------------- */

enum { POINTS_MAX = 512, SIDE_LEAST = 4, SURE_LEAST = 8, TYPICAL_LEAST = 16 };
static const double longer_that_matters = 0.05, errors_of_change = 5, chance_of_change = 3e-7,
		    errors_of_clear = 4;
/* In median distances: three standard deviations. */
static const double distance_of_typical = 3 * 1.4826;
/* Of a rise that is a warning. */
static const double cost_that_is_clear = 0.1, bytes_alike = 0.05;

/* Regular iterations in the order of time; many of them are combined. */
struct points {
	size_t count;
	double value[POINTS_MAX]; /* logarithm of the duration, mean */
	size_t first[POINTS_MAX]; /* index of the first of its iterations */
	size_t end[POINTS_MAX];	  /* and behind the last one */
};

static bool is_regular(const struct iteration *one)
{
	return !one->is_odd && one->end_ns > one->start_ns;
}

static void take_points(struct points *points, const struct iterations *iterations)
{
	size_t regular = 0, taken = 0;

	points->count = 0;
	for (size_t i = 0; i < iterations->count; i++)
		regular += is_regular(&iterations->list[i]);
	for (size_t i = 0; i < iterations->count; i++) {
		const struct iteration *one = &iterations->list[i];
		size_t wanted = regular < POINTS_MAX ? regular : POINTS_MAX, at;
		double value = log((double)(one->end_ns - one->start_ns));

		if (!is_regular(one))
			continue;
		at = taken++ * wanted / regular;
		if (at == points->count) {
			points->count++;
			points->value[at] = 0;
			points->first[at] = points->end[at] = i;
		}
		/* How many it has follows from the same division. */
		points->value[at] += value / (double)(((at + 1) * regular + wanted - 1) / wanted -
						      (at * regular + wanted - 1) / wanted);
		points->end[at] = i + 1;
	}
}

/* Points [from, to) that exceed those before and those after most; from = to: there are too few. */
struct stretch {
	size_t from, to;
	double gap; /* of the means, to the larger of both sides */
};

/* sums: of the first points. */
static double gap_of(const double *sums, size_t all, size_t from, size_t to)
{
	double inside = (sums[to] - sums[from]) / (double)(to - from);
	double gap = inside - sums[from] / (double)from;

	return to < all ? fmin(gap, inside - (sums[all] - sums[to]) / (double)(all - to)) : gap;
}

static struct stretch find_stretch(const struct points *points)
{
	double sums[POINTS_MAX + 1] = { 0 }, most = 0;
	size_t all = points->count;
	struct stretch best = { .from = 0 };

	for (size_t i = 0; i < all; i++)
		sums[i + 1] = sums[i] + points->value[i];
	for (size_t from = SIDE_LEAST; from + SIDE_LEAST <= all; from++)
		for (size_t to = from + SIDE_LEAST; to <= all; to++) {
			double n = (double)(to - from), gap;

			if (to < all && all - to < SIDE_LEAST)
				continue;
			gap = gap_of(sums, all, from, to);
			if (gap * sqrt(n * ((double)all - n)) <= most)
				continue;
			most = gap * sqrt(n * ((double)all - n));
			best = (struct stretch){ from, to, gap };
		}
	return best;
}

/* Values of points, without those in [from, to) of `but`. */
static size_t take_values(const struct points *points, struct stretch of, struct stretch but,
			  double *values)
{
	size_t count = 0;

	for (size_t i = of.from; i < of.to; i++)
		if (i < but.from || i >= but.to)
			values[count++] = points->value[i];
	return count;
}

static size_t take_inside(const struct points *points, struct stretch in, double *values)
{
	return take_values(points, in, (struct stretch){ .to = 0 }, values);
}

static size_t take_outside(const struct points *points, struct stretch in, double *values)
{
	return take_values(points, (struct stretch){ .to = points->count }, in, values);
}

/* Three of four are longer than nine of ten of the others. */
static bool is_beyond_spread(const struct points *points, struct stretch in)
{
	double inside[POINTS_MAX], outside[POINTS_MAX];
	size_t in_count = take_inside(points, in, inside),
	       out_count = take_outside(points, in, outside);

	return stats_select(inside, in_count, in_count / 4) >
	       stats_select(outside, out_count, (out_count * 9 - 1) / 10);
}

/*
 * Typical: single values that are far from the others count as the farthest that are not. A few pauses of a second hide
 * what all the others have.
 */
static struct stats_sample sample_of(double *values, size_t count, bool is_typical)
{
	double sorted[POINTS_MAX], median, most;

	if (!is_typical)
		return stats_series(values, count);
	memcpy(sorted, values, count * sizeof(*values));
	median = stats_median(sorted, count);
	for (size_t i = 0; i < count; i++)
		sorted[i] = fabs(values[i] - median);
	most = distance_of_typical * stats_median(sorted, count);
	for (size_t i = 0; i < count; i++)
		values[i] = fmin(fmax(values[i], median - most), median + most);
	return stats_series(values, count);
}

/* By how much those inside exceed either side, with the error of that. */
static void compare_sides(const struct points *points, struct stretch in, bool is_typical,
			  double *gap, double *error)
{
	struct stretch sides[2] = { { .to = in.from }, { .from = in.to, .to = points->count } };
	double values[POINTS_MAX];
	struct stats_sample inside = sample_of(values, take_inside(points, in, values), is_typical);
	struct stats_sample outside =
		sample_of(values, take_outside(points, in, values), is_typical);

	*error = hypot(inside.error, outside.error);
	*gap = INFINITY;
	for (int i = 0; i < 2; i++)
		if (sides[i].from < sides[i].to) {
			size_t count = take_inside(points, sides[i], values);

			*gap = fmin(*gap, inside.mean - sample_of(values, count, is_typical).mean);
		}
}

/* With the same work: iterations with other amounts of data are another phase of the program. */
static bool is_same_work(const struct iterations *iterations, const struct slow_rise *rise)
{
	double sums[2] = { 0 }, counts[2] = { 0 };

	for (size_t i = 0; i < iterations->count; i++) {
		bool is_inside = i >= rise->first && i < rise->end;

		if (!is_regular(&iterations->list[i]))
			continue;
		sums[is_inside] += (double)iterations->list[i].bytes;
		counts[is_inside]++;
	}
	return fabs(sums[1] / counts[1] - sums[0] / counts[0]) <=
	       bytes_alike * fmax(sums[0] / counts[0], sums[1] / counts[1]);
}

static bool has_on_each_side(const struct points *points, struct stretch in, size_t least)
{
	return in.to - in.from >= least && in.from >= least &&
	       (in.to == points->count || points->count - in.to >= least);
}

/* The spread of a few is known less well. */
static double errors_needed(const struct points *points, struct stretch in)
{
	return has_on_each_side(points, in, SURE_LEAST)
		       ? errors_of_change
		       : stats_student_quantile(chance_of_change, (double)points->count - 2);
}

void slow_find_rise(const struct slow_search *search, struct slow_rise *rise)
{
	const struct iterations *iterations = &search->report->iterations;
	struct points points;
	double gap, error;
	struct stretch in;

	*rise = (struct slow_rise){ .is_found = false };
	if (!slow_has_iterations(search))
		return;
	take_points(&points, iterations);
	in = find_stretch(&points);
	if (in.to == in.from)
		return;
	for (int is_typical = 0; is_typical <= has_on_each_side(&points, in, TYPICAL_LEAST);
	     is_typical++) {
		compare_sides(&points, in, is_typical, &gap, &error);
		if (gap < log1p(longer_that_matters) + errors_needed(&points, in) * error)
			continue;
		if (!rise->is_found) {
			rise->gap = gap;
			rise->error = error;
		}
		rise->is_found = true;
		rise->is_clear |= 1 - exp(errors_of_clear * error - gap) >= cost_that_is_clear;
	}
	if (!rise->is_found)
		return;
	rise->first = points.first[in.from];
	rise->end = points.end[in.to - 1];
	rise->span.from_ns = iterations->list[rise->first].start_ns;
	if (in.to < points.count)
		rise->span.until_ns = iterations->list[rise->end - 1].end_ns;
	rise->is_clear |=
		1 - exp(-rise->gap) >= cost_that_is_clear && is_beyond_spread(&points, in);
	rise->is_clear &= is_same_work(iterations, rise);
}

/* ---- the verdict -------------------------------------------------------------------------------- */

enum longer_cause { LONGER_UNKNOWN, LONGER_COMPUTE, LONGER_COMMUNICATION };
static const char *const longer_titles[] = {
	[LONGER_UNKNOWN] = ": cause not visible",
	[LONGER_COMPUTE] = "; time in communication did not grow",
	[LONGER_COMMUNICATION] = ": communication takes longer",
};

/* Of what iterations take longer. */
static const double busy_that_explains = 0.2, busy_that_is_all = 0.8;
static const double sure_of_rise = 0.95;

/* Mean time of an iteration in communication, as far as operations are timed by the GPU; NAN: none is. */
static double mean_busy(const struct iterations *iterations, const struct slow_rise *rise,
			bool is_inside)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < iterations->count; i++) {
		const struct iteration *one = &iterations->list[i];

		if (!is_regular(one) || one->timed == 0 ||
		    (i >= rise->first && i < rise->end) != is_inside)
			continue;
		sum += (double)one->busy_ns * (double)one->ops / (double)one->timed;
		known++;
	}
	return known >= SIDE_LEAST ? sum / (double)known : NAN;
}

static size_t count_regular(const struct iterations *iterations, size_t from, size_t end)
{
	size_t count = 0;

	for (size_t i = from; i < end; i++)
		count += is_regular(&iterations->list[i]);
	return count;
}

static void tell_iterations(const struct slow_search *search, struct verdict *verdict,
			    const struct slow_rise *rise)
{
	const struct iterations *iterations = &search->report->iterations;
	size_t inside = count_regular(iterations, rise->first, rise->end);
	size_t before = count_regular(iterations, 0, rise->first);
	size_t after = count_regular(iterations, rise->end, iterations->count);

	if (rise->span.until_ns > 0)
		verdict_evidence(
			verdict, "%zu iterations are compared with %zu before and %zu after, %s.",
			inside, before, after, slow_when(search->report, &rise->span).text);
	else
		verdict_evidence(verdict, "%zu iterations are compared with the %zu before, %s.",
				 inside, before, slow_when(search->report, &rise->span).text);
}

/* What was compared and is not the reason, and what was not. */
static void tell_ruled_out(const struct slow_search *search, struct verdict *verdict,
			   bool is_lateness_judged)
{
	const struct slow_compared *compared = &search->compared;

	if (compared->has_net || compared->has_nvlink)
		verdict_evidence(verdict, "Ruled out: slower transfers %s.",
				 compared->has_net && compared->has_nvlink
					 ? "between nodes or inside nodes"
				 : compared->has_net ? "between nodes"
						     : "inside nodes");
	if (is_lateness_judged)
		verdict_evidence(verdict, "Ruled out: a straggler. No rank is late for the timed "
					  "collectives.");
	else if (!tally_is_by_network(&search->report->total))
		verdict_missing(verdict, "A straggler or a slow NVLink may be the cause: too few "
					 "calls are timed to tell.");
}

/* If nobody is late. longer_busy_ns: of longer_ns, in communication; NAN unknown. */
static enum longer_cause cause_of(double longer_busy_ns, double longer_ns)
{
	return longer_busy_ns < busy_that_explains * longer_ns ? LONGER_COMPUTE
	       : longer_busy_ns > busy_that_is_all * longer_ns ? LONGER_COMMUNICATION
							       : LONGER_UNKNOWN;
}

static void advise_communication(const struct slow_search *search, struct verdict *verdict)
{
	verdict_advice(verdict, "Find out which calls became slower, and when.");
	verdict_advice(verdict, "$ ringside report RECORDING");
	if (search->compared.has_net || search->compared.has_nvlink) {
		verdict_advice(verdict,
			       "Ranks may wait for each other, and not always for the same one: "
			       "pin threads, balance batches.");
		return;
	}
	verdict_advice(verdict,
		       "Look for other jobs on the same links, and for errors of NICs and NVLink.");
	verdict_advice(verdict, "$ ssh NODE nvidia-smi nvlink -e");
}

static void advise(const struct slow_search *search, struct verdict *verdict,
		   enum longer_cause cause)
{
	const struct tally_row *total = &search->report->total;

	if (cause == LONGER_COMMUNICATION) {
		advise_communication(search, verdict);
		return;
	}
	if (cause == LONGER_UNKNOWN && tally_gpu_timed(total) * 10 < total->calls * 9) {
		verdict_advice(verdict, "Times from the GPU would show the cause.");
		slow_advise_times(search, verdict);
	}
	verdict_advice(verdict,
		       "%s ranks compute longer: check GPU clocks and power caps, the batch size "
		       "and data loading.",
		       cause == LONGER_COMPUTE ? "All" : "If all");
	verdict_advice(verdict, "$ ssh NODE nvidia-smi -q -d PERFORMANCE,POWER,CLOCK");
}

/* Pauses that come and go hit some iterations in a row by chance. */
static bool is_by_chance(const struct slow_search *search, const struct slow_rise *rise,
			 const struct verdict *verdict)
{
	return verdict->for_ns < SLOW_BRIEF_NS &&
	       count_regular(&search->report->iterations, rise->first, rise->end) < TYPICAL_LEAST;
}

static void tell_rise(struct slow_search *search, const struct slow_rise *rise)
{
	const struct timeline_report *report = search->report;
	const struct iterations *iterations = &report->iterations;
	double busy = mean_busy(iterations, rise, true),
	       busy_then = mean_busy(iterations, rise, false);
	bool is_over = slow_is_over(search, rise->span.until_ns > 0);
	bool is_judged = report->stragglers.jobs[search->group].is_judged &&
			 report->stragglers.late_matches > 0 &&
			 !tally_is_by_network(&report->total);
	double longer = (double)iterations->median_ns * rise->gap;
	enum longer_cause cause = is_judged ? cause_of(busy - busy_then, longer) : LONGER_UNKNOWN;
	struct verdict *verdict = slow_verdict(search, VERDICT_BELOW_EXPECTED, SLOW_PAST);

	verdict_title(verdict, "iterations %s %.0f%% longer than before%s",
		      rise->span.until_ns > 0 ? "took" : "take", 100 * expm1(rise->gap),
		      longer_titles[cause]);
	tell_iterations(search, verdict, rise);
	if (!isnan(busy) && !isnan(busy_then))
		verdict_evidence(verdict, "Communication takes %s of an iteration, %s before.",
				 units_of_ns(busy).text, units_of_ns(busy_then).text);
	tell_ruled_out(search, verdict, is_judged);
	verdict->confidence = cause != LONGER_UNKNOWN ? 0.9 : 0.5;
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#longer-iterations");
	verdict->percent = 100 * expm1(rise->gap);
	verdict->victims = report->job.groups[search->group].known_ranks;
	slow_fill_span(verdict, report, &rise->span);
	slow_fill_cost(search, verdict,
		       (1 - exp(-rise->gap)) * (double)verdict->for_ns * verdict->victims);
	slow_fill_measured(
		search, verdict, &rise->span,
		(struct slow_estimate){ 1 - exp(-rise->gap), exp(-rise->gap) * rise->error });
	if (!rise->is_clear || is_over || slow_is_brief(search, verdict) ||
	    is_by_chance(search, rise, verdict))
		verdict->severity = VERDICT_NOTE;
	advise(search, verdict, cause);
	slow_fill_missing(search, verdict);
	/* That it is slower is certain, also where nothing shows why. */
	if (rise->is_clear && cause != LONGER_COMPUTE)
		verdict->confidence = sure_of_rise;
}

/* Is there a verdict that says why, or a note that something is over or has only begun and costs about as much? */
static bool is_explained(const struct slow_search *search, const struct slow_rise *rise)
{
	double cost_percent = 100 * (1 - exp(-rise->gap));

	for (size_t i = search->first; i < search->verdicts->count; i++) {
		const struct verdict *verdict = &search->verdicts->list[i];

		if (verdict_is_slow(verdict->class) &&
		    (!rise->is_clear || verdict->severity >= VERDICT_WARNING ||
		     verdict->cost_percent * 2 >= cost_percent))
			return true;
	}
	return false;
}

void slow_longer(struct slow_search *search, const struct slow_rise *rise)
{
	if (rise->is_found && search->report->stragglers.jobs != NULL &&
	    !is_explained(search, rise))
		tell_rise(search, rise);
}
