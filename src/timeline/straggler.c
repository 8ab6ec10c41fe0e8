/*
 * From all that stands out to who is to blame.
 *
 * A rank that waits for a slow one in one communicator comes late to the next: it is explained by that one
 * and not named. Ranks of one host that are late alike are the host. Where Sends and Recvs make a chain
 * of ranks (a pipeline), those come to a common collective one after the other even when all is well:
 * such collectives name nobody.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "timeline/report.h"
#include "timeline/straggler_find.h"

/* A slow rank or host costs the others at least this share of their time. */
static const double cost_that_matters = 0.005;

const char *straggler_class_name(enum straggler_class class)
{
	static const char *const names[] = { "none", "slow_rank", "slow_host", "slow_link",
					     "network" };

	return (unsigned int)class <= STRAGGLER_NETWORK ? names[class] : "none";
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
	if (search->count == search->room) {
		size_t room = search->room ? search->room * 2 : 64;
		void *grown = realloc(search->found, room * sizeof(*search->found));

		if (grown == NULL) {
			search->status = ERR_NO_SPACE;
			return;
		}
		search->found = grown;
		search->room = room;
	}
	search->found[search->count++] = *straggler;
}

double straggler_scale(const struct straggler_search *search, uint32_t comm)
{
	return search->comms != NULL ? search->comms[comm].scale : 1;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

/* Each rank sends to a few of the others only, or there are but two. */
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

		if (link->to == job->seats[link->from].comm_rank)
			continue;
		peers[link->comm]++;
		senders[link->comm] += !has_sent[link->from];
		has_sent[link->from] = true;
	}
	for (size_t c = 0; search->status == OK && c < job->comm_count; c++) {
		int32_t others = job->comms[c].nranks - 1;

		search->is_chain[c] =
			senders[c] > 0 &&
			(others < 2 || (double)peers[c] / senders[c] < 0.75 * (double)others);
	}
	free(peers);
	free(senders);
	free(has_sent);
}

/* Two members of it are in one chain. marks: per rank, the chain it was last seen in, + 1. */
static bool is_staggered(const struct straggler_search *search, uint32_t comm, uint32_t *marks)
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
	if (table->meetings <= judged->meetings)
		return;
	judged->meetings = table->meetings;
	judged->comm = table->lane->comm;
}

static void look_at_lane(struct straggler_search *search, struct stragglers *stragglers,
			 const struct meet_lane *lane, bool is_comm_staggered)
{
	struct straggler_table table;
	enum status status = straggler_table_make(&table, search->meet, lane, search->align);

	if (status != OK) {
		search->status = status;
		return;
	}
	/* Too few so far: of the lane that has most of them. */
	if (table.blocks == 0 && !stragglers->has_enough && table.meetings > stragglers->meetings)
		stragglers->meetings = table.meetings;
	if (!is_comm_staggered)
		note_judged(&stragglers->jobs[search->job->comms[lane->comm].group], &table);
	if (table.blocks > 0) {
		stragglers->meetings =
			table.meetings + (stragglers->has_enough ? stragglers->meetings : 0);
		stragglers->has_enough = true;
		if (!is_comm_staggered)
			straggler_late(search, &table);
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
		bool is_comm_staggered = is_staggered(search, c, marks);

		for (unsigned int i = 0; i < MEET_LANES && search->status == OK; i++)
			if (search->meet->comms[c].lanes[i] != NULL && job->comms[c].seat_count > 1)
				look_at_lane(search, stragglers, search->meet->comms[c].lanes[i],
					     is_comm_staggered);
	}
	free(marks);
}

/* ---- who explains whom ----------------------------------------------------------------------- */

static bool is_member(const struct job *job, uint32_t comm, uint32_t rank)
{
	for (uint32_t i = 0; i < job->comms[comm].seat_count; i++)
		if (job->seats[job->comms[comm].seats[i]].rank == rank)
			return true;
	return false;
}

static bool is_late_in(const struct straggler_search *search, uint32_t rank, uint32_t comm)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].class == STRAGGLER_SLOW_RANK &&
		    search->found[i].rank == rank && search->found[i].comm == comm)
			return true;
	return false;
}

/* It is late here because it waits for somebody else elsewhere. */
static bool is_explained(const struct straggler_search *search, const struct straggler *here)
{
	for (size_t i = 0; i < search->count; i++) {
		const struct straggler *there = &search->found[i];

		if (there->class == STRAGGLER_SLOW_RANK && there->comm != here->comm &&
		    there->rank != here->rank && is_member(search->job, there->comm, here->rank) &&
		    !is_late_in(search, here->rank, there->comm))
			return true;
	}
	return false;
}

static size_t drop_explained(struct straggler_search *search)
{
	bool *is_dropped = calloc(search->count + 1, sizeof(*is_dropped));
	size_t kept = 0, dropped;

	if (is_dropped == NULL) {
		search->status = ERR_NO_SPACE;
		return 0;
	}
	for (size_t i = 0; i < search->count; i++)
		is_dropped[i] = search->found[i].class == STRAGGLER_SLOW_RANK &&
				!search->found[i].is_starved &&
				is_explained(search, &search->found[i]);
	for (size_t i = 0; i < search->count; i++)
		if (!is_dropped[i])
			search->found[kept++] = search->found[i];
	dropped = search->count - kept;
	search->count = kept;
	free(is_dropped);
	return dropped;
}

