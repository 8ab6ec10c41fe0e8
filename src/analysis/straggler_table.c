/* A lane cut into blocks, and what is found in it. */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats.h"

void straggler_table_release(struct straggler_table *table)
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

enum status straggler_table_make(struct straggler_table *table, const struct matches *matches,
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

/* ---- what is found ------------------------------------------------------------------------------ */

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

bool straggler_has_sends(const struct straggler_search *search, uint32_t group)
{
	for (size_t i = 0; i < search->links->count; i++) {
		const struct link *link = &search->links->list[i];

		if (search->job->comms[link->comm].group == group &&
		    link->to != search->job->seats[link->from].comm_rank)
			return true;
	}
	return false;
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
