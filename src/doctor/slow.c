/*
 * Named ranks come first and explain what follows from them; then the job's own past, then other
 * references. What one comparison has reported is not reported again by the next.
 */
#include "doctor/doctor.h"
#include "doctor/slow_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/op.h"
#include "common/text.h"

/* What slow operation types have in common, and which class follows from it. */

struct slow_common {
	const struct slow_rows *rows;
	const struct slow_cells *cells;
	const bool *is_taken; /* slow rows without another explanation */
	const struct slow_row *worst;
	size_t slow;
	bool is_one_size, is_one_choice, is_one_comm, is_one_name, is_switched, is_all_over;
	bool has_net, has_nvlink, has_other;
	uint8_t least_class, most_class;
	double lost_ns, switched_ns, confidence, percent;
	uint32_t ranks;
	uint32_t host; /* of all slow ones within nodes; UINT32_MAX several */
	struct slow_wire wire;
};

struct slow_text slow_when(const struct timeline_report *report, const struct slow_span *span)
{
	uint64_t cut_from_ns, cut_until_ns, from_ns = span->from_ns;
	struct slow_text to = { "always" };
	struct units_text from = timeline_time(report, from_ns, "");
	struct units_text until = timeline_time(report, span->until_ns, "");

	/* It is known from there on. */
	if (recording_past_gap(report->recording, from_ns, &cut_from_ns, &cut_until_ns))
		units_clock(from.text, cut_until_ns);
	if (span->from_ns > 0 && span->until_ns > 0 && span->share > 0 && span->share < 0.95)
		text_format(to.text, sizeof(to.text),
			    "in bursts between %s and %s (%.0f%% of the time)", from.text,
			    until.text, 100 * span->share);
	else if (span->from_ns > 0 && span->until_ns > 0)
		text_format(to.text, sizeof(to.text), "between %s and %s", from.text, until.text);
	else if (span->from_ns > 0)
		text_format(to.text, sizeof(to.text), "since %s", from.text);
	else if (span->until_ns > 0)
		text_format(to.text, sizeof(to.text), "until %s", until.text);
	return to;
}

/* as in verdict.rule */
static const char *slow_against_name(enum slow_against against)
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

struct slow_text slow_speeds(const struct slow_row *row)
{
	struct slow_text speeds;

	if (row->is_wire)
		text_format(speeds.text, sizeof(speeds.text),
			    "transfers are on the wire for %s instead of %s",
			    units_of_ns(1e9 / row->after).text,
			    units_of_ns(1e9 / row->before).text);
	else
		text_format(speeds.text, sizeof(speeds.text), "%.2f GB/s busbw instead of %.2f",
			    row->after / 1e9, row->before / 1e9);
	return speeds;
}

/* ---- common parts of verdicts ---------------------------------------------------------------- */

struct verdict *slow_verdict(struct slow_search *search, enum verdict_class class,
			     enum slow_against against)
{
	struct verdict *verdict = verdicts_add(search->verdicts, class, VERDICT_WARNING);
	const struct job *job = &search->report->job;

	text_copy(verdict->job, sizeof(verdict->job), job->groups[search->group].name);
	text_copy(verdict->rule, sizeof(verdict->rule), slow_against_name(against));
	verdict_set_page(verdict);
	return verdict;
}

/* A note that something could not be judged; `rule` says what. */
static struct verdict *add_unjudged(struct slow_search *search, const char *rule, const char *page)
{
	struct verdict *verdict = verdicts_add(search->verdicts, VERDICT_BLIND, VERDICT_NOTE);

	text_copy(verdict->job, sizeof(verdict->job),
		  search->report->job.groups[search->group].name);
	text_copy(verdict->rule, sizeof(verdict->rule), rule);
	text_copy(verdict->page, sizeof(verdict->page), page);
	verdict->is_unjudged = true;
	return verdict;
}

void slow_fill_rank(struct verdict *verdict, const struct job *job, uint32_t rank)
{
	verdict_set_rank(verdict, job, rank);
	text_copy(verdict->job, sizeof(verdict->job), job->groups[job->ranks[rank].group].name);
}

