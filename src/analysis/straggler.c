/*
 * From everything that stands out to the stragglers.
 *
 * If Sends and Recvs make a chain of ranks (a pipeline), those arrive at a common collective one after the other
 * even without a problem: such collectives name no straggler.
 */
#include "analysis/straggler.h"
#include "analysis/straggler_internal.h"

#include <stdlib.h>

#include "analysis/timeline_report.h"
#include "common/attributes.h"

enum { STRAGGLERS_MAX = 64 };

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

static void find_origins(struct straggler_search *search, struct stragglers *stragglers,
			 const struct timeline_rank *ranks)
{
	size_t first;

	for (uint32_t g = 0; g < search->job->group_count && search->status == OK; g++) {
		if (!straggler_has_sends(search, g))
			continue;
		first = search->count;
		stragglers->jobs[g].is_judged |= straggler_origins(search, g, ranks);
		straggler_drop_beside_slow(search, first);
		stragglers->explained += straggler_replace_by_origins(search, g);
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
	if (search->status == OK)
		straggler_merge_links(search);
	if (search->status == OK)
		find_origins(search, stragglers, ranks);
	if (search->status == OK)
		stragglers->explained += straggler_drop_explained(search);
	if (search->status != OK)
		return;
	straggler_merge(search);
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
