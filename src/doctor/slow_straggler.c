/* Stragglers and slow links of the report, as verdicts. */
#include "doctor/slow_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/op.h"
#include "common/text.h"

/* ---- late because of a link ---------------------------------------------------------------------- */

static bool is_rank_or_host(const struct straggler *straggler)
{
	return straggler->class == STRAGGLER_SLOW_RANK || straggler->class == STRAGGLER_SLOW_HOST;
}

/* Are all late ranks members of this communicator? */
static bool is_within(const struct job *job, const struct straggler *late, uint32_t comm)
{
	const struct job_comm *of = &job->comms[late->comm];

	if (late->class == STRAGGLER_SLOW_RANK)
		return job_is_member(job, comm, late->rank);
	for (uint32_t i = 0; i < of->seat_count; i++) {
		uint32_t rank = job->seats[of->seats[i]].rank;

		if (job->ranks[rank].host == late->host && !job_is_member(job, comm, rank))
			return false;
	}
	return true;
}

/* Is there a group, smaller than the one they are late in, with both ends of the link and all of them? */
static bool is_group_held(const struct job *job, const struct straggler *late,
			  const struct straggler *link)
{
	uint32_t most = job->comms[late->comm].seat_count;

	for (uint32_t c = 0; c < job->comm_count; c++)
		if (job->comms[c].seat_count < most &&
		    job->comms[c].group == job->comms[late->comm].group &&
		    job_is_member(job, c, link->rank) && job_is_member(job, c, link->peer) &&
		    is_within(job, late, c))
			return true;
	return false;
}

/* All ranks of a collective end it together, whichever of its links is slow: that makes no rank late for
 * the next. */
static bool is_elsewhere(const struct straggler *late, const struct straggler *link)
{
	return link->is_of_sends || late->comm != link->comm;
}

/* Is it of the host or the rail whose links are slow? */
static bool is_at_place(const struct job *job, const struct straggler *late,
			const struct straggler *link)
{
	if (link->is_rail)
		return late->class == STRAGGLER_SLOW_RANK &&
		       job->ranks[late->rank].gpu == job->ranks[link->rank].gpu;
	return link->is_uplink && late->host == link->host;
}

/*
 * The slow link that makes ranks or a host late; NULL: none. A rank that sends or gets its data over a slow
 * link is late everywhere else because of it, and so is the group that exchanges its data there.
 */
static const struct straggler *slow_link_behind(const struct slow_search *search,
						const struct straggler *late)
{
	const struct stragglers *stragglers = &search->report->stragglers;

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *link = &stragglers->list[i];

		if (link->class != STRAGGLER_SLOW_LINK || !is_rank_or_host(late) || late->is_origin)
			continue;
		if (is_at_place(&search->report->job, late, link))
			return link;
		if (link->peer == UINT32_MAX)
			continue;
		if ((late->class == STRAGGLER_SLOW_RANK && is_elsewhere(late, link) &&
		     (late->rank == link->peer || late->rank == link->rank)) ||
		    is_group_held(&search->report->job, late, link))
			return link;
	}
	return NULL;
}

/* Began at about the same time: within a few windows. */
static bool is_at(const struct slow_search *search, const struct straggler *straggler, uint64_t ns)
{
	uint64_t width = 3 * search->report->windows.width_ns, at = straggler->first_ns;

	return straggler->has_times && ns > 0 && (at > ns ? at - ns : ns - at) <= width;
}

/*
 * Transfers inside a host became slower when its ranks became late for others. Waiting is not part of these times, so
 * no late rank makes them longer; but whoever takes part in them is late elsewhere.
 */
static bool is_nvlink_behind(const struct slow_search *search, const struct straggler *late)
{
	const struct timeline_report *report = search->report;
	const struct job *job = &report->job;

	for (size_t i = 0; i < report->windows.change_count; i++) {
		const struct windows_change *change = &report->windows.changes[i];
		const struct job_comm *comm = &job->comms[change->example_comm];

		if (change->kind == JOB_COMM_NVLINK && change->percent < 0 &&
		    change->comms_changed == 1 && change->example_comm != late->comm &&
		    comm->seat_count > 0 &&
		    job->ranks[job->seats[comm->seats[0]].rank].host == late->host &&
		    (late->class == STRAGGLER_SLOW_HOST ||
		     job_is_member(job, change->example_comm, late->rank)) &&
		    is_at(search, late, change->at_ns))
			return true;
	}
	return false;
}

/*
 * The receiving end of a slow link, from the totals that recorders keep for each peer in every mode. They
 * count from the start of the process; if the slowness began later, and there are several peers, a caveat
 * says so.
 */

static const double sure_though_late = 0.9, sure_of_held_up = 0.5;
/* Either end may be the cause. */
static const double sure_of_link = 0.9;
static const double sure_of_host = 0.8; /* and not its NVLink */
static const double sure_of_both_ways = 0.85;

static void tell_peer(struct verdict *verdict, const struct link_peer *known,
		      const struct job_comm *comm)
{
	char against[96] = "";

	if (known->slowdown > 0)
		text_format(against, sizeof(against), ", %.1fx the median link", known->slowdown);
	if (known->peers == 1)
		verdict_evidence(verdict,
				 "Over the network it sends only to rank %d of %.100s: %s in %llu "
				 "transfers since the process started, %s per MiB on the wire%s.",
				 known->peer, comm->label, units_of_bytes(known->bytes).text,
				 (unsigned long long)known->transfers,
				 units_of_ns(known->ns_per_mib).text, against);
	else
		verdict_evidence(verdict,
				 "Of the %u ranks of %.100s it sends to over the network, the slow "
				 "one is rank %d: %s in %llu transfers since the process started, "
				 "%s per MiB on the wire%s.",
				 known->peers, comm->label, known->peer,
				 units_of_bytes(known->bytes).text,
				 (unsigned long long)known->transfers,
				 units_of_ns(known->ns_per_mib).text, against);
}

