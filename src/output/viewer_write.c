/* Writes the ranks of a job as a timeline: order of items, lanes, counters, names, slices. */
#include "output/viewer.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/flight.h"
#include "analysis/tally.h"
#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"

/* State of the third walk: the process being written. */

struct viewer_rank {
	struct viewer_plan *plan;
	struct viewer *viewer;
	struct viewer_source *source;
	struct viewer_lanes lanes;
	struct viewer_order order;
	struct viewer_bins bins;
	struct viewer_item *open; /* operations in flight, written last */
	size_t open_count;
	uint64_t last_sequence;
	enum status status;
};

/* Order of the tracks of a process; each group of lanes has this many positions. */
enum {
	VIEWER_ORDER_COUNTER = -2,
	VIEWER_ORDER_CALLS = -1,
	VIEWER_ORDER_COMM = 4096,
};

/* Common time to time of the timeline; earlier times are clamped to its start. */
static uint64_t viewer_rank_ns(const struct viewer_rank *rank, uint64_t common_ns)
{
	return common_ns > rank->plan->origin_ns ? common_ns - rank->plan->origin_ns : 0;
}

/* Time from the call to the end of the recording, for operations in flight. */
static uint64_t viewer_rank_age_ns(const struct viewer_rank *rank, const struct op_record *op)
{
	const struct viewer_source *source = rank->source;
	uint64_t since_ns = viewer_common_ns(&source->times, viewer_first_sign_ns(op));

	return source->last_ns > since_ns ? source->last_ns - since_ns : 0;
}

#define KEY_COMM (UINT64_C(1) << 40)
#define KEY_CALLS (UINT64_C(2) << 40)

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

/* The group of a communicator's operations; NULL: no room. */
static struct viewer_group *viewer_rank_comm(struct viewer_rank *rank, uint32_t comm_id)
{
	bool is_new;
	struct viewer_group *group = viewer_lanes_group(&rank->lanes, KEY_COMM | comm_id, &is_new);

	if (is_new)
		name_comm(rank, comm_id, group);
	return group;
}

static uint32_t viewer_rank_track(struct viewer_rank *rank, struct viewer_group *group,
				  uint64_t *start_ns, uint64_t *end_ns);

bool viewer_order_init(struct viewer_order *order)
{
	order->count = 0;
	order->items = malloc(VIEWER_ORDER_MAX * sizeof(*order->items));
	return order->items != NULL;
}

void viewer_order_release(struct viewer_order *order)
{
	free(order->items);
	order->items = NULL;
	order->count = 0;
}

/* If two start together, the longer one first: it may contain the other. */
static bool is_before(const struct viewer_item *a, const struct viewer_item *b)
{
	if (a->place.start_ns != b->place.start_ns)
		return a->place.start_ns < b->place.start_ns;
	return a->place.end_ns > b->place.end_ns;
}