void slow_fill_comm(struct verdict *verdict, const struct job *job, uint32_t comm, uint32_t rank)
{
	const struct job_comm *of = &job->comms[comm];
	uint32_t place = job_place_in(job, comm, rank);

	text_copy(verdict->comm, sizeof(verdict->comm), of->label);
	text_copy(verdict->job, sizeof(verdict->job), job->groups[of->group].name);
	verdict->comm_hash = of->hash;
	if (place != UINT32_MAX)
		verdict->comm_rank = job->seats[of->seats[place]].comm_rank;
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

/*
 * What slowness costs the job. Transfers may overlap with compute, and waiting of others includes what they would
 * have waited anyway, so the time lost in operations is an upper bound. What was really lost shows in the
 * iterations: those while it lasts, compared with those before or after, or with those of a baseline.
 */

enum { ITERATIONS_LEAST = 10, SIDE_LEAST = 5, SIDE_MOST = 4096 };
static const double cost_of_note = 0.02, cost_of_few = 0.1, times_of_bound = 3;
/* Half of what a stated cost may be off: points of the job's time, or share of the cost; beyond that, a range is stated. */
static const double error_of_cost = 0.01, error_of_share = 0.075;
static const double deviation_of_distance = 1.4826, error_of_median = 1.2533;
/* Where nothing shows a cost: time on the wire alone varies by less. */
static const double percent_of_wire = 25;
/* Of what is over, of the whole recording. */
static const double cost_of_past = 0.005;

/* What takes only a small part of the time is a repetition inside of iterations. */
bool slow_sees_iterations(const struct timeline_report *report)
{
	const struct iterations *now = &report->iterations;
	double all_ns = (double)(report->end_ns - report->start_ns);

	return now->is_found && (double)now->median_ns * (double)now->count * 2 >= all_ns;
}

bool slow_has_iterations(const struct slow_search *search)
{
	const struct timeline_report *report = search->report;

	return slow_sees_iterations(report) &&
	       report->job.ranks[report->iterations.rank].group == search->group;
}

/* An iteration of the job; of bursts the mean, because some iterations are not affected. */
static struct slow_estimate typical_iteration(const struct iterations *iterations, uint64_t from_ns,
					      uint64_t until_ns, bool is_mean)
{
	struct slow_estimate typical = { NAN, 0 };
	double values[SIDE_MOST];
	struct stats_sample all;
	size_t count = 0;

	for (size_t i = 0; i < iterations->count && count < SIDE_MOST; i++) {
		const struct iteration *one = &iterations->list[i];

		if (!one->is_odd && one->start_ns >= from_ns && one->end_ns <= until_ns)
			values[count++] = (double)(one->end_ns - one->start_ns);
	}
	if (count < SIDE_LEAST)
		return typical;
	all = stats_series(values, count);
	typical = (struct slow_estimate){ all.mean, all.error };
	if (is_mean || all.deviation <= 0)
		return typical;
	typical.value = stats_median(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - typical.value);
	/* Of a median, from the median distance; neighbours are as similar as above. */
	typical.error *=
		fmin(1, deviation_of_distance * stats_median(values, count) / all.deviation) *
		error_of_median;
	return typical;
}

/* By iterations. They are called ahead of the GPU, so those close to a border are left out. */
static struct slow_estimate measured_cost(const struct slow_search *search,
					  const struct slow_span *span)
{
	const struct iterations *iterations = &search->report->iterations;
	bool is_mean = span->share > 0 && span->share < 0.95;
	uint64_t margin_ns = 2 * iterations->median_ns;
	struct slow_estimate cost = { NAN, 0 }, before = cost, after = cost, during;

	if (!slow_has_iterations(search) || (span->from_ns == 0 && span->until_ns == 0))
		return cost;
	if (span->from_ns > margin_ns)
		before = typical_iteration(iterations, 0, span->from_ns - margin_ns, is_mean);
	if (span->until_ns > 0)
		after = typical_iteration(iterations, span->until_ns + margin_ns, UINT64_MAX,
					  is_mean);
	during = typical_iteration(iterations, span->from_ns + (span->from_ns ? margin_ns : 0),
				   span->until_ns ? span->until_ns - margin_ns : UINT64_MAX,
				   is_mean);
	if (isnan(before.value) || after.value < before.value)
		before = after;
	if (isnan(during.value) || isnan(before.value))
		return cost;
	cost.value = 1 - before.value / during.value;
	cost.error =
		(1 - cost.value) * hypot(before.error / before.value, during.error / during.value);
	return cost;
}

static bool is_like_baseline(const struct slow_search *search)
{
	const struct baseline *then = search->options->baseline;
	const struct iterations *now = &search->report->iterations;

	return then != NULL && slow_has_iterations(search) && now->regular >= ITERATIONS_LEAST &&
	       then->iterations >= ITERATIONS_LEAST && then->iteration_ops == now->period_ops &&
	       then->iteration_ns > 0 && then->ranks == search->report->job.known_ranks;
}

enum { FEW = 3 };

static bool has_few_hosts(const struct job *job, uint32_t group)
{
	uint32_t hosts[FEW], count = 0;

	for (size_t r = 0; r < job->rank_count; r++) {
		uint32_t i = 0;

		if (job->ranks[r].group != group)
			continue;
		while (i < count && hosts[i] != job->ranks[r].host)
			i++;
		if (i == FEW)
			return false;
		hosts[i] = job->ranks[r].host;
		count += i == count;
	}
	return true;
}

/* From beginning to end, one of two or three ranks or hosts is always the slowest: GPUs differ. In collectives that
 * overlap with compute the same lateness is counted several times. */
static double least_bound(const struct slow_search *search, const struct verdict *verdict)
{
	const struct job *job = &search->report->job;
	bool is_one_of_few =
		(verdict->class == VERDICT_SLOW_RANK &&
		 job->groups[search->group].known_ranks <= FEW) ||
		(verdict->class == VERDICT_SLOW_HOST && has_few_hosts(job, search->group));

	return is_one_of_few ? cost_of_few : cost_of_note;
}

/*
 * What it can cost at most: the time lost in operations, of the time of those who lost it. Everybody else may have
 * waited for them. Of a straggler the others' waiting is known.
 */
static double bound_of_cost(const struct slow_search *search, const struct verdict *verdict)
{
	bool is_late = verdict->class == VERDICT_SLOW_RANK || verdict->class == VERDICT_SLOW_HOST;
	uint32_t all = search->report->job.groups[search->group].known_ranks;
	uint32_t ranks = !is_late && verdict->victims + 1 < all ? verdict->victims + 1 : all;
	double all_ns = (double)verdict->for_ns * ranks;

	return all_ns > 0 ? fmin(1, verdict->gpu_hours * 3600e9 / all_ns) : 0;
}

static bool is_past(const struct timeline_report *report, const struct slow_span *span)
{
	uint64_t length_ns = report->end_ns - report->start_ns;

	return span->until_ns != 0 && span->until_ns + length_ns / 20 < report->end_ns;
}

/* Of what is over counts what the job lost altogether, too. */
static bool is_past_minor(const struct slow_search *search, const struct verdict *verdict,
			  const struct slow_span *span, double cost)
{
	const struct timeline_report *report = search->report;
	double all_ns = (double)(report->end_ns - report->start_ns);

	return is_past(report, span) && cost * (double)verdict->for_ns < cost_of_past * all_ns;
}

/* Seconds in which somebody was slow happen in any job; that they cost something shows in iterations only. */
static bool is_passing(const struct verdict *verdict, const struct slow_span *span)
{
	return verdict->is_cost_bound && verdict->cost_least_percent <= 0 && span->from_ns > 0 &&
	       span->until_ns > 0 && verdict->for_ns < SLOW_BRIEF_NS;
}

/* Another verdict has the iterations of that time as its cost: they show what both cost together. */
static bool has_shared_cost(const struct slow_search *search, const struct verdict *verdict)
{
	for (size_t i = search->first; i < search->verdicts->count; i++) {
		const struct verdict *other = &search->verdicts->list[i];

		if (other != verdict && other->cost_percent > 0 && !other->is_cost_bound &&
		    other->since_wall_ns < verdict->since_wall_ns + verdict->for_ns &&
		    verdict->since_wall_ns < other->since_wall_ns + other->for_ns)
			return true;
	}
	return false;
}

/* Against the baseline's iterations, whose spread is not known: it is taken to be the same. */
static struct slow_estimate cost_by_baseline(const struct slow_search *search)
{
	const struct iterations *now = &search->report->iterations;
	struct slow_estimate cost = { NAN, 0 }, typical;

	if (!is_like_baseline(search))
		return cost;
	typical = typical_iteration(now, 0, UINT64_MAX, false);
	cost.value = 1 - search->options->baseline->iteration_ns / (double)now->median_ns;
	cost.error = (1 - cost.value) * M_SQRT2 * typical.error / typical.value;
	return cost;
}

static void say_cost(struct verdict *verdict)
{
	size_t used = strlen(verdict->title), size = sizeof(verdict->title) - used;
	char *end = verdict->title + used;

	if (verdict->cost_percent < 1)
		text_format(end, size, " (costs less than 1%% of the job's time)");
	else if (verdict->cost_least_percent >= 1)
		text_format(end, size, " (costs %.0f to %.0f%% of the job's time)",
			    verdict->cost_least_percent, verdict->cost_percent);
	else
		text_format(end, size, " (costs %s%.0f%% of the job's time)",
			    verdict_cost_word(verdict), verdict->cost_percent);
}

/* What it costs, with its range if that is wide; what the severity rests on. */
static double fill_cost_share(struct slow_search *search, struct verdict *verdict,
			      const struct slow_span *span, struct slow_estimate cost, double bound)
{
	uint32_t ranks = search->report->job.groups[search->group].known_ranks;
	double error = 2 * cost.error, least = cost.value - error, most = cost.value + error;
	bool is_measured = !isnan(cost.value);
	bool is_range = is_measured && cost.value <= times_of_bound * bound &&
			error > 2 * fmax(error_of_cost, error_of_share * cost.value);

	verdict->is_cost_bound = !is_measured || is_range || has_shared_cost(search, verdict);
	verdict->is_cost_least = !is_measured && span->is_least;
	/*
	 * Without a cost in operations it cannot have one; and other causes may lengthen iterations as well. But time
	 * is also lost where it is not seen: in operations that are not timed, and by what waits for these.
	 */
	if (is_range) {
		most = fmin(most, fmax(cost.value, bound));
		least = fmin(fmax(least, 0), most);
		verdict->cost_least_percent = 100 * least;
	} else {
		least = most = !is_measured || cost.value > times_of_bound * bound
				       ? bound
				       : fmax(cost.value, 0);
	}
	verdict->cost_percent = 100 * most;
	if (is_measured && (is_range || !verdict->is_cost_bound))
		slow_fill_cost(search, verdict, most * (double)verdict->for_ns * ranks);
	/* Enough for the severity, too little for a figure. */
	if (!is_measured && span->is_rough && !span->is_hidden) {
		verdict->cost_percent = verdict->gpu_hours = verdict->money = 0;
		verdict_missing(verdict, "What it costs is not known: no iterations could be "
					 "compared.");
	}
	return (least + most) / 2;
}

void slow_fill_severity(struct slow_search *search, struct verdict *verdict,
			const struct slow_span *span)
{
	/* What is hidden has not lengthened iterations yet. */
	struct slow_estimate measured = { NAN, 0 };

	if (!span->is_hidden)
		measured = measured_cost(search, span);
	if (!span->is_hidden && isnan(measured.value))
		measured = cost_by_baseline(search);
	slow_fill_measured(search, verdict, span, measured);
}

void slow_fill_measured(struct slow_search *search, struct verdict *verdict,
			const struct slow_span *span, struct slow_estimate measured)
{
	double bound = bound_of_cost(search, verdict), cost;
	bool is_unknown =
		verdict->class == VERDICT_SLOW_COMM && strcmp(verdict->rule, "others") == 0;

	/* The time lost where ranks are held up says nothing about the origin. */
	if ((is_unknown || span->is_unbound) && isnan(measured.value)) {
		if (is_unknown || verdict->percent < percent_of_wire)
			verdict->severity = VERDICT_NOTE;
		if (span->is_unbound)
			verdict_missing(verdict, "What it costs is not known: no iterations could "
						 "be compared, and no call was timed.");
		return;
	}
	if (is_unknown || span->is_unbound || (span->is_least && !isnan(measured.value)))
		bound = 1;
	if (bound <= 0) {
		verdict->is_cost_bound = isnan(measured.value) || has_shared_cost(search, verdict);
		return;
	}
	cost = fill_cost_share(search, verdict, span, measured, bound);
	if (cost < (verdict->is_cost_bound ? least_bound(search, verdict) : cost_of_note) ||
	    is_past_minor(search, verdict, span, cost) || is_passing(verdict, span))
		verdict->severity = VERDICT_NOTE;
	if (!span->is_hidden && (verdict->cost_percent > 0 || !span->is_rough))
		say_cost(verdict);
	if (span->is_hidden && cost >= 0.01)
		text_format(verdict->title + strlen(verdict->title),
			    sizeof(verdict->title) - strlen(verdict->title),
			    " (would cost at least %.0f%% of the job's time)", 100 * cost);
}

/* Processes that can be asked, here or on the node that they were copied from. */
static bool is_running(const struct recording_process *process)
{
	return process->life == RECORDING_ALIVE || process->is_snapshot;
}

bool slow_is_over(const struct slow_search *search, bool is_past)
{
	const struct job *job = &search->report->job;

	for (size_t r = 0; is_past && r < job->rank_count; r++) {
		const struct recording_process *process =
			job->recording->processes[job->ranks[r].process];

		if (job->ranks[r].group == search->group && is_running(process))
			return true;
	}
	return false;
}

/* Ranks of other jobs keep nobody waiting. */
static uint32_t ranks_unseen(const struct job *job, uint32_t group)
{
	uint32_t most = 0;

	for (size_t i = 0; i < job->comm_count; i++)
		if (job->comms[i].group == group)
			most = job->comms[i].missing > most ? job->comms[i].missing : most;
	return most;
}

/* Caveats from the amount of data, and their effect on the confidence. */
void slow_fill_missing(struct slow_search *search, struct verdict *verdict)
{
	const struct timeline_report *report = search->report;
	const struct timeline_completeness *found = &report->completeness;
	uint32_t unseen = ranks_unseen(&report->job, search->group);

	if (!found->keeps_all && report->recording->shown != NULL)
		verdict_missing(
			verdict,
			"Agents keep stretches of what flight mode has overwritten; this covers %s "
			"of the last %s.",
			units_of_ns((double)(report->end_ns - report->start_ns)).text,
			units_of_ns(
				(double)(report->end_ns -
					 recording_past_wall(report->recording, report->start_ns)))
				.text);
	else if (!found->keeps_all)
		verdict_missing(verdict,
				"Flight mode keeps only the most recent operations; this covers "
				"the last %s.",
				units_of_ns((double)(report->end_ns - report->start_ns)).text);
	if (found->keeps_all && !found->is_complete && found->share < 0.99) {
		verdict_missing(verdict,
				"Only %.0f%% of the operations NCCL reported were read; the rest "
				"is unknown.",
				100 * found->share);
		verdict->confidence *= 0.5 + found->share / 2;
	}
	if (unseen > 0) {
		verdict_missing(verdict, "%u %s not recorded; the straggler may be %s.", unseen,
				text_which(unseen, "rank of one communicator is",
					   "ranks of one communicator are"),
				text_which(unseen, "that one", "one of them"));
		verdict->confidence *= 0.8;
	}
	if (report->matches.stride > 1)
		verdict_missing(verdict,
				"Waiting was estimated from 1 in %u groups of collectives because "
				"there are so many.",
				report->matches.stride);
	if (tally_is_by_network(&report->total)) {
		verdict_missing(verdict, "Most calls have no GPU timestamps, so which "
					 "rank was late is less certain.");
		verdict->confidence *= 0.8;
	}
}

/*
 * What several slow operation types have in common is the cause. From narrow to wide:
 *
 *	another algorithm or protocol was chosen        slow_algorithm
 *	one communicator of several                     slow_communicator (within a node: slow_nvlink)
 *	one size, others of the same calls are fine     slow_size
 *	one algorithm or protocol, others are fine      slow_algorithm
 *	between nodes, everywhere, not within nodes     slow_network
 *	within nodes                                    slow_nvlink, with the host if it is one
 *	anything else                                   below_expected
 *
 * A row that is not slow is evidence against a wide cause only if it would be affected: small messages do
 * not get slower with less bandwidth, so those much smaller than the slow ones prove nothing.
 */

enum {
	BIG = 2 + 18 /* 256 KiB */,
	SMALL = 2 + 10 /* 1 KiB */,
	ALIKE_CLASSES = 2,
	SENDERS_LEAST = 4
};
static const double ratio_that_empties = 1.25, fewer_channels = 0.9, bound_of_fine = 1.1;
/* What looks the same as similar causes is at most this certain. */
static const double sure_of_place = 0.9, sure_of_receiver = 0.5;
/* Of two or three senders, one is not a minority. */
static const double sure_of_few = 0.8;

static void add_common(struct slow_common *common, const struct job *job,
		       const struct slow_row *row)
{
	const struct slow_row *worst = common->worst;
	bool is_first_within = !common->has_nvlink && !common->has_other;

	if (worst == NULL) {
		common->is_one_size = common->is_one_choice = common->is_one_comm = true;
		common->is_one_name = common->is_all_over = true;
		common->least_class = common->most_class = row->size_class;
		common->host = UINT32_MAX;
		worst = row;
	}
	common->slow++;
	common->is_one_size &= row->size_class == worst->size_class;
	common->is_one_choice &=
		row->algorithm == worst->algorithm && row->protocol == worst->protocol;
	common->is_one_comm &= row->comms_slow == 1 && row->comm == worst->comm;
	common->is_one_name &= row->is_one_name &&
			       slow_is_same_name(&job->comms[row->comm], &job->comms[worst->comm]);
	common->is_all_over &= row->is_over;
	common->has_net |= slow_row_is_net(row);
	common->has_nvlink |= row->kind == JOB_COMM_NVLINK;
	common->has_other |= !slow_row_is_net(row) && row->kind != JOB_COMM_NVLINK;
	if (row->size_class < common->least_class)
		common->least_class = row->size_class;
	if (row->size_class > common->most_class)
		common->most_class = row->size_class;
	common->lost_ns += row->lost_ns;
	common->switched_ns += row->was[0] != '\0' ? row->lost_ns : 0;
	common->percent += 100 * (row->ratio - 1) * row->lost_ns;
	common->ranks = row->ranks > common->ranks ? row->ranks : common->ranks;
	if (!slow_row_is_net(row))
		common->host =
			is_first_within || common->host == row->host ? row->host : UINT32_MAX;
	if (row->confidence > common->confidence)
		common->confidence = row->confidence;
	if (common->worst == NULL || row->lost_ns > worst->lost_ns)
		common->worst = row;
}

/* rows and is_taken are borrowed while it is used. cells are set by the caller. */
static struct slow_common slow_common_find(const struct slow_rows *rows, const struct job *job,
					   const bool *is_taken)
{
	struct slow_common common = { .rows = rows, .is_taken = is_taken };

	for (size_t i = 0; i < rows->count; i++)
		if (is_taken[i])
			add_common(&common, job, &rows->list[i]);
	common.is_switched = common.switched_ns > 0 && common.switched_ns >= 0.8 * common.lost_ns;
	common.percent = common.lost_ns > 0	? common.percent / common.lost_ns
			 : common.worst != NULL ? 100 * (common.worst->ratio - 1)
						: 0;
	return common;
}

/* ---- rows that are not slow ------------------------------------------------------------------ */

/* It moves nearly as much as the slow ones, so it would be slow for the same reason. */
static bool would_show(const struct slow_common *common, const struct slow_row *row)
{
	/* 0: unknown, as before 2.27. */
	if (common->most_class > 0 && row->size_class > common->most_class)
		return true;
	return row->size_class >= BIG && row->size_class + ALIKE_CLASSES >= common->least_class;
}

enum contrast {
	OTHER_COMM,
	OTHER_SIZE,
	LARGER,
	OTHER_CHOICE,
	SAME_CHOICE,
	NVLINK_FINE,
	NETWORK_FINE,
};

/* Does the communicator that lost most do this, too? Otherwise it is no contrast. */
static bool is_on_worst(const struct slow_common *common, const struct slow_row *row)
{
	return slow_cells_find(common->cells, common->worst->comm, row->function,
			       row->size_class) != NULL;
}

static bool is_contrast(const struct slow_common *common, const struct slow_row *row,
			enum contrast contrast)
{
	const struct slow_row *worst = common->worst;
	bool is_same_choice =
		row->algorithm == worst->algorithm && row->protocol == worst->protocol;

	switch (contrast) {
	case OTHER_COMM:
		return row->kind == worst->kind && (row->comms > 1 || row->comm != worst->comm);
	case OTHER_SIZE:
		return row->kind == worst->kind && row->function == worst->function &&
		       is_same_choice && row->size_class != worst->size_class &&
		       is_on_worst(common, row);
	case LARGER:
		return row->kind == worst->kind && row->function == worst->function &&
		       row->size_class > common->most_class && is_on_worst(common, row);
	case OTHER_CHOICE:
		return row->kind == worst->kind && !is_same_choice && is_on_worst(common, row);
	case SAME_CHOICE:
		return row->kind == worst->kind && is_same_choice;
	case NVLINK_FINE:
		return row->kind == JOB_COMM_NVLINK;
	case NETWORK_FINE:
		return slow_row_is_net(row);
	}
	return false;
}

/* Is there a row of this kind that is as fast as it should be? */
static bool has_fine(const struct slow_common *common, enum contrast contrast)
{
	for (size_t i = 0; i < common->rows->count; i++) {
		const struct slow_row *row = &common->rows->list[i];
		/* A slow row may contain communicators that are fine. */
		bool is_fine =
			!row->is_slow || (contrast == OTHER_COMM && row->comms_slow < row->comms);

		/* Not found slow is not the same as found fine. */
		is_fine = is_fine && row->bound < 1 + (common->worst->ratio - 1) / 2;
		if (is_fine && would_show(common, row) && is_contrast(common, row, contrast))
			return true;
	}
	return false;
}

/* On at least 80% of the inter-node communicators, of those that would be affected. */
static bool is_everywhere(const struct slow_common *common)
{
	uint64_t slow = 0, all = 0;

	for (size_t i = 0; i < common->rows->count; i++) {
		const struct slow_row *row = &common->rows->list[i];

		if (!slow_row_is_net(row) || (!row->is_slow && !would_show(common, row)))
			continue;
		slow += row->comms_slow;
		all += row->comms;
	}
	return slow * 5 >= all * 4;
}

/* Inter-node transfers got slower, but do not spend longer on the network than before. */
static bool is_mean_fine(const struct slow_common *common)
{
	return common->wire.is_known &&
	       common->wire.after_ns <
		       common->wire.before_ns * (1 + (common->worst->ratio - 1) / 4);
}

/* Those of no sender do: one slow cable among many hardly changes the mean. */
static bool slow_common_is_wire_fine(const struct slow_common *common)
{
	return is_mean_fine(common) && common->wire.senders_slower == 0;
}

static bool slow_common_is_wire_slow(const struct slow_common *common)
{
	return common->wire.is_known && !is_mean_fine(common);
}

/* Some ranks' sends spend longer on the network, and those of others clearly do not. */
static bool slow_common_is_wire_partial(const struct slow_common *common)
{
	const struct slow_wire *wire = &common->wire;

	if (is_mean_fine(common) && wire->senders_slower > 0)
		return true;
	return wire->is_known && wire->senders >= SENDERS_LEAST &&
	       wire->senders_same * 10 >= wire->senders &&
	       wire->senders_slower * 10 >= wire->senders &&
	       (wire->senders_same + wire->senders_slower) * 20 >= wire->senders * 19;
}

/*
 * Inter-node transfers are slower by so little that links within nodes may also be the cause. A full
 * pipeline has as many transfers on the wire as fit, and each takes as long as the slowest of its links
 * allows. A link within a node that became about as slow as the network has the same effect; only a clearly
 * slower one lets the network run empty.
 */
static bool slow_common_is_either(const struct slow_common *common)
{
	return slow_common_is_wire_slow(common) && common->worst->kind == JOB_COMM_MIXED &&
	       common->worst->ratio < ratio_that_empties && !has_fine(common, NVLINK_FINE);
}

static enum verdict_class narrow_class(const struct slow_common *common)
{
	if (common->is_switched)
		return VERDICT_SLOW_ALGORITHM;
	if (common->is_one_size && has_fine(common, OTHER_SIZE))
		return VERDICT_SLOW_SIZE;
	/* Links that move large messages at full speed are not slow: it is latency. */
	if (has_fine(common, LARGER))
		return VERDICT_SLOW_SIZE;
	if (common->is_one_choice && has_fine(common, OTHER_CHOICE) &&
	    !has_fine(common, SAME_CHOICE))
		return VERDICT_SLOW_ALGORITHM;
	return VERDICT_CLASSES;
}

/* NCCL uses fewer channels than before: that explains less bandwidth, whatever it looks like. */
static bool has_fewer_channels(const struct slow_common *common)
{
	const struct slow_wire *wire = &common->wire;

	return wire->channels_after > 0 &&
	       wire->channels_after < fewer_channels * wire->channels_before;
}

/* Only one sender takes longer. */
static bool has_sender(const struct slow_common *common)
{
	return common->wire.has_place && common->has_net && common->wire.slow_sender != UINT32_MAX;
}

/* Only transfers to one rank and from it take longer. */
static bool has_both(const struct slow_common *common)
{
	return common->wire.has_place && common->has_net && common->wire.slow_both != UINT32_MAX;
}

/* Transfers are on the wire as long as before, and one rank takes late what has arrived. */
static bool has_receiver(const struct slow_common *common)
{
	return common->has_net && slow_common_is_wire_fine(common) &&
	       common->wire.slow_receiver != UINT32_MAX;
}

/* Senders of one host or of one position on all hosts take longer, and the others do not. */
static bool has_place(const struct slow_common *common)
{
	return common->wire.has_place && common->has_net &&
	       (common->wire.slow_host != UINT32_MAX || common->wire.slow_rail != UINT32_MAX);
}

static enum verdict_class slow_common_class(const struct slow_common *common)
{
	enum verdict_class narrow = narrow_class(common);
	bool is_measured =
		common->rows->against == SLOW_PAST || common->rows->against == SLOW_BASELINE;

	if (has_fewer_channels(common))
		return VERDICT_SLOW_ALGORITHM;
	if (narrow != VERDICT_CLASSES)
		return narrow;
	if (has_sender(common))
		return VERDICT_SLOW_LINK;
	if (has_both(common))
		return VERDICT_SLOW_RANK;
	if (has_place(common))
		return VERDICT_SLOW_NETWORK;
	if (has_receiver(common) && !common->has_nvlink)
		return VERDICT_SLOW_LINK;
	if (common->has_nvlink && !common->has_other &&
	    (!common->has_net || common->host != UINT32_MAX || has_fine(common, NETWORK_FINE) ||
	     slow_common_is_wire_fine(common)))
		return VERDICT_SLOW_NVLINK;
	if ((common->is_one_comm || common->is_one_name) && has_fine(common, OTHER_COMM))
		return VERDICT_SLOW_COMM;
	if (common->has_net && !common->has_nvlink && !common->has_other &&
	    slow_common_is_wire_fine(common) && common->worst->kind == JOB_COMM_MIXED)
		return VERDICT_SLOW_NVLINK;
	/* A data sheet does not show what a job can reach: only contrast does. */
	if (common->has_net && !common->has_nvlink && !common->has_other &&
	    (is_measured || has_fine(common, NVLINK_FINE)) && is_everywhere(common) &&
	    !slow_common_is_wire_partial(common))
		return VERDICT_SLOW_NETWORK;
	return VERDICT_BELOW_EXPECTED;
}

/* The inter-node row that lost most shows where its time went. */
static void slow_common_wire(struct slow_search *search, struct slow_common *common)
{
	const struct slow_row *over = NULL;

	for (size_t i = 0; i < common->rows->count; i++) {
		const struct slow_row *row = &common->rows->list[i];

		if (common->is_taken[i] && slow_row_is_net(row) && !row->is_send &&
		    (over == NULL || row->lost_ns > over->lost_ns))
			over = row;
	}
	common->wire = (struct slow_wire){ .host = UINT32_MAX,
					   .slow_receiver = UINT32_MAX,
					   .slow_sender = UINT32_MAX,
					   .slow_both = UINT32_MAX };
	if (over == NULL && !common->worst->is_send)
		over = common->worst;
	if (over == NULL || common->rows->against > SLOW_BASELINE)
		return;
	search->status = slow_wire(&common->wire, search->report, over);
	if (common->host == UINT32_MAX && slow_common_is_wire_fine(common))
		common->host = common->wire.host;
}

/* The texts of a verdict about slow operation types. */

enum { EVIDENCE_ROWS = 8 };

static void choice_text(char *to, size_t size, const struct job *job, const struct slow_row *row)
{
	if (row->algorithm == 0)
		text_copy(to, size, "");
	else
		text_format(to, size, "%s %s", job_name(job, OP_NAMES_ALGORITHM, row->algorithm),
			    job_name(job, OP_NAMES_PROTOCOL, row->protocol));
}

/* Title, evidence, advice and caveats of a verdict whose class is set. */
static void slow_common_title(struct verdict *verdict, const struct slow_common *common,
			      const struct job *job)
{
	const struct slow_row *worst = common->worst;
	const char *function = job_name(job, OP_NAMES_FUNCTION, worst->function);
	const char *tail = slow_than(common->rows->against);
	const char *is = common->is_all_over ? "was" : "is";
	char size[16], most[16], choice[64];

	op_size_text(size, sizeof(size), worst->size_class);
	op_size_text(most, sizeof(most), common->most_class);
	choice_text(choice, sizeof(choice), job, worst);
	if (has_fewer_channels(common))
		verdict_title(
			verdict,
			"NCCL uses %.0f instead of %.0f channels for %.20s of %s, which %s slower",
			common->wire.channels_after, common->wire.channels_before, function, size,
			is);
	else if (verdict->class == VERDICT_SLOW_NETWORK && has_place(common) &&
		 common->wire.slow_host != UINT32_MAX)
		verdict_title(verdict, "slow network: sends from %.80s %s slower than %s",
			      job->hosts[common->wire.slow_host].name,
			      common->is_all_over ? "were" : "are", tail);
	else if (verdict->class == VERDICT_SLOW_NETWORK && has_place(common))
		verdict_title(
			verdict,
			"slow network: sends of GPU %u of all nodes (one rail) %s slower than %s",
			common->wire.slow_rail, common->is_all_over ? "were" : "are", tail);
	else if (verdict->class == VERDICT_SLOW_NETWORK && slow_common_is_either(common))
		verdict_title(
			verdict,
			"slow network or NVLink: inter-node traffic %s slower than %s everywhere",
			is, tail);
	else if (verdict->class == VERDICT_SLOW_NETWORK)
		verdict_title(verdict,
			      "slow network: inter-node traffic %s slower than %s everywhere", is,
			      tail);
	else if (verdict->class == VERDICT_SLOW_NVLINK && common->host != UINT32_MAX)
		verdict_title(verdict, "slow NVLink: traffic within %.80s %s slower than %s",
			      job->hosts[common->host].name, is, tail);
	else if (verdict->class == VERDICT_SLOW_NVLINK)
		verdict_title(verdict, "slow NVLink: intra-node traffic %s slower than %s", is,
			      tail);
	else if (verdict->class == VERDICT_SLOW_COMM)
		verdict_title(verdict, "slow communicator: %.80s %s slower than %s, others are not",
			      verdict->comm, is, tail);
	else if (verdict->class == VERDICT_SLOW_SIZE && !common->is_one_size)
		verdict_title(verdict, "messages up to %s are slower than %s; larger ones are not",
			      most, tail);
	else if (verdict->class == VERDICT_SLOW_SIZE)
		verdict_title(verdict, "messages of %s are slower than %s; other sizes are not",
			      size, tail);
	else if (verdict->class == VERDICT_SLOW_ALGORITHM && worst->was[0] != '\0')
		verdict_title(verdict,
			      "NCCL chose %.40s instead of %.40s for %.20s of %s, which %s slower",
			      choice, worst->was, function, size, is);
	else if (verdict->class == VERDICT_SLOW_ALGORITHM)
		verdict_title(verdict,
			      "%.40s %s slower than %s; other algorithms and protocols are not",
			      choice, is, tail);
	else
		verdict_title(verdict, "%.20s of %s and %zu more operation %s %s slower than %s",
			      function, size, common->slow - 1,
			      text_which(common->slow - 1, "type", "types"),
			      common->slow > 1 ? "are" : is, tail);
	if (verdict->class == VERDICT_BELOW_EXPECTED && common->slow == 1)
		verdict_title(verdict, "%.20s of %s %s slower than %s", function, size, is, tail);
}

static void tell_send(struct slow_search *search, struct verdict *verdict,
		      const struct slow_row *row)
{
	char size[16];

	op_size_text(size, sizeof(size), row->size_class);
	verdict_evidence(verdict,
			 "Sends of %s on %s communicators (%u of %u): those with little waiting "
			 "take %.2fx longer, %s.",
			 size, job_comm_kind_name(row->kind), row->comms_slow, row->comms,
			 row->ratio, slow_when(search->report, &row->span).text);
	verdict_missing(
		verdict,
		"Waiting cannot be separated from Send times, so the fastest 10%% were compared.");
}

static void tell_row(struct slow_search *search, struct verdict *verdict,
		     const struct slow_row *row)
{
	const struct job *job = &search->report->job;
	char size[16], choice[64], interval[64] = "";

	op_size_text(size, sizeof(size), row->size_class);
	choice_text(choice, sizeof(choice), job, row);
	if (row->ratio_high > row->ratio_low)
		text_format(interval, sizeof(interval), " (%.2f-%.2f)", row->ratio_low,
			    row->ratio_high);
	if (row->is_send) {
		tell_send(search, verdict, row);
		return;
	}
	verdict_evidence(
		verdict,
		"%s of %s%s%s%s on %s communicators (%u of %u): %s, %.2fx longer%s, %s; %s.",
		job_name(job, OP_NAMES_FUNCTION, row->function), size, choice[0] ? " (" : "",
		choice, choice[0] ? ")" : "", job_comm_kind_name(row->kind), row->comms_slow,
		row->comms, slow_speeds(row).text, row->ratio, interval,
		slow_when(search->report, &row->span).text,
		!row->is_wire		   ? "waiting excluded"
		: row->function == OP_SEND ? "those of all senders"
					   : "those of the fastest sender");
	if (row->was[0] != '\0')
		verdict_evidence(verdict, "NCCL chose %s for it; before, it chose %s.", choice,
				 row->was);
}

static void slow_common_rows(struct slow_search *search, struct verdict *verdict,
			     const struct slow_common *common)
{
	size_t told = 0;

	tell_row(search, verdict, common->worst);
	for (size_t i = 0; i < common->rows->count; i++) {
		const struct slow_row *row = &common->rows->list[i];

		if (!common->is_taken[i] || row == common->worst)
			continue;
		if (++told < EVIDENCE_ROWS)
			tell_row(search, verdict, row);
	}
	if (told >= EVIDENCE_ROWS)
		verdict_evidence(verdict, "%zu more operation %s.", told - EVIDENCE_ROWS + 1,
				 text_which(told - EVIDENCE_ROWS + 1, "type", "types"));
}

static void slow_common_advise(struct verdict *verdict, const struct slow_common *common)
{
	if (has_fewer_channels(common)) {
		verdict_advice(verdict,
			       "Compare the NCCL version, NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS, the "
			       "topology file and the number of NICs that NCCL finds.");
		text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#slowness");
		return;
	}
	switch (verdict->class) {
	case VERDICT_SLOW_NETWORK:
		if (has_place(common))
			verdict_advice(verdict,
				       "Check the ports of %s, and the switch they are connected "
				       "to.",
				       common->wire.slow_host != UINT32_MAX ? "this node"
									    : "this rail");
		else
			verdict_advice(verdict,
				       "Check the fabric: congestion from other jobs, a failed "
				       "switch or uplink, adaptive routing.");
		break;
	case VERDICT_SLOW_NVLINK:
		verdict_advice(verdict, "Check NVLink and the GPU clocks.");
		verdict_advice(verdict, "$ ssh %.200s nvidia-smi nvlink --status",
			       verdict->host[0] ? verdict->host : "NODE");
		verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK",
			       verdict->host[0] ? verdict->host : "NODE");
		break;
	case VERDICT_SLOW_ALGORITHM:
		verdict_advice(verdict, "Compare the NCCL version, its tuner plugin, NCCL_ALGO and "
					"NCCL_PROTO with the faster run.");
		break;
	case VERDICT_SLOW_SIZE:
		verdict_advice(verdict, "Try other message sizes (the framework's bucket size), "
					"and NCCL_ALGO or NCCL_PROTO for this one.");
		break;
	case VERDICT_SLOW_COMM:
		verdict_advice(verdict,
			       "Check what its ranks have in common: rail, switch, nodes.");
		break;
	default:
		if (slow_common_is_wire_partial(common)) {
			verdict_advice(verdict, "Look for one slow link inside a node that only "
						"some rings use, and for one slow network rail.");
			verdict_advice(verdict, "$ ssh NODE nvidia-smi nvlink --status");
			break;
		}
		verdict_advice(verdict,
			       "No single link, size, algorithm or communicator is the cause: "
			       "compare settings, versions and GPU clocks of the two runs.");
		break;
	}
	if (common->rows->against == SLOW_EXPECTED || common->rows->against == SLOW_PEAK)
		verdict_advice(verdict, "In a stand-alone benchmark nothing else uses the links "
					"and GPUs; some loss against it is normal.");
}