static void doubt_peer(struct verdict *verdict, const struct straggler *straggler,
		       const struct link_peer *known)
{
	bool is_late = straggler->has_times && straggler->pattern != STRAGGLER_ALWAYS;

	if (known->peers_weighed > 1 && is_late) {
		verdict->confidence *= sure_though_late;
		verdict_missing(verdict,
				"Totals per peer count from the process start, and the link was "
				"not slow all that time: which of the %u peers is slow is less "
				"certain than the sender.",
				known->peers_weighed);
	}
	verdict->confidence *= known->confidence;
}

/* The receiver of a slow link, from the sender's totals by peer: evidence, and the verdict's peer and
 * confidence. Its seat is an index into job.seats. */
static void slow_link_peer(struct slow_search *search, const struct straggler *straggler,
			   uint32_t seat, struct verdict *verdict, struct link_peer *known)
{
	const struct job *job = &search->report->job;
	uint32_t rank;

	if (link_peer_find(known, job, seat) != OK) {
		search->status = ERR_NO_SPACE;
		return;
	}
	if (known->peer == -1)
		return;
	rank = link_peer_rank(job, straggler->comm, known->peer);
	/* Sends have their own receiver. */
	if (straggler->peer != UINT32_MAX && straggler->peer != rank)
		return;
	if (rank != UINT32_MAX)
		verdict_set_peer(verdict, job, rank);
	tell_peer(verdict, known, &job->comms[straggler->comm]);
	if (straggler->peer == UINT32_MAX || straggler->peer_confidence < 1)
		doubt_peer(verdict, straggler, known);
}

/*
 * The channels of a slow link. Details (mode full) have for each transfer, or at least for each proxy
 * operation, its peer, its channel and its time on the wire; the sender's own suffice. Nanoseconds per byte
 * are compared: channels that are not much faster than the slowest one to the same peer are named. The peer
 * comes from the totals that are kept in every mode, or from details if there are none.
 */

enum { PLACES_MAX = 1024 };
static const double alike = 0.67; /* of the slowest channel's time per byte */
/* Relative to the channel with the most bytes: tiny messages always take long per byte. */
static const double part_that_matters = 0.05;

struct place {
	int32_t peer;
	uint8_t channel;
	bool is_step; /* from transfers, which are exact; proxy operations also wait for their
			 GPU */
	double ns;
	double bytes;
};

struct places {
	uint32_t comm_id;
	uint32_t count;
	struct place list[PLACES_MAX];
};

static double wire_ns(const struct op_detail *detail)
{
	bool is_step = detail->kind == OP_DETAIL_STEP;
	uint64_t from = detail->time_ns[is_step ? 2 : 1], to = detail->time_ns[3];

	return from > 0 && to > from ? (double)(to - from) : 0;
}

static bool add_detail(const struct op_detail *detail, enum recording_place at, void *context)
{
	struct places *places = context;
	double ns = wire_ns(detail);
	uint32_t i = 0;

	(void)at;
	if ((detail->kind != OP_DETAIL_PROXY && detail->kind != OP_DETAIL_STEP) ||
	    !(detail->flags & OP_DETAIL_IS_SEND) || detail->flags & OP_DETAIL_IS_FOREIGN ||
	    detail->comm != places->comm_id || ns <= 0 || detail->bytes == 0)
		return true;
	while (i < places->count && (places->list[i].peer != detail->peer ||
				     places->list[i].channel != detail->channel ||
				     places->list[i].is_step != (detail->kind == OP_DETAIL_STEP)))
		i++;
	if (i == PLACES_MAX)
		return true;
	if (i == places->count) {
		places->list[places->count++] =
			(struct place){ .peer = detail->peer,
					.channel = detail->channel,
					.is_step = detail->kind == OP_DETAIL_STEP };
	}
	places->list[i].ns += ns;
	places->list[i].bytes += (double)detail->bytes;
	return true;
}

static double pace(const struct place *place)
{
	return place->ns / place->bytes;
}

static bool has_steps(const struct places *places)
{
	for (uint32_t i = 0; i < places->count; i++)
		if (places->list[i].is_step)
			return true;
	return false;
}

static bool is_to(const struct place *place, bool is_step, int32_t peer)
{
	return place->is_step == is_step && (peer == -1 || place->peer == peer);
}

/* To this peer (-1: to any); NULL: there was nothing. */
static const struct place *slowest(const struct places *places, bool is_step, int32_t peer)
{
	const struct place *worst = NULL;
	double most = 0;

	for (uint32_t i = 0; i < places->count; i++)
		if (is_to(&places->list[i], is_step, peer) && places->list[i].bytes > most)
			most = places->list[i].bytes;
	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *place = &places->list[i];

		if (is_to(place, is_step, peer) && place->bytes >= part_that_matters * most &&
		    (worst == NULL || pace(place) > pace(worst)))
			worst = place;
	}
	return worst;
}

