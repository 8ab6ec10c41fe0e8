/*
 * The third walk: a process at a time. Operations come in the order in which they ended; a heap puts
 * them into the order in which they began, and each takes a lane of its communicator. Those in
 * flight are written last, because nothing may follow a slice without end.
 */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "view/viewer_op.h"
#include "view/viewer_rank.h"

enum {
	/* Waiting that is shorter is said in an argument, and has no slice of its own. */
	LEAST_WAIT_NS = 1000,
	OPEN_MAX = 8192,
};

#define KEY_COMM (UINT64_C(1) << 40)
#define KEY_CALLS (UINT64_C(2) << 40)

uint64_t viewer_rank_ns(const struct viewer_rank *rank, uint64_t common_ns)
{
	return common_ns > rank->plan->origin_ns ? common_ns - rank->plan->origin_ns : 0;
}

uint64_t viewer_rank_age_ns(const struct viewer_rank *rank, const struct op_record *op)
{
	const struct viewer_source *source = rank->source;
	uint64_t since_ns = viewer_common_ns(&source->times, viewer_first_sign_ns(op));

	return source->last_ns > since_ns ? source->last_ns - since_ns : 0;
}

static void name_comm(const struct viewer_rank *rank, uint32_t comm_id, struct viewer_group *group)
{
	const struct job *job = rank->plan->job;
	const struct job_seat *seat = job_seat(job, rank->source->times.index, comm_id);
	const struct job_comm *comm = seat ? &job->comms[seat->comm] : NULL;

	group->order = VIEWER_ORDER_COMM;
	if (comm == NULL) {
		text_format(group->name, sizeof(group->name), "communicator %u",
			    (unsigned int)comm_id);
		return;
	}
	group->order *= (int32_t)(seat - job->seats - job->first_seat[seat->process]) + 1;
	if (seat->comm_rank >= 0 && comm->nranks > 0)
		text_format(group->name, sizeof(group->name), "%s, rank %d of %d", comm->label,
			    (int)seat->comm_rank, (int)comm->nranks);
	else
		text_copy(group->name, sizeof(group->name), comm->label);
}

struct viewer_group *viewer_rank_comm(struct viewer_rank *rank, uint32_t comm_id)
{
	bool is_new;
	struct viewer_group *group = viewer_lanes_group(&rank->lanes, KEY_COMM | comm_id, &is_new);

	if (is_new)
		name_comm(rank, comm_id, group);
	return group;
}

uint32_t viewer_rank_track(struct viewer_rank *rank, struct viewer_group *group, uint64_t *start_ns,
			   uint64_t *end_ns)
{
	const struct viewer_lane *lane;
	bool is_new;

	lane = viewer_lanes_take(&rank->lanes, group, start_ns, end_ns, &is_new);
	if (lane == NULL)
		return 0;
	if (is_new) {
		struct viewer_track track = {
			.process = rank->source->number,
			.track = lane->track,
			.above = group->above,
			.order = group->order + (int32_t)group->count - 1,
			.name = group->name,
			.lane = (uint32_t)group->count,
		};

		viewer_track(rank->viewer, &track);
	}
	return lane->track;
}

/* The part before the last rank came, inside its operation. Arrows begin there. */
static void write_waiting(struct viewer_rank *rank, const struct viewer_slice *outer,
			  const struct viewer_op *of, const struct viewer_arrow *tails,
			  size_t tail_count)
{
	struct viewer_args args = { .count = 0 };
	struct viewer_slice slice = *outer;
	char who[96];

	slice.name = "waiting";
	slice.category = "waiting";
	slice.colour = VIEWER_WAITING;
	/* Inside, also for readers that round: it ends before its operation does. */
	if (slice.end_ns > slice.start_ns + of->met->wait_ns)
		slice.end_ns = slice.start_ns + of->met->wait_ns;
	else if (slice.end_ns > slice.start_ns)
		slice.end_ns--;
	slice.args = &args;
	slice.arrows = tails;
	slice.arrow_count = tail_count;
	text_format(who, sizeof(who), "rank %s", rank->plan->job->ranks[of->met->last->rank].label);
	viewer_arg_text(&args, "waits_for", who);
	viewer_arg_unsigned(&args, "wait_ns", of->met->wait_ns);
	viewer_slice(rank->viewer, &slice);
	rank->plan->tally.waiting++;
}

