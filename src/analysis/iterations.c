/*
 * How the period is found. A symbol that comes once per iteration (the loss, the gradient norm) has gaps of
 * one period between its occurrences; one that comes k times has k gaps that add up to it. So the most
 * common sums of up to eight gaps of the rarest symbols are candidates. The smallest one for which nearly
 * all of the sequence equals itself one period later is used.
 *
 * The pattern is then the first period that repeats. From there the sequence is cut, one period after the
 * other, while at most a tenth of the symbols differ; where that fails the next matching place is searched,
 * and what was skipped is one irregular iteration.
 */
#include "analysis/timeline_report.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/collect.h"
#include "analysis/stats.h"
#include "common/attributes.h"

enum {
	RARE_SYMBOLS = 12,     /* examined for candidates */
	OCCURRENCES_MAX = 512, /* of each */
	GAPS_SUMMED = 8,
	CANDIDATES_MAX = 256,
	LEAST_REPEATS = 3,
	/* A kernel begins before its first timestamp and ends after its last: 2 to 14 us in all on an H200. */
	KERNEL_ENDS_NS = 20000,
	SAMPLE = 1 << 15, /* operations, from the first on, that the period is searched in first */
};
static const double repeat_share = 0.85, same_share = 0.9, as_good = 0.002;

void iterations_release(struct iterations *iterations)
{
	free(iterations->list);
	*iterations = (struct iterations){ .list = NULL };
}

/* ---- candidates ------------------------------------------------------------------------------ */

struct place {
	uint32_t symbol;
	uint32_t at;
};

static int by_symbol(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return ORDER(a->symbol, b->symbol) ?: ORDER(a->at, b->at);
}

struct run {
	uint32_t first; /* in the sorted places */
	uint32_t count;
};

static int rarest_first(const void *left, const void *right)
{
	const struct run *a = left, *b = right;

	return ORDER(a->count, b->count) ?: ORDER(a->first, b->first);
}

struct candidates {
	struct {
		uint32_t period;
		uint32_t votes;
	} list[CANDIDATES_MAX];
	size_t count;
};

static void vote(struct candidates *candidates, uint32_t period)
{
	size_t i = 0;

	if (period < 2 || period > ITERATIONS_PERIOD_MAX)
		return;
	while (i < candidates->count && candidates->list[i].period != period)
		i++;
	if (i == CANDIDATES_MAX)
		return;
	if (i == candidates->count) {
		candidates->count++;
		candidates->list[i].period = period;
		candidates->list[i].votes = 0;
	}
	candidates->list[i].votes++;
}

static void vote_run(struct candidates *candidates, const struct place *places,
		     const struct run *run)
{
	uint32_t step = run->count > OCCURRENCES_MAX ? run->count / OCCURRENCES_MAX : 1;

	for (uint32_t i = 0; i + 1 < run->count; i += step)
		for (uint32_t k = 1; k <= GAPS_SUMMED && i + k < run->count; k++)
			vote(candidates, places[run->first + i + k].at - places[run->first + i].at);
}

/* Symbols that come at least LEAST_REPEATS times, the rarest first. */
static enum status find_candidates(const struct iterations_op *ops, size_t count,
				   struct candidates *candidates)
{
	struct place *places = calloc(count + 1, sizeof(*places));
	struct run *runs = calloc(count + 1, sizeof(*runs));
	size_t run_count = 0, next;
	enum status status = places && runs ? OK : ERR_NO_SPACE;

	for (size_t i = 0; i < count && status == OK; i++)
		places[i] = (struct place){ ops[i].symbol, (uint32_t)i };
	if (status == OK)
		qsort(places, count, sizeof(*places), by_symbol);
	for (size_t i = 0; i < count && status == OK; i = next) {
		for (next = i; next < count && places[next].symbol == places[i].symbol;)
			next++;
		if (next - i >= LEAST_REPEATS)
			runs[run_count++] = (struct run){ (uint32_t)i, (uint32_t)(next - i) };
	}
	if (status == OK) {
		qsort(runs, run_count, sizeof(*runs), rarest_first);
		for (size_t i = 0; i < run_count && i < RARE_SYMBOLS; i++)
			vote_run(candidates, places, &runs[i]);
	}
	free(places);
	free(runs);
	return status;
}