static void name_channels(const struct places *places, const struct place *worst,
			  const struct job_comm *comm, struct verdict *verdict)
{
	uint64_t channels[4] = { 0 };
	uint32_t to_peer = 0, slow = 0;

	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *place = &places->list[i];

		if (place->is_step != worst->is_step || place->peer != worst->peer)
			continue;
		to_peer++;
		if (pace(place) >= alike * pace(worst)) {
			channels[place->channel / 64] |= UINT64_C(1) << place->channel % 64;
			slow++;
		}
	}
	verdict_say_channels(verdict->channels, sizeof(verdict->channels), channels);
	if (slow == 1)
		verdict->channel = worst->channel;
	verdict_evidence(verdict,
			 "Its transfers to rank %d of %.100s are slow on channel%s %s (%u of %u to "
			 "that peer): %.3g GB/s.",
			 worst->peer, comm->label, slow == 1 ? "" : "s", verdict->channels, slow,
			 to_peer, 1 / pace(worst));
}

/* Index into job.seats; UINT32_MAX: none there. */
static uint32_t seat_of(const struct job *job, uint32_t comm, uint32_t rank)
{
	uint32_t place = job_place_in(job, comm, rank);

	return place != UINT32_MAX ? job->comms[comm].seats[place] : UINT32_MAX;
}

/* Rank of the receiver within the communicator, if known; else -1. */
static int32_t receiver_of(const struct job *job, const struct straggler *straggler,
			   const struct link_peer *known)
{
	uint32_t seat = straggler->peer != UINT32_MAX
				? seat_of(job, straggler->comm, straggler->peer)
				: UINT32_MAX;

	return seat != UINT32_MAX ? job->seats[seat].comm_rank : known->peer;
}

static void tell_unseen(struct verdict *verdict, const struct straggler *straggler,
			const struct link_peer *known)
{
	bool is_nobody = straggler->peer == UINT32_MAX && known->peer == -1;

	if (is_nobody && known->peers > 1)
		verdict_missing(
			verdict,
			"It sends to %u ranks over the network, and none of them stands out in the "
			"totals since the process started, so the slow peer is unknown.",
			known->peers);
	verdict_missing(
		verdict,
		"The channel%s unknown: only RINGSIDE_MODE=full records individual transfers.",
		is_nobody && known->peers == 0 ? " and the peer are" : " is");
}

/* The same, and its channels, from details of the sender. Adds to the verdict. */
static void slow_link_channels(struct slow_search *search, const struct straggler *straggler,
			       struct verdict *verdict)
{
	const struct job *job = &search->report->job;
	uint32_t at = seat_of(job, straggler->comm, straggler->rank);
	const struct job_seat *seat = at != UINT32_MAX ? &job->seats[at] : NULL;
	struct places *places = calloc(1, sizeof(*places));
	struct link_peer known = { .peer = -1 };
	const struct place *worst;

