/*
 * A straggler hides those that are less late: it is the last of all, so nobody waits for another one, and with it
 * collectives take so much longer that what the others differ by seems not to matter. So the other ranks are judged
 * once more, as if it were as fast as they are:
 *
 *	rank 0   ====......................|
 *	rank 1   ========..................|	late behind rank 2: with rank 2 repaired, all wait for it
 *	rank 2   ====================......|	the straggler
 *
 * Who of the others is how late does not depend on it: they began together. Durations and waiting do, so those are
 * taken as they would be if the last of the others had been the last of all, in the mean of each block. Only blocks
 * in which the straggler is late count: in the others it hides nobody, and they were judged already.
 */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"

/* With fewer others, the median of them is one of those that may be late; and a few show little of how much they
 * differ without a problem. */
enum { REST_LEAST = 3, REST_ENOUGH = 4 };

/* How certain a rank is that shows only without another one. */
static const double sure_of_rest = 0.9;

struct rest {
	struct straggler ahead; /* the one that hides the others */
	bool *is_out;		/* [seat]: of the one ahead */
	uint32_t out;
	double *scratch; /* as many as seats */
	double kept;	 /* matches of the blocks that count */
	struct straggler_table table;
};

static bool is_of(const struct straggler_search *search, const struct straggler *late,
		  const struct straggler_table *table, uint32_t seat)
{
	const struct job *job = search->job;
	uint32_t rank = job->seats[job->comms[table->lane->comm].seats[seat]].rank;

	if (late->class == STRAGGLER_SLOW_RANK)
		return late->rank == rank;
	return late->class == STRAGGLER_SLOW_HOST && late->host == job->ranks[rank].host;
}

static bool rest_init(struct rest *rest, const struct straggler_table *table,
		      const struct straggler *ahead)
{
	struct straggler_table *of = &rest->table;
	size_t cells = (size_t)table->seats * table->blocks;

	*rest = (struct rest){ .ahead = *ahead, .table = *table };
	rest->is_out = calloc(table->seats + 1, sizeof(*rest->is_out));
	rest->scratch = calloc(table->seats + 1, sizeof(*rest->scratch));
	of->late_ns = calloc(cells + 1, sizeof(*of->late_ns));
	of->mean_ns = calloc(table->blocks + 1, sizeof(*of->mean_ns));
	of->count = calloc(table->blocks + 1, sizeof(*of->count));
	of->start_ns = calloc(table->blocks + 1, sizeof(*of->start_ns));
	of->end_ns = calloc(table->blocks + 1, sizeof(*of->end_ns));
	of->last_in = calloc(table->seats + 1, sizeof(*of->last_in));
	of->caused_ns = calloc((size_t)table->seats * table->blocks + 1, sizeof(*of->caused_ns));
	of->took_part = calloc(table->seats + 1, sizeof(*of->took_part));
	of->blocks = 0;
	return rest->is_out && rest->scratch && of->late_ns && of->mean_ns && of->count &&
	       of->start_ns && of->end_ns && of->last_in && of->caused_ns && of->took_part;
}

/* What else its table has is borrowed. */
static void rest_release(struct rest *rest)
{
	free(rest->is_out);
	free(rest->scratch);
	free(rest->table.late_ns);
	free(rest->table.mean_ns);
	free(rest->table.count);
	free(rest->table.start_ns);
	free(rest->table.end_ns);
	free(rest->table.last_in);
	free(rest->table.caused_ns);
	free(rest->table.took_part);
}

/* How late seats are in a block. */
struct rest_block {
	uint32_t count; /* of those that are left */
	uint32_t last;	/* the last of them, */
	double top, next;
	double mean;
	double middle;
	double top_out; /* of those ahead */
};

static struct rest_block measure_block(const struct rest *rest, const struct straggler_table *table,
				       uint32_t block)
{
	struct rest_block of = { .top = -INFINITY, .next = -INFINITY, .top_out = -INFINITY };

	for (uint32_t seat = 0; seat < table->seats; seat++) {
		double late = table->late_ns[(size_t)seat * table->blocks + block];

		if (isnan(late))
			continue;
		if (rest->is_out[seat]) {
			of.top_out = fmax(of.top_out, late);
			continue;
		}
		rest->scratch[of.count++] = late;
		of.mean += late;
		of.next = late > of.top ? of.top : fmax(of.next, late);
		of.last = late > of.top ? seat : of.last;
		of.top = fmax(of.top, late);
	}
	if (of.count > 0) {
		of.mean /= of.count;
		of.middle = stats_lower_middle(rest->scratch, of.count);
	}
	return of;
}

/* table->blocks are the columns of both tables until pack_late() */
static void keep_block(struct rest *rest, const struct straggler_table *table, uint32_t block,
		       const struct rest_block *of)
{
	struct straggler_table *to = &rest->table;
	uint32_t kept = to->blocks++;

	for (uint32_t seat = 0; seat < table->seats; seat++)
		to->late_ns[(size_t)seat * table->blocks + kept] =
			rest->is_out[seat] ? NAN
					   : table->late_ns[(size_t)seat * table->blocks + block];
	/* All of them wait less, by how much the straggler is later than the last of them. */
	to->mean_ns[kept] = fmax(table->mean_ns[block] - of->mean - fmax(0, of->top_out - of->top),
				 table->least_ns[block]);
	to->count[kept] = table->count[block];
	to->start_ns[kept] = table->start_ns[block];
	to->end_ns[kept] = table->end_ns[block];
	to->caused_ns[(size_t)of->last * table->blocks + kept] =
		(of->top - of->next) * table->count[block] * (of->count - 1);
	rest->kept += table->count[block];
}

