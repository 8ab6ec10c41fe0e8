/*
 * Kernel channels and their GPU timestamps ("stamps").
 *
 * NCCL 2.26 to 2.30 can deliver stamps of other work: the counters of host and GPU drift apart, its
 * ring of 64 stamps is overrun, or a start is lost and a stop goes to an old handle. Where this can
 * be proved, it is flagged in the operation and the stamp is not used as a time.
 *
 * The proofs rest on one fact: a callback comes after the moment it reports. So for every stamp gpu
 * - host <= offset between the clocks, and the greatest such difference is the best lower bound of
 * the offset. A start that this bound places before the call belongs to other work.
 */
#include "plugin/recorder.h"

/* The bound may decrease slowly: the two clocks run at slightly different rates. */
enum { OFFSET_DECAY_SHIFT = 14 }; /* 61 ppm */

static void learn_offset(struct comm_info *info, uint64_t gpu_ns, uint64_t now)
{
	int64_t seen = (int64_t)(gpu_ns - now);
	uint64_t at = load_relaxed(&info->gpu_offset_at_ns);
	int64_t bound =
		load_relaxed(&info->gpu_offset_ns) - (int64_t)((now - at) >> OFFSET_DECAY_SHIFT);

	if (at != 0 && seen <= bound)
		return;
	store_relaxed(&info->gpu_offset_ns, seen);
	store_relaxed(&info->gpu_offset_at_ns, now);
}

/* Has this (direction, channel) of the communicator drifted? */
static bool channel_is_untrusted(const struct region_comm *shared, unsigned int direction,
				 uint8_t channel)
{
	return load_relaxed(&shared->untrusted_channels[direction * 4 + channel / 64]) >>
		       (channel % 64) &
	       1;
}

static COLD void distrust_channel(struct region_comm *shared, unsigned int direction,
				  uint8_t channel)
{
	uint64_t bit = UINT64_C(1) << (channel % 64);

	if (!(or_relaxed(&shared->untrusted_channels[direction * 4 + channel / 64], bit) & bit))
		count_odd(ODD_CHANNEL);
}

/* Where the latest stamps of a channel are kept. */
static struct channel_stamps *stamps_of(struct comm_state *comm, unsigned int direction,
					uint8_t channel)
{
	return channel < STAMPED_CHANNELS ? &comm->stamps[direction][channel] : NULL;
}

/*
 * The thread that reports kernels also moves the data. Where every kernel needs the network and has
 * few works, the GPU cannot be 64 works ahead while no transfer of these has begun, however late
 * the callback comes.
 */
static bool is_held_by_network(const struct comm_state *comm, uint64_t index)
{
	uint64_t at = load_relaxed(&comm->network_at);

	return at != 0 && index < at + AHEAD_OF_NETWORK &&
	       at + AHEAD_OF_NETWORK < index + STAMP_RING && !load_relaxed(&comm->is_loose);
}

/*
 * NCCL keeps 64 stamps per channel. With that much work queued behind this one and a late callback,
 * the stamp may be that of a work 64 later. Once that has happened, it can affect everything that
 * was queued then, late or not: the stamp of the latest work is in one of the slots.
 */
static bool may_be_overrun(struct comm_state *comm, const struct region_live *live, uint64_t gpu_ns)
{
	uint64_t tasks, index;
	int64_t late;

	if (load_relaxed(&live->op.flags) & OP_FLAG_STAMP_OVERRUN)
		return true;
	/* Read last: the calling thread writes it all the time. */
	tasks = load_relaxed(&comm->tasks);
	index = load_relaxed(&live->task_index);
	if (LIKELY(tasks - index <= STAMP_RING) || is_held_by_network(comm, index))
		return false;
	late = (int64_t)(recorder_now() - gpu_ns) + load_relaxed(&comm->shared->info.gpu_offset_ns);
	if (late < STAMP_LATE_NS)
		return index < load_relaxed(&comm->overrun_until);
	store_relaxed(&comm->overrun_until, tasks);
	return true;
}

/* Does the start lie before the call? */
static bool is_before_call(const struct comm_state *comm, const struct region_live *live,
			   uint64_t gpu_ns)
{
	const struct comm_info *info = &comm->shared->info;
	bool has_bound = !(load_relaxed(&live->notes) & LIVE_FROM_TASK) ||
			 (load_relaxed(&live->op.flags) & OP_FLAG_REPLAY);
	uint64_t issued = load_relaxed(&live->op.issue_ns);
	uint64_t at = load_relaxed(&info->gpu_offset_at_ns);
	/* How much the bound may have decreased since it was measured. */
	uint64_t sunk = issued > at ? (issued - at) >> OFFSET_DECAY_SHIFT : 0;
	uint64_t earliest =
		issued + (uint64_t)load_relaxed(&info->gpu_offset_ns) - sunk - STAMP_SLACK_NS;

	return has_bound && (int64_t)(gpu_ns - earliest) < 0;
}

