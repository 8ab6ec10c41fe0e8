/* Findings of a report: what a recording shows that somebody should know, the most severe first. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/job.h"
#include "analysis/match.h"
#include "analysis/scan.h"
#include "analysis/straggler.h"
#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/op.h"
#include "common/text.h"
#include "recording/recording.h"

enum { FINDINGS_MAX = 100 };

const char *findings_severity_name(enum findings_severity severity)
{
	static const char *const names[] = { "note", "warning", "error" };

	return (unsigned int)severity <= FINDINGS_ERROR ? names[severity] : "note";
}

const char *findings_kind_name(enum findings_kind kind)
{
	static const char *const names[FINDINGS_KINDS] = {
		[FINDINGS_NOTHING_RECORDED] = "nothing_recorded",
		[FINDINGS_HUNG] = "hung",
		[FINDINGS_MISMATCH] = "mismatch",
		[FINDINGS_SLOW_RANK] = "slow_rank",
		[FINDINGS_SLOW_HOST] = "slow_host",
		[FINDINGS_SLOW_LINK] = "slow_link",
		[FINDINGS_NETWORK] = "network",
		[FINDINGS_CHANGE] = "change",
		[FINDINGS_KILLED] = "killed",
		[FINDINGS_LOST] = "lost",
		[FINDINGS_INCOMPLETE] = "incomplete",
		[FINDINGS_RANKS_MISSING] = "ranks_missing",
		[FINDINGS_UNTRUSTED] = "untrusted_stamps",
		[FINDINGS_UNTIMED] = "untimed",
		[FINDINGS_MIXED_SOURCES] = "mixed_sources",
		[FINDINGS_SMALL_MESSAGES] = "small_messages",
		[FINDINGS_WAITING] = "waiting",
		[FINDINGS_UNALIGNED] = "unaligned",
		[FINDINGS_SEVERAL_JOBS] = "several_jobs",
		[FINDINGS_SAMPLED] = "sampled",
		[FINDINGS_CONFLICT] = "conflict",
		[FINDINGS_SLOWER] = "slower",
	};

	return (unsigned int)kind < FINDINGS_KINDS ? names[kind] : "unknown";
}

void findings_release(struct findings *findings)
{
	free(findings->list);
	*findings = (struct findings){ .list = NULL };
}

/* A new finding with its title, to be filled in; a dummy if there are too many. */
PRINTF_LIKE(4, 5)
static struct finding *findings_add(struct findings *findings, enum findings_kind kind,
				    enum findings_severity severity, const char *title, ...)
{
	/* The last entry takes those beyond the limit. */
	struct finding *finding = &findings->list[findings->count];
	va_list list;

	*finding = (struct finding){ .kind = kind,
				     .severity = severity,
				     .rank = UINT32_MAX,
				     .host = UINT32_MAX,
				     .comm = UINT32_MAX,
				     .peer = UINT32_MAX };
	va_start(list, title);
	vsnprintf(finding->title, sizeof(finding->title), title, list);
	va_end(list);
	if (findings->count < FINDINGS_MAX)
		findings->count++;
	else
		findings->left_out++;
	return finding;
}

struct finding *findings_add_first(struct findings *findings, enum findings_kind kind,
				   enum findings_severity severity, const char *title)
{
	struct finding *last = findings_add(findings, kind, severity, "%s", title);
	struct finding first = *last;

	memmove(findings->list + 1, findings->list,
		(size_t)(last - findings->list) * sizeof(*last));
	findings->list[0] = first;
	return &findings->list[0];
}

void findings_drop(struct findings *findings, enum findings_kind kind)
{
	size_t kept = 0;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->list[i].kind != kind)
			findings->list[kept++] = findings->list[i];
	findings->count = kept;
}

/* Findings about the recording itself: what is missing, and what cannot be concluded because of that. */

static const double untrusted_share = 0.01, untimed_share = 0.05, mixed_share = 0.01;

static void find_nothing_recorded(struct findings *findings, const struct timeline_report *report)
{
	struct finding *finding;

	if (report->completeness.looked_at > 0)
		return;
	finding = findings_add(findings, FINDINGS_NOTHING_RECORDED, FINDINGS_ERROR,
			       "nothing to report");
	text_format(finding->text, sizeof(finding->text),
		    report->completeness.read > 0
			    ? "%llu operations were read; none of them matches the filter."
			    : "No operations were read (%llu).",
		    (unsigned long long)report->completeness.read);
}

static void find_unfinished(struct findings *findings, const struct timeline_report *report)
{
	const struct timeline_completeness *of = &report->completeness;
	size_t count = of->killed + of->unknown_life - of->without_end_mark;
	struct finding *finding;

	if (count == 0)
		return;
	finding = findings_add(findings, FINDINGS_KILLED, FINDINGS_WARNING,
			       "%zu of %zu %s truncated (process killed, crashed or still running)",
			       count, of->processes,
			       text_which(of->processes, "recording is", "recordings are"));
	finding->count = count;
	finding->of = of->processes;
	text_format(finding->text, sizeof(finding->text),
		    "The last operations of %s may be missing.",
		    text_which(count, "this process", "these processes"));
}

