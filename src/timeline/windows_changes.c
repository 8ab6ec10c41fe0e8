/*
 * Lasting changes of a transfer's speed.
 *
 * A meeting's shortest duration is the transfer without waiting. Per communicator and kind of call (function,
 * size class), the logarithms of busbw in the order of the meetings are a series; many are put together by
 * medians, so that single slow ones do not count. Each series is cut where it changes (windows_cuts.c), and
 * what belongs together is put together (windows_group.c).
 */
#include <math.h>
#include <stdlib.h>

#include "common/op.h"
#include "common/status.h"
#include "timeline/chance.h"
#include "timeline/windows_changes.h"

enum { MEETINGS_LEAST = 16 };

static void count_tested(struct change_search *search, uint8_t kind, uint8_t function,
			 uint8_t size_class)
{
	size_t i = 0;

	while (i < search->tested_count &&
	       (search->tested[i].kind != kind || search->tested[i].function != function ||
		search->tested[i].size_class != size_class))
		i++;
	if (i == search->tested_count) {
		if (!list_grow(&search->tested, i, sizeof(*search->tested))) {
			search->status = ERR_NO_SPACE;
			return;
		}
		search->tested[search->tested_count++] =
			(struct change_tested){ kind, function, size_class, 0 };
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

/* The meetings of one kind, while they are walked: at most CHANGE_POINTS_MAX points, each the median of its
 * neighbours. */
struct series {
	double factor;	/* of busbw */
	uint64_t count; /* meetings in all */
	uint64_t taken;
	uint64_t next;		     /* taken when the point at hand is complete */
	struct change_point *points; /* NULL: too few meetings */
	size_t point_count;
	size_t points_wanted;
	double *rates; /* of the point at hand: busbw */
	struct change_point all;
};

static void end_point(struct series *series)
{
	series->all.value = log(chance_median(series->rates, series->all.meetings));
	series->points[series->point_count++] = series->all;
	series->all = (struct change_point){ .meetings = 0 };
	series->next = series->count * (series->point_count + 1) / series->points_wanted;
}

static inline void take_meeting(const struct change_search *search, const struct meet_lane *lane,
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
static void take_meetings(const struct change_search *search, const struct meet_lane *lane,
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

static void look_at_kind(struct change_search *search, const struct meet_lane *lane, uint32_t kind,
			 const struct series *series)
{
	const struct meet_kind *of = &search->meet->comms[lane->comm].kinds[kind];
	struct change_raw like = { .comm = lane->comm,
				   .function = (uint8_t)of->names,
				   .size_class = of->size_class };

	if (series->points == NULL)
		return;
	count_tested(search, (uint8_t)search->report->job.comms[lane->comm].kind, like.function,
		     like.size_class);
	search->series++;
	windows_cut_series(search, &like, series->points, 0, series->point_count, 3);
}

static void count_meetings(const struct change_search *search, const struct meet_lane *lane,
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
static bool start_series(struct change_search *search, const struct meet_lane *lane,
			 struct series *list)
{
	const struct meet_comm *comm = &search->meet->comms[lane->comm];

	for (uint32_t kind = 1; kind < comm->kind_count; kind++) {
		struct series *series = &list[kind];

		series->factor = op_bus_factor((uint8_t)comm->kinds[kind].names,
					       search->report->job.comms[lane->comm].nranks);
		if (series->count < MEETINGS_LEAST || series->factor <= 0)
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

static void look_at_lane(struct change_search *search, const struct meet_lane *lane)
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

enum status windows_find_changes(struct windows *windows, const struct timeline_report *report,
				 const struct meet *meet)
{
	struct change_search search = { .report = report, .meet = meet };
	enum status status;

	for (size_t c = 0; c < report->job.comm_count; c++)
		for (unsigned int i = 0; i < MEET_LANES && search.status == OK; i++)
			if (meet->comms[c].lanes[i] != NULL)
				look_at_lane(&search, meet->comms[c].lanes[i]);
	status = search.status;
	if (status == OK)
		status = windows_group_changes(windows, &search);
	free(search.raws);
	free(search.tested);
	return status;
}
