/*
 * Kernel channels and their GPU stamps.
 *
 * NCCL 2.26 to 2.30 can hand us stamps of other work: the counters of host and GPU drift apart, its
 * ring of 64 stamps is overrun, a start is lost and a stop goes to an old handle. All of that is
 * found here where it can be proved, marked in the operation, and not used as a time.
 *
 * What the proofs rest on: a callback comes after the moment it tells of. So for every stamp
 * gpu - host <= offset between the clocks, and the greatest such difference is the best lower bound
 * of the offset. A start that lies before the call, by that bound, is another work's.
 */
#include "capture/recorder.h"

/* The bound may sink a little with time: the clocks run at rates of their own. */
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

/* Bit for (direction, channel) in the communicator's set of channels that drifted. */
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

/* NCCL keeps 64 stamps per channel. With so much work behind this one, and a callback that comes
 * late, the stamp may be that of a work 64 later. */
static bool may_be_overrun(const struct comm_state *comm, const struct region_live *live,
			   uint64_t gpu_ns)
{
	if (LIKELY(load_relaxed(&comm->tasks) - load_relaxed(&live->task_index) <= STAMP_RING))
		return false;
	return (int64_t)(recorder_now() - gpu_ns) +
		       load_relaxed(&comm->shared->info.gpu_offset_ns) >=
	       STAMP_LATE_NS;
}

/* Is this start older than it can be? */
static bool is_stale_start(const struct comm_state *comm, const struct region_live *live,
			   unsigned int direction, uint8_t channel, uint64_t gpu_ns)
{
	const struct comm_info *info = &comm->shared->info;
	bool has_bound = !(load_relaxed(&live->notes) & LIVE_FROM_TASK) ||
			 (load_relaxed(&live->op.flags) & OP_FLAG_REPLAY);
	uint64_t earliest = load_relaxed(&live->op.issue_ns) +
			    (uint64_t)load_relaxed(&info->gpu_offset_ns) - STAMP_SLACK_NS;

	if (has_bound && (int64_t)(gpu_ns - earliest) < 0)
		return true;
	if (channel >= STAMPED_CHANNELS)
		return false;
	/* Work of one batch starts together; else nothing starts before its predecessor's stop. */
	return gpu_ns != load_relaxed(&comm->last_start_ns[direction][channel]) &&
	       gpu_ns < load_relaxed(&comm->last_stop_ns[direction][channel]);
}

static void add_flag(struct region_live *live, uint32_t flag)
{
	if (flag != 0)
		or_relaxed(&live->op.flags, flag);
}

static unsigned int direction_of(const struct region_live *live)
{
	return load_relaxed(&live->op.function) == OP_RECV;
}

static void take_start_stamp(struct comm_state *comm, struct region_live *live, uint8_t channel,
			     uint64_t gpu_ns)
{
	unsigned int direction = direction_of(live);
	uint32_t flags = 0;

	if (gpu_ns == 0) {
		add_flag(live, OP_FLAG_STAMP_ZERO);
		return;
	}
	if (is_stale_start(comm, live, direction, channel, gpu_ns)) {
		distrust_channel(comm->shared, direction, channel);
		flags = OP_FLAG_STAMP_STALE;
	} else if (channel_is_untrusted(comm->shared, direction, channel)) {
		flags = OP_FLAG_STAMP_CHANNEL;
	} else if (may_be_overrun(comm, live, gpu_ns)) {
		flags = OP_FLAG_STAMP_OVERRUN;
	}
	add_flag(live, flags);
	if (channel < STAMPED_CHANNELS)
		store_relaxed(&comm->last_start_ns[direction][channel], gpu_ns);
	if (flags & OP_FLAG_STAMP_STALE)
		return;
	if (live->op.gpu_start_ns == 0 || gpu_ns < load_relaxed(&live->op.gpu_start_ns))
		store_relaxed(&live->op.gpu_start_ns, gpu_ns);
	if (gpu_ns > load_relaxed(&live->last_start_ns))
		store_relaxed(&live->last_start_ns, gpu_ns);
}

