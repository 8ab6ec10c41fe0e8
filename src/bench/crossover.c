/*
 * Curves by algorithm and protocol, where they cross, what NCCL chose, and advice.
 *
 * Where two curves cross: at each size that both have, one is clearly faster or neither is; a crossing is between
 * the last size where the one is faster and the first where the other is. Between sizes, ln(time) is linear in
 * ln(bytes): the point is where the medians intersect, the interval where the best case of one intersects the worst
 * case of the other, both ways.
 */
#include "bench/crossover.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/search.h"
#include "common/text.h"

#define CROSSOVER_LEAST 0.03 /* smaller differences are never reported */

/* Shared by the parts of crossover. */

/* Whether `fast` is faster beyond noise. */
static inline bool crossover_is_clear(const struct crossover_point *fast,
				      const struct crossover_point *slow)
{
	return fast->high_ns < slow->low_ns &&
	       slow->median_ns >= fast->median_ns * (1 + CROSSOVER_LEAST);
}

/* ---- one size -------------------------------------------------------------------------------- */

/* Both curves at one size: differences of ln(time), first minus second. */
struct difference {
	double where; /* ln(bytes) */
	double middle;
	double low;
	double high;
	int clear; /* -1: the first is faster; 1: the second; 0: neither */
};

/* NULL: not measured at this size, or with wrong results. */
static const struct crossover_point *crossover_point_at(const struct crossover_curve *curve,
							uint64_t bytes)
{
	size_t at = SEARCH_FIRST(i, curve->count, curve->points[i].bytes >= bytes);

	if (at == curve->count || curve->points[at].bytes != bytes || curve->points[at].wrong)
		return NULL;
	return &curve->points[at];
}

static bool curves_compare(const struct crossover_point *a, const struct crossover_curve *second,
			   struct difference *difference)
{
	const struct crossover_point *b = crossover_point_at(second, a->bytes);

	if (a->wrong || b == NULL)
		return false;
	difference->where = log((double)a->bytes);
	difference->middle = log(a->median_ns / b->median_ns);
	difference->low = log(a->low_ns / b->high_ns);
	difference->high = log(a->high_ns / b->low_ns);
	difference->clear = crossover_is_clear(a, b) ? -1 : crossover_is_clear(b, a) ? 1 : 0;
	return true;
}

/* ---- between sizes --------------------------------------------------------------------------- */

enum line { LINE_MIDDLE = 0, LINE_LOW = 1, LINE_HIGH = 2 };

static double difference_value(const struct difference *difference, enum line line)
{
	return line == LINE_MIDDLE ? difference->middle
	       : line == LINE_LOW  ? difference->low
				   : difference->high;
}

/*
 * Where a line changes sign, between differences[0] and differences[count - 1]: halfway between the first and the last
 * time it does.
 */
static double zero_of(const struct difference *differences, size_t count, enum line line,
		      int before)
{
	double first = 0, last = 0;
	bool is_found = false;

	for (size_t i = 0; i + 1 < count; i++) {
		double from = difference_value(&differences[i], line) * before;
		double to = difference_value(&differences[i + 1], line) * before, here;

		if ((from > 0) == (to > 0) || from == to)
			continue;
		here = differences[i].where +
		       (differences[i + 1].where - differences[i].where) * from / (from - to);
		first = is_found ? first : here;
		last = here;
		is_found = true;
	}
	return is_found ? (first + last) / 2
			: (differences[0].where + differences[count - 1].where) / 2;
}

static void curves_cross(struct crossover_crossing *crossing, const struct difference *differences,
			 size_t count)
{
	int before = differences[0].clear;
	/* If the difference rises, the upper line crosses 0 first; if it falls, the lower one. */
	double one = zero_of(differences, count, before < 0 ? LINE_HIGH : LINE_LOW, before);
	double other = zero_of(differences, count, before < 0 ? LINE_LOW : LINE_HIGH, before);

	crossing->answer = CROSSOVER_CROSSES;
	crossing->first = before < 0 ? 0 : 1;
	crossing->second = before < 0 ? 1 : 0;
	crossing->bytes = exp(zero_of(differences, count, LINE_MIDDLE, before));
	crossing->low_bytes = exp(fmin(one, other));
	crossing->high_bytes = exp(fmax(one, other));
	crossing->low_bytes = fmin(crossing->low_bytes, crossing->bytes);
	crossing->high_bytes = fmax(crossing->high_bytes, crossing->bytes);
}

