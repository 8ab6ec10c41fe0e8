/*
 * Lasting changes of a transfer's speed.
 *
 * A meeting's shortest duration is the transfer without waiting. Per communicator and kind of call (function,
 * size class), the logarithms of busbw in the order of the meetings are a series; many are put together by
 * medians, so that single slow ones do not count. Where the means before and after differ most against
 * their spread (Welch's t) the series is cut, if that is not by chance; then both halves are looked at
 * in the same way. What changes for a while and comes back hides in both halves: where no cut is found, the
 * stretch that differs most from all around it is tested. Changes of several communicators at about the
 * same time are one.
 */
#include <math.h>
#include <stdlib.h>

#include "op/op_bus.h"
#include "timeline/chance.h"
#include "timeline/windows_make.h"

enum { POINTS_MAX = 128, MEETINGS_LEAST = 16, SIDE_LEAST = 5, RAW_MAX = 8192 };
static const double percent_that_matters = 5, chance_accepted = 1e-3;

/* A meeting, and later several together. */
struct point {
	uint64_t ns;
	double value;	/* log of busbw */
	double cost_ns; /* shortest duration x ranks */
	uint32_t meetings;
};

/* One change in one communicator. */
struct raw {
	uint32_t comm;
	uint8_t function;
	uint8_t size_class;
	uint64_t at_ns;
	double before;
	double after;
	double chance;
	double lost_ns;
	uint64_t meetings_before;
	uint64_t meetings_after;
};

struct search {
	const struct timeline_report *report;
	const struct meet *meet;
	struct raw *raws;
	size_t raw_count;
	size_t series; /* tested so far */
	struct {
		uint8_t kind, function, size_class;
		uint32_t comms;
	} tested[256];
	size_t tested_count;
	enum status status;
};

static double median_value(const struct point *points, size_t from, size_t to)
{
	double values[POINTS_MAX];

	for (size_t i = from; i < to; i++)
		values[i - from] = points[i].value;
	return chance_median(values, to - from);
}

/* ---- one series ------------------------------------------------------------------------------ */

static struct chance_sample side(const struct point *points, size_t from, size_t to)
{
	double values[POINTS_MAX];

	for (size_t i = from; i < to; i++)
		values[i - from] = points[i].value;
	return chance_series(values, to - from);
}

static double chance_of_two(const struct chance_sample *a, const struct chance_sample *b)
{
	/* Clocks and durations are whole numbers: even equal ones are not known better. */
	double error_a = fmax(a->error, 1e-3), error_b = fmax(b->error, 1e-3);
	double square_a = error_a * error_a, square_b = error_b * error_b;
	double freedom = (square_a + square_b) * (square_a + square_b) /
			 (square_a * square_a / ((double)a->count - 1) +
			  square_b * square_b / ((double)b->count - 1));

	return 2 * chance_student(fabs(a->mean - b->mean) / sqrt(square_a + square_b), freedom);
}

static double chance_of_cut(const struct point *points, size_t from, size_t cut, size_t to)
{
	struct chance_sample a = side(points, from, cut), b = side(points, cut, to);

	return chance_of_two(&a, &b);
}

/* Where the two sides differ most, by sums alone. */
static size_t best_cut(const struct point *points, size_t from, size_t to)
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