static void slow_common_missing(struct verdict *verdict, const struct slow_common *common)
{
	const struct slow_rows *rows = common->rows;
	bool has_nvlink = false;

	for (size_t i = 0; i < rows->count; i++)
		has_nvlink |= rows->list[i].kind == JOB_COMM_NVLINK;
	if (verdict->class == VERDICT_SLOW_NETWORK && !has_nvlink &&
	    !slow_common_is_wire_slow(common)) {
		verdict_missing(
			verdict,
			"No communicator stays within a node, so a slower NVLink would not show.");
		verdict->confidence *= 0.9;
	}
	if (verdict->class == VERDICT_SLOW_NETWORK && slow_common_is_either(common)) {
		verdict_missing(
			verdict,
			"The slowdown is small: NVLink slowed to about the network's speed would "
			"look the same, and no communicator stays within a node to compare with.");
		verdict->confidence *= 0.6;
	}
	if (verdict->class == VERDICT_SLOW_NETWORK && has_place(common))
		verdict->confidence = fmin(verdict->confidence, sure_of_place);
	if (verdict->class == VERDICT_SLOW_NETWORK && common->rows->against == SLOW_PAST &&
	    common->wire.is_known && common->wire.senders < SENDERS_LEAST) {
		verdict_missing(verdict,
				"Only %u ranks send to other nodes: the port or the CPU of one of "
				"them would look the same as the network.",
				common->wire.senders);
		verdict->confidence = fmin(verdict->confidence, sure_of_few);
	}
	if (verdict->class == VERDICT_SLOW_NVLINK && !common->has_nvlink) {
		verdict_missing(verdict, "No communicator stays within a node: it may also be %s.",
				common->host == UINT32_MAX
					? "one link inside a node, or a part of the network"
					: "a process of this node that is short of CPU");
		verdict->confidence = fmin(verdict->confidence, sure_of_place);
		if (common->host != UINT32_MAX && common->wire.is_one_receiver) {
			verdict_missing(verdict, "Only one rank of this node takes its data late: "
						 "it may be that rank, its GPU or its process.");
			verdict->confidence = fmin(verdict->confidence, sure_of_receiver);
		}
	}
	if (rows->is_other_ranks) {
		verdict_missing(verdict,
				"The reference has a different number of ranks; bus bandwidth was "
				"compared, which drops slightly with more ranks.");
		verdict->confidence *= 0.8;
	}
	if (rows->unmatched > 0)
		verdict_missing(verdict, "%zu operation %s no reference to compare with.",
				rows->unmatched,
				text_which(rows->unmatched, "type has", "types have"));
}