/* ---- two curves ------------------------------------------------------------------------------ */

/* Every change of the clearly faster curve. */
static size_t find_changes(const struct difference *differences, size_t count,
			   struct crossover_crossing *found, size_t room)
{
	size_t changes = 0, last = SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		if (differences[i].clear == 0)
			continue;
		if (last != SIZE_MAX && differences[i].clear != differences[last].clear) {
			if (changes < room)
				curves_cross(&found[changes], differences + last, i - last + 1);
			changes++;
		}
		last = i;
	}
	return changes;
}

static enum crossover_answer no_crossing(const struct difference *differences, size_t count)
{
	if (count < 2)
		return CROSSOVER_NO_DATA;
	for (size_t i = 0; i < count; i++)
		if (differences[i].clear != 0)
			return differences[i].clear < 0 ? CROSSOVER_FIRST_WINS
							: CROSSOVER_SECOND_WINS;
	return CROSSOVER_ALIKE;
}

static void find_most(const struct difference *differences, size_t count,
		      struct crossover_crossing *crossing)
{
	crossing->most_ratio = 1;
	for (size_t i = 0; i < count; i++)
		if (differences[i].clear != 0 &&
		    exp(fabs(differences[i].middle)) > crossing->most_ratio) {
			crossing->most_ratio = exp(fabs(differences[i].middle));
			crossing->most_bytes = (uint64_t)llround(exp(differences[i].where));
		}
}

size_t crossover_cross(const struct crossover_curve *first, const struct crossover_curve *second,
		       struct crossover_crossing *found, size_t room)
{
	struct difference *differences = calloc(first->count + 1, sizeof(*differences));
	size_t count = 0, changes = 0;

	if (differences == NULL || room == 0) {
		free(differences);
		return 0;
	}
	memset(found, 0, room * sizeof(*found));
	found[0].second = 1;
	for (size_t i = 0; i < first->count; i++)
		count += curves_compare(&first->points[i], second, &differences[count]);
	changes = find_changes(differences, count, found, room);
	if (changes == 0)
		found[0].answer = no_crossing(differences, count);
	for (size_t i = 0; i < room && i < (changes ? changes : 1); i++) {
		find_most(differences, count, &found[i]);
		found[i].is_repeated = changes > 1;
	}
	free(differences);
	return changes ? changes : 1;
}

/* The best curve at each size, how good NCCL's choice was there, and which curves cross. */

/* ---- all pairs ------------------------------------------------------------------------------- */

enum { CROSSINGS_A_PAIR = 4 };

/* Curves that represent a whole algorithm: its envelope, or its only curve. */
static bool stands_for_algorithm(const struct crossover *crossover, size_t at)
{
	const struct crossover_curve *curve = &crossover->curves[at];

	if (curve->is_own || curve->algorithm == 0)
		return false;
	if (curve->is_envelope)
		return true;
	for (size_t i = 0; i < crossover->curve_count; i++)
		if (crossover->curves[i].is_envelope &&
		    crossover->curves[i].algorithm == curve->algorithm)
			return false;
	return true;
}

static bool is_worth_a_look(const struct crossover *crossover, size_t a, size_t b)
{
	const struct crossover_curve *first = &crossover->curves[a];
	const struct crossover_curve *second = &crossover->curves[b];

	if (stands_for_algorithm(crossover, a) && stands_for_algorithm(crossover, b))
		return true;
	return !first->is_own && !second->is_own && !first->is_envelope && !second->is_envelope &&
	       first->algorithm == second->algorithm;
}

static enum status find_crossings(struct crossover *crossover)
{
	size_t curves = crossover->curve_count, room = 0;