static void take_stop_stamp(struct comm_state *comm, struct region_live *live, uint8_t channel,
			    uint64_t gpu_ns)
{
	unsigned int direction = direction_of(live);
	uint64_t start = channel < STAMPED_CHANNELS
				 ? load_relaxed(&comm->last_start_ns[direction][channel])
				 : load_relaxed(&live->op.gpu_start_ns);

	if (gpu_ns == 0) {
		add_flag(live, OP_FLAG_STAMP_ZERO);
		return;
	}
	if (gpu_ns < start)
		add_flag(live, OP_FLAG_STAMP_REVERSED);
	else if (may_be_overrun(comm, live, gpu_ns))
		add_flag(live, OP_FLAG_STAMP_OVERRUN);
	if (channel < STAMPED_CHANNELS)
		store_relaxed(&comm->last_stop_ns[direction][channel], gpu_ns);
	if (gpu_ns > load_relaxed(&live->op.gpu_stop_ns))
		store_relaxed(&live->op.gpu_stop_ns, gpu_ns);
	if (live->first_stop_ns == 0 || gpu_ns < load_relaxed(&live->first_stop_ns))
		store_relaxed(&live->first_stop_ns, gpu_ns);
}

/* The clock is asked once per operation; its other channels come in the same poll or soon after. */
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
	struct region_live *live = handle.kind == HANDLE_TASK ? live_find(handle) : NULL;
	uint64_t bit = UINT64_C(1) << (channel % 64), started;
	struct comm_state *comm;

	if (UNLIKELY(live == NULL)) {
		if (handle.kind == HANDLE_TASK)
			count_lost(LOST_LATE_CHILD, 1);
		return handle_ignored();
	}
	started = load_relaxed(&live->started[channel / 64]);
	if (UNLIKELY(started & bit)) {
		count_odd(ODD_REPEATED_START);
		return handle_make(HANDLE_KERNEL, handle.generation, handle.slot, channel);
	}
	comm = comm_of_live(live);
	if (load_relaxed(&live->op.kernels_started) == 0)
		first_kernel(comm, live, has_stamp ? gpu_ns : 0);
	if (UNLIKELY(!live_kernel_begin(live, handle.generation))) {
		count_lost(LOST_LATE_CHILD, 1);
		return handle_ignored();
	}
	store_relaxed(&live->started[channel / 64], started | bit);
	if (LIKELY(comm != NULL && has_stamp))
		take_start_stamp(comm, live, channel, gpu_ns);
	return handle_make(HANDLE_KERNEL, handle.generation, handle.slot, channel);
}

/* Has this channel started and not stopped? Otherwise the event is another one's. */
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
	if (UNLIKELY(!channel_is_open(live, handle.extra))) {
		count_odd(ODD_REPEATED_STATE);
		add_flag(live, OP_FLAG_FOREIGN_STOP);
		return;
	}
	comm = comm_of_live(live);
	if (comm != NULL)
		take_stop_stamp(comm, live, handle.extra, gpu_ns);
}

static COLD void detail_kernel(const struct region_live *live, uint8_t channel)
{
	struct comm_state *comm = comm_of_live(live);
	unsigned int direction = direction_of(live);
	struct op_detail detail = {
		.comm = live->op.comm,
		.kind = OP_DETAIL_KERNEL,
		.channel = channel,
		.number = live->op.number,
		.peer = load_relaxed(&live->op.peer),
		.time_ns = { 0, 0, load_relaxed(&live->op.active_ns), recorder_now() },
	};

	if (comm != NULL && channel < STAMPED_CHANNELS) {
		detail.time_ns[0] = load_relaxed(&comm->last_start_ns[direction][channel]);
		detail.time_ns[1] = load_relaxed(&comm->last_stop_ns[direction][channel]);
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
	if (UNLIKELY(!channel_is_open(live, handle.extra))) {
		count_odd(ODD_REPEATED_STOP);
		add_flag(live, OP_FLAG_FOREIGN_STOP);
		return;
	}
	stopped = &live->stopped[handle.extra / 64];
	store_relaxed(stopped, load_relaxed(stopped) | UINT64_C(1) << (handle.extra % 64));
	if (UNLIKELY(recorder.is_full))
		detail_kernel(live, handle.extra);
	live_kernel_end(live, handle.generation);
}