	if (places == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	if (seat != NULL)
		slow_link_peer(search, straggler, at, verdict, &known);
	if (seat != NULL && job->recording->processes[seat->process]->file_count > 0) {
		places->comm_id = seat->comm_id;
		/* Damage of the file is reported elsewhere; what was read before it counts. */
		recording_each_detail(job->recording->processes[seat->process], add_detail, places,
				      NULL);
	}
	worst = slowest(places, has_steps(places), receiver_of(job, straggler, &known));
	if (worst != NULL)
		name_channels(places, worst, &job->comms[straggler->comm], verdict);
	else
		tell_unseen(verdict, straggler, &known);
	free(places);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static struct slow_span span_of(const struct straggler *straggler)
{
	struct slow_span span = { .share = straggler->share_of_time,
				  .is_least = straggler->is_by_network || straggler->is_behind,
				  .is_rough = straggler->is_origin && !straggler->is_by_network,
				  .is_hidden = straggler->is_behind };

	if (!straggler->has_times)
		return (struct slow_span){ .is_least = straggler->is_behind,
					   .is_hidden = straggler->is_behind };
	if (straggler->pattern == STRAGGLER_SINCE || straggler->pattern == STRAGGLER_BURSTS)
		span.from_ns = straggler->first_ns;
	if (straggler->pattern == STRAGGLER_UNTIL || straggler->pattern == STRAGGLER_BURSTS)
		span.until_ns = straggler->last_ns;
	if (span.from_ns == 0 || span.until_ns == 0 || straggler->last_ns <= straggler->first_ns)
		span.share = 0;
	return span;
}

/* Relative to the time between first and last, not to the whole recording. */
static struct slow_span told_span(const struct timeline_report *report,
				  const struct straggler *straggler)
{
	struct slow_span span = span_of(straggler);
	double all = (double)(report->end_ns - report->start_ns);
	double between = (double)(span.until_ns - span.from_ns);

	if (span.share > 0 && between > 0 && all > 0)
		span.share = span.share * all / between;
	return span;
}

static void fill_common(struct slow_search *search, struct verdict *verdict,
			const struct straggler *straggler, const struct slow_span *span)
{
	const struct job *job = &search->report->job;
	double sampled;

	text_copy(verdict->rule, sizeof(verdict->rule), "others");
	slow_fill_comm(verdict, job, straggler->comm, straggler->rank);
	slow_fill_span(verdict, search->report, span);
	/* What is true of a sample is true of the rest of that communicator. */
	sampled = straggler->is_origin ? 1 : slow_sampled(job, straggler->comm);
	if (sampled >= 1.5)
		verdict_missing(verdict,
				"Only 1 in %.0f operations of %.100s is timed; the cost is "
				"estimated from these.",
				sampled, job->comms[straggler->comm].label);
	slow_fill_cost(search, verdict, (double)straggler->caused_ns);
	verdict->confidence = straggler->confidence;
	/* It is over: the cost stays, but it is no warning. */
	if (slow_is_over(search, straggler->has_times && straggler->pattern == STRAGGLER_UNTIL))
		verdict->severity = VERDICT_NOTE;
}

static void advise_host(struct verdict *verdict, const char *host)
{
	verdict_advice(verdict, "It computes longer than the others or gets its data later: check "
				"GPU clocks and temperature, data loading, other processes.");
	verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,ECC",
		       host);
	verdict_advice(verdict, "$ ssh %.200s top -b -n 1", host);
}

/* Its process is also late in work that needs no network. */
static void tell_starved(struct verdict *verdict, const struct straggler *straggler)
{
	if (straggler->own_slowdown <= 0) {
		verdict_evidence(
			verdict,
			"Transfers from it and to it take %.1fx longer on the wire than %s: its "
			"process is late with both.",
			straggler->slowdown, straggler->is_starved ? "the median" : "before");
		verdict_missing(verdict,
				"A network port that is slow in both directions would look "
				"the same.");
	} else
		verdict_evidence(
			verdict,
			"Its transfers take %.1fx longer on the wire than the median, but work "
			"that needs "
			"no network also takes %.1fx longer: its process is late, not the link.",
			straggler->slowdown, straggler->own_slowdown);
	verdict_advice(verdict,
		       "NCCL's proxy thread seems short of CPU: check for other processes on its "
		       "cores, cgroup limits (cpu.max, nr_throttled) and CPU affinity.");
	if (verdict->pid > 0)
		verdict_advice(verdict, "$ ssh %.200s top -H -b -n 1 -p %lld", verdict->host,
			       (long long)verdict->pid);
}

/* Waiting for each other inside the node shows in all of its ranks alike. */
static bool is_any_of_host(const struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	uint32_t ranks = 0;

	for (size_t r = 0; r < job->rank_count; r++)
		ranks += job->ranks[r].group == search->group &&
			 job->ranks[r].host == straggler->host;
	return straggler->is_any ||
	       (straggler->is_by_network && straggler->class == STRAGGLER_SLOW_HOST &&
		!straggler->is_each && ranks > 1);
}

/* By its time outside of all operations (analysis/straggler_origin.c). */
static void tell_origin(struct slow_search *search, struct verdict *verdict,
			const struct straggler *straggler, const struct slow_span *span)
{
	const char *comm = search->report->job.comms[straggler->comm].label;
	bool is_host = straggler->class == STRAGGLER_SLOW_HOST;

	verdict_evidence(verdict,
			 "%s %.1f%% more of the time outside of communication than %s%.100s, %s.",
			 is_host ? "Its ranks spend" : "It spends", 100 * straggler->own_excess,
			 straggler->is_stage ? "those of other hosts in "
			 : is_host	     ? "the others of "
					     : "the other ranks of ",
			 comm, slow_when(search->report, span).text);
	if (straggler->is_by_network)
		verdict_evidence(verdict, "There are no GPU times: this is how long its Sends to "
					  "other nodes wait for their GPU while it is in no Send "
					  "or Recv.");
	verdict_evidence(verdict, "Other ranks wait for it in Sends, Recvs and collectives%s",
			 search->report->stragglers.explained > 0
				 ? "; those that arrive late elsewhere as a result are not named."
				 : ".");
	if (straggler->is_stage)
		verdict_missing(verdict, "No other host does the same work: a pipeline stage with "
					 "more work would look the same.");
}

/* "rank 3" or "host node7", which is later still. */
static struct slow_text ahead_text(const struct job *job, const struct straggler *straggler)
{
	struct slow_text ahead;