static void add_raw(struct search *search, const struct raw *like, const struct point *points,
		    size_t from, size_t cut, size_t to)
{
	struct raw *raw;

	if (search->raw_count == RAW_MAX)
		return;
	raw = &search->raws[search->raw_count++];
	*raw = *like;
	raw->at_ns = points[cut].ns;
	raw->before = exp(median_value(points, from, cut));
	raw->after = exp(median_value(points, cut, to));
	for (size_t i = from; i < to; i++) {
		if (i < cut) {
			raw->meetings_before += points[i].meetings;
			continue;
		}
		raw->meetings_after += points[i].meetings;
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
static struct stretch best_stretch(const struct point *points, size_t from, size_t to)
{
	struct stretch best = { from, from };
	double sums[POINTS_MAX + 1] = { 0 }, most = -1;

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

static double chance_of_stretch(const struct point *points, size_t from, struct stretch in,
				size_t to)
{
	struct chance_sample inside = side(points, in.from, in.to), outside;
	double values[POINTS_MAX];
	size_t count = 0;

	for (size_t i = from; i < to; i++)
		if (i < in.from || i >= in.to)
			values[count++] = points[i].value;
	outside = chance_series(values, count);
	return chance_of_two(&inside, &outside);
}

/* It changes, and changes back. */
static void cut_stretch(struct search *search, struct raw *like, const struct point *points,
			size_t from, size_t to)
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
	    like->chance > chance_accepted || fabs(after - before) > fabs(inside - before) / 2)
		return;
	add_raw(search, like, points, from, in.from, in.to);
	add_raw(search, like, points, in.from, in.to, to);
}

static void cut_series(struct search *search, struct raw *like, const struct point *points,
		       size_t from, size_t to, unsigned int depth)
{
	size_t cut;
	double change;

	if (to - from < 2 * SIDE_LEAST || depth == 0)
		return;
	cut = best_cut(points, from, to);
	change = exp(median_value(points, cut, to) - median_value(points, from, cut)) - 1;
	like->chance = chance_of_cut(points, from, cut, to) * (double)(to - from);
	if (fabs(change) * 100 < percent_that_matters || like->chance > chance_accepted) {
		cut_stretch(search, like, points, from, to);
		return;
	}
	add_raw(search, like, points, from, cut, to);
	cut_series(search, like, points, from, cut, depth - 1);
	cut_series(search, like, points, cut, to, depth - 1);
}

/* ---- the series of a lane -------------------------------------------------------------------- */

static void count_tested(struct search *search, uint8_t kind, uint8_t function, uint8_t size_class)
{
	size_t i = 0;

	while (i < search->tested_count &&
	       (search->tested[i].kind != kind || search->tested[i].function != function ||
		search->tested[i].size_class != size_class))
		i++;
	if (i == sizeof(search->tested) / sizeof(search->tested[0]))
		return;
	if (i == search->tested_count) {
		search->tested_count++;
		search->tested[i].kind = kind;
		search->tested[i].function = function;
		search->tested[i].size_class = size_class;
		search->tested[i].comms = 0;
	}
	search->tested[i].comms++;
}

struct ordered {
	uint64_t number;
	uint32_t chunk;
};

static int by_number(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;

	return a->number < b->number ? -1 : a->number > b->number;
}

static bool is_counted(const struct meet_slot *slot, int32_t nranks)
{
	return slot->count > 1 && slot->count * 4 >= nranks * 3 && slot->bytes > 0 &&
	       slot->least_ns > 0;
}

/* The meetings of one kind, while they are walked: at most POINTS_MAX points, each the median of its
 * neighbours. */
struct series {
	double factor;	/* of busbw */
	uint64_t count; /* meetings in all */
	uint64_t taken;
	uint64_t next;	      /* taken when the point at hand is complete */
	struct point *points; /* NULL: too few meetings */
	size_t point_count;
	size_t points_wanted;
	double *rates; /* of the point at hand: busbw */
	struct point all;
};

static void end_point(struct series *series)
{
	series->all.value = log(chance_median(series->rates, series->all.meetings));
	series->points[series->point_count++] = series->all;
	series->all = (struct point){ .meetings = 0 };
	series->next = series->count * (series->point_count + 1) / series->points_wanted;
}

static inline void take_meeting(const struct search *search, const struct meet_lane *lane,
				const struct meet_slot *slot, struct series *series)
{
	if (series->all.meetings == 0)
		series->all.ns = windows_slot_ns(search->report, lane, slot);
	series->rates[series->all.meetings++] =
		slot->bytes * series->factor * 1e9 / (double)slot->least_ns;
	series->all.cost_ns += (double)slot->least_ns * slot->count;
	if (++series->taken == series->next)
		end_point(series);
}

/* One walk over the lane, in the order of its meetings. */
static void take_meetings(const struct search *search, const struct meet_lane *lane,
			  const struct ordered *order, struct series *list)
{
	int32_t nranks = search->report->job.comms[lane->comm].nranks;

	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		const struct meet_chunk *chunk = lane->chunks[order[i].chunk];

		for (uint32_t bits = lane->briefs[order[i].chunk].occupied; bits != 0;
		     bits &= bits - 1) {
			const struct meet_slot *slot = &chunk->slots[__builtin_ctz(bits)];
			struct series *series = &list[slot->kind];

			if (series->points != NULL && is_counted(slot, nranks))
				take_meeting(search, lane, slot, series);
		}
	}
}

