/*
 * The network side of the proxy. A step makes four moves:
 *
 *	moved[0]	posted		Send: state 8 (GPU)	Recv: state 10 (network)
 *	moved[1]	ready, arrived	      state 20 (peer)	      state 11 (flush)
 *	moved[2]	sent, flushed	      state 9 (network)	      state 12 (GPU)
 *	moved[3]	completed	      stop		      stop
 *
 * Up to 8 steps are posted at a time. In each pass, each of the four counters advances by at most one, so that the
 * steps of all connections interleave as in NCCL. Operations on one connection take turns.
 *
 * Before 2.27 the proxy operation itself had states (0 to 7), and started in its first pass instead of when it was
 * queued.
 */
#include "sim/host.h"
#include "sim/host_internal.h"

#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/attributes.h"
#include "common/order.h"
#include "sim/host_event.h"

enum {
	ENGINE_QUEUE = 256,	  /* works posted and not yet taken; a power of two */
	ENGINE_ACTIVE_MAX = 4096, /* above this nothing is taken from the queue */
	ENGINE_AT_ONCE = 2,	  /* virtual time: works that advance concurrently */
	ENGINE_CONNECTIONS = 8192,
};

#define ENGINE_NEVER UINT64_MAX

enum engine_stop {
	ENGINE_RUN = 0,
	ENGINE_DRAIN = 1, /* finish what is queued, then exit */
	ENGINE_ABORT = 2, /* exit */
};

struct host_device {
	struct host_channel *channels[HOST_CHANNELS];
};

void host_work_drop(struct host_work *work)
{
	if (work->watched != NULL)
		work->op.comm->host->config.watcher->drop(work->watched);
	work->watched = NULL;
}

/* No part of a launch that is watched is freed without a word about it. */
static void work_release(struct host_work *work)
{
	host_work_drop(work);
	free(work->many);
	work->many = NULL;
}

static inline bool active_is_quirky(const struct host_active *active, enum host_quirk quirk)
{
	return (active->work.op.quirks & quirk) != 0;
}

/* Whether it is still stuck, i.e. was not posted before the last release. */
static inline bool active_is_held(const struct host_active *active)
{
	return active->work.op.stuck != HOST_STUCK_NONE &&
	       load_relaxed(&active->work.op.comm->releases) == active->work.release;
}

static inline bool active_is_stuck_channel(const struct host_active *active, unsigned int channel)
{
	return active->work.op.stuck_channel < 0 ||
	       (unsigned int)active->work.op.stuck_channel == channel;
}

/* Real time: false, and schedules a wakeup. Virtual time: everything is due. */
static inline bool engine_is_due(struct host_engine *engine, uint64_t ns)
{
	if (!engine->is_real || ns <= engine->now_ns)
		return true;
	if (ns < engine->next_due_ns)
		engine->next_due_ns = ns;
	return false;
}

static inline void active_count_start(struct host_active *active, unsigned int bit)
{
	bump_relaxed(&active->counts->starts[bit], 1);
}

static inline void active_count_state(struct host_active *active, enum abi_state state)
{
	bump_relaxed(&active->counts->states[state], 1);
}

/* Stop, and stop again if that quirk is on. */
static inline void active_stop(struct host_active *active, unsigned int bit, void *handle)
{
	(void)host_stop(&active->plugin, handle);
	bump_relaxed(&active->counts->stops[bit], 1);
	if (__builtin_expect(active_is_quirky(active, HOST_QUIRK_STOP_TWICE), 0)) {
		(void)host_stop(&active->plugin, handle);
		bump_relaxed(&active->counts->extra_stops, 1);
	}
}

enum { BIT_OP = 3, BIT_STEP = 4, BIT_NET = 7 };

static const enum abi_state step_states[2][3] = {
	{ ABI_STEP_RECV_WAIT, ABI_STEP_RECV_FLUSH_WAIT, ABI_STEP_RECV_GPU_WAIT },
	{ ABI_STEP_SEND_GPU_WAIT, ABI_STEP_SEND_PEER_WAIT, ABI_STEP_SEND_WAIT },
};

static const enum abi_state old_op_states[2][4] = {
	{ ABI_OP_RECV_POSTED, ABI_OP_RECV_RECEIVED, ABI_OP_RECV_TRANSMITTED, ABI_OP_RECV_DONE },
	{ ABI_OP_SEND_POSTED, ABI_OP_SEND_REM_FIFO_WAIT, ABI_OP_SEND_TRANSMITTED,
	  ABI_OP_SEND_DONE },
};

/* Written once and unrolled by the compiler: an operation makes about a hundred of these moves. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A collision only makes two connections take turns unnecessarily. */
static uint32_t connection_of(const struct host_active *active, const struct host_sub *sub)
{
	uint32_t peer = (uint32_t)sub->peer + (uint32_t)active->work.op.comm->config.hash;
	uint32_t channel = (active->work.op.first_channel + sub->channel) % HOST_CHANNELS;

	return (peer % (ENGINE_CONNECTIONS / 2 / HOST_CHANNELS) * HOST_CHANNELS + channel) * 2 +
	       sub->is_send;
}

static void sub_start(struct host_active *active, struct host_sub *sub)
{
	const struct host_work *work = &active->work;
	struct host_proxy_op op = {
		.parent = work->parent,
		.pid = work->pid,
		.channel = (uint8_t)(work->op.first_channel + sub->channel),
		.peer = sub->peer,
		.steps = (int)work->op.steps,
		.chunk_bytes = (int)work->op.chunk_bytes,
		.is_send = sub->is_send && !work->is_collnet,
	};

	if (!active->wants.op)
		return;
	host_start_proxy_op(&active->plugin, active->call, &sub->handle, &op);
	active_count_start(active, BIT_OP);
}

static void sub_init(struct host_engine *engine, struct host_active *active, struct host_sub *sub,
		     unsigned int channel, const struct host_edge *edge)
{
	uint64_t trans_bytes = sub->trans_bytes;
	uint64_t sum = 0;
	bool has_waits = edge->wait_ns[0] || edge->wait_ns[1] || edge->wait_ns[2];

	*sub = (struct host_sub){
		.trans_bytes = trans_bytes,
		.peer = edge->peer,
		.channel = (uint8_t)channel,
		.is_send = edge->is_send,
		.stuck = edge->stuck,
		.stuck_step = edge->stuck_step,
	};
	for (unsigned int i = 0; i < 3; i++) {
		if (has_waits)
			sum += edge->wait_ns[i];
		else if (i != 1)
			sum += active->period_ns / 2;
		sub->step_ns[i] = sum;
	}
	sub->permille = edge->permille != 0 ? edge->permille : 1000;
	sub->later_ns = edge->stagger_ns * channel / active->work.op.channels;
	sub->connection = connection_of(active, sub);
	sub->ticket = engine->connections[sub->connection].issued++;
	active->channel_open[channel]++;
}

