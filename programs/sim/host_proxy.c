/*
 * The proxy's network side. A step makes four moves:
 *
 *	moved[0]	posted		Send: state 8 (GPU)	Recv: state 10 (network)
 *	moved[1]	ready, arrived	      state 20 (peer)	      state 11 (flush)
 *	moved[2]	sent, flushed	      state 9 (network)	      state 12 (GPU)
 *	moved[3]	completed	      stop		      stop
 *
 * Up to 8 steps are posted at a time. Per turn each of the four counters moves by one at most, so
 * that the steps of all connections interleave as they do in NCCL. Operations on one connection
 * take turns.
 *
 * Before 2.27 the proxy operation itself had states (0 to 7), and started in its first turn instead
 * of when it was queued.
 */
#include <stdlib.h>

#include "common/attributes.h"
#include "programs/sim/host_engine.h"

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

/* The moves below are written once and unrolled by the compiler: a hundred of them make one
 * operation. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

static inline bool is_old(const struct host_active *active)
{
	return active->is_old;
}

/* Collisions only make two connections take turns that need not. */
static uint32_t connection_of(const struct host_active *active, const struct host_sub *sub)
{
	uint32_t peer = (uint32_t)sub->peer + (uint32_t)active->work.comm->config.hash;
	uint32_t channel = (active->work.first_channel + sub->channel) % HOST_CHANNELS;

	return (peer % (ENGINE_CONNECTIONS / 2 / HOST_CHANNELS) * HOST_CHANNELS + channel) * 2 +
	       sub->is_send;
}