static void pack_late(struct rest *rest, uint32_t columns)
{
	struct straggler_table *of = &rest->table;

	for (uint32_t seat = 1; seat < of->seats; seat++) {
		size_t to = (size_t)seat * of->blocks, from = (size_t)seat * columns;

		memmove(&of->late_ns[to], &of->late_ns[from], of->blocks * sizeof(*of->late_ns));
		memmove(&of->caused_ns[to], &of->caused_ns[from],
			of->blocks * sizeof(*of->caused_ns));
	}
}

static void keep_blocks(struct rest *rest, const struct straggler_table *table)
{
	for (uint32_t b = 0; b < table->blocks; b++) {
		struct rest_block of = measure_block(rest, table, b);

		if (of.count >= REST_LEAST &&
		    of.top_out - of.middle > (double)rest->ahead.late_ns / 2)
			keep_block(rest, table, b, &of);
	}
	pack_late(rest, table->blocks);
	for (uint32_t seat = 0; seat < table->seats; seat++)
		rest->table.took_part[seat] = (uint64_t)((double)table->took_part[seat] *
							 rest->kept / (double)table->matches);
}

/* Times and costs are relative to those of all blocks. */
static void finish(const struct rest *rest, const struct straggler_table *table,
		   struct straggler *behind)
{
	behind->is_behind = true;
	behind->has_small_rest = table->seats - rest->out < REST_ENOUGH;
	behind->ahead_rank = rest->ahead.rank;
	behind->ahead_host = rest->ahead.host;
	behind->confidence = fmin(behind->confidence, sure_of_rest);
	if (behind->pattern == STRAGGLER_ALWAYS)
		behind->pattern = rest->ahead.pattern;
	behind->share_of_time *= rest->ahead.share_of_time;
	behind->share_of_ns = straggler_cost_share(table, 1);
	behind->cost_share = fmin(1, (double)behind->caused_ns * behind->share_of_ns);
}

/* The latest of those that were found: it hides all others. */
static const struct straggler *find_ahead(const struct straggler_search *search, size_t first)
{
	const struct straggler *ahead = &search->found[first];

	for (size_t i = first; i < search->count; i++)
		if (search->found[i].late_ns > ahead->late_ns)
			ahead = &search->found[i];
	return ahead;
}

static bool is_part_of(const struct straggler *one, const struct straggler *other)
{
	return one->host == other->host &&
	       (one->rank == other->rank || other->class == STRAGGLER_SLOW_HOST);
}

/* The host of the one ahead, which is no more than the last of its ranks. */
static bool is_its_host(const struct straggler *behind, const struct straggler *ahead)
{
	return behind->class == STRAGGLER_SLOW_HOST && ahead->class == STRAGGLER_SLOW_RANK &&
	       behind->host == ahead->host && ahead->late_ns < 2 * behind->late_ns;
}

/*
 * One that is late enough for both was found before. If others waited for it then, that is what it costs; else the
 * new finding replaces it. found[until...] are new.
 */
static void settle(struct straggler_search *search, const struct straggler *ahead, size_t first,
		   size_t until)
{
	for (size_t i = until; i < search->count; i++) {
		struct straggler *behind = &search->found[i];

		if (is_its_host(behind, ahead)) {
			behind->is_behind = false;
			behind->caused_ns = behind->caused_ns > ahead->caused_ns ? behind->caused_ns
										 : ahead->caused_ns;
			behind->cost_share = fmax(behind->cost_share, ahead->cost_share);
			for (size_t j = first; j < until; j++)
				search->found[j].is_dropped |=
					is_part_of(&search->found[j], behind);
			continue;
		}
		for (size_t j = first; j < until; j++) {
			struct straggler *before = &search->found[j];

			if (!is_part_of(before, behind))
				continue;
			if (before->cost_share >= behind->cost_share / 2)
				behind->is_dropped = true;
			else
				before->is_dropped = true;
		}
	}
	straggler_drop_marked(search);
}

void straggler_late_rest(struct straggler_search *search, const struct straggler_table *table,
			 size_t first)
{
	size_t until = search->count;
	struct rest rest;

	/* Where ranks wait for each other in Sends, being late says little: see straggler_origin.c. Without GPU
	 * times, only the effect on all collectives tells, and that is the straggler's. */
	if (table->is_late_by_network ||
	    straggler_has_sends(search, search->job->comms[table->lane->comm].group))
		return;
	if (!rest_init(&rest, table, find_ahead(search, first))) {
		search->status = ERR_NO_SPACE;
		rest_release(&rest);
		return;
	}
	for (uint32_t seat = 0; seat < table->seats; seat++) {
		rest.is_out[seat] = is_of(search, &rest.ahead, table, seat);
		rest.out += rest.is_out[seat];
	}
	if (table->seats - rest.out < REST_LEAST) {
		for (size_t i = first; i < until; i++)
			search->found[i].has_small_rest = true;
	} else {
		keep_blocks(&rest, table);
		if (rest.table.blocks >= STRAGGLER_BLOCKS_LEAST)
			straggler_late(search, &rest.table);
	}
	for (size_t i = until; i < search->count; i++)
		finish(&rest, table, &search->found[i]);
	if (search->status == OK)
		settle(search, &rest.ahead, first, until);
	rest_release(&rest);
}