/* Fills active->subs and starts them; advances them, true if something moved. */
static enum status host_proxy_append(struct host_engine *engine, struct host_active *active)
{
	const struct host_work *work = &active->work;
	size_t count = (size_t)work->op.channels * work->op.edge_count, i = 0;
	struct host_sub *subs = active->subs;

	active->sub_count = active->subs_open = 0;
	active->period_ns = work->op.steps ? work->op.duration_ns / work->op.steps : 0;
	if (count > active->sub_room) {
		subs = realloc(subs, count * sizeof(*subs));
		if (subs == NULL)
			return ERR_NO_SPACE;
		for (i = active->sub_room; i < count; i++)
			subs[i].trans_bytes = 0;
		active->subs = subs;
		active->sub_room = count;
	}
	i = 0;
	for (unsigned int channel = 0; channel < work->op.channels; channel++)
		for (unsigned int edge = 0; edge < work->op.edge_count; edge++)
			if (work->op.edges[edge].channel_plus_1 == 0 ||
			    work->op.edges[edge].channel_plus_1 == channel + 1)
				sub_init(engine, active, &subs[i++], channel,
					 &work->op.edges[edge]);
	count = i;
	active->sub_count = active->subs_open = count;
	if (!active->is_old)
		for (i = 0; i < count; i++)
			sub_start(active, &subs[i]);
	return OK;
}

static inline void op_state_old(struct host_active *active, struct host_sub *sub, unsigned int move)
{
	enum abi_state state;

	if (LIKELY(!active->is_old) || sub->handle == NULL)
		return;
	state = old_op_states[sub->is_send][move];
	host_state_proxy_op_old(&active->plugin, sub->handle, state, sub->trans_bytes,
				(int)sub->moved[move]);
	active_count_state(active, state);
}

static inline void step_state(struct host_active *active, struct host_sub *sub, uint32_t step,
			      unsigned int move)
{
	enum abi_state state = step_states[sub->is_send][move];
	void *handle = sub->steps[step % HOST_IN_FLIGHT];

	if (sub->handle == NULL || handle == NULL)
		return;
	/* Before 2.27 waiting for the peer was a state of the operation, not of the step. */
	if (active->is_old && state == ABI_STEP_SEND_PEER_WAIT)
		return;
	host_state_proxy_step(&active->plugin, handle, state, sub->trans_bytes);
	active_count_state(active, state);
}

static inline void step_start(struct host_active *active, struct host_sub *sub, uint32_t step)
{
	/* Before 2.28 a step needed its operation's handle. */
	if (!active->wants.step || (sub->handle == NULL && active->plugin.release < 22800))
		return;
	host_start_proxy_step(&active->plugin, active->call, &sub->steps[step % HOST_IN_FLIGHT],
			      sub->handle, (int)step);
	active_count_start(active, BIT_STEP);
}

/* Events of the transport itself, in builds that have them. It does not check handles. */
static COLD void net_events(struct host_active *active, struct host_sub *sub, uint32_t step)
{
	enum { NET_SOCKET_V1 = 2 << 16 | 1 };
	struct {
		int type, fd, op;
		uint64_t length;
	} data = { 0, 3, sub->is_send, active->work.step_bytes };
	void *handle = NULL;

	host_start_net_plugin(&active->plugin, active->call, &handle,
			      sub->steps[step % HOST_IN_FLIGHT], NET_SOCKET_V1, &data);
	active_count_start(active, BIT_NET);
	if (active->plugin.version >= 4) {
		host_state_net_plugin(&active->plugin, handle, &data);
		active_count_state(active, ABI_NET_PLUGIN_UPDATE);
	}
	active_stop(active, BIT_NET, handle);
}

static COLD void proxy_flood(struct host_active *active, struct host_sub *sub, uint32_t step,
			     unsigned int move)
{
	bool is_start =
		move == 0 && !sub->is_send && active_is_quirky(active, HOST_QUIRK_FLOOD_STEP_START);
	bool is_state =
		move == 1 && sub->is_send && active_is_quirky(active, HOST_QUIRK_FLOOD_PEER_WAIT);

	for (unsigned int i = 0; i < HOST_FLOOD_CALLS && (is_start || is_state); i++) {
		if (is_start)
			step_start(active, sub, step);
		else if (active->is_old)
			op_state_old(active, sub, 1);
		else
			step_state(active, sub, step, 1);
	}
}

static inline void step_stop(struct host_active *active, struct host_sub *sub, uint32_t step)
{
	void **handle = &sub->steps[step % HOST_IN_FLIGHT];
	bool is_lost = !sub->is_send && step + 1 < active->work.op.steps &&
		       active_is_quirky(active, HOST_QUIRK_STEP_STOP_LOST);

	if (*handle && !is_lost) {
		active_stop(active, BIT_STEP, *handle);
		*handle = NULL;
	}
	op_state_old(active, sub, 3);
}

/* One move of one step. */
static ALWAYS_INLINE void sub_move(struct host_active *active, struct host_sub *sub,
				   unsigned int move)
{
	uint32_t step = sub->moved[move]++;

	if (move == 3) {
		step_stop(active, sub, step);
		return;
	}
	if (move == 0)
		step_start(active, sub, step);
	if (UNLIKELY(active->work.op.quirks) && move < 2)
		proxy_flood(active, sub, step, move);
	if (move == 2 && sub->is_send && UNLIKELY(active->wants.net))
		net_events(active, sub, step);
	if (move == (sub->is_send ? 2u : 1u)) {
		/* Up to 2.26 NCCL adds them up, also over operations that use the same memory. */
		sub->trans_bytes =
			active->work.step_bytes + (active->is_old ? sub->trans_bytes : 0);
		if (active->transfer != NULL)
			active->transfer(active->transfer_arg, sub->is_send);
	}
	op_state_old(active, sub, move);
	step_state(active, sub, step, move);
}

/* Whether the operation hangs before this move of this connection. */
static COLD bool sub_is_stuck(const struct host_active *active, const struct host_sub *sub,
			      unsigned int move, uint32_t step)
{
	const struct host_work *work = &active->work;
	unsigned int first = sub->is_send ? HOST_STUCK_SEND_GPU : HOST_STUCK_RECV_NET;

	if (work->op.stuck == HOST_STUCK_EDGES)
		return move > 0 && sub->stuck == first + move - 1 && step >= sub->stuck_step &&
		       active_is_held(active);
	return move > 0 && work->op.stuck == first + move - 1 && step >= work->op.stuck_step &&
	       (work->op.stuck_peer < 0 || work->op.stuck_peer == sub->peer) &&
	       active_is_stuck_channel(active, sub->channel) && active_is_held(active);
}

