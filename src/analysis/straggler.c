/*
 * From everything that stands out to the stragglers.
 *
 * A rank that waits for a slow one in one communicator is late for the next: it is explained by that one
 * and not named. Ranks of one host that are equally late are the host. If Sends and Recvs make a chain of
 * ranks (a pipeline), those arrive at a common collective one after the other even without a problem: such
 * collectives name no straggler.
 */
#include "analysis/straggler.h"
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "analysis/timeline_report.h"
#include "common/attributes.h"
#include "common/text.h"

enum { STRAGGLERS_MAX = 64 };

static void straggler_table_release(struct straggler_table *table)
{
	free(table->block_of);
	free(table->late_ns);
	free(table->wire_ns);
	free(table->wire_sum);
	free(table->mean_ns);
	free(table->least_ns);
	free(table->count);
	free(table->start_ns);
	free(table->end_ns);
	free(table->first_number);
	free(table->last_in);
	free(table->caused_ns);
	free(table->took_part);
	*table = (struct straggler_table){ .lane = NULL };
}

static bool table_allocate(struct straggler_table *table)
{
	size_t cells = (size_t)table->seats * table->blocks + 1;

	table->late_ns = calloc(cells, sizeof(*table->late_ns));
	table->wire_ns = calloc(cells, sizeof(*table->wire_ns));
	table->wire_sum = calloc(cells, sizeof(*table->wire_sum));
	table->mean_ns = calloc(table->blocks + 1, sizeof(*table->mean_ns));
	table->least_ns = calloc(table->blocks + 1, sizeof(*table->least_ns));
	table->count = calloc(table->blocks + 1, sizeof(*table->count));
	table->start_ns = calloc(table->blocks + 1, sizeof(*table->start_ns));
	table->end_ns = calloc(table->blocks + 1, sizeof(*table->end_ns));
	table->first_number = calloc(table->blocks + 1, sizeof(*table->first_number));
	table->last_in = calloc(table->seats + 1, sizeof(*table->last_in));
	table->caused_ns = calloc(cells, sizeof(*table->caused_ns));
	table->took_part = calloc(table->seats + 1, sizeof(*table->took_part));
	return table->late_ns && table->wire_ns && table->wire_sum && table->mean_ns &&
	       table->least_ns && table->count && table->start_ns && table->end_ns &&
	       table->first_number && table->last_in && table->caused_ns && table->took_part;
}

/* All its matches have (nearly) all ranks, so that no invisible rank was last. */
static bool chunk_is_usable(const struct match_brief *brief, uint32_t nranks)
{
	return brief->occupied != 0 && brief->fewest * 4 >= nranks * 3;
}

static enum status order_chunks(struct straggler_table *table, uint32_t nranks)
{
	const struct match_lane *lane = table->lane;
	struct match_order *order = calloc(lane->chunk_count + 1, sizeof(*order));
	uint32_t used = 0;

	table->block_of = calloc(lane->chunk_count + 1, sizeof(*table->block_of));
	if (order == NULL || table->block_of == NULL) {
		free(order);
		return ERR_NO_SPACE;
	}
	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		table->block_of[i] = UINT32_MAX;
		if (!chunk_is_usable(&lane->briefs[i], nranks))
			continue;
		order[used++] = (struct match_order){ lane->briefs[i].number, i };
		table->matches += (uint32_t)__builtin_popcount(lane->briefs[i].occupied);
	}
	match_order_sort(order, used);
	/* A chunk with few matches, at the ends, is merged with its neighbours. */
	table->blocks = used < STRAGGLER_BLOCKS ? used : STRAGGLER_BLOCKS;
	if (table->blocks < STRAGGLER_BLOCKS_LEAST)
		table->blocks = 0;
	for (uint32_t i = 0; i < used && table->blocks > 0; i++)
		table->block_of[order[i].chunk] = (uint32_t)((uint64_t)i * table->blocks / used);
	free(order);
	return OK;
}

static void add_chunk(struct straggler_table *table, const struct job *job,
		      const struct align *align, uint32_t chunk, uint32_t block)
{
	const struct match_lane *lane = table->lane;
	const struct job_comm *comm = &job->comms[lane->comm];

	if (table->count[block] == 0 || lane->briefs[chunk].number < table->first_number[block])
		table->first_number[block] = lane->briefs[chunk].number;

	for (uint32_t bits = lane->briefs[chunk].occupied; bits != 0; bits &= bits - 1) {
		const struct match_slot *slot = &lane->chunks[chunk]->slots[__builtin_ctz(bits)];
		uint32_t owner = job->seats[comm->seats[slot->owner]].process;
		uint64_t end_ns =
			align ? align_ns(align, owner, slot->end_ns & ~MATCH_END_ROUGH) : 0;

		table->count[block]++;
		table->mean_ns[block] += (double)slot->sum_ns / slot->count;
		table->least_ns[block] += match_has_spans(lane) ? (double)slot->sum_ns / slot->count
								: (double)slot->least_ns;
		if (!match_has_spans(lane))
			table->last_in[slot->last]++;
		if (slot->count > 1 && !match_has_spans(lane))
			table->caused_ns[(size_t)slot->last * table->blocks + block] +=
				(double)(slot->second_ns - slot->least_ns) * (slot->count - 1u);
		if (end_ns == 0)
			continue;
		if (table->start_ns[block] == 0 || end_ns < table->start_ns[block])
			table->start_ns[block] = end_ns;
		if (end_ns > table->end_ns[block])
			table->end_ns[block] = end_ns;
	}
}

static void add_parts(struct straggler_table *table, uint32_t seat)
{
	const struct match_seat *of = &table->lane->seats[seat];
	double *late = &table->late_ns[(size_t)seat * table->blocks];
	double *wire = &table->wire_ns[(size_t)seat * table->blocks];
	double *sum = &table->wire_sum[(size_t)seat * table->blocks];
	double matches[STRAGGLER_BLOCKS] = { 0 }, steps[STRAGGLER_BLOCKS] = { 0 };

	for (uint32_t i = 0; i < of->count; i++) {
		const struct match_part *part = &of->parts[i];
		uint32_t block = table->block_of[part->chunk];
		struct match_slice slice;

		if (block == UINT32_MAX || part->bits == 0)
			continue;
		slice = match_slice(table->lane, part->chunk, part->bits);
		/* Spans begin with the post, on all ranks alike: they do not show who is late. */
		if (!match_has_spans(table->lane))
			late[block] += slice.mean_ns - (double)part->sum_ns;
		matches[block] += slice.matches;
		if (part->wire_class == table->wire_class) {
			sum[block] += (double)part->send_net_ns;
			steps[block] += (double)part->send_steps;
		}
		table->took_part[seat] += slice.matches;
	}
	for (uint32_t b = 0; b < table->blocks; b++) {
		late[b] = matches[b] > 0 ? late[b] / matches[b] : NAN;
		wire[b] = steps[b] > 0 ? sum[b] / steps[b] : NAN;
	}
}

/* A block with few matches, where a lane begins or ends, is less reliable: left out. */
static void drop_thin_blocks(struct straggler_table *table)
{
	uint32_t good = 0;
	uint64_t kept = 0;

	for (uint32_t b = 0; b < table->blocks; b++) {
		bool is_thin = table->count[b] * 2 * table->blocks < (double)table->matches;

		good += !is_thin;
		kept += is_thin ? 0 : (uint64_t)table->count[b];
		for (uint32_t seat = 0; is_thin && seat < table->seats; seat++) {
			table->late_ns[(size_t)seat * table->blocks + b] = NAN;
			table->wire_ns[(size_t)seat * table->blocks + b] = NAN;
		}
	}
	if (good < STRAGGLER_BLOCKS_LEAST) {
		table->blocks = 0;
		table->matches = kept;
	}
}

/* Fewer than STRAGGLER_BLOCKS_LEAST blocks: tables are empty (blocks 0). */
static enum status straggler_table_make(struct straggler_table *table,
					const struct matches *matches,
					const struct match_lane *lane, const struct align *align)
{
	const struct job_comm *comm = &matches->job->comms[lane->comm];
	uint32_t nranks = comm->nranks > 0 ? (uint32_t)comm->nranks : comm->seat_count;
	enum status status;

	*table = (struct straggler_table){ .lane = lane, .seats = comm->seat_count };
	status = order_chunks(table, nranks);
	if (status == OK && !table_allocate(table))
		status = ERR_NO_SPACE;
	if (status == OK && table->blocks > 0) {
		for (uint32_t i = 0; i < lane->chunk_count; i++)
			if (table->block_of[i] != UINT32_MAX)
				add_chunk(table, matches->job, align, i, table->block_of[i]);
		table->wire_class = match_largest_class(lane, table->seats);
		for (uint32_t seat = 0; seat < table->seats; seat++)
			add_parts(table, seat);
		for (uint32_t b = 0; b < table->blocks; b++) {
			table->mean_ns[b] /= table->count[b];
			table->least_ns[b] /= table->count[b];
		}
		drop_thin_blocks(table);
	}
	if (status != OK)
		straggler_table_release(table);
	return status;
}

