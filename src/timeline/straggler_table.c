#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/align_fit.h"
#include "timeline/chance.h"
#include "timeline/straggler_find.h"

void straggler_table_release(struct straggler_table *table)
{
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

static bool allocate(struct straggler_table *table)
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
	table->caused_ns = calloc(table->seats + 1, sizeof(*table->caused_ns));
	table->took_part = calloc(table->seats + 1, sizeof(*table->took_part));
	return table->late_ns && table->wire_ns && table->wire_sum && table->mean_ns &&
	       table->least_ns && table->count && table->start_ns && table->end_ns &&
	       table->first_number && table->last_in && table->caused_ns && table->took_part;
}

/* All its meetings have (nearly) all ranks, so that nobody unseen came last. */
static bool is_usable(const struct meet_brief *brief, uint32_t nranks)
{
	return brief->occupied != 0 && brief->fewest * 4 >= nranks * 3;
}

/* Chunks in the order of their numbers. */
struct ordered {
	uint64_t number;
	uint32_t chunk;
};

static int by_number(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;

	return a->number < b->number ? -1 : a->number > b->number;
}

/* block_of[chunk]: UINT32_MAX when it is not used. */
static enum status order_chunks(struct straggler_table *table, const struct meet_lane *lane,
				uint32_t nranks, uint32_t *block_of)
{
	struct ordered *order = calloc(lane->chunk_count + 1, sizeof(*order));
	uint32_t used = 0;

	if (order == NULL)
		return ERR_NO_SPACE;
	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		block_of[i] = UINT32_MAX;
		if (!is_usable(&lane->briefs[i], nranks))
			continue;
		order[used++] = (struct ordered){ lane->briefs[i].number, i };
		table->meetings += (uint32_t)__builtin_popcount(lane->briefs[i].occupied);
	}
	qsort(order, used, sizeof(*order), by_number);
	/* A chunk with few meetings, at the ends, counts with its neighbours. */
	table->blocks = used < STRAGGLER_BLOCKS ? used : STRAGGLER_BLOCKS;
	if (table->blocks < STRAGGLER_BLOCKS_LEAST)
		table->blocks = 0;
	for (uint32_t i = 0; i < used && table->blocks > 0; i++)
		block_of[order[i].chunk] = (uint32_t)((uint64_t)i * table->blocks / used);
	free(order);
	return OK;
}

static void add_chunk(struct straggler_table *table, const struct job *job,
		      const struct align *align, uint32_t chunk, uint32_t block)
{
	const struct meet_lane *lane = table->lane;
	const struct job_comm *comm = &job->comms[lane->comm];

	if (table->count[block] == 0 || lane->briefs[chunk].number < table->first_number[block])
		table->first_number[block] = lane->briefs[chunk].number;

	for (uint32_t bits = lane->briefs[chunk].occupied; bits != 0; bits &= bits - 1) {
		const struct meet_slot *slot = &lane->chunks[chunk]->slots[__builtin_ctz(bits)];
		uint32_t owner = job->seats[comm->seats[slot->owner]].process;
		uint64_t end_ns = align ? align_ns(align, owner, slot->end_ns) : 0;

		table->count[block]++;
		table->mean_ns[block] += (double)slot->sum_ns / slot->count;
		table->least_ns[block] += (double)slot->least_ns;
		table->last_in[slot->last]++;
		if (slot->count > 1)
			table->caused_ns[slot->last] +=
				(slot->second_ns - slot->least_ns) * (slot->count - 1u);
		if (end_ns == 0)
			continue;
		if (table->start_ns[block] == 0 || end_ns < table->start_ns[block])
			table->start_ns[block] = end_ns;
		if (end_ns > table->end_ns[block])
			table->end_ns[block] = end_ns;
	}
}

/* The largest messages of the lane. */
static uint32_t largest_class(const struct meet_lane *lane, uint32_t seats)
{
	uint32_t largest = 0;

	for (uint32_t seat = 0; seat < seats; seat++)
		for (uint32_t i = 0; i < lane->seats[seat].count; i++)
			if (lane->seats[seat].parts[i].wire_class > largest)
				largest = lane->seats[seat].parts[i].wire_class;
	return largest;
}