static void slow_common_tell_wire(struct verdict *verdict, const struct slow_common *common)
{
	const struct slow_wire *wire = &common->wire;

	if (has_fewer_channels(common))
		return;
	if (verdict->class == VERDICT_SLOW_LINK && !has_sender(common)) {
		verdict_evidence(verdict,
				 "Inter-node transfers spend %s each on the network, %s before, so "
				 "the network is not the cause.",
				 units_of_ns(wire->after_ns).text,
				 units_of_ns(wire->before_ns).text);
		return;
	}
	if (verdict->class == VERDICT_SLOW_LINK || verdict->class == VERDICT_SLOW_RANK ||
	    (verdict->class == VERDICT_SLOW_NETWORK && has_place(common))) {
		verdict_evidence(verdict, "Only these sends spend longer on the network than %s.",
				 common->rows->against == SLOW_PAST ? "before" : "the others");
		return;
	}
	if (verdict->class == VERDICT_SLOW_NETWORK && slow_common_is_wire_slow(common))
		verdict_evidence(
			verdict, "Their transfers spend %s each on the network, %s before%s.",
			units_of_ns(wire->after_ns).text, units_of_ns(wire->before_ns).text,
			slow_common_is_either(common) ? "" : ", so NVLink is not the cause");
	if (verdict->class == VERDICT_BELOW_EXPECTED && slow_common_is_wire_partial(common))
		verdict_evidence(verdict,
				 "Inter-node sends of %u of %u ranks spend longer on the network, "
				 "those of %u do not: some rings are slow and others are not, so "
				 "the network as a whole is not the cause.",
				 wire->senders_slower, wire->senders, wire->senders_same);
	if (verdict->class == VERDICT_SLOW_NVLINK && slow_common_is_wire_fine(common))
		verdict_evidence(verdict,
				 "Inter-node transfers spend %s each on the network, %s before, so "
				 "the network is not the cause.",
				 units_of_ns(wire->after_ns).text,
				 units_of_ns(wire->before_ns).text);
	if (verdict->class == VERDICT_SLOW_NVLINK && slow_common_is_wire_fine(common) &&
	    wire->host != UINT32_MAX)
		verdict_evidence(verdict,
				 "Data arriving at %.100s waits longer than elsewhere until the "
				 "GPU consumes it.",
				 verdict->host);
}