/* ---- a section that stands out --------------------------------------------------------------- */

enum { STRETCH_LEAST = 2 /* blocks */ };

/* Values that are there, of a section. */
static uint32_t take_stretch(double *there, const double *values, uint32_t from, uint32_t to)
{
	uint32_t count = 0;

	for (uint32_t b = from; b < to; b++)
		if (!isnan(values[b]))
			there[count++] = values[b];
	return count;
}

/* By the section's own spread from block to block (Student's t). */
static double chance_by_spread(const double *there, uint32_t count)
{
	struct stats_sample sample = stats_series(there, count);

	/* Even what never varies was measured only this often. */
	if (sample.error < sample.mean * 0.02)
		sample.error = sample.mean * 0.02;
	return count >= STRAGGLER_BLOCKS_LEAST
		       ? stats_student(sample.mean / sample.error, (double)count - 1)
		       : 1;
}

/*
 * The probability of a block that is as high, from those of the other seats. Beyond the highest of them (or what
 * matters at all) it falls with the square: tails are that heavy at most.
 */
static double share_above(const struct straggler_field *field, const double *own, double value,
			  double least)
{
	size_t low = 0, high = field->count, above, others = field->count;
	double highest = least;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (field->sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	above = field->count - low;
	for (uint32_t b = 0; b < field->blocks; b++) {
		others -= !isnan(own[b]);
		above -= own[b] >= value;
	}
	if (above > 0)
		return ((double)above + 1) / ((double)others + 1);
	for (size_t i = low; i-- > 0 && field->sorted[i] > highest;) {
		uint32_t b = 0;

		while (b < field->blocks && own[b] != field->sorted[i])
			b++;
		if (b == field->blocks)
			highest = field->sorted[i];
	}
	return highest * highest / (value * value) / ((double)others + 1);
}

/* That `above` of `count` blocks are this high, if each is with probability p. */
static double chance_of_count(uint32_t above, uint32_t count, double p)
{
	double odds = p < 1 ? p / (1 - p) : 0, term = pow(1 - p, count), sum = 0;

	if (p >= 1)
		return 1;
	for (uint32_t k = 0; k <= count; k++) {
		sum += k >= above ? term : 0;
		term *= odds * (count - k) / (k + 1);
	}
	return sum;
}

/* By how often others have such blocks: most of the section's are at least as high as its median, and all as
 * its lowest. No distribution is assumed: tails are heavy. */
static double chance_by_count(const struct straggler_field *field, const double *own,
			      const double *there, uint32_t count, double middle, double least)
{
	double lowest = there[0], by_middle, by_lowest;
	uint32_t above = 0;

	for (uint32_t i = 0; i < count; i++) {
		above += there[i] >= middle;
		lowest = fmin(lowest, there[i]);
	}
	by_middle = chance_of_count(above, count, share_above(field, own, middle, least));
	by_lowest = lowest >= least
			    ? chance_of_count(count, count, share_above(field, own, lowest, least))
			    : 1;
	return 2 * fmin(by_middle, by_lowest);
}

/* The best section of one seat, without the field's spread. own: its values. */
static struct straggler_stretch best_stretch(const struct straggler_field *field, const double *own,
					     uint32_t blocks, double least)
{
	struct straggler_stretch best = { .chance = 1 };
	double there[STRAGGLER_BLOCKS], some[STRAGGLER_BLOCKS];
	double sections = blocks * (blocks + 1.) / 2;

	for (uint32_t from = 0; from < blocks; from++) {
		/* One that begins or ends with a low block is not better than the one without it. */
		for (uint32_t to = from + STRETCH_LEAST; to <= blocks && own[from] >= least; to++) {
			uint32_t count;
			double middle, chance;

			if (!(own[to - 1] >= least))
				continue;
			count = take_stretch(there, own, from, to);
			if (count < STRETCH_LEAST)
				continue;
			memcpy(some, there, count * sizeof(*some));
			/* Lower median: most blocks are like that, or worse. */
			middle = stats_lower_middle(some, count);
			if (middle < least)
				continue;
			chance = chance_by_spread(there, count);
			if (field != NULL)
				chance = fmin(chance, chance_by_count(field, own, there, count,
								      middle, least));
			if (chance * sections >= best.chance)
				continue;
			best = (struct straggler_stretch){ .is_found = true,
							   .from = from,
							   .to = to,
							   .typical = middle,
							   .chance = chance * sections };
		}
	}
	return best;
}

struct straggler_stretch straggler_stretch(const double *values, uint32_t blocks, double least)
{
	return best_stretch(NULL, values, blocks, least);
}

/*
 * Several that are compared with each other show how much they differ without a problem: by single blocks, and
 * by their means over a section, which differ more if what happens lasts longer than a block.
 */

enum { FIELD_SEATS_LEAST = 4 };
static const double chance_accepted = 1e-4, doubt_accepted = 0.01, doubt_of_one_side = 0.05;
static const double clear_of_others = 4, clear_of_uneven = 1.5;
/* A median of deviations tells as much as the standard deviation of this share of them. */
static const double worth_of_middle = 0.37;
static const double normal_middle =
	0.6745; /* of a normal distribution: its median absolute value */

void straggler_field_release(struct straggler_field *field)
{
	free(field->sorted);
	free(field->levels);
	free(field->best);
	*field = (struct straggler_field){ .values = NULL };
}

enum status straggler_field_make(struct straggler_field *field, const double *values,
				 uint32_t seats, uint32_t blocks, double least)
{
	size_t cells = (size_t)seats * blocks;

	*field = (struct straggler_field){ .values = values, .seats = seats, .blocks = blocks };
	field->sorted = calloc(cells + 1, sizeof(*field->sorted));
	field->levels = calloc(seats + 1, sizeof(*field->levels));
	field->best = calloc(seats + 1, sizeof(*field->best));
	if (field->sorted == NULL || field->levels == NULL || field->best == NULL) {
		straggler_field_release(field);
		return ERR_NO_SPACE;
	}
	for (size_t i = 0; i < cells; i++)
		if (!isnan(values[i]))
			field->sorted[field->count++] = values[i];
	stats_sort(field->sorted, field->count);
	for (uint32_t seat = 0; seat < seats; seat++) {
		struct straggler_stretch *best = &field->best[seat];

		*best = best_stretch(field, &values[(size_t)seat * blocks], blocks, least);
		best->chance *= seats;
		best->is_found = best->is_found && best->chance < chance_accepted;
	}
	return OK;
}

/* NAN: it has none there. */
static double level_over(const struct straggler_field *field, uint32_t seat, uint32_t from,
			 uint32_t to, bool is_mean)
{
	double there[STRAGGLER_BLOCKS];
	uint32_t count =
		take_stretch(there, &field->values[(size_t)seat * field->blocks], from, to);

	if (count == 0)
		return NAN;
	return is_mean ? stats_series(there, count).mean : stats_lower_middle(there, count);
}

/* Is it well above all that they differ by at other times? */
static bool is_clear_of_others(const struct straggler_field *field, uint32_t seat,
			       const struct straggler_stretch *stretch, double times)
{
	uint32_t length = stretch->to - stretch->from;
	double own = level_over(field, seat, stretch->from, stretch->to, true), highest = 0;

	for (uint32_t i = 0; i < field->seats; i++)
		for (uint32_t from = 0; from + length <= field->blocks; from++)
			if (i != seat || from >= stretch->to || from + length <= stretch->from)
				highest = fmax(highest,
					       level_over(field, i, from, from + length, true));
	return own > times * highest;
}

/*
 * By how much all of them differ over that section, half of which may have the same problem. Where being low has
 * causes of its own, only those above 0 tell, and a quarter of all may have the problem. Fewer than four do not
 * tell: then it must be well above everything else.
 */
static double chance_by_others(const struct straggler_field *field, uint32_t seat,
			       const struct straggler_stretch *stretch)
{
	uint32_t known = 0, length = stretch->to - stretch->from;
	double own = level_over(field, seat, stretch->from, stretch->to, false), middle = 0, spread;

	for (uint32_t i = 0; i < field->seats; i++) {
		double level = level_over(field, i, stretch->from, stretch->to, false);

		if (!isnan(level))
			field->levels[known++] = field->is_one_sided ? fmax(level, 0) : level;
	}
	if (known < FIELD_SEATS_LEAST)
		return field->is_against_past ||
				       is_clear_of_others(field, seat, stretch, clear_of_others)
			       ? 0
			       : 1;
	if (field->is_one_sided) {
		spread = stats_select(field->levels, known, (known * 3 - 1) / 4);
	} else {
		middle = stats_lower_middle(field->levels, known);
		for (uint32_t i = 0; i < known; i++)
			field->levels[i] = fabs(field->levels[i] - middle);
		spread = stats_lower_middle(field->levels, known);
	}
	spread = fmax(spread / normal_middle, 0.02 * own);
	return stats_student((own - middle) / spread, fmax(2, known * worth_of_middle)) * known *
	       ((field->blocks + length - 1) / length);
}

struct straggler_stretch straggler_field_stretch(const struct straggler_field *field, uint32_t seat)
{
	struct straggler_stretch stretch = field->best[seat];

	if (stretch.is_found)
		stretch.doubt = chance_by_others(field, seat, &stretch);
	stretch.is_found =
		stretch.is_found &&
		stretch.doubt < (field->is_one_sided ? doubt_of_one_side : doubt_accepted) &&
		(!field->is_uneven || is_clear_of_others(field, seat, &stretch, clear_of_uneven));
	return stretch;
}

bool straggler_is_on(double value, const struct straggler_stretch *stretch)
{
	return !isnan(value) && value > stretch->typical / 2;
}

void straggler_times(struct straggler *straggler, const struct straggler_table *table,
		     const double *values, const struct straggler_stretch *stretch)
{
	uint32_t first = 0, last = 0, on = 0, known = 0;
	double known_ns = 0, on_ns = 0;

	/* A block without a value, as the last often is, does not tell whether it is over. */
	for (uint32_t b = 0; b < table->blocks; b++) {
		double span_ns = (double)(table->end_ns[b] - table->start_ns[b]);

		if (isnan(values[b]))
			continue;
		known++;
		known_ns += span_ns;
		if (!straggler_is_on(values[b], stretch))
			continue;
		on_ns += span_ns;
		straggler->last_ns = table->end_ns[b];
		last = known - 1;
		if (on++ == 0) {
			straggler->first_ns = table->start_ns[b];
			first = last;
		}
	}
	if (on == 0)
		return;
	straggler->share_of_time = known_ns > 0 ? on_ns / known_ns : (double)on / known;
	straggler->has_times = straggler->first_ns != 0;
	/* Blocks at the edges are mixed: one may be missing. */
	if (last - first + 1 > on + 1 + (last - first) / 5)
		straggler->pattern = STRAGGLER_BURSTS;
	else if (first <= 1 && last + 2 >= known)
		straggler->pattern = STRAGGLER_ALWAYS;
	else if (last + 2 >= known)
		straggler->pattern = STRAGGLER_SINCE;
	else
		straggler->pattern = first <= 1 ? STRAGGLER_UNTIL : STRAGGLER_BURSTS;
}

/*
 * The effect on collectives.
 *
 * Where transfers queue up shows who holds a ring up, but not by how much: of links that are equally fast, the one
 * that is a little behind has the whole queue, and a moment later it is another one. But what holds collectives up
 * makes them slower while it lasts.
 */

/* Per block, the logarithm of durations relative to others of their kind. */
static void fill_paces(const struct straggler_table *table, bool is_with_waiting, double *paces)
{
	const struct match_lane *lane = table->lane;

	for (uint32_t b = 0; b < table->blocks; b++)
		paces[b] = 0;
	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		uint32_t block = table->block_of[i];

		for (uint32_t bits = block != UINT32_MAX ? lane->briefs[i].occupied : 0; bits != 0;
		     bits &= bits - 1) {
			const struct match_slot *slot =
				&lane->chunks[i]->slots[__builtin_ctz(bits)];
			const struct match_sum *kind = &lane->sums[slot->kind];
			double ns = is_with_waiting || match_has_spans(lane)
					    ? (double)slot->sum_ns / slot->count
					    : (double)slot->least_ns;

			if (ns > 0 && kind->moves > 0)
				paces[block] +=
					(log(ns) - kind->move_log_sum / (double)kind->moves) /
					table->count[block];
		}
	}
}

