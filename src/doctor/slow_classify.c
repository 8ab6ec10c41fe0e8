/* One verdict for all kinds of transfers that one comparison found slow, or more evidence for an earlier one. */
#include <string.h>

#include "common/text.h"
#include "doctor/slow_common.h"

/* Shorter changes come and go in any network. */
#define BRIEF_NS UINT64_C(5000000000)

static bool is_brief(const struct timeline_report *report, uint64_t for_ns)
{
	return for_ns < BRIEF_NS && for_ns < (report->end_ns - report->start_ns) / 5;
}

static bool is_past(const struct timeline_report *report, const struct slow_span *span)
{
	uint64_t length_ns = report->end_ns - report->start_ns;

	return span->until_ns != 0 && span->until_ns + length_ns / 20 < report->end_ns;
}

static void fill(struct slow_search *search, struct verdict *verdict,
		 const struct slow_common *common)
{
	const struct job *job = &search->report->job;
	const struct slow_row *worst = common->worst;

	if (verdict->class == VERDICT_SLOW_COMM || common->is_one_comm)
		slow_fill_comm(verdict, job, worst->comm, UINT32_MAX);
	if (verdict->class == VERDICT_SLOW_COMM && !common->is_one_comm)
		text_copy(verdict->comm, sizeof(verdict->comm), job->comms[worst->comm].name);
	if (common->slow == 1 || verdict->class == VERDICT_SLOW_SIZE)
		text_copy(verdict->function, sizeof(verdict->function),
			  job_name(job, OP_NAMES_FUNCTION, worst->function));
	if (verdict->class == VERDICT_SLOW_NVLINK && common->host != UINT32_MAX)
		text_copy(verdict->host, sizeof(verdict->host), job->hosts[common->host].name);
	slow_fill_span(verdict, search->report, &worst->span);
	slow_fill_cost(search, verdict, common->lost_ns);
	verdict->confidence = common->confidence;
	verdict->percent = common->percent;
	verdict->victims = common->ranks;
	/* It is over, or has only begun: what it cost stays, and nobody has to be woken up. */
	if (common->is_all_over ||
	    (common->rows->against == SLOW_PAST && is_brief(search->report, verdict->for_ns)))
		verdict->severity = VERDICT_NOTE;
}

/* An earlier comparison named the same cause. */
static struct verdict *same_cause(struct slow_search *search, const struct slow_common *common,
				  enum verdict_class class)
{
	const struct job *job = &search->report->job;
	const char *host = class == VERDICT_SLOW_NVLINK && common->host != UINT32_MAX
				   ? job->hosts[common->host].name
				   : "";

	for (size_t i = search->first; i < search->verdicts->count; i++) {
		struct verdict *verdict = &search->verdicts->list[i];

		if (verdict->class == class && verdict->severity >= VERDICT_WARNING &&
		    strcmp(verdict->host, host) == 0 && class != VERDICT_SLOW_COMM &&
		    class != VERDICT_BELOW_EXPECTED)
			return verdict;
	}
	return NULL;
}

static void remember(struct slow_search *search, const struct slow_common *common, size_t verdict)
{
	for (size_t i = 0; i < common->rows->count && !common->is_all_over; i++) {
		const struct slow_row *row = &common->rows->list[i];

		if (common->is_taken[i] && search->told_count < SLOW_ROWS_MAX)
			search->told[search->told_count++] =
				(struct slow_told){ row->kind, row->function, row->size_class,
						    verdict };
	}
}

/*
 * The network's side of an operation begins with its launch: where durations are the network's, waiting for a rank
 * that comes late is in all of them. Then only what is longer on the wire itself is the network's doing, and whatever
 * else became slower may be a late rank.
 */
static bool may_be_waiting(const struct slow_search *search, const struct slow_common *common,
			   enum verdict_class class)
{
	const struct timeline_report *report = search->report;

	if (report->total.by_source[OP_TIME_KERNEL_GPU] * 2 >= report->total.timed ||
	    common->rows->against > SLOW_BASELINE)
		return false;
	return class != VERDICT_SLOW_NETWORK ||
	       common->wire.after_ns <
		       common->wire.before_ns * (1 + (common->worst->ratio - 1) / 2);
}

static void tell_unjudged(struct slow_search *search, const struct slow_common *common)
{
	struct verdict *verdict = verdicts_add(search->verdicts, VERDICT_BLIND, VERDICT_NOTE);
	const struct job *job = &search->report->job;

	remember(search, common, search->verdicts->count - 1);
	text_copy(verdict->job, sizeof(verdict->job), job->groups[search->group].name);
	text_copy(verdict->rule, sizeof(verdict->rule), slow_against_name(common->rows->against));
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#not-judged");
	verdict->is_unjudged = true;
	verdict_title(verdict,
		      "not judged: transfers over nodes take longer than %s, and why is not "
		      "visible",
		      slow_than(common->rows->against));
	slow_common_rows(search, verdict, common);
	verdict_missing(verdict,
			"Most durations are the network's, not the GPU's: a rank that comes "
			"late, a slow NVLink and a slow link look the same in them.");
	verdict_advice(verdict, "With kernel events it can be told:");
	verdict_advice(verdict, "$ RINGSIDE_EVENTS=kernel ringside run -- COMMAND");
}

static void tell(struct slow_search *search, const struct slow_common *common)
{
	enum verdict_class class = slow_common_class(common);
	struct verdict *verdict = same_cause(search, common, class);

	if (verdict == NULL && may_be_waiting(search, common, class)) {
		tell_unjudged(search, common);
		return;
	}
	if (verdict != NULL) {
		verdict_evidence(verdict, "The same is seen against what was %s:",
				 slow_than(common->rows->against));
		slow_common_rows(search, verdict, common);
		remember(search, common, (size_t)(verdict - search->verdicts->list));
		return;
	}
	verdict = slow_verdict(search, class, common->rows->against);
	remember(search, common, search->verdicts->count - 1);
	fill(search, verdict, common);
	slow_common_title(verdict, common, &search->report->job);
	slow_common_rows(search, verdict, common);
	slow_common_tell_wire(verdict, common);
	slow_common_advise(verdict, common);
	slow_common_missing(verdict, common);
	slow_fill_missing(search, verdict);
}

void slow_classify(struct slow_search *search, const struct slow_rows *rows,
		   const struct slow_cells *cells)
{
	bool is_taken[SLOW_ROWS_MAX] = { false };
	struct slow_common common;

	for (size_t i = 0; i < rows->count; i++)
		is_taken[i] = rows->list[i].is_slow &&
			      !slow_is_explained(search, &rows->list[i], rows->against);
	common = slow_common_find(rows, is_taken);
	common.cells = cells;
	if (common.slow == 0)
		return;
	common.is_all_over |= is_past(search->report, &common.worst->span);
	slow_common_wire(search, &common);
	tell(search, &common);
}