/* One verdict for all operation types that one comparison found slow, or more evidence for an earlier one. */

bool slow_is_brief(const struct slow_search *search, const struct verdict *verdict)
{
	const struct timeline_report *report = search->report;

	return verdict->for_ns < SLOW_BRIEF_NS &&
	       verdict->for_ns < (report->end_ns - report->start_ns) / 5;
}

static void fill_verdict(struct slow_search *search, struct verdict *verdict,
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
	if (verdict->class == VERDICT_SLOW_NETWORK && has_place(common) &&
	    common->wire.slow_host != UINT32_MAX)
		text_copy(verdict->host, sizeof(verdict->host),
			  job->hosts[common->wire.slow_host].name);
	slow_fill_span(verdict, search->report, &worst->span);
	slow_fill_cost(search, verdict, common->lost_ns);
	verdict->confidence = common->confidence;
	verdict->percent = common->percent;
	verdict->victims = common->ranks;
	/* It is over, or has only begun: the cost stays, but it is no warning. */
	if (slow_is_over(search, common->is_all_over) ||
	    (common->rows->against == SLOW_PAST && slow_is_brief(search, verdict)))
		verdict->severity = VERDICT_NOTE;
}

/* An earlier comparison found the same cause. */
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

static void remember_told(struct slow_search *search, const struct slow_common *common,
			  size_t verdict)
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
 * The network side of an operation begins with its launch: network-side durations include waiting for a
 * straggler. Then only what takes longer on the wire itself is due to the network, and whatever else became
 * slower may be a straggler.
 */