double straggler_effect(const struct straggler_table *table, const double *values,
			const struct straggler_stretch *stretch, bool is_with_waiting)
{
	double paces[STRAGGLER_BLOCKS], on[STRAGGLER_BLOCKS], off[STRAGGLER_BLOCKS];
	uint32_t on_count = 0, off_count = 0;

	fill_paces(table, is_with_waiting, paces);
	for (uint32_t b = 0; b < table->blocks; b++) {
		if (isnan(values[b]))
			continue;
		if (straggler_is_on(values[b], stretch))
			on[on_count++] = paces[b];
		else
			off[off_count++] = paces[b];
	}
	if (on_count == 0 || off_count < STRAGGLER_BLOCKS_LEAST)
		return NAN;
	return -expm1(stats_median(off, off_count) - stats_median(on, on_count));
}

struct straggler straggler_begin(const struct straggler_search *search,
				 const struct straggler_table *table, uint32_t seat,
				 enum straggler_class class)
{
	const struct job_comm *comm = &search->job->comms[table->lane->comm];
	const struct job_seat *of = &search->job->seats[comm->seats[seat]];

	return (struct straggler){ .class = class,
				   .rank = of->rank,
				   .host = search->job->ranks[of->rank].host,
				   .peer = UINT32_MAX,
				   .channel = -1,
				   .comm = table->lane->comm,
				   .matches = table->took_part[seat],
				   .last_in = table->last_in[seat] };
}

double straggler_cost_share(const struct straggler_table *table, double caused_ns)
{
	double span_ns = (double)(table->end_ns[table->blocks - 1] - table->start_ns[0]);

	return span_ns > 0 ? caused_ns / (span_ns * table->seats) : 0;
}

/*
 * Late ranks.
 *
 * Per block of matches, how much later than the median rank a rank arrived, on average. By chance that is 0
 * with some spread from block to block; a rank stands out if its mean over a section of blocks is too far
 * above 0 for that spread (Student's t, corrected for all ranks and sections examined), and large enough to
 * matter.
 */

/* What matters: a tenth of the mean duration, and more than calls differ anyway. */
static const double share_that_matters = 0.1, ns_that_matter = 10000;

/* The lower median: of two halves that differ the later one is late. */
static double late_middle(const struct straggler_table *table, uint32_t block, double *scratch)
{
	uint32_t count = 0;

	for (uint32_t seat = 0; seat < table->seats; seat++) {
		double late = table->late_ns[(size_t)seat * table->blocks + block];

		if (!isnan(late))
			scratch[count++] = late;
	}
	if (count == 0)
		return NAN;
	return stats_lower_middle(scratch, count);
}

static double mean_of(const double *values, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += values[i] / count;
	return sum;
}

/*
 * Without GPU times, data that waits for its GPU only shows where the queue is: see straggler_effect(). NAN, as that, if it
 * is unknown or not needed.
 */
static double late_effect(const struct straggler_table *table, const double *values,
			  const struct straggler_stretch *stretch)
{
	return table->is_late_by_network ? straggler_effect(table, values, stretch, true) : NAN;
}

/* The part of the time of all ranks in collectives that is lost while it lasts. */
static double lost_ns(const struct straggler_table *table, const double *values,
		      const struct straggler_stretch *stretch, double effect)
{
	double lost = 0;

	for (uint32_t b = 0; b < table->blocks; b++)
		if (straggler_is_on(values[b], stretch))
			lost += effect * table->mean_ns[b] * table->count[b] * table->seats;
	return lost;
}

/* A block that is too thin to tell is like those beside it. */
static bool was_late(const double *values, uint32_t block, const struct straggler_stretch *stretch)
{
	return isnan(values[block]) ? block + 1 >= stretch->from && block <= stretch->to
				    : straggler_is_on(values[block], stretch);
}

/*
 * The waiting that it alone is responsible for: in any block somebody is last, and others wait for ranks that have no
 * problem, too.
 */
static double caused_alone(const struct straggler_table *table, uint32_t seat, const double *values,
			   const struct straggler_stretch *stretch, double *scratch)
{
	double caused = 0;

	for (uint32_t b = 0; b < table->blocks; b++) {
		uint32_t others = 0;

		if (!was_late(values, b, stretch))
			continue;
		for (uint32_t other = 0; other < table->seats; other++)
			if (other != seat)
				scratch[others++] =
					table->caused_ns[(size_t)other * table->blocks + b];
		caused += table->caused_ns[(size_t)seat * table->blocks + b];
		if (others > 0)
			caused -= stats_lower_middle(scratch, others);
	}
	return fmax(caused, 0);
}

static void name_late_seat(struct straggler_search *search, const struct straggler_table *table,
			   uint32_t seat, const double *values,
			   const struct straggler_stretch *stretch, double effect, double *scratch)
{
	struct straggler straggler = straggler_begin(search, table, seat, STRAGGLER_SLOW_RANK);
	/* Of NAN and a number it is the number. */
	double caused_ns = fmin(caused_alone(table, seat, values, stretch, scratch),
				lost_ns(table, values, stretch, effect));

	straggler.late_ns = (uint64_t)stretch->typical;
	straggler.is_by_network = table->is_late_by_network;
	straggler.caused_ns = units_whole(caused_ns * straggler_scale(search, table->lane->comm));
	straggler.confidence = 1 - fmax(stretch->chance, stretch->doubt);
	straggler_times(&straggler, table, values, stretch);
	straggler.share_of_ns = straggler_cost_share(table, 1);
	straggler.cost_share = fmin(1, (double)straggler.caused_ns * straggler.share_of_ns);
	straggler_add(search, &straggler);
}

