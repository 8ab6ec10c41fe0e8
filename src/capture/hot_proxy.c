/*
 * The network's side: proxy operations and their transfers ("steps").
 *
 * One slot per proxy operation, with room for eight open transfers: NCCL has no more. A transfer goes through three states, and the time in each is summed:
 *
 *	send: 0 own GPU fills it (8), 1 peer not ready (20), 2 on the wire (9), stop
 *	recv: 0 nothing came yet (10), 1 being flushed (11), 2 own GPU takes it (12), stop
 *
 * NCCL can repeat a start or a state at every poll, millions of times a second: the first counts,
 * the others cost a compare.
 */
#include "abi/abi_common.h"
#include "capture/recorder.h"

enum { PROXY_TRIES = 16, STEP_STATES = 3, STEP_STARTED = 0xff };

static struct region_proxy *proxy_find(struct handle handle)
{
	struct region_proxy *proxy = &recorder.region.proxies[handle.slot];
	uint64_t word;

	if (handle.slot >= recorder.region.proxy_count)
		return NULL;
	/* Relaxed: whoever has the handle got it after the slot was filled. */
	word = load_relaxed(&proxy->word);
	if ((REGION_GENERATION(word) & HANDLE_GENERATION_MASK) != handle.generation ||
	    !region_slot_is_used(word))
		return NULL;
	return proxy;
}

/* Bit 0 of a free slot's word: claimed, being filled. */
static bool proxy_claim_at(uint32_t at, uint64_t *word)
{
	struct region_proxy *proxy = &recorder.region.proxies[at];
	uint64_t found = load_relaxed(&proxy->word);

	if (region_slot_is_used(found) || found & 1 ||
	    !swap_if_acquire(&proxy->word, &found, found | 1))
		return false;
	*word = (uint64_t)(REGION_GENERATION(found) + 1) << 32;
	return true;
}

/* `hint`: where the last one was freed; NULL for another process's. */
static struct region_proxy *proxy_claim(uint32_t *hint, uint64_t *word)
{
	uint32_t mask = recorder.region.proxy_count - 1;
	uint32_t at = hint != NULL ? load_relaxed(hint) : 0;
	bool is_found = false;

	for (int i = 0; i < PROXY_TRIES && !is_found && hint != NULL; i++)
		is_found = proxy_claim_at(at++ & mask, word);
	for (int i = 0; i < PROXY_TRIES && !is_found; i++) {
		at = (uint32_t)add_relaxed(&recorder.region.header->proxy_cursor, 1);
		is_found = proxy_claim_at(at++ & mask, word);
	}
	if (hint != NULL)
		store_relaxed(hint, at & mask);
	return is_found ? &recorder.region.proxies[(at - 1) & mask] : NULL;
}

static void proxy_fill(struct region_proxy *proxy, const struct proxy_start *start, bool is_foreign)
{
	proxy->live = 0;
	proxy->live_generation = 0;
	proxy->comm = 0;
	proxy->number = 0;
	proxy->peer = start->peer;
	proxy->origin_pid = start->pid;
	proxy->channel = start->channel;
	proxy->flags = (uint8_t)((start->is_send ? PROXY_IS_SEND : 0) |
				 (is_foreign ? PROXY_IS_FOREIGN : 0));
	proxy->steps = start->steps;
	proxy->chunk_bytes = start->chunk_bytes;
	proxy->posted = 0;
	proxy->transmitted = 0;
	proxy->done = 0;
	proxy->active_ns = 0;
	proxy->bytes = 0;
	for (int i = 0; i < STEP_STATES; i++)
		proxy->wait_ns[i] = 0;
	for (int i = 0; i < WINDOW_STEPS; i++)
		proxy->open[i].step_plus_1 = 0;
}