void viewer_order_put(struct viewer_order *order, const struct viewer_item *item)
{
	size_t at = order->count++;

	while (at > 0 && is_before(item, &order->items[(at - 1) / 2])) {
		order->items[at] = order->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	order->items[at] = *item;
}

void viewer_order_take(struct viewer_order *order, struct viewer_item *item)
{
	const struct viewer_item *last = &order->items[--order->count];
	size_t at = 0, child;

	*item = order->items[0];
	while ((child = 2 * at + 1) < order->count) {
		if (child + 1 < order->count &&
		    is_before(&order->items[child + 1], &order->items[child]))
			child++;
		if (!is_before(&order->items[child], last))
			break;
		order->items[at] = order->items[child];
		at = child;
	}
	order->items[at] = *last;
}

enum { FIRST_SLOTS = 64, SEED = 1 };

void viewer_lanes_init(struct viewer_lanes *lanes)
{
	*lanes = (struct viewer_lanes){ .groups = NULL };
}

void viewer_lanes_release(struct viewer_lanes *lanes)
{
	for (size_t i = 0; i < lanes->count; i++) {
		free(lanes->groups[i]->lanes);
		free(lanes->groups[i]);
	}
	free(lanes->groups);
	free(lanes->slots);
	viewer_lanes_init(lanes);
}

/* Number of a track without lanes. */
static uint32_t viewer_lanes_track(struct viewer_lanes *lanes)
{
	return ++lanes->tracks;
}

/* The slot of the key, or the free one for it. */
static uint32_t *slot_of(const struct viewer_lanes *lanes, uint64_t key)
{
	size_t mask = lanes->slot_count - 1;
	size_t at = (size_t)hash_word(SEED, key) & mask;

	while (lanes->slots[at] != 0 && lanes->groups[lanes->slots[at] - 1]->key != key)
		at = (at + 1) & mask;
	return &lanes->slots[at];
}

static bool grow_slots(struct viewer_lanes *lanes)
{
	size_t count = lanes->slot_count ? lanes->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (slots == NULL)
		return false;
	free(lanes->slots);
	lanes->slots = slots;
	lanes->slot_count = count;
	for (size_t i = 0; i < lanes->count; i++)
		*slot_of(lanes, lanes->groups[i]->key) = (uint32_t)i + 1;
	return true;
}

static struct viewer_group *add_group(struct viewer_lanes *lanes, uint64_t key)
{
	struct viewer_group *group;

	if (lanes->count * 2 >= lanes->slot_count && !grow_slots(lanes))
		return NULL;
	if (!list_grow(&lanes->groups, lanes->count, sizeof(*lanes->groups)))
		return NULL;
	group = calloc(1, sizeof(*group));
	if (group == NULL)
		return NULL;
	group->key = key;
	*slot_of(lanes, key) = (uint32_t)lanes->count + 1;
	lanes->groups[lanes->count++] = group;
	return group;
}

struct viewer_group *viewer_lanes_group(struct viewer_lanes *lanes, uint64_t key, bool *is_new)
{
	struct viewer_group *group;

	*is_new = false;
	if (lanes->slot_count > 0) {
		uint32_t found = *slot_of(lanes, key);

		if (found != 0)
			return lanes->groups[found - 1];
	}
	if (lanes->count == VIEWER_GROUPS_MAX)
		return NULL;
	group = add_group(lanes, key);
	*is_new = group != NULL;
	if (group == NULL)
		lanes->status = ERR_NO_SPACE;
	return group;
}

static struct viewer_lane *add_lane(struct viewer_lanes *lanes, struct viewer_group *group)
{
	struct viewer_lane *list;

	if (group->count == VIEWER_LANES_MAX)
		return NULL;
	/* Grows by one: few groups need more than two. */
	list = realloc(group->lanes, (group->count + 1) * sizeof(*list));
	if (list == NULL) {
		lanes->status = ERR_NO_SPACE;
		return NULL;
	}
	group->lanes = list;
	list[group->count] = (struct viewer_lane){ .track = viewer_lanes_track(lanes) };
	return &list[group->count++];
}

/* A slice without end may be nested in another one that started before it. */
static bool has_room(const struct viewer_lane *lane, uint64_t start_ns, bool is_open)
{
	if (lane->end_ns != UINT64_MAX)
		return start_ns + VIEWER_SLIDE_NS > lane->end_ns;
	return is_open && lane->open < VIEWER_LANE_STACK && start_ns >= lane->open_ns;
}

const struct viewer_lane *viewer_lanes_take(struct viewer_lanes *lanes, struct viewer_group *group,
					    uint64_t *start_ns, uint64_t *end_ns, bool *is_new)
{
	bool is_open = *end_ns == UINT64_MAX;
	struct viewer_lane *lane = NULL;

	*is_new = false;
	for (size_t i = 0; i < group->count && lane == NULL; i++)
		if (has_room(&group->lanes[i], *start_ns, is_open))
			lane = &group->lanes[i];
	if (lane == NULL) {
		lane = add_lane(lanes, group);
		if (lane == NULL)
			return NULL;
		*is_new = true;
	}
	/* With a gap: readers add start and duration as doubles, which may round up. */
	if (!*is_new && lane->end_ns != UINT64_MAX && lane->end_ns >= *start_ns) {
		if (!is_open)
			*end_ns += lane->end_ns + 1 - *start_ns;
		*start_ns = lane->end_ns + 1;
	}
	lane->end_ns = *end_ns;
	if (is_open) {
		lane->open++;
		lane->open_ns = *start_ns;
	}
	return lane;
}

/* Narrower bins would show single operations, which the slices do better. */
enum { LEAST_WIDTH_NS = 10000 };

static uint64_t round_width(uint64_t least_ns)
{
	uint64_t width = LEAST_WIDTH_NS;

	for (;;) {
		if (width >= least_ns)
			return width;
		if (width * 2 >= least_ns)
			return width * 2;
		if (width * 5 >= least_ns)
			return width * 5;
		width *= 10;
	}
}

void viewer_bins_init(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t span = end_ns > start_ns ? end_ns - start_ns : 0;

	bins->start_ns = start_ns;
	bins->width_ns = round_width(span / VIEWER_BINS_MAX + 1);
	bins->count = (uint32_t)(span / bins->width_ns) + 1;
	bins->is_used = false;
	bins->timed = bins->missed = 0;
	if (bins->count > VIEWER_BINS_MAX)
		bins->count = VIEWER_BINS_MAX;
	memset(bins->bytes, 0, sizeof(bins->bytes));
	memset(bins->busy_ns, 0, sizeof(bins->busy_ns));
}

void viewer_bins_add(struct viewer_bins *bins, uint64_t start_ns, uint64_t end_ns, double bytes)
{
	uint64_t end_of_bins = bins->start_ns + bins->count * bins->width_ns;
	double rate;

	bins->timed++;
	if (end_ns <= start_ns || bytes <= 0)
		return;
	rate = bytes / (double)(end_ns - start_ns);
	if (start_ns < bins->start_ns)
		start_ns = bins->start_ns;
	if (end_ns > end_of_bins)
		end_ns = end_of_bins;
	while (start_ns < end_ns) {
		uint64_t bin = (start_ns - bins->start_ns) / bins->width_ns;
		uint64_t until = bins->start_ns + (bin + 1) * bins->width_ns;

		if (until > end_ns)
			until = end_ns;
		bins->bytes[bin] += rate * (double)(until - start_ns);
		bins->busy_ns[bin] += (double)(until - start_ns);
		bins->is_used = true;
		start_ns = until;
	}
}

void viewer_bins_miss(struct viewer_bins *bins)
{
	bins->missed++;
}

bool viewer_bins_is_sampled(const struct viewer_bins *bins)
{
	return bins->missed * 10 > bins->timed;
}

/* Counter values in GB/s, one per change, and a final 0; no 0 if some operations were not timed. */
static void viewer_bins_write(const struct viewer_bins *bins, struct viewer *viewer,
			      const struct viewer_track *track, uint64_t origin_ns)
{
	bool is_sampled = viewer_bins_is_sampled(bins);
	double before = -1;

	for (uint32_t i = 0; i < bins->count; i++) {
		double over_ns = is_sampled ? bins->busy_ns[i] : (double)bins->width_ns;
		double value;

		if (!(over_ns > 0))
			continue;
		value = viewer_round(bins->bytes[i] / over_ns);
		if (value != before)
			viewer_value(viewer, track, bins->start_ns + i * bins->width_ns - origin_ns,
				     value);
		before = value;
	}
	if (before != 0 && !is_sampled)
		viewer_value(viewer, track,
			     bins->start_ns + bins->count * bins->width_ns - origin_ns, 0);
}

static const char *name_of(const struct viewer_op *of, enum op_name_table table, uint8_t number)
{
	return recording_name(of->process, table, number);
}

/* The part of the name that says what is special about the operation. */
static const char *op_remark(const struct viewer_op *of)
{
	if (of->place->kind == VIEWER_IN_FLIGHT)
		return " (in flight)";
	switch (of->op->state) {
	case OP_ABANDONED:
		return " (abandoned)";
	case OP_CAPTURED:
		return " (captured)";
	default:
		break;
	}
	if (of->place->kind == VIEWER_CALLED)
		return " (call only)";
	return of->place->kind == VIEWER_NOWHERE ? " (no time recorded)" : "";
}

void viewer_op_name(const struct viewer_op *of, char name[static VIEWER_NAME_TEXT])
{
	const struct op_record *op = of->op;
	char size[UNITS_TEXT], bytes[UNITS_TEXT + 1] = "", peer[24] = "";

	if (op->bytes != OP_BYTES_UNKNOWN)
		text_format(bytes, sizeof(bytes), " %s", units_bytes(size, op->bytes));
	if (op->peer >= 0)
		text_format(peer, sizeof(peer), " %s %d", op->function == OP_RECV ? "from" : "to",
			    (int)op->peer);
	text_format(name, VIEWER_NAME_TEXT, "%s%s%s%s",
		    name_of(of, OP_NAMES_FUNCTION, op->function), bytes, peer, op_remark(of));
}

static void put_flags(struct viewer_args *args, struct viewer_op_texts *texts, uint32_t flags)
{
	size_t at = 0;

	texts->flags[0] = '\0';
	for (unsigned int bit = 0; bit < 32; bit++) {
		const char *name = flags >> bit & 1 ? op_flag_name(bit) : NULL;

		if (name) {
			text_format(texts->flags + at, sizeof(texts->flags) - at, "%s%s",
				    at > 0 ? " " : "", name);
			at += strlen(texts->flags + at);
		}
	}
	if (at > 0)
		viewer_arg_text(args, "flags", texts->flags);
}

static void put_known(struct viewer_args *args, const char *name, uint64_t value)
{
	if (value != 0)
		viewer_arg_unsigned(args, name, value);
}

static void put_rank(struct viewer_args *args, const char *name, int32_t rank)
{
	if (rank >= 0)
		viewer_arg_signed(args, name, rank);
}

static bool has_root(uint8_t function)
{
	return function == OP_BROADCAST || function == OP_REDUCE || function == OP_GATHER ||
	       function == OP_SCATTER;
}

static void put_what(const struct viewer_op *of, struct viewer_args *args)
{
	const struct op_record *op = of->op;

	viewer_arg_text(args, "function", name_of(of, OP_NAMES_FUNCTION, op->function));
	if (of->seat) {
		const struct job_comm *comm = &of->job->comms[of->seat->comm];

		viewer_arg_text(args, "communicator", comm->label);
		if (comm->hash != 0)
			viewer_arg_hex(args, "comm_hash", comm->hash);
		put_rank(args, "comm_rank", of->seat->comm_rank);
		put_known(args, "comm_ranks", comm->nranks > 0 ? (uint64_t)comm->nranks : 0);
	}
	viewer_arg_unsigned(args, "number", op->number);
	put_known(args, "match", op->match);
	if (op->bytes != OP_BYTES_UNKNOWN)
		viewer_arg_unsigned(args, "bytes", op->bytes);
	viewer_arg_unsigned(args, "count", op->count);
	viewer_arg_text(args, "datatype", name_of(of, OP_NAMES_DATATYPE, op->datatype));
	if (has_root(op->function))
		put_rank(args, "root", op->root);
	put_rank(args, "peer", op->peer);
	viewer_arg_text(args, "algorithm", name_of(of, OP_NAMES_ALGORITHM, op->algorithm));
	viewer_arg_text(args, "protocol", name_of(of, OP_NAMES_PROTOCOL, op->protocol));
	put_known(args, "channels", op->channels);
	put_known(args, "user_tag", op->user_tag);
	put_known(args, "captured_number", op->captured_number);
}

/* Bytes x factor of the function, as in nccl-tests; 0 unknown, or its time is that of several. */
static double viewer_op_bus_bytes(const struct viewer_op *of)
{
	int32_t nranks = of->seat ? of->job->comms[of->seat->comm].nranks : 0;

	if (of->op->bytes == OP_BYTES_UNKNOWN || of->op->flags & OP_FLAG_SHARED_TIME)
		return 0;
	return (double)of->op->bytes * op_bus_factor(of->op->function, nranks);
}

/* CUDA events measure a duration exactly; their place in time is an estimate. 0: not known, or no such time. */
static uint64_t place_error_ns(const struct viewer_op *of)
{
	const struct recording_comm *comm;

	if (op_shown_source(of->op->time_source, of->op->flags) != OP_TIME_CUDA_EVENT ||
	    of->op->flags & OP_FLAG_PLACE_ROUGH)
		return 0;
	comm = recording_comm(of->process, of->op->comm);
	return comm ? comm->info.place_error_ns : 0;
}

static void put_time(const struct viewer_op *of, struct viewer_op_texts *texts,
		     struct viewer_args *args)
{
	const struct op_record *op = of->op;
	uint64_t duration_ns = op_duration_ns(op);
	double bus_bytes = viewer_op_bus_bytes(of);

	viewer_arg_text(args, "state", op_state_name(op->state));
	viewer_arg_text(args, "time_source", op_time_name(op->time_source, op->flags));
	viewer_arg_text(args, "placed", viewer_place_name(of->place->kind));
	put_known(args, "place_error_ns", place_error_ns(of));
	if (op_has_duration(op))
		viewer_arg_unsigned(args, "duration_ns", duration_ns);
	if (duration_ns > 0 && bus_bytes > 0)
		viewer_arg_double(args, "busbw_gigabytes_per_s",
				  viewer_round(bus_bytes / (double)duration_ns));
	put_known(args, "in_flight_ns", of->in_flight_ns);
	if (op->issue_ns != 0 && op->launch_ns >= op->issue_ns)
		viewer_arg_unsigned(args, "issue_to_launch_ns", op->launch_ns - op->issue_ns);
	put_known(args, "start_spread_ns", op->start_spread_ns);
	put_known(args, "stop_spread_ns", op->stop_spread_ns);
	put_flags(args, texts, op->flags);
}

static void put_meeting(const struct viewer_op *of, struct viewer_op_texts *texts,
			struct viewer_args *args)
{
	const struct viewer_met *met = of->met;
	const struct job_rank *last;

	if (met->is_differing)
		viewer_arg_text(args, "mismatch", "other ranks called a different operation");
	if (!met->has_wait)
		return;
	viewer_arg_unsigned(args, "wait_ns", met->wait_ns);
	last = &of->job->ranks[met->last->rank];
	if (met->last == of->seat)
		text_copy(texts->waits_for, sizeof(texts->waits_for), "none: arrived last");
	else
		text_format(texts->waits_for, sizeof(texts->waits_for), "rank %s", last->label);
	viewer_arg_text(args, "waits_for", texts->waits_for);
	if (met->is_partial)
		viewer_arg_text(args, "wait_is", "lower bound: not all ranks are recorded");
}

static void put_network(const struct viewer_op *of, struct viewer_args *args)
{
	static const char *const wait_names[OP_WAITS] = {
		[OP_WAIT_SEND_GPU] = "transfers_send_gpu_ns",
		[OP_WAIT_SEND_PEER] = "transfers_send_peer_ns",
		[OP_WAIT_SEND_NET] = "transfers_send_net_ns",
		[OP_WAIT_RECV_NET] = "transfers_recv_net_ns",
		[OP_WAIT_RECV_FLUSH] = "transfers_recv_flush_ns",
		[OP_WAIT_RECV_GPU] = "transfers_recv_gpu_ns",
	};
	const struct op_record *op = of->op;

	put_known(args, "kernels_started", op->kernels_started);
	put_known(args, "kernels_stopped", op->kernels_stopped);
	put_known(args, "proxies_started", op->proxies_started);
	put_known(args, "proxies_stopped", op->proxies_stopped);
	put_known(args, "send_bytes", op->send_bytes);
	put_known(args, "recv_bytes", op->recv_bytes);
	for (unsigned int i = 0; i < OP_WAITS; i++)
		put_known(args, wait_names[i], op->wait_ns[i]);
}

void viewer_op_args(const struct viewer_op *of, struct viewer_op_texts *texts,
		    struct viewer_args *args)
{
	const struct op_record *op = of->op;

	args->count = 0;
	args->is_cut = false;
	put_what(of, args);
	put_time(of, texts, args);
	put_meeting(of, texts, args);
	put_network(of, args);
	put_known(args, "nccl_sequence", op->nccl_sequence);
	put_known(args, "sequence", op->sequence);
	if (op->stream != 0)
		viewer_arg_hex(args, "stream", op->stream);
	viewer_arg_hex(args, "signature", op->signature);
}

enum viewer_colour viewer_op_colour(const struct viewer_op *of)
{
	if (of->place->kind == VIEWER_IN_FLIGHT || of->op->state == OP_ABANDONED)
		return VIEWER_UNFINISHED;
	if (of->place->kind == VIEWER_SEEN || of->op->flags & OP_STAMPS_UNTRUSTED)
		return VIEWER_DOUBTFUL;
	return VIEWER_PLAIN;
}

/* Channels, proxy operations and transfers: tracks below those of their communicators. */

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

/* A kernel channel, from GPU timestamps, relative to its stop. */
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
		/* Without a start time it is an instant. */
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

/* Time in each stage; 0 if a timestamp is missing. */
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

static void detail_args(struct viewer_args *args, const struct op_detail *detail)
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
	detail_args(&args, &item->detail);
	viewer_slice(rank->viewer, &slice);
	rank->plan->tally.details++;
}