/* Arrows of the slice itself into `own`, those that begin in its waiting into `tails`. */
static void sort_arrows(const struct viewer_rank *rank, const struct viewer_met *met,
			uint64_t start_ns, bool has_waiting, struct viewer_arrow *own,
			size_t *own_count, struct viewer_arrow *tails, size_t *tail_count)
{
	*own_count = 0;
	*tail_count = 0;
	for (size_t i = 0; i < met->arrow_count; i++) {
		uint64_t at_ns = viewer_rank_ns(rank, met->arrows[i].not_before_ns);
		struct viewer_arrow arrow = {
			.number = met->arrows[i].number,
			.is_head = met->arrows[i].is_head,
			.at_ns = start_ns,
		};

		if (arrow.is_head && at_ns > start_ns)
			arrow.at_ns = at_ns;
		if (has_waiting && !arrow.is_head)
			tails[(*tail_count)++] = arrow;
		else
			own[(*own_count)++] = arrow;
	}
}

static void write_slice(struct viewer_rank *rank, const struct viewer_op *of,
			struct viewer_slice *slice)
{
	struct viewer_arrow own[VIEWER_ARROWS_MAX], tails[VIEWER_ARROWS_MAX];
	const struct viewer_met *met = of->met;
	bool has_waiting = met->has_wait && met->wait_ns >= LEAST_WAIT_NS;
	size_t tail_count;

	sort_arrows(rank, met, slice->start_ns, has_waiting, own, &slice->arrow_count, tails,
		    &tail_count);
	slice->arrows = own;
	viewer_slice(rank->viewer, slice);
	if (has_waiting)
		write_waiting(rank, slice, of, tails, tail_count);
}

/* A slice on a lane of its communicator, or, where there is no place for it, a moment. */
static void write_placed(struct viewer_rank *rank, const struct viewer_op *of, const char *name,
			 const struct viewer_args *args)
{
	struct viewer_place place = *of->place;
	struct viewer_group *group = viewer_rank_comm(rank, of->op->comm);
	struct viewer_slice slice = {
		.process = rank->source->number,
		.name = name,
		.category = "operation",
		.colour = viewer_op_colour(of),
		.args = args,
	};

	if (group && place.kind != VIEWER_NOWHERE)
		slice.track = viewer_rank_track(rank, group, &place.start_ns, &place.end_ns);
	slice.start_ns = viewer_rank_ns(rank, place.start_ns);
	slice.end_ns =
		place.end_ns == VIEWER_OPEN ? VIEWER_OPEN : viewer_rank_ns(rank, place.end_ns);
	if (slice.track != 0) {
		write_slice(rank, of, &slice);
	} else {
		struct viewer_instant instant = {
			.process = slice.process,
			.at_ns = slice.start_ns,
			.name = name,
			.category = slice.category,
			.args = args,
		};

		viewer_instant(rank->viewer, &instant);
		rank->plan->tally.crowded += place.kind != VIEWER_NOWHERE;
	}
}

/* What the host did: from the call until its kernel was launched. */
static void write_call(struct viewer_rank *rank, const struct viewer_op *of, const char *name)
{
	const struct op_record *op = of->op;
	struct viewer_place place = viewer_place_call(&rank->source->times, op);
	struct viewer_args args = { .count = 0 };
	struct viewer_slice slice = {
		.process = rank->source->number,
		.name = name,
		.category = "call",
		.args = &args,
	};
	struct viewer_group *group;
	bool is_new;

	if (place.kind == VIEWER_NOWHERE)
		return;
	group = viewer_lanes_group(&rank->lanes, KEY_CALLS, &is_new);
	if (is_new) {
		text_copy(group->name, sizeof(group->name), "calls");
		group->order = VIEWER_ORDER_CALLS;
	}
	if (group)
		slice.track = viewer_rank_track(rank, group, &place.start_ns, &place.end_ns);
	if (slice.track == 0)
		return;
	slice.start_ns = viewer_rank_ns(rank, place.start_ns);
	slice.end_ns = viewer_rank_ns(rank, place.end_ns);
	if (of->seat)
		viewer_arg_text(&args, "communicator",
				rank->plan->job->comms[of->seat->comm].label);
	viewer_arg_unsigned(&args, "number", op->number);
	viewer_slice(rank->viewer, &slice);
}