static void find_lost(struct findings *findings, const struct timeline_report *report)
{
	const struct timeline_completeness *of = &report->completeness;
	struct finding *finding;
	unsigned int most = 0;

	if (of->lost_operations == 0)
		return;
	for (unsigned int i = 0; i < LOST_REASONS; i++)
		if (op_lost_is_whole(i) && of->lost[i] > of->lost[most])
			most = i;
	finding = findings_add(findings, FINDINGS_LOST, FINDINGS_WARNING, "%llu %s lost",
			       (unsigned long long)of->lost_operations,
			       text_which(of->lost_operations, "operation was", "operations were"));
	finding->count = of->lost_operations;
	finding->of = of->issued;
	finding->percent = of->issued ? 100 * (double)of->lost_operations / (double)of->issued : 0;
	text_format(
		finding->text, sizeof(finding->text), "%s: %s. Totals are too low by that amount.",
		text_which(of->lost_operations, "The recorder counted it but has no record of it",
			   "The recorders counted them but have no record of them. Main reason"),
		op_lost_words(most));
	text_format(finding->hint, sizeof(finding->hint),
		    "`ringside verify` shows the counts per process and reason.");
}

/* A truncated file is reported with its process. */
static size_t troubles_but_cuts(const struct recording *recording)
{
	size_t count = recording->troubles_left_out - recording->cuts_left_out;

	for (size_t i = 0; i < recording->trouble_count; i++)
		count += recording->troubles[i].kind != RECORDING_CUT;
	return count;
}

static void find_incomplete(struct findings *findings, const struct timeline_report *report)
{
	const struct timeline_completeness *of = &report->completeness;
	size_t troubles = troubles_but_cuts(report->recording);
	uint64_t count = of->damages + of->refused + troubles;
	struct finding *finding;

	if (of->overwritten > 0) {
		finding = findings_add(findings, FINDINGS_INCOMPLETE, FINDINGS_NOTE,
				       "only the most recent operations are recorded");
		finding->count = of->read;
		finding->of = of->issued;
		text_format(finding->text, sizeof(finding->text),
			    of->snapshots > 0 ? "%llu of %llu operations: a snapshot holds the "
						"most recent ones of each process."
					      : "%llu of %llu operations: this mode keeps the most "
						"recent ones of each process.",
			    (unsigned long long)of->read, (unsigned long long)of->issued);
		text_format(finding->hint, sizeof(finding->hint),
			    of->snapshots > 0 ? "Request a snapshot with more operations, or "
						"record with --mode trace to keep all."
					      : "Record with --mode trace to keep all.");
	}
	if (count == 0)
		return;
	finding = findings_add(findings, FINDINGS_INCOMPLETE, FINDINGS_WARNING,
			       "parts of the recording could not be read");
	finding->count = count;
	text_format(finding->text, sizeof(finding->text),
		    "%llu damaged %s, %llu invalid %s, %zu %s with errors. The rest was read.",
		    (unsigned long long)of->damages, text_which(of->damages, "block", "blocks"),
		    (unsigned long long)of->refused, text_which(of->refused, "record", "records"),
		    troubles, text_which(troubles, "file", "files"));
	text_format(finding->hint, sizeof(finding->hint), "`ringside verify` lists them.");
}

static void find_missing_ranks(struct findings *findings, const struct timeline_report *report)
{
	size_t comms = 0, largest = 0;
	struct finding *finding;

	for (size_t c = 0; c < report->job.comm_count; c++) {
		uint32_t missing = report->job.comms[c].missing;

		if (missing == 0)
			continue;
		if (comms == 0 || missing > report->job.comms[largest].missing)
			largest = c;
		comms++;
	}
	if (comms == 0)
		return;
	finding = findings_add(
		findings, FINDINGS_RANKS_MISSING, FINDINGS_WARNING,
		"%zu %s recordings of some ranks", comms,
		text_which(comms, "communicator is missing", "communicators are missing"));
	finding->count = comms;
	finding->of = report->job.comm_count;
	finding->comm = (uint32_t)largest;
	text_format(finding->text, sizeof(finding->text),
		    "%.60s has %d %s; %u of them %s recorded. %s", report->job.comms[largest].label,
		    report->job.comms[largest].nranks,
		    text_which((uint64_t)report->job.comms[largest].nranks, "rank", "ranks"),
		    report->job.comms[largest].seat_count,
		    text_which(report->job.comms[largest].seat_count, "is", "are"),
		    report->job.comms[largest].seat_count == 1
			    ? "Waiting can be measured only with several recorded ranks."
			    : "Waiting is a lower bound: a missing rank may have arrived last.");
	text_format(finding->hint, sizeof(finding->hint),
		    "Pass the directories of all hosts to the same command.");
}

