/*
 * Changes of one series.
 *
 * The series is cut where the means before and after differ most relative to their spread (Welch's t), if
 * that is not by chance; then both halves are examined in the same way. A temporary change hides in both
 * halves: where no cut is found, the section that differs most from its surroundings is tested.
 */
#include "analysis/timeline_report.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/align.h"
#include "analysis/stats.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/status.h"
#include "common/text.h"

/* Common time of a match's end. */
static inline uint64_t windows_slot_ns(const struct timeline_report *report,
				       const struct match_lane *lane, const struct match_slot *slot)
{
	const struct job_comm *comm = &report->job.comms[lane->comm];

	return align_ns(&report->align, report->job.seats[comm->seats[slot->owner]].process,
			slot->end_ns);
}

enum { CHANGE_POINTS_MAX = 128 };

/* What happens by chance more often is no change. */
#define CHANGE_CHANCE 1e-3

/* A match, and later several combined. */
struct change_point {
	uint64_t ns;
	double value;	/* log of busbw */
	double cost_ns; /* shortest duration x ranks */
	uint32_t matches;
};

/* One change in one communicator. */
struct change_raw {
	uint32_t comm;
	uint8_t function;
	uint8_t size_class;
	bool is_wire;
	uint64_t at_ns;
	double before;
	double after;
	double chance;
	double lost_ns;
	uint64_t matches_before;
	uint64_t matches_after;
};

/* What changes are counted against: the communicators examined. */
struct change_tested {
	uint8_t kind, function, size_class;
	bool is_wire;
	uint32_t comms;
};

/* Both lists are bounded by the number of matches kept: a series has at least sixteen, a change five on
 * each side. */
struct change_search {
	const struct timeline_report *report;
	const struct matches *matches;
	struct change_raw *raws;
	size_t raw_count;
	size_t series; /* tested so far */
	struct change_tested *tested;
	size_t tested_count;
	enum status status;
};

enum { SIDE_LEAST = 5 };
static const double percent_that_matters = 5;

static double median_value(const struct change_point *points, size_t from, size_t to)
{
	double values[CHANGE_POINTS_MAX];

	for (size_t i = from; i < to; i++)
		values[i - from] = points[i].value;
	return stats_median(values, to - from);
}

static struct stats_sample sample_of(const struct change_point *points, size_t from, size_t to)
{
	double values[CHANGE_POINTS_MAX];

	for (size_t i = from; i < to; i++)
		values[i - from] = points[i].value;
	return stats_series(values, to - from);
}

static double chance_of_two(const struct stats_sample *a, const struct stats_sample *b)
{
	/* Clocks and durations are integers: even equal ones are not known more precisely. */
	double error_a = fmax(a->error, 1e-3), error_b = fmax(b->error, 1e-3);
	double square_a = error_a * error_a, square_b = error_b * error_b;
	double freedom = (square_a + square_b) * (square_a + square_b) /
			 (square_a * square_a / ((double)a->count - 1) +
			  square_b * square_b / ((double)b->count - 1));

	return 2 * stats_student(fabs(a->mean - b->mean) / sqrt(square_a + square_b), freedom);
}

static double chance_of_cut(const struct change_point *points, size_t from, size_t cut, size_t to)
{
	struct stats_sample a = sample_of(points, from, cut), b = sample_of(points, cut, to);

	return chance_of_two(&a, &b);
}

/* Where the two sides differ most, from sums alone. */
static size_t best_cut(const struct change_point *points, size_t from, size_t to)
{
	double total = 0, left = 0, most = -1;
	size_t best = from;

	for (size_t i = from; i < to; i++)
		total += points[i].value;
	for (size_t cut = from + 1; cut + SIDE_LEAST <= to; cut++) {
		double n = (double)(cut - from), m = (double)(to - cut), gap;

		left += points[cut - 1].value;
		gap = left / n - (total - left) / m;
		if (cut < from + SIDE_LEAST || gap * gap * n * m <= most)
			continue;
		most = gap * gap * n * m;
		best = cut;
	}
	return best;
}