/* ---- the period ------------------------------------------------------------------------------ */

static double repeats(const struct iterations_op *ops, size_t count, uint32_t period)
{
	size_t same = 0;

	if (period >= count)
		return 0;
	for (size_t i = 0; i + period < count; i++)
		same += ops[i].symbol == ops[i + period].symbol;
	return (double)same / (double)(count - period);
}

static bool is_uniform(const struct iterations_op *ops, size_t from, uint32_t period)
{
	for (uint32_t i = 1; i < period; i++)
		if (ops[from + i].symbol != ops[from].symbol)
			return false;
	return true;
}

/*
 * A multiple of the period repeats as well as the period itself, or worse: the shortest of the best is
 * used. A pattern within the iteration (a repeated layer) repeats slightly worse than the whole.
 */
static uint32_t find_period(const struct iterations_op *ops, size_t count,
			    struct candidates *candidates)
{
	uint32_t best = 0;
	double best_share = 0;

	for (size_t n = 0; n < candidates->count; n++) {
		uint32_t period = candidates->list[n].period;
		double share;

		if (candidates->list[n].votes < LEAST_REPEATS - 1 ||
		    (size_t)period * LEAST_REPEATS > count)
			continue;
		share = repeats(ops, count, period);
		if (share < repeat_share)
			continue;
		if (best == 0 || (period < best && share > best_share - as_good) ||
		    (period > best && share > best_share + as_good)) {
			best = period;
			best_share = share;
		}
	}
	return best;
}

/* ---- cutting --------------------------------------------------------------------------------- */

static bool is_like(const struct iterations_op *ops, size_t count, size_t at, size_t pattern,
		    uint32_t period)
{
	uint32_t wrong = 0, allowed = (uint32_t)((1 - same_share) * period);

	if (at + period > count || ops[at].symbol != ops[pattern].symbol)
		return false;
	for (uint32_t i = 0; i < period && wrong <= allowed; i++)
		wrong += ops[at + i].symbol != ops[pattern + i].symbol;

	return wrong <= allowed;
}

/* The first place where a whole period repeats exactly. */
static size_t find_pattern(const struct iterations_op *ops, size_t count, uint32_t period)
{
	size_t equal = 0;

	for (size_t i = 0; i + period < count; i++) {
		equal = ops[i].symbol == ops[i + period].symbol ? equal + 1 : 0;
		if (equal >= period)
			return i + 1 - period;
	}
	return SIZE_MAX;
}

static uint64_t begin_ns(const struct iterations_op *op)
{
	if (op->issue_ns != 0)
		return op->issue_ns;
	return op->done_ns - (op->done_ns >= op->duration_ns ? op->duration_ns : 0);
}

/*
 * Bounds of exposed communication from NCCL's events alone. At most the time in which an operation could have been on
 * the GPU: its timestamps there, taken inside the kernel and therefore widened; without them from its call, but not
 * before the previous operation of its communicator was over, to its end. At least the timestamps of what ran on the
 * default stream, where nothing else runs meanwhile.
 */
static void bound_exposed(struct iteration *iteration, const struct iterations_op *ops, size_t from,
			  size_t to)
{
	struct busy gpu = BUSY_INIT, host = BUSY_INIT, least = BUSY_INIT;

	for (size_t i = from; i < to; i++) {
		const struct iterations_op *op = &ops[i];
		uint64_t start_ns = op->issue_ns;

		if (!op->is_timed || op->done_ns == 0)
			return;
		if (op->gpu_stop_ns > op->duration_ns) {
			busy_add(&gpu, op->gpu_stop_ns - op->duration_ns, op->gpu_stop_ns);
			if (op->is_default_stream)
				busy_add(&least, op->gpu_stop_ns - op->duration_ns,
					 op->gpu_stop_ns);
			continue;
		}
		if (op->floor_ns > start_ns)
			start_ns = op->floor_ns;
		if (start_ns == 0)
			return;
		if (op->done_ns > start_ns)
			busy_add(&host, start_ns, op->done_ns);
	}
	iteration->is_exposed_known = true;
	iteration->exposed_low_ns = busy_total_ns(&least);
	/* The two are on different clocks: overlap between them is not known. */
	iteration->exposed_high_ns =
		busy_total_ns(&gpu) + busy_total_ns(&host) + (to - from) * KERNEL_ENDS_NS;
}