static void find_weak_times(struct findings *findings, const struct timeline_report *report)
{
	const struct tally_row *total = &report->total;
	double calls = (double)(total->calls ? total->calls : 1);
	double untimed = (double)tally_not_timed(total) / calls;
	unsigned int used = 0;
	struct finding *finding;
	size_t at = 0;

	if ((double)total->untrusted / calls > untrusted_share) {
		finding = findings_add(findings, FINDINGS_UNTRUSTED, FINDINGS_NOTE,
				       "GPU timestamps of %.1f%% of calls were rejected",
				       100 * (double)total->untrusted / calls);
		finding->count = total->untrusted;
		finding->of = total->calls;
		finding->percent = 100 * (double)total->untrusted / calls;
		text_format(finding->text, sizeof(finding->text),
			    "NCCL 2.26 to 2.30 can report the timestamps of another operation. "
			    "These calls have no duration.");
	}
	if (untimed > untimed_share) {
		finding = findings_add(findings, FINDINGS_UNTIMED, FINDINGS_NOTE,
				       total->timed > 0 ? "%.1f%% of calls are in no total"
							: "no call was timed",
				       100 * untimed);
		finding->count = tally_not_timed(total);
		finding->of = total->calls;
		finding->percent = 100 * untimed;
		text_format(finding->text, sizeof(finding->text),
			    "No call of their kind (communicator, function, size) was timed. They "
			    "count "
			    "as calls and bytes, not as time.%s",
			    total->by_source[OP_TIME_PROXY] > 0
				    ? " What the network showed of them is no duration: it "
				      "includes the "
				      "time in the queue."
				    : "");
	}
	for (uint8_t i = OP_TIME_NONE + 1; i < OP_TIME_SHOWN_SOURCES; i++)
		used += op_is_duration(i) && (double)total->by_source[i] / calls > mixed_share;
	if (used > 1) {
		finding = findings_add(findings, FINDINGS_MIXED_SOURCES, FINDINGS_NOTE,
				       "durations come from several sources");
		for (uint8_t i = OP_TIME_NONE + 1; i < OP_TIME_SHOWN_SOURCES; i++) {
			if (total->by_source[i] == 0 || !op_is_duration(i))
				continue;
			text_format(finding->text + at, sizeof(finding->text) - at, "%s%s %llu",
				    at > 0 ? ", " : "", op_time_source_name(i),
				    (unsigned long long)total->by_source[i]);
			at += strlen(finding->text + at);
		}
		text_format(finding->text + at, sizeof(finding->text) - at,
			    " calls. They measure different things; each row shows its source.");
		text_format(finding->hint, sizeof(finding->hint),
			    "Use --by source to separate them.");
	}
}

static void find_unjoined(struct findings *findings, const struct timeline_report *report)
{
	const struct matches *matches = &report->matches;
	struct finding *finding;

	if (report->job.group_count > 1) {
		finding = findings_add(findings, FINDINGS_SEVERAL_JOBS, FINDINGS_NOTE,
				       "%zu jobs in this recording", report->job.group_count);
		finding->count = report->job.group_count;
		text_format(
			finding->text, sizeof(finding->text),
			"Totals cover all of them; communicators are matched only within a job.");
	}
	if (report->job.conflicts > 0) {
		finding = findings_add(findings, FINDINGS_CONFLICT, FINDINGS_WARNING,
				       "%u %s two processes have the same rank in a communicator",
				       report->job.conflicts,
				       text_which(report->job.conflicts, "time", "times"));
		finding->count = report->job.conflicts;
		text_format(finding->text, sizeof(finding->text),
			    "Files of different runs, or copies, may be mixed. They are kept "
			    "separate.");
	}
	if (matches->left_out > 0) {
		finding = findings_add(findings, FINDINGS_SAMPLED, FINDINGS_NOTE,
				       "waiting is based on a sample of the collectives");
		finding->count = matches->joined;
		finding->of = matches->joined + matches->left_out;
		text_format(finding->text, sizeof(finding->text),
			    "To limit memory, %llu of %llu calls were matched with other ranks. "
			    "Total waiting covers only those.",
			    (unsigned long long)matches->joined,
			    (unsigned long long)(matches->joined + matches->left_out));
	}
	if (report->align.unaligned > 0 && report->completeness.read > 0) {
		finding = findings_add(findings, FINDINGS_UNALIGNED, FINDINGS_NOTE,
				       "%u of %zu %s could not be aligned in time",
				       report->align.unaligned, report->align.count,
				       text_which(report->align.count, "process", "processes"));
		finding->count = report->align.unaligned;
		finding->of = report->align.count;
		text_format(
			finding->text, sizeof(finding->text),
			"%s no collective with the others; %s. Only values over time are affected.",
			text_which(report->align.unaligned, "It shares", "They share"),
			text_which(report->align.unaligned, "its own wall clock is used",
				   "their own wall clocks are used"));
	}
}

