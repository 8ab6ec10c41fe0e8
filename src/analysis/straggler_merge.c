/*
 * One finding per cause: what another one explains is dropped, and findings with something in common are merged.
 *
 * A rank that waits for a slow one in one communicator is late for the next: it is explained by that one
 * and not named. Ranks of one host that are equally late are the host.
 */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/timeline_report.h"
#include "common/text.h"

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

size_t straggler_drop_explained(struct straggler_search *search)
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
size_t straggler_replace_by_origins(struct straggler_search *search, uint32_t group)
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
void straggler_drop_beside_slow(struct straggler_search *search, size_t first)
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

/* ---- links ---------------------------------------------------------------------------------------- */

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

void straggler_merge_links(struct straggler_search *search)
{
	/* Before ranks are named for links that they have in common, and what is left after. */
	merge_places(search);
	merge_both_ways(search);
	if (search->status == OK)
		merge_places(search);
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
		caused_ns *= straggler_share_that_counts(host);
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

/* A straggler or slow host costs the others at least this share of their time. */
static const double cost_that_matters = 0.005;
/* Of a hidden one only a part of what it would cost shows: while ranks wait for another one, most of its own delay
 * overlaps with that. */
static const double cost_that_matters_hidden = 0.001;

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

void straggler_merge(struct straggler_search *search)
{
	merge_same(search);
	merge_hosts(search);
	merge_apart(search);
	drop_minor(search);
}