	if (straggler->ahead_rank != UINT32_MAX)
		text_format(ahead.text, sizeof(ahead.text), "rank %.24s",
			    job->ranks[straggler->ahead_rank].label);
	else
		text_format(ahead.text, sizeof(ahead.text), "%.80s",
			    job->hosts[straggler->ahead_host].name);
	return ahead;
}

static void tell_behind(const struct slow_search *search, struct verdict *verdict,
			const struct straggler *straggler)
{
	struct slow_text ahead = ahead_text(&search->report->job, straggler);

	verdict_evidence(verdict,
			 "%s arrives later still, so nobody waits for this one yet. With %s as "
			 "fast as the others, they would have waited %s for it in total, %.1f%% of "
			 "all ranks' time.",
			 straggler->ahead_rank != UINT32_MAX ? "Another rank" : "A host",
			 ahead.text, units_of_ns((double)straggler->caused_ns).text,
			 verdict->percent);
	verdict_missing(verdict, "What it costs shows only when %s is repaired.", ahead.text);
}

static void tell_lateness(struct slow_search *search, struct verdict *verdict,
			  const struct straggler *straggler, const struct slow_span *span)
{
	const char *comm = search->report->job.comms[straggler->comm].label;

	verdict_evidence(verdict,
			 "It arrives %s later than the others at the collectives of %.100s, %s.",
			 units_of_ns((double)straggler->late_ns).text, comm,
			 slow_when(search->report, span).text);
	if (straggler->is_by_network)
		verdict_evidence(verdict,
				 "There are no GPU times: this is how long data that it received "
				 "waits for its GPU, compared with that of the other ranks.");
	else if (straggler->is_behind)
		tell_behind(search, verdict, straggler);
	else
		verdict_evidence(verdict,
				 "It was last in %llu of %llu collectives; the other ranks waited "
				 "%s in total, %.1f%% of all ranks' time.",
				 (unsigned long long)straggler->last_in,
				 (unsigned long long)straggler->matches,
				 units_of_ns((double)straggler->caused_ns).text, verdict->percent);
	if (search->report->stragglers.explained > 0)
		verdict_evidence(
			verdict, "%zu more %s for a slow rank; %s not the cause.",
			search->report->stragglers.explained,
			text_which(search->report->stragglers.explained,
				   "rank arrives late on other communicators because it "
				   "waits",
				   "ranks arrive late on other communicators because they "
				   "wait"),
			text_which(search->report->stragglers.explained, "it is", "they are"));
}

static void title_behind(struct verdict *verdict, const struct job *job,
			 const struct straggler *straggler)
{
	size_t used = strlen(verdict->title);

	text_format(verdict->title + used, sizeof(verdict->title) - used, ", hidden by %s",
		    ahead_text(job, straggler).text);
}

static void title_late(struct verdict *verdict, const struct job *job,
		       const struct straggler *straggler, const char *host, bool is_any)
{
	if (straggler->class == STRAGGLER_SLOW_HOST && is_any)
		verdict_title(verdict, "straggler: one or all ranks of %.100s", host);
	else if (straggler->class == STRAGGLER_SLOW_HOST)
		verdict_title(verdict, "straggler: all ranks of %.100s", host);
	else if (straggler->late_ns == 0 && !straggler->is_origin)
		verdict_title(verdict,
			      "straggler: rank %.24s on %.100s (NCCL proxy thread short of CPU)",
			      verdict->rank_label, host);
	else
		verdict_title(verdict, "straggler: rank %.24s on %.100s", verdict->rank_label,
			      host);
	if (straggler->is_behind)
		title_behind(verdict, job, straggler);
}

static void tell_late(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	const char *host = job->hosts[straggler->host].name;
	bool is_host = straggler->class == STRAGGLER_SLOW_HOST;
	const struct slow_span span = told_span(search->report, straggler);
	struct verdict *verdict =
		slow_verdict(search, is_host ? VERDICT_SLOW_HOST : VERDICT_SLOW_RANK, SLOW_PAST);
	uint32_t members = is_host ? job_members_on(job, straggler->comm, straggler->host) : 1;
	uint32_t seats = job->comms[straggler->comm].seat_count;

	fill_common(search, verdict, straggler, &span);
	if (!is_host)
		slow_fill_rank(verdict, job, straggler->rank);
	text_copy(verdict->host, sizeof(verdict->host), host);
	verdict->victims = seats > members ? seats - members : 0;
	verdict->percent = 100 * straggler->cost_share;
	title_late(verdict, job, straggler, host, is_any_of_host(search, straggler));
	if (straggler->is_origin)
		tell_origin(search, verdict, straggler, &span);
	else if (straggler->late_ns > 0)
		tell_lateness(search, verdict, straggler, &span);
	if (is_any_of_host(search, straggler)) {
		verdict_missing(verdict,
				straggler->is_by_network
					? "Operations inside the node have no GPU times: "
					  "it may be one of its ranks, all of them, or "
					  "NVLink."
					: "Each is late in another communicator: it may be "
					  "one of them, all of them, or NVLink.");
		verdict->confidence *= sure_of_host;
	}
	if (straggler->is_starved)
		tell_starved(verdict, straggler);
	if (straggler->has_small_rest && !straggler->is_behind)
		verdict_missing(verdict,
				"There are too few other ranks to see whether one of them is slow, "
				"too.");
	if (straggler->late_ns > 0 || straggler->is_origin)
		advise_host(verdict, host);
	slow_fill_severity(search, verdict, &span);
	/* So far nobody waits for it. */
	if (straggler->is_behind) {
		verdict->victims = 0;
		verdict->percent = verdict->gpu_hours = verdict->money = 0;
	}
	slow_fill_missing(search, verdict);
}

static void title_link(struct verdict *verdict)
{
	if (verdict->peer_label[0] != '\0')
		verdict_title(verdict, "slow link: rank %.24s on %.60s -> rank %.24s on %.60s",
			      verdict->rank_label, verdict->host, verdict->peer_label,
			      verdict->peer_host);
	else
		verdict_title(verdict, "slow link: from rank %.24s on %.100s", verdict->rank_label,
			      verdict->host);
}

static void tell_held_up(struct slow_search *search, struct verdict *verdict,
			 const struct straggler *link)
{
	const struct stragglers *stragglers = &search->report->stragglers;
	const struct job *job = &search->report->job;
	double lost_ns = (double)link->caused_ns;

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *late = &stragglers->list[i];
		bool is_host = late->class == STRAGGLER_SLOW_HOST;

		if (slow_link_behind(search, late) != link)
			continue;
		verdict_evidence(
			verdict,
			"As a result %s %.100s arrive%s %s late at the collectives of %.100s; the "
			"other ranks there waited %s in total.",
			is_host ? "all ranks of" : "rank",
			is_host ? job->hosts[late->host].name : job->ranks[late->rank].label,
			is_host ? "" : "s", units_of_ns((double)late->late_ns).text,
			job->comms[late->comm].label, units_of_ns((double)late->caused_ns).text);
		/* Hosts that are late together keep the same ranks waiting. */
		lost_ns = lost_ns > (double)late->caused_ns ? lost_ns : (double)late->caused_ns;
		if (verdict->victims < job->comms[late->comm].seat_count - 1)
			verdict->victims = job->comms[late->comm].seat_count - 1;
	}
	slow_fill_cost(search, verdict, lost_ns);
}