/* Tie the slot to its operation, which now has an open child. */
static void proxy_adopt(struct region_proxy *proxy, struct region_live *live, struct handle parent)
{
	struct comm_state *comm = comm_of_live(live);

	proxy->live = parent.slot;
	proxy->live_generation = parent.generation;
	proxy->comm = live->op.comm;
	proxy->number = live->op.number;
	if (UNLIKELY(comm != NULL &&
		     !(load_relaxed(&comm->shared->info.flags) & COMM_FLAG_SEES_PROXIES)))
		or_relaxed(&comm->shared->info.flags, COMM_FLAG_SEES_PROXIES);
}

void *hot_proxy_start(const void *context, const void *parent, const struct proxy_start *start)
{
	bool is_foreign = start->pid != recorder.pid;
	struct handle handle = handle_decode(recorder.salt, parent);
	struct region_live *live = NULL;
	struct comm_state *comm;
	struct region_proxy *proxy;
	uint64_t word;

	(void)context; /* with PXN it is another process's: never looked at */
	if (UNLIKELY(is_foreign))
		count_odd(ODD_FOREIGN_PROCESS);
	else if (handle.kind == HANDLE_TASK)
		live = live_find(handle);
	comm = live != NULL ? comm_of_live(live) : NULL;
	proxy = proxy_claim(comm != NULL ? &comm->proxy_hint : NULL, &word);
	if (UNLIKELY(proxy == NULL)) {
		count_lost(LOST_PROXY_SLOT, 1);
		return handle_ignored();
	}
	proxy_fill(proxy, start, is_foreign);
	/* NCCL queues it right after the launch: the clock need not be asked. */
	proxy->start_ns = proxy->since_ns =
		live != NULL ? load_relaxed(&live->op.task_ns) : recorder_now();
	if (live != NULL && live_proxy_begin(live, handle.generation))
		proxy_adopt(proxy, live, handle);
	else if (!is_foreign && handle.kind == HANDLE_TASK)
		count_lost(LOST_LATE_CHILD, 1);
	/* R3: pairs with readers of the region. */
	store_release(&proxy->word, word);
	return handle_make(HANDLE_PROXY, REGION_GENERATION(word),
			   (uint32_t)(proxy - recorder.region.proxies), 0);
}

static struct region_live *live_of(const struct region_proxy *proxy, struct handle *handle)
{
	handle->slot = load_relaxed(&proxy->live);
	handle->generation = load_relaxed(&proxy->live_generation);
	return handle->generation != 0 ? live_find(*handle) : NULL;
}

/* The proxy thread begins to work on it. */
static void proxy_activate(struct region_proxy *proxy, uint64_t now)
{
	struct handle handle;
	struct region_live *live;

	store_relaxed(&proxy->flags, (uint8_t)(load_relaxed(&proxy->flags) | PROXY_IN_PROGRESS));
	store_relaxed(&proxy->active_ns, now);
	store_relaxed(&proxy->since_ns, now);
	live = live_of(proxy, &handle);
	if (live != NULL)
		live_mark_running(live, now);
}

void hot_proxy_state(struct handle handle, int state, uint64_t bytes)
{
	struct region_proxy *proxy = proxy_find(handle);

	if (UNLIKELY(proxy == NULL)) {
		count_odd(ODD_STALE_HANDLE);
		return;
	}
	if (state == ABI_OP_IN_PROGRESS) {
		store_relaxed(&proxy->flags,
			      (uint8_t)(load_relaxed(&proxy->flags) | PROXY_IN_PROGRESS));
	} else if (state == ABI_OP_SEND_TRANSMITTED || state == ABI_OP_RECV_RECEIVED) {
		/* Up to 2.26 the bytes come here, summed up by NCCL. */
		store_relaxed(&proxy->bytes, bytes);
	} else if (state == ABI_OP_SEND_REM_FIFO_WAIT) {
		count_odd(ODD_REPEATED_STATE);
	} else if (state < ABI_OP_SEND_POSTED || state > ABI_OP_RECV_DONE) {
		count_odd(ODD_UNKNOWN_STATE);
	}
}