static void add_raw(struct change_search *search, const struct change_raw *like,
		    const struct change_point *points, size_t from, size_t cut, size_t to)
{
	struct change_raw *raw;

	if (!list_grow(&search->raws, search->raw_count, sizeof(*search->raws))) {
		search->status = ERR_NO_SPACE;
		return;
	}
	raw = &search->raws[search->raw_count++];
	*raw = *like;
	raw->at_ns = points[cut].ns;
	raw->before = exp(median_value(points, from, cut));
	raw->after = exp(median_value(points, cut, to));
	for (size_t i = from; i < to; i++) {
		if (i < cut) {
			raw->matches_before += points[i].matches;
			continue;
		}
		raw->matches_after += points[i].matches;
		raw->lost_ns += points[i].cost_ns * (1 - raw->after / raw->before);
	}
	if (raw->lost_ns < 0)
		raw->lost_ns = 0;
}

struct stretch {
	size_t from;
	size_t to;
};

/* Points from .. to - 1 that differ most from those before and after them. */
static struct stretch best_stretch(const struct change_point *points, size_t from, size_t to)
{
	struct stretch best = { from, from };
	double sums[CHANGE_POINTS_MAX + 1] = { 0 }, most = -1;

	for (size_t i = from; i < to; i++)
		sums[i - from + 1] = sums[i - from] + points[i].value;
	for (size_t a = from + SIDE_LEAST; a + 2 * SIDE_LEAST <= to; a++)
		for (size_t b = a + SIDE_LEAST; b + SIDE_LEAST <= to; b++) {
			double n = (double)(b - a), m = (double)(to - from) - n;
			double inside = sums[b - from] - sums[a - from];
			double gap = inside / n - (sums[to - from] - inside) / m;

			if (gap * gap * n * m <= most)
				continue;
			most = gap * gap * n * m;
			best = (struct stretch){ a, b };
		}
	return best;
}

static double chance_of_stretch(const struct change_point *points, size_t from, struct stretch in,
				size_t to)
{
	struct stats_sample inside = sample_of(points, in.from, in.to), outside;
	double values[CHANGE_POINTS_MAX];
	size_t count = 0;

	for (size_t i = from; i < to; i++)
		if (i < in.from || i >= in.to)
			values[count++] = points[i].value;
	outside = stats_series(values, count);
	return chance_of_two(&inside, &outside);
}

/* It changes, and changes back. */
static void cut_stretch(struct change_search *search, struct change_raw *like,
			const struct change_point *points, size_t from, size_t to)
{
	struct stretch in = best_stretch(points, from, to);
	double before, inside, after, tests = (double)((to - from) * (to - from)) / 2;

	if (in.to == in.from)
		return;
	before = median_value(points, from, in.from);
	inside = median_value(points, in.from, in.to);
	after = median_value(points, in.to, to);
	like->chance = chance_of_stretch(points, from, in, to) * tests;
	if (fabs(exp(inside - before) - 1) * 100 < percent_that_matters ||
	    like->chance > CHANGE_CHANCE || fabs(after - before) > fabs(inside - before) / 2)
		return;
	add_raw(search, like, points, from, in.from, in.to);
	add_raw(search, like, points, in.from, in.to, to);
}

/* Changes of one series, points [from, to), are added to search->raws, with the fields of `like`. */
static void windows_cut_series(struct change_search *search, struct change_raw *like,
			       const struct change_point *points, size_t from, size_t to,
			       unsigned int depth)
{
	size_t cut;
	double change;

	if (to - from < 2 * SIDE_LEAST || depth == 0)
		return;
	cut = best_cut(points, from, to);
	change = exp(median_value(points, cut, to) - median_value(points, from, cut)) - 1;
	like->chance = chance_of_cut(points, from, cut, to) * (double)(to - from);
	if (fabs(change) * 100 < percent_that_matters || like->chance > CHANGE_CHANCE) {
		cut_stretch(search, like, points, from, to);
		return;
	}
	add_raw(search, like, points, from, cut, to);
	windows_cut_series(search, like, points, from, cut, depth - 1);
	windows_cut_series(search, like, points, cut, to, depth - 1);
}

/* Changes of several communicators at about the same time are one. */

static int by_key_and_time(const void *left, const void *right)
{
	const struct change_raw *a = left, *b = right;

	return ORDER(a->function, b->function) ?:
	       ORDER(a->size_class, b->size_class) ?:
	       ORDER(a->is_wire, b->is_wire) ?:
	       ORDER(a->at_ns, b->at_ns);
}

/* The median over the combined changes, of before or after. */
static double median_side(const struct change_raw *const *list, size_t count, bool is_after)
{
	double values[64];
	size_t used = count < 64 ? count : 64;

	for (size_t i = 0; i < used; i++)
		values[i] =
			is_after ? list[i * count / used]->after : list[i * count / used]->before;
	return stats_median(values, used);
}