static ALWAYS_INLINE bool sub_may_move(struct host_engine *engine, const struct host_active *active,
				       const struct host_sub *sub, unsigned int move)
{
	uint32_t step = sub->moved[move];
	uint64_t base;

	if (move == 0)
		return step < active->work.op.steps && step < sub->moved[3] + HOST_IN_FLIGHT;
	if (step >= sub->moved[move - 1])
		return false;
	/* The GPU fills send buffers and empties receive buffers. */
	if (move == (sub->is_send ? 1u : 3u) && !active->is_gpu_started && !active->work.is_foreign)
		return false;
	if (UNLIKELY(active->work.op.stuck != HOST_STUCK_NONE) &&
	    sub_is_stuck(active, sub, move, step))
		return false;
	if (!engine->is_real)
		return true;
	if (!active->is_open)
		return false;
	base = active->is_gpu_started
		       ? active->start_ns - (uint64_t)engine->host->config.gpu_offset_ns
		       : active->work.launch_ns;
	if (active->begin_ns != 0)
		base = active->begin_ns;
	return engine_is_due(engine, base + sub->later_ns +
					     step * active->period_ns * sub->permille / 1000 +
					     sub->step_ns[move - 1]);
}

static bool sub_begin(struct host_engine *engine, struct host_active *active, struct host_sub *sub)
{
	if (engine->connections[sub->connection].served != sub->ticket)
		return false;
	sub->is_begun = true;
	/* CollNet's progress function does not call the profiler. */
	if (active->work.is_collnet)
		return true;
	if (active->is_old) {
		sub_start(active, sub);
	} else if (sub->handle && active->plugin.version >= 4) {
		host_state_proxy_op(&active->plugin, sub->handle, ABI_OP_IN_PROGRESS);
		active_count_state(active, ABI_OP_IN_PROGRESS);
	}
	return true;
}

static void sub_end(struct host_engine *engine, struct host_active *active, struct host_sub *sub)
{
	if (sub->handle && !active->work.is_collnet)
		active_stop(active, BIT_OP, sub->handle);
	sub->handle = NULL;
	sub->is_done = true;
	engine->connections[sub->connection].served++;
	active->channel_open[sub->channel]--;
	active->subs_open--;
}

static ALWAYS_INLINE bool sub_try(struct host_engine *engine, struct host_active *active,
				  struct host_sub *sub, unsigned int move)
{
	if (!sub_may_move(engine, active, sub, move))
		return false;
	sub_move(active, sub, move);
	return true;
}

static bool sub_progress(struct host_engine *engine, struct host_active *active,
			 struct host_sub *sub)
{
	bool has_moved = false;

	if (!sub->is_begun) {
		if (!sub_begin(engine, active, sub))
			return false;
		has_moved = true;
	}
	if (active->work.is_collnet) {
		sub_end(engine, active, sub);
		return true;
	}
	/*
	 * A step posted or sent in this pass waits for the next one; ready and sent, or arrived and flushed, can
	 * happen in one.
	 */
	has_moved |= sub_try(engine, active, sub, 3);
	has_moved |= sub_try(engine, active, sub, 1);
	has_moved |= sub_try(engine, active, sub, 2);
	has_moved |= sub_try(engine, active, sub, 0);
	if (sub->moved[3] == active->work.op.steps)
		sub_end(engine, active, sub);
	return has_moved;
}

/* Nothing hangs, and the previous operation is not done: skip checking every channel. */
static bool is_behind(const struct host_engine *engine, const struct host_active *active)
{
	const struct host_sub *sub = &active->subs[0];

	return !engine->has_stuck && !sub->is_begun &&
	       engine->connections[sub->connection].served != sub->ticket;
}

static bool host_proxy_progress(struct host_engine *engine, struct host_active *active)
{
	bool has_moved = false;

	if (active->subs_open == 0 || is_behind(engine, active))
		return false;
	for (size_t i = 0; i < active->sub_count; i++)
		if (!active->subs[i].is_done && sub_progress(engine, active, &active->subs[i]))
			has_moved = true;
	return has_moved;
}

/*
 * The GPU and the poll for it. For each channel the device counts the works that it runs and writes {time, counter}
 * of those with requested kernel events into a ring of 64 timestamps, one ring for starts and one for stops (2.26:
 * one timestamp). A poll waits until the slot of the host's count holds that count *or more*:
 *
 *	device counts	...  7   8   9  10		slot 9 % 64: { time, 9 }
 *	host expects	         8   9			poll for 9 is satisfied
 *
 * As long as both count the same works, the timestamps are the right ones. If the device has counted one that the
 * host does not know (a send to itself), every later poll on that channel reads the slot of an older work: old
 * timestamps if that work was stamped; otherwise nothing, until a work 64 later is stamped there. A poll that is 64
 * works late finds the timestamps of a younger work. None of this is special-cased here: host_launch.c counts as
 * NCCL does.
 */

enum { BIT_KERNEL = 6, BIT_PHASE = 15, NO_CHANNEL = 0xffff, GATE_POLL_NS = 1000000 };

void host_device_free(struct host_device *device)
{
	if (device == NULL)
		return;
	for (unsigned int i = 0; i < HOST_CHANNELS; i++)
		free(device->channels[i]);
	free(device);
}

static struct host_stream *stream_of(const struct host_engine *engine,
				     const struct host_active *active)
{
	return &active->work.op.comm->streams[engine->kind];
}

static struct host_channel *channel_of(const struct host_engine *engine,
				       const struct host_active *active, unsigned int channel)
{
	unsigned int number = (active->work.op.first_channel + channel) % HOST_CHANNELS;

	return stream_of(engine, active)->device->channels[number];
}

static bool has_stamps(const struct host_active *active)
{
	return active->work.has_kernel_events || active->work.is_stamped;
}

static struct host_stamp *slot_of(const struct host_engine *engine, struct host_stamp *stamps,
				  uint64_t counter)
{
	return &stamps[engine->host->config.release < 22700 ? 0 : counter % HOST_STAMPS];
}

/* Allocates the rings of the channels that this work uses. */
static enum status device_reserve(const struct host_engine *engine, struct host_active *active)
{
	struct host_stream *stream = stream_of(engine, active);

	if (stream->device == NULL)
		stream->device = calloc(1, sizeof(*stream->device));
	if (stream->device == NULL)
		return ERR_NO_SPACE;
	for (unsigned int i = 0; i < active->work.op.channels; i++) {
		struct host_channel **channel =
			&stream->device
				 ->channels[(active->work.op.first_channel + i) % HOST_CHANNELS];

		if (*channel == NULL)
			*channel = calloc(1, sizeof(**channel));
		if (*channel == NULL)
			return ERR_NO_SPACE;
	}
	return OK;
}

static enum status kernels_reserve(struct host_active *active, size_t count)
{
	struct host_kernel *kernels = active->kernels;

	if (count <= active->kernel_room)
		return OK;
	kernels = realloc(kernels, count * sizeof(*kernels));
	if (kernels == NULL)
		return ERR_NO_SPACE;
	for (size_t i = active->kernel_room; i < count; i++)
		kernels[i] = (struct host_kernel){ .handle = NULL };
	active->kernels = kernels;
	active->kernel_room = count;
	return OK;
}