/*
 * Hosts, by the median of their ranks. If half of all ranks are late, their own spread hides each of them; and where
 * ranks of a host take turns at being the last one, none of them causes much.
 */

/* [host * blocks + block]; NAN: it has fewer than two. */
static void fill_hosts(double *of_hosts, const struct straggler_search *search,
		       const struct straggler_table *table, const double *late, double *scratch)
{
	const struct job *job = search->job;
	const struct job_comm *comm = &job->comms[table->lane->comm];

	for (uint32_t h = 0; h < job->host_count; h++)
		for (uint32_t b = 0; b < table->blocks; b++) {
			uint32_t count = 0;

			for (uint32_t seat = 0; seat < table->seats; seat++) {
				double value = late[(size_t)seat * table->blocks + b];

				if (job->ranks[job->seats[comm->seats[seat]].rank].host == h &&
				    !isnan(value))
					scratch[count++] = value;
			}
			of_hosts[(size_t)h * table->blocks + b] =
				count > 1 ? stats_lower_middle(scratch, count) : NAN;
		}
}

/* One of its ranks is much later than the others: then it is that rank. */
static bool has_later_rank(const struct straggler_search *search, size_t first, uint32_t host,
			   double typical_ns)
{
	for (size_t i = first; i < search->count; i++)
		if (search->found[i].host == host &&
		    (double)search->found[i].late_ns > 2 * typical_ns)
			return true;
	return false;
}

/* Where ranks of other hosts are the last ones, nobody would wait less without it. */
static double share_that_counts(const struct straggler *host)
{
	return host->matches > 0 ? fmin(1, (double)host->last_in / (double)host->matches) : 1;
}

static bool knows_who_is_last(const struct straggler_table *table)
{
	uint64_t known = 0;

	for (uint32_t seat = 0; seat < table->seats; seat++)
		known += table->last_in[seat];
	return known > 0;
}

/* first: what was found in this lane begins there in search->found. */
static void name_late_host(struct straggler_search *search, const struct straggler_table *table,
			   uint32_t host, const double *values,
			   const struct straggler_stretch *stretch, size_t first)
{
	const struct job_comm *comm = &search->job->comms[table->lane->comm];
	struct straggler straggler = { .class = STRAGGLER_SLOW_HOST,
				       .rank = UINT32_MAX,
				       .host = host,
				       .peer = UINT32_MAX,
				       .channel = -1,
				       .comm = table->lane->comm,
				       .late_ns = (uint64_t)stretch->typical,
				       .confidence = 1 - fmax(stretch->chance, stretch->doubt) };
	uint32_t members = 0;

	for (uint32_t seat = 0; seat < table->seats; seat++) {
		if (search->job->ranks[search->job->seats[comm->seats[seat]].rank].host != host)
			continue;
		members++;
		straggler.last_in += table->last_in[seat];
		if (table->took_part[seat] > straggler.matches)
			straggler.matches = table->took_part[seat];
	}
	straggler_times(&straggler, table, values, stretch);
	straggler.share_of_ns = straggler_cost_share(table, 1);
	straggler.caused_ns =
		units_whole(stretch->typical * (double)straggler.matches *
			    fmin(straggler.share_of_time,
				 knows_who_is_last(table) ? share_that_counts(&straggler) : 1) *
			    (table->seats - members) * straggler_scale(search, table->lane->comm));
	straggler.cost_share = fmin(1, (double)straggler.caused_ns * straggler.share_of_ns);
	for (size_t i = first; i < search->count; i++)
		search->found[i].is_dropped = search->found[i].class == STRAGGLER_SLOW_RANK &&
					      search->found[i].host == host;
	straggler_drop_marked(search);
	straggler_add(search, &straggler);
}

static void find_late_hosts(struct straggler_search *search, const struct straggler_table *table,
			    const double *late, double least, size_t first)
{
	const struct job *job = search->job;
	uint32_t hosts = (uint32_t)job->host_count, several = 0;
	double *of_hosts = calloc((size_t)hosts * table->blocks + 1, sizeof(*of_hosts));
	double *scratch = calloc(table->seats + 1, sizeof(*scratch));
	struct straggler_field field = { .values = NULL };

	if (of_hosts == NULL || scratch == NULL)
		search->status = ERR_NO_SPACE;
	for (uint32_t h = 0; h < hosts; h++)
		several += job_members_on(job, table->lane->comm, h) > 1;
	if (search->status == OK && several > 1) {
		fill_hosts(of_hosts, search, table, late, scratch);
		search->status =
			straggler_field_make(&field, of_hosts, hosts, table->blocks, least);
		for (uint32_t h = 0; search->status == OK && h < hosts; h++) {
			struct straggler_stretch stretch = straggler_field_stretch(&field, h);
			const double *values = &of_hosts[(size_t)h * table->blocks];

			if (stretch.is_found &&
			    !(late_effect(table, values, &stretch) < STRAGGLER_EFFECT_LEAST) &&
			    !has_later_rank(search, first, h, stretch.typical))
				name_late_host(search, table, h, values, &stretch, first);
		}
		straggler_field_release(&field);
	}
	free(of_hosts);
	free(scratch);
}

void straggler_late(struct straggler_search *search, const struct straggler_table *table)
{
	size_t cells = (size_t)table->seats * table->blocks, first = search->count;
	double *late = calloc(cells + table->seats + 1, sizeof(*late)), *scratch = &late[cells];
	double least = share_that_matters * mean_of(table->mean_ns, table->blocks);
	struct straggler_field field = { .values = NULL };

	if (late == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (uint32_t b = 0; b < table->blocks; b++) {
		double middle = late_middle(table, b, scratch);

		for (uint32_t seat = 0; seat < table->seats; seat++)
			late[(size_t)seat * table->blocks + b] =
				table->late_ns[(size_t)seat * table->blocks + b] - middle;
	}
	least = least > ns_that_matter ? least : ns_that_matter;
	search->status = straggler_field_make(&field, late, table->seats, table->blocks, least);
	for (uint32_t seat = 0; search->status == OK && seat < table->seats; seat++) {
		struct straggler_stretch stretch = straggler_field_stretch(&field, seat);
		const double *values = &late[(size_t)seat * table->blocks];

		double effect = stretch.is_found ? late_effect(table, values, &stretch) : NAN;

		if (stretch.is_found && !(effect < STRAGGLER_EFFECT_LEAST))
			name_late_seat(search, table, seat, values, &stretch, effect, scratch);
	}
	straggler_field_release(&field);
	if (search->status == OK)
		find_late_hosts(search, table, late, least, first);
	free(late);
}

/*
 * Transfers between nodes became slower everywhere: is it the network? Not if transfers within nodes did so
 * at the same time, and not if sends were not on the network longer than before: then they were held up
 * within nodes.
 */

static const double slowdown_that_tells = 1.25;

static bool has_link(const struct straggler_search *search)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].class == STRAGGLER_SLOW_LINK)
			return true;
	return false;
}

static bool is_network(const struct straggler_search *search, const struct windows_change *change)
{
	/* Time on the wire varies more than durations do. */
	if (change->is_wire && change->before < slowdown_that_tells * change->after)
		return false;
	return (change->is_wire || job_comm_is_over_network(change->kind)) &&
	       change->is_everywhere && change->percent < 0 &&
	       !job_is_on_one_host(search->job, change->example_comm);
}

/* The mean time on the wire of a transfer, of all seats; 0 unknown. */
static double mean_wire(const struct straggler_table *table, uint64_t from_ns, uint64_t until_ns)
{
	double sum = 0, count = 0;

	for (uint32_t b = 0; b < table->blocks; b++) {
		if (table->start_ns[b] < from_ns || table->end_ns[b] > until_ns)
			continue;
		for (uint32_t seat = 0; seat < table->seats; seat++) {
			double wire_ns = table->wire_ns[(size_t)seat * table->blocks + b];

			if (isnan(wire_ns))
				continue;
			sum += wire_ns;
			count++;
		}
	}
	return count > 0 ? sum / count : 0;
}

/* Stores how time on the wire changed in a lane when transfers between nodes did. Times of blocks are those
 * of its matches, and a change is between two of them. */
static void straggler_network_wire(struct straggler_search *search,
				   const struct straggler_table *table)
{
	const struct windows *windows = search->windows;

	if (table->start_ns[0] == 0)
		return;
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];
		double before_ns, after_ns;

		if (!is_network(search, change) || change->example_comm != table->lane->comm ||
		    change->size_class != table->wire_class)
			continue;
		before_ns = mean_wire(table, 1, change->at_ns);
		after_ns = mean_wire(table, change->at_ns, UINT64_MAX);
		if (before_ns > 0 && after_ns > 0)
			search->wire_rise[i] = after_ns / before_ns;
	}
}