static bool may_be_waiting(const struct slow_search *search, const struct slow_common *common,
			   enum verdict_class class)
{
	const struct timeline_report *report = search->report;

	if (!tally_is_by_network(&report->total) || common->rows->against > SLOW_BASELINE)
		return false;
	return (class != VERDICT_SLOW_NETWORK && class != VERDICT_SLOW_LINK &&
		class != VERDICT_SLOW_RANK) ||
	       common->wire.after_ns <
		       common->wire.before_ns * (1 + (common->worst->ratio - 1) / 2);
}

/* A process that times nothing, or kernels, cannot be asked to time launches. */
static bool can_be_asked(const struct recording_process *process)
{
	struct recording_times times;

	if (!is_running(process))
		return false;
	recording_times(process, &times);
	return strcmp(times.in_effect, "off") != 0 && strcmp(times.in_effect, "kernel") != 0;
}

/*
 * From 2.28 on CUDA events time launches, also those of a running job; 2.27 has only kernel events, from the job's start;
 * before that nothing has a duration.
 */
void slow_advise_times(const struct slow_search *search, struct verdict *verdict)
{
	enum { FIRST_WITH_KERNEL_TIMES = 4, FIRST_WITH_LAUNCHES = 5 };
	const struct job *job = &search->report->job;
	uint32_t newest = 0;
	bool can_ask = false;

	for (size_t r = 0; r < job->rank_count; r++) {
		const struct recording_process *process =
			job->recording->processes[job->ranks[r].process];

		if (job->ranks[r].group != search->group)
			continue;
		newest = process->interface > newest ? process->interface : newest;
		can_ask |= can_be_asked(process);
	}
	if (newest != 0 && newest < FIRST_WITH_KERNEL_TIMES) {
		verdict_advice(verdict, "This NCCL shows no GPU times to a profiler plugin; 2.28 "
					"and later do by default.");
	} else if (newest != 0 && newest < FIRST_WITH_LAUNCHES) {
		verdict_advice(verdict, "To time every operation, record kernel events from the "
					"job's start, which can harm it:");
		verdict_advice(verdict, "$ ringside run --times kernel -- COMMAND");
	} else if (can_ask) {
		verdict_advice(verdict, "To time every operation for a while, on every node:");
		verdict_advice(verdict, "$ ringside record --times 30s");
	} else {
		verdict_advice(verdict, "To time every operation of the next run:");
		verdict_advice(verdict, "$ ringside run --times all -- COMMAND");
	}
}

static void tell_unjudged(struct slow_search *search, const struct slow_common *common)
{
	struct verdict *verdict = add_unjudged(search, slow_against_name(common->rows->against),
					       "DOCTOR.md#not-judged");

	remember_told(search, common, search->verdicts->count - 1);
	verdict_title(verdict,
		      "not judged: inter-node transfers take longer than %s, cause not visible",
		      slow_than(common->rows->against));
	slow_common_rows(search, verdict, common);
	verdict_missing(verdict,
			"Most calls have no duration; their time on the wire does not tell a "
			"straggler, a slow NVLink and a slow link apart.");
	verdict_advice(verdict, "Times from the GPU would show the cause.");
	slow_advise_times(search, verdict);
}

/* At most this certain, if a rank that takes part in them became slow at the same time. */
static const double sure_beside_late = 0.9;

static void tell_beside(struct slow_search *search, struct verdict *verdict,
			const struct slow_row *worst)
{
	struct slow_text who;

	if (!slow_is_beside(search, worst, &who))
		return;
	verdict->confidence = fmin(verdict->confidence, sure_beside_late);
	verdict_missing(verdict,
			"At the same time %s became a straggler. A throttled GPU computes and "
			"copies more slowly: both may have one cause.",
			who.text);
}

static void tell_common(struct slow_search *search, const struct slow_common *common)
{
	enum verdict_class class = slow_common_class(common);
	struct verdict *verdict = same_cause(search, common, class);

	if (verdict == NULL && may_be_waiting(search, common, class)) {
		tell_unjudged(search, common);
		return;
	}
	if (verdict != NULL) {
		verdict_evidence(verdict, "Also slower than %s:", slow_than(common->rows->against));
		slow_common_rows(search, verdict, common);
		remember_told(search, common, (size_t)(verdict - search->verdicts->list));
		return;
	}
	verdict = slow_verdict(search, class, common->rows->against);
	remember_told(search, common, search->verdicts->count - 1);
	fill_verdict(search, verdict, common);
	slow_common_title(verdict, common, &search->report->job);
	slow_common_rows(search, verdict, common);
	slow_common_tell_wire(verdict, common);
	if (class == VERDICT_SLOW_LINK && has_receiver(common) && !has_sender(common))
		slow_tell_receiver(search, verdict, common->wire.slow_receiver,
				   common->worst->comm);
	else if (class == VERDICT_SLOW_LINK)
		slow_tell_sender(search, verdict, common->wire.slow_sender, common->worst->comm);
	else if (class == VERDICT_SLOW_RANK)
		slow_tell_both(search, verdict, common->wire.slow_both,
			       common->wire.after_ns / common->wire.before_ns);
	else
		slow_common_advise(verdict, common);
	slow_common_missing(verdict, common);
	tell_beside(search, verdict, common->worst);
	slow_fill_severity(search, verdict, &common->worst->span);
	slow_fill_missing(search, verdict);
}

/*
 * Transfers that are on the wire less long than at first: the network was slow, or has less to do since something else is. Only if
 * iterations took longer at first, too, it was slow.
 */
static bool is_only_less_load(const struct slow_search *search, const struct slow_row *worst)
{
	return worst->is_wire && worst->is_over &&
	       !(measured_cost(search, &worst->span).value >= cost_of_note);
}

/* Transfers that are known to be about as fast as in the reference. */
static struct slow_compared compared_in(const struct slow_rows *rows)
{
	struct slow_compared compared = { .has_net = false };

	for (size_t i = 0; i < rows->count; i++) {
		const struct slow_row *row = &rows->list[i];

		if (row->is_slow || row->size_class < BIG || row->bound > bound_of_fine)
			continue;
		compared.has_net |= slow_row_is_net(row);
		compared.has_nvlink |= row->kind == JOB_COMM_NVLINK;
	}
	return compared;
}

/* One verdict for the slow rows. */
static void slow_classify(struct slow_search *search, const struct slow_rows *rows,
			  const struct slow_cells *cells)
{
	bool is_taken[SLOW_ROWS_MAX] = { false };
	struct slow_common common;

	for (size_t i = 0; i < rows->count; i++)
		is_taken[i] = rows->list[i].is_slow &&
			      !slow_is_explained(search, &rows->list[i], rows->against);
	common = slow_common_find(rows, &search->report->job, is_taken);
	common.cells = cells;
	if (common.slow == 0)
		return;
	if (is_only_less_load(search, common.worst))
		return;
	common.is_all_over |= is_past(search->report, &common.worst->span);
	slow_common_wire(search, &common);
	tell_common(search, &common);
}

/*
 * What was not judged. No straggler found and no straggler searched for must not look the same, so a job
 * with too little data is not reported as fast.
 */