	for (size_t a = 0; a < curves; a++)
		for (size_t b = a + 1; b < curves; b++)
			room += is_worth_a_look(crossover, a, b) ? CROSSINGS_A_PAIR : 0;
	crossover->crossings = calloc(room + 1, sizeof(*crossover->crossings));
	if (crossover->crossings == NULL)
		return ERR_NO_SPACE;
	for (size_t a = 0; a < curves; a++)
		for (size_t b = a + 1; b < curves; b++) {
			struct crossover_crossing *to =
				&crossover->crossings[crossover->crossing_count];
			size_t count;

			if (!is_worth_a_look(crossover, a, b))
				continue;
			count = crossover_cross(&crossover->curves[a], &crossover->curves[b], to,
						CROSSINGS_A_PAIR);
			if (count == 0)
				return ERR_NO_SPACE;
			count = count < CROSSINGS_A_PAIR ? count : CROSSINGS_A_PAIR;
			for (size_t i = 0; i < count; i++) {
				to[i].first = to[i].first == 0 ? a : b;
				to[i].second = to[i].second == 0 ? a : b;
			}
			crossover->crossing_count += count;
		}
	return OK;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The smallest size above `above` that any curve has; 0: none. */
static uint64_t next_size(const struct crossover *crossover, uint64_t above)
{
	uint64_t next = UINT64_MAX;

	for (size_t c = 0; c < crossover->curve_count; c++)
		for (size_t p = 0; p < crossover->curves[c].count; p++)
			if (crossover->curves[c].points[p].bytes > above &&
			    crossover->curves[c].points[p].bytes < next)
				next = crossover->curves[c].points[p].bytes;
	return next == UINT64_MAX ? 0 : next;
}

static void find_best(const struct crossover *crossover, struct crossover_size *size)
{
	const struct crossover_point *best = NULL, *second = NULL;

	size->best = size->second = SIZE_MAX;
	for (size_t c = 0; c < crossover->curve_count; c++) {
		const struct crossover_point *here =
			crossover_point_at(&crossover->curves[c], size->bytes);

		if (here == NULL || !crossover_is_forced(&crossover->curves[c]))
			continue;
		if (best == NULL || here->median_ns < best->median_ns) {
			second = best;
			size->second = size->best;
			best = here;
			size->best = c;
		} else if (second == NULL || here->median_ns < second->median_ns) {
			second = here;
			size->second = c;
		}
	}
	if (best == NULL)
		return;
	size->best_ns = best->median_ns;
	size->is_best_clear = second != NULL;
	for (size_t c = 0; c < crossover->curve_count; c++) {
		const struct crossover_point *here =
			crossover_point_at(&crossover->curves[c], size->bytes);

		if (here && here != best && crossover_is_forced(&crossover->curves[c]) &&
		    !crossover_is_clear(best, here))
			size->is_best_clear = false;
	}
}

/* NCCL's choice compared with the best. */
static void find_regret(const struct crossover *crossover, struct crossover_size *size)
{
	const struct crossover_point *own = NULL, *best = NULL;
	bool is_same;

	if (crossover->own != SIZE_MAX)
		own = crossover_point_at(&crossover->curves[crossover->own], size->bytes);
	if (own == NULL)
		return;
	size->has_own = true;
	size->own_ns = own->median_ns;
	size->own_algorithm = own->chosen_algorithm;
	size->own_protocol = own->chosen_protocol;
	if (size->best == SIZE_MAX)
		return;
	best = crossover_point_at(&crossover->curves[size->best], size->bytes);
	size->regret = own->median_ns / best->median_ns;
	size->regret_low = own->low_ns / best->high_ns;
	size->regret_high = own->high_ns / best->low_ns;
	/* If NCCL chose the same, it is not a worse choice, whatever else forcing changed. */
	is_same = own->chosen_algorithm != 0 &&
		  own->chosen_algorithm == crossover->curves[size->best].algorithm &&
		  own->chosen_protocol == crossover->curves[size->best].protocol;
	size->is_regret_clear = crossover_is_clear(best, own) && !is_same;
	size->is_same_slower = crossover_is_clear(best, own) && is_same;
}

/* Fills sizes[] and crossings[] from the curves; ERR_NO_SPACE. */
static enum status crossover_judge(struct crossover *crossover)
{
	size_t room = 1;