static void kernel_init(const struct host_engine *engine, struct host_active *active,
			unsigned int i)
{
	struct host_channel *channel = channel_of(engine, active, i);
	struct host_kernel *kernel = &active->kernels[i];

	kernel->channel = channel;
	kernel->base = host_work_counters(&active->work)[i].host;
	kernel->turn = channel->queued[active->work.is_recv]++;
	kernel->is_started = kernel->is_done = false;
}

/* The same for the kernel's channels. */
static enum status host_device_append(struct host_engine *engine, struct host_active *active)
{
	size_t count = active->work.has_kernel_events ? active->work.kernel_channels : 0;

	active->kernel_count = active->kernels_open = 0;
	active->is_gpu_started = active->is_gpu_done = active->work.is_foreign;
	active->is_open = active->work.op.gate == NULL || !engine->is_real;
	active->begin_ns = active->over_ns = 0;
	active->channels_running = active->work.is_foreign ? 0 : active->work.op.channels;
	active->lost_channel = NO_CHANNEL;
	active->is_lagging = count > 0 && active_is_quirky(active, HOST_QUIRK_STAMP_OVERRUN);
	for (unsigned int i = 0; i < active->work.op.channels; i++)
		active->channel_stopped[i] = false;
	if (!has_stamps(active))
		return OK;
	if (device_reserve(engine, active) != OK || kernels_reserve(active, count) != OK)
		return ERR_NO_SPACE;
	for (unsigned int i = 0; i < count; i++)
		kernel_init(engine, active, i);
	active->kernel_count = active->kernels_open = count;
	if (count > 0 && active_is_quirky(active, HOST_QUIRK_LOST_START))
		active->lost_channel = (uint16_t)(host_random(&engine->random) % count);
	return OK;
}

/* ---- the device ------------------------------------------------------------------------------ */

/* When the kernel starts, on the GPU's clock. Real time: when it was due, not when it was noticed. */
static uint64_t start_choose(const struct host_engine *engine, const struct host_active *active)
{
	const struct host_stream *stream = stream_of(engine, active);
	uint64_t offset = (uint64_t)engine->host->config.gpu_offset_ns;
	uint64_t start = active->work.launch_ns;

	if (!engine->is_real)
		start = host_now(engine->host);
	else if (active->work.op.stuck == HOST_STUCK_KERNEL)
		start = engine->now_ns; /* it has just been released */
	else if (start < active->work.op.start_ns)
		start = active->work.op.start_ns;
	start += offset;
	return start < stream->stop_ns ? stream->stop_ns : start;
}

/* The kernels of one plan are one kernel: all its works share its timestamps. */
static void stamps_choose(struct host_engine *engine, struct host_active *active)
{
	struct host_stream *stream = stream_of(engine, active);

	if (stream->plan != active->work.plan) {
		stream->start_ns = start_choose(engine, active);
		stream->stop_ns = stream->start_ns + active->work.op.duration_ns;
		stream->plan = active->work.plan;
	}
	active->start_ns = stream->start_ns;
	active->stop_ns = stream->stop_ns;
}

/*
 * Since 2.31 two engines have parts of a launch. One of them has all kernels of the communicator, and knows when they
 * start; the other knows about the network, which takes no time in virtual time.
 */
static bool is_in_charge(const struct host_engine *engine, const struct host_active *active)
{
	return engine == active->work.op.comm->profiler;
}

static void watched_reach(const struct host_engine *engine, const struct host_active *active)
{
	if (active->work.watched != NULL && is_in_charge(engine, active))
		engine->host->config.watcher->reach(
			active->work.watched,
			active->start_ns - (uint64_t)engine->host->config.gpu_offset_ns);
}

static void device_start(struct host_engine *engine, struct host_active *active)
{
	stamps_choose(engine, active);
	active->is_gpu_started = true;
	watched_reach(engine, active);
	if (!active->work.is_stamped)
		return;
	for (unsigned int i = 0; i < active->work.op.channels; i++) {
		struct host_channel *channel = channel_of(engine, active, i);
		uint64_t counter = host_work_counters(&active->work)[i].device;
		struct host_stamp *slot = slot_of(engine, channel->start, counter);

		if (slot->counter > counter)
			continue;
		slot->gpu_ns = active->start_ns + i * (uint64_t)active->work.op.start_skew_ns;
		slot->counter = counter;
		channel->device = counter;
	}
}

static void device_stop(struct host_engine *engine, struct host_active *active, unsigned int i)
{
	uint64_t stop = active->stop_ns + i * (uint64_t)active->work.op.stop_skew_ns;
	uint64_t now = engine->now_ns + (uint64_t)engine->host->config.gpu_offset_ns;
	struct host_stream *stream = stream_of(engine, active);
	struct host_stamp *slot;
	uint64_t counter;

	active->channel_stopped[i] = true;
	active->channels_running--;
	/* Real time: transfers or a hang may have delayed the kernel. */
	if (engine->is_real && now > stop &&
	    (active->work.op.edge_count > 0 || active->work.op.stuck != HOST_STUCK_NONE))
		stop = now;
	if (stream->stop_ns < stop)
		stream->stop_ns = stop;
	if (active->over_ns < stop)
		active->over_ns = stop;
	if (!active->work.is_stamped)
		return;
	counter = host_work_counters(&active->work)[i].device;
	slot = slot_of(engine, channel_of(engine, active, i)->stop, counter);
	if (slot->counter >= counter)
		return; /* by the Send that shares the work with this Recv */
	slot->gpu_ns = stop;
	slot->counter = counter;
}

/*
 * Kernels of a communicator run sequentially. In virtual time only a hung one blocks, so that many can be polled in
 * one pass.
 */
static bool gpu_may_start(struct host_engine *engine, const struct host_active *active)
{
	const struct host_stream *stream = stream_of(engine, active);

	if (stream->busy_pass == engine->pass && stream->busy_plan != active->work.plan)
		return false;
	if (active->work.op.stuck == HOST_STUCK_KERNEL && active_is_held(active))
		return false;
	if (!engine->is_real)
		return true;
	return engine_is_due(engine, active->work.launch_ns) &&
	       engine_is_due(engine, active->work.op.start_ns);
}