static void count(struct viewer_tally *tally, enum viewer_place_kind kind)
{
	tally->shown++;
	tally->timed += kind == VIEWER_TIMED;
	tally->seen += kind == VIEWER_SEEN;
	tally->called += kind == VIEWER_CALLED;
	tally->in_flight += kind == VIEWER_IN_FLIGHT;
	tally->nowhere += kind == VIEWER_NOWHERE;
}

static void write_op(struct viewer_rank *rank, const struct viewer_item *item)
{
	struct viewer_plan *plan = rank->plan;
	struct viewer_op_texts texts;
	struct viewer_args args;
	struct viewer_met met = { .is_met = false };
	struct viewer_op of = {
		.job = plan->job,
		.process = rank->source->times.process,
		.seat = job_seat(plan->job, rank->source->times.index, item->op.comm),
		.op = &item->op,
		.place = &item->place,
		.met = &met,
	};
	char name[VIEWER_NAME_TEXT];

	if (of.seat) {
		struct viewer_meet_op meet_op = { of.op, of.seat, of.place, true };

		viewer_meet_find(&plan->meet, &meet_op, &met);
	}
	if (item->place.kind == VIEWER_IN_FLIGHT)
		of.in_flight_ns = viewer_rank_age_ns(rank, &item->op);
	viewer_op_name(&of, name);
	viewer_op_args(&of, &texts, &args);
	write_placed(rank, &of, name, &args);
	if (plan->has_calls)
		write_call(rank, &of, name);
	if (item->place.kind == VIEWER_TIMED && item->op.time_source != OP_TIME_HOST)
		viewer_bins_add(&rank->bins, item->place.start_ns, item->place.end_ns,
				viewer_op_bus_bytes(&of));
	else if (item->op.time_source == OP_TIME_NONE && item->place.kind != VIEWER_IN_FLIGHT &&
		 item->op.state != OP_CAPTURED)
		viewer_bins_miss(&rank->bins);
	count(&plan->tally, item->place.kind);
}

static void write_first(struct viewer_rank *rank)
{
	struct viewer_item item;

	viewer_order_take(&rank->order, &item);
	write_op(rank, &item);
}

static bool keep_open(struct viewer_rank *rank, const struct viewer_item *item)
{
	if (rank->open_count == rank->open_room) {
		size_t room = rank->open_room ? rank->open_room * 2 : 64;
		struct viewer_item *open = realloc(rank->open, room * sizeof(*open));

		if (open == NULL) {
			rank->status = ERR_NO_SPACE;
			return false;
		}
		rank->open = open;
		rank->open_room = room;
	}
	rank->open[rank->open_count++] = *item;
	return true;
}

static bool visit(const struct op_record *op, enum recording_place found, void *context)
{
	struct viewer_rank *rank = context;
	struct viewer_plan *plan = rank->plan;
	struct viewer_item item = { .op = *op };

	plan->tally.read++;
	item.place = viewer_place(&rank->source->times, op,
				  viewer_plan_is_open(rank->source, op, found));
	viewer_rank_gap(rank, op, &item.place);
	if (viewer_plan_has_seat(plan, job_seat(plan->job, rank->source->times.index, op->comm)) &&
	    viewer_plan_is_inside(plan, &item.place)) {
		if (item.place.kind == VIEWER_IN_FLIGHT && rank->open_count < OPEN_MAX) {
			keep_open(rank, &item);
		} else {
			if (viewer_order_is_full(&rank->order))
				write_first(rank);
			viewer_order_put(&rank->order, &item);
		}
	}
	if (rank->status == OK)
		rank->status = rank->lanes.status;
	return rank->status == OK && !viewer_has_failed(rank->viewer) &&
	       viewer_plan_walked(plan, 1);
}

static int by_start(const void *left, const void *right)
{
	const struct viewer_item *a = left, *b = right;

	if (a->place.start_ns != b->place.start_ns)
		return a->place.start_ns < b->place.start_ns ? -1 : 1;
	return a->op.number < b->op.number ? -1 : a->op.number > b->op.number;
}

static enum status write_ops(struct viewer_rank *rank)
{
	struct recording_walk walk = { 0 };
	enum status status;