	for (size_t c = 0; c < crossover->curve_count; c++)
		room += crossover->curves[c].count;
	crossover->sizes = calloc(room, sizeof(*crossover->sizes));
	if (crossover->sizes == NULL)
		return ERR_NO_SPACE;
	for (uint64_t bytes = next_size(crossover, 0); bytes != 0;
	     bytes = next_size(crossover, bytes)) {
		struct crossover_size *size = &crossover->sizes[crossover->size_count++];

		size->bytes = bytes;
		find_best(crossover, size);
		find_regret(crossover, size);
		if (size->is_regret_clear && size->regret > crossover->worst_regret)
			crossover->worst_regret = size->regret;
	}
	return find_crossings(crossover);
}

/*
 * Advice. A change is advised for a range of sizes if one forced curve is clearly faster than NCCL's choice at
 * every size; for a single size only if the difference is large. The cost at other sizes is reported, too, because
 * NCCL_ALGO and NCCL_PROTO apply to all sizes.
 */

/* Minimum clear difference at a single size. */
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

/* NULL: no room for more advice. */
static struct crossover_advice *PRINTF_LIKE(3, 4)
	advice_say(struct crossover *crossover, enum crossover_advice_kind kind, const char *format,
		   ...)
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
	double ratio_low; /* smallest lower bound */
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

/* Whether this curve is clearly better than NCCL's choice at this size. */
static bool is_better(const struct crossover *crossover, size_t curve, size_t size)
{
	const struct crossover_point *own = own_at(crossover, size);
	const struct crossover_point *other = curve_at(crossover, curve, size);

	return crossover->sizes[size].is_regret_clear && own && other &&
	       crossover_is_clear(other, own);
}

/* Ratios of a range; returns its total gain as a sum of logarithms. */
static double range_weigh(const struct crossover *crossover, struct range *range)
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

/* The curve with the largest gain starting at `first`. */
static struct range best_range(const struct crossover *crossover, size_t first)
{
	struct range best = { first, first, crossover->sizes[first].best, 1, 1 };
	double most = -1;

	for (size_t curve = 0; curve < crossover->curve_count; curve++) {
		struct range here = { .first = first, .last = first, .curve = curve };
		double gain;

		if (crossover->curves[curve].is_own || crossover->curves[curve].is_envelope ||
		    !is_better(crossover, curve, first))
			continue;
		while (here.last + 1 < crossover->size_count &&
		       is_better(crossover, curve, here.last + 1))
			here.last++;
		gain = range_weigh(crossover, &here);
		if (gain > most) {
			most = gain;
			best = here;
		}
	}
	return best;
}

/* ---- advice ---------------------------------------------------------------------------------- */

/* "(Ring+LL)": what NCCL chose there, if known and the same at all sizes. */
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
	advice =
		advice_say(crossover, CROSSOVER_CHANGE,
			   "%s, %s: %s is %.2fx faster than NCCL's choice%s; at least %.2fx beyond "
			   "noise.",
			   op_function_name(crossover->function), where,
			   crossover_curve_name(name, &crossover->curves[range->curve]),
			   range->ratio, took, range->ratio_low);
	if (advice == NULL)
		return;
	advice->from_bytes = from;
	advice->to_bytes = until;
	advice->curve = range->curve;
	advice->ratio = range->ratio;
	advice->ratio_low = range->ratio_low;
}

/* Where the same curve is clearly slower than NCCL's choice, and the worst ratio. */
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
	advice_say(crossover, CROSSOVER_CAUTION,
		   "Forcing %s for all sizes slows others down: at %s it takes %.2fx as long as "
		   "NCCL's choice.",
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
	advice_say(
		crossover, CROSSOVER_CAUTION,
		"NCCL_ALGO and NCCL_PROTO apply to every size and communicator of the process, and "
		"NCCL fails if the forced combination is not supported. A tuner plugin "
		"(NCCL_TUNER_PLUGIN) can change only these sizes.");
	advice_say(crossover, CROSSOVER_CAUTION,
		   "Measured with %d ranks: with other numbers of ranks and nodes the curves cross "
		   "elsewhere; measure there before setting anything.",
		   (int)crossover->nranks);
}