/* Asks whether all other ranks have arrived. */
static bool gate_try(struct host_engine *engine, struct host_active *active)
{
	struct host_gate gate = { .poll_ns = 0 };
	struct host_stream *stream = stream_of(engine, active);

	if (!engine->is_real) {
		active->is_open =
			true; /* its communicator is ending: nobody advances the clock anymore */
		return true;
	}
	if (!active->work.op.gate(active->work.op.gate_arg, engine->now_ns, &gate)) {
		/* Intentionally not due: the engine wakes up then. */
		(void)engine_is_due(engine, gate.poll_ns > engine->now_ns
						    ? gate.poll_ns
						    : engine->now_ns + GATE_POLL_NS);
		return false;
	}
	active->is_open = true;
	/* The others may have arrived before this kernel could start. */
	if (gate.begin_ns + (uint64_t)engine->host->config.gpu_offset_ns < active->start_ns)
		gate.begin_ns = active->start_ns - (uint64_t)engine->host->config.gpu_offset_ns;
	active->begin_ns = gate.begin_ns;
	active->stop_ns =
		gate.begin_ns + gate.duration_ns + (uint64_t)engine->host->config.gpu_offset_ns;
	if (stream->stop_ns < active->stop_ns)
		stream->stop_ns = active->stop_ns;
	active->period_ns = gate.period_ns;
	if (gate.period_ns == 0 && active->work.op.steps != 0)
		active->period_ns = gate.duration_ns / active->work.op.steps;
	return true;
}

static bool channel_may_stop(struct host_engine *engine, const struct host_active *active,
			     unsigned int i)
{
	const struct host_work *work = &active->work;
	bool hangs = work->op.stuck == HOST_STUCK_KERNEL_END ||
		     (work->op.stuck != HOST_STUCK_NONE && work->op.edge_count == 0);

	if (work->op.stuck == HOST_STUCK_EDGES)
		hangs = i < 32 && (work->op.stuck_kernels >> i & 1) != 0;

	if (active->channel_open[i] > 0 || !active->is_open)
		return false;
	if (hangs && active_is_stuck_channel(active, i) && active_is_held(active))
		return false;
	return engine_is_due(engine, active->stop_ns -
					     (uint64_t)engine->host->config.gpu_offset_ns +
					     i * (uint64_t)work->op.stop_skew_ns);
}

static void watched_leave(const struct host_engine *engine, struct host_active *active)
{
	uint64_t over_ns = active->over_ns - (uint64_t)engine->host->config.gpu_offset_ns;

	if (active->work.watched != NULL)
		engine->host->config.watcher->leave(
			active->work.watched,
			engine->is_real || is_in_charge(engine, active) ? over_ns : 0);
	active->work.watched = NULL;
}

static bool gpu_progress(struct host_engine *engine, struct host_active *active)
{
	struct host_stream *stream = stream_of(engine, active);
	bool has_moved = false;

	if (active->is_gpu_done)
		return false;
	if (!active->is_gpu_started && gpu_may_start(engine, active)) {
		device_start(engine, active);
		has_moved = true;
	} else if (active->is_gpu_started) {
		has_moved = !active->is_open && gate_try(engine, active);
		for (unsigned int i = 0; i < active->work.op.channels; i++) {
			if (active->channel_stopped[i] || !channel_may_stop(engine, active, i))
				continue;
			device_stop(engine, active, i);
			has_moved = true;
		}
		active->is_gpu_done = active->channels_running == 0;
		if (active->is_gpu_done)
			watched_leave(engine, active);
	}
	/* The first unfinished one keeps it busy; a later one must not admit its own plan. */
	if (!active->is_gpu_done && stream->busy_pass != engine->pass &&
	    (engine->is_real || active_is_held(active))) {
		stream->busy_pass = engine->pass;
		stream->busy_plan = active->work.plan;
	}
	return has_moved;
}

/* ---- the poll -------------------------------------------------------------------------------- */

static void kernel_show_start(struct host_active *active, struct host_kernel *kernel,
			      unsigned int i, uint64_t gpu_ns)
{
	uint8_t number = (uint8_t)(active->work.op.first_channel + i);

	kernel->is_started = true;
	kernel->start = gpu_ns;
	if (active_is_quirky(active, HOST_QUIRK_STAMP_ZERO))
		gpu_ns = 0;
	host_start_kernel_ch(&active->plugin, active->call, &kernel->handle, active->work.parent,
			     number, gpu_ns);
	active_count_start(active, BIT_KERNEL);
}

/* 2.31: phases within the kernel. */
static void kernel_show_phases(struct host_active *active, struct host_kernel *kernel,
			       unsigned int i, uint64_t stop)
{
	static const char *const names[] = { "load", "reduce" };
	uint64_t half = stop > kernel->start ? (stop - kernel->start) / 2 : 0;

	for (unsigned int phase = 0; phase < 2; phase++) {
		struct host_phase data = {
			.parent = kernel->handle,
			.channel = (uint8_t)(active->work.op.first_channel + i),
			.phase = (uint8_t)phase,
			.name = names[phase],
			.gpu_ns = kernel->start + phase * half,
		};
		void *handle = NULL;

		host_start_kernel_phase(&active->plugin, active->call, &handle, &data);
		active_count_start(active, BIT_PHASE);
		if (handle == NULL)
			continue;
		host_state_kernel_phase(&active->plugin, handle, data.gpu_ns + half);
		active_count_state(active, ABI_KERNEL_PHASE_STOP);
		active_stop(active, BIT_PHASE, handle);
	}
}

static void kernel_show_stop(struct host_active *active, struct host_kernel *kernel, unsigned int i,
			     uint64_t gpu_ns)
{
	if (active_is_quirky(active, HOST_QUIRK_STAMP_REVERSED))
		gpu_ns = kernel->start - HOST_STAMPS * (active->work.op.duration_ns + 1000);
	if (active->wants.phase)
		kernel_show_phases(active, kernel, i, gpu_ns);
	if (kernel->handle == NULL)
		return;
	if (active->plugin.version >= 4) {
		host_state_kernel_ch(&active->plugin, kernel->handle, gpu_ns);
		active_count_state(active, ABI_KERNEL_CH_STOP);
	}
	if (kernel->is_started) {
		active_stop(active, BIT_KERNEL, kernel->handle);
	} else {
		/* The handle belongs to another operation that stopped long ago. */
		(void)host_stop(&active->plugin, kernel->handle);
		bump_relaxed(&active->counts->extra_stops, 1);
	}
}

static bool kernel_poll(struct host_engine *engine, struct host_active *active, unsigned int i)
{
	struct host_kernel *kernel = &active->kernels[i];
	struct host_channel *channel = kernel->channel;
	const struct host_stamp *slot;

	/*
	 * Up to 2.30 polls on the same connection wait for each other. 2.31 checks all of them, and those whose
	 * kernel has not ended have nothing to show.
	 */
	if (channel->polled[active->work.is_recv] != kernel->turn &&
	    (engine->kind == ENGINE_PROXY || !active->is_gpu_done))
		return false;
	if (active->is_lagging && !engine->is_lag_over &&
	    channel->device < kernel->base + HOST_STAMPS)
		return false;
	slot = slot_of(engine, channel->start, kernel->base);
	if (!kernel->is_started && i != active->lost_channel && slot->counter >= kernel->base) {
		kernel_show_start(active, kernel, i, slot->gpu_ns);
		return true;
	}
	slot = slot_of(engine, channel->stop, kernel->base);
	if ((!kernel->is_started && i != active->lost_channel) || slot->counter < kernel->base)
		return false;
	kernel_show_stop(active, kernel, i, slot->gpu_ns);
	kernel->is_done = true;
	channel->polled[active->work.is_recv]++;
	active->kernels_open--;
	return true;
}