/* A hung job is not slow; and if something slow was found, speed was judged. A note about the wire says nothing of ranks. */
static bool is_told_otherwise(const struct slow_search *search, const char *job)
{
	bool is_by_network = tally_is_by_network(&search->report->total);

	for (size_t i = 0; i < search->verdicts->count; i++) {
		const struct verdict *verdict = &search->verdicts->list[i];

		if (strcmp(verdict->job, job) == 0 &&
		    ((verdict_is_slow(verdict->class) &&
		      (verdict->severity >= VERDICT_WARNING || !is_by_network)) ||
		     verdict_is_hang(verdict->class)))
			return true;
	}
	return false;
}

/* Are there several ranks to compare? */
static bool has_company(const struct job *job, uint32_t group)
{
	for (size_t i = 0; i < job->comm_count; i++)
		if (job->comms[i].group == group &&
		    (job->comms[i].nranks > 1 || job->comms[i].seat_count > 1))
			return true;
	return false;
}

/* Operations of a communicator, over its ranks, and how many of them are timed. */
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

static void advise_times(const struct slow_search *search, struct verdict *verdict)
{
	verdict_advice(verdict, "Inside a node, only times from the GPU give durations.");
	slow_advise_times(search, verdict);
}

/* The network side of an operation begins with its launch, so its durations do not show stragglers. */
static void tell_lateness_unjudged(struct slow_search *search)
{
	const struct tally_row *total = &search->report->total;
	struct verdict *verdict = add_unjudged(search, "speed", "DOCTOR.md#not-judged");

	verdict_title(verdict,
		      "not judged: stragglers (%" PRIu64 " of %" PRIu64
		      " calls have GPU timestamps)",
		      tally_gpu_timed(total), total->calls);
	verdict_evidence(verdict,
			 "%" PRIu64 " calls have network-side times, which start at the launch: "
			 "they show slow links but not stragglers.",
			 total->by_source[OP_TIME_PROXY]);
	verdict_missing(verdict, "Stragglers and slow links inside nodes would not show.");
	advise_times(search, verdict);
}

/* Speed was judged by inter-node communicators; within nodes nothing is timed. */
static void tell_untimed(struct slow_search *search, const struct job *job)
{
	uint64_t calls = 0, comms = 0;
	struct verdict *verdict;

	for (size_t i = 0; i < job->comm_count; i++) {
		struct timed timed = timed_of(job, &job->comms[i]);

		if (job->comms[i].group != search->group || job->comms[i].seat_count < 2 ||
		    timed.timed > 0 ||
		    timed.calls < (uint64_t)job->comms[i].seat_count *
					  search->report->stragglers.least_matches)
			continue;
		calls += timed.calls;
		comms++;
	}
	if (comms == 0)
		return;
	verdict = add_unjudged(search, "speed", "DOCTOR.md#not-judged");
	verdict_title(verdict,
		      "not judged: stragglers on %" PRIu64 " %s (0 of %" PRIu64
		      " calls there are timed)",
		      comms, text_which(comms, "communicator", "communicators"), calls);
	verdict_missing(verdict, "Stragglers and slow links there would not show.");
	advise_times(search, verdict);
}

static void tell_why(struct verdict *verdict, const struct timeline_report *report,
		     const struct straggler_judged *judged)
{
	const struct timeline_completeness *seen = &report->completeness;

	if (judged->matches == 0)
		verdict_evidence(verdict, "Only collectives timed on most of their ranks are "
					  "compared, and not those between pipeline stages.");
	else
		verdict_evidence(verdict,
				 "%.100s has the most collectives recorded on most of its ranks; "
				 "naming a straggler takes at least %" PRIu32 ".",
				 report->job.comms[judged->comm].label,
				 report->stragglers.least_matches);
	if (seen->snapshots > 0)
		verdict_evidence(
			verdict,
			"Agents return the most recent operations of each process, each at its own "
			"time; only operations that all of them returned are compared.");
	else if (seen->overwritten > 0)
		verdict_evidence(verdict, "Flight mode overwrites older operations.");
}

/* Stragglers could not be judged, and none was named: a note says why. */
static void slow_unjudged(struct slow_search *search)
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
		if (tally_is_by_network(&report->total))
			tell_lateness_unjudged(search);
		else
			tell_untimed(search, &report->job);
	}
	if (judged->is_judged || is_told_otherwise(search, group->name) ||
	    !has_company(&report->job, search->group))
		return;
	verdict = add_unjudged(search, "speed", "DOCTOR.md#not-judged");
	timed = timed_of_job(&report->job, search->group);
	if (timed.timed == 0 && timed.calls > 0)
		verdict_title(verdict, "not judged: speed (0 of %" PRIu64 " calls are timed)",
			      timed.calls);
	else if (judged->matches == 0)
		verdict_title(verdict,
			      "not judged: speed (no collectives could be compared between ranks)");
	else
		verdict_title(
			verdict,
			"not judged: speed (%" PRIu64 " %s of %.80s could be compared, %" PRIu32
			" needed)",
			judged->matches, text_which(judged->matches, "collective", "collectives"),
			report->job.comms[judged->comm].label, report->stragglers.least_matches);
	tell_why(verdict, report, judged);
	if (timed.timed > 0 && timed.timed < timed.calls)
		verdict_evidence(verdict, "%" PRIu64 " of %" PRIu64 " calls are timed.",
				 timed.timed, timed.calls);
	verdict_missing(verdict, "Slow ranks, hosts and links would not show.");
	if (timed.timed == 0 && timed.calls > 0)
		advise_times(search, verdict);
	else
		verdict_advice(verdict,
			       "Try again when the job has run longer, or use its traces.");
}

/* ---- iterations ------------------------------------------------------------------------------- */

static const double more_waiting = 0.1; /* of collective time */

static bool is_named(const struct slow_search *search)
{
	for (size_t i = search->first; i < search->verdicts->count; i++)
		if (search->verdicts->list[i].severity >= VERDICT_WARNING)
			return true;
	return false;
}

/* There is an unknown straggler. */
static void tell_waiting(struct verdict *verdict, const struct stragglers *stragglers)
{
	verdict_advice(verdict, "One rank is a straggler: compare the ranks' communication time; "
				"the one that waits least is it.");
	if (!stragglers->has_enough)
		verdict_missing(verdict,
				"The straggler is unknown: %llu %s compared, %u are needed. Record "
				"for longer.",
				(unsigned long long)stragglers->matches,
				text_which(stragglers->matches, "collective of a communicator was",
					   "collectives of a communicator were"),
				stragglers->least_matches);
	else
		verdict_missing(verdict, "The straggler is unknown: it is not the same rank "
					 "throughout the compared collectives.");
}

/* Why, as far as that shows: transfers are as fast as in the baseline, as far as any were compared. */
static void tell_elsewhere(struct slow_search *search, double ratio, const char *figures,
			   struct slow_compared compared)
{
	struct verdict *verdict = slow_verdict(search, VERDICT_BELOW_EXPECTED, SLOW_BASELINE);
	const struct timeline_report *report = search->report;
	bool is_waiting_known = report->total.joined_ns > 0;
	double share = is_waiting_known
			       ? (double)report->total.wait_ns / (double)report->total.joined_ns
			       : 0;
	double before = search->options->baseline->wait_share;
	bool is_waiting = share > before + more_waiting;
	bool is_elsewhere =
		!is_waiting && is_waiting_known && (compared.has_net || compared.has_nvlink);

	verdict_title(verdict, "iterations take %.0f%% longer than in the baseline: %s",
		      100 * (ratio - 1),
		      is_waiting     ? "ranks wait for each other"
		      : is_elsewhere ? "communication is not the cause"
				     : "cause not visible");
	verdict_evidence(verdict, "%s", figures);
	if (compared.has_net || compared.has_nvlink)
		verdict_evidence(verdict, "Transfers %s are as fast as in the baseline.",
				 compared.has_net && compared.has_nvlink
					 ? "between nodes and inside nodes"
				 : compared.has_net ? "between nodes"
						    : "inside nodes");
	else
		verdict_missing(verdict, "No transfers could be compared with the baseline, so "
					 "communication may be the cause.");
	if (is_waiting_known)
		verdict_evidence(verdict,
				 "Waiting is %.0f%% of collective time, %.0f%% in the baseline.",
				 100 * share, 100 * before);
	else
		verdict_missing(verdict, "How long ranks wait for each other is not known: a "
					 "straggler or a slow NVLink may be the cause.");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#longer-iterations");
	verdict->percent = 100 * (ratio - 1);
	verdict->victims = (uint32_t)report->job.known_ranks;
	slow_fill_cost(search, verdict, report->gpu_hours * 3600e9 * (1 - 1 / ratio));
	slow_fill_span(verdict, report, &(struct slow_span){ 0 });
	verdict->confidence = is_elsewhere ? 0.9 : is_waiting ? 0.7 : 0.95;
	if (is_waiting) {
		tell_waiting(verdict, &report->stragglers);
	} else if (is_elsewhere) {
		verdict_advice(verdict,
			       "All ranks compute or wait for data longer than in that run: "
			       "compare model settings, data loading and GPU clocks.");
	} else {
		verdict_advice(verdict, "Times from the GPU would show the cause, in both runs.");
		slow_advise_times(search, verdict);
	}
	slow_fill_severity(search, verdict, &(struct slow_span){ 0 });
	slow_fill_missing(search, verdict);
}