static uint32_t comms_tested(const struct change_search *search,
			     const struct windows_change *change)
{
	for (size_t i = 0; i < search->tested_count; i++)
		if (search->tested[i].kind == (uint8_t)change->kind &&
		    search->tested[i].function == change->function &&
		    search->tested[i].size_class == change->size_class &&
		    search->tested[i].is_wire == change->is_wire)
			return search->tested[i].comms;
	return 0;
}

/* State while combining changes. */
struct grouping {
	struct windows *windows;
	struct change_search *search;
	const struct change_raw **list; /* of the current group */
	bool *is_taken;			/* per raw */
	size_t *group_of;		/* per communicator: the last group that has it, from 1 */
	size_t groups;
};

static void add_change(const struct grouping *of, size_t count)
{
	const struct change_raw *const *list = of->list;
	const struct change_search *search = of->search;
	const struct job *job = &search->report->job;
	struct windows *windows = of->windows;
	struct windows_change change = { .kind = job->comms[list[0]->comm].kind,
					 .function = list[0]->function,
					 .size_class = list[0]->size_class,
					 .is_wire = list[0]->is_wire,
					 .at_ns = list[count / 2]->at_ns,
					 .example_comm = list[0]->comm,
					 .confidence = 1 };
	double lost_ns = 0, chance = 1;

	change.before = median_side(list, count, false);
	change.after = median_side(list, count, true);
	change.percent = (change.after - change.before) / change.before * 100;
	change.window = (uint32_t)((change.at_ns - windows->start_ns) / windows->width_ns);
	for (size_t i = 0; i < count; i++) {
		change.matches_before += list[i]->matches_before;
		change.matches_after += list[i]->matches_after;
		change.ranks_changed += job->comms[list[i]->comm].seat_count;
		lost_ns += list[i]->lost_ns * search->report->comms[list[i]->comm].scale;
		chance = list[i]->chance < chance ? list[i]->chance : chance;
	}
	change.lost_ns = units_whole(lost_ns);
	change.comms_changed = (uint32_t)count;
	change.comms = comms_tested(search, &change);
	change.is_everywhere = change.comms_changed * 5 >= change.comms * 4;
	change.confidence = 1 - fmin(1, chance * (double)search->series);
	if (change.confidence <= 1 - CHANGE_CHANCE)
		return;
	if (list_grow(&windows->changes, windows->change_count, sizeof(change)))
		windows->changes[windows->change_count++] = change;
	else
		of->search->status = ERR_NO_SPACE;
}

/* raws of one function and size class, by time: groups of one kind and direction at about one time. */
static void group_changes(struct grouping *of, size_t from, size_t to)
{
	const struct job *job = &of->search->report->job;

	for (size_t i = from; i < to; i++) {
		const struct change_raw *first = &of->search->raws[i];
		size_t count = 0;

		if (of->is_taken[i])
			continue;
		of->groups++;
		for (size_t j = i; j < to; j++) {
			const struct change_raw *raw = &of->search->raws[j];

			if (raw->at_ns - first->at_ns > 3 * of->windows->width_ns)
				break;
			if (of->is_taken[j] || of->group_of[raw->comm] == of->groups ||
			    job->comms[raw->comm].kind != job->comms[first->comm].kind ||
			    (raw->after < raw->before) != (first->after < first->before))
				continue;
			of->is_taken[j] = true;
			of->group_of[raw->comm] = of->groups;
			of->list[count++] = raw;
		}
		add_change(of, count);
	}
}

static int most_important_first(const void *left, const void *right)
{
	const struct windows_change *a = left, *b = right;
	double weight_a = fabs(a->percent) * (double)(a->matches_before + a->matches_after);
	double weight_b = fabs(b->percent) * (double)(b->matches_before + b->matches_after);

	return ORDER(b->lost_ns, a->lost_ns) ?: ORDER(weight_b, weight_a);
}

static void keep_most_important(struct windows *windows)
{
	if (windows->change_count > 1)
		qsort(windows->changes, windows->change_count, sizeof(*windows->changes),
		      most_important_first);
	if (windows->change_count <= WINDOWS_CHANGES_MAX)
		return;
	windows->changes_left_out = windows->change_count - WINDOWS_CHANGES_MAX;
	windows->change_count = WINDOWS_CHANGES_MAX;
}

