/* Ranks and hosts that come late, and links that hold up: those of the report, as verdicts. */
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "doctor/slow_find.h"

static struct slow_span span_of(const struct straggler *straggler)
{
	struct slow_span span = { .share = straggler->share_of_time };

	if (!straggler->has_times)
		return (struct slow_span){ 0 };
	if (straggler->pattern == STRAGGLER_SINCE || straggler->pattern == STRAGGLER_BURSTS)
		span.from_ns = straggler->first_ns;
	if (straggler->pattern == STRAGGLER_UNTIL || straggler->pattern == STRAGGLER_BURSTS)
		span.until_ns = straggler->last_ns;
	if (span.from_ns == 0 || span.until_ns == 0 || straggler->last_ns <= straggler->first_ns)
		span.share = 0;
	return span;
}

/* Of the burst, not of the whole recording: how much of the time between first and last. */
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
	/* What is known of a sample is true of the rest of that communicator. */
	sampled = slow_sampled(job, straggler->comm);
	if (sampled >= 1.5)
		verdict_missing(verdict,
				"One in %.0f operations of %.100s is timed: what it costs is "
				"estimated from these.",
				sampled, job->comms[straggler->comm].label);
	slow_fill_cost(search, verdict, (double)straggler->caused_ns * sampled);
	verdict->confidence = straggler->confidence;
	/* It is over: what it cost stays, and nobody has to be woken up. */
	if (straggler->has_times && straggler->pattern == STRAGGLER_UNTIL)
		verdict->severity = VERDICT_NOTE;
}

static uint32_t members_on(const struct job *job, uint32_t comm, uint32_t host)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < job->comms[comm].seat_count; i++)
		count += job->ranks[job->seats[job->comms[comm].seats[i]].rank].host == host;
	return count;
}

static void advise_host(struct verdict *verdict, const char *host)
{
	verdict_advice(verdict, "It computes longer than the others, or gets its data later: look "
				"at GPU clocks and temperature, data loading, other processes.");
	verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,ECC",
		       host);
	verdict_advice(verdict, "$ ssh %.200s top -b -n 1", host);
}

/* Its process is late in what needs no network as well. */
static void tell_starved(struct verdict *verdict, const struct straggler *straggler)
{
	verdict_evidence(
		verdict,
		"Transfers over it look %.1f times as long on the wire as the others', but "
		"what needs no network takes %.1f times as long there, too: it is its "
		"process that comes to them late, not the link.",
		straggler->slowdown, straggler->own_slowdown);
	verdict_advice(verdict,
		       "NCCL's proxy thread seems to get too little processor: look for "
		       "other processes on its cores, for limits (cpu.max and nr_throttled "
		       "of its cgroup), and to which cores it is bound.");
	if (verdict->pid > 0)
		verdict_advice(verdict, "$ ssh %.200s top -H -b -n 1 -p %lld", verdict->host,
			       (long long)verdict->pid);
}

static void tell_lateness(struct slow_search *search, struct verdict *verdict,
			  const struct straggler *straggler, const struct slow_span *span)
{
	const char *comm = search->report->job.comms[straggler->comm].label;

	verdict_evidence(verdict,
			 "It comes %s later than the others to the collectives of %.100s, %s.",
			 units_of_ns((double)straggler->late_ns).text, comm,
			 slow_when(search->report, span).text);
	verdict_evidence(verdict,
			 "It was the last in %llu of %llu collectives; the others waited %s for it "
			 "in sum, %.1f %% of their time.",
			 (unsigned long long)straggler->last_in,
			 (unsigned long long)straggler->meetings,
			 units_of_ns((double)straggler->caused_ns).text, verdict->percent);
	if (search->report->stragglers.explained > 0)
		verdict_evidence(verdict,
				 "%zu more ranks come late to other communicators because they "
				 "wait for a slow one: they are not to blame.",
				 search->report->stragglers.explained);
}

static void title_late(struct verdict *verdict, const struct straggler *straggler, const char *host)
{
	if (straggler->class == STRAGGLER_SLOW_HOST)
		verdict_title(verdict, "all ranks of %.100s arrive late", host);
	else if (straggler->late_ns == 0)
		verdict_title(verdict,
			      "rank %.24s on %.100s is late in its transfers: too little "
			      "processor",
			      verdict->rank_label, host);
	else
		verdict_title(verdict, "rank %.24s on %.100s arrives late, the others wait for it",
			      verdict->rank_label, host);
}