static void advise_link(struct verdict *verdict)
{
	verdict_advice(verdict,
		       "Check the network port of %.100s that rank %.24s uses: errors, speed, "
		       "cable, and the switch it is connected to.",
		       verdict->host, verdict->rank_label);
	verdict_advice(verdict, "$ ssh %.200s ibstat", verdict->host);
	verdict_advice(verdict, "$ ssh %.200s ip -s link", verdict->host);
	if (verdict->peer_host[0] != '\0') {
		verdict_missing(verdict,
				"A receiver that takes data slowly would look the same as a "
				"slow link.");
		verdict_advice(verdict,
			       "Check rank %.24s on %.100s as well: its port, its GPU and its CPU.",
			       verdict->peer_label, verdict->peer_host);
	}
	verdict->confidence = fmin(verdict->confidence, sure_of_link);
}

/* Links of one host, or of one position on several hosts. */
static void tell_place(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	const struct job_rank *rank = &job->ranks[straggler->rank];
	const struct slow_span span = told_span(search->report, straggler);
	struct verdict *verdict = slow_verdict(search, VERDICT_SLOW_NETWORK, SLOW_PAST);
	uint32_t seats = job->comms[straggler->comm].seat_count;

	fill_common(search, verdict, straggler, &span);
	verdict->victims = seats > 0 ? seats - 1 : 0;
	verdict->percent = 100 * (straggler->slowdown - 1);
	if (straggler->is_uplink) {
		text_copy(verdict->host, sizeof(verdict->host), job->hosts[rank->host].name);
		if (straggler->peer != UINT32_MAX)
			text_copy(verdict->peer_host, sizeof(verdict->peer_host),
				  job->hosts[job->ranks[straggler->peer].host].name);
		verdict_title(
			verdict, "slow network: transfers of %.80s%s%.80s take longer than others",
			verdict->host, verdict->peer_host[0] ? " and " : "", verdict->peer_host);
	} else
		verdict_title(verdict,
			      "slow network: transfers of GPU %d of several nodes (one rail) take "
			      "longer than others",
			      rank->gpu);
	verdict_evidence(
		verdict,
		"For example rank %.24s on %.100s, in %.100s: its transfers take %.1fx "
		"longer on the wire than the median, %s.",
		rank->label, job->hosts[rank->host].name, verdict->comm, straggler->slowdown,
		straggler->has_times ? slow_when(search->report, &span).text : "on average");
	verdict_evidence(verdict, "All links that stand out belong to %s.",
			 straggler->is_uplink ? "this node" : "this rail");
	if (verdict->peer_host[0] != '\0')
		verdict_missing(verdict, "They are between two nodes: the uplink of either may be "
					 "the cause.");
	verdict_advice(verdict, "Check the ports of %s, and the switch they are connected to.",
		       straggler->is_uplink ? "this node" : "this rail");
	verdict_advice(verdict, "$ ssh %.200s ibstat", job->hosts[rank->host].name);
	tell_held_up(search, verdict, straggler);
	slow_fill_severity(search, verdict, &span);
	slow_fill_missing(search, verdict);
}

static void tell_link(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	const struct slow_span span = told_span(search->report, straggler);
	struct verdict *verdict = slow_verdict(search, VERDICT_SLOW_LINK, SLOW_PAST);
	uint32_t seats = job->comms[straggler->comm].seat_count;

	fill_common(search, verdict, straggler, &span);
	slow_fill_rank(verdict, job, straggler->rank);
	if (straggler->peer != UINT32_MAX)
		verdict_set_peer(verdict, job, straggler->peer);
	verdict->victims = seats > 0 ? seats - 1 : 0;
	verdict->percent = 100 * (straggler->slowdown - 1);
	verdict_evidence(verdict,
			 "Sends from rank %.24s in %.100s take %.1fx longer on the wire than the "
			 "median, %s.",
			 verdict->rank_label, verdict->comm, straggler->slowdown,
			 straggler->has_times ? slow_when(search->report, &span).text
					      : "on average");
	if (straggler->is_bursty)
		verdict_evidence(
			verdict,
			"It is intermittent: %.0f%% of its sends there are slow, the rest are not.",
			100 * straggler->slow_share);
	if (straggler->has_times)
		verdict_evidence(verdict, "The rank itself is not late: its transfers are, and "
					  "every rank in the collective waits for them.");
	tell_held_up(search, verdict, straggler);
	slow_link_channels(search, straggler, verdict);
	title_link(verdict);
	advise_link(verdict);
	if (straggler->is_either) {
		verdict_missing(verdict, "Transfers back are as slow: the process or the port of "
					 "either rank may be the cause.");
		verdict->confidence = fmin(verdict->confidence, sure_of_held_up);
	}
	slow_fill_severity(search, verdict, &span);
	slow_fill_missing(search, verdict);
}

void slow_tell_sender(struct slow_search *search, struct verdict *verdict, uint32_t rank,
		      uint32_t comm)
{
	const struct straggler sender = {
		.class = STRAGGLER_SLOW_LINK, .rank = rank, .peer = UINT32_MAX, .comm = comm
	};

	slow_fill_rank(verdict, &search->report->job, rank);
	slow_link_channels(search, &sender, verdict);
	title_link(verdict);
	advise_link(verdict);
}