static void write_first_detail(struct viewer_rank *rank)
{
	struct viewer_item item;

	viewer_order_take(&rank->order, &item);
	write_detail(rank, &item);
}

static bool rank_visit_detail(const struct op_detail *detail, enum recording_place found,
			      void *context)
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
			write_first_detail(rank);
		viewer_order_put(&rank->order, &item);
	}
	if (rank->status == OK)
		rank->status = rank->lanes.status;
	return rank->status == OK && !viewer_has_failed(rank->viewer) && plan->status == OK;
}

static enum status viewer_rank_details(struct viewer_rank *rank)
{
	enum status status;

	status = recording_each_detail(rank->source->times.process, rank_visit_detail, rank, NULL);
	while (rank->order.count > 0)
		write_first_detail(rank);
	return status != OK ? status : rank->status;
}

/* Instants of a process: missing and lost operations, hangs, its end. */

static void write_note(struct viewer_rank *rank, uint64_t common_ns, const char *name,
		       const struct viewer_args *args)
{
	const struct viewer_plan *plan = rank->plan;
	struct viewer_instant instant = {
		.process = rank->source->number,
		.name = name,
		.category = "note",
		.args = args,
	};

	/* Instants about the whole recording are placed inside the shown span. */
	if (common_ns > plan->end_ns)
		common_ns = plan->end_ns;
	instant.at_ns = viewer_rank_ns(rank, common_ns);
	viewer_instant(rank->viewer, &instant);
}