static bool host_device_progress(struct host_engine *engine, struct host_active *active)
{
	bool has_moved = gpu_progress(engine, active);

	if (active->kernels_open == 0)
		return has_moved;
	for (unsigned int i = 0; i < active->kernel_count; i++)
		if (!active->kernels[i].is_done && kernel_poll(engine, active, i))
			has_moved = true;
	return has_moved;
}

/* The thread of a communicator: its passes and its sleep. See host_internal.h. */

enum { BIT_CTRL = 5 };

/* ---- ProxyCtrl ------------------------------------------------------------------------------- */

/* The context is that of the communicator that created the proxy, even after it is gone. */
static void *ctrl_start(struct host_engine *engine)
{
	struct host_comm *owner = engine->owner;
	struct host_call call = { owner->context, owner->config.rank };
	void *handle = NULL;

	if (engine->kind != ENGINE_PROXY || !(load_relaxed(&engine->host->mask) & ABI_PROXY_CTRL) ||
	    owner->plugin.version == 0)
		return NULL;
	host_start_proxy_ctrl(&owner->plugin, call, &handle);
	bump_relaxed(&owner->counts[LANE_PROXY].starts[BIT_CTRL], 1);
	return handle;
}

static void ctrl_state(struct host_engine *engine, void *handle, enum abi_state state, int appended)
{
	if (handle == NULL)
		return;
	host_state_proxy_ctrl(&engine->owner->plugin, handle, state, appended);
	bump_relaxed(&engine->owner->counts[LANE_PROXY].states[state], 1);
}

static void ctrl_stop(struct host_engine *engine, void *handle)
{
	if (handle == NULL)
		return;
	(void)host_stop(&engine->owner->plugin, handle);
	bump_relaxed(&engine->owner->counts[LANE_PROXY].stops[BIT_CTRL], 1);
}

/* ---- taking works ---------------------------------------------------------------------------- */

static struct host_active *active_take(struct host_engine *engine)
{
	struct host_active *active = engine->spare;

	if (active == NULL)
		return calloc(1, sizeof(*active));
	engine->spare = active->next;
	active->next = NULL;
	return active;
}

static void active_set_up(struct host_engine *engine, struct host_active *active)
{
	const struct host_work *work = &active->work;
	const struct host_asks *asks = engine->host->asks;
	int version = work->op.comm->plugin.version;

	active->plugin = work->op.comm->plugin;
	active->is_old = active->plugin.release < 22700;
	active->call = (struct host_call){ work->context, work->op.comm->config.rank };
	active->transfer = engine->host->config.transfer;
	active->transfer_arg = engine->host->config.transfer_arg;
	active->counts = &work->op.comm->counts[work->is_foreign ? LANE_FOREIGN : engine->lane];
	active->wants = (struct host_requested){
		.op = version >= 1 && host_is_asked(asks, work->mask, ABI_PROXY_OP),
		.step = version >= 1 && host_is_asked(asks, work->mask, ABI_PROXY_STEP),
		.net = version >= 3 && work->op.has_net_events &&
		       host_is_asked(asks, work->mask, ABI_NET_PLUGIN),
		.phase = version >= 7 && host_is_asked(asks, work->mask, ABI_KERNEL_PHASE),
	};
	for (unsigned int i = 0; i < work->op.channels; i++)
		active->channel_open[i] = 0;
}

static void active_finish(struct host_engine *engine, struct host_active *active);

/* Out of memory: the work is dropped, as if its communicator had been aborted. */
static void engine_append(struct host_engine *engine, const struct host_work *work)
{
	struct host_active *active = active_take(engine);

	if (active == NULL) {
		struct host_work lost = *work;

		work_release(&lost);
		add_release(&work->op.comm->unfinished[engine->kind], (uint64_t)-1);
		return;
	}
	active->work = *work;
	active_set_up(engine, active);
	if (host_proxy_append(engine, active) != OK || host_device_append(engine, active) != OK) {
		active_finish(engine, active);
		return;
	}
	*engine->last = active;
	engine->last = &active->next;
	engine->active_count++;
}

static bool engine_has_appetite(const struct host_engine *engine, size_t taken)
{
	if (engine->active_count >= ENGINE_ACTIVE_MAX)
		return false;
	return engine->is_real || engine->moved_count + taken < ENGINE_AT_ONCE;
}

/* Wakes waiters when half of the queue is free, not for each single slot. */
static void tell_about_room(struct host_engine *engine)
{
	if (!load_relaxed(&engine->waits_for_room) ||
	    load_relaxed(&engine->tail) - engine->head > ENGINE_QUEUE / 2)
		return;
	pthread_mutex_lock(&engine->lock);
	store_relaxed(&engine->waits_for_room, 0);
	pthread_cond_broadcast(&engine->room);
	pthread_mutex_unlock(&engine->lock);
}

static size_t engine_fetch(struct host_engine *engine)
{
	uint64_t head = engine->head;
	size_t taken = 0, appended = 0;
	void *ctrl = NULL;

	/* Pairs with the release in host_engine_post(). */
	while (head != load_acquire(&engine->tail) && engine_has_appetite(engine, taken)) {
		const struct host_work *work = &engine->queue[head % ENGINE_QUEUE];

		if (taken++ == 0) {
			ctrl = ctrl_start(engine);
			ctrl_state(engine, ctrl, ABI_CTRL_APPEND, 0);
		}
		appended += (size_t)work->op.channels * work->op.edge_count + work->kernel_channels;
		engine_append(engine, work);
		/* The slot is free once it was copied. Pairs with queue_is_full(). */
		store_release(&engine->head, ++head);
	}
	if (taken) {
		ctrl_state(engine, ctrl, ABI_CTRL_APPEND_END, (int)appended);
		ctrl_stop(engine, ctrl);
		tell_about_room(engine);
	}
	return taken;
}

/* ---- moving works on ------------------------------------------------------------------------- */

static void null_calls(struct host_active *active)
{
	if (!active_is_quirky(active, HOST_QUIRK_STOP_NULL) || active->plugin.version == 0)
		return;
	(void)host_stop(&active->plugin, NULL);
	host_state_null(&active->plugin, NULL, ABI_STEP_SEND_WAIT);
	bump_relaxed(&active->counts->null_calls, 2);
}

static void active_finish(struct host_engine *engine, struct host_active *active)
{
	null_calls(active);
	work_release(&active->work);
	active->next = engine->spare;
	engine->spare = active;
	/* The counts are visible to whoever reads 0. Pairs with host_engine_wait(). */
	add_release(&active->work.op.comm->unfinished[engine->kind], (uint64_t)-1);
	if (load_relaxed(&engine->watchers) > 0) {
		pthread_mutex_lock(&engine->lock);
		pthread_cond_broadcast(&engine->quiet);
		pthread_mutex_unlock(&engine->lock);
	}
}