static void tell_late(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	const char *host = job->hosts[straggler->host].name;
	bool is_host = straggler->class == STRAGGLER_SLOW_HOST;
	const struct slow_span span = told_span(search->report, straggler);
	struct verdict *verdict =
		slow_verdict(search, is_host ? VERDICT_SLOW_HOST : VERDICT_SLOW_RANK, SLOW_PAST);
	uint32_t members = is_host ? members_on(job, straggler->comm, straggler->host) : 1;
	uint32_t seats = job->comms[straggler->comm].seat_count;

	fill_common(search, verdict, straggler, &span);
	if (!is_host)
		slow_fill_rank(verdict, job, straggler->rank);
	text_copy(verdict->host, sizeof(verdict->host), host);
	verdict->victims = seats > members ? seats - members : 0;
	verdict->percent = 100 * straggler->cost_share;
	title_late(verdict, straggler, host);
	if (straggler->late_ns > 0)
		tell_lateness(search, verdict, straggler, &span);
	if (straggler->is_starved)
		tell_starved(verdict, straggler);
	if (straggler->late_ns > 0)
		advise_host(verdict, host);
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclStraggler.md");
	slow_fill_missing(search, verdict);
}

static void title_link(struct verdict *verdict)
{
	if (verdict->peer_label[0] != '\0')
		verdict_title(verdict,
			      "the link from rank %.24s on %.60s to rank %.24s on %.60s is slow",
			      verdict->rank_label, verdict->host, verdict->peer_label,
			      verdict->peer_host);
	else
		verdict_title(verdict, "a link from rank %.24s on %.100s is slow",
			      verdict->rank_label, verdict->host);
}

static void tell_held_up(struct slow_search *search, struct verdict *verdict,
			 const struct straggler *link);

static void tell_link(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	const struct slow_span span = told_span(search->report, straggler);
	struct verdict *verdict = slow_verdict(search, VERDICT_SLOW_LINK, SLOW_PAST);
	uint32_t seats = job->comms[straggler->comm].seat_count;

	fill_common(search, verdict, straggler, &span);
	slow_fill_rank(verdict, job, straggler->rank);
	if (straggler->peer != UINT32_MAX) {
		const struct job_rank *peer = &job->ranks[straggler->peer];

		verdict->peer = peer->rank;
		text_copy(verdict->peer_label, sizeof(verdict->peer_label), peer->label);
		text_copy(verdict->peer_host, sizeof(verdict->peer_host),
			  job->hosts[peer->host].name);
	}
	verdict->victims = seats > 0 ? seats - 1 : 0;
	verdict->percent = 100 * (straggler->slowdown - 1);
	verdict_evidence(verdict,
			 "What rank %.24s sends in %.100s is %.1f times as long on the wire as "
			 "what the others send, %s.",
			 verdict->rank_label, verdict->comm, straggler->slowdown,
			 straggler->has_times ? slow_when(search->report, &span).text
					      : "all in all");
	if (straggler->is_bursty)
		verdict_evidence(verdict,
				 "It comes and goes: in %.0f %% of what it sends there they stand "
				 "out, in the rest they do not.",
				 100 * straggler->slow_share);
	if (straggler->has_times)
		verdict_evidence(verdict, "It does not come late itself: its transfers do, and "
					  "everybody in the collective waits for them.");
	tell_held_up(search, verdict, straggler);
	slow_link_channels(search, straggler, verdict);
	title_link(verdict);
	verdict_advice(verdict,
		       "Look at the network port of %.100s that rank %.24s uses: errors, speed, "
		       "cable, and the switch behind it.",
		       verdict->host, verdict->rank_label);
	verdict_advice(verdict, "$ ssh %.200s ibstatus", verdict->host);
	verdict_advice(verdict, "$ ssh %.200s ip -s link", verdict->host);
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#slowness");
	slow_fill_missing(search, verdict);
}

static bool is_member(const struct job *job, uint32_t comm, uint32_t rank)
{
	for (uint32_t i = 0; i < job->comms[comm].seat_count; i++)
		if (job->seats[job->comms[comm].seats[i]].rank == rank)
			return true;
	return false;
}