static void findings_record(struct findings *findings, const struct timeline_report *report)
{
	find_nothing_recorded(findings, report);
	find_unfinished(findings, report);
	find_lost(findings, report);
	find_incomplete(findings, report);
	find_missing_ranks(findings, report);
	find_weak_times(findings, report);
	find_unjoined(findings, report);
}

/* Findings about lost time. */

enum { CHANGES_SHOWN = 5, SMALL_CLASS = 17 }; /* below 64 KiB */
static const double wait_share = 0.3, small_share = 0.2;
static const double run_share = 0.02; /* of run time: less is not worth a note */
enum { SMALL_CALLS_LEAST = 1000 };

static const char *when_slow(const struct timeline_report *report,
			     const struct straggler *straggler, char *to, size_t size)
{
	struct units_text first = timeline_time(report, straggler->first_ns, " UTC");
	struct units_text last = timeline_time(report, straggler->last_ns, " UTC");

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
		text_format(to, size, ", between %s and %s (%.0f%% of the time)", first.text,
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

/* Several hosts that are late for the same collectives may be held up by one rank, in a group of their own. */
static bool is_one_of_several(const struct timeline_report *report, const struct straggler *late)
{
	size_t count = 0;

	for (size_t i = 0; i < report->stragglers.count; i++)
		count += report->stragglers.list[i].class == STRAGGLER_SLOW_HOST &&
			 report->stragglers.list[i].comm == late->comm;
	return late->class == STRAGGLER_SLOW_HOST && count > 1;
}

static void tell_starved_rank(struct findings *findings, const struct timeline_report *report,
			      const struct straggler *straggler)
{
	const struct job *job = &report->job;
	const char *host = job->hosts[straggler->host].name;
	char times[120];
	struct finding *finding =
		findings_add(findings, FINDINGS_SLOW_RANK, FINDINGS_WARNING,
			     "straggler: rank %.24s on %.40s (late in its transfers)",
			     job->ranks[straggler->rank].label, host);

	take_straggler(finding, straggler);
	finding->count = straggler->matches;
	finding->percent = 100 * (straggler->slowdown - 1);
	if (straggler->own_slowdown <= 0) {
		text_format(
			finding->text, sizeof(finding->text),
			"In %.60s transfers from it and to it take %.1fx longer than the median%s: "
			"its process or its port is slow, not a link.",
			job->comms[straggler->comm].label, straggler->slowdown,
			when_slow(report, straggler, times, sizeof(times)));
	} else
		text_format(finding->text, sizeof(finding->text),
			    "In %.60s its transfers take %.1fx longer than the median%s; work that "
			    "needs "
			    "no network also takes %.1fx longer there: its process is slow, not "
			    "the link.",
			    job->comms[straggler->comm].label, straggler->slowdown,
			    when_slow(report, straggler, times, sizeof(times)),
			    straggler->own_slowdown);
	text_format(finding->hint, sizeof(finding->hint),
		    "Check on %.60s whether NCCL's proxy thread gets enough CPU: other processes, "
		    "cgroup limits, CPU affinity.",
		    host);
}

/* A rank or a host that is late, with all but what it does. */
static struct finding *add_late(struct findings *findings, const struct job *job,
				const struct straggler *straggler)
{
	const char *host = job->hosts[straggler->host].name;
	struct finding *finding =
		straggler->class == STRAGGLER_SLOW_HOST
			? findings_add(findings, FINDINGS_SLOW_HOST, FINDINGS_WARNING,
				       "straggler: all ranks of %.60s", host)
			: findings_add(findings, FINDINGS_SLOW_RANK, FINDINGS_WARNING,
				       "straggler: rank %.24s on %.40s",
				       job->ranks[straggler->rank].label, host);

	take_straggler(finding, straggler);
	finding->percent = 100 * straggler->cost_share;
	text_format(finding->hint, sizeof(finding->hint),
		    "Check on %.60s: GPU clocks and temperature, data loading, other processes.",
		    host);
	return finding;
}

/* Nobody waits for it yet. */
static void tell_behind(struct findings *findings, const struct timeline_report *report,
			const struct straggler *straggler)
{
	char times[120];
	struct finding *finding = add_late(findings, &report->job, straggler);

	finding->severity = FINDINGS_NOTE;
	finding->cost_ns = 0;
	finding->percent = 0;
	text_append(finding->title, sizeof(finding->title), ", hidden by a later one");
	text_format(finding->text, sizeof(finding->text),
		    "In %.60s it arrives %s later than the others%s. So far all of them wait for "
		    "another straggler, which is later still; once that is repaired, they wait for "
		    "this one.",
		    report->job.comms[straggler->comm].label,
		    units_of_ns((double)straggler->late_ns).text,
		    when_slow(report, straggler, times, sizeof(times)));
}

static void tell_slow_rank(struct findings *findings, const struct timeline_report *report,
			   const struct straggler *straggler)
{
	bool is_estimate = report->comms[straggler->comm].scale > 1;
	char times[120], last[120];
	struct finding *finding = add_late(findings, &report->job, straggler);

	finding->count = straggler->last_in;
	finding->of = straggler->matches;
	if (straggler->is_by_network)
		text_copy(last, sizeof(last),
			  ". There are no GPU times: data that it received waits for its GPU");
	else
		text_format(last, sizeof(last), " and was last in %llu of %llu collectives",
			    (unsigned long long)straggler->last_in,
			    (unsigned long long)straggler->matches);
	text_format(finding->text, sizeof(finding->text),
		    "In %.60s it arrives %s later than the others%s%s. The other ranks waited "
		    "%s%s in total%s.",
		    report->job.comms[straggler->comm].label,
		    units_of_ns((double)straggler->late_ns).text,
		    when_slow(report, straggler, times, sizeof(times)), last,
		    is_estimate ? "about " : "", units_of_ns((double)straggler->caused_ns).text,
		    is_estimate ? " (estimated: not all were timed)" : "");
	if (is_one_of_several(report, straggler))
		text_append(finding->hint, sizeof(finding->hint),
			    " Other hosts are late, too: 'ringside doctor' looks for one rank "
			    "that holds them up.");
}

/* By its time outside of all operations. */
static void tell_origin(struct findings *findings, const struct timeline_report *report,
			const struct straggler *straggler)
{
	char times[120];
	struct finding *finding = add_late(findings, &report->job, straggler);

	text_format(finding->text, sizeof(finding->text),
		    "It spends %.1f%% more of the time outside of communication than its peers%s: "
		    "ranks that are late elsewhere wait for it.",
		    100 * straggler->own_excess,
		    when_slow(report, straggler, times, sizeof(times)));
}

static void tell_slow_link(struct findings *findings, const struct timeline_report *report,
			   const struct straggler *straggler)
{
	const struct job *job = &report->job;
	const struct job_rank *from = &job->ranks[straggler->rank];
	char times[120], to[80] = "";
	struct finding *finding;

	if (straggler->is_uplink)
		text_format(to, sizeof(to), " and others of %.40s", job->hosts[from->host].name);
	else if (straggler->is_rail)
		text_copy(to, sizeof(to), " and others of its rail");
	else if (straggler->peer != UINT32_MAX)
		text_format(to, sizeof(to), " -> rank %.24s on %.40s",
			    job->ranks[straggler->peer].label,
			    job->hosts[job->ranks[straggler->peer].host].name);
	finding = findings_add(findings, FINDINGS_SLOW_LINK, FINDINGS_WARNING,
			       "slow link: rank %.24s%s", from->label, to);
	take_straggler(finding, straggler);
	finding->peer = straggler->peer;
	finding->count = straggler->matches;
	finding->percent = 100 * (straggler->slowdown - 1);
	text_format(finding->text, sizeof(finding->text),
		    "Sends from rank %.24s on %.40s in %.60s take %.1fx longer on the wire than "
		    "the median%s. All ranks in the collective wait for them.",
		    from->label, job->hosts[from->host].name, job->comms[straggler->comm].label,
		    straggler->slowdown, when_slow(report, straggler, times, sizeof(times)));
	text_format(finding->hint, sizeof(finding->hint),
		    "Check the network port of %.60s%s: errors, speed, cable, and the switch it is "
		    "connected to.",
		    job->hosts[from->host].name,
		    straggler->peer == UINT32_MAX ? " (full mode shows the receiver)" : "");
}

static void tell_network(struct findings *findings, const struct timeline_report *report,
			 const struct straggler *straggler)
{
	char times[120];
	bool is_wire = straggler->is_by_network;
	struct finding *finding =
		findings_add(findings, FINDINGS_NETWORK, is_wire ? FINDINGS_NOTE : FINDINGS_WARNING,
			     "slow network: inter-node traffic is slower than before everywhere");

	finding->comm = straggler->comm;
	finding->count = straggler->matches;
	finding->cost_ns = straggler->caused_ns;
	finding->percent = 100 * (straggler->slowdown - 1);
	finding->at_ns = straggler->first_ns;
	if (is_wire)
		text_format(finding->text, sizeof(finding->text),
			    "Inter-node transfers are on the wire %.2fx longer%s, equally on all "
			    "ranks. No call was timed: 'ringside doctor' says what it costs.",
			    straggler->slowdown,
			    when_slow(report, straggler, times, sizeof(times)));
	else
		text_format(
			finding->text, sizeof(finding->text),
			"Inter-node transfers take %.2fx longer%s, equally on all ranks; no rank "
			"arrives later than before. Total cost: %s.",
			straggler->slowdown, when_slow(report, straggler, times, sizeof(times)),
			units_of_ns((double)straggler->caused_ns).text);
	/* Trees span links within and between nodes: which of them is slow only the doctor examines. */
	text_format(finding->hint, sizeof(finding->hint),
		    "Check the fabric: congestion from other jobs, a failed switch or uplink, "
		    "adaptive routing.%s",
		    straggler->has_wire || report->job.comms[straggler->comm].kind != JOB_COMM_MIXED
			    ? ""
			    : " Slow NVLink would look the same here; 'ringside doctor' "
			      "distinguishes them.");
}

/* Is it reported already, in another form? */
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

static void tell_change(struct findings *findings, const struct timeline_report *report,
			const struct windows_change *change)
{
	const char *function = job_name(&report->job, OP_NAMES_FUNCTION, change->function);
	const char *kind = job_comm_kind_name(change->kind);
	bool is_slower = change->percent < 0;
	char where[100];
	struct finding *finding;

	if (change->is_wire)
		finding = findings_add(
			findings, FINDINGS_CHANGE, FINDINGS_NOTE,
			"%.20s transfers on %s communicators are on the wire %.0f%% %s from %s on",
			function, kind, 100 * fabs(change->before / change->after - 1),
			is_slower ? "longer" : "less long",
			timeline_time(report, change->at_ns, " UTC").text);
	else
		finding = findings_add(findings, FINDINGS_CHANGE,
				       is_slower ? FINDINGS_WARNING : FINDINGS_NOTE,
				       "%.20s busbw on %s communicators %s %.0f%% at %s", function,
				       kind, is_slower ? "dropped" : "increased",
				       is_slower ? -change->percent : change->percent,
				       timeline_time(report, change->at_ns, " UTC").text);

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
	if (change->is_wire) {
		text_format(
			finding->text, sizeof(finding->text),
			"Of the fastest sender, a transfer took %s before and %s after, %s, over "
			"%llu collectives before and %llu after. No call was timed: what it costs "
			"shows in the iterations.",
			units_of_ns(1e9 / change->before).text,
			units_of_ns(1e9 / change->after).text, where,
			(unsigned long long)change->matches_before,
			(unsigned long long)change->matches_after);
		return;
	}
	text_format(finding->text, sizeof(finding->text),
		    "Excluding waiting, busbw went from %.2f to %.2f GB/s %s, over %llu "
		    "collectives before and %llu after.",
		    change->before / 1e9, change->after / 1e9, where,
		    (unsigned long long)change->matches_before,
		    (unsigned long long)change->matches_after);
}

static void find_waiting(struct findings *findings, const struct timeline_report *report)
{
	const struct tally_row *total = &report->total;
	double share = tally_wait_share(total);
	double wait_ns = tally_total_wait_ns(total);
	bool is_estimate = total->covered > 0, is_judged = report->stragglers.has_enough;
	struct finding *finding;

	if (share < wait_share || report->stragglers.count > 0 || report->gpu_hours <= 0 ||
	    report->gpu_hours_waited / report->gpu_hours < run_share)
		return;
	finding = findings_add(findings, FINDINGS_WAITING, FINDINGS_NOTE,
			       "ranks wait for each other %.2g%% of run time%s",
			       100 * report->gpu_hours_waited / report->gpu_hours,
			       is_judged ? ", with no single straggler" : "");
	finding->percent = 100 * share;
	finding->cost_ns = units_whole(wait_ns);
	text_format(finding->text, sizeof(finding->text),
		    "Arrival skew is %s%.0f%% of collective time, %s in total over all ranks%s.",
		    is_estimate ? "about " : "", 100 * share, units_of_ns(wait_ns).text,
		    is_judged ? "; the last rank varies" : "");
	text_copy(finding->hint, sizeof(finding->hint),
		  is_judged ? "Uneven work or host jitter: compare iterations, pin threads, "
			      "balance batches."
			    : "Record longer: there are too few collectives to tell whether one "
			      "rank is late.");
}

static void find_small_messages(struct findings *findings, const struct timeline_report *report)
{
	const struct tally_row *total = &report->total;
	uint64_t calls = 0;
	struct finding *finding;
	double share, ns = 0, all_ns = tally_total_ns(total) - tally_total_wait_ns(total);

	for (size_t i = 0; i < report->by_size.count; i++) {
		const struct tally_row *row = &report->by_size.rows[i];

		if (row->key.size_class == 0 || row->key.size_class > SMALL_CLASS)
			continue;
		/* The time of kinds without any timed call is unknown. */
		calls += row->timed + row->covered;
		ns += tally_total_ns(row) - tally_total_wait_ns(row);
	}
	share = all_ns > 0 ? ns / all_ns : 0;
	if (calls < SMALL_CALLS_LEAST || calls * 2 < total->timed + total->covered ||
	    share < small_share)
		return;
	finding = findings_add(findings, FINDINGS_SMALL_MESSAGES, FINDINGS_NOTE,
			       "many small messages: %.0f%% of communication time", 100 * share);
	finding->count = calls;
	finding->of = total->timed + total->covered;
	finding->percent = 100 * share;
	finding->cost_ns = units_whole(ns);
	text_format(finding->text, sizeof(finding->text),
		    "%llu of %llu calls move less than 64 KiB; excluding waiting, they take %s%s: "
		    "limited by latency, not bandwidth.",
		    (unsigned long long)calls, (unsigned long long)finding->of,
		    total->covered > 0 ? "about " : "", units_of_ns(ns).text);
	text_format(finding->hint, sizeof(finding->hint),
		    "Combine messages (larger buckets, grouped calls) if the framework can.");
}

/* Each part adds its findings. */
static void findings_slow(struct findings *findings, const struct timeline_report *report)
{
	size_t shown = 0;

	for (size_t i = 0; i < report->stragglers.count; i++) {
		const struct straggler *straggler = &report->stragglers.list[i];

		if (straggler->class == STRAGGLER_SLOW_LINK)
			tell_slow_link(findings, report, straggler);
		else if (straggler->class == STRAGGLER_NETWORK)
			tell_network(findings, report, straggler);
		else if (straggler->class == STRAGGLER_HELD_UP)
			continue; /* nobody to name: waiting is reported below */
		else if (straggler->is_origin)
			tell_origin(findings, report, straggler);
		else if (straggler->late_ns == 0)
			tell_starved_rank(findings, report, straggler);
		else if (straggler->is_behind)
			tell_behind(findings, report, straggler);
		else
			tell_slow_rank(findings, report, straggler);
	}
	for (size_t i = 0; i < report->windows.change_count && shown < CHANGES_SHOWN; i++)
		if (!is_covered(report, &report->windows.changes[i])) {
			tell_change(findings, report, &report->windows.changes[i]);
			shown++;
		}
	find_waiting(findings, report);
	find_small_messages(findings, report);
}

/* Findings about ranks that are stuck or disagree. The cause is left to the doctor (doctor/hang.c), which
 * knows what each of them waits for. */

enum { NAMED = 8 }; /* ranks that a sentence lists */

static void name_rank(char *to, size_t size, size_t nth, const char *label)
{
	size_t used = strlen(to);

	if (nth < NAMED)
		text_format(to + used, size - used, "%s%.24s", nth ? ", " : "", label);
	else if (nth == NAMED)
		text_format(to + used, size - used, ", ...");
}

static const struct scan_open *open_of(const struct scan *scan, uint32_t seat)
{
	const struct job *job = scan->job;
	const struct recording_process *process =
		job->recording->processes[job->seats[seat].process];

	/* A running process may well have operations in flight. */
	if (process->life == RECORDING_ALIVE || process->life == RECORDING_ENDED ||
	    scan->opens[seat].count == 0)
		return NULL;
	return &scan->opens[seat];
}

/* The earliest collective of a communicator that was unfinished at the end; NULL none. */
static const struct scan_open *first_open(const struct scan *scan, const struct job_comm *comm)
{
	const struct scan_open *first = NULL;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct scan_open *open = open_of(scan, comm->seats[i]);

		if (open != NULL && op_is_collective(open->function) && open->match != 0 &&
		    (first == NULL || open->match < first->match))
			first = open;
	}
	return first;
}

static void find_stuck(struct findings *findings, const struct scan *scan, uint32_t c)
{
	const struct job *job = scan->job;
	const struct job_comm *comm = &job->comms[c];
	const struct scan_open *first = first_open(scan, comm);
	size_t inside = 0, outside = 0;
	char missing[200] = "";
	struct finding *finding;

	if (first == NULL)
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct scan_open *open = open_of(scan, comm->seats[i]);
		uint32_t rank = job->seats[comm->seats[i]].rank;

		if (open != NULL && open->match == first->match)
			inside++;
		else
			name_rank(missing, sizeof(missing), outside++, job->ranks[rank].label);
	}
	finding = findings_add(findings, FINDINGS_HUNG, FINDINGS_ERROR,
			       "%zu %s stuck in %.20s #%llu of %.32s at the end", inside,
			       text_which(inside, "rank", "ranks"),
			       job_name(job, OP_NAMES_FUNCTION, first->function),
			       (unsigned long long)op_shown_number(first->match), comm->label);
	finding->comm = c;
	finding->count = inside;
	finding->of = comm->seat_count;
	if (outside == 0 && inside == 1)
		text_format(finding->text, sizeof(finding->text),
			    "When the recording ended, the recorded rank of %.60s was in this "
			    "collective.",
			    comm->label);
	else if (comm->missed > 0)
		text_format(finding->text, sizeof(finding->text),
			    "When the recording ended, at least %zu of %u recorded ranks of %.60s "
			    "%s in this collective. NCCL did not report all calls of this "
			    "communicator, so the others are unknown.",
			    inside, comm->seat_count, comm->label,
			    text_which(inside, "was", "were"));
	else if (outside == 0)
		text_format(finding->text, sizeof(finding->text),
			    "When the recording ended, all %zu recorded ranks of %.60s were in "
			    "this collective.",
			    inside, comm->label);
	else
		text_format(finding->text, sizeof(finding->text),
			    "When the recording ended, %zu of %u recorded ranks of %.60s %s in "
			    "this collective. Not in it: %s.",
			    inside, comm->seat_count, comm->label,
			    text_which(inside, "was", "were"), missing);
	text_format(finding->hint, sizeof(finding->hint),
		    "`ringside doctor` on the same files shows the rank they wait for.");
}