static struct iteration measure_iteration(const struct iterations_op *ops, size_t from, size_t to,
					  bool is_odd)
{
	struct iteration iteration = { .first_op = from,
				       .ops = (uint32_t)(to - from),
				       .start_ns = begin_ns(&ops[from]),
				       .is_odd = is_odd };
	struct busy busy = BUSY_INIT;

	for (size_t i = from; i < to; i++) {
		iteration.timed += ops[i].is_timed;
		iteration.sum_ns += ops[i].duration_ns;
		iteration.bytes += ops[i].bytes;
		if (ops[i].done_ns > iteration.end_ns)
			iteration.end_ns = ops[i].done_ns;
		if (ops[i].done_ns > ops[i].duration_ns && ops[i].duration_ns > 0)
			busy_add(&busy, ops[i].done_ns - ops[i].duration_ns, ops[i].done_ns);
	}
	iteration.busy_ns = busy_total_ns(&busy);
	iteration.called_ns = iteration.start_ns;
	iteration.next_called_ns = iteration.end_ns;
	bound_exposed(&iteration, ops, from, to);
	return iteration;
}

static enum status add_iteration(struct iterations *iterations, const struct iterations_op *ops,
				 size_t from, size_t to, bool is_odd)
{
	if (!list_grow(&iterations->list, iterations->count, sizeof(*iterations->list)))
		return ERR_NO_SPACE;
	iterations->list[iterations->count++] = measure_iteration(ops, from, to, is_odd);
	iterations->regular += !is_odd;
	return OK;
}

static enum status cut_iterations(struct iterations *iterations, const struct iterations_op *ops,
				  size_t count, size_t pattern)
{
	uint32_t period = iterations->period_ops;
	enum status status = OK;
	size_t at = pattern;

	iterations->warm_up_ops = pattern;
	while (at < count && status == OK) {
		size_t next = at;

		while (next < count && !is_like(ops, count, next, pattern, period))
			next++;
		if (next >= count)
			break;
		if (next > at)
			status = add_iteration(iterations, ops, at, next, true);
		if (status == OK)
			status = add_iteration(iterations, ops, next, next + period, false);
		at = next + period;
	}
	iterations->tail_ops = count - at;
	return status;
}

/* A tag that counts up, each for several operations, marks the user's own iterations. */
static bool is_tagged(const struct iterations_op *ops, size_t count)
{
	size_t changes = 0;

	for (size_t i = 0; i < count; i++) {
		if (ops[i].tag == 0 || (i > 0 && ops[i].tag < ops[i - 1].tag))
			return false;
		changes += i > 0 && ops[i].tag != ops[i - 1].tag;
	}
	return changes + 1 >= LEAST_REPEATS && changes * 2 < count;
}