/* The rank of another host that sends to this one; UINT32_MAX: none, or several. */
static uint32_t sender_to(const struct job *job, uint32_t comm, uint32_t rank)
{
	uint32_t to = seat_of(job, comm, rank), found = UINT32_MAX;

	for (uint32_t i = 0; to != UINT32_MAX && i < job->comms[comm].seat_count; i++) {
		uint32_t from = job->seats[job->comms[comm].seats[i]].rank;

		if (job->ranks[from].host == job->ranks[rank].host ||
		    !link_has_peer(job, comm, from, job->seats[to].comm_rank))
			continue;
		if (found != UINT32_MAX)
			return UINT32_MAX;
		found = from;
	}
	return found;
}

void slow_tell_receiver(struct slow_search *search, struct verdict *verdict, uint32_t rank,
			uint32_t comm)
{
	const struct job *job = &search->report->job;
	uint32_t sender = sender_to(job, comm, rank);

	verdict_set_peer(verdict, job, rank);
	if (sender != UINT32_MAX) {
		slow_fill_rank(verdict, job, sender);
		title_link(verdict);
	} else {
		verdict_title(verdict, "slow link: to rank %.24s on %.100s", verdict->peer_label,
			      verdict->peer_host);
	}
	verdict_evidence(verdict,
			 "What has arrived at rank %.24s waits longer than before until it is "
			 "taken, at the other ranks of its node it does not: the receiver is slow "
			 "rather than the link.",
			 verdict->peer_label);
	verdict_advice(verdict,
		       "Check rank %.24s on %.100s: its GPU, its process and its CPU cores.",
		       verdict->peer_label, verdict->peer_host);
	verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK",
		       verdict->peer_host);
	verdict_advice(verdict, "$ ssh %.200s top -b -n 1", verdict->peer_host);
	verdict->confidence = fmin(verdict->confidence, sure_of_both_ways);
}

void slow_tell_both(struct slow_search *search, struct verdict *verdict, uint32_t rank,
		    double slowdown)
{
	const struct straggler starved = { .slowdown = slowdown };

	slow_fill_rank(verdict, &search->report->job, rank);
	verdict->percent = 0; /* how long the others waited is not known */
	title_late(verdict, &search->report->job, &starved, verdict->host, false);
	tell_starved(verdict, &starved);
	verdict->confidence = fmin(verdict->confidence, sure_of_both_ways);
}

static struct verdict *verdict_of(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	bool is_place = straggler->is_uplink || straggler->is_rail;
	enum verdict_class class = is_place				     ? VERDICT_SLOW_NETWORK
				   : straggler->class == STRAGGLER_SLOW_LINK ? VERDICT_SLOW_LINK
				   : straggler->class == STRAGGLER_SLOW_HOST ? VERDICT_SLOW_HOST
									     : VERDICT_SLOW_RANK;

	for (size_t i = search->first; i < search->verdicts->count; i++) {
		struct verdict *verdict = &search->verdicts->list[i];

		if (verdict->class == class && (is_place || straggler->rank == UINT32_MAX ||
						verdict->rank == job->ranks[straggler->rank].rank))
			return verdict;
	}
	return NULL;
}

/* Clearly before it: then the hang is none of its reasons. */
static bool began_before(const struct slow_search *search, const struct straggler *straggler,
			 const struct verdict *hang)
{
	uint64_t width_ns = search->report->windows.width_ns;

	return straggler->has_times && search->report->has_wall && hang->since_wall_ns > 0 &&
	       straggler->first_ns + 3 * width_ns < hang->since_wall_ns;
}

/* A stuck rank has transfers that take as long: that is reported as a hang. */
static bool is_hung(const struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	int64_t rank = straggler->rank != UINT32_MAX ? job->ranks[straggler->rank].rank : -1;
	int64_t peer = straggler->peer != UINT32_MAX ? job->ranks[straggler->peer].rank : -1;

	for (size_t i = 0; i < search->first; i++) {
		const struct verdict *verdict = &search->verdicts->list[i];

		if (verdict_is_hang(verdict->class) && rank >= 0 &&
		    !began_before(search, straggler, verdict) &&
		    strcmp(verdict->job, job->groups[search->group].name) == 0 &&
		    (verdict->rank == rank || verdict->peer == rank ||
		     (peer >= 0 && verdict->rank == peer)))
			return true;
	}
	return false;
}

/* Several slow links of one sender are its port, not the links: one verdict, without a peer. */
static bool merge_link(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	struct verdict *verdict = verdict_of(search, straggler);

	if (verdict == NULL || straggler->peer == UINT32_MAX)
		return false;
	if (verdict->peer >= 0 && verdict->peer == job->ranks[straggler->peer].rank) {
		verdict_evidence(verdict, "The same in %.100s: %.1fx longer.",
				 job->comms[straggler->comm].label, straggler->slowdown);
		return true;
	}
	verdict_evidence(verdict, "Sends to rank %.24s also take %.1fx longer on the wire.",
			 job->ranks[straggler->peer].label, straggler->slowdown);
	verdict->peer = -1;
	verdict->peer_label[0] = verdict->peer_host[0] = '\0';
	verdict_title(verdict, "slow links: from rank %.24s on %.100s to several ranks",
		      verdict->rank_label, verdict->host);
	return true;
}