/* The network accounts for less than a quarter of the additional time of transfers. */
static bool is_wire_fine(const struct windows_change *change, double rise)
{
	return rise > 0 && change->after > 0 && rise < 1 + (change->before / change->after - 1) / 4;
}

/* Did transfers within nodes slow down at the same time? Then it is not the network. */
static bool is_nvlink_too(const struct windows *windows, const struct windows_change *change)
{
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *other = &windows->changes[i];
		uint32_t apart = other->window > change->window ? other->window - change->window
								: change->window - other->window;

		if (other->kind == JOB_COMM_NVLINK && other->percent < 0 && apart <= 2)
			return true;
	}
	return false;
}

/* From the changes: the network, if it is slower everywhere. */
static void straggler_network(struct straggler_search *search)
{
	const struct windows *windows = search->windows;
	const struct windows_change *worst = NULL;
	struct straggler straggler = { .class = STRAGGLER_NETWORK,
				       .pattern = STRAGGLER_SINCE,
				       .rank = UINT32_MAX,
				       .host = UINT32_MAX,
				       .peer = UINT32_MAX,
				       .channel = -1,
				       .has_times = true };

	if (has_link(search))
		return;
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (!is_network(search, change) || is_nvlink_too(windows, change) ||
		    is_wire_fine(change, search->wire_rise[i]))
			continue;
		if (worst == NULL || change->matches_after > worst->matches_after)
			worst = change;
	}
	if (worst == NULL)
		return;
	straggler.comm = worst->example_comm;
	straggler.matches = worst->matches_before + worst->matches_after;
	straggler.slowdown = worst->after > 0 ? worst->before / worst->after : 0;
	straggler.confidence = worst->confidence;
	straggler.first_ns = worst->at_ns;
	straggler.last_ns = windows->end_ns;
	straggler.caused_ns = worst->lost_ns;
	straggler.is_by_network = worst->is_wire;
	/* With such a small change, links within nodes that became about as slow as the network would have
	 * the same effect. */
	straggler.has_wire = search->wire_rise[worst - windows->changes] > 0 &&
			     straggler.slowdown >= slowdown_that_tells;
	/* Did it recover? */
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (windows_is_same_kind(change, worst) && change->percent > 0 &&
		    change->at_ns > worst->at_ns) {
			straggler.pattern = STRAGGLER_BURSTS;
			straggler.last_ns = change->at_ns;
		}
	}
	if (windows->end_ns > windows->start_ns)
		straggler.share_of_time = (double)(straggler.last_ns - straggler.first_ns) /
					  (double)(windows->end_ns - windows->start_ns);
	straggler_add(search, &straggler);
}

/* A straggler or slow host costs the others at least this share of their time. */
static const double cost_that_matters = 0.005;
/* Of a hidden one only a part of what it would cost shows: while ranks wait for another one, most of its own delay
 * overlaps with that. */
static const double cost_that_matters_hidden = 0.001;

const char *straggler_class_name(enum straggler_class class)
{
	static const char *const names[] = { "none",	  "slow_rank", "slow_host",
					     "slow_link", "network",   "held_up" };

	return (unsigned int)class <= STRAGGLER_HELD_UP ? names[class] : "none";
}

const char *straggler_pattern_name(enum straggler_pattern pattern)
{
	static const char *const names[] = { "always", "since", "until", "bursts" };

	return (unsigned int)pattern <= STRAGGLER_BURSTS ? names[pattern] : "always";
}

void stragglers_release(struct stragglers *stragglers)
{
	free(stragglers->list);
	free(stragglers->jobs);
	*stragglers = (struct stragglers){ .list = NULL };
}

void straggler_add(struct straggler_search *search, const struct straggler *straggler)
{
	if (list_grow(&search->found, search->count, sizeof(*search->found)))
		search->found[search->count++] = *straggler;
	else
		search->status = ERR_NO_SPACE;
}

size_t straggler_drop_marked(struct straggler_search *search)
{
	size_t kept = 0, dropped;

	for (size_t i = 0; i < search->count; i++)
		if (!search->found[i].is_dropped)
			search->found[kept++] = search->found[i];
	dropped = search->count - kept;
	search->count = kept;
	return dropped;
}

bool straggler_is_late(const struct straggler_search *search, uint32_t rank, uint32_t comm)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].class == STRAGGLER_SLOW_RANK &&
		    search->found[i].rank == rank && search->found[i].comm == comm)
			return true;
	return false;
}