/* Are all who are late members of this communicator? */
static bool is_within(const struct job *job, const struct straggler *late, uint32_t comm)
{
	const struct job_comm *of = &job->comms[late->comm];

	if (late->class == STRAGGLER_SLOW_RANK)
		return is_member(job, comm, late->rank);
	for (uint32_t i = 0; i < of->seat_count; i++) {
		uint32_t rank = job->seats[of->seats[i]].rank;

		if (job->ranks[rank].host == late->host && !is_member(job, comm, rank))
			return false;
	}
	return true;
}

/* Is there a group, smaller than the one to which they come late, with both ends of the link and all of them? */
static bool is_group_held(const struct job *job, const struct straggler *late,
			  const struct straggler *link)
{
	uint32_t most = job->comms[late->comm].seat_count;

	for (uint32_t c = 0; c < job->comm_count; c++)
		if (job->comms[c].seat_count < most &&
		    job->comms[c].group == job->comms[late->comm].group &&
		    is_member(job, c, link->rank) && is_member(job, c, link->peer) &&
		    is_within(job, late, c))
			return true;
	return false;
}

/* All members of a collective end it together, whichever of its links is slow: that makes nobody late to the next. */
static bool is_elsewhere(const struct straggler *late, const struct straggler *link)
{
	return link->is_of_sends || late->comm != link->comm;
}

/* Who sends or gets its data over a slow link comes late to everything else because of it, and so does the group
 * that exchanges its data there. */
const struct straggler *slow_link_behind(const struct slow_search *search,
					 const struct straggler *late)
{
	const struct stragglers *stragglers = &search->report->stragglers;

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *link = &stragglers->list[i];

		if (link->class != STRAGGLER_SLOW_LINK || link->peer == UINT32_MAX ||
		    (late->class != STRAGGLER_SLOW_RANK && late->class != STRAGGLER_SLOW_HOST))
			continue;
		if ((late->class == STRAGGLER_SLOW_RANK && is_elsewhere(late, link) &&
		     (late->rank == link->peer || late->rank == link->rank)) ||
		    is_group_held(&search->report->job, late, link))
			return link;
	}
	return NULL;
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
			"Because of it %s %.100s come%s %s late to the collectives of "
			"%.100s, and others wait there: %s in sum.",
			is_host ? "all ranks of" : "rank",
			is_host ? job->hosts[late->host].name : job->ranks[late->rank].label,
			is_host ? "" : "s", units_of_ns((double)late->late_ns).text,
			job->comms[late->comm].label, units_of_ns((double)late->caused_ns).text);
		/* Hosts that are late together keep the same ones waiting. */
		lost_ns = lost_ns > (double)late->caused_ns ? lost_ns : (double)late->caused_ns;
		if (verdict->victims < job->comms[late->comm].seat_count - 1)
			verdict->victims = job->comms[late->comm].seat_count - 1;
	}
	slow_fill_cost(search, verdict, lost_ns);
}

static struct verdict *verdict_of(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	enum verdict_class class = straggler->class == STRAGGLER_SLOW_LINK   ? VERDICT_SLOW_LINK
				   : straggler->class == STRAGGLER_SLOW_HOST ? VERDICT_SLOW_HOST
									     : VERDICT_SLOW_RANK;

	for (size_t i = search->first; i < search->verdicts->count; i++) {
		struct verdict *verdict = &search->verdicts->list[i];

		if (verdict->class == class && (straggler->rank == UINT32_MAX ||
						verdict->rank == job->ranks[straggler->rank].rank))
			return verdict;
	}
	return NULL;
}

/* A rank that stands still has transfers that last as long: that is told as a hang. */
static bool is_hung(const struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	int64_t rank = straggler->rank != UINT32_MAX ? job->ranks[straggler->rank].rank : -1;
	int64_t peer = straggler->peer != UINT32_MAX ? job->ranks[straggler->peer].rank : -1;

	for (size_t i = 0; i < search->first; i++) {
		const struct verdict *verdict = &search->verdicts->list[i];

		if (verdict_is_hang(verdict->class) && rank >= 0 &&
		    strcmp(verdict->job, job->groups[search->group].name) == 0 &&
		    (verdict->rank == rank || verdict->peer == rank ||
		     (peer >= 0 && verdict->rank == peer)))
			return true;
	}
	return false;
}