/* Two ranks made the same number of collective calls but disagree on what they were. */
static uint64_t differ_in_counts(const struct job *job, const struct job_comm *comm,
				 uint64_t *number)
{
	const struct comm_counts *first = NULL;
	uint64_t differing = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct job_seat *seat = &job->seats[comm->seats[i]];
		const struct recording_comm *of =
			&job->recording->processes[seat->process]
				 ->comms[comm->seats[i] - job->first_seat[seat->process]];

		if (!of->has_counts || of->counts.signature == 0 || comm->hash == 0)
			continue;
		if (first == NULL)
			first = &of->counts;
		if (of->counts.collectives != first->collectives ||
		    of->counts.signature == first->signature)
			continue;
		differing++;
		*number = of->counts.collectives;
	}
	return differing;
}

/* Ranks that hang in the same collective and made different calls. */
static uint64_t differ_in_flight(const struct scan *scan, uint32_t c, uint64_t *number)
{
	const struct job_comm *comm = &scan->job->comms[c];
	const struct scan_open *first = first_open(scan, comm);
	uint64_t differing = 0;
	uint32_t others;

	for (uint32_t i = 0; first != NULL && i < comm->seat_count; i++) {
		const struct scan_open *open = open_of(scan, comm->seats[i]);

		differing += open != NULL && open->match == first->match &&
			     open->signature != first->signature;
	}
	/* Some may have finished it already: for example with half the count. */
	others = first != NULL ? match_signature(&scan->matches, c, first->match) : 0;
	if (others != 0 && first->signature != 0 && others != (uint32_t)first->signature)
		differing++;
	if (differing > 0)
		*number = first->match;
	return differing;
}