static uint64_t plan_of(const struct region_live *live)
{
	return load_relaxed(&live->notes) >> LIVE_PLAN_SHIFT;
}

/*
 * Works of one kernel can be one batch and start together. Otherwise nothing starts before its
 * predecessor stops, unless the predecessor carries the stamps of later work.
 */
static bool is_before_predecessor(const struct comm_state *comm, const struct region_live *live,
				  const struct channel_stamps *last, uint64_t gpu_ns)
{
	if (gpu_ns == load_relaxed(&last->start_ns)) {
		if (LIKELY(load_relaxed(&last->plan) == plan_of(live)))
			return false;
	} else if (LIKELY(gpu_ns >= load_relaxed(&last->stop_ns))) {
		return false;
	}
	return load_relaxed(&live->task_index) >= load_relaxed(&comm->overrun_until);
}

static void add_flag(struct region_live *live, uint32_t flag)
{
	if (flag & ~load_relaxed(&live->op.flags))
		or_relaxed(&live->op.flags, flag);
}

static unsigned int direction_of(const struct region_live *live)
{
	return load_relaxed(&live->op.function) == OP_RECV;
}

/* The flag for a bad start stamp, 0 if it is accepted. */
static uint32_t judge_start(struct comm_state *comm, const struct region_live *live,
			    uint8_t channel, uint64_t gpu_ns)
{
	unsigned int direction = direction_of(live);
	struct channel_stamps *last = stamps_of(comm, direction, channel);

	if (UNLIKELY(is_before_call(comm, live, gpu_ns) ||
		     (last != NULL && is_before_predecessor(comm, live, last, gpu_ns)))) {
		distrust_channel(comm->shared, direction, channel);
		return OP_FLAG_STAMP_STALE;
	}
	if (UNLIKELY(channel_is_untrusted(comm->shared, direction, channel)))
		return OP_FLAG_STAMP_CHANNEL;
	return may_be_overrun(comm, live, gpu_ns) ? OP_FLAG_STAMP_OVERRUN : 0;
}

static void take_start_stamp(struct comm_state *comm, struct region_live *live, uint8_t channel,
			     uint64_t gpu_ns)
{
	struct channel_stamps *last = stamps_of(comm, direction_of(live), channel);
	uint32_t flags;

	if (gpu_ns == 0) {
		add_flag(live, OP_FLAG_STAMP_ZERO);
		return;
	}
	flags = judge_start(comm, live, channel, gpu_ns);
	add_flag(live, flags);
	if (LIKELY(last != NULL)) {
		store_relaxed(&last->start_ns, gpu_ns);
		store_relaxed(&last->plan, plan_of(live));
	}
	if (flags & OP_FLAG_STAMP_STALE)
		return;
	if (load_relaxed(&live->op.gpu_start_ns) == 0 ||
	    gpu_ns < load_relaxed(&live->op.gpu_start_ns))
		store_relaxed(&live->op.gpu_start_ns, gpu_ns);
	if (gpu_ns > load_relaxed(&live->last_start_ns))
		store_relaxed(&live->last_start_ns, gpu_ns);
}

static void take_stop_stamp(struct comm_state *comm, struct region_live *live, uint8_t channel,
			    uint64_t gpu_ns)
{
	struct channel_stamps *last = stamps_of(comm, direction_of(live), channel);
	uint64_t start = load_relaxed(last != NULL ? &last->start_ns : &live->op.gpu_start_ns);

	if (gpu_ns == 0) {
		add_flag(live, OP_FLAG_STAMP_ZERO);
		return;
	}
	if (gpu_ns < start)
		add_flag(live, OP_FLAG_STAMP_REVERSED);
	else if (may_be_overrun(comm, live, gpu_ns))
		add_flag(live, OP_FLAG_STAMP_OVERRUN);
	if (LIKELY(last != NULL))
		store_relaxed(&last->stop_ns, gpu_ns);
	if (gpu_ns > load_relaxed(&live->op.gpu_stop_ns))
		store_relaxed(&live->op.gpu_stop_ns, gpu_ns);
	if (load_relaxed(&live->first_stop_ns) == 0 || gpu_ns < load_relaxed(&live->first_stop_ns))
		store_relaxed(&live->first_stop_ns, gpu_ns);
}

