/*
 * Who is named stands first and explains what follows from it; then the job's own past, then what others give
 * to compare with. What one comparison has told, the next ones do not tell again.
 */
#include "doctor/slow.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/text.h"
#include "doctor/slow_find.h"

enum { ITERATIONS_LEAST = 10 };
static const double more_waiting = 0.1; /* of the time in collectives */

typedef void slow_compare(struct slow_cells *cells, const struct timeline_report *report,
			  const struct slow_options *options, struct slow_rows *rows);

static struct verdict *tell_compared(struct slow_search *search, enum slow_against against,
				     const char *what)
{
	static const char *const with[] = { "the job's own past", "the baseline",
					    "what was measured", "the peak" };
	struct verdict *verdict = verdicts_add(search->verdicts, VERDICT_BLIND, VERDICT_NOTE);
	const struct job *job = &search->report->job;

	text_copy(verdict->job, sizeof(verdict->job), job->groups[search->group].name);
	text_copy(verdict->rule, sizeof(verdict->rule), slow_against_name(against));
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#slowness");
	verdict_title(verdict, "%s could be compared with %s", what, with[against]);
	return verdict;
}

/* Whoever asks for a comparison has to know when there was none. */
static void tell_nothing(struct slow_search *search, const struct slow_rows *rows)
{
	struct verdict *verdict = tell_compared(search, rows->against, "nothing");

	verdict->is_unjudged = true;
	verdict_evidence(
		verdict,
		"%zu kinds of transfers have no counterpart there: by kind of communicator, "
		"operation and size of message.",
		rows->unmatched);
	verdict_evidence(verdict, "At least five iterations (or 20 calls) are needed of each, with "
				  "times of the GPU, on all ranks of a communicator.");
	verdict_advice(verdict, "Compare with a run of the same job, and record all ranks in mode "
				"trace.");
}

static void tell_left_out(struct slow_search *search, const struct slow_rows *rows)
{
	size_t changes = rows->against == SLOW_PAST ? search->report->windows.changes_left_out : 0;
	struct verdict *verdict;

	if (changes == 0 && rows->left_out == 0)
		return;
	verdict = tell_compared(search, rows->against, "not everything");
	verdict->is_unjudged = true;
	if (changes > 0)
		verdict_evidence(
			verdict,
			"%zu %s of a transfer's speed %s left out: the %d that cost most are kept.",
			changes, text_which(changes, "change", "changes"),
			text_which(changes, "was", "were"), WINDOWS_CHANGES_MAX);
	if (rows->left_out > 0)
		verdict_evidence(
			verdict,
			"%zu times a communicator's transfers of one kind found no room: %d kinds "
			"are compared at most, by kind of communicator, operation, size of "
			"message, algorithm and protocol.",
			rows->left_out, SLOW_ROWS_MAX);
	verdict_missing(verdict, "slowness of those that were left out");
	verdict_advice(verdict, "`ringside report --since --until` looks at a part of the time.");
}

/* Ranks that call different things wait for data that does not come, or move other amounts of it than they say:
 * from then on durations say nothing about links. NULL: their calls agree. */
static const struct verdict *find_mismatch(const struct slow_search *search)
{
	const char *job = search->report->job.groups[search->group].name;

	for (size_t i = 0; i < search->verdicts->count; i++)
		if (search->verdicts->list[i].class == VERDICT_MISMATCH &&
		    strcmp(search->verdicts->list[i].job, job) == 0)
			return &search->verdicts->list[i];
	return NULL;
}

static void tell_mismatch(struct slow_search *search, const struct verdict *mismatch)
{
	uint64_t number = mismatch->number;
	char comm[sizeof(mismatch->comm)];
	struct verdict *verdict;

	text_copy(comm, sizeof(comm), mismatch->comm);
	verdict = tell_compared(search, SLOW_PAST, "nothing");
	verdict_title(verdict, "not judged: whether transfers became slower");
	verdict->is_unjudged = true;
	verdict_evidence(verdict,
			 "Ranks called different things from collective %" PRIu64
			 " of %.100s on: their durations say nothing about links.",
			 number, comm);
}

static void compare(struct slow_search *search, struct slow_cells *cells, enum slow_against against,
		    slow_compare *how)
{
	const struct verdict *mismatch = find_mismatch(search);
	struct slow_rows rows;

	if (search->status != OK)
		return;
	if (mismatch != NULL && against == SLOW_PAST) {
		tell_mismatch(search, mismatch);
		return;
	}
	search->status = slow_rows_init(&rows, against);
	if (search->status != OK)
		return;
	if (how == NULL) {
		slow_rows_switched(&rows, search->report, cells, search->group, search->threshold);
		slow_rows_past(&rows, search->report, cells, search->group, search->threshold);
	} else {
		how(cells, search->report, search->options, &rows);
		slow_rows_collect(&rows, search->report, cells, search->group);
	}
	slow_classify(search, &rows, cells);
	if (against != SLOW_PAST && rows.count == 0)
		tell_nothing(search, &rows);
	tell_left_out(search, &rows);
	if (against == SLOW_BASELINE)
		slow_iterations(search, &rows);
	slow_rows_release(&rows);
}

/* ---- iterations ------------------------------------------------------------------------------- */