static void sub_start(struct host_active *active, struct host_sub *sub)
{
	const struct host_work *work = &active->work;
	struct host_proxy_op op = {
		.parent = work->parent,
		.pid = work->pid,
		.channel = (uint8_t)(work->first_channel + sub->channel),
		.peer = sub->peer,
		.steps = (int)work->steps,
		.chunk_bytes = (int)work->chunk_bytes,
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
	sub->connection = connection_of(active, sub);
	sub->ticket = engine->connections[sub->connection].issued++;
	active->channel_open[channel]++;
}

enum status host_proxy_append(struct host_engine *engine, struct host_active *active)
{
	const struct host_work *work = &active->work;
	size_t count = (size_t)work->channels * work->edge_count, i = 0;
	struct host_sub *subs = active->subs;

	active->sub_count = active->subs_open = 0;
	active->period_ns = work->steps ? work->duration_ns / work->steps : 0;
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
	for (unsigned int channel = 0; channel < work->channels; channel++)
		for (unsigned int edge = 0; edge < work->edge_count; edge++)
			if (work->edges[edge].channel_plus_1 == 0 ||
			    work->edges[edge].channel_plus_1 == channel + 1)
				sub_init(engine, active, &subs[i++], channel, &work->edges[edge]);
	count = i;
	active->sub_count = active->subs_open = count;
	if (!is_old(active))
		for (i = 0; i < count; i++)
			sub_start(active, &subs[i]);
	return OK;
}

static inline void op_state_old(struct host_active *active, struct host_sub *sub, unsigned int move)
{
	enum abi_state state;

	if (LIKELY(!is_old(active)) || sub->handle == NULL)
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
	if (is_old(active) && state == ABI_STEP_SEND_PEER_WAIT)
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

/* What the transport itself tells, if it was built for that. It tests no handle. */
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

static COLD void flood(struct host_active *active, struct host_sub *sub, uint32_t step,
		       unsigned int move)
{
	bool is_start =
		move == 0 && !sub->is_send && active_is_quirky(active, HOST_QUIRK_FLOOD_STEP_START);
	bool is_state =
		move == 1 && sub->is_send && active_is_quirky(active, HOST_QUIRK_FLOOD_PEER_WAIT);

	for (unsigned int i = 0; i < HOST_FLOOD_CALLS && (is_start || is_state); i++) {
		if (is_start)
			step_start(active, sub, step);
		else if (is_old(active))
			op_state_old(active, sub, 1);
		else
			step_state(active, sub, step, 1);
	}
}

static inline void step_stop(struct host_active *active, struct host_sub *sub, uint32_t step)
{
	void **handle = &sub->steps[step % HOST_IN_FLIGHT];
	bool is_lost = !sub->is_send && step + 1 < active->work.steps &&
		       active_is_quirky(active, HOST_QUIRK_STEP_STOP_LOST);

	if (*handle && !is_lost) {
		active_stop(active, BIT_STEP, *handle);
		*handle = NULL;
	}
	op_state_old(active, sub, 3);
}

/* One step makes one move. */
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
	if (UNLIKELY(active->work.quirks) && move < 2)
		flood(active, sub, step, move);
	if (move == 2 && sub->is_send && UNLIKELY(active->wants.net))
		net_events(active, sub, step);
	if (move == (sub->is_send ? 2u : 1u)) {
		sub->trans_bytes = active->work.step_bytes;
		if (active->transfer != NULL)
			active->transfer(active->transfer_arg, sub->is_send);
	}
	op_state_old(active, sub, move);
	step_state(active, sub, step, move);
}

/* Does the operation hang before this move of this connection? */
static COLD bool sub_is_stuck(const struct host_active *active, const struct host_sub *sub,
			      unsigned int move, uint32_t step)
{
	const struct host_work *work = &active->work;
	unsigned int first = sub->is_send ? HOST_STUCK_SEND_GPU : HOST_STUCK_RECV_NET;

	if (work->stuck == HOST_STUCK_EDGES)
		return move > 0 && sub->stuck == first + move - 1 && step >= sub->stuck_step &&
		       active_is_held(active);
	return move > 0 && work->stuck == first + move - 1 && step >= work->stuck_step &&
	       (work->stuck_peer < 0 || work->stuck_peer == sub->peer) &&
	       active_is_stuck_channel(active, sub->channel) && active_is_held(active);
}

static ALWAYS_INLINE bool sub_may_move(struct host_engine *engine, const struct host_active *active,
				       const struct host_sub *sub, unsigned int move)
{
	uint32_t step = sub->moved[move];
	uint64_t base;

	if (move == 0)
		return step < active->work.steps && step < sub->moved[3] + HOST_IN_FLIGHT;
	if (step >= sub->moved[move - 1])
		return false;
	/* The GPU fills what is sent, and empties what was received. */
	if (move == (sub->is_send ? 1u : 3u) && !active->is_gpu_started && !active->work.is_foreign)
		return false;
	if (UNLIKELY(active->work.stuck != HOST_STUCK_NONE) &&
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
	return engine_is_due(engine, base + step * active->period_ns + sub->step_ns[move - 1]);
}

static bool sub_begin(struct host_engine *engine, struct host_active *active, struct host_sub *sub)
{
	if (engine->connections[sub->connection].served != sub->ticket)
		return false;
	sub->is_begun = true;
	/* CollNet's progress function tells the profiler nothing. */
	if (active->work.is_collnet)
		return true;
	if (is_old(active)) {
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
	/* A step that was posted or sent in this turn waits for the next one; ready and sent,
	 * arrived and flushed may be one. */
	has_moved |= sub_try(engine, active, sub, 3);
	has_moved |= sub_try(engine, active, sub, 1);
	has_moved |= sub_try(engine, active, sub, 2);
	has_moved |= sub_try(engine, active, sub, 0);
	if (sub->moved[3] == active->work.steps)
		sub_end(engine, active, sub);
	return has_moved;
}

/* Nothing hangs, and the operation before it is not through: not worth a look at every channel. */
static bool is_behind(const struct host_engine *engine, const struct host_active *active)
{
	const struct host_sub *sub = &active->subs[0];

	return !engine->has_stuck && !sub->is_begun &&
	       engine->connections[sub->connection].served != sub->ticket;
}

bool host_proxy_progress(struct host_engine *engine, struct host_active *active)
{
	bool has_moved = false;

	if (active->subs_open == 0 || is_behind(engine, active))
		return false;
	for (size_t i = 0; i < active->sub_count; i++)
		if (!active->subs[i].is_done && sub_progress(engine, active, &active->subs[i]))
			has_moved = true;
	return has_moved;
}