static void group_all(struct grouping *of)
{
	struct change_search *search = of->search;
	size_t next;

	for (size_t i = 0; i < search->raw_count; i = next) {
		for (next = i; next < search->raw_count &&
			       search->raws[next].function == search->raws[i].function &&
			       search->raws[next].size_class == search->raws[i].size_class &&
			       search->raws[next].is_wire == search->raws[i].is_wire;)
			next++;
		group_changes(of, i, next);
	}
	keep_most_important(of->windows);
}

/* Search->raws become windows->changes, of which the most important are kept. Sorts both. */
static enum status windows_group_changes(struct windows *windows, struct change_search *search)
{
	struct grouping of = { .windows = windows, .search = search };

	if (search->raw_count == 0)
		return OK;
	of.list = calloc(search->raw_count, sizeof(*of.list));
	of.is_taken = calloc(search->raw_count, sizeof(*of.is_taken));
	of.group_of = calloc(search->report->job.comm_count, sizeof(*of.group_of));
	if (of.list != NULL && of.is_taken != NULL && of.group_of != NULL) {
		qsort(search->raws, search->raw_count, sizeof(*search->raws), by_key_and_time);
		group_all(&of);
	} else {
		search->status = ERR_NO_SPACE;
	}
	free(of.list);
	free(of.is_taken);
	free(of.group_of);
	return search->status;
}

/*
 * Lasting changes of a transfer's speed.
 *
 * A match's shortest duration is the transfer without waiting. Where there are only network spans it is the time on the
 * wire of the fastest sender's transfers, which has neither waiting nor queueing in it. Per communicator and kind of
 * call (function, size class), the logarithms of busbw, or of transfers per second, in the order of the matches are a series; several are combined by
 * medians, so that single slow ones do not count. Each series is cut where it changes, and related changes
 * are combined.
 */

enum { MEETINGS_LEAST = 16 };

static void count_tested(struct change_search *search, const struct change_raw *like)
{
	uint8_t kind = (uint8_t)search->report->job.comms[like->comm].kind;
	size_t i = 0;

	while (i < search->tested_count &&
	       (search->tested[i].kind != kind || search->tested[i].function != like->function ||
		search->tested[i].size_class != like->size_class ||
		search->tested[i].is_wire != like->is_wire))
		i++;
	if (i == search->tested_count) {
		if (!list_grow(&search->tested, i, sizeof(*search->tested))) {
			search->status = ERR_NO_SPACE;
			return;
		}
		search->tested[search->tested_count++] =
			(struct change_tested){ kind, like->function, like->size_class,
						like->is_wire, 0 };
	}
	search->tested[i].comms++;
}

/* Time on the wire needs no size. */
static bool is_counted(const struct match_lane *lane, const struct match_slot *slot, int32_t nranks)
{
	return slot->count > 1 && slot->count * 4 >= nranks * 3 &&
	       (slot->bytes > 0 || match_has_spans(lane)) && slot->least_ns > 0;
}

/* The matches of one kind, while they are read: at most CHANGE_POINTS_MAX points, each the median of its
 * neighbours. */
struct series {
	double factor;	/* of busbw */
	uint64_t count; /* total number of matches */
	uint64_t taken;
	uint64_t next;		     /* added when the current point is complete */
	struct change_point *points; /* NULL: too few matches */
	size_t point_count;
	size_t points_wanted;
	double *rates; /* of the current point: busbw */
	bool is_wire;  /* 1 / time on the wire instead */
	struct change_point all;
};

static void end_point(struct series *series)
{
	series->all.value = log(stats_median(series->rates, series->all.matches));
	series->points[series->point_count++] = series->all;
	series->all = (struct change_point){ .matches = 0 };
	series->next = series->count * (series->point_count + 1) / series->points_wanted;
}

static inline void take_match(const struct change_search *search, const struct match_lane *lane,
			      const struct match_slot *slot, struct series *series)
{
	if (series->all.matches == 0)
		series->all.ns = windows_slot_ns(search->report, lane, slot);
	series->rates[series->all.matches++] =
		(series->is_wire ? 1 : slot->bytes * series->factor) * 1e9 / (double)slot->least_ns;
	/* What more time on the wire costs is not known. */
	series->all.cost_ns += series->is_wire ? 0 : (double)slot->least_ns * slot->count;
	if (++series->taken == series->next)
		end_point(series);
}