/* Several links of one sender are its port, not the links: one verdict, without a peer. */
static bool merge_link(struct slow_search *search, const struct straggler *straggler)
{
	const struct job *job = &search->report->job;
	struct verdict *verdict = verdict_of(search, straggler);

	if (verdict == NULL || straggler->peer == UINT32_MAX)
		return false;
	if (verdict->peer >= 0 && verdict->peer == job->ranks[straggler->peer].rank) {
		verdict_evidence(verdict, "The same in %.100s: %.1f times as long.",
				 job->comms[straggler->comm].label, straggler->slowdown);
		return true;
	}
	verdict_evidence(verdict,
			 "What it sends to rank %.24s is %.1f times as long on the wire as well.",
			 job->ranks[straggler->peer].label, straggler->slowdown);
	verdict->peer = -1;
	verdict->peer_label[0] = verdict->peer_host[0] = '\0';
	verdict_title(verdict, "what rank %.24s on %.100s sends is slow, to several ranks",
		      verdict->rank_label, verdict->host);
	return true;
}

void slow_stragglers(struct slow_search *search)
{
	const struct stragglers *stragglers = &search->report->stragglers;
	const struct job *job = &search->report->job;
	uint32_t explained = slow_held_up(search);

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *straggler = &stragglers->list[i];

		if (job->comms[straggler->comm].group != search->group ||
		    is_hung(search, straggler) ||
		    (straggler->comm == explained && straggler->class != STRAGGLER_SLOW_LINK))
			continue;
		if (straggler->class == STRAGGLER_SLOW_LINK) {
			if (!merge_link(search, straggler))
				tell_link(search, straggler);
		} else if ((straggler->class == STRAGGLER_SLOW_RANK ||
			    straggler->class == STRAGGLER_SLOW_HOST) &&
			   slow_link_behind(search, straggler) == NULL) {
			tell_late(search, straggler);
		}
		/* STRAGGLER_NETWORK is a conclusion from changes: slow_classify() has them all. */
	}
}

/* ---- what they explain ----------------------------------------------------------------------- */

static bool is_over_network(enum job_comm_kind kind)
{
	return kind == JOB_COMM_NET || kind == JOB_COMM_MIXED;
}

/* Began at about the same time: within a few windows. */
static bool is_together(const struct slow_search *search, const struct straggler *straggler,
			const struct slow_row *row)
{
	uint64_t width = 3 * search->report->windows.width_ns;
	uint64_t a = straggler->first_ns, b = row->span.from_ns;

	return row->span.from_ns > 0 && straggler->has_times && (a > b ? a - b : b - a) <= width;
}

static const struct straggler *explains(const struct slow_search *search,
					const struct slow_row *row)
{
	const struct stragglers *stragglers = &search->report->stragglers;

	for (size_t i = 0; i < stragglers->count; i++) {
		const struct straggler *straggler = &stragglers->list[i];

		if (search->report->job.comms[straggler->comm].group != search->group)
			continue;
		if (straggler->class == STRAGGLER_SLOW_LINK && is_over_network(row->kind))
			return straggler;
		if ((straggler->class == STRAGGLER_SLOW_RANK ||
		     straggler->class == STRAGGLER_SLOW_HOST) &&
		    is_together(search, straggler, row))
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
	const struct straggler *straggler = explains(search, row);
	struct verdict *verdict =
		straggler ? verdict_of(search, straggler) : told_before(search, row);
	char size[16];

	if (verdict == NULL)
		return straggler != NULL;
	op_size_text(size, sizeof(size), row->size_class);
	verdict_evidence(verdict,
			 "%s that %s of %s on %s communicators takes %.2f times as long as %s: "
			 "%.2f GB/s of bus bandwidth instead of %.2f.",
			 straggler ? "It explains" : "It is also seen",
			 job_name(job, OP_NAMES_FUNCTION, row->function), size,
			 job_comm_kind_name(row->kind), row->ratio, slow_than(against),
			 row->after / 1e9, row->before / 1e9);
	return true;
}