/* Iterations compared with the baseline. */
static void slow_iterations(struct slow_search *search, const struct slow_rows *rows)
{
	const struct baseline *then = search->options->baseline;
	const struct iterations *now = &search->report->iterations;
	size_t slow = 0;
	char figures[200];
	double ratio;

	for (size_t i = 0; i < rows->count; i++)
		slow += rows->list[i].is_slow;
	if (!is_like_baseline(search))
		return;
	ratio = (double)now->median_ns / then->iteration_ns;
	text_format(
		figures, sizeof(figures),
		"An iteration takes %s, in the baseline %s: %.1f%% %s (medians of %zu and %llu).",
		units_of_ns((double)now->median_ns).text, units_of_ns(then->iteration_ns).text,
		100 * fabs(ratio - 1), ratio >= 1 ? "longer" : "less", now->regular,
		(unsigned long long)then->iterations);
	if (is_named(search))
		verdict_evidence(&search->verdicts->list[search->first], "%s%s", figures,
				 ratio < 1.02 ? " So far the loss is hidden behind compute." : "");
	else if (ratio > 1 + search->threshold && slow == 0)
		tell_elsewhere(search, ratio, figures, compared_in(rows));
}

/* ---- comparisons ------------------------------------------------------------------------------ */

typedef void slow_compare(struct slow_cells *cells, const struct timeline_report *report,
			  const struct slow_options *options, struct slow_rows *rows);

static struct verdict *tell_compared(struct slow_search *search, enum slow_against against,
				     const char *what)
{
	static const char *const with[] = { "the job's own past", "the baseline",
					    "the expected values", "the peak" };
	struct verdict *verdict =
		add_unjudged(search, slow_against_name(against), "DOCTOR.md#slowness");

	verdict_title(verdict, "%s could be compared with %s", what, with[against]);
	return verdict;
}

/* A few bytes, such as a loss or a barrier, are in any job: alone they are no comparison of two. */
static bool is_nothing(const struct slow_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->list[i].is_slow || rows->unmatched == 0 ||
		    rows->list[i].size_class == 0 || rows->list[i].size_class >= SMALL)
			return false;
	return true;
}

/* A requested comparison that did not happen must be reported. */
static void tell_nothing(struct slow_search *search, const struct slow_rows *rows)
{
	struct verdict *verdict = tell_compared(search, rows->against, "no operations");

	/* Whoever asked for it must not take silence for an answer. */
	verdict->severity = VERDICT_WARNING;
	verdict_evidence(verdict,
			 "%zu operation %s no counterpart there (same kind of "
			 "communicator, operation and message size; a few bytes do not count).",
			 rows->unmatched, text_which(rows->unmatched, "type has", "types have"));
	verdict_evidence(verdict,
			 "Each needs at least five iterations (or 20 calls) with GPU "
			 "timestamps on all ranks of a communicator%s.",
			 rows->against == SLOW_BASELINE
				 ? ", or on both sides transfers over the network without them"
				 : "");
	verdict_advice(verdict,
		       "Compare with a run of the same job, and record all ranks in trace mode.");
}

static void tell_left_out(struct slow_search *search, const struct slow_rows *rows)
{
	size_t changes = rows->against == SLOW_PAST ? search->report->windows.changes_left_out : 0;
	struct verdict *verdict;

	if (changes == 0 && rows->left_out == 0)
		return;
	verdict = tell_compared(search, rows->against, "not all operations");
	if (changes > 0)
		verdict_evidence(
			verdict,
			"%zu %s in operation speed %s left out; the %d most costly are kept.",
			changes, text_which(changes, "change", "changes"),
			text_which(changes, "was", "were"), WINDOWS_CHANGES_MAX);
	if (rows->left_out > 0)
		verdict_evidence(verdict,
				 "%zu operation %s of a communicator %s left out; at most %d "
				 "are compared (communicator kind, operation, message size, "
				 "algorithm and protocol).",
				 rows->left_out, text_which(rows->left_out, "type", "types"),
				 text_which(rows->left_out, "was", "were"), SLOW_ROWS_MAX);
	verdict_missing(verdict, "Slowness of what was left out would not show.");
	verdict_advice(verdict, "`ringside report --since --until` covers a part of the time.");
}

/* Ranks that call different operations wait for data that does not come, or move other amounts of it: from
 * then on durations say nothing about links. NULL: their calls agree. */
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
	verdict = tell_compared(search, SLOW_PAST, "no operations");
	verdict_title(verdict, "not judged: changes in transfer speed since a mismatch");
	verdict_evidence(verdict,
			 "Ranks called different operations from collective #%" PRIu64
			 " of %.100s on, so durations since then say nothing about links.",
			 number, comm);
}

/* Changes that began clearly before the ranks called different operations are none of its effects. */
static void drop_since_mismatch(const struct slow_search *search, const struct verdict *mismatch,
				struct slow_rows *rows)
{
	const struct timeline_report *report = search->report;
	uint64_t margin_ns = 2 * report->windows.width_ns, since_ns = mismatch->since_wall_ns;

	for (size_t i = 0; i < rows->count; i++) {
		struct slow_row *row = &rows->list[i];

		row->is_slow = row->is_slow && report->has_wall && row->span.from_ns > 0 &&
			       row->span.from_ns + margin_ns < since_ns;
	}
}

/* rise: when iterations took longer than before, if they did. */
static void compare_past(struct slow_search *search, struct slow_cells *cells,
			 const struct slow_rise *rise, struct slow_rows *rows)
{
	if (rise->is_found)
		search->status = slow_rows_sends(rows, search->report, search->group, &rise->span);
	slow_rows_switched(rows, search->report, cells, search->group, search->threshold);
	slow_rows_past(rows, search->report, cells, search->group, search->threshold);
}

static void compare_cells(struct slow_search *search, struct slow_cells *cells,
			  enum slow_against against, slow_compare *how,
			  const struct slow_rise *rise)
{
	const struct verdict *mismatch = find_mismatch(search);
	struct slow_rows rows;

	if (search->status != OK)
		return;
	search->status = slow_rows_init(&rows, against);
	if (search->status != OK)
		return;
	if (how == NULL) {
		compare_past(search, cells, rise, &rows);
	} else {
		how(cells, search->report, search->options, &rows);
		slow_rows_collect(&rows, search->report, cells, search->group);
	}
	if (mismatch != NULL && against == SLOW_PAST)
		drop_since_mismatch(search, mismatch, &rows);
	if (against == SLOW_PAST)
		search->compared = compared_in(&rows);
	slow_classify(search, &rows, cells);
	if (against != SLOW_PAST && is_nothing(&rows))
		tell_nothing(search, &rows);
	tell_left_out(search, &rows);
	if (against == SLOW_BASELINE)
		slow_iterations(search, &rows);
	if (mismatch != NULL && against == SLOW_PAST)
		tell_mismatch(search, find_mismatch(search));
	slow_rows_release(&rows);
}

/* ------------------------------------------------------------------------------------------------ */

static void look_at_job(struct slow_search *search, struct slow_cells *cells)
{
	const struct slow_options *options = search->options;
	struct slow_rise rise;

	search->first = search->verdicts->count;
	search->compared = (struct slow_compared){ .has_net = false };
	slow_find_rise(search, &rise);
	search->told_count = 0;
	slow_stragglers(search);
	compare_cells(search, cells, SLOW_PAST, NULL, &rise);
	if (options->baseline != NULL)
		compare_cells(search, cells, SLOW_BASELINE, slow_compare_baseline, &rise);
	if (options->expected != NULL)
		compare_cells(search, cells, SLOW_EXPECTED, slow_compare_expected, &rise);
	if (options->peak_nvlink > 0 || options->peak_network > 0)
		compare_cells(search, cells, SLOW_PEAK, slow_compare_peak, &rise);
	slow_held_up(search);
	slow_unjudged(search);
	slow_longer(search, &rise);
}

/* Into the time in which it happened, if time that was not recorded is cut out of the report: as much may have been lost then
 * as in what was recorded. */
static void place_in_time(struct verdict *verdict, const struct timeline_report *report)
{
	uint64_t since_ns = verdict->since_wall_ns, until_ns = since_ns + verdict->for_ns, for_ns;
	uint64_t from_ns, known_ns;
	char from[UNITS_TEXT], known[UNITS_TEXT];

	if (since_ns == 0 || !report->has_wall || report->recording->shown == NULL)
		return;
	verdict->since_wall_ns = recording_past_wall(report->recording, since_ns);
	if (recording_past_gap(report->recording, since_ns, &from_ns, &known_ns)) {
		verdict->since_wall_ns = known_ns;
		units_clock(from, from_ns);
		units_clock(known, known_ns);
		verdict_missing(
			verdict,
			"It began between %s and %s: agents kept nothing of the time between.",
			from, known);
	}
	for_ns = recording_past_wall(report->recording, until_ns) - verdict->since_wall_ns;
	if (verdict->for_ns == 0 || for_ns == verdict->for_ns)
		return;
	verdict->gpu_hours *= (double)for_ns / (double)verdict->for_ns;
	verdict->money *= (double)for_ns / (double)verdict->for_ns;
	verdict->for_ns = for_ns;
}

enum status slow_find(struct verdicts *verdicts, const struct timeline_report *report,
		      const struct slow_options *options)
{
	size_t first = verdicts->count;
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
	for (size_t i = first; i < verdicts->count; i++)
		place_in_time(&verdicts->list[i], report);
	return search.status;
}