static void find_mismatch(struct findings *findings, const struct timeline_report *report,
			  const struct scan *scan, uint32_t c)
{
	const struct job_comm *comm = &scan->job->comms[c];
	uint64_t number = report->comms[c].first_mismatch;
	uint64_t count = report->comms[c].mismatches;
	struct finding *finding;

	if (count == 0 && comm->missed == 0)
		count = differ_in_flight(scan, c, &number);
	if (count == 0)
		count = differ_in_counts(scan->job, comm, &number);
	if (count == 0)
		return;
	finding = findings_add(findings, FINDINGS_MISMATCH, FINDINGS_ERROR,
			       "ranks of %.32s disagree on collective #%llu", comm->label,
			       (unsigned long long)op_shown_number(number));
	finding->comm = c;
	finding->count = count;
	text_format(finding->text, sizeof(finding->text),
		    "From collective #%llu of %.60s on, ranks called different functions, counts, "
		    "datatypes or roots. NCCL then hangs or corrupts data.",
		    (unsigned long long)op_shown_number(number), comm->label);
	text_format(finding->hint, sizeof(finding->hint),
		    "`ringside doctor` on the same files shows both sides; `ringside dump` shows "
		    "the calls around it (match %llu).",
		    (unsigned long long)number);
}

static void findings_stuck(struct findings *findings, const struct timeline_report *report,
			   const struct scan *scan)
{
	for (uint32_t c = 0; c < scan->job->comm_count; c++) {
		if (!report->comms[c].is_shown)
			continue;
		find_mismatch(findings, report, scan, c);
		find_stuck(findings, scan, c);
	}
}

/* Stable: within a severity in the order in which they were added. */
void findings_sort(struct findings *findings)
{
	for (size_t i = 1; i < findings->count; i++)
		for (size_t j = i;
		     j > 0 && findings->list[j].severity > findings->list[j - 1].severity; j--) {
			struct finding swap = findings->list[j];

			findings->list[j] = findings->list[j - 1];
			findings->list[j - 1] = swap;
		}
}

enum status findings_make(struct findings *findings, const struct timeline_report *report,
			  const struct scan *scan)
{
	*findings = (struct findings){ .count = 0 };
	findings->list = calloc(FINDINGS_MAX + 1, sizeof(*findings->list));
	if (findings->list == NULL)
		return ERR_NO_SPACE;
	findings_stuck(findings, report, scan);
	findings_slow(findings, report);
	findings_record(findings, report);
	findings_sort(findings);
	return OK;
}