/* ---- one line per rank, host or link --------------------------------------------------------- */

static bool is_same(const struct straggler *a, const struct straggler *b)
{
	if (a->class != b->class || a->rank != b->rank)
		return false;
	return a->class != STRAGGLER_SLOW_LINK || a->peer == b->peer || a->peer == UINT32_MAX ||
	       b->peer == UINT32_MAX;
}

static void merge_into(struct straggler *to, const struct straggler *from)
{
	const struct straggler *starved = to->own_slowdown > from->own_slowdown ? to : from;
	double slowdown = starved->slowdown, own_slowdown = starved->own_slowdown;
	uint64_t caused_ns = to->caused_ns + from->caused_ns;
	uint32_t peer = to->peer != UINT32_MAX ? to->peer : from->peer;
	double cost_share = to->cost_share > from->cost_share ? to->cost_share : from->cost_share;
	bool is_starved = to->is_starved || from->is_starved;
	bool is_late = to->late_ns > 0, is_from_late = from->late_ns > 0;

	/* The communicator where it costs most speaks for it; and one to which it comes late, before others. */
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

		while (j < kept && !is_same(&search->found[j], &search->found[i]))
			j++;
		if (j < kept)
			merge_into(&search->found[j], &search->found[i]);
		else
			search->found[kept++] = search->found[i];
	}
	search->count = kept;
}

static uint32_t ranks_of_host(const struct job *job, uint32_t comm, uint32_t host)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < job->comms[comm].seat_count; i++)
		count += job->ranks[job->seats[job->comms[comm].seats[i]].rank].host == host;
	return count;
}

/* All ranks that a host has in a communicator are late: it is the host. */
static void merge_hosts(struct straggler_search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		struct straggler *first = &search->found[i];
		uint32_t members, late = 0;

		if (first->class != STRAGGLER_SLOW_RANK || first->late_ns == 0)
			continue;
		members = ranks_of_host(search->job, first->comm, first->host);
		for (size_t j = i; j < search->count; j++)
			late += search->found[j].class == STRAGGLER_SLOW_RANK &&
				search->found[j].host == first->host &&
				search->found[j].late_ns * 2 >= first->late_ns;
		if (members < 2 || late < members ||
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
			search->found[j] = search->found[--search->count];
		}
		/* Together they keep all others waiting; one by one, they hide each other. */
		first->caused_ns =
			units_whole((double)first->late_ns * (double)first->meetings *
				    (search->job->comms[first->comm].seat_count - members) *
				    straggler_scale(search, first->comm));
		first->cost_share = (double)first->caused_ns * first->share_of_ns;
		first->rank = UINT32_MAX;
	}
}

/* Hosts that are late to the same collectives are late for one reason, and are judged together. */
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

/* Late beyond chance, and yet nobody would notice. */
static void drop_minor(struct straggler_search *search)
{
	size_t kept = 0;

	for (size_t i = 0; i < search->count; i++) {
		struct straggler *late = &search->found[i];

		late->is_minor = (late->class == STRAGGLER_SLOW_RANK ||
				  late->class == STRAGGLER_SLOW_HOST) &&
				 !late->is_starved && cost_of(search, late) < cost_that_matters;
	}
	for (size_t i = 0; i < search->count; i++)
		if (!search->found[i].is_minor)
			search->found[kept++] = search->found[i];
	search->count = kept;
}

/* ---------------------------------------------------------------------------------------------- */

static int most_caused_first(const void *left, const void *right)
{
	const struct straggler *a = left, *b = right;

	if (a->caused_ns != b->caused_ns)
		return a->caused_ns > b->caused_ns ? -1 : 1;
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
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

static void find_all(struct straggler_search *search, struct stragglers *stragglers)
{
	find_chains(search);
	if (search->status == OK)
		look_at_lanes(search, stragglers);
	if (search->status == OK)
		straggler_links(search);
	if (search->status == OK)
		stragglers->explained = drop_explained(search);
	if (search->status != OK)
		return;
	merge_same(search);
	merge_hosts(search);
	drop_minor(search);
	straggler_network(search);
}

enum status straggler_find(struct stragglers *stragglers, const struct timeline_report *report,
			   const struct meet *meet, const struct links *links)
{
	struct straggler_search search = { .job = &report->job,
					   .meet = meet,
					   .links = links,
					   .align = &report->align,
					   .windows = &report->windows,
					   .comms = report->comms,
					   .since_ns = report->since_ns,
					   .until_ns = report->until_ns };

	*stragglers = (struct stragglers){ .least_meetings = STRAGGLER_MEETINGS_LEAST };
	search.is_chain = calloc(report->job.comm_count + 1, sizeof(*search.is_chain));
	search.wire_rise = calloc(report->windows.change_count + 1, sizeof(*search.wire_rise));
	search.status = init_jobs(stragglers, &report->job);
	if (search.is_chain == NULL || search.wire_rise == NULL)
		search.status = ERR_NO_SPACE;
	if (search.status == OK)
		find_all(&search, stragglers);
	free(search.is_chain);
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