/* One pass over the lane, in the order of its matches. */
static void take_matches(const struct change_search *search, const struct match_lane *lane,
			 const struct match_order *order, struct series *list)
{
	int32_t nranks = search->report->job.comms[lane->comm].nranks;

	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		const struct match_chunk *chunk = lane->chunks[order[i].chunk];

		for (uint32_t bits = lane->briefs[order[i].chunk].occupied; bits != 0;
		     bits &= bits - 1) {
			const struct match_slot *slot = &chunk->slots[__builtin_ctz(bits)];
			struct series *series = &list[slot->kind];

			if (series->points != NULL && is_counted(lane, slot, nranks))
				take_match(search, lane, slot, series);
		}
	}
}

static void look_at_kind(struct change_search *search, const struct match_lane *lane, uint32_t kind,
			 const struct series *series)
{
	const struct match_kind *of = &search->matches->comms[lane->comm].kinds[kind];
	struct change_raw like = { .comm = lane->comm,
				   .function = (uint8_t)of->names,
				   .size_class = of->size_class,
				   .is_wire = match_has_spans(lane) };

	if (series->points == NULL)
		return;
	count_tested(search, &like);
	search->series++;
	windows_cut_series(search, &like, series->points, 0, series->point_count, 3);
}

static void count_matches(const struct change_search *search, const struct match_lane *lane,
			  struct match_order *order, struct series *list)
{
	int32_t nranks = search->report->job.comms[lane->comm].nranks;

	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		order[i] = (struct match_order){ lane->briefs[i].number, i };
		for (uint32_t bits = lane->briefs[i].occupied; bits != 0; bits &= bits - 1) {
			const struct match_slot *slot =
				&lane->chunks[i]->slots[__builtin_ctz(bits)];

			list[slot->kind].count += is_counted(lane, slot, nranks);
		}
	}
	match_order_sort(order, lane->chunk_count);
}

/* Memory for those with enough matches; false: none left. */
static bool start_series(struct change_search *search, const struct match_lane *lane,
			 struct series *list)
{
	const struct match_comm *comm = &search->matches->comms[lane->comm];

	for (uint32_t kind = 1; kind < comm->kind_count; kind++) {
		struct series *series = &list[kind];

		series->factor = op_bus_factor((uint8_t)comm->kinds[kind].names,
					       search->report->job.comms[lane->comm].nranks);
		series->is_wire = match_has_spans(lane);
		if (series->count < MEETINGS_LEAST || (series->factor <= 0 && !series->is_wire))
			continue;
		series->points_wanted =
			series->count < CHANGE_POINTS_MAX ? series->count : CHANGE_POINTS_MAX;
		series->next = series->count / series->points_wanted;
		series->points = calloc(series->points_wanted, sizeof(*series->points));
		series->rates =
			calloc(series->count / series->points_wanted + 2, sizeof(*series->rates));
		if (series->points == NULL || series->rates == NULL)
			return false;
	}
	return true;
}

static void look_at_lane(struct change_search *search, const struct match_lane *lane)
{
	uint32_t kind_count = search->matches->comms[lane->comm].kind_count;
	struct match_order *order = calloc(lane->chunk_count + 1, sizeof(*order));
	struct series *list = calloc(kind_count + 1, sizeof(*list));

	search->status = order && list ? OK : ERR_NO_SPACE;
	if (search->status == OK) {
		count_matches(search, lane, order, list);
		search->status = start_series(search, lane, list) ? OK : ERR_NO_SPACE;
	}
	if (search->status == OK) {
		take_matches(search, lane, order, list);
		for (uint32_t kind = 1; kind < kind_count; kind++)
			look_at_kind(search, lane, kind, &list[kind]);
	}
	for (uint32_t kind = 0; list != NULL && kind < kind_count; kind++) {
		free(list[kind].points);
		free(list[kind].rates);
	}
	free(order);
	free(list);
}

/* Fills windows->changes. */
static enum status windows_find_changes(struct windows *windows,
					const struct timeline_report *report,
					const struct matches *matches)
{
	struct change_search search = { .report = report, .matches = matches };
	enum status status;

	for (size_t c = 0; c < report->job.comm_count; c++)
		for (unsigned int i = 0; i < MATCH_LANES && search.status == OK; i++)
			if (matches->comms[c].lanes[i] != NULL)
				look_at_lane(&search, matches->comms[c].lanes[i]);
	status = search.status;
	if (status == OK)
		status = windows_group_changes(windows, &search);
	free(search.raws);
	free(search.tested);
	return status;
}

enum { OPS_PER_WINDOW = 4, WIDTH_LEAST_NS = 1000 };