/* The largest ratio, clear or not: what "within" means here. */
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
		advice_say(crossover, CROSSOVER_UNSURE,
			   "No size has both NCCL's choice and another one to compare with.");
	else if (crossover->worst_regret > 1)
		advice_say(crossover, CROSSOVER_LEAVE,
			   "%s: NCCL's choice is slower than the best only at single sizes and by "
			   "little: leave NCCL_ALGO and NCCL_PROTO alone.",
			   function);
	else
		advice_say(crossover, CROSSOVER_LEAVE,
			   "%s: NCCL's choice is within %.0f%% of the best at all sizes, and no "
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
		advice_say(crossover, CROSSOVER_CAUTION,
			   "At %zu of %zu sizes NCCL chose what was fastest when forced, but was "
			   "up to %.2fx slower: forcing changes more than the choice (e.g. the "
			   "number of channels), or the host was busy.",
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

/* Fills advice[]. */
static void crossover_advise(struct crossover *crossover, const struct bench_run *run)
{
	size_t forced = 0;

	for (size_t c = 0; c < crossover->curve_count; c++)
		forced += !crossover->curves[c].is_own && !crossover->curves[c].is_envelope;
	if (has_wrong(crossover))
		advice_say(crossover, CROSSOVER_CAUTION,
			   "Some results were wrong: their points are excluded. Investigate the "
			   "hardware first.");
	if (crossover->own == SIZE_MAX)
		advice_say(crossover, CROSSOVER_UNSURE,
			   "NCCL's choice was not measured: nothing to compare with.");
	else if (forced == 0)
		advice_say(crossover, CROSSOVER_UNSURE,
			   "No algorithm or protocol was forced: nothing to compare with.");
	else if (advise_changes(crossover) > 0)
		say_dangers(crossover);
	else
		say_leave(crossover);
	say_same(crossover);
	if (run->is_gpu_shared)
		advice_say(crossover, CROSSOVER_CAUTION,
			   "Ranks shared a GPU and used sockets: this does not apply to hosts with "
			   "NVLink or a network.");
}

/* Cells become points, points become curves, curves of the same function and mode one crossover. */

enum { CALLS_FOR_INTERVAL = 8 }; /* with fewer, order statistics cannot reach 99% */

/* ---- names ----------------------------------------------------------------------------------- */

/* The spelling of NCCL's variables. */
static const char *algorithm_word(uint8_t algorithm)
{
	static const char *const words[OP_ALGORITHMS] = {
		[OP_TREE] = "Tree",
		[OP_RING] = "Ring",
		[OP_COLLNET_DIRECT] = "CollnetDirect",
		[OP_COLLNET_CHAIN] = "CollnetChain",
		[OP_NVLS] = "NVLS",
		[OP_NVLS_TREE] = "NVLSTree",
		[OP_PAT] = "PAT",
	};

	return algorithm < OP_ALGORITHMS && words[algorithm] ? words[algorithm]
							     : op_algorithm_name(algorithm);
}

static const char *protocol_word(uint8_t protocol)
{
	return protocol == OP_SIMPLE ? "Simple" : op_protocol_name(protocol);
}

const char *crossover_curve_name(char to[static CROSSOVER_NAME],
				 const struct crossover_curve *curve)
{
	if (curve->is_own || (curve->algorithm == 0 && curve->protocol == 0))
		snprintf(to, CROSSOVER_NAME, "NCCL's choice");
	else if (curve->algorithm == 0)
		snprintf(to, CROSSOVER_NAME, "%s", protocol_word(curve->protocol));
	else if (curve->protocol == 0)
		snprintf(to, CROSSOVER_NAME, "%s", algorithm_word(curve->algorithm));
	else
		snprintf(to, CROSSOVER_NAME, "%s+%s", algorithm_word(curve->algorithm),
			 protocol_word(curve->protocol));
	return to;
}

/* ---- sorting cells --------------------------------------------------------------------------- */

/* What must be equal for cells to be comparable. */
static int compare_family(const struct bench_cell *a, const struct bench_cell *b)
{
	return ORDER(a->function, b->function) ?: ORDER(a->mode, b->mode)
		?: ORDER(a->datatype, b->datatype) ?: ORDER(a->redop, b->redop)
		?: ORDER(a->is_in_place, b->is_in_place) ?: ORDER(a->root, b->root)
		?: ORDER(a->nranks, b->nranks);
}

/* Forced ones first, NCCL's choice last. */
static int compare_curve(const struct bench_cell *a, const struct bench_cell *b)
{
	bool is_a_own = a->algorithm == 0 && a->protocol == 0;
	bool is_b_own = b->algorithm == 0 && b->protocol == 0;

	return ORDER(is_a_own, is_b_own) ?: ORDER(a->algorithm, b->algorithm)
		?: ORDER(a->protocol, b->protocol);
}

static int compare_cells(const void *left, const void *right)
{
	const struct bench_cell *a = *(const struct bench_cell *const *)left;
	const struct bench_cell *b = *(const struct bench_cell *const *)right;

	return compare_family(a, b) ?: compare_curve(a, b) ?: ORDER(a->bytes, b->bytes)
		?: ORDER(a, b);
}

static bool is_usable(const struct bench_cell *cell)
{
	return cell->mode != BENCH_LOOP && cell->calls > 0 && cell->calls_of && cell->bytes > 0;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* The median of sorted times and its 99% interval. */
static void point_interval(struct crossover_point *point, double *times, size_t count)
{
	struct bench_figures figures = bench_figures_of(times, count);
	size_t outside = 0;

	if (count >= CALLS_FOR_INTERVAL)
		outside = (size_t)((double)count / 2 - 1.288 * sqrt((double)count));
	point->calls = count;
	point->median_ns = figures.p50;
	point->low_ns = times[outside];
	point->high_ns = times[count - 1 - outside];
}

static void merge_choice(uint8_t *known, uint8_t chosen, bool is_first)
{
	if (is_first)
		*known = chosen;
	else if (*known != chosen)
		*known = 0; /* differs between cells */
}

/* `count` cells of the same size, one per round. False: no times. */
static bool fill_point(struct crossover_point *point, const struct bench_cell *const *cells,
		       size_t count, enum bench_over over, double *times)
{
	double least_ns = INFINITY, most_ns = 0;
	size_t calls = 0;

	memset(point, 0, sizeof(*point));
	point->bytes = cells[0]->bytes;
	for (size_t i = 0; i < count; i++) {
		size_t here = bench_call_times(cells[i], BENCH_GPU, over, times + calls);
		double median_ns = bench_figures_of(times + calls, here).p50;

		if (here > 0) {
			least_ns = fmin(least_ns, median_ns);
			most_ns = fmax(most_ns, median_ns);
		}
		calls += here;
		if (cells[i]->wrong != BENCH_UNCHECKED)
			point->wrong += cells[i]->wrong;
		merge_choice(&point->chosen_algorithm, cells[i]->chosen_algorithm, i == 0);
		merge_choice(&point->chosen_protocol, cells[i]->chosen_protocol, i == 0);
	}
	if (calls == 0)
		return false;
	point_interval(point, times, calls);
	/*
	 * Calls within a round are more alike than rounds are: the interval must contain the median of every
	 * round.
	 */
	point->low_ns = fmin(point->low_ns, least_ns);
	point->high_ns = fmax(point->high_ns, most_ns);
	return true;
}

static size_t calls_of(const struct bench_cell *const *cells, size_t count)
{
	size_t calls = 0;

	for (size_t i = 0; i < count; i++)
		calls += cells[i]->calls;
	return calls;
}

/* `count` cells of one curve. */
static enum status fill_curve(struct crossover_curve *curve, const struct bench_cell *const *cells,
			      size_t count, enum bench_over over)
{
	double *times = calloc(calls_of(cells, count) + 1, sizeof(*times));

	curve->algorithm = cells[0]->algorithm;
	curve->protocol = cells[0]->protocol;
	curve->is_own = curve->algorithm == 0 && curve->protocol == 0;
	curve->points = calloc(count, sizeof(*curve->points));
	if (times == NULL || curve->points == NULL) {
		free(times);
		return ERR_NO_SPACE;
	}
	for (size_t at = 0, next; at < count; at = next) {
		for (next = at + 1; next < count && cells[next]->bytes == cells[at]->bytes;)
			next++;
		curve->count += fill_point(&curve->points[curve->count], cells + at, next - at,
					   over, times);
	}
	free(times);
	return OK;
}

/* ---- envelopes ------------------------------------------------------------------------------- */

/* The fastest of these curves at each size. */
static enum status fill_envelope(struct crossover_curve *envelope,
				 const struct crossover_curve *curves, size_t count)
{
	size_t room = 0;

	for (size_t i = 0; i < count; i++)
		room += curves[i].count;
	envelope->algorithm = curves[0].algorithm;
	envelope->is_envelope = true;
	envelope->points = calloc(room + 1, sizeof(*envelope->points));
	if (envelope->points == NULL)
		return ERR_NO_SPACE;
	for (uint64_t above = 0;;) {
		const struct crossover_point *best = NULL;
		uint64_t bytes = UINT64_MAX;

		for (size_t i = 0; i < count; i++)
			for (size_t p = 0; p < curves[i].count; p++)
				if (curves[i].points[p].bytes > above &&
				    curves[i].points[p].bytes < bytes)
					bytes = curves[i].points[p].bytes;
		if (bytes == UINT64_MAX)
			return OK;
		for (size_t i = 0; i < count; i++) {
			const struct crossover_point *here = crossover_point_at(&curves[i], bytes);

			if (here && (best == NULL || here->median_ns < best->median_ns))
				best = here;
		}
		if (best)
			envelope->points[envelope->count++] = *best;
		above = bytes;
	}
}

/* After the forced curves: one for every algorithm forced with several protocols. */
static enum status add_envelopes(struct crossover *crossover, size_t forced)
{
	enum status status = OK;

	for (size_t at = 0, next; at < forced && status == OK; at = next) {
		const struct crossover_curve *first = &crossover->curves[at];

		for (next = at + 1;
		     next < forced && crossover->curves[next].algorithm == first->algorithm;)
			next++;
		if (next - at > 1 && first->algorithm != 0)
			status = fill_envelope(&crossover->curves[crossover->curve_count++], first,
					       next - at);
	}
	return status;
}

/* ---- one function ---------------------------------------------------------------------------- */

/* Curves of `count` cells, in the order of compare_cells(). */
static enum status fill_curves(struct crossover *crossover, const struct bench_cell *const *cells,
			       size_t count, enum bench_over over)
{
	struct crossover_curve own = { 0 };
	enum status status = OK;

	for (size_t at = 0, next; at < count && status == OK; at = next) {
		struct crossover_curve *curve = &crossover->curves[crossover->curve_count];

		for (next = at + 1; next < count && compare_curve(cells[at], cells[next]) == 0;)
			next++;
		status = fill_curve(curve, cells + at, next - at, over);
		if (curve->is_own) {
			own = *curve;
			memset(curve, 0, sizeof(*curve));
		} else {
			crossover->curve_count++;
		}
	}
	if (status == OK)
		status = add_envelopes(crossover, crossover->curve_count);
	if (own.points) {
		crossover->own = crossover->curve_count;
		crossover->curves[crossover->curve_count++] = own;
	}
	return status;
}

static enum status crossover_fill(struct crossover *crossover, const struct bench_run *run,
				  const struct bench_cell *const *cells, size_t count,
				  enum bench_over over)
{
	enum status status;

	crossover->function = cells[0]->function;
	crossover->datatype = cells[0]->datatype;
	crossover->redop = cells[0]->redop;
	crossover->mode = cells[0]->mode;
	crossover->is_in_place = cells[0]->is_in_place;
	crossover->root = cells[0]->root;
	crossover->nranks = cells[0]->nranks;
	crossover->own = SIZE_MAX;
	crossover->worst_regret = 1;
	/* At most one curve per cell, and one envelope per two curves. */
	crossover->curves = calloc(count + count / 2 + 1, sizeof(*crossover->curves));
	if (crossover->curves == NULL)
		return ERR_NO_SPACE;
	status = fill_curves(crossover, cells, count, over);
	if (status == OK)
		status = crossover_judge(crossover);
	if (status == OK)
		crossover_advise(crossover, run);
	return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void crossover_set_init(struct crossover_set *set)
{
	memset(set, 0, sizeof(*set));
}

void crossover_set_release(struct crossover_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		for (size_t c = 0; c < set->all[i].curve_count; c++)
			free(set->all[i].curves[c].points);
		free(set->all[i].curves);
		free(set->all[i].sizes);
		free(set->all[i].crossings);
	}
	free(set->all);
	crossover_set_init(set);
}

static enum status fill_set(struct crossover_set *set, const struct bench_run *run,
			    const struct bench_cell **cells, size_t count, enum bench_over over)
{
	enum status status = OK;

	set->all = calloc(count, sizeof(*set->all));
	if (set->all == NULL)
		return ERR_NO_SPACE;
	qsort(cells, count, sizeof(*cells), compare_cells);
	for (size_t at = 0, next; at < count && status == OK; at = next) {
		for (next = at + 1; next < count && compare_family(cells[at], cells[next]) == 0;)
			next++;
		status = crossover_fill(&set->all[set->count++], run, cells + at, next - at, over);
	}
	return status;
}

enum status crossover_find(struct crossover_set *set, const struct bench_run *run,
			   enum bench_over over)
{
	const struct bench_cell **cells = calloc(run->cell_count + 1, sizeof(*cells));
	enum status status = ERR_UNKNOWN;
	size_t count = 0;

	crossover_set_init(set);
	if (cells == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < run->cell_count; i++) {
		if (run->cells[i].peers)
			continue;
		if (is_usable(&run->cells[i]))
			cells[count++] = &run->cells[i];
		else
			set->unusable++;
	}
	if (count > 0)
		status = fill_set(set, run, cells, count, over);
	free(cells);
	if (status == ERR_NO_SPACE)
		crossover_set_release(set);
	return status;
}
