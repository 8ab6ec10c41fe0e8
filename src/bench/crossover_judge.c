/* Who is best at each size, how good NCCL's own choice was there, and which curves cross. */
#include "bench/crossover_parts.h"

#include <stdlib.h>

/* ---- all pairs ------------------------------------------------------------------------------- */

enum { CROSSINGS_A_PAIR = 4 };

/* Curves that stand for a whole algorithm: its envelope, or its only curve. */
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

static bool is_candidate(const struct crossover_curve *curve)
{
	return !curve->is_own && !curve->is_envelope;
}

static void find_best(const struct crossover *crossover, struct crossover_size *size)
{
	const struct crossover_point *best = NULL, *second = NULL;

	size->best = size->second = SIZE_MAX;
	for (size_t c = 0; c < crossover->curve_count; c++) {
		const struct crossover_point *here =
			crossover_point_at(&crossover->curves[c], size->bytes);

		if (here == NULL || !is_candidate(&crossover->curves[c]))
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

		if (here && here != best && is_candidate(&crossover->curves[c]) &&
		    !crossover_is_clear(best, here))
			size->is_best_clear = false;
	}
}

/* NCCL's own choice against the best one. */
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
	/* What NCCL took itself cannot be a better choice, whatever else forcing it changed. */
	is_same = own->chosen_algorithm != 0 &&
		  own->chosen_algorithm == crossover->curves[size->best].algorithm &&
		  own->chosen_protocol == crossover->curves[size->best].protocol;
	size->is_regret_clear = crossover_is_clear(best, own) && !is_same;
	size->is_same_slower = crossover_is_clear(best, own) && is_same;
}

enum status crossover_judge(struct crossover *crossover)
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