/* Records come in order of sequence number, so a missing one leaves a gap. */
static void viewer_rank_gap(struct viewer_rank *rank, const struct op_record *op,
			    const struct viewer_place *place)
{
	uint64_t last = rank->last_sequence;
	uint64_t missing = op->sequence > last + 1 ? op->sequence - last - 1 : 0;
	struct viewer_args args = { .count = 0 };
	char name[96], count[UNITS_TEXT];

	if (op->sequence > last)
		rank->last_sequence = op->sequence;
	if (missing == 0)
		return;
	rank->plan->tally.missing += missing;
	if (!viewer_plan_is_inside(rank->plan, place) || place->kind == VIEWER_NOWHERE)
		return;
	text_format(name, sizeof(name), "%s %s missing%s", units_count(count, missing),
		    text_which(missing, "operation", "operations"),
		    last == 0 ? " before this" : "");
	viewer_arg_unsigned(&args, "missing", missing);
	viewer_arg_unsigned(&args, "first_sequence", last + 1);
	viewer_arg_unsigned(&args, "last_sequence", op->sequence - 1);
	write_note(rank, place->start_ns, name, &args);
}

static void note_losses(struct viewer_rank *rank, uint64_t at_ns)
{
	const struct recording_process *process = rank->source->times.process;

	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		struct viewer_args args = { .count = 0 };
		char name[96], count[UNITS_TEXT];

		if (process->lost[i] == 0 || op_lost_name(i) == NULL)
			continue;
		text_format(name, sizeof(name), "lost %s: %s", units_count(count, process->lost[i]),
			    op_lost_name(i));
		viewer_arg_text(&args, "reason", op_lost_name(i));
		viewer_arg_unsigned(&args, "count", process->lost[i]);
		viewer_arg_text(&args, "what",
				op_lost_is_whole(i) ? "operations" : "details of operations");
		write_note(rank, at_ns, name, &args);
	}
}

