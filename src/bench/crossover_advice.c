/*
 * From who is clearly faster where to what to do about it. A change is advised for a range of sizes
 * where one forced curve is clearly faster than NCCL's own choice at every size; a single size only
 * when the difference is large. What it would cost at other sizes is said with it, because
 * NCCL_ALGO and NCCL_PROTO know no sizes.
 */
#include "bench/crossover_parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"

/* One size alone has to differ by this much, beyond doubt. */
#define ALONE_LEAST 1.05

/* ---- words ----------------------------------------------------------------------------------- */

static const char *range_text(char *to, size_t size, uint64_t from, uint64_t until)
{
	char one[UNITS_TEXT], other[UNITS_TEXT];

	if (from == until)
		snprintf(to, size, "at %s", units_bytes(one, from));
	else
		snprintf(to, size, "from %s to %s", units_bytes(one, from),
			 units_bytes(other, until));
	return to;
}

static struct crossover_advice *say(struct crossover *crossover, enum crossover_advice_kind kind,
				    const char *format, ...) PRINTF_LIKE(3, 4);

/* NULL: enough was said. */
static struct crossover_advice *say(struct crossover *crossover, enum crossover_advice_kind kind,
				    const char *format, ...)
{
	struct crossover_advice *advice;
	va_list arguments;

	if (crossover->advice_count == CROSSOVER_ADVICE_MAX)
		return NULL;
	advice = &crossover->advice[crossover->advice_count++];
	advice->kind = kind;
	advice->curve = SIZE_MAX;
	va_start(arguments, format);
	vsnprintf(advice->text, sizeof(advice->text), format, arguments);
	va_end(arguments);
	return advice;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct range {
	size_t first; /* of sizes[] */
	size_t last;
	size_t curve;
	double ratio;	  /* geometric mean over the range */
	double ratio_low; /* least that is beyond doubt */
};

static const struct crossover_point *own_at(const struct crossover *crossover, size_t size)
{
	return crossover_point_at(&crossover->curves[crossover->own], crossover->sizes[size].bytes);
}

static const struct crossover_point *curve_at(const struct crossover *crossover, size_t curve,
					      size_t size)
{
	return crossover_point_at(&crossover->curves[curve], crossover->sizes[size].bytes);
}

/* Is this curve clearly better than what NCCL took at this size? */
static bool is_better(const struct crossover *crossover, size_t curve, size_t size)
{
	const struct crossover_point *own = own_at(crossover, size);
	const struct crossover_point *other = curve_at(crossover, curve, size);

	return crossover->sizes[size].is_regret_clear && own && other &&
	       crossover_is_clear(other, own);
}

/* How far to the right of `first` a curve stays better. */
static size_t reach(const struct crossover *crossover, size_t curve, size_t first)
{
	size_t last = first;

	while (last + 1 < crossover->size_count && is_better(crossover, curve, last + 1))
		last++;
	return last;
}

/* Figures of a range; what it saves, as a sum of logarithms. */
static double weigh(const struct crossover *crossover, struct range *range)
{
	double sum = 0;

	range->ratio_low = INFINITY;
	for (size_t size = range->first; size <= range->last; size++) {
		const struct crossover_point *own = own_at(crossover, size);
		const struct crossover_point *other = curve_at(crossover, range->curve, size);

		sum += log(own->median_ns / other->median_ns);
		range->ratio_low = fmin(range->ratio_low, own->low_ns / other->high_ns);
	}
	range->ratio = exp(sum / (double)(range->last - range->first + 1));
	return sum;
}

/* The curve that does most from `first` on. */
static struct range best_range(const struct crossover *crossover, size_t first)
{
	struct range best = { first, first, crossover->sizes[first].best, 1, 1 };
	double most = -1;

	for (size_t curve = 0; curve < crossover->curve_count; curve++) {
		struct range here = { .first = first, .curve = curve };
		double gain;

		if (crossover->curves[curve].is_own || crossover->curves[curve].is_envelope ||
		    !is_better(crossover, curve, first))
			continue;
		here.last = reach(crossover, curve, first);
		gain = weigh(crossover, &here);
		if (gain > most) {
			most = gain;
			best = here;
		}
	}
	return best;
}

/* ---- advice ---------------------------------------------------------------------------------- */

/* "(Ring+LL)": what NCCL took there, where it is known and the same all over. */
static void took_text(char *to, size_t size, const struct crossover *crossover,
		      const struct range *range)
{
	const struct crossover_size *first = &crossover->sizes[range->first];
	struct crossover_curve curve = { .algorithm = first->own_algorithm,
					 .protocol = first->own_protocol };
	char name[CROSSOVER_NAME];

	to[0] = '\0';
	if (first->own_algorithm == 0)
		return;
	for (size_t i = range->first; i <= range->last; i++)
		if (crossover->sizes[i].own_algorithm != first->own_algorithm ||
		    crossover->sizes[i].own_protocol != first->own_protocol)
			return;
	snprintf(to, size, " (%s)", crossover_curve_name(name, &curve));
}

static void advise_change(struct crossover *crossover, const struct range *range)
{
	uint64_t from = crossover->sizes[range->first].bytes;
	uint64_t until = crossover->sizes[range->last].bytes;
	char where[3 * UNITS_TEXT], name[CROSSOVER_NAME], took[CROSSOVER_NAME + 4];
	struct crossover_advice *advice;

	range_text(where, sizeof(where), from, until);
	took_text(took, sizeof(took), crossover, range);
	advice = say(crossover, CROSSOVER_CHANGE,
		     "%s, %s: %s is %.2f times as fast as what NCCL took%s; at least %.2f times "
		     "beyond doubt.",
		     op_function_name(crossover->function), where,
		     crossover_curve_name(name, &crossover->curves[range->curve]), range->ratio,
		     took, range->ratio_low);
	if (advice == NULL)
		return;
	advice->from_bytes = from;
	advice->to_bytes = until;
	advice->curve = range->curve;
	advice->ratio = range->ratio;
	advice->ratio_low = range->ratio_low;
}

/* Where the same curve is clearly slower than NCCL's choice, and by how much at the worst. */
static void warn_of_others(struct crossover *crossover, const struct range *range)
{
	char name[CROSSOVER_NAME], where[UNITS_TEXT];
	double worst = 1;
	size_t at = SIZE_MAX;

	for (size_t size = 0; size < crossover->size_count; size++) {
		const struct crossover_point *own = own_at(crossover, size);
		const struct crossover_point *other = curve_at(crossover, range->curve, size);

		if (own && other && crossover_is_clear(own, other) &&
		    other->median_ns / own->median_ns > worst) {
			worst = other->median_ns / own->median_ns;
			at = size;
		}
	}
	if (at == SIZE_MAX)
		return;
	say(crossover, CROSSOVER_CAUTION,
	    "Forcing %s for all sizes costs elsewhere: at %s it takes %.2f times as long as NCCL's "
	    "choice.",
	    crossover_curve_name(name, &crossover->curves[range->curve]),
	    units_bytes(where, crossover->sizes[at].bytes), worst);
}

static size_t advise_changes(struct crossover *crossover)
{
	size_t changes = 0;

	for (size_t size = 0; size < crossover->size_count; size++) {
		struct range range;

		if (!crossover->sizes[size].is_regret_clear)
			continue;
		range = best_range(crossover, size);
		size = range.last;
		if (range.first == range.last && range.ratio_low < ALONE_LEAST)
			continue;
		advise_change(crossover, &range);
		warn_of_others(crossover, &range);
		changes++;
	}
	return changes;
}

static void say_dangers(struct crossover *crossover)
{
	say(crossover, CROSSOVER_CAUTION,
	    "NCCL_ALGO and NCCL_PROTO hold for every size and communicator of the process, and "
	    "NCCL fails where what is forced cannot be done. A tuner plugin (NCCL_TUNER_PLUGIN) "
	    "can change these sizes alone.");
	say(crossover, CROSSOVER_CAUTION,
	    "Measured with %d ranks: with other numbers of ranks and nodes the curves cross "
	    "elsewhere; measure there before anything is set.",
	    (int)crossover->nranks);
}

/* The largest ratio at all, clear or not: what "as good as" means here. */
static void say_leave(struct crossover *crossover)
{
	const char *function = op_function_name(crossover->function);
	double most = 1;
	size_t compared = 0;

	for (size_t i = 0; i < crossover->size_count; i++)
		if (crossover->sizes[i].regret > 0 && !crossover->sizes[i].is_same_slower) {
			most = fmax(most, crossover->sizes[i].regret);
			compared++;
		}
	if (compared == 0)
		say(crossover, CROSSOVER_UNSURE,
		    "There is no size at which NCCL's own choice can be compared with another.");
	else if (crossover->worst_regret > 1)
		say(crossover, CROSSOVER_LEAVE,
		    "%s: NCCL's choice is slower than the best at single sizes only and by "
		    "little: leave NCCL_ALGO and NCCL_PROTO alone.",
		    function);
	else
		say(crossover, CROSSOVER_LEAVE,
		    "%s: NCCL's choice is within %.0f %% of the best everywhere, and no "
		    "difference is beyond noise: leave NCCL_ALGO and NCCL_PROTO alone.",
		    function, fmax(1, ceil((most - 1) * 100)));
}

static void say_same(struct crossover *crossover)
{
	size_t sizes = 0;
	double most = 1;

	for (size_t i = 0; i < crossover->size_count; i++)
		if (crossover->sizes[i].is_same_slower) {
			most = fmax(most, crossover->sizes[i].regret);
			sizes++;
		}
	if (sizes > 0)
		say(crossover, CROSSOVER_CAUTION,
		    "At %zu of %zu sizes NCCL took by itself what was fastest when forced, and was "
		    "up to %.2f times slower: forcing changed more than the choice (channels, for "
		    "one), or the machine was not quiet.",
		    sizes, crossover->size_count, most);
}

static bool has_wrong(const struct crossover *crossover)
{
	for (size_t c = 0; c < crossover->curve_count; c++)
		for (size_t p = 0; p < crossover->curves[c].count; p++)
			if (crossover->curves[c].points[p].wrong)
				return true;
	return false;
}

void crossover_advise(struct crossover *crossover, const struct bench_run *run)
{
	size_t forced = 0;

	for (size_t c = 0; c < crossover->curve_count; c++)
		forced += !crossover->curves[c].is_own && !crossover->curves[c].is_envelope;
	if (has_wrong(crossover))
		say(crossover, CROSSOVER_CAUTION,
		    "There were wrong results: points with such are left out, and the machine is "
		    "to be looked at before anything else.");
	if (crossover->own == SIZE_MAX)
		say(crossover, CROSSOVER_UNSURE,
		    "NCCL's own choice was not measured: there is nothing to compare with.");
	else if (forced == 0)
		say(crossover, CROSSOVER_UNSURE,
		    "No algorithm or protocol was forced: there is nothing to compare with.");
	else if (advise_changes(crossover) > 0)
		say_dangers(crossover);
	else
		say_leave(crossover);
	say_same(crossover);
	if (run->is_gpu_shared)
		say(crossover, CROSSOVER_CAUTION,
		    "Ranks shared a GPU and talked through sockets: this says nothing about a "
		    "machine with links.");
}