void windows_release(struct windows *windows)
{
	for (size_t i = 0; i < windows->series_count; i++)
		free(windows->series[i].calls);
	free(windows->series);
	free(windows->waiting.first_rank);
	free(windows->waiting.last_rank);
	free(windows->waiting.wait_ns);
	free(windows->waiting.joined_ns);
	free(windows->changes);
	*windows = (struct windows){ .count = 0 };
}

/* Enough operations in each window to be meaningful. */
static void choose_width(struct windows *windows, const struct timeline_report *report,
			 uint32_t most)
{
	uint64_t span_ns = report->end_ns - report->start_ns, calls = 0, wanted;

	for (size_t r = 0; r < report->job.rank_count; r++)
		if (report->ranks[r].is_shown && report->ranks[r].timed > calls)
			calls = report->ranks[r].timed;
	/* Where nothing is timed, changes of time on the wire still have a place. */
	for (size_t r = 0; report->total.timed == 0 && r < report->job.rank_count; r++)
		if (report->ranks[r].is_shown && report->ranks[r].calls > calls)
			calls = report->ranks[r].calls;
	wanted = calls / OPS_PER_WINDOW;
	wanted = wanted < 1 ? 1 : wanted > most ? most : wanted;
	windows->start_ns = report->start_ns;
	windows->end_ns = report->end_ns;
	windows->width_ns = span_ns / wanted + 1;
	if (windows->width_ns < WIDTH_LEAST_NS)
		windows->width_ns = WIDTH_LEAST_NS;
	windows->count = (uint32_t)(span_ns / windows->width_ns) + 1;
}

/* A share of something for each window that [from, to) touches. */
struct lay {
	uint32_t first;
	uint32_t last;
	double first_share;
	double middle_share;
	double last_share;
};

static uint32_t window_of(const struct windows *windows, uint64_t ns)
{
	uint64_t index = ns > windows->start_ns ? (ns - windows->start_ns) / windows->width_ns : 0;

	return index < windows->count ? (uint32_t)index : windows->count - 1;
}

static struct lay lay_over(const struct windows *windows, uint64_t from_ns, uint64_t to_ns)
{
	struct lay lay = { .first = window_of(windows, from_ns),
			   .last = window_of(windows, to_ns > from_ns ? to_ns - 1 : from_ns) };
	double span = (double)(to_ns - from_ns), before;

	lay.first_share = lay.last_share = 1;
	if (lay.first == lay.last || to_ns <= from_ns)
		return lay;
	before = (double)(windows->start_ns + (lay.first + 1) * windows->width_ns - from_ns);
	lay.first_share = before / span;
	lay.middle_share = (double)windows->width_ns / span;
	lay.last_share =
		1 - lay.first_share - lay.middle_share * (double)(lay.last - lay.first - 1);
	return lay;
}

static double window_share(const struct lay *lay, uint32_t window)
{
	if (window == lay->first)
		return lay->first_share;
	return window == lay->last ? lay->last_share : lay->middle_share;
}

/* ---- series ---------------------------------------------------------------------------------- */

static struct windows_series *find_series(struct windows *windows, enum job_comm_kind kind,
					  uint8_t function, enum status *status)
{
	struct windows_series *series;
	double *values;

	for (size_t i = 0; i < windows->series_count; i++)
		if (windows->series[i].kind == kind && windows->series[i].function == function)
			return &windows->series[i];
	if (windows->series_count == WINDOWS_SERIES_MAX) {
		windows->series_left_out++;
		return NULL;
	}
	if (windows->series == NULL)
		windows->series = calloc(WINDOWS_SERIES_MAX, sizeof(*windows->series));
	values = calloc(6 * (size_t)windows->count, sizeof(*values));
	if (windows->series == NULL || values == NULL) {
		free(values);
		*status = ERR_NO_SPACE;
		return NULL;
	}
	series = &windows->series[windows->series_count++];
	*series = (struct windows_series){
		.kind = kind,
		.function = function,
		.calls = values,
		.bytes = values + windows->count,
		.time_ns = values + 2 * (size_t)windows->count,
		.bus_bytes = values + 3 * (size_t)windows->count,
		.move_bus_bytes = values + 4 * (size_t)windows->count,
		.move_ns = values + 5 * (size_t)windows->count,
	};
	return series;
}

static void add_stretch(struct windows *windows, struct windows_series *series,
			const struct windows_stretch *from, const struct lay *lay)
{
	for (uint32_t w = lay->first; w <= lay->last; w++) {
		double share = window_share(lay, w);

		series->calls[w] += from->calls * share;
		series->bytes[w] += from->bytes * share;
		series->time_ns[w] += from->time_ns * share;
		series->bus_bytes[w] += from->bus_bytes * share;
	}
	(void)windows;
}