/* What it waits for, if its network side is known. */
static void put_wait(struct viewer_args *args, const struct recording_process *process,
		     const struct op_record *op, char text[static 128])
{
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];
		struct flight_wait *waits;
		size_t count;

		if (flight->op.comm != op->comm || flight->op.number != op->number ||
		    flight_waits(flight->proxies, flight->proxy_count, &waits, &count) != OK)
			continue;
		if (count > 0) {
			text_format(text, 128, "%s (rank %d of its communicator)",
				    flight_reason_name(waits[0].reason), (int)waits[0].peer);
			viewer_arg_text(args, "waits_for", text);
		}
		free(waits);
		return;
	}
}

/* The oldest operation in flight of a communicator blocks the others. */
static void note_hang(struct viewer_rank *rank, size_t index, uint64_t at_ns)
{
	const struct op_record *op = &rank->open[index].op;
	struct viewer_args args = { .count = 0 };
	char name[160], age[UNITS_TEXT], wait[128];
	size_t behind = 0;

	for (size_t i = 0; i < rank->open_count; i++) {
		if (rank->open[i].op.comm != op->comm)
			continue;
		if (i < index)
			return;
		behind += i > index;
	}
	text_format(name, sizeof(name), "%s #%llu in flight for %s",
		    recording_name(rank->source->times.process, OP_NAMES_FUNCTION, op->function),
		    (unsigned long long)op->number,
		    units_duration(age, viewer_rank_age_ns(rank, op)));
	viewer_arg_unsigned(&args, "number", op->number);
	viewer_arg_text(&args, "state", op_state_name(op->state));
	viewer_arg_unsigned(&args, "operations_behind", behind);
	put_wait(&args, rank->source->times.process, op, wait);
	write_note(rank, at_ns, name, &args);
}