static void add_parts(struct straggler_table *table, const uint32_t *block_of, uint32_t seat)
{
	const struct meet_seat *of = &table->lane->seats[seat];
	double *late = &table->late_ns[(size_t)seat * table->blocks];
	double *wire = &table->wire_ns[(size_t)seat * table->blocks];
	double *sum = &table->wire_sum[(size_t)seat * table->blocks];
	double meetings[STRAGGLER_BLOCKS] = { 0 }, steps[STRAGGLER_BLOCKS] = { 0 };

	for (uint32_t i = 0; i < of->count; i++) {
		const struct meet_part *part = &of->parts[i];
		uint32_t block = block_of[part->chunk];
		struct meet_slice slice;

		if (block == UINT32_MAX || part->bits == 0)
			continue;
		slice = meet_slice(table->lane, part->chunk, part->bits);
		late[block] += slice.mean_ns - (double)part->sum_ns;
		meetings[block] += slice.meetings;
		if (part->wire_class == table->wire_class) {
			sum[block] += (double)part->send_net_ns;
			steps[block] += (double)part->send_steps;
		}
		table->took_part[seat] += slice.meetings;
	}
	for (uint32_t b = 0; b < table->blocks; b++) {
		late[b] = meetings[b] > 0 ? late[b] / meetings[b] : NAN;
		wire[b] = steps[b] > 0 ? sum[b] / steps[b] : NAN;
	}
}

/* A block with few meetings, where a lane begins or ends, says less than the others: left out. */
static void drop_thin_blocks(struct straggler_table *table)
{
	uint32_t good = 0;
	uint64_t kept = 0;

	for (uint32_t b = 0; b < table->blocks; b++) {
		bool is_thin = table->count[b] * 2 * table->blocks < (double)table->meetings;

		good += !is_thin;
		kept += is_thin ? 0 : (uint64_t)table->count[b];
		for (uint32_t seat = 0; is_thin && seat < table->seats; seat++) {
			table->late_ns[(size_t)seat * table->blocks + b] = NAN;
			table->wire_ns[(size_t)seat * table->blocks + b] = NAN;
		}
	}
	if (good < STRAGGLER_BLOCKS_LEAST) {
		table->blocks = 0;
		table->meetings = kept;
	}
}

enum status straggler_table_make(struct straggler_table *table, const struct meet *meet,
				 const struct meet_lane *lane, const struct align *align)
{
	const struct job_comm *comm = &meet->job->comms[lane->comm];
	uint32_t *block_of = calloc(lane->chunk_count + 1, sizeof(*block_of));
	uint32_t nranks = comm->nranks > 0 ? (uint32_t)comm->nranks : comm->seat_count;
	enum status status;

	*table = (struct straggler_table){ .lane = lane, .seats = comm->seat_count };
	status = block_of ? order_chunks(table, lane, nranks, block_of) : ERR_NO_SPACE;
	if (status == OK && !allocate(table))
		status = ERR_NO_SPACE;
	if (status == OK && table->blocks > 0) {
		for (uint32_t i = 0; i < lane->chunk_count; i++)
			if (block_of[i] != UINT32_MAX)
				add_chunk(table, meet->job, align, i, block_of[i]);
		table->wire_class = largest_class(lane, table->seats);
		for (uint32_t seat = 0; seat < table->seats; seat++)
			add_parts(table, block_of, seat);
		for (uint32_t b = 0; b < table->blocks; b++) {
			table->mean_ns[b] /= table->count[b];
			table->least_ns[b] /= table->count[b];
		}
		drop_thin_blocks(table);
	}
	free(block_of);
	if (status != OK)
		straggler_table_release(table);
	return status;
}

/* ---- a stretch that stands out --------------------------------------------------------------- */

