/* Findings about what costs time. */
#include "common/op.h"
#include "common/text.h"
#include "timeline/findings_make.h"

enum { CHANGES_SHOWN = 5, SMALL_CLASS = 17 }; /* below 64 KiB */
static const double wait_share = 0.3, small_share = 0.2;
enum { SMALL_CALLS_LEAST = 1000 };

static const char *when(const struct timeline_report *report, const struct straggler *straggler,
			char *to, size_t size)
{
	struct findings_text first = findings_time(report, straggler->first_ns);
	struct findings_text last = findings_time(report, straggler->last_ns);

	to[0] = '\0';
	if (!straggler->has_times)
		return to;
	switch (straggler->pattern) {
	case STRAGGLER_ALWAYS:
		text_format(to, size, ", all the time");
		break;
	case STRAGGLER_SINCE:
		text_format(to, size, ", since %s", first.text);
		break;
	case STRAGGLER_UNTIL:
		text_format(to, size, ", until %s", last.text);
		break;
	case STRAGGLER_BURSTS:
		text_format(to, size, ", between %s and %s (%.0f %% of the time)", first.text,
			    last.text, 100 * straggler->share_of_time);
		break;
	}
	return to;
}

static void take_straggler(struct finding *finding, const struct straggler *straggler)
{
	finding->rank = straggler->rank;
	finding->host = straggler->host;
	finding->comm = straggler->comm;
	finding->cost_ns = straggler->caused_ns;
	finding->at_ns = straggler->has_times ? straggler->first_ns : 0;
}

/* Several hosts that come late to the same collectives may be held up by one rank, in a group of their own. */
static bool is_one_of_several(const struct timeline_report *report, const struct straggler *late)
{
	size_t count = 0;

	for (size_t i = 0; i < report->stragglers.count; i++)
		count += report->stragglers.list[i].class == STRAGGLER_SLOW_HOST &&
			 report->stragglers.list[i].comm == late->comm;
	return late->class == STRAGGLER_SLOW_HOST && count > 1;
}

static void starved_rank(struct findings *findings, const struct timeline_report *report,
			 const struct straggler *straggler)
{
	const struct job *job = &report->job;
	const char *host = job->hosts[straggler->host].name;
	char times[120];
	struct finding *finding = findings_add(findings, FINDINGS_SLOW_RANK, FINDINGS_WARNING,
					       "rank %.24s on %.40s is late in its transfers",
					       job->ranks[straggler->rank].label, host);

	take_straggler(finding, straggler);
	finding->count = straggler->meetings;
	finding->percent = 100 * (straggler->slowdown - 1);
	text_format(finding->text, sizeof(finding->text),
		    "In %.60s transfers over it take %.1f times as long as the others'%s; what "
		    "needs no network takes %.1f times as long there, too: it is its process, not "
		    "the link.",
		    job->comms[straggler->comm].label, straggler->slowdown,
		    when(report, straggler, times, sizeof(times)), straggler->own_slowdown);
	text_format(finding->hint, sizeof(finding->hint),
		    "Look at %.60s: does NCCL's proxy thread get its processor? Other processes, "
		    "limits of its cgroup, the cores it is bound to.",
		    host);
}

static void slow_rank(struct findings *findings, const struct timeline_report *report,
		      const struct straggler *straggler)
{
	const struct job *job = &report->job;
	const char *host = job->hosts[straggler->host].name;
	bool is_host = straggler->class == STRAGGLER_SLOW_HOST;
	bool is_estimate = report->comms[straggler->comm].scale > 1;
	char times[120];
	struct finding *finding =
		is_host ? findings_add(findings, FINDINGS_SLOW_HOST, FINDINGS_WARNING,
				       "all ranks of %.60s arrive late", host)
			: findings_add(findings, FINDINGS_SLOW_RANK, FINDINGS_WARNING,
				       "rank %.24s on %.40s arrives late",
				       job->ranks[straggler->rank].label, host);

	take_straggler(finding, straggler);
	finding->count = straggler->last_in;
	finding->of = straggler->meetings;
	finding->percent = 100 * straggler->cost_share;
	text_format(finding->text, sizeof(finding->text),
		    "In %.60s it comes %s later than the others%s; it was the last in %llu of %llu "
		    "collectives. The others waited %s%s for it in sum%s.",
		    job->comms[straggler->comm].label, units_of_ns((double)straggler->late_ns).text,
		    when(report, straggler, times, sizeof(times)),
		    (unsigned long long)straggler->last_in, (unsigned long long)straggler->meetings,
		    is_estimate ? "about " : "", units_of_ns((double)straggler->caused_ns).text,
		    is_estimate ? " (estimated: not all of them were timed)" : "");
	text_format(finding->hint, sizeof(finding->hint),
		    "Look at %.60s: GPU clocks and temperature, data loading, other processes.%s",
		    host,
		    is_one_of_several(report, straggler)
			    ? " It is late together with other hosts: 'ringside doctor' looks for "
			      "one rank that holds them up."
			    : "");
}