	status = recording_each_op(rank->source->times.process, visit, rank, &walk);
	while (rank->order.count > 0)
		write_first(rank);
	if (rank->open_count > 0)
		qsort(rank->open, rank->open_count, sizeof(*rank->open), by_start);
	for (size_t i = 0; i < rank->open_count; i++)
		write_op(rank, &rank->open[i]);
	rank->plan->tally.refused += walk.refused + walk.damages + walk.torn;
	if (status != OK)
		return status;
	return rank->status != OK ? rank->status : rank->plan->status;
}

static void write_counter(struct viewer_rank *rank)
{
	struct viewer_track track = {
		.process = rank->source->number,
		.order = VIEWER_ORDER_COUNTER,
		.name = viewer_bins_is_sampled(&rank->bins) ? "busbw of timed operations" : "busbw",
		.unit = "GB/s",
	};

	if (!rank->bins.is_used)
		return;
	track.track = viewer_lanes_track(&rank->lanes);
	viewer_track(rank->viewer, &track);
	viewer_bins_write(&rank->bins, rank->viewer, &track, rank->plan->origin_ns);
}

/* "rank 3 node01"; "ranks 0-7 node01" where threads are ranks. */
static void name_process(const struct viewer_rank *rank, char *name, size_t size)
{
	const struct job *job = rank->plan->job;
	uint32_t index = (uint32_t)rank->source->times.index;
	const struct job_rank *first = &job->ranks[job->process_rank[index]];
	const struct job_group *group = &job->groups[first->group];
	const struct job_rank *last = first;
	size_t at;

	for (uint32_t i = group->first_rank; i < group->first_rank + group->rank_count; i++)
		if (job->ranks[i].process == index)
			last = &job->ranks[i];
	if (last == first)
		text_format(name, size, "rank %s ", first->label);
	else
		text_format(name, size, "ranks %s-%s ", first->label, last->label);
	at = strlen(name);
	text_copy(name + at, size - at, rank->source->times.process->host);
	at = strlen(name);
	if (job->group_count > 1)
		text_format(name + at, size - at, ", job %s", group->name);
}

/* Its name, and how well its clock is known. */
static void write_process(struct viewer_rank *rank)
{
	const struct align *align = rank->plan->align;
	size_t index = rank->source->times.index;
	enum align_source source = align->processes[index].source;
	char name[400], label[160], within[UNITS_TEXT];
	struct viewer_process about = {
		.process = rank->source->number,
		.order = (int32_t)index,
		.name = name,
		.label = label,
	};

	name_process(rank, name, sizeof(name));
	if (align->processes[index].is_uncertain)
		text_format(label, sizeof(label), "placed by its wall clock: not aligned");
	else if (source == ALIGN_REFERENCE)
		text_format(label, sizeof(label), "the reference for time");
	else if (source == ALIGN_SAME_CLOCK && align_uncertainty_ns(align, index) == 0)
		text_format(label, sizeof(label), "the same clock as the reference");
	else
		text_format(label, sizeof(label), "time within %s",
			    units_duration(within, align_uncertainty_ns(align, index)));
	viewer_process(rank->viewer, &about);
}

static enum status write_rank(struct viewer_plan *plan, struct viewer *viewer, size_t index)
{
	struct viewer_rank rank = {
		.plan = plan,
		.viewer = viewer,
		.source = &plan->sources[index],
	};
	enum status status;

	viewer_lanes_init(&rank.lanes);
	viewer_bins_init(&rank.bins, plan->origin_ns, plan->end_ns);
	if (!viewer_order_init(&rank.order))
		return ERR_NO_SPACE;
	write_process(&rank);
	status = write_ops(&rank);
	if (status == OK && plan->has_details)
		status = viewer_rank_details(&rank);
	if (status == OK) {
		viewer_rank_notes(&rank);
		write_counter(&rank);
		status = rank.lanes.status;
	}
	free(rank.open);
	viewer_order_release(&rank.order);
	viewer_lanes_release(&rank.lanes);
	return status;
}

enum status viewer_plan_write(struct viewer_plan *plan, struct viewer *viewer)
{
	enum status status = OK;

	for (size_t i = 0; i < plan->recording->count && status == OK; i++) {
		if (plan->sources[i].is_shown)
			status = write_rank(plan, viewer, i);
		if (viewer_has_failed(viewer))
			break;
	}
	return status;
}