static void viewer_rank_notes(struct viewer_rank *rank)
{
	const struct viewer_source *source = rank->source;
	const struct recording_process *process = source->times.process;
	uint64_t counted_ns = viewer_common_ns(&source->times, process->counts_ns);

	note_losses(rank, counted_ns ? counted_ns : source->last_ns);
	for (size_t i = 0; i < rank->open_count; i++)
		note_hang(rank, i, source->last_ns);
	if (process->life == RECORDING_KILLED)
		write_note(rank, source->last_ns, "process was killed", NULL);
	else if (process->life == RECORDING_UNKNOWN)
		write_note(rank, source->last_ns, "recording is truncated here", NULL);
}

/*
 * The third walk, one process at a time. Operations come in order of their end; a heap sorts them by start, and
 * each gets a lane of its communicator. Operations in flight are written last, because nothing may follow a slice
 * without end.
 */

enum {
	/* Shorter waiting has no slice of its own, only an argument. */
	LEAST_WAIT_NS = 1000,
	OPEN_MAX = 8192,
};

/* A track for a slice, declared if new; 0: no room. */
static uint32_t viewer_rank_track(struct viewer_rank *rank, struct viewer_group *group,
				  uint64_t *start_ns, uint64_t *end_ns)
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

/* The time before the last rank arrived, nested in its operation. Arrows start there. */
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
	/* Ends before its operation, so that it stays nested after rounding. */
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

