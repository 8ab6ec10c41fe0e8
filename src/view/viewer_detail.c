/* What channels, proxy operations and transfers did: tracks below those of their communicators. */
#include "common/text.h"
#include "view/viewer_rank.h"

/* Key of a group: kind, direction, channel, peer, communicator. */
static uint64_t key_of(const struct op_detail *detail)
{
	uint64_t peer = detail->kind == OP_DETAIL_KERNEL ? 0 : (uint64_t)(detail->peer + 1);

	return UINT64_C(1) << 63 | (uint64_t)detail->kind << 61 |
	       (uint64_t)(detail->flags & OP_DETAIL_IS_SEND) << 60 |
	       (uint64_t)detail->channel << 52 | (peer & 0xfffff) << 32 | detail->comm;
}

static void name_group(struct viewer_group *group, const struct op_detail *detail,
		       const struct viewer_group *comm)
{
	bool is_send = detail->flags & OP_DETAIL_IS_SEND;
	const char *of = comm ? comm->name : "another process";
	unsigned int channel = detail->channel;

	if (detail->kind == OP_DETAIL_KERNEL)
		text_format(group->name, sizeof(group->name), "%.100s: channel %u", of, channel);
	else
		text_format(group->name, sizeof(group->name), "%.100s: channel %u %s %s %d", of,
			    channel, detail->kind == OP_DETAIL_PROXY ? "network" : "transfers",
			    is_send ? "to" : "from", (int)detail->peer);
	group->order =
		(comm ? comm->order : 0) + 1024 + (int32_t)channel * 8 + detail->kind * 2 + is_send;
	group->above = comm && comm->count > 0 ? comm->lanes[0].track : 0;
}

static struct viewer_group *group_of(struct viewer_rank *rank, const struct op_detail *detail)
{
	struct viewer_group *comm = NULL, *group;
	bool is_new;

	group = viewer_lanes_group(&rank->lanes, key_of(detail), &is_new);
	if (!is_new)
		return group;
	if (detail->comm != 0)
		comm = viewer_rank_comm(rank, detail->comm);
	name_group(group, detail, comm);
	return group;
}

static uint64_t last_of(const uint64_t *times, size_t count)
{
	uint64_t last = 0;

	for (size_t i = 0; i < count; i++)
		if (times[i] > last)
			last = times[i];
	return last;
}

/* A kernel channel: by the GPU's stamps, from its stop back. */
static struct viewer_place place_kernel(const struct viewer_times *times,
					const struct op_detail *detail)
{
	uint64_t start_ns = detail->time_ns[0], stop_ns = detail->time_ns[1];
	uint64_t seen_start_ns = detail->time_ns[2], seen_stop_ns = detail->time_ns[3];
	struct viewer_place place = { .kind = VIEWER_TIMED };
	uint64_t end_ns = seen_stop_ns, gpu_ns;

	if (start_ns == 0 || stop_ns < start_ns || seen_stop_ns == 0) {
		place.kind = seen_stop_ns ? VIEWER_SEEN : VIEWER_IN_FLIGHT;
		place.start_ns = viewer_common_ns(times, seen_start_ns);
		place.end_ns = viewer_common_ns(times, seen_stop_ns);
		return place;
	}
	gpu_ns = viewer_gpu_ns(times, detail->comm, stop_ns, seen_stop_ns);
	if (gpu_ns != 0)
		end_ns = gpu_ns;
	place.end_ns = viewer_common_ns(times, end_ns);
	place.start_ns = place.end_ns - (stop_ns - start_ns);
	return place;
}

static struct viewer_place place_detail(const struct viewer_source *source,
					const struct op_detail *detail)
{
	const struct viewer_times *times = &source->times;
	uint64_t last_ns = last_of(detail->time_ns, 4);
	struct viewer_place place = { .kind = VIEWER_TIMED };

	if (detail->kind == OP_DETAIL_KERNEL) {
		place = place_kernel(times, detail);
	} else {
		/* Without a first time, what is known of it is a moment. */
		uint64_t first_ns = detail->time_ns[0] ? detail->time_ns[0] : detail->time_ns[1];

		place.start_ns = viewer_common_ns(times, first_ns ? first_ns : last_ns);
		place.end_ns = viewer_common_ns(times, last_ns);
		if (detail->time_ns[3] == 0)
			place.kind = VIEWER_IN_FLIGHT;
	}
	if (place.kind == VIEWER_IN_FLIGHT && times->process->life != RECORDING_ENDED)
		place.end_ns = VIEWER_OPEN;
	if (place.end_ns < place.start_ns)
		place.end_ns = place.start_ns;
	if (!viewer_place_is_sane(&place))
		place.kind = VIEWER_NOWHERE;
	return place;
}