static void look_at_kind(struct search *search, const struct meet_lane *lane, uint32_t kind,
			 const struct series *series)
{
	const struct meet_kind *of = &search->meet->comms[lane->comm].kinds[kind];
	struct raw like = { .comm = lane->comm,
			    .function = (uint8_t)of->names,
			    .size_class = of->size_class };

	if (series->points == NULL)
		return;
	count_tested(search, (uint8_t)search->report->job.comms[lane->comm].kind, like.function,
		     like.size_class);
	search->series++;
	cut_series(search, &like, series->points, 0, series->point_count, 3);
}

static void count_meetings(const struct search *search, const struct meet_lane *lane,
			   struct ordered *order, struct series *list)
{
	int32_t nranks = search->report->job.comms[lane->comm].nranks;

	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		order[i] = (struct ordered){ lane->briefs[i].number, i };
		for (uint32_t bits = lane->briefs[i].occupied; bits != 0; bits &= bits - 1) {
			const struct meet_slot *slot = &lane->chunks[i]->slots[__builtin_ctz(bits)];

			list[slot->kind].count += is_counted(slot, nranks);
		}
	}
	/* They were made in the order of the first process: sorted already, as a rule. */
	for (uint32_t i = 1; i < lane->chunk_count; i++)
		if (order[i].number < order[i - 1].number) {
			qsort(order, lane->chunk_count, sizeof(*order), by_number);
			break;
		}
}

/* Memory for those that have enough meetings; false: there is none. */
static bool start_series(struct search *search, const struct meet_lane *lane, struct series *list)
{
	const struct meet_comm *comm = &search->meet->comms[lane->comm];

	for (uint32_t kind = 1; kind < comm->kind_count; kind++) {
		struct series *series = &list[kind];

		series->factor = op_bus_factor((uint8_t)comm->kinds[kind].names,
					       search->report->job.comms[lane->comm].nranks);
		if (series->count < MEETINGS_LEAST || series->factor <= 0)
			continue;
		series->points_wanted = series->count < POINTS_MAX ? series->count : POINTS_MAX;
		series->next = series->count / series->points_wanted;
		series->points = calloc(series->points_wanted, sizeof(*series->points));
		series->rates =
			calloc(series->count / series->points_wanted + 2, sizeof(*series->rates));
		if (series->points == NULL || series->rates == NULL)
			return false;
	}
	return true;
}