static enum status cut_by_tag(struct iterations *iterations, const struct iterations_op *ops,
			      size_t count)
{
	enum status status = OK;
	size_t next;

	iterations->is_by_tag = true;
	for (size_t i = 0; i < count && status == OK; i = next) {
		for (next = i; next < count && ops[next].tag == ops[i].tag;)
			next++;
		status = add_iteration(iterations, ops, i, next, false);
	}
	iterations->period_ops = (uint32_t)(count / (iterations->count + !iterations->count));
	return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The nth smallest; 0 if there is none. */
static uint64_t nth_ns(double *values, size_t count, size_t nth)
{
	return count > 0 ? (uint64_t)stats_select(values, count, nth) : 0;
}

/* Their medians; those that were measured count alone. */
static void summarise_exposed(struct iterations *iterations, double *values)
{
	iterations->exposed = iterations->exposed_measured = 0;
	for (size_t i = 0; i < iterations->count; i++) {
		iterations->exposed +=
			!iterations->list[i].is_odd && iterations->list[i].is_exposed_known;
		iterations->exposed_measured +=
			!iterations->list[i].is_odd && iterations->list[i].is_exposed_measured;
	}
	for (int is_high = 0; is_high < 2; is_high++) {
		size_t used = 0;

		for (size_t i = 0; i < iterations->count; i++) {
			const struct iteration *one = &iterations->list[i];

			if (one->is_odd || !one->is_exposed_known ||
			    (iterations->exposed_measured > 0 && !one->is_exposed_measured))
				continue;
			values[used++] =
				(double)(is_high ? one->exposed_high_ns : one->exposed_low_ns);
		}
		if (is_high)
			iterations->exposed_high_ns = nth_ns(values, used, used / 2);
		else
			iterations->exposed_low_ns = nth_ns(values, used, used / 2);
	}
}

enum status iterations_measure(struct iterations *iterations,
			       const struct exposed_activity *activity)
{
	double *values = calloc(iterations->regular + 1, sizeof(*values));
	enum status status = values ? OK : ERR_NO_SPACE;

	for (size_t i = 0; i < iterations->count && status == OK; i++) {
		struct iteration *one = &iterations->list[i];
		struct exposed_time time;

		if (one->called_ns < activity->first_ns ||
		    one->next_called_ns > activity->last_ns ||
		    one->next_called_ns <= one->called_ns)
			continue;
		status = exposed_measure(activity, one->called_ns, one->next_called_ns, &time);
		if (status != OK || time.kernels == 0)
			continue;
		one->is_exposed_known = one->is_exposed_measured = true;
		one->exposed_low_ns = one->exposed_high_ns = time.exposed_ns;
	}
	if (status == OK)
		summarise_exposed(iterations, values);
	free(values);
	return status;
}

/*
 * A host that runs ahead of the GPU calls the next iterations while the GPU is still in this one, until a queue is full:
 * the time between two calls is then not that of an iteration. The time between two ends is.
 */
static bool is_host_ahead(const struct iterations *iterations)
{
	size_t ahead = 0;

	for (size_t i = 0; i + 1 < iterations->count; i++) {
		const struct iteration *one = &iterations->list[i];
		uint64_t next_ns = iterations->list[i + 1].start_ns;
		uint64_t end_ns = i > 0 ? iterations->list[i - 1].end_ns : one->start_ns;
		uint64_t length_ns = one->end_ns > end_ns ? one->end_ns - end_ns : 0;

		/* Without the end of each there is nothing better. */
		if (one->end_ns <= one->start_ns)
			return false;
		ahead += one->end_ns > next_ns && one->end_ns - next_ns > length_ns / 4;
	}
	return ahead > 1 && ahead * 20 > iterations->count;
}

/* Until now end_ns is the end of the last operation. */
static void set_ends(struct iterations *iterations)
{
	uint64_t before_ns = 0;

	iterations->is_by_end = is_host_ahead(iterations);
	for (size_t i = 0; i < iterations->count; i++) {
		struct iteration *one = &iterations->list[i];

		if (i + 1 < iterations->count && iterations->list[i + 1].called_ns > one->called_ns)
			one->next_called_ns = iterations->list[i + 1].called_ns;
		if (iterations->is_by_end) {
			if (before_ns > one->start_ns && before_ns < one->end_ns)
				one->start_ns = before_ns;
			before_ns = one->end_ns;
		} else {
			one->end_ns = one->next_called_ns;
		}
		/* Of the last one, if no end of its operations was seen, it is not known how long it took. */
		if (one->end_ns <= one->start_ns) {
			one->end_ns = one->start_ns;
			iterations->regular -= !one->is_odd;
			one->is_odd = true;
		}
	}
}

static enum status summarise_iterations(struct iterations *iterations)
{
	double *values = calloc(iterations->regular + 1, sizeof(*values));
	size_t used = 0;

	if (values == NULL)
		return ERR_NO_SPACE;
	set_ends(iterations);
	for (size_t i = 0; i < iterations->count; i++) {
		const struct iteration *iteration = &iterations->list[i];
		uint64_t ns = iteration->end_ns > iteration->start_ns
				      ? iteration->end_ns - iteration->start_ns
				      : 0;

		if (iteration->is_odd)
			continue;
		values[used++] = (double)ns;
		if (ns > iterations->slowest_ns) {
			iterations->slowest_ns = ns;
			iterations->slowest = i;
		}
	}
	iterations->median_ns = nth_ns(values, used, used / 2);
	iterations->p99_ns = nth_ns(values, used, (used * 99 + 99) / 100 - 1);
	used = 0;
	for (size_t i = 0; i < iterations->count; i++)
		if (!iterations->list[i].is_odd &&
		    iterations->list[i].timed == iterations->list[i].ops)
			values[used++] = (double)iterations->list[i].busy_ns;
	iterations->timed = used;
	iterations->median_busy_ns = used ? nth_ns(values, used, used / 2) : 0;
	summarise_exposed(iterations, values);
	free(values);
	return OK;
}

/* From the first `sample` operations; *pattern is SIZE_MAX if they do not repeat. */
static enum status find_in(struct iterations *iterations, const struct iterations_op *ops,
			   size_t sample, size_t *pattern)
{
	/* In a short recording the warm-up is so large a part that nearly nothing repeats. */
	const size_t skipped[] = { 0, sample / 4 };
	struct candidates *candidates = calloc(1, sizeof(*candidates));
	enum status status = candidates ? OK : ERR_NO_SPACE;

	*pattern = SIZE_MAX;
	iterations->period_ops = 0;
	for (size_t i = 0; i < 2 && status == OK && iterations->period_ops == 0; i++) {
		candidates->count = 0;
		status = find_candidates(ops + skipped[i], sample - skipped[i], candidates);
		if (status == OK)
			iterations->period_ops =
				find_period(ops + skipped[i], sample - skipped[i], candidates);
	}
	free(candidates);
	if (iterations->period_ops > 0)
		*pattern = find_pattern(ops, sample, iterations->period_ops);
	if (*pattern != SIZE_MAX && is_uniform(ops, *pattern, iterations->period_ops))
		*pattern = SIZE_MAX;
	return status;
}

static enum status find_by_pattern(struct iterations *iterations, const struct iterations_op *ops,
				   size_t count)
{
	size_t pattern = SIZE_MAX;
	enum status status = OK;

	if (count > SAMPLE)
		status = find_in(iterations, ops, SAMPLE, &pattern);
	if (status == OK && pattern == SIZE_MAX)
		status = find_in(iterations, ops, count, &pattern);
	if (status != OK || pattern == SIZE_MAX) {
		iterations->period_ops = 0;
		return status;
	}
	return cut_iterations(iterations, ops, count, pattern);
}

enum status iterations_find(struct iterations *iterations, const struct iterations_op *ops,
			    size_t count)
{
	uint32_t rank = iterations->rank;
	enum status status = OK;

	*iterations = (struct iterations){ .rank = rank, .ops = count };
	if (count < 2 * LEAST_REPEATS)
		return OK;
	status = is_tagged(ops, count) ? cut_by_tag(iterations, ops, count)
				       : find_by_pattern(iterations, ops, count);
	iterations->is_found = iterations->regular >= LEAST_REPEATS;
	if (status == OK && iterations->is_found)
		status = summarise_iterations(iterations);
	if (status != OK || !iterations->is_found) {
		iterations_release(iterations);
		*iterations = (struct iterations){ .rank = rank, .ops = count };
	}
	return status;
}
