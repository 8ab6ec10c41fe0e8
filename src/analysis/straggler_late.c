/*
 * Late ranks.
 *
 * Per block of matches, how much later than the median rank a rank arrived, on average. By chance that is 0
 * with some spread from block to block; a rank stands out if its mean over a section of blocks is too far
 * above 0 for that spread (Student's t, corrected for all ranks and sections examined), and large enough to
 * matter.
 */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats.h"
#include "common/text.h"

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

double straggler_share_that_counts(const struct straggler *host)
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
	straggler.caused_ns = units_whole(
		stretch->typical * (double)straggler.matches *
		fmin(straggler.share_of_time,
		     knows_who_is_last(table) ? straggler_share_that_counts(&straggler) : 1) *
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