static void slow_link(struct findings *findings, const struct timeline_report *report,
		      const struct straggler *straggler)
{
	const struct job *job = &report->job;
	const struct job_rank *from = &job->ranks[straggler->rank];
	char times[120], to[80] = "";
	struct finding *finding;

	if (straggler->peer != UINT32_MAX)
		text_format(to, sizeof(to), " to rank %.24s on %.40s",
			    job->ranks[straggler->peer].label,
			    job->hosts[job->ranks[straggler->peer].host].name);
	finding = findings_add(findings, FINDINGS_SLOW_LINK, FINDINGS_WARNING,
			       "a link from rank %.24s%s is slow", from->label, to);
	take_straggler(finding, straggler);
	finding->peer = straggler->peer;
	finding->count = straggler->meetings;
	finding->percent = 100 * (straggler->slowdown - 1);
	text_format(finding->text, sizeof(finding->text),
		    "What rank %.24s on %.40s sends in %.60s is %.1f times as long on the wire as "
		    "what the others send%s. Everybody in the collective waits for it.",
		    from->label, job->hosts[from->host].name, job->comms[straggler->comm].label,
		    straggler->slowdown, when(report, straggler, times, sizeof(times)));
	text_format(finding->hint, sizeof(finding->hint),
		    "Look at the network port of %.60s%s: errors, speed, cable, and the switch "
		    "behind it.",
		    job->hosts[from->host].name,
		    straggler->peer == UINT32_MAX ? " (mode full tells to whom)" : "");
}

static void network(struct findings *findings, const struct timeline_report *report,
		    const struct straggler *straggler)
{
	char times[120];
	struct finding *finding = findings_add(findings, FINDINGS_NETWORK, FINDINGS_WARNING,
					       "the network is slower than before, for all");

	finding->comm = straggler->comm;
	finding->count = straggler->meetings;
	finding->cost_ns = straggler->caused_ns;
	finding->percent = 100 * (straggler->slowdown - 1);
	finding->at_ns = straggler->first_ns;
	text_format(finding->text, sizeof(finding->text),
		    "Transfers between nodes take %.2f times as long%s, on all ranks alike; nobody "
		    "comes later than before. That cost %s in sum.",
		    straggler->slowdown, when(report, straggler, times, sizeof(times)),
		    units_of_ns((double)straggler->caused_ns).text);
	/* Trees within nodes and over them are one: what is slow in them only the doctor looks for. */
	text_format(finding->hint, sizeof(finding->hint),
		    "Look at the fabric: congestion by other jobs, a switch or uplink that failed, "
		    "adaptive routing.%s",
		    straggler->has_wire || report->job.comms[straggler->comm].kind != JOB_COMM_MIXED
			    ? ""
			    : " Slow NVLink would look alike here; 'ringside doctor' tells them "
			      "apart.");
}

/* Said already, in other words? */
static bool is_covered(const struct timeline_report *report, const struct windows_change *change)
{
	for (size_t i = 0; i < report->stragglers.count; i++) {
		const struct straggler *straggler = &report->stragglers.list[i];
		bool is_network = change->kind == JOB_COMM_NET || change->kind == JOB_COMM_MIXED;

		if (straggler->class == STRAGGLER_NETWORK && is_network)
			return true;
		if (straggler->class == STRAGGLER_SLOW_LINK &&
		    straggler->comm == change->example_comm)
			return true;
	}
	return false;
}