void *hot_step_start(const void *parent, int step)
{
	struct handle handle = handle_decode(recorder.salt, parent);
	struct region_proxy *proxy = handle.kind == HANDLE_PROXY ? proxy_find(handle) : NULL;
	struct region_step *slot;

	if (UNLIKELY(proxy == NULL)) {
		count_odd(handle.kind == HANDLE_PROXY ? ODD_STALE_HANDLE : ODD_FOREIGN_HANDLE);
		return handle_ignored();
	}
	slot = &proxy->open[(uint32_t)step % WINDOW_STEPS];
	if (UNLIKELY(load_relaxed(&slot->step_plus_1) == (uint32_t)step + 1)) {
		count_odd(ODD_REPEATED_START);
	} else {
		for (int i = 0; i < STEP_STATES; i++)
			store_relaxed(&slot->time_ns[i], 0);
		store_relaxed(&slot->bytes, 0);
		store_relaxed(&slot->polls, 0);
		store_relaxed(&slot->state, STEP_STARTED);
		store_relaxed(&slot->step_plus_1, (uint32_t)step + 1);
	}
	return handle_make(HANDLE_STEP, handle.generation, handle.slot, (uint8_t)step);
}

/* The open transfer that the handle names, or NULL. */
static struct region_step *step_find(struct handle handle, struct region_proxy **proxy)
{
	struct region_step *step;
	uint32_t step_plus_1;

	*proxy = proxy_find(handle);
	if (LIKELY(*proxy != NULL)) {
		step = &(*proxy)->open[handle.extra % WINDOW_STEPS];
		step_plus_1 = load_relaxed(&step->step_plus_1);
		if (LIKELY((uint8_t)(step_plus_1 - 1) == handle.extra && step_plus_1 != 0))
			return step;
	}
	count_odd(ODD_STALE_HANDLE);
	return NULL;
}

/* 0, 1, 2 along a transfer's way; -1 for what is no state of a transfer. */
static int state_index(int state)
{
	switch (state) {
	case ABI_STEP_SEND_GPU_WAIT:
	case ABI_STEP_RECV_WAIT:
		return 0;
	case ABI_STEP_SEND_PEER_WAIT:
	case ABI_STEP_RECV_FLUSH_WAIT:
		return 1;
	case ABI_STEP_SEND_WAIT:
	case ABI_STEP_RECV_GPU_WAIT:
		return 2;
	default:
		return -1;
	}
}

/* Add the time since the last state that came to that state's sum. */
static void step_account(struct region_proxy *proxy, const struct region_step *step, int before,
			 uint64_t now)
{
	for (int i = before - 1; i >= 0; i--) {
		uint64_t since = load_relaxed(&step->time_ns[i]);

		if (since != 0) {
			bump_relaxed(&proxy->wait_ns[i], now - since);
			return;
		}
	}
}

void hot_step_state(struct handle handle, int state, uint64_t bytes)
{
	struct region_proxy *proxy;
	struct region_step *step = step_find(handle, &proxy);
	int index = state_index(state);
	uint64_t now;

	if (UNLIKELY(step == NULL))
		return;
	if (UNLIKELY(index < 0)) {
		count_odd(ODD_UNKNOWN_STATE);
		return;
	}
	if (UNLIKELY(load_relaxed(&step->time_ns[index]) != 0)) {
		count_odd(ODD_REPEATED_STATE);
		if (step->polls < UINT8_MAX)
			bump_relaxed(&step->polls, 1);
		return;
	}
	/* NCCL says "peer not ready" at each poll: said once only, the send went out in that poll. */
	if (state == ABI_STEP_SEND_WAIT && load_relaxed(&step->time_ns[1]) != 0 &&
	    load_relaxed(&step->polls) == 0)
		now = load_relaxed(&step->time_ns[1]);
	else
		now = recorder_now();
	step_account(proxy, step, index, now);
	store_relaxed(&step->time_ns[index], now);
	store_relaxed(&step->state, (uint8_t)state);
	store_relaxed(&proxy->since_ns, now);
	if (index == 0) {
		bump_relaxed(&proxy->posted, 1);
		if (load_relaxed(&proxy->active_ns) == 0)
			proxy_activate(proxy, now);
	} else if (state == ABI_STEP_SEND_WAIT || state == ABI_STEP_RECV_FLUSH_WAIT) {
		bump_relaxed(&proxy->transmitted, 1);
		bump_relaxed(&proxy->bytes, bytes);
		store_relaxed(&step->bytes, bytes);
	}
}