static bool is_named(const struct slow_search *search)
{
	for (size_t i = search->first; i < search->verdicts->count; i++)
		if (search->verdicts->list[i].severity >= VERDICT_WARNING)
			return true;
	return false;
}

/* Somebody is late, and who cannot be told. */
static void tell_waiting(struct verdict *verdict, const struct stragglers *stragglers)
{
	verdict_advice(verdict,
		       "Somebody comes late: compare the ranks' time in communication, who "
		       "waits least is waited for.");
	if (!stragglers->has_enough)
		verdict_missing(verdict,
				"For whom cannot be said: %llu collectives of a communicator were "
				"compared, %u are needed. Record for longer.",
				(unsigned long long)stragglers->meetings,
				stragglers->least_meetings);
	else
		verdict_missing(verdict, "For whom cannot be said: it is not the same one again "
					 "and again in the collectives that were compared.");
}

static void tell_elsewhere(struct slow_search *search, double ratio, const char *figures)
{
	struct verdict *verdict = slow_verdict(search, VERDICT_BELOW_EXPECTED, SLOW_BASELINE);
	const struct timeline_report *report = search->report;
	double share = report->total.joined_ns > 0
			       ? (double)report->total.wait_ns / (double)report->total.joined_ns
			       : 0;
	double before = search->options->baseline->wait_share;
	bool is_waiting = share > before + more_waiting;

	verdict_title(verdict, "iterations take %.0f %% longer than in the baseline, and %s",
		      100 * (ratio - 1),
		      is_waiting ? "ranks wait for each other" : "communication is not the reason");
	verdict_evidence(verdict, "%s", figures);
	verdict_evidence(
		verdict,
		"Transfers are as fast as in the baseline, and no rank stands out; %.0f %% "
		"of the time in collectives is waiting, %.0f %% in the baseline.",
		100 * share, 100 * before);
	verdict->confidence = is_waiting ? 0.7 : 0.9;
	if (is_waiting)
		tell_waiting(verdict, &report->stragglers);
	else
		verdict_advice(verdict,
			       "All ranks compute, or wait for data, longer than in that run: "
			       "compare the model's settings, data loading, GPU clocks.");
	verdict->percent = 100 * (ratio - 1);
	verdict->victims = (uint32_t)report->job.rank_count;
	slow_fill_cost(search, verdict, report->gpu_hours * 3600e9 * (1 - 1 / ratio));
	slow_fill_span(verdict, report, &(struct slow_span){ 0 });
	slow_fill_missing(search, verdict);
}

void slow_iterations(struct slow_search *search, const struct slow_rows *rows)
{
	const struct baseline *then = search->options->baseline;
	const struct iterations *now = &search->report->iterations;
	size_t slow = 0;
	char figures[200];
	double ratio;

	for (size_t i = 0; i < rows->count; i++)
		slow += rows->list[i].is_slow;
	if (!now->is_found || search->report->job.ranks[now->rank].group != search->group ||
	    now->regular < ITERATIONS_LEAST || then->iterations < ITERATIONS_LEAST ||
	    then->iteration_ops != now->period_ops || then->iteration_ns <= 0 ||
	    then->ranks != search->report->job.rank_count)
		return;
	ratio = (double)now->median_ns / then->iteration_ns;
	text_format(
		figures, sizeof(figures),
		"An iteration takes %s, in the baseline %s: %.1f %% %s (medians of %zu and %llu).",
		units_of_ns((double)now->median_ns).text, units_of_ns(then->iteration_ns).text,
		100 * fabs(ratio - 1), ratio >= 1 ? "longer" : "less", now->regular,
		(unsigned long long)then->iterations);
	if (is_named(search))
		verdict_evidence(&search->verdicts->list[search->first], "%s%s", figures,
				 ratio < 1.02 ? " So far the loss hides behind computing." : "");
	else if (ratio > 1 + search->threshold && slow == 0)
		tell_elsewhere(search, ratio, figures);
}

/* ------------------------------------------------------------------------------------------------ */

static void look_at_job(struct slow_search *search, struct slow_cells *cells)
{
	const struct slow_options *options = search->options;

	search->first = search->verdicts->count;
	search->told_count = 0;
	slow_stragglers(search);
	compare(search, cells, SLOW_PAST, NULL);
	if (options->baseline != NULL)
		compare(search, cells, SLOW_BASELINE, slow_compare_baseline);
	if (options->expected != NULL)
		compare(search, cells, SLOW_EXPECTED, slow_compare_expected);
	if (options->peak_nvlink > 0 || options->peak_network > 0)
		compare(search, cells, SLOW_PEAK, slow_compare_peak);
	slow_unjudged(search);
}

enum status slow_find(struct verdicts *verdicts, const struct timeline_report *report,
		      const struct slow_options *options)
{
	struct slow_search search = { .verdicts = verdicts,
				      .report = report,
				      .options = options,
				      .threshold =
					      options->threshold > 0 ? options->threshold : 0.05 };
	struct slow_cells cells;

	search.status = slow_cells_make(&cells, report);
	if (search.status != OK)
		return search.status;
	for (; search.group < report->job.group_count && search.status == OK; search.group++)
		look_at_job(&search, &cells);
	slow_cells_release(&cells);
	return search.status;
}