static void change_found(struct findings *findings, const struct timeline_report *report,
			 const struct windows_change *change)
{
	const char *function = job_name(&report->job, OP_NAMES_FUNCTION, change->function);
	const char *kind = job_comm_kind_name(change->kind);
	bool is_slower = change->percent < 0;
	char where[100];
	struct finding *finding = findings_add(
		findings, FINDINGS_CHANGE, is_slower ? FINDINGS_WARNING : FINDINGS_NOTE,
		"%.20s on %s communicators %s %.0f %% at %s", function, kind,
		is_slower ? "fell" : "rose", is_slower ? -change->percent : change->percent,
		findings_time(report, change->at_ns).text);

	finding->comm = change->example_comm;
	finding->count = change->comms_changed;
	finding->of = change->comms;
	finding->percent = change->percent;
	finding->cost_ns = change->lost_ns;
	finding->at_ns = change->at_ns;
	if (change->is_everywhere)
		text_format(where, sizeof(where), "on all ranks");
	else
		text_format(where, sizeof(where), "in %u of %u communicators (%u %s)",
			    change->comms_changed, change->comms, change->ranks_changed,
			    text_which(change->ranks_changed, "rank", "ranks"));
	text_format(finding->text, sizeof(finding->text),
		    "Waiting left out, busbw went from %.2f to %.2f GB/s %s, over %llu collectives "
		    "before and %llu after.",
		    change->before / 1e9, change->after / 1e9, where,
		    (unsigned long long)change->meetings_before,
		    (unsigned long long)change->meetings_after);
}

static void waiting(struct findings *findings, const struct timeline_report *report)
{
	const struct tally_row *total = &report->total;
	double share = tally_wait_share(total);
	double wait_ns = tally_total_wait_ns(total);
	bool is_estimate = total->covered > 0;
	struct finding *finding;

	if (share < wait_share || report->stragglers.count > 0)
		return;
	finding = findings_add(
		findings, FINDINGS_WAITING, FINDINGS_NOTE,
		"%.0f %% of the time in collectives is waiting, for nobody in particular",
		100 * share);
	finding->percent = 100 * share;
	finding->cost_ns = units_whole(wait_ns);
	text_format(
		finding->text, sizeof(finding->text),
		"Ranks wait %s%s in sum (%.3g GPU-hours%s) for ranks that arrive later, and it is "
		"not the same one again and again.",
		is_estimate ? "about " : "", units_of_ns(wait_ns).text, report->gpu_hours_waited,
		is_estimate ? ", estimated" : "");
	text_format(finding->hint, sizeof(finding->hint),
		    "Uneven work or jitter of the hosts: compare iterations, pin threads, balance "
		    "batches.");
}

static void small_messages(struct findings *findings, const struct timeline_report *report)
{
	const struct tally_row *total = &report->total;
	uint64_t calls = 0;
	struct finding *finding;
	double share, ns = 0, all_ns = tally_total_ns(total) - tally_total_wait_ns(total);

	for (size_t i = 0; i < report->by_size.count; i++) {
		const struct tally_row *row = &report->by_size.rows[i];

		if (row->key.size_class == 0 || row->key.size_class > SMALL_CLASS)
			continue;
		/* Those of kinds with nothing timed take a time that is not known. */
		calls += row->timed + row->covered;
		ns += tally_total_ns(row) - tally_total_wait_ns(row);
	}
	share = all_ns > 0 ? ns / all_ns : 0;
	if (calls < SMALL_CALLS_LEAST || calls * 2 < total->timed + total->covered ||
	    share < small_share)
		return;
	finding = findings_add(findings, FINDINGS_SMALL_MESSAGES, FINDINGS_NOTE,
			       "many small messages: %.0f %% of the time in communication",
			       100 * share);
	finding->count = calls;
	finding->of = total->timed + total->covered;
	finding->percent = 100 * share;
	finding->cost_ns = units_whole(ns);
	text_format(finding->text, sizeof(finding->text),
		    "%llu of %llu calls move less than 64 KiB, waiting left out they take %s%s: "
		    "latency, "
		    "not bandwidth, decides.",
		    (unsigned long long)calls, (unsigned long long)finding->of,
		    total->covered > 0 ? "about " : "", units_of_ns(ns).text);
	text_format(
		finding->hint, sizeof(finding->hint),
		"Put messages together (larger buckets, grouped calls) where the framework can.");
}

void findings_slow(struct findings *findings, const struct timeline_report *report)
{
	size_t shown = 0;

	for (size_t i = 0; i < report->stragglers.count; i++) {
		const struct straggler *straggler = &report->stragglers.list[i];

		if (straggler->class == STRAGGLER_SLOW_LINK)
			slow_link(findings, report, straggler);
		else if (straggler->class == STRAGGLER_NETWORK)
			network(findings, report, straggler);
		else if (straggler->late_ns == 0)
			starved_rank(findings, report, straggler);
		else
			slow_rank(findings, report, straggler);
	}
	for (size_t i = 0; i < report->windows.change_count && shown < CHANGES_SHOWN; i++)
		if (!is_covered(report, &report->windows.changes[i])) {
			change_found(findings, report, &report->windows.changes[i]);
			shown++;
		}
	waiting(findings, report);
	small_messages(findings, report);
}