static void look_at_lane(struct search *search, const struct meet_lane *lane)
{
	uint32_t kind_count = search->meet->comms[lane->comm].kind_count;
	struct ordered *order = calloc(lane->chunk_count + 1, sizeof(*order));
	struct series *list = calloc(kind_count + 1, sizeof(*list));

	search->status = order && list ? OK : ERR_NO_SPACE;
	if (search->status == OK) {
		count_meetings(search, lane, order, list);
		search->status = start_series(search, lane, list) ? OK : ERR_NO_SPACE;
	}
	if (search->status == OK) {
		take_meetings(search, lane, order, list);
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

/* ---- what belongs together ------------------------------------------------------------------- */

static int by_key_and_time(const void *left, const void *right)
{
	const struct raw *a = left, *b = right;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->size_class != b->size_class)
		return a->size_class < b->size_class ? -1 : 1;
	return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

/* The median over the changes put together, of before or after. */
static double median_side(const struct raw *const *list, size_t count, bool is_after)
{
	double values[64];
	size_t used = count < 64 ? count : 64;

	for (size_t i = 0; i < used; i++)
		values[i] =
			is_after ? list[i * count / used]->after : list[i * count / used]->before;
	return chance_median(values, used);
}

static uint32_t comms_tested(const struct search *search, const struct windows_change *change)
{
	for (size_t i = 0; i < search->tested_count; i++)
		if (search->tested[i].kind == (uint8_t)change->kind &&
		    search->tested[i].function == change->function &&
		    search->tested[i].size_class == change->size_class)
			return search->tested[i].comms;
	return 0;
}

static void add_change(struct windows *windows, const struct search *search,
		       const struct raw *const *list, size_t count)
{
	const struct job *job = &search->report->job;
	struct windows_change change = { .kind = job->comms[list[0]->comm].kind,
					 .function = list[0]->function,
					 .size_class = list[0]->size_class,
					 .at_ns = list[count / 2]->at_ns,
					 .example_comm = list[0]->comm,
					 .confidence = 1 };
	double lost_ns = 0, chance = 1;

	if (windows->change_count == WINDOWS_CHANGES_MAX)
		return;
	change.before = median_side(list, count, false);
	change.after = median_side(list, count, true);
	change.percent = (change.after - change.before) / change.before * 100;
	change.window = (uint32_t)((change.at_ns - windows->start_ns) / windows->width_ns);
	for (size_t i = 0; i < count; i++) {
		change.meetings_before += list[i]->meetings_before;
		change.meetings_after += list[i]->meetings_after;
		change.ranks_changed += job->comms[list[i]->comm].seat_count;
		lost_ns += list[i]->lost_ns;
		chance = list[i]->chance < chance ? list[i]->chance : chance;
	}
	change.lost_ns = (uint64_t)lost_ns;
	change.comms_changed = (uint32_t)count;
	change.comms = comms_tested(search, &change);
	change.is_everywhere = change.comms_changed * 5 >= change.comms * 4;
	change.confidence = 1 - fmin(1, chance * (double)search->series);
	if (change.confidence > 1 - chance_accepted)
		windows->changes[windows->change_count++] = change;
}

/* raws of one function and size class, by time: groups of one kind and direction at about one time. */
static void group(struct windows *windows, const struct search *search, const struct raw **list,
		  bool *is_taken, size_t from, size_t to)
{
	const struct job *job = &search->report->job;

	for (size_t i = from; i < to; i++) {
		const struct raw *first = &search->raws[i];
		size_t count = 0;

		if (is_taken[i])
			continue;
		for (size_t j = i; j < to; j++) {
			const struct raw *raw = &search->raws[j];
			bool is_repeated = false;

			if (raw->at_ns - first->at_ns > 3 * windows->width_ns)
				break;
			for (size_t k = 0; k < count; k++)
				is_repeated = is_repeated || list[k]->comm == raw->comm;
			if (is_taken[j] || is_repeated ||
			    job->comms[raw->comm].kind != job->comms[first->comm].kind ||
			    (raw->after < raw->before) != (first->after < first->before))
				continue;
			is_taken[j] = true;
			list[count++] = raw;
		}
		add_change(windows, search, list, count);
	}
}

static int most_important_first(const void *left, const void *right)
{
	const struct windows_change *a = left, *b = right;
	double weight_a = fabs(a->percent) * (double)(a->meetings_before + a->meetings_after);
	double weight_b = fabs(b->percent) * (double)(b->meetings_before + b->meetings_after);

	if (a->lost_ns != b->lost_ns)
		return a->lost_ns > b->lost_ns ? -1 : 1;
	return weight_a > weight_b ? -1 : weight_a < weight_b;
}

static enum status group_all(struct windows *windows, struct search *search)
{
	const struct raw **list = calloc(search->raw_count + 1, sizeof(*list));
	bool *is_taken = calloc(search->raw_count + 1, sizeof(*is_taken));
	enum status status = list && is_taken ? OK : ERR_NO_SPACE;
	size_t next;

	windows->changes = calloc(WINDOWS_CHANGES_MAX, sizeof(*windows->changes));
	if (windows->changes == NULL)
		status = ERR_NO_SPACE;
	qsort(search->raws, search->raw_count, sizeof(*search->raws), by_key_and_time);
	for (size_t i = 0; i < search->raw_count && status == OK; i = next) {
		for (next = i; next < search->raw_count &&
			       search->raws[next].function == search->raws[i].function &&
			       search->raws[next].size_class == search->raws[i].size_class;)
			next++;
		group(windows, search, list, is_taken, i, next);
	}
	if (status == OK)
		qsort(windows->changes, windows->change_count, sizeof(*windows->changes),
		      most_important_first);
	free(list);
	free(is_taken);
	return status;
}

enum status windows_find_changes(struct windows *windows, const struct timeline_report *report,
				 const struct meet *meet)
{
	struct search search = { .report = report, .meet = meet };
	enum status status;

	search.raws = calloc(RAW_MAX, sizeof(*search.raws));
	if (search.raws == NULL)
		return ERR_NO_SPACE;
	for (size_t c = 0; c < report->job.comm_count; c++)
		for (unsigned int i = 0; i < MEET_LANES && search.status == OK; i++)
			if (meet->comms[c].lanes[i] != NULL)
				look_at_lane(&search, meet->comms[c].lanes[i]);
	status = search.status;
	if (status == OK)
		status = group_all(windows, &search);
	free(search.raws);
	return status;
}