void slow_stragglers(struct slow_search *search)
{
	const struct stragglers *stragglers = &search->report->stragglers;
	const struct job *job = &search->report->job;

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *straggler = &stragglers->list[i];

		if (job->comms[straggler->comm].group != search->group ||
		    is_hung(search, straggler))
			continue;
		if (straggler->is_uplink || straggler->is_rail) {
			tell_place(search, straggler);
		} else if (straggler->class == STRAGGLER_SLOW_LINK) {
			if (!merge_link(search, straggler))
				tell_link(search, straggler);
		} else if (is_rank_or_host(straggler) &&
			   slow_link_behind(search, straggler) == NULL &&
			   !is_nvlink_behind(search, straggler)) {
			tell_late(search, straggler);
		}
		/* STRAGGLER_NETWORK is derived from changes: slow_classify() has them all. */
	}
}

void slow_held_up(struct slow_search *search)
{
	const struct stragglers *stragglers = &search->report->stragglers;
	const struct job *job = &search->report->job;
	const struct straggler *held = NULL;
	struct verdict *verdict;

	for (size_t i = 0; i < stragglers->count && held == NULL; i++)
		if (stragglers->list[i].class == STRAGGLER_HELD_UP &&
		    job->comms[stragglers->list[i].comm].group == search->group)
			held = &stragglers->list[i];
	for (size_t i = search->first; i < search->verdicts->count; i++)
		if (verdict_is_slow(search->verdicts->list[i].class))
			return;
	if (held == NULL)
		return;
	const struct slow_span span = told_span(search->report, held);
	verdict = slow_verdict(search, VERDICT_SLOW_COMM, SLOW_PAST);
	fill_common(search, verdict, held, &span);
	verdict->confidence *= sure_of_held_up;
	verdict->comm_rank = -1;
	verdict->victims = job->comms[held->comm].seat_count - 1;
	verdict->percent = 100 * held->cost_share;
	verdict_title(verdict, "ranks of %.100s wait for each other: cause unknown", verdict->comm);
	verdict_evidence(verdict,
			 "Some arrive %s later than others at its collectives, %s, and no rank "
			 "spends more time outside of communication than the others: they are held "
			 "up in other operations.",
			 units_of_ns((double)held->late_ns).text,
			 slow_when(search->report, &span).text);
	verdict_advice(verdict, "Compare with a run in which this was not so: `ringside diff`.");
	slow_fill_severity(search, verdict, &span);
	slow_fill_missing(search, verdict);
}

/* ---- what they explain ----------------------------------------------------------------------- */

/*
 * Waiting is not part of a transfer's time. A rank that is late because it computes longer may copy a little longer
 * as well, for example with a low clock, but not several times longer: that has a cause of its own.
 */
static const double longer_than_late = 1.5;

static bool is_beyond_late(const struct straggler *straggler, const struct slow_row *row)
{
	return !straggler->is_starved && !straggler->is_by_network &&
	       row->ratio >= longer_than_late;
}

bool slow_is_beside(const struct slow_search *search, const struct slow_row *row,
		    struct slow_text *who)
{
	const struct stragglers *stragglers = &search->report->stragglers;
	const struct job *job = &search->report->job;

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *late = &stragglers->list[i];

		if (job->comms[late->comm].group != search->group || !is_rank_or_host(late) ||
		    !is_at(search, late, row->span.from_ns) || !is_beyond_late(late, row) ||
		    !job_is_member(job, row->comm, late->rank))
			continue;
		text_format(who->text, sizeof(who->text), "rank %.24s",
			    job->ranks[late->rank].label);
		return true;
	}
	return false;
}

/* Of the Sends of a starved rank the time is not known; all that it takes part in is slow. */
static bool is_together(const struct slow_search *search, const struct straggler *straggler,
			const struct slow_row *row)
{
	if (straggler->is_starved && !straggler->has_times)
		return row->comms_slow == 1 &&
		       job_is_member(&search->report->job, row->comm, straggler->rank);
	return is_at(search, straggler, row->span.from_ns) &&
	       !is_nvlink_behind(search, straggler) && !is_beyond_late(straggler, row);
}

static const struct straggler *straggler_behind(const struct slow_search *search,
						const struct slow_row *row)
{
	const struct stragglers *stragglers = &search->report->stragglers;

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *straggler = &stragglers->list[i];

		if (search->report->job.comms[straggler->comm].group != search->group)
			continue;
		if (straggler->class == STRAGGLER_SLOW_LINK && job_comm_is_over_network(row->kind))
			return straggler;
		if (is_rank_or_host(straggler) && is_together(search, straggler, row))
			return straggler;
	}
	return NULL;
}

static struct verdict *told_before(struct slow_search *search, const struct slow_row *row)
{
	for (size_t i = 0; i < search->told_count; i++)
		if (search->told[i].kind == row->kind &&
		    search->told[i].function == row->function &&
		    search->told[i].size_class == row->size_class &&
		    search->told[i].verdict < search->verdicts->count)
			return &search->verdicts->list[search->told[i].verdict];
	return NULL;
}

bool slow_is_explained(struct slow_search *search, const struct slow_row *row,
		       enum slow_against against)
{
	const struct job *job = &search->report->job;
	const struct straggler *straggler = straggler_behind(search, row);
	struct verdict *verdict =
		straggler ? verdict_of(search, straggler) : told_before(search, row);
	char size[16];

	if (verdict == NULL)
		return straggler != NULL;
	op_size_text(size, sizeof(size), row->size_class);
	verdict_evidence(verdict,
			 "%s %s of %s on %s communicators taking %.2fx longer than %s: %s.",
			 straggler ? "This explains" : "Also observed:",
			 job_name(job, OP_NAMES_FUNCTION, row->function), size,
			 job_comm_kind_name(row->kind), row->ratio, slow_than(against),
			 slow_speeds(row).text);
	return true;
}