static void detail_step(const struct region_proxy *proxy, const struct region_step *step,
			uint64_t now)
{
	struct op_detail detail = {
		.comm = proxy->comm,
		.kind = OP_DETAIL_STEP,
		.channel = proxy->channel,
		.flags = proxy->flags & (PROXY_IS_SEND | PROXY_IS_FOREIGN),
		.number = proxy->number,
		.peer = proxy->peer,
		.step = (int32_t)(load_relaxed(&step->step_plus_1) - 1),
		.time_ns = { load_relaxed(&step->time_ns[0]), load_relaxed(&step->time_ns[1]),
			     load_relaxed(&step->time_ns[2]), now },
		.bytes = load_relaxed(&step->bytes),
		.origin_pid = (uint64_t)proxy->origin_pid,
	};

	record_detail(&detail);
}

void hot_step_stop(struct handle handle)
{
	struct region_proxy *proxy;
	struct region_step *step = step_find(handle, &proxy);
	uint64_t now;

	if (UNLIKELY(step == NULL))
		return;
	now = recorder_now();
	step_account(proxy, step, STEP_STATES, now);
	bump_relaxed(&proxy->done, 1);
	store_relaxed(&proxy->since_ns, now);
	if (UNLIKELY(recorder.is_full))
		detail_step(proxy, step, now);
	store_relaxed(&step->step_plus_1, 0);
}

/* What the proxy operation did becomes part of its operation's record. */
static void add_to_operation(const struct region_proxy *proxy, struct region_live *live)
{
	bool is_send = proxy->flags & PROXY_IS_SEND;
	uint64_t *waits = &live->op.wait_ns[is_send ? OP_WAIT_SEND_GPU : OP_WAIT_RECV_NET];

	for (int i = 0; i < STEP_STATES; i++)
		bump_relaxed(&waits[i], load_relaxed(&proxy->wait_ns[i]));
	bump_relaxed(is_send ? &live->op.send_bytes : &live->op.recv_bytes,
		     load_relaxed(&proxy->bytes));
	bump_relaxed(is_send ? &live->op.send_steps : &live->op.recv_steps,
		     load_relaxed(&proxy->done));
}

static void detail_proxy(const struct region_proxy *proxy)
{
	struct op_detail detail = {
		.comm = proxy->comm,
		.kind = OP_DETAIL_PROXY,
		.channel = proxy->channel,
		.flags = proxy->flags & (PROXY_IS_SEND | PROXY_IS_FOREIGN),
		.number = proxy->number,
		.peer = proxy->peer,
		.step = proxy->steps,
		.time_ns = { proxy->start_ns, load_relaxed(&proxy->active_ns), 0, recorder_now() },
		.bytes = load_relaxed(&proxy->bytes),
		.origin_pid = (uint64_t)proxy->origin_pid,
	};

	record_detail(&detail);
}

void hot_proxy_stop(struct handle handle)
{
	struct region_proxy *proxy = proxy_find(handle);
	struct comm_state *comm;
	struct region_live *live;
	struct handle parent;
	uint64_t word;

	if (UNLIKELY(proxy == NULL)) {
		count_odd(ODD_STALE_HANDLE);
		return;
	}
	word = load_relaxed(&proxy->word);
	if (UNLIKELY(recorder.is_full))
		detail_proxy(proxy);
	live = live_of(proxy, &parent);
	if (live != NULL) {
		add_to_operation(proxy, live);
		live_proxy_end(live, parent.generation);
	}
	if (live != NULL && (comm = comm_of_live(live)) != NULL)
		hint_lower(&comm->proxy_hint, handle.slot);
	/* Pairs with the acquire in proxy_claim_at(). */
	store_release(&proxy->word, (uint64_t)(REGION_GENERATION(word) + 1) << 32);
}
