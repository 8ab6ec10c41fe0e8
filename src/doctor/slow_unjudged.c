/*
 * What was not judged. Nobody named and nobody looked for read alike, so a job of which there is too little to
 * tell who comes late is not told to be fast.
 */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
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
		if (job->comms[i].group == group &&
		    (job->comms[i].nranks > 1 || job->comms[i].seat_count > 1))
			return true;
	return false;
}

/* Operations of a communicator, over its ranks, and those of them that have a duration. */
struct timed {
	uint64_t calls, timed;
};

static struct timed timed_of(const struct job *job, const struct job_comm *comm)
{
	struct timed timed = { 0, 0 };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct job_seat *seat = &job->seats[comm->seats[i]];
		const struct recording_comm *of =
			recording_comm(job->recording->processes[seat->process], seat->comm_id);

		if (of == NULL || !of->has_counts)
			continue;
		timed.calls += of->counts.recorded;
		timed.timed += of->counts.timed;
	}
	return timed;
}

static struct timed timed_of_job(const struct job *job, uint32_t group)
{
	struct timed all = { 0, 0 };

	for (size_t i = 0; i < job->comm_count; i++)
		if (job->comms[i].group == group) {
			struct timed here = timed_of(job, &job->comms[i]);

			all.calls += here.calls;
			all.timed += here.timed;
		}
	return all;
}

double slow_sampled(const struct job *job, uint32_t comm)
{
	struct timed timed = timed_of(job, &job->comms[comm]);

	return timed.timed > 0 && timed.timed < timed.calls
		       ? (double)timed.calls / (double)timed.timed
		       : 1;
}

static void advise_kernels(struct verdict *verdict)
{
	verdict_advice(verdict,
		       "Inside a node only kernel events give durations. They are off by "
		       "default on most releases of NCCL; for a while, or for all of a run:");
	verdict_advice(verdict, "$ RINGSIDE_EVENTS=kernel ringside run -- COMMAND");
}

/* The network's side of an operation begins with its launch, so its durations do not show who came late to it. */
static void tell_late(struct slow_search *search, const struct job_group *group)
{
	const struct tally_row *total = &search->report->total;
	struct verdict *verdict = verdicts_add(search->verdicts, VERDICT_BLIND, VERDICT_NOTE);

	text_copy(verdict->job, sizeof(verdict->job), group->name);
	text_copy(verdict->rule, sizeof(verdict->rule), "speed");
	verdict->is_unjudged = true;
	verdict_title(verdict,
		      "not judged: which ranks are slow: %" PRIu64 " of %" PRIu64
		      " calls have times of the GPU",
		      total->by_source[OP_TIME_KERNEL_GPU], total->calls);
	verdict_evidence(verdict,
			 "%" PRIu64 " calls have times of the network, which begin with the "
			 "launch: they show slow links, not who comes late.",
			 total->by_source[OP_TIME_PROXY]);
	verdict_missing(verdict,
			"ranks and hosts that come late; links within nodes that are slow");
	advise_kernels(verdict);
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#not-judged");
}

/* Speed was judged by communicators over nodes; inside them nothing has a duration. */
static void tell_untimed(struct slow_search *search, const struct job *job)
{
	uint64_t calls = 0, comms = 0;
	struct verdict *verdict;

	for (size_t i = 0; i < job->comm_count; i++) {
		struct timed timed = timed_of(job, &job->comms[i]);

		if (job->comms[i].group != search->group || job->comms[i].seat_count < 2 ||
		    timed.timed > 0 ||
		    timed.calls < (uint64_t)job->comms[i].seat_count *
					  search->report->stragglers.least_meetings)
			continue;
		calls += timed.calls;
		comms++;
	}
	if (comms == 0)
		return;
	verdict = verdicts_add(search->verdicts, VERDICT_BLIND, VERDICT_NOTE);
	text_copy(verdict->job, sizeof(verdict->job), job->groups[search->group].name);
	text_copy(verdict->rule, sizeof(verdict->rule), "speed");
	verdict->is_unjudged = true;
	verdict_title(verdict,
		      "not judged: who is slow on %" PRIu64 " %s: 0 of %" PRIu64
		      " calls there are timed",
		      comms, text_which(comms, "communicator", "communicators"), calls);
	verdict_missing(verdict, "ranks and links that are slow there");
	advise_kernels(verdict);
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#not-judged");
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
	struct timed timed;

	if (report->stragglers.jobs == NULL)
		return;
	judged = &report->stragglers.jobs[search->group];
	if (judged->is_judged && !is_told_otherwise(search, group->name) &&
	    has_company(&report->job, search->group)) {
		if (report->total.by_source[OP_TIME_KERNEL_GPU] * 2 < report->total.timed)
			tell_late(search, group);
		else
			tell_untimed(search, &report->job);
	}
	if (judged->is_judged || is_told_otherwise(search, group->name) ||
	    !has_company(&report->job, search->group))
		return;
	verdict = verdicts_add(search->verdicts, VERDICT_BLIND, VERDICT_NOTE);
	text_copy(verdict->job, sizeof(verdict->job), group->name);
	text_copy(verdict->rule, sizeof(verdict->rule), "speed");
	verdict->is_unjudged = true;
	timed = timed_of_job(&report->job, search->group);
	if (timed.timed == 0 && timed.calls > 0)
		verdict_title(verdict, "speed was not judged: 0 of %" PRIu64 " calls are timed",
			      timed.calls);
	else if (judged->meetings == 0)
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
	if (timed.timed > 0 && timed.timed < timed.calls)
		verdict_evidence(verdict, "%" PRIu64 " of %" PRIu64 " calls are timed.",
				 timed.timed, timed.calls);
	verdict_missing(verdict, "ranks, hosts and links that are slow");
	if (timed.timed == 0 && timed.calls > 0)
		advise_kernels(verdict);
	else
		verdict_advice(verdict,
			       "Look again when the job has run for longer, or at traces of it.");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#not-judged");
}