double straggler_scale(const struct straggler_search *search, uint32_t comm)
{
	return search->comms != NULL ? search->comms[comm].scale : 1;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

/* Each rank sends only to a few of the others, or there are only two. Ranks that also send to themselves exchange
 * what all of them have: no stage of a pipeline does that. */
static void find_chains(struct straggler_search *search)
{
	const struct job *job = search->job;
	uint32_t *peers = calloc(job->comm_count + 1, sizeof(*peers));
	uint32_t *senders = calloc(job->comm_count + 1, sizeof(*senders));
	bool *has_sent = calloc(job->seat_count + 1, sizeof(*has_sent));

	if (peers == NULL || senders == NULL || has_sent == NULL)
		search->status = ERR_NO_SPACE;
	for (size_t i = 0; search->status == OK && i < search->links->count; i++) {
		const struct link *link = &search->links->list[i];

		if (link->to == job->seats[link->from].comm_rank) {
			search->is_exchange[link->comm] = true;
			continue;
		}
		peers[link->comm]++;
		senders[link->comm] += !has_sent[link->from];
		has_sent[link->from] = true;
	}
	for (size_t c = 0; search->status == OK && c < job->comm_count; c++) {
		int32_t others = job->comms[c].nranks - 1;

		search->is_chain[c] =
			senders[c] > 0 && !search->is_exchange[c] &&
			(others < 2 || (double)peers[c] / senders[c] < 0.75 * (double)others);
	}
	free(peers);
	free(senders);
	free(has_sent);
}

/* Two of its ranks are in one chain. marks: per rank, all 0 before and after. */
static bool find_staggered(const struct straggler_search *search, uint32_t comm, uint32_t *marks)
{
	const struct job *job = search->job;
	const struct job_comm *of = &job->comms[comm];
	bool is_found = false;

	for (uint32_t i = 0; i < of->seat_count; i++)
		marks[job->seats[of->seats[i]].rank] = 1;
	for (size_t c = 0; c < job->comm_count && !is_found; c++) {
		uint32_t members = 0;

		if (!search->is_chain[c])
			continue;
		for (uint32_t i = 0; i < job->comms[c].seat_count; i++)
			members += marks[job->seats[job->comms[c].seats[i]].rank];
		is_found = members > 1;
	}
	for (uint32_t i = 0; i < of->seat_count; i++)
		marks[job->seats[of->seats[i]].rank] = 0;
	return is_found;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void note_judged(struct straggler_judged *judged, const struct straggler_table *table)
{
	judged->is_judged |= table->blocks > 0;
	if (table->matches <= judged->matches)
		return;
	judged->matches = table->matches;
	judged->comm = table->lane->comm;
}

static void look_at_lane(struct straggler_search *search, struct stragglers *stragglers,
			 const struct match_lane *lane, bool is_comm_staggered)
{
	struct straggler_table table;
	enum status status = straggler_table_make(&table, search->matches, lane, search->align);

	if (status != OK) {
		search->status = status;
		return;
	}
	/* Too few so far: of the lane that has most of them. */
	if (table.blocks == 0 && !stragglers->has_enough && table.matches > stragglers->matches)
		stragglers->matches = table.matches;
	if (!is_comm_staggered)
		note_judged(&stragglers->jobs[search->job->comms[lane->comm].group], &table);
	if (table.blocks > 0) {
		size_t first = search->count;

		stragglers->matches =
			table.matches + (stragglers->has_enough ? stragglers->matches : 0);
		stragglers->has_enough = true;
		straggler_late_by_network(search, &table);
		if (!match_has_spans(lane) || table.is_late_by_network)
			stragglers->late_matches += table.matches;
		if (!is_comm_staggered && (!match_has_spans(lane) || table.is_late_by_network))
			straggler_late(search, &table);
		if (search->status == OK && search->count > first)
			straggler_late_rest(search, &table, first);
		straggler_wire(search, &table);
		straggler_network_wire(search, &table);
	}
	straggler_table_release(&table);
}

static void look_at_lanes(struct straggler_search *search, struct stragglers *stragglers)
{
	const struct job *job = search->job;
	uint32_t *marks = calloc(job->rank_count + 1, sizeof(*marks));

	if (marks == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	for (uint32_t c = 0; c < job->comm_count && search->status == OK; c++) {
		search->is_staggered[c] = find_staggered(search, c, marks);
		for (unsigned int i = 0; i < MATCH_LANES && search->status == OK; i++)
			if (search->matches->comms[c].lanes[i] != NULL &&
			    job->comms[c].seat_count > 1)
				look_at_lane(search, stragglers, search->matches->comms[c].lanes[i],
					     search->is_staggered[c]);
	}
	free(marks);
}

/* ---- explanations ---------------------------------------------------------------------------- */

/* It is late here because it waits for another rank elsewhere. */
static bool is_explained(const struct straggler_search *search, const struct straggler *here)
{
	for (size_t i = 0; i < search->count; i++) {
		const struct straggler *there = &search->found[i];

		if (there->class == STRAGGLER_SLOW_RANK && there->comm != here->comm &&
		    !there->is_behind && there->rank != here->rank &&
		    job_is_member(search->job, there->comm, here->rank) &&
		    !straggler_is_late(search, here->rank, there->comm))
			return true;
	}
	return false;
}

static size_t drop_explained(struct straggler_search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		struct straggler *late = &search->found[i];

		late->is_dropped = late->class == STRAGGLER_SLOW_RANK && !late->is_starved &&
				   !late->is_origin && is_explained(search, late);
	}
	return straggler_drop_marked(search);
}

/*
 * In a job with Sends and Recvs, ranks that arrive late for collectives are the origins of lateness, or wait for
 * them. If no origin is known, all of them are held up by an unknown rank: the one that costs most stays,
 * as that.
 */
static size_t replace_by_origins(struct straggler_search *search, uint32_t group)
{
	struct straggler held = { .class = STRAGGLER_NONE };
	bool has_origin = false;
	size_t dropped;

	for (size_t i = 0; i < search->count; i++) {
		struct straggler *late = &search->found[i];
		bool is_own = search->job->comms[late->comm].group == group;
		bool is_late = (late->class == STRAGGLER_SLOW_RANK ||
				late->class == STRAGGLER_SLOW_HOST) &&
			       !late->is_starved && is_own;

		has_origin |= late->is_origin && is_own;
		if (!is_late || late->is_origin)
			continue;
		if (held.class == STRAGGLER_NONE || late->caused_ns > held.caused_ns)
			held = *late;
		late->is_dropped = true;
	}
	dropped = straggler_drop_marked(search);
	if (dropped == 0 || has_origin)
		return dropped;
	held.class = STRAGGLER_HELD_UP;
	search->found[search->count++] = held;
	return dropped;
}

/*
 * Transfers to a rank and from it stand out: two slow links at once are unlikely. Its process is late with both,
 * or its port is slow both ways.
 */
static const double sure_of_both_ways = 0.85;

/* Within a tenth of the recording. */
static bool began_together(const struct straggler_search *search, const struct straggler *a,
			   const struct straggler *b)
{
	uint64_t apart =
		a->first_ns > b->first_ns ? a->first_ns - b->first_ns : b->first_ns - a->first_ns;

	return a->has_times && b->has_times &&
	       apart * 10 <= search->windows->end_ns - search->windows->start_ns;
}

static bool sends_to(const struct straggler_search *search, uint32_t comm, uint32_t from,
		     uint32_t to)
{
	const struct job *job = search->job;
	uint32_t place = job_place_in(job, comm, to);

	return place != UINT32_MAX &&
	       link_has_peer(job, comm, from, job->seats[job->comms[comm].seats[place]].comm_rank);
}

/*
 * Do these transfers go to the rank that the others come from? If they go to several ranks and it is not known
 * which of them is slow: it is one of those, it sends nothing back, and what it sends is as slow since the same
 * time.
 */
static bool goes_to(const struct straggler_search *search, const struct straggler *link,
		    const struct straggler *from)
{
	enum { ALIKE = 2 };

	if (link->class != STRAGGLER_SLOW_LINK || link == from)
		return false;
	if (link->peer != UINT32_MAX)
		return link->peer == from->rank;
	return link->comm == from->comm && began_together(search, link, from) &&
	       link->slowdown < ALIKE * from->slowdown && from->slowdown < ALIKE * link->slowdown &&
	       sends_to(search, link->comm, link->rank, from->rank) &&
	       !sends_to(search, link->comm, from->rank, link->rank);
}

/* Slow links from this rank and to it; those of unknown receivers if they fit. */
struct both_ways {
	uint32_t out, in;
	uint32_t all; /* its links for Sends between nodes, slow or not */
	size_t first; /* that it sends over: index into search->found */
};

static bool is_open_link(const struct straggler *link)
{
	return link->class == STRAGGLER_SLOW_LINK && !link->is_either && !link->is_uplink &&
	       !link->is_rail;
}

static void count_both_ways(const struct straggler_search *search, struct both_ways *ways)
{
	for (uint32_t r = 0; r < search->job->rank_count; r++)
		ways[r].out = ways[r].in = 0;
	for (size_t i = search->count; i-- > 0;) {
		const struct straggler *link = &search->found[i];

		if (!is_open_link(link))
			continue;
		ways[link->rank].out++;
		ways[link->rank].first = i;
		if (link->peer != UINT32_MAX)
			ways[link->peer].in++;
	}
	for (size_t i = 0; i < search->count; i++)
		for (size_t j = 0; j < search->count && is_open_link(&search->found[i]) &&
				   search->found[i].peer == UINT32_MAX;
		     j++)
			if (is_open_link(&search->found[j]) &&
			    goes_to(search, &search->found[i], &search->found[j]))
				ways[search->found[j].rank].in++;
}

static void count_all_ways(const struct straggler_search *search, struct both_ways *ways)
{
	for (size_t i = 0; i < search->links->count; i++) {
		const struct link *link = &search->links->list[i];
		uint32_t to = link_peer_rank(search->job, link->comm, link->to);

		if (link->send_steps == 0)
			continue;
		ways[search->job->seats[link->from].rank].all++;
		if (to != UINT32_MAX)
			ways[to].all++;
	}
}

/* All slow links of a rank are one finding: its process. */
static void merge_links_of(struct straggler_search *search, size_t first)
{
	struct straggler from = search->found[first];
	uint32_t rank = from.rank;

	for (size_t i = 0; i < search->count; i++) {
		struct straggler *link = &search->found[i];

		if (!is_open_link(link) ||
		    (link->rank != rank && link->peer != rank && !goes_to(search, link, &from)))
			continue;
		link->is_dropped = true;
		from.confidence = fmin(from.confidence, link->confidence);
		from.caused_ns =
			link->caused_ns > from.caused_ns ? link->caused_ns : from.caused_ns;
	}
	from.class = STRAGGLER_SLOW_RANK;
	from.confidence = fmin(from.confidence, sure_of_both_ways);
	from.peer = UINT32_MAX;
	from.peer_confidence = 0;
	from.channel = -1;
	from.is_of_sends = false;
	from.is_starved = true;
	straggler_drop_marked(search);
	search->found[search->count++] = from;
}

/* Of a slow process all links are slow, of its peers only those with it. So the rank with most slow ones comes first,
 * and if two have as many, the one that has no others. */
static bool is_rather(const struct both_ways *one, const struct both_ways *other)
{
	return one->out + one->in != other->out + other->in
		       ? one->out + one->in > other->out + other->in
		       : one->all < other->all;
}

/* Two ranks whose only links are those between them: each fits as well as the other. */
static bool is_pair(const struct straggler_search *search, const struct both_ways *ways,
		    uint32_t rank)
{
	uint32_t peer = search->found[ways[rank].first].peer;

	return peer != UINT32_MAX && ways[rank].out == 1 && ways[rank].in == 1 &&
	       !is_rather(&ways[rank], &ways[peer]) && !is_rather(&ways[peer], &ways[rank]) &&
	       search->found[ways[peer].first].peer == rank;
}

/* The collectives of one of them became slower; UINT32_MAX: of none or of both. */
static uint32_t slower_of(const struct straggler_search *search, uint32_t a, uint32_t b)
{
	const struct windows *windows = search->windows;
	bool is_a = false, is_b = false;

	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (change->percent > 0 || change->comms_changed != 1 ||
		    !job_comm_is_over_network(change->kind))
			continue;
		is_a |= job_is_member(search->job, change->example_comm, a);
		is_b |= job_is_member(search->job, change->example_comm, b);
	}
	return is_a == is_b ? UINT32_MAX : is_a ? a : b;
}

static void merge_both_ways(struct straggler_search *search)
{
	const struct job *job = search->job;
	struct both_ways *ways = calloc(job->rank_count + 1, sizeof(*ways));

	if (ways == NULL)
		search->status = ERR_NO_SPACE;
	else
		count_all_ways(search, ways);
	while (search->status == OK && search->count > 0) {
		uint32_t best = UINT32_MAX, peer;

		count_both_ways(search, ways);
		for (uint32_t r = 0; r < job->rank_count; r++)
			if (ways[r].out > 0 && ways[r].in > 0 &&
			    (best == UINT32_MAX || is_rather(&ways[r], &ways[best])))
				best = r;
		if (best == UINT32_MAX)
			break;
		peer = search->found[ways[best].first].peer;
		if (is_pair(search, ways, best)) {
			uint32_t slower = slower_of(search, best, peer);

			if (slower == UINT32_MAX) {
				search->found[ways[best].first].is_either = true;
				search->found[ways[peer].first].is_either = true;
				continue;
			}
			best = slower;
		}
		merge_links_of(search, ways[best].first);
	}
	free(ways);
}

/*
 * Several slow links, or ranks with slow ones both ways, that have something in common: they are all those of one
 * host to others (its uplink), or those of one position on several hosts (a rail).
 */

enum { SENDING, RECEIVING };

/* Slow links, and ranks that are named for nothing else. */
static bool is_of_links(const struct straggler *one)
{
	return one->class == STRAGGLER_SLOW_LINK ||
	       (one->class == STRAGGLER_SLOW_RANK && one->is_starved && one->own_slowdown <= 0 &&
		one->late_ns == 0);
}

/* The rank at one end; UINT32_MAX unknown. A rank that is late both ways is at both. */
static uint32_t end_of(const struct straggler *one, int way)
{
	return way == SENDING || one->class == STRAGGLER_SLOW_RANK ? one->rank : one->peer;
}

struct common_place {
	uint32_t host; /* UINT32_MAX: none in common */
	int32_t gpu;   /* -1: none */
	uint32_t rank; /* one of them */
	bool is_several_ranks, is_several_hosts;
};

static struct common_place place_of(const struct straggler_search *search, uint32_t group, int way)
{
	const struct job *job = search->job;
	struct common_place place = { .rank = UINT32_MAX, .host = UINT32_MAX, .gpu = -1 };

	for (size_t i = 0; i < search->count; i++) {
		const struct straggler *one = &search->found[i];
		uint32_t rank = end_of(one, way);

		if (!is_of_links(one) || job->comms[one->comm].group != group)
			continue;
		if (rank == UINT32_MAX)
			return (struct common_place){ .host = UINT32_MAX, .gpu = -1 };
		if (place.rank == UINT32_MAX) {
			place.rank = rank;
			place.host = job->ranks[rank].host;
			place.gpu = job->ranks[rank].gpu;
			continue;
		}
		place.is_several_ranks |= rank != place.rank;
		if (job->ranks[rank].host != job->ranks[place.rank].host) {
			place.is_several_hosts = true;
			place.host = UINT32_MAX;
		}
		if (job->ranks[rank].gpu != place.gpu)
			place.gpu = -1;
	}
	return place;
}

/* Does this rank take part in one of them? */
static bool is_at_end(const struct straggler_search *search, uint32_t rank)
{
	for (size_t i = 0; i < search->count; i++)
		if (is_of_links(&search->found[i]) &&
		    (search->found[i].rank == rank || search->found[i].peer == rank))
			return true;
	return false;
}

/* Do all of them have one rank in common? Then it is that one. */
static bool is_star(const struct straggler_search *search, uint32_t group)
{
	const struct straggler *first = NULL;
	bool is_of_rank = true, is_of_peer = true;

	for (size_t i = 0; i < search->count; i++) {
		const struct straggler *one = &search->found[i];

		if (!is_of_links(one) || search->job->comms[one->comm].group != group)
			continue;
		first = first != NULL ? first : one;
		is_of_rank &= one->rank == first->rank || one->peer == first->rank;
		is_of_peer &= one->rank == first->peer || one->peer == first->peer;
	}
	return first != NULL && (is_of_rank || (is_of_peer && first->peer != UINT32_MAX));
}

/* Ranks of one pipeline have the same position on their hosts anyway: a rail is that position on nearly all hosts, if
 * there are others. */
static bool is_rail(const struct straggler_search *search, uint32_t group, int32_t gpu)
{
	const struct job *job = search->job;
	uint32_t ranks = 0, slow = 0;
	bool has_others = false;

	for (uint32_t r = 0; gpu >= 0 && r < job->rank_count; r++) {
		if (job->ranks[r].group != group)
			continue;
		has_others |= job->ranks[r].gpu != gpu;
		if (job->ranks[r].gpu != gpu)
			continue;
		ranks++;
		slow += is_at_end(search, r);
	}
	return has_others && slow * 4 >= ranks * 3;
}

static void merge_place(struct straggler_search *search, uint32_t group,
			const struct common_place *place, const struct common_place *others)
{
	struct straggler merged = { .class = STRAGGLER_NONE };
	double confidence = sure_of_both_ways;

	for (size_t i = 0; i < search->count; i++) {
		struct straggler *one = &search->found[i];

		if (!is_of_links(one) || search->job->comms[one->comm].group != group)
			continue;
		confidence = fmin(confidence, one->confidence);
		if (merged.class == STRAGGLER_NONE || one->caused_ns > merged.caused_ns)
			merged = *one;
		one->is_dropped = true;
	}
	merged.class = STRAGGLER_SLOW_LINK;
	merged.is_starved = merged.is_either = merged.is_bursty = false;
	merged.confidence = confidence;
	merged.is_uplink = place->host != UINT32_MAX;
	merged.is_rail = !merged.is_uplink;
	merged.rank = place->rank;
	merged.host = search->job->ranks[place->rank].host;
	/* If the other ends are of one host as well, it may be that one. */
	merged.peer = merged.is_uplink && others->host != UINT32_MAX && others->host != place->host
			      ? others->rank
			      : UINT32_MAX;
	merged.peer_confidence = 0;
	merged.channel = -1;
	straggler_drop_marked(search);
	search->found[search->count++] = merged;
}

static void merge_places(struct straggler_search *search)
{
	for (uint32_t g = 0; g < search->job->group_count; g++)
		for (int way = SENDING; way <= RECEIVING; way++) {
			struct common_place place = place_of(search, g, way);
			struct common_place others = place_of(search, g, SENDING + RECEIVING - way);

			if (place.is_several_ranks && !is_star(search, g) &&
			    (place.host != UINT32_MAX ||
			     (place.is_several_hosts && is_rail(search, g, place.gpu)))) {
				merge_place(search, g, &place, &others);
				break;
			}
		}
}

/* ---- one entry per rank, host or link -------------------------------------------------------- */

static bool straggler_is_same(const struct straggler *a, const struct straggler *b)
{
	if (a->class != b->class || a->rank != b->rank || a->host != b->host)
		return false;
	return a->class != STRAGGLER_SLOW_LINK || a->peer == b->peer || a->peer == UINT32_MAX ||
	       b->peer == UINT32_MAX;
}

static void merge_into(struct straggler *to, const struct straggler *from)
{
	const struct straggler *starved = to->own_slowdown > from->own_slowdown ? to : from;
	double slowdown = starved->slowdown, own_slowdown = starved->own_slowdown;
	uint64_t most_ns = to->caused_ns > from->caused_ns ? to->caused_ns : from->caused_ns;
	/* Of the same collectives, each is about the same time. */
	uint64_t caused_ns = to->comm == from->comm ? most_ns : to->caused_ns + from->caused_ns;
	uint32_t peer = to->peer != UINT32_MAX ? to->peer : from->peer;
	double cost_share = to->cost_share > from->cost_share ? to->cost_share : from->cost_share;
	bool is_starved = to->is_starved || from->is_starved;
	bool is_late = to->late_ns > 0, is_from_late = from->late_ns > 0;

	/* Where it is hidden it costs nothing yet. */
	if (to->is_behind != from->is_behind) {
		*to = to->is_behind ? *from : *to;
		return;
	}
	/* The communicator with the highest cost represents it; and one where it is late before others. */
	if (is_late != is_from_late ? is_from_late : from->caused_ns > to->caused_ns)
		*to = *from;
	to->is_starved = is_starved;
	if (is_starved) {
		to->slowdown = slowdown;
		to->own_slowdown = own_slowdown;
	}
	to->cost_share = cost_share;
	to->caused_ns = caused_ns;
	to->peer = peer;
}

static void merge_same(struct straggler_search *search)
{
	size_t kept = 0;

	for (size_t i = 0; i < search->count; i++) {
		size_t j = 0;

		while (j < kept && !straggler_is_same(&search->found[j], &search->found[i]))
			j++;
		if (j < kept)
			merge_into(&search->found[j], &search->found[i]);
		else
			search->found[kept++] = search->found[i];
	}
	search->count = kept;
}

static bool is_late_on(const struct straggler *late, uint32_t host)
{
	return late->class == STRAGGLER_SLOW_RANK && late->host == host && late->late_ns > 0 &&
	       !late->is_starved && !late->is_origin;
}

/* Most ranks of a host are late, each in a communicator of its own. */
static void merge_apart(struct straggler_search *search)
{
	const struct job *job = search->job;

	for (size_t i = 0; i < search->count; i++) {
		struct straggler *first = &search->found[i];
		uint32_t members = 0, all = 0, late = 0, group = job->comms[first->comm].group;

		if (!is_late_on(first, first->host))
			continue;
		for (uint32_t r = 0; r < job->rank_count; r++) {
			all += job->ranks[r].group == group;
			members +=
				job->ranks[r].group == group && job->ranks[r].host == first->host;
		}
		for (size_t j = i; j < search->count; j++)
			late += is_late_on(&search->found[j], first->host) &&
				search->found[j].late_ns * 2 >= first->late_ns;
		if (members < 2 || late * 4 < members * 3 || members == all)
			continue;
		first->class = STRAGGLER_SLOW_HOST;
		first->rank = UINT32_MAX;
		first->is_any = true;
		for (size_t j = i + 1; j < search->count; j++) {
			struct straggler *other = &search->found[j];

			if (!is_late_on(other, first->host))
				continue;
			first->caused_ns += other->caused_ns;
			first->last_in += other->last_in;
			first->confidence = fmin(first->confidence, other->confidence);
			first->is_behind = first->is_behind && other->is_behind;
			other->is_dropped = true;
		}
		straggler_drop_marked(search);
	}
}

/* Together ranks of a host keep all others waiting; individually, they hide each other. */
static uint64_t caused_together(const struct straggler_search *search, const struct straggler *host,
				uint32_t members)
{
	double caused_ns = (double)host->late_ns * (double)host->matches *
			   (search->job->comms[host->comm].seat_count - members) *
			   straggler_scale(search, host->comm);

	/* Of one that another hides it is not known; nor of one that is late by its network. */
	if (!host->is_behind && !host->is_by_network)
		caused_ns *= share_that_counts(host);
	return units_whole(fmax(caused_ns, (double)host->caused_ns));
}

/* Most ranks of a host in a communicator are late: it is the host. */
static void merge_hosts(struct straggler_search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		struct straggler *first = &search->found[i];
		uint32_t members, late = 0;

		if (first->class != STRAGGLER_SLOW_RANK || first->late_ns == 0)
			continue;
		members = job_members_on(search->job, first->comm, first->host);
		for (size_t j = i; j < search->count; j++)
			late += search->found[j].class == STRAGGLER_SLOW_RANK &&
				search->found[j].host == first->host &&
				search->found[j].late_ns * 2 >= first->late_ns;
		if (members < 2 || late * 4 < members * 3 ||
		    members == search->job->comms[first->comm].seat_count)
			continue;
		first->class = STRAGGLER_SLOW_HOST;
		for (size_t j = i + 1; j < search->count;) {
			if (search->found[j].class != STRAGGLER_SLOW_RANK ||
			    search->found[j].host != first->host) {
				j++;
				continue;
			}
			first->caused_ns += search->found[j].caused_ns;
			first->last_in += search->found[j].last_in;
			first->is_behind = first->is_behind && search->found[j].is_behind;
			search->found[j] = search->found[--search->count];
		}
		first->caused_ns = caused_together(search, first, members);
		first->cost_share = fmin(1, (double)first->caused_ns * first->share_of_ns);
		first->rank = UINT32_MAX;
	}
}

