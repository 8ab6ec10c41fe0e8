/*
 * What was not judged. Nobody named and nobody looked for read alike, so a job of which there is too little to
 * tell who comes late is not told to be fast.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "doctor/slow_find.h"

/* Who stands still is not slow; and where something slow was found, speed was judged. */
static bool is_told_otherwise(const struct slow_search *search, const char *job)
{
	for (size_t i = 0; i < search->verdicts->count; i++) {
		const struct verdict *verdict = &search->verdicts->list[i];

		if (strcmp(verdict->job, job) == 0 &&
		    (verdict_is_slow(verdict->class) || verdict_is_hang(verdict->class)))
			return true;
	}
	return false;
}

/* Is there anybody who could come later than somebody else? */
static bool has_company(const struct job *job, uint32_t group)
{
	for (size_t i = 0; i < job->comm_count; i++)
		if (job->comms[i].group == group && job->comms[i].nranks > 1)
			return true;
	return false;
}

static void tell_why(struct verdict *verdict, const struct timeline_report *report,
		     const struct straggler_judged *judged)
{
	const struct timeline_completeness *seen = &report->completeness;

	if (judged->meetings == 0)
		verdict_evidence(verdict,
				 "Collectives are compared that were seen, with times, on most of "
				 "their ranks; those that join stages of a pipeline are not.");
	else
		verdict_evidence(verdict,
				 "%.100s has most collectives that were seen on most of its ranks; "
				 "who comes late again and again can be told from %" PRIu32 " on.",
				 report->job.comms[judged->comm].label,
				 report->stragglers.least_meetings);
	if (seen->snapshots > 0)
		verdict_evidence(verdict, "Agents give the last operations of each process, each "
					  "agent at its own moment: those that all gave are "
					  "compared.");
	else if (seen->overwritten > 0)
		verdict_evidence(verdict, "In mode flight older operations are overwritten.");
}

void slow_unjudged(struct slow_search *search)
{
	const struct timeline_report *report = search->report;
	const struct job_group *group = &report->job.groups[search->group];
	const struct straggler_judged *judged;
	struct verdict *verdict;

	if (report->stragglers.jobs == NULL)
		return;
	judged = &report->stragglers.jobs[search->group];
	if (judged->is_judged || is_told_otherwise(search, group->name) ||
	    !has_company(&report->job, search->group))
		return;
	verdict = verdicts_add(search->verdicts, VERDICT_BLIND, VERDICT_NOTE);
	text_copy(verdict->job, sizeof(verdict->job), group->name);
	text_copy(verdict->rule, sizeof(verdict->rule), "speed");
	if (judged->meetings == 0)
		verdict_title(verdict, "speed was not judged: no collectives could be compared "
				       "between ranks");
	else
		verdict_title(
			verdict,
			"speed was not judged: %" PRIu64 " %s of %.80s could be compared, "
			"%" PRIu32 " are needed",
			judged->meetings, text_which(judged->meetings, "collective", "collectives"),
			report->job.comms[judged->comm].label, report->stragglers.least_meetings);
	tell_why(verdict, report, judged);
	verdict_missing(verdict, "ranks, hosts and links that are slow");
	verdict_advice(verdict, "Look again when the job has run for longer, or at traces of it.");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#slowness");
}