static enum status add_local(struct windows *windows, const struct timeline_report *report,
			     uint32_t process, const struct windows_local *local)
{
	enum status status = OK;

	for (uint32_t i = 0; i < local->series_count && status == OK; i++) {
		struct windows_series *series =
			find_series(windows, (enum job_comm_kind)(local->series_id[i] >> 8),
				    (uint8_t)local->series_id[i], &status);

		for (uint32_t j = 0; series != NULL && j < local->used; j++) {
			uint64_t from_ns = local->origin_ns + j * local->width_ns;
			struct lay lay;

			if (local->stretches[i][j].calls <= 0)
				continue;
			lay = lay_over(
				windows, align_ns(&report->align, process, from_ns),
				align_ns(&report->align, process, from_ns + local->width_ns));
			add_stretch(windows, series, &local->stretches[i][j], &lay);
		}
	}
	return status;
}

/* The window of times that are nearly in order: a division is the exception. */
struct place {
	uint64_t start_ns;
	uint32_t window;
};

static inline uint32_t window_place(const struct windows *windows, struct place *place, uint64_t ns)
{
	if (ns - place->start_ns >= windows->width_ns) {
		place->window = window_of(windows, ns);
		place->start_ns = windows->start_ns + place->window * windows->width_ns;
		/* Before the first or after the last window: not to be mistaken for it. */
		if (ns - place->start_ns >= windows->width_ns)
			place->start_ns = UINT64_MAX;
	}
	return place->window;
}

/* The bytes of its matches go to the series of their kinds; returns when they ended, as a range of windows. */
static struct lay add_chunk(const struct windows *windows, const struct timeline_report *report,
			    const struct match_lane *lane, uint32_t chunk,
			    struct windows_series *const *series, const double *factors)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;
	struct place place = { .start_ns = UINT64_MAX };

	for (uint32_t bits = lane->briefs[chunk].occupied; bits != 0; bits &= bits - 1) {
		const struct match_slot *slot = &lane->chunks[chunk]->slots[__builtin_ctz(bits)];
		struct windows_series *of = series[slot->kind];
		uint64_t ns = windows_slot_ns(report, lane, slot);

		first_ns = ns < first_ns ? ns : first_ns;
		last_ns = ns > last_ns ? ns : last_ns;
		if (of == NULL || slot->bytes <= 0 || slot->count < 2)
			continue;
		window_place(windows, &place, ns);
		of->move_bus_bytes[place.window] += (double)slot->bytes * factors[slot->kind];
		of->move_ns[place.window] += (double)slot->least_ns;
	}
	return last_ns >= first_ns ? lay_over(windows, first_ns, last_ns + 1)
				   : (struct lay){ .first = 0 };
}

/* lays: of each chunk, when its matches ended. */
static enum status add_lane(struct windows *windows, const struct timeline_report *report,
			    const struct matches *matches, const struct match_lane *lane,
			    struct lay *lays)
{
	const struct job_comm *comm = &report->job.comms[lane->comm];
	const struct match_comm *of = &matches->comms[lane->comm];
	struct windows_series **series = calloc(of->kind_count + 1, sizeof(*series));
	double *factors = calloc(of->kind_count + 1, sizeof(*factors));
	enum status status = series && factors ? OK : ERR_NO_SPACE;

	for (uint32_t k = 1; k < of->kind_count && status == OK; k++) {
		series[k] = find_series(windows, comm->kind, (uint8_t)of->kinds[k].names, &status);
		factors[k] = op_bus_factor((uint8_t)of->kinds[k].names, comm->nranks);
	}
	for (uint32_t i = 0; i < lane->chunk_count && status == OK; i++)
		lays[i] = add_chunk(windows, report, lane, i, series, factors);
	free(series);
	free(factors);
	return status;
}

/* ---- waiting, rank by window ----------------------------------------------------------------- */