/* Only waiting for timestamps. */
static bool active_is_starved(const struct host_active *active)
{
	return active->subs_open == 0 && active->kernels_open > 0 && active->is_gpu_done;
}

static bool active_is_over(struct host_engine *engine, struct host_active *active)
{
	const struct host_comm *comm = active->work.op.comm;

	if (active->subs_open == 0 && active->kernels_open == 0 && active->is_gpu_done)
		return true;
	if (load_relaxed(&comm->is_aborted))
		return true;
	if (!active_is_starved(active) || !(engine->is_purging || load_relaxed(&comm->is_purged)))
		return false;
	bump_relaxed(engine->kind == ENGINE_PROXY ? &active->counts->would_hang
						  : &active->counts->purged,
		     active->kernels_open);
	return true;
}

/* One pass over everything. True if something moved. */
static bool engine_turn(struct host_engine *engine)
{
	struct host_active **link = &engine->first, *active;
	bool has_stuck = false;

	engine->pass++;
	engine->moved_count = 0;
	engine->next_due_ns = ENGINE_NEVER;
	if (load_relaxed(&engine->hurries))
		engine->is_real = false;
	if (engine->is_real)
		engine->now_ns = host_now(engine->host);
	while ((active = *link) != NULL) {
		bool has_moved = host_proxy_progress(engine, active);

		has_moved |= host_device_progress(engine, active);
		has_stuck |= active->work.op.stuck != HOST_STUCK_NONE;
		if (has_moved)
			engine->moved_count++;
		if (!active_is_over(engine, active)) {
			link = &active->next;
			continue;
		}
		*link = active->next;
		if (*link == NULL)
			engine->last = link;
		engine->active_count--;
		active_finish(engine, active);
		engine->moved_count += !has_moved;
	}
	engine->has_stuck = has_stuck;
	engine->is_lag_over = false;
	return engine->moved_count > 0;
}

/* ProxyCtrl reports when the loop gets work and when it becomes idle; before 2.27, and by quirk, in every pass. */
static void ctrl_turn(struct host_engine *engine, bool is_idle)
{
	bool is_each = engine->host->config.release < 22700 ||
		       (engine->host->config.quirks & HOST_QUIRK_CTRL_EACH_PASS);
	void *handle;

	if (is_idle == engine->was_idle && !is_each)
		return;
	handle = ctrl_start(engine);
	if (is_idle != engine->was_idle)
		ctrl_state(engine, handle, is_idle ? ABI_CTRL_IDLE : ABI_CTRL_ACTIVE, 0);
	ctrl_stop(engine, handle);
	engine->was_idle = is_idle;
}

static bool has_lagging(const struct host_engine *engine)
{
	for (const struct host_active *active = engine->first; active; active = active->next)
		if (active->is_lagging && active->kernels_open > 0)
			return true;
	return false;
}

static bool engine_is_starving(const struct host_engine *engine)
{
	for (const struct host_active *active = engine->first; active; active = active->next)
		if (!active_is_starved(active))
			return false;
	return engine->first != NULL;
}

/* Late polls stay late until someone waits for the end. */
static bool has_audience(const struct host_engine *engine)
{
	return load_relaxed(&engine->watchers) > 0 || load_relaxed(&engine->stop) != ENGINE_RUN;
}

static void sleep_until(struct host_engine *engine, uint64_t ns)
{
	if (ns == ENGINE_NEVER || engine->host->config.clock) {
		pthread_cond_wait(&engine->arrived, &engine->lock);
		return;
	}
	uint64_t now_ns = host_clock_ns(), until_ns = clock_system_ns(CLOCK_MONOTONIC);

	if (ns > now_ns)
		until_ns += ns - now_ns;
	struct timespec deadline = { (time_t)(until_ns / 1000000000u),
				     (long)(until_ns % 1000000000u) };

	pthread_cond_timedwait(&engine->arrived, &engine->lock, &deadline);
}

/* False if the thread must exit. */
static bool engine_sleep(struct host_engine *engine)
{
	bool is_over, has_new, is_starving = engine_is_starving(engine);
	void *ctrl = NULL;

	if (engine->first == NULL && load_relaxed(&engine->stop) == ENGINE_RUN)
		ctrl = ctrl_start(engine);
	ctrl_state(engine, ctrl, ABI_CTRL_SLEEP, 0);
	pthread_mutex_lock(&engine->lock);
	has_new = engine->tail != engine->head && engine_has_appetite(engine, 0);
	is_over = engine->stop == ENGINE_ABORT ||
		  (engine->stop == ENGINE_DRAIN && !has_new && engine->first == NULL);
	if (!is_over && !has_new && !engine->is_kicked) {
		engine->is_sleeping = true;
		engine->is_starved = is_starving;
		engine->wakes_at_ns = engine->next_due_ns;
		pthread_cond_broadcast(&engine->quiet);
		pthread_cond_broadcast(&engine->room);
		sleep_until(engine, engine->next_due_ns);
		engine->is_sleeping = false;
	}
	engine->is_kicked = false;
	pthread_mutex_unlock(&engine->lock);
	ctrl_state(engine, ctrl, ABI_CTRL_WAKEUP, 0);
	ctrl_stop(engine, ctrl);
	return !is_over;
}