/* Read the clock once per operation; its other channels come in the same poll or soon after. */
static void first_kernel(struct comm_state *comm, struct region_live *live, uint64_t gpu_ns)
{
	uint64_t now = recorder_now();

	live_mark_running(live, now);
	if (comm == NULL)
		return;
	if (gpu_ns != 0)
		learn_offset(&comm->shared->info, gpu_ns, now);
	if (UNLIKELY(!(load_relaxed(&comm->shared->info.flags) & COMM_FLAG_SEES_KERNELS)))
		or_relaxed(&comm->shared->info.flags, COMM_FLAG_SEES_KERNELS);
}

void *hot_kernel_start(const void *parent, uint8_t channel, uint64_t gpu_ns, bool has_stamp)
{
	struct handle handle = handle_decode(recorder.salt, parent);
	struct region_live *live = handle_kind(handle) == HANDLE_TASK ? live_find(handle) : NULL;
	uint64_t bit = UINT64_C(1) << (channel % 64), started;
	struct comm_state *comm;
	bool is_first;

	if (UNLIKELY(live == NULL)) {
		if (handle_kind(handle) == HANDLE_TASK)
			count_lost(LOST_LATE_CHILD, 1);
		return handle_ignored();
	}
	started = load_relaxed(&live->started[channel / 64]);
	if (UNLIKELY(started & bit)) {
		count_odd(ODD_REPEATED_START);
		return handle_make(HANDLE_KERNEL, handle_generation(handle), handle_slot(handle),
				   channel);
	}
	comm = comm_of_live(live);
	is_first = load_relaxed(&live->op.kernels_started) == 0;
	if (UNLIKELY(!live_kernel_begin(live, handle_generation(handle)))) {
		count_lost(LOST_LATE_CHILD, 1);
		return handle_ignored();
	}
	if (is_first)
		first_kernel(comm, live, has_stamp ? gpu_ns : 0);
	store_relaxed(&live->started[channel / 64], started | bit);
	if (LIKELY(comm != NULL && has_stamp))
		take_start_stamp(comm, live, channel, gpu_ns);
	return handle_make(HANDLE_KERNEL, handle_generation(handle), handle_slot(handle), channel);
}

/* Has this channel started and not stopped? If not, the event belongs to other work. */
static bool channel_is_open(const struct region_live *live, uint8_t channel)
{
	return (load_relaxed(&live->started[channel / 64]) &
		~load_relaxed(&live->stopped[channel / 64])) >>
		       (channel % 64) &
	       1;
}

void hot_kernel_state(struct handle handle, uint64_t gpu_ns)
{
	struct region_live *live = live_find(handle);
	struct comm_state *comm;

	if (UNLIKELY(live == NULL)) {
		count_odd(ODD_STALE_HANDLE);
		return;
	}
	if (UNLIKELY(!channel_is_open(live, handle_extra(handle)))) {
		count_odd(ODD_REPEATED_STATE);
		add_flag(live, OP_FLAG_FOREIGN_STOP);
		return;
	}
	comm = comm_of_live(live);
	if (comm != NULL)
		take_stop_stamp(comm, live, handle_extra(handle), gpu_ns);
}

static COLD void detail_kernel(const struct region_live *live, uint8_t channel)
{
	struct comm_state *comm = comm_of_live(live);
	unsigned int direction = direction_of(live);
	struct op_detail detail = {
		.comm = load_relaxed(&live->op.comm),
		.kind = OP_DETAIL_KERNEL,
		.channel = channel,
		.number = load_relaxed(&live->op.number),
		.peer = load_relaxed(&live->op.peer),
		.time_ns = { 0, 0, load_relaxed(&live->op.active_ns), recorder_now() },
	};

	if (comm != NULL && channel < STAMPED_CHANNELS) {
		detail.time_ns[0] = load_relaxed(&comm->stamps[direction][channel].start_ns);
		detail.time_ns[1] = load_relaxed(&comm->stamps[direction][channel].stop_ns);
	}
	record_detail(&detail);
}

void hot_kernel_stop(struct handle handle)
{
	struct region_live *live = live_find(handle);
	uint64_t *stopped;

	if (UNLIKELY(live == NULL)) {
		count_odd(ODD_STALE_HANDLE);
		return;
	}
	if (UNLIKELY(!channel_is_open(live, handle_extra(handle)))) {
		count_odd(ODD_REPEATED_STOP);
		add_flag(live, OP_FLAG_FOREIGN_STOP);
		return;
	}
	stopped = &live->stopped[handle_extra(handle) / 64];
	store_relaxed(stopped, load_relaxed(stopped) | UINT64_C(1) << (handle_extra(handle) % 64));
	if (UNLIKELY(recorder.is_full))
		detail_kernel(live, handle_extra(handle));
	live_kernel_end(live, handle_generation(handle));
}