static enum status start_matrix(struct windows *windows, const struct timeline_report *report,
				uint32_t *row_of)
{
	struct windows_matrix *matrix = &windows->waiting;
	uint32_t shown = 0, next = 0;

	for (size_t r = 0; r < report->job.rank_count; r++)
		shown += report->ranks[r].is_shown;
	matrix->ranks_per_row = shown / WINDOWS_ROWS + (shown % WINDOWS_ROWS != 0);
	if (matrix->ranks_per_row == 0)
		matrix->ranks_per_row = 1;
	matrix->rows = (shown + matrix->ranks_per_row - 1) / matrix->ranks_per_row;
	matrix->first_rank = calloc(matrix->rows + 1, sizeof(*matrix->first_rank));
	matrix->last_rank = calloc(matrix->rows + 1, sizeof(*matrix->last_rank));
	matrix->wait_ns =
		calloc((size_t)matrix->rows * windows->count + 1, sizeof(*matrix->wait_ns));
	matrix->joined_ns =
		calloc((size_t)matrix->rows * windows->count + 1, sizeof(*matrix->joined_ns));
	if (!matrix->first_rank || !matrix->last_rank || !matrix->wait_ns || !matrix->joined_ns)
		return ERR_NO_SPACE;
	for (uint32_t r = 0; r < report->job.rank_count; r++) {
		row_of[r] = UINT32_MAX;
		if (!report->ranks[r].is_shown)
			continue;
		row_of[r] = next / matrix->ranks_per_row;
		if (next % matrix->ranks_per_row == 0)
			matrix->first_rank[row_of[r]] = r;
		matrix->last_rank[row_of[r]] = r;
		next++;
	}
	return OK;
}

static void add_part(struct windows *windows, const struct match_lane *lane,
		     const struct match_part *part, const struct lay *lay, uint32_t row)
{
	struct match_slice slice = match_slice(lane, part->chunk, part->bits);
	double wait_ns = (double)(part->sum_ns - slice.least_ns);

	for (uint32_t w = lay->first; w <= lay->last; w++) {
		size_t at = (size_t)row * windows->count + w;

		windows->waiting.wait_ns[at] += wait_ns * window_share(lay, w);
		windows->waiting.joined_ns[at] += (double)part->sum_ns * window_share(lay, w);
	}
}

static void add_waiting(struct windows *windows, const struct timeline_report *report,
			const struct match_lane *lane, const struct lay *lays,
			const uint32_t *row_of)
{
	const struct job_comm *comm = &report->job.comms[lane->comm];

	for (uint32_t seat = 0; seat < comm->seat_count; seat++) {
		uint32_t row = row_of[report->job.seats[comm->seats[seat]].rank];
		const struct match_seat *of = &lane->seats[seat];

		for (uint32_t i = 0; row != UINT32_MAX && i < of->count; i++)
			if (of->parts[i].bits != 0)
				add_part(windows, lane, &of->parts[i], &lays[of->parts[i].chunk],
					 row);
	}
}

static enum status add_matches_of(struct windows *windows, const struct timeline_report *report,
				  const struct matches *matches, const struct match_lane *lane,
				  const uint32_t *row_of)
{
	struct lay *lays = calloc(lane->chunk_count + 1, sizeof(*lays));
	enum status status =
		lays != NULL ? add_lane(windows, report, matches, lane, lays) : ERR_NO_SPACE;

	if (status == OK)
		add_waiting(windows, report, lane, lays, row_of);
	free(lays);
	return status;
}

static enum status add_matches(struct windows *windows, const struct timeline_report *report,
			       const struct matches *matches)
{
	uint32_t *row_of = calloc(report->job.rank_count + 1, sizeof(*row_of));
	enum status status = row_of ? start_matrix(windows, report, row_of) : ERR_NO_SPACE;

	for (size_t c = 0; c < report->job.comm_count && status == OK; c++)
		for (unsigned int i = 0; i < MATCH_LANES && status == OK; i++)
			if (matches->comms[c].lanes[i] != NULL &&
			    !match_has_spans(matches->comms[c].lanes[i]))
				status = add_matches_of(windows, report, matches,
							matches->comms[c].lanes[i], row_of);
	free(row_of);
	return status;
}

enum status windows_make(struct windows *windows, const struct timeline_report *report,
			 const struct matches *matches, const struct windows_local *locals,
			 uint32_t most)
{
	enum status status = OK;

	*windows = (struct windows){ .count = 0 };
	if (report->end_ns <= report->start_ns)
		return OK;
	choose_width(windows, report, most < WINDOWS_MOST ? most : WINDOWS_MOST);
	for (uint32_t p = 0; p < report->recording->count && status == OK; p++)
		status = add_local(windows, report, p, &locals[p]);
	if (status == OK)
		status = add_matches(windows, report, matches);
	if (status == OK)
		status = windows_find_changes(windows, report, matches);
	if (status != OK)
		windows_release(windows);
	return status;
}