/* Arrows of the slice go into `own`, those that start in its waiting into `tails`. */
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

/* A slice on a lane of its communicator, or an instant if there is no room. */
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

/* The call on the host, until the kernel was launched. */
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

static void count_placed(struct viewer_tally *tally, enum viewer_place_kind kind)
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
	else if (!op_has_duration(&item->op) && item->place.kind != VIEWER_IN_FLIGHT &&
		 item->op.state != OP_CAPTURED)
		viewer_bins_miss(&rank->bins);
	count_placed(&plan->tally, item->place.kind);
}

static void write_first_op(struct viewer_rank *rank)
{
	struct viewer_item item;

	viewer_order_take(&rank->order, &item);
	write_op(rank, &item);
}

static bool keep_open(struct viewer_rank *rank, const struct viewer_item *item)
{
	if (!list_grow(&rank->open, rank->open_count, sizeof(*rank->open))) {
		rank->status = ERR_NO_SPACE;
		return false;
	}
	rank->open[rank->open_count++] = *item;
	return true;
}

static bool rank_visit_op(const struct op_record *op, enum recording_place found, void *context)
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
				write_first_op(rank);
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

	return ORDER(a->place.start_ns, b->place.start_ns) ?: ORDER(a->op.number, b->op.number);
}

static enum status write_ops(struct viewer_rank *rank)
{
	struct recording_walk walk = { 0 };
	enum status status;

	status = recording_each_op(rank->source->times.process, rank_visit_op, rank, &walk);
	while (rank->order.count > 0)
		write_first_op(rank);
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

/* "rank 3 node01"; "ranks 0-7 node01" if threads are ranks. */
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

/* Its name, and the accuracy of its clock. */
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
		text_format(label, sizeof(label), "not aligned: placed by its wall clock");
	else if (source == ALIGN_REFERENCE)
		text_format(label, sizeof(label), "reference clock");
	else if (source == ALIGN_SAME_CLOCK && align_uncertainty_ns(align, index) == 0)
		text_format(label, sizeof(label), "same clock as the reference");
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