static const char *slice_name(const struct op_detail *detail, bool is_open)
{
	bool is_send = detail->flags & OP_DETAIL_IS_SEND;

	switch (detail->kind) {
	case OP_DETAIL_KERNEL:
		return is_open ? "kernel (in flight)" : "kernel";
	case OP_DETAIL_PROXY:
		if (is_open)
			return is_send ? "send (in flight)" : "recv (in flight)";
		return is_send ? "send" : "recv";
	default:
		if (is_open)
			return is_send ? "send step (in flight)" : "recv step (in flight)";
		return is_send ? "send step" : "recv step";
	}
}

/* How long it was in each of its stages; 0 where a stamp is missing. */
static void put_stages(struct viewer_args *args, const struct op_detail *detail)
{
	static const char *const names[2][3] = {
		{ "wait_data_ns", "flush_ns", "wait_gpu_ns" },
		{ "wait_gpu_ns", "wait_peer_ns", "wire_ns" },
	};
	bool is_send = detail->flags & OP_DETAIL_IS_SEND;

	for (unsigned int i = 0; i < 3 && detail->kind == OP_DETAIL_STEP; i++) {
		uint64_t from_ns = detail->time_ns[i], to_ns = detail->time_ns[i + 1];

		if (from_ns != 0 && to_ns >= from_ns)
			viewer_arg_unsigned(args, names[is_send][i], to_ns - from_ns);
	}
	if (detail->kind == OP_DETAIL_PROXY && detail->time_ns[0] != 0 &&
	    detail->time_ns[1] >= detail->time_ns[0])
		viewer_arg_unsigned(args, "queued_ns", detail->time_ns[1] - detail->time_ns[0]);
}

static void put_args(struct viewer_args *args, const struct op_detail *detail)
{
	args->count = 0;
	viewer_arg_unsigned(args, "number", detail->number);
	viewer_arg_unsigned(args, "channel", detail->channel);
	if (detail->kind == OP_DETAIL_KERNEL)
		return;
	viewer_arg_signed(args, "peer", detail->peer);
	viewer_arg_signed(args, detail->kind == OP_DETAIL_PROXY ? "steps" : "step", detail->step);
	viewer_arg_unsigned(args, "bytes", detail->bytes);
	put_stages(args, detail);
	if (detail->flags & OP_DETAIL_IS_FOREIGN)
		viewer_arg_unsigned(args, "origin_pid", detail->origin_pid);
}

static void write_detail(struct viewer_rank *rank, const struct viewer_item *item)
{
	struct viewer_group *group = group_of(rank, &item->detail);
	bool is_open = item->place.end_ns == VIEWER_OPEN;
	struct viewer_place place = item->place;
	struct viewer_args args;
	struct viewer_slice slice = {
		.process = rank->source->number,
		.name = slice_name(&item->detail, is_open),
		.category = "detail",
		.colour = is_open ? VIEWER_UNFINISHED : VIEWER_PLAIN,
		.args = &args,
	};

	if (group)
		slice.track = viewer_rank_track(rank, group, &place.start_ns, &place.end_ns);
	if (slice.track == 0) {
		rank->plan->tally.details_out++;
		return;
	}
	slice.start_ns = viewer_rank_ns(rank, place.start_ns);
	slice.end_ns = is_open ? VIEWER_OPEN : viewer_rank_ns(rank, place.end_ns);
	put_args(&args, &item->detail);
	viewer_slice(rank->viewer, &slice);
	rank->plan->tally.details++;
}

static void write_first(struct viewer_rank *rank)
{
	struct viewer_item item;

	viewer_order_take(&rank->order, &item);
	write_detail(rank, &item);
}

static bool visit(const struct op_detail *detail, enum recording_place found, void *context)
{
	struct viewer_rank *rank = context;
	struct viewer_plan *plan = rank->plan;
	struct viewer_item item = { .detail = *detail };

	(void)found;
	if (!viewer_plan_has_seat(plan,
				  job_seat(plan->job, rank->source->times.index, detail->comm)))
		return true;
	item.place = place_detail(rank->source, detail);
	if (item.place.kind == VIEWER_NOWHERE) {
		plan->tally.details_out++;
	} else if (viewer_plan_is_inside(plan, &item.place)) {
		if (viewer_order_is_full(&rank->order))
			write_first(rank);
		viewer_order_put(&rank->order, &item);
	}
	if (rank->status == OK)
		rank->status = rank->lanes.status;
	return rank->status == OK && !viewer_has_failed(rank->viewer) && plan->status == OK;
}

enum status viewer_rank_details(struct viewer_rank *rank)
{
	enum status status;

	status = recording_each_detail(rank->source->times.process, visit, rank, NULL);
	while (rank->order.count > 0)
		write_first(rank);
	return status != OK ? status : rank->status;
}