/* Hosts that are late for the same collectives are late for one reason, and are judged together. */
static double cost_of(const struct straggler_search *search, const struct straggler *late)
{
	double share = 0;

	if (late->class == STRAGGLER_SLOW_RANK)
		return late->cost_share;
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].class == late->class && search->found[i].comm == late->comm)
			share += search->found[i].cost_share;
	return share;
}

static double least_cost(const struct straggler *late)
{
	return late->is_behind && !late->has_small_rest ? cost_that_matters_hidden
							: cost_that_matters;
}

/* Late beyond chance, but negligible. */
static void drop_minor(struct straggler_search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		struct straggler *late = &search->found[i];

		late->is_dropped = (late->class == STRAGGLER_SLOW_RANK ||
				    late->class == STRAGGLER_SLOW_HOST) &&
				   !late->is_starved && cost_of(search, late) < least_cost(late);
	}
	straggler_drop_marked(search);
}

/* ---------------------------------------------------------------------------------------------- */

static int most_caused_first(const void *left, const void *right)
{
	const struct straggler *a = left, *b = right;

	return ORDER(a->is_behind, b->is_behind) ?:
	       ORDER(b->caused_ns, a->caused_ns) ?:
	       ORDER(a->class, b->class) ?:
	       ORDER(a->rank, b->rank);
}