/* The thread's main function; the argument is the engine. */
static void *host_engine_main(void *arg)
{
	struct host_engine *engine = arg;
	bool has_moved;

	do {
		has_moved = engine_turn(engine);
		ctrl_turn(engine, !has_moved);
		has_moved |= engine_fetch(engine) > 0;
		if (has_moved) {
			engine->was_lag_over = false;
		} else if (!engine->was_lag_over && has_audience(engine) && has_lagging(engine)) {
			engine->is_lag_over = engine->was_lag_over = true;
			has_moved = true;
		} else if (load_relaxed(&engine->stop) == ENGINE_DRAIN && !engine->is_purging &&
			   engine_is_starving(engine)) {
			engine->is_purging = true;
			has_moved = true;
		}
		if (load_relaxed(&engine->stop) == ENGINE_ABORT)
			break;
	} while (has_moved || engine_sleep(engine));

	pthread_mutex_lock(&engine->lock);
	pthread_cond_broadcast(&engine->quiet);
	pthread_cond_broadcast(&engine->room);
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

/*
 * The queue of a communicator's thread, for those who post and wait. See host_internal.h.
 *
 * The queue has one consumer, and producers that hold `lock`. The thread takes works without the lock; it only
 * takes the lock to sleep, to wake a waiter, and to stop. Waiters are woken at the latest when the thread goes to
 * sleep, so a flag that is seen late only costs time.
 */

/* ---- life ------------------------------------------------------------------------------------ */

enum status host_engine_new(struct host_engine **engine, struct host_comm *owner,
			    enum host_engine_kind kind)
{
	struct host_engine *made = calloc(1, sizeof(*made));
	pthread_condattr_t attributes;

	if (made == NULL)
		return ERR_NO_SPACE;
	made->host = owner->host;
	made->owner = owner;
	made->kind = kind;
	made->lane = kind == ENGINE_PROXY ? LANE_PROXY : LANE_PROFILER;
	made->references = 1;
	made->is_real = owner->host->config.time == HOST_TIME_REAL;
	made->last = &made->first;
	made->wakes_at_ns = made->next_due_ns = ENGINE_NEVER;
	made->random = owner->random ^ (uint64_t)kind;
	pthread_mutex_init(&made->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&made->arrived, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_cond_init(&made->room, NULL);
	pthread_cond_init(&made->quiet, NULL);
	pthread_mutex_lock(&made->host->lock);
	made->next = made->host->engines;
	made->host->engines = made;
	pthread_mutex_unlock(&made->host->lock);
	*engine = made;
	return OK;
}

void host_engine_share(struct host_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->references++;
	pthread_mutex_unlock(&engine->lock);
}

static void active_free(struct host_active *active)
{
	while (active) {
		struct host_active *next = active->next;

		free(active->subs);
		free(active->kernels);
		work_release(&active->work);
		free(active);
		active = next;
	}
}

/* Frees what only the thread and its queue needed. */
static void engine_empty(struct host_engine *engine)
{
	active_free(engine->first);
	active_free(engine->spare);
	/* Left over after an abort. */
	for (; engine->head != engine->tail; engine->head++)
		work_release(&engine->queue[engine->head % ENGINE_QUEUE]);
	free(engine->queue);
	free(engine->connections);
	engine->first = engine->spare = NULL;
	engine->queue = NULL;
	engine->connections = NULL;
}

void host_engine_free(struct host_engine *engine)
{
	engine_empty(engine);
	pthread_cond_destroy(&engine->arrived);
	pthread_cond_destroy(&engine->room);
	pthread_cond_destroy(&engine->quiet);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

void host_engine_leave(struct host_engine *engine, bool is_abort)
{
	bool is_last, has_thread;

	pthread_mutex_lock(&engine->lock);
	is_last = --engine->references == 0;
	has_thread = engine->has_thread;
	if (is_last)
		store_relaxed(&engine->stop, is_abort ? ENGINE_ABORT : ENGINE_DRAIN);
	pthread_mutex_unlock(&engine->lock);
	host_engine_wake(engine);
	if (!is_last)
		return;
	if (has_thread)
		pthread_join(engine->thread, NULL);
	pthread_mutex_lock(&engine->lock);
	engine->has_thread = false;
	engine_empty(engine);
	pthread_mutex_unlock(&engine->lock);
}

/* ---- what others call ------------------------------------------------------------------------ */

static enum status engine_start(struct host_engine *engine)
{
	if (engine->has_thread)
		return OK;
	if (engine->stop != ENGINE_RUN)
		return ERR_GONE;
	if (engine->queue == NULL)
		engine->queue = calloc(ENGINE_QUEUE, sizeof(*engine->queue));
	if (engine->connections == NULL)
		engine->connections = calloc(ENGINE_CONNECTIONS, sizeof(*engine->connections));
	if (engine->queue == NULL || engine->connections == NULL)
		return ERR_NO_SPACE;
	if (pthread_create(&engine->thread, NULL, host_engine_main, engine) != 0)
		return ERR_SYSTEM;
	pthread_setname_np(engine->thread,
			   engine->kind == ENGINE_PROXY ? "NCCL Progress 0" : "NCCL Profiler 0");
	engine->has_thread = true;
	return OK;
}

static bool queue_is_full(const struct host_engine *engine)
{
	return engine->tail - load_acquire(&engine->head) == ENGINE_QUEUE;
}

enum status host_engine_post(struct host_engine *engine, const struct host_work *work)
{
	enum status status;

	pthread_mutex_lock(&engine->lock);
	status = engine_start(engine);
	while (status == OK && queue_is_full(engine)) {
		if (load_relaxed(&work->op.comm->is_dead)) {
			status = ERR_GONE;
			break;
		}
		store_relaxed(&engine->waits_for_room, 1);
		pthread_cond_wait(&engine->room, &engine->lock);
		status = engine_start(engine); /* or it has exited meanwhile */
	}
	if (status == OK) {
		engine->queue[engine->tail % ENGINE_QUEUE] = *work;
		add_relaxed(&work->op.comm->unfinished[engine->kind], 1);
		/* The work is visible before the count. Pairs with engine_fetch(). */
		store_release(&engine->tail, engine->tail + 1);
		if (engine->is_sleeping)
			pthread_cond_signal(&engine->arrived);
	}
	pthread_mutex_unlock(&engine->lock);
	return status;
}

void host_engine_wake(struct host_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->is_kicked = true;
	pthread_cond_signal(&engine->arrived);
	pthread_cond_broadcast(&engine->room);
	pthread_cond_broadcast(&engine->quiet);
	pthread_mutex_unlock(&engine->lock);
}

void host_engine_hurry(struct host_engine *engine)
{
	store_relaxed(&engine->hurries, 1);
	host_engine_wake(engine);
}

/* From here on the engine wakes this waiter. It makes another pass before it sleeps. */
static void watch_begin(struct host_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	add_relaxed(&engine->watchers, 1);
	engine->is_kicked = engine->has_thread;
	pthread_cond_signal(&engine->arrived);
}

static void watch_end(struct host_engine *engine)
{
	add_relaxed(&engine->watchers, -1);
	pthread_mutex_unlock(&engine->lock);
}

/* Asleep, and none of its works will ever progress. */
static bool engine_is_starved(const struct host_engine *engine)
{
	return engine->has_thread && engine->is_sleeping && !engine->is_kicked &&
	       engine->tail == load_acquire(&engine->head) && engine->is_starved;
}

void host_engine_wait(struct host_engine *engine, struct host_comm *comm, uint64_t limit)
{
	watch_begin(engine);
	while (load_acquire(&comm->unfinished[engine->kind]) > limit &&
	       !load_relaxed(&comm->is_dead) && !engine_is_starved(engine))
		pthread_cond_wait(&engine->quiet, &engine->lock);
	watch_end(engine);
}

/* With the user's own clock, what is due later does not count. */
static bool engine_is_settled(const struct host_engine *engine)
{
	if (!engine->has_thread)
		return true;
	if (!engine->is_sleeping || engine->is_kicked ||
	    engine->tail != load_acquire(&engine->head))
		return false;
	return engine->wakes_at_ns == ENGINE_NEVER || engine->host->config.clock != NULL;
}

void host_engine_settle(struct host_engine *engine)
{
	watch_begin(engine);
	while (!engine_is_settled(engine) && load_relaxed(&engine->stop) != ENGINE_ABORT)
		pthread_cond_wait(&engine->quiet, &engine->lock);
	watch_end(engine);
}