/*
 * Two ways to tell chance. By the stretch's own spread from block to block; or, where the spread of all ranks
 * is known (noise > 0), by that: a few blocks suffice then. Tails are taken as heavy, with few degrees of
 * freedom, because lateness has them.
 */
static double chance_of(const double *values, uint32_t from, uint32_t to, double noise,
			double *middle)
{
	enum { NOISE_BLOCKS_LEAST = 3, NOISE_FREEDOM = 8 };
	double there[STRAGGLER_BLOCKS], own = 1, pooled = 1;
	struct chance_sample sample;
	uint32_t count = 0;

	for (uint32_t b = from; b < to; b++)
		if (!isnan(values[b]))
			there[count++] = values[b];
	if (count == 0) {
		*middle = 0;
		return 1;
	}
	sample = chance_series(there, count);
	/* Lower middle: most blocks are like that, or worse. */
	*middle = align_select(there, count, (count - 1) / 2);
	if (count < NOISE_BLOCKS_LEAST || *middle <= 0)
		return 1;
	/* Even what never varies was measured so often only. */
	if (sample.error < sample.mean * 0.02)
		sample.error = sample.mean * 0.02;
	if (count >= STRAGGLER_BLOCKS_LEAST)
		own = chance_student(sample.mean / sample.error, (double)count - 1);
	if (noise > 0)
		pooled = chance_student(*middle / noise * sqrt((double)count), NOISE_FREEDOM);
	return own < pooled ? own : pooled;
}

struct straggler_stretch straggler_stretch(const double *values, uint32_t blocks, double least,
					   double noise)
{
	enum { LEVELS = 4, STRETCHES = 15 };
	struct straggler_stretch best = { .chance = 1 };

	for (uint32_t level = 0; level < LEVELS; level++)
		for (uint32_t i = 0; i < 1u << level; i++) {
			uint32_t from = blocks * i >> level, to = blocks * (i + 1) >> level;
			double middle = 0;
			double chance = chance_of(values, from, to, noise, &middle) * STRETCHES;

			if (middle < least || chance >= best.chance)
				continue;
			best = (struct straggler_stretch){ .is_found = true,
							   .from = from,
							   .to = to,
							   .typical = middle,
							   .chance = chance };
		}
	return best;
}

void straggler_times(struct straggler *straggler, const struct straggler_table *table,
		     const bool *is_on)
{
	uint32_t first = table->blocks, last = 0, on = 0;
	double all_ns = 0, on_ns = 0;

	for (uint32_t b = 0; b < table->blocks; b++) {
		double span_ns = (double)(table->end_ns[b] - table->start_ns[b]);

		all_ns += span_ns;
		if (!is_on[b])
			continue;
		on_ns += span_ns;
		on++;
		last = b;
		if (first == table->blocks)
			first = b;
	}
	if (on == 0)
		return;
	straggler->share_of_time = all_ns > 0 ? on_ns / all_ns : (double)on / table->blocks;
	straggler->has_times = table->start_ns[first] != 0;
	straggler->first_ns = table->start_ns[first];
	straggler->last_ns = table->end_ns[last];
	/* Blocks at the edges are mixed: one may be missing. */
	if (last - first + 1 > on + 1 + (last - first) / 5)
		straggler->pattern = STRAGGLER_BURSTS;
	else if (first <= 1 && last + 2 >= table->blocks)
		straggler->pattern = STRAGGLER_ALWAYS;
	else if (last + 2 >= table->blocks)
		straggler->pattern = STRAGGLER_SINCE;
	else
		straggler->pattern = first <= 1 ? STRAGGLER_UNTIL : STRAGGLER_BURSTS;
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
				   .meetings = table->took_part[seat],
				   .last_in = table->last_in[seat] };
}

double straggler_cost_share(const struct straggler_table *table, double caused_ns)
{
	double span_ns = (double)(table->end_ns[table->blocks - 1] - table->start_ns[0]);

	return span_ns > 0 ? caused_ns / (span_ns * table->seats) : 0;
}