static enum status init_jobs(struct stragglers *stragglers, const struct job *job)
{
	stragglers->jobs = calloc(job->group_count + 1, sizeof(*stragglers->jobs));
	if (stragglers->jobs == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < job->group_count; i++)
		stragglers->jobs[i].comm = UINT32_MAX;
	return OK;
}

/* Transfers of this rank take longer than those of others. */
static bool is_end_of_slow(const struct straggler_search *search, uint32_t rank)
{
	for (size_t i = 0; i < search->count; i++) {
		const struct straggler *slow = &search->found[i];

		if ((slow->class == STRAGGLER_SLOW_LINK &&
		     (slow->rank == rank || slow->peer == rank)) ||
		    (slow->is_starved && slow->rank == rank))
			return true;
	}
	return false;
}

/*
 * A rank whose transfers are slow is inside of operations for longer. If most peers of a rank are such ones, it
 * spends more time outside than they do without being slow.
 */
static void drop_beside_slow(struct straggler_search *search, size_t first)
{
	const struct job *job = search->job;

	for (size_t i = first; i < search->count; i++) {
		struct straggler *origin = &search->found[i];
		const struct job_comm *comm = &job->comms[origin->comm];
		uint32_t slow = 0;

		for (uint32_t s = 0; origin->rank != UINT32_MAX && s < comm->seat_count; s++) {
			uint32_t peer = job->seats[comm->seats[s]].rank;

			slow += peer != origin->rank && is_end_of_slow(search, peer);
		}
		origin->is_dropped = slow > 0 && slow * 2 >= comm->seat_count - 1;
	}
	straggler_drop_marked(search);
}

static void find_origins(struct straggler_search *search, struct stragglers *stragglers,
			 const struct timeline_rank *ranks)
{
	size_t first;

	for (uint32_t g = 0; g < search->job->group_count && search->status == OK; g++) {
		if (!straggler_has_sends(search, g))
			continue;
		first = search->count;
		stragglers->jobs[g].is_judged |= straggler_origins(search, g, ranks);
		drop_beside_slow(search, first);
		stragglers->explained += replace_by_origins(search, g);
	}
}

static void find_all(struct straggler_search *search, struct stragglers *stragglers,
		     const struct timeline_rank *ranks)
{
	find_chains(search);
	if (search->status == OK)
		look_at_lanes(search, stragglers);
	if (search->status == OK)
		straggler_links(search);
	/* Before ranks are named for links that they have in common, and what is left after. */
	if (search->status == OK)
		merge_places(search);
	if (search->status == OK)
		merge_both_ways(search);
	if (search->status == OK)
		merge_places(search);
	if (search->status == OK)
		find_origins(search, stragglers, ranks);
	if (search->status == OK)
		stragglers->explained += drop_explained(search);
	if (search->status != OK)
		return;
	merge_same(search);
	merge_hosts(search);
	merge_apart(search);
	drop_minor(search);
	straggler_network(search);
}

enum status straggler_find(struct stragglers *stragglers, const struct timeline_report *report,
			   const struct matches *matches, const struct links *links)
{
	struct straggler_search search = { .job = &report->job,
					   .matches = matches,
					   .links = links,
					   .align = &report->align,
					   .windows = &report->windows,
					   .comms = report->comms,
					   .since_ns = report->since_ns,
					   .until_ns = report->until_ns,
					   .iteration_ns = report->iterations.median_ns };

	*stragglers = (struct stragglers){ .least_matches = STRAGGLER_MEETINGS_LEAST };
	search.is_chain = calloc(report->job.comm_count + 1, sizeof(*search.is_chain));
	search.wire_rise = calloc(report->windows.change_count + 1, sizeof(*search.wire_rise));
	search.status = init_jobs(stragglers, &report->job);
	search.is_staggered = calloc(report->job.comm_count + 1, sizeof(*search.is_staggered));
	search.is_exchange = calloc(report->job.comm_count + 1, sizeof(*search.is_exchange));
	if (search.is_exchange == NULL || search.is_chain == NULL || search.is_staggered == NULL ||
	    search.wire_rise == NULL)
		search.status = ERR_NO_SPACE;
	if (search.status == OK)
		find_all(&search, stragglers, report->ranks);
	free(search.is_chain);
	free(search.is_exchange);
	free(search.is_staggered);
	free(search.wire_rise);
	if (search.status != OK) {
		free(search.found);
		stragglers_release(stragglers);
		return search.status;
	}
	if (search.count > 0)
		qsort(search.found, search.count, sizeof(*search.found), most_caused_first);
	stragglers->list = search.found;
	stragglers->count = search.count < STRAGGLERS_MAX ? search.count : STRAGGLERS_MAX;
	return OK;
}
