#include <math.h>
#include <string.h>

#include "common/text.h"
#include "doctor/slow_find.h"

struct slow_text slow_time(const struct timeline_report *report, uint64_t ns)
{
	uint64_t after_ns = ns > report->start_ns ? ns - report->start_ns : 0;
	char after[UNITS_TEXT];
	struct slow_text to;

	if (report->has_wall)
		units_clock(to.text, ns);
	else
		text_format(to.text, sizeof(to.text), "%s after the start",
			    units_duration(after, after_ns));
	return to;
}

struct slow_text slow_when(const struct timeline_report *report, const struct slow_span *span)
{
	struct slow_text to = { "always" };
	struct slow_text from = slow_time(report, span->from_ns);
	struct slow_text until = slow_time(report, span->until_ns);

	if (span->from_ns > 0 && span->until_ns > 0 && span->share > 0 && span->share < 0.95)
		text_format(to.text, sizeof(to.text),
			    "in bursts between %s and %s (%.0f %% of the time)", from.text,
			    until.text, 100 * span->share);
	else if (span->from_ns > 0 && span->until_ns > 0)
		text_format(to.text, sizeof(to.text), "between %s and %s", from.text, until.text);
	else if (span->from_ns > 0)
		text_format(to.text, sizeof(to.text), "since %s", from.text);
	else if (span->until_ns > 0)
		text_format(to.text, sizeof(to.text), "until %s", until.text);
	return to;
}

const char *slow_against_name(enum slow_against against)
{
	static const char *const names[] = { "past", "baseline", "expected", "peak" };

	return (unsigned int)against < ARRAY_LENGTH(names) ? names[against] : "?";
}

const char *slow_than(enum slow_against against)
{
	static const char *const words[] = { "before", "in the baseline", "expected",
					     "the peak allows" };

	return (unsigned int)against < ARRAY_LENGTH(words) ? words[against] : "?";
}

/* ---- what all verdicts have in common --------------------------------------------------------- */

struct verdict *slow_verdict(struct slow_search *search, enum verdict_class class,
			     enum slow_against against)
{
	struct verdict *verdict = verdicts_add(search->verdicts, class, VERDICT_WARNING);
	const struct job *job = &search->report->job;

	text_copy(verdict->job, sizeof(verdict->job), job->groups[search->group].name);
	text_copy(verdict->rule, sizeof(verdict->rule), slow_against_name(against));
	return verdict;
}

void slow_fill_rank(struct verdict *verdict, const struct job *job, uint32_t rank)
{
	const struct job_rank *of = &job->ranks[rank];

	verdict->rank = of->rank;
	verdict->pid = of->pid;
	verdict->gpu = of->gpu;
	text_copy(verdict->rank_label, sizeof(verdict->rank_label), of->label);
	text_copy(verdict->host, sizeof(verdict->host), job->hosts[of->host].name);
	text_copy(verdict->job, sizeof(verdict->job), job->groups[of->group].name);
}

void slow_fill_comm(struct verdict *verdict, const struct job *job, uint32_t comm, uint32_t rank)
{
	const struct job_comm *of = &job->comms[comm];

	text_copy(verdict->comm, sizeof(verdict->comm), of->label);
	text_copy(verdict->job, sizeof(verdict->job), job->groups[of->group].name);
	verdict->comm_hash = of->hash;
	for (uint32_t i = 0; i < of->seat_count; i++)
		if (job->seats[of->seats[i]].rank == rank)
			verdict->comm_rank = job->seats[of->seats[i]].comm_rank;
}

void slow_fill_span(struct verdict *verdict, const struct timeline_report *report,
		    const struct slow_span *span)
{
	uint64_t from = span->from_ns > 0 ? span->from_ns : report->start_ns;
	uint64_t until = span->until_ns > 0 ? span->until_ns : report->end_ns;

	verdict->since_wall_ns = report->has_wall ? from : 0;
	verdict->for_ns = until > from ? until - from : 0;
}

void slow_fill_cost(struct slow_search *search, struct verdict *verdict, double lost_ns)
{
	verdict->gpu_hours = lost_ns / 3600e9;
	verdict->money = verdict->gpu_hours * search->options->gpu_hour_price;
}

static uint32_t ranks_unseen(const struct job *job)
{
	uint32_t most = 0;

	for (size_t i = 0; i < job->comm_count; i++)
		most = job->comms[i].missing > most ? job->comms[i].missing : most;
	return most;
}

/* How much there is behind a verdict, and what its confidence is worth by that. */
void slow_fill_missing(struct slow_search *search, struct verdict *verdict)
{
	const struct timeline_report *report = search->report;
	const struct timeline_completeness *found = &report->completeness;
	uint32_t unseen = ranks_unseen(&report->job);

	if (!found->keeps_all)
		verdict_missing(
			verdict,
			"In mode flight only the last operations are kept: this is about the "
			"last %s.",
			units_of_ns((double)(report->end_ns - report->start_ns)).text);
	if (found->keeps_all && !found->is_complete && found->share < 0.99) {
		verdict_missing(verdict,
				"Only %.0f %% of the operations that NCCL showed were read: what "
				"happened in the others is not known.",
				100 * found->share);
		verdict->confidence *= 0.5 + found->share / 2;
	}
	if (unseen > 0) {
		verdict_missing(verdict,
				"Of %u ranks of one communicator there is no recording: whoever "
				"is waited for may be one of them.",
				unseen);
		verdict->confidence *= 0.8;
	}
	if (report->meet.stride > 1)
		verdict_missing(verdict,
				"Waiting was worked out from one in %u groups of collectives, "
				"because there are so many.",
				report->meet.stride);
	if (report->total.by_source[OP_TIME_KERNEL_GPU] * 2 < report->total.timed) {
		verdict_missing(verdict, "Most durations are not from the GPU's clock: waiting "
					 "says less.");
		verdict->confidence *= 0.8;
	}
}
