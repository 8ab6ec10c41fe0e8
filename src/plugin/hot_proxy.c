/*
 * The network side: proxy operations, their transfers, and totals by communicator, peer and
 * direction.
 */
#include <string.h>

#include "common/hash.h"
#include "plugin/abi_common.h"
#include "plugin/recorder.h"

enum { LINK_TRIES = 16, LINK_STATES = 3 };

/* The slot with this key, or a free slot that now has it, or the slot "other". */
static struct region_link *link_find(uint64_t key)
{
	struct region_link *links = recorder.region.links;
	uint32_t mask = recorder.region.link_count - 1;
	uint32_t at = (uint32_t)hash_word(key, key) & mask;
	struct region_link *free = NULL;
	uint64_t found;

	for (int i = 0; i < LINK_TRIES; i++, at = (at + 1) & mask) {
		found = load_relaxed(&links[at].key);
		if (LIKELY(found == key && at != 0))
			return &links[at];
		if (found <= SLOT_FORGOTTEN && at != 0 && free == NULL)
			free = &links[at];
		if (found == 0 && at != 0)
			break;
	}
	if (free == NULL)
		return &links[0];
	found = load_relaxed(&free->key);
	if (found <= SLOT_FORGOTTEN && swap_if_acquire(&free->key, &found, key))
		return free;
	return found == key ? free : &links[0];
}

/* In proxies' memory, which readers share: an index that is out of bounds is none. */
enum { NO_LINK = -1 };

static bool has_link(uint32_t index)
{
	return index != 0 && index < recorder.region.link_count;
}

/*
 * Atomic: all proxy threads share "other", and a communicator can have several (struct
 * live_others).
 */
static void link_add(const struct region_proxy *proxy)
{
	uint32_t comm = load_relaxed(&proxy->comm), index = load_relaxed(&proxy->link);
	bool is_receive = !(load_relaxed(&proxy->flags) & PROXY_IS_SEND);
	struct region_link *link = &recorder.region.links[0];

	if (LIKELY(has_link(index)))
		link = &recorder.region.links[index];
	else if (LIKELY(comm != 0))
		link = link_find(REGION_LINK_KEY(comm, is_receive, load_relaxed(&proxy->peer)));
	add_relaxed(&link->proxies, 1);
	add_relaxed(&link->steps, load_relaxed(&proxy->done));
	add_relaxed(&link->bytes, load_relaxed(&proxy->bytes));
	for (int i = 0; i < LINK_STATES; i++)
		if (load_relaxed(&proxy->wait_ns[i]) != 0)
			add_relaxed(&link->wait_ns[i], load_relaxed(&proxy->wait_ns[i]));
	if (UNLIKELY(load_relaxed(&proxy->flags) & PROXY_IS_OTHERS))
		or_relaxed(&link->wire_ns, LINK_WIRE_PARTIAL);
}

/*
 * How long a link is in use: while at least one transfer is on the wire. Transfers of several channels overlap, so their
 * times cannot be added up. Only for the communicator's own proxy thread, which needs no atomics.
 */

static APART void find_link(struct region_proxy *proxy)
{
	uint32_t comm = load_relaxed(&proxy->comm), index = 0;

	if (comm != 0 && !(load_relaxed(&proxy->flags) & PROXY_IS_OTHERS))
		index = (uint32_t)(link_find(REGION_LINK_KEY(comm, false,
							     load_relaxed(&proxy->peer))) -
				   recorder.region.links);
	store_relaxed(&proxy->link, index != 0 ? index : (uint32_t)NO_LINK);
}

static inline void wire_begin(struct region_proxy *proxy, uint64_t now)
{
	struct link_wire *wire;
	uint32_t link;

	if (UNLIKELY(load_relaxed(&proxy->link) == 0))
		find_link(proxy);
	link = load_relaxed(&proxy->link);
	if (UNLIKELY(!has_link(link)))
		return;
	wire = &recorder.wires[link];
	if (bump_relaxed_get(&wire->transfers) == 0)
		store_relaxed(&wire->since_ns, now);
}

static inline void wire_end(struct region_proxy *proxy, uint64_t now)
{
	uint32_t link = load_relaxed(&proxy->link);
	uint64_t transfers, since;

	if (UNLIKELY(!has_link(link)))
		return;
	transfers = load_relaxed(&recorder.wires[link].transfers);
	if (UNLIKELY(transfers == 0))
		return; /* the communicator ended meanwhile */
	store_relaxed(&recorder.wires[link].transfers, transfers - 1);
	since = load_relaxed(&recorder.wires[link].since_ns);
	if (transfers == 1 && now > since)
		bump_relaxed(&recorder.region.links[link].wire_ns, now - since);
}

/*
 * Proxy operations and their transfers ("steps").
 *
 * One slot per proxy operation, with room for eight open transfers, which is NCCL's limit. A
 * transfer goes through three states, and the time in each is added up:
 *
 *	send: 0 own GPU fills it (8), 1 peer not ready (20), 2 on the wire (9), stop
 *	recv: 0 nothing came yet (10), 1 being flushed (11), 2 own GPU takes it (12), stop
 *
 * NCCL can repeat a start or a state at every poll, millions of times a second. Only the first
 * counts; the others cost one comparison.
 */

enum { PROXY_TRIES = 256, STEP_STATES = 3, STATES = 32 };

/* Which moment of a transfer a state marks (from 1), and whether it carries the bytes. */
enum { STATE_FIRST = 1, STATE_LAST = 3, STATE_HAS_BYTES = 4 };
static const uint8_t state_kinds[STATES] = {
	[ABI_STEP_SEND_GPU_WAIT] = STATE_FIRST,
	[ABI_STEP_RECV_WAIT] = STATE_FIRST,
	[ABI_STEP_SEND_PEER_WAIT] = 2,
	[ABI_STEP_RECV_FLUSH_WAIT] = 2 | STATE_HAS_BYTES,
	[ABI_STEP_SEND_WAIT] = 3 | STATE_HAS_BYTES,
	[ABI_STEP_RECV_GPU_WAIT] = 3,
};

/* The owner of a proxy operation; all 0 if it has none in this process. */
struct proxy_owner {
	uint32_t live, generation;
	uint32_t comm;
	uint64_t number;
	uint64_t now;
};

static inline struct region_proxy *proxy_find(struct handle handle)
{
	struct region_proxy *proxy = &recorder.region.proxies[handle_slot(handle)];

	/* Relaxed: whoever has the handle got it after the slot was filled. */
	if (UNLIKELY(handle_slot(handle) >= recorder.region.proxy_count ||
		     !handle_fits(handle, load_relaxed(&proxy->word))))
		return NULL;
	return proxy;
}

static struct region_live *live_of(const struct region_proxy *proxy, struct handle *handle)
{
	uint32_t generation = load_relaxed(&proxy->live_generation);

	*handle = handle_of(HANDLE_TASK, generation, load_relaxed(&proxy->live), 0);
	return generation != 0 ? live_find(*handle) : NULL;
}

/*
 * Some transports (CollNet) never start or stop what they queued, so it is still there when its
 * operation is over.
 */
static bool is_left_over(const struct region_proxy *proxy)
{
	struct handle handle;
	struct region_live *live = live_of(proxy, &handle);
	struct comm_state *comm = live != NULL ? comm_of_live(live) : NULL;

	if (load_relaxed(&proxy->flags) & (PROXY_IN_PROGRESS | PROXY_IS_FOREIGN))
		return false;
	return comm == NULL || is_passed(comm, &live->op) || is_childless(comm, &live->op);
}

/* Bit 0 of a free slot's word: claimed, being filled. */
static bool proxy_claim_at(uint32_t at, bool makes_room, uint64_t *word)
{
	struct region_proxy *proxy = &recorder.region.proxies[at];
	uint64_t found = load_relaxed(&proxy->word), claimed = found | 1;

	if (region_slot_is_used(found)) {
		if (!makes_room || !is_left_over(proxy))
			return false;
		claimed = (uint64_t)(REGION_GENERATION(found) + 1) << 32 | 1;
	} else if (found & 1) {
		return false;
	}
	if (!swap_if_acquire(&proxy->word, &found, claimed))
		return false;
	*word = (uint64_t)(REGION_GENERATION(claimed) + 1) << 32;
	return true;
}

/*
 * Any slot that is free or can be freed. Neighbors first, because they share pages; then jump,
 * because used slots cluster.
 */
static COLD struct region_proxy *proxy_search(uint64_t *word)
{
	uint32_t mask = recorder.region.proxy_count - 1;

	for (int i = 0; i < PROXY_TRIES; i++) {
		uint32_t at = (uint32_t)add_relaxed(&recorder.region.header->proxy_cursor, 1);

		at = (i < HINT_TRIES ? at : at * SCATTER) & mask;
		if (proxy_claim_at(at, i >= PROXY_TRIES / 2, word))
			return &recorder.region.proxies[at];
	}
	return NULL;
}

static COLD bool become_proxy_thread(struct comm_state *comm, uint64_t self)
{
	uint64_t found = 0;

	/* Acquire only because there is no weaker variant; no data is handed over. */
	return swap_if_acquire(&comm->proxy_thread, &found, self) || found == self;
}

/*
 * Is this the communicator's own proxy thread, the first one that reported a proxy operation? See
 * struct live_others for the others.
 */
static inline bool is_proxy_thread(struct comm_state *comm)
{
	uint64_t self = thread_self(), found = load_relaxed(&comm->proxy_thread);

	return LIKELY(found == self) || (found == 0 && become_proxy_thread(comm, self));
}

/*
 * A communicator's proxy thread keeps the slots it freed last: they are warm in its cache, and
 * taking one needs no atomic. To everyone else a kept slot looks claimed.
 */
static struct region_proxy *proxy_take(struct comm_state *comm, bool is_own, uint64_t *word)
{
	uint32_t kept = is_own ? load_relaxed(&comm->kept_proxies) : 0;
	struct region_proxy *proxy;

	if (UNLIKELY(kept == 0))
		return proxy_search(word);
	store_relaxed(&comm->kept_proxies, kept - 1);
	proxy = &recorder.region.proxies[load_relaxed(&comm->kept[kept - 1])];
	*word = (uint64_t)(REGION_GENERATION(load_relaxed(&proxy->word)) + 1) << 32;
	return proxy;
}

static void proxy_give(struct comm_state *comm, struct region_proxy *proxy, uint64_t word)
{
	uint64_t free_word = (uint64_t)(REGION_GENERATION(word) + 1) << 32;
	uint32_t kept = comm != NULL ? load_relaxed(&comm->kept_proxies) : KEPT_PROXIES;

	if (LIKELY(kept < KEPT_PROXIES)) {
		store_relaxed(&comm->kept[kept], (uint32_t)(proxy - recorder.region.proxies));
		store_relaxed(&comm->kept_proxies, kept + 1);
		free_word |= 1;
	}
	/* Pairs with the acquire in proxy_claim_at(). */
	store_release(&proxy->word, free_word);
}

static uint64_t two_words(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

/*
 * The slot belongs to this thread, but holders of an old handle may still read it. So set only what
 * must be set, in whole words. The previous owner's transfers were closed when the slot was freed.
 */
static inline void proxy_fill(struct region_proxy *proxy, const struct proxy_start *start,
			      const struct proxy_owner *owner, uint8_t flags)
{
	uint32_t place = start->channel | (uint32_t)flags << 8;

	store_relaxed(&proxy->words[0], two_words(owner->live, owner->generation));
	store_relaxed(&proxy->words[1], two_words(owner->comm, (uint32_t)start->peer));
	store_relaxed(&proxy->words[2], two_words((uint32_t)start->pid, place));
	store_relaxed(&proxy->words[3], owner->number);
	store_relaxed(&proxy->words[4],
		      two_words((uint32_t)start->steps, (uint32_t)start->chunk_bytes));
	store_relaxed(&proxy->words[5], 0); /* posted */
	store_relaxed(&proxy->words[6], 0); /* done */
	store_relaxed(&proxy->start_ns, owner->now);
	store_relaxed(&proxy->active_ns, 0);
	store_relaxed(&proxy->since_ns, owner->now);
	store_relaxed(&proxy->bytes, 0);
	store_relaxed(&proxy->moved_before_plus_1, 0);
	for (int i = 0; i < STEP_STATES; i++)
		store_relaxed(&proxy->wait_ns[i], 0);
}

/*
 * CollNet's transport queues and then reports nothing, so being queued does not prove anything
 * there.
 */
static bool is_silent(const struct region_live *live)
{
	uint32_t silent = 1u << OP_COLLNET_DIRECT | 1u << OP_COLLNET_CHAIN | 1u << OP_NVLS;
	uint8_t algorithm = load_relaxed(&live->op.algorithm);

	return algorithm < OP_ALGORITHMS && silent >> algorithm & 1;
}

/* Other threads take their own reference because they share no counter with the proxy thread. */
static COLD bool hold_for_other(struct region_live *live, uint32_t generation)
{
	if (!live_child_begin(live, generation))
		return false;
	or_relaxed(&live->notes, LIVE_HAS_OTHERS);
	add_relaxed(&recorder.others[live - recorder.region.live].started, 1);
	return true;
}

/* Become an open child of the operation until it stops. False if the operation is over. */
static inline bool proxy_hold(struct region_live *live, struct comm_state *comm,
			      uint32_t generation, bool is_own)
{
	struct comm_info *info = &comm->shared->info;

	if (UNLIKELY(is_own ? !live_proxy_begin(live, generation)
			    : !hold_for_other(live, generation))) {
		count_lost(LOST_LATE_CHILD, 1);
		return false;
	}
	if (UNLIKELY(!(load_relaxed(&info->flags) & COMM_FLAG_SEES_PROXIES)))
		or_relaxed(&info->flags, COMM_FLAG_SEES_PROXIES);
	return true;
}

static void *proxy_publish(struct region_proxy *proxy, uint64_t word)
{
	/* R3: pairs with readers of the region. */
	store_release(&proxy->word, word);
	return handle_make(HANDLE_PROXY, REGION_GENERATION(word),
			   (uint32_t)(proxy - recorder.region.proxies), 0);
}

/*
 * A proxy operation without an operation here: of another process, or of one that is not tracked.
 */
static COLD void *start_orphan(const struct proxy_start *start, bool is_late)
{
	struct proxy_owner nobody = { .now = recorder_now() };
	bool is_foreign = start->pid != recorder.pid;
	uint64_t word;
	struct region_proxy *proxy = proxy_search(&word);

	if (is_foreign)
		count_odd(ODD_FOREIGN_PROCESS);
	else if (is_late)
		count_lost(LOST_LATE_CHILD, 1);
	if (proxy == NULL) {
		count_lost(LOST_PROXY_SLOT, 1);
		return handle_ignored();
	}
	proxy_fill(proxy, start, &nobody,
		   (start->is_send ? PROXY_IS_SEND : 0) | (is_foreign ? PROXY_IS_FOREIGN : 0));
	return proxy_publish(proxy, word);
}

static COLD void *no_proxy_slot(void)
{
	count_lost(LOST_PROXY_SLOT, 1);
	return handle_ignored();
}

/* With PXN the context belongs to another process, too, so the decoder does not pass it on. */
void *hot_proxy_start(const void *parent, const struct proxy_start *start)
{
	struct handle handle = handle_decode(recorder.salt, parent);
	bool is_ours = start->pid == recorder.pid && handle_is(handle, HANDLE_TASK);
	struct region_live *live = is_ours ? live_find(handle) : NULL;
	struct comm_state *comm = live != NULL ? comm_of_live(live) : NULL;
	uint8_t flags = start->is_send ? PROXY_IS_SEND : 0;
	struct region_proxy *proxy;
	struct proxy_owner owner;
	uint64_t word;
	bool is_own;

	if (UNLIKELY(comm == NULL))
		return start_orphan(start, is_ours);
	is_own = is_proxy_thread(comm);
	if (UNLIKELY(!is_own))
		flags |= PROXY_IS_OTHERS;
	if (load_relaxed(&live->op.proxies_started) == 0)
		for (int i = 1; i < 6; i++)
			__builtin_prefetch((const char *)live + i * 64, 1);
	proxy = proxy_take(comm, is_own, &word);
	if (UNLIKELY(proxy == NULL))
		return no_proxy_slot();
	owner = (struct proxy_owner){
		.live = handle_slot(handle),
		.generation = handle_generation(handle),
		.comm = load_relaxed(&live->op.comm),
		.number = load_relaxed(&live->op.number),
		/* NCCL queues it right after the launch, so that time is good enough. */
		.now = load_relaxed(&live->op.task_ns),
	};
	if (LIKELY(!is_silent(live))) {
		if (LIKELY(proxy_hold(live, comm, owner.generation, is_own)))
			flags |= PROXY_IS_CHILD;
		else
			owner.generation = 0;
	}
	proxy_fill(proxy, start, &owner, flags);
	return proxy_publish(proxy, word);
}

/* A silent one that starts after all. */
static COLD void hold_late(struct region_proxy *proxy, struct region_live *live,
			   uint32_t generation)
{
	struct comm_state *comm = comm_of_live(live);
	uint8_t flags = load_relaxed(&proxy->flags);

	if (comm == NULL)
		return;
	if (proxy_hold(live, comm, generation, !(flags & PROXY_IS_OTHERS)))
		store_relaxed(&proxy->flags, (uint8_t)(flags | PROXY_IS_CHILD));
	else
		store_relaxed(&proxy->live_generation, 0);
}

/* Note how far the network has come: see is_held_by_network(). */
static inline void note_network(const struct region_live *live)
{
	struct comm_state *comm = comm_of_live(live);
	uint64_t at = load_relaxed(&live->task_index) + 1;

	if (comm != NULL && at > load_relaxed(&comm->network_at))
		store_relaxed(&comm->network_at, at);
}

/* The proxy thread begins to work on it. */
static inline void proxy_activate(struct region_proxy *proxy, uint64_t now)
{
	uint8_t flags = load_relaxed(&proxy->flags);
	struct handle handle;
	struct region_live *live = live_of(proxy, &handle);

	store_relaxed(&proxy->flags, (uint8_t)(flags | PROXY_IN_PROGRESS));
	store_relaxed(&proxy->active_ns, now);
	store_relaxed(&proxy->since_ns, now);
	if (UNLIKELY(live == NULL))
		return;
	if (UNLIKELY(!(flags & PROXY_IS_CHILD)))
		hold_late(proxy, live, handle_generation(handle));
	note_network(live);
	live_mark_running(live, now);
}

void hot_proxy_state(struct handle handle, int state, uint64_t bytes)
{
	struct region_proxy *proxy;

	/* Its first transfer says the same and comes with the time. */
	if (LIKELY(state == ABI_OP_IN_PROGRESS))
		return;
	proxy = proxy_find(handle);
	if (UNLIKELY(proxy == NULL || state < ABI_OP_SEND_POSTED || state > ABI_OP_RECV_DONE)) {
		count_odd(proxy == NULL ? ODD_STALE_HANDLE : ODD_UNKNOWN_STATE);
		return;
	}
	if (state == ABI_OP_SEND_POSTED || state == ABI_OP_RECV_POSTED) {
		if (load_relaxed(&proxy->moved_before_plus_1) == 0)
			store_relaxed(&proxy->moved_before_plus_1, bytes + 1);
	} else if (state == ABI_OP_SEND_TRANSMITTED || state == ABI_OP_RECV_RECEIVED) {
		/*
		 * Up to 2.26 the bytes come here, as a total that NCCL never resets: it goes on counting when it uses its
		 * memory for another proxy operation.
		 */
		uint64_t before_plus_1 = load_relaxed(&proxy->moved_before_plus_1);

		if (LIKELY(before_plus_1 != 0 && bytes >= before_plus_1 - 1))
			store_relaxed(&proxy->bytes, bytes - (before_plus_1 - 1));
	} else if (state == ABI_OP_SEND_REM_FIFO_WAIT) {
		count_odd(ODD_REPEATED_STATE);
	}
}

/*
 * Account for the transfer's time up to `now`. A state that never came took no time: NCCL up to
 * 2.26 has no "peer not ready".
 */
static inline void step_account(struct region_proxy *proxy, const struct region_step *step,
				uint64_t now)
{
	uint64_t last = load_relaxed(&step->time_ns[2]);
	uint64_t middle = load_relaxed(&step->time_ns[1]);
	uint64_t first = load_relaxed(&step->time_ns[0]);

	if (last != 0 && load_relaxed(&proxy->flags) & PROXY_IS_SEND)
		wire_end(proxy, now);
	last = last != 0 ? last : now;
	middle = middle != 0 ? middle : last;
	first = first != 0 ? first : middle;
	bump_relaxed(&proxy->wait_ns[0], middle - first);
	bump_relaxed(&proxy->wait_ns[1], last - middle);
	bump_relaxed(&proxy->wait_ns[2], now - last);
	/* Up to 2.26 the bytes come with the proxy operation's own states. */
	bump_relaxed(&proxy->bytes, load_relaxed(&step->bytes));
}

/*
 * The first state: the transfer is posted. The handle has only eight bits of the step number; the
 * slot supplies the rest, because the transfers of a proxy operation are posted in order.
 */
static APART void step_open(struct region_proxy *proxy, struct region_step *step, uint8_t low,
			    int state)
{
	uint32_t posted = load_relaxed(&proxy->posted);
	uint32_t number = (posted & ~UINT32_C(0xff)) | low;
	uint64_t now = recorder_now();

	if (UNLIKELY((uint32_t)load_relaxed(&step->head) != 0))
		step_account(proxy, step, now); /* some NCCL releases forget to stop one */
	store_relaxed(&proxy->posted, posted + 1);
	store_relaxed(&step->time_ns[0], now);
	store_relaxed(&step->time_ns[1], 0);
	store_relaxed(&step->time_ns[2], 0);
	store_relaxed(&step->bytes, 0);
	store_relaxed(&step->head, (uint64_t)(uint32_t)state << 32 | (number + 1));
	if (load_relaxed(&proxy->active_ns) == 0)
		proxy_activate(proxy, now);
}

/* The same state again, as NCCL reports at every poll while it waits. */
static COLD void repeat_state(struct region_step *step)
{
	uint64_t head = load_relaxed(&step->head);

	count_odd(ODD_REPEATED_STATE);
	if (head >> 40 < UINT8_MAX)
		store_relaxed(&step->head, head + (UINT64_C(1) << 40));
}

/*
 * Most callbacks end here. So everything rare is out of line, and nothing is kept across a call.
 * Only the moment is stored; times are added up when the transfer stops.
 */
void hot_step_state(struct handle handle, int state, uint64_t bytes)
{
	struct region_proxy *proxy = proxy_find(handle);
	struct region_step *step;
	uint64_t head, now, *moment;
	uint8_t kind;

	kind = (unsigned int)state < STATES ? state_kinds[state] : 0;
	if (UNLIKELY(proxy == NULL || kind == 0)) {
		count_odd(proxy == NULL ? ODD_STALE_HANDLE : ODD_UNKNOWN_STATE);
		return;
	}
	step = &proxy->open[handle_extra(handle) % WINDOW_STEPS];
	head = load_relaxed(&step->head);
	if ((uint8_t)(head - 1) != handle_extra(handle) || (uint32_t)head == 0) {
		if (LIKELY(kind == STATE_FIRST))
			step_open(proxy, step, handle_extra(handle), state);
		else
			count_odd(ODD_STALE_HANDLE);
		return;
	}
	moment = &step->time_ns[kind % STATE_HAS_BYTES - 1];
	if (UNLIKELY(load_relaxed(moment) != 0)) {
		repeat_state(step);
		return;
	}
	if (kind & STATE_HAS_BYTES)
		store_relaxed(&step->bytes, bytes);
	store_relaxed(&step->head,
		      (head & ~(UINT64_C(0xff) << 32)) | (uint64_t)(uint32_t)state << 32);
	/*
	 * "Peer not ready" repeats at each poll; if it came only once, the send left in that same
	 * poll.
	 */
	now = state == ABI_STEP_SEND_WAIT && head >> 40 == 0 ? load_relaxed(&step->time_ns[1]) : 0;
	now = now != 0 ? now : recorder_now();
	store_relaxed(moment, now);
	/* Whatever the state is called: step_account() ends it if there is a third moment. */
	if (kind % STATE_HAS_BYTES == STATE_LAST && load_relaxed(&proxy->flags) & PROXY_IS_SEND)
		wire_begin(proxy, now);
}

/* Some NCCL releases forget to stop a transfer: it ends with its proxy operation. */
static COLD void stop_forgotten_steps(struct region_proxy *proxy, uint64_t now)
{
	for (int i = 0; i < WINDOW_STEPS; i++) {
		if (load_relaxed(&proxy->open[i].head) != 0)
			step_account(proxy, &proxy->open[i], now);
		store_relaxed(&proxy->open[i].head, 0);
	}
}

static COLD void detail_step(const struct region_proxy *proxy, const struct region_step *step,
			     uint64_t now)
{
	struct op_detail detail = {
		.comm = load_relaxed(&proxy->comm),
		.kind = OP_DETAIL_STEP,
		.channel = load_relaxed(&proxy->channel),
		.flags = load_relaxed(&proxy->flags) & (PROXY_IS_SEND | PROXY_IS_FOREIGN),
		.number = load_relaxed(&proxy->number),
		.peer = load_relaxed(&proxy->peer),
		.step = (int32_t)((uint32_t)load_relaxed(&step->head) - 1),
		.time_ns = { load_relaxed(&step->time_ns[0]), load_relaxed(&step->time_ns[1]),
			     load_relaxed(&step->time_ns[2]), now },
		.bytes = load_relaxed(&step->bytes),
		.origin_pid = (uint64_t)load_relaxed(&proxy->origin_pid),
	};

	record_detail(&detail);
}

static inline void step_close(struct region_proxy *proxy, struct region_step *step, uint64_t now)
{
	step_account(proxy, step, now);
	bump_relaxed(&proxy->done, 1);
	store_relaxed(&proxy->since_ns, now);
	store_relaxed(&step->head, 0);
}

static COLD void step_close_in_full(struct region_proxy *proxy, struct region_step *step)
{
	uint64_t now = recorder_now();

	detail_step(proxy, step, now);
	step_close(proxy, step, now);
}

void hot_step_stop(struct handle handle)
{
	struct region_proxy *proxy = proxy_find(handle);
	struct region_step *step;
	uint64_t head;

	if (UNLIKELY(proxy == NULL)) {
		count_odd(ODD_STALE_HANDLE);
		return;
	}
	step = &proxy->open[handle_extra(handle) % WINDOW_STEPS];
	head = load_relaxed(&step->head);
	if (UNLIKELY((uint8_t)(head - 1) != handle_extra(handle) || (uint32_t)head == 0))
		count_odd(ODD_REPEATED_STOP);
	else if (UNLIKELY(recorder.is_full))
		step_close_in_full(proxy, step);
	else
		step_close(proxy, step, recorder_now());
}

/* Add what the proxy operation did to the record of its operation. */
static void add_to_operation(const struct region_proxy *proxy, struct region_live *live)
{
	bool is_send = load_relaxed(&proxy->flags) & PROXY_IS_SEND;
	uint64_t *waits = &live->op.wait_ns[is_send ? OP_WAIT_SEND_GPU : OP_WAIT_RECV_NET];

	for (int i = 0; i < STEP_STATES; i++)
		bump_relaxed(&waits[i], load_relaxed(&proxy->wait_ns[i]));
	bump_relaxed(is_send ? &live->op.send_bytes : &live->op.recv_bytes,
		     load_relaxed(&proxy->bytes));
	bump_relaxed(is_send ? &live->op.send_steps : &live->op.recv_steps,
		     load_relaxed(&proxy->done));
}

static COLD void add_for_other(const struct region_proxy *proxy, struct region_live *live,
			       uint32_t generation)
{
	struct live_others *others = &recorder.others[live - recorder.region.live];
	bool is_send = load_relaxed(&proxy->flags) & PROXY_IS_SEND;
	uint64_t *waits = &others->wait_ns[is_send ? OP_WAIT_SEND_GPU : OP_WAIT_RECV_NET];

	for (int i = 0; i < STEP_STATES; i++)
		add_relaxed(&waits[i], load_relaxed(&proxy->wait_ns[i]));
	add_relaxed(is_send ? &others->send_bytes : &others->recv_bytes,
		    load_relaxed(&proxy->bytes));
	add_relaxed(is_send ? &others->send_steps : &others->recv_steps,
		    load_relaxed(&proxy->done));
	add_relaxed(&others->stopped, 1);
	/* Its release makes these stores visible to the thread that retires the operation. */
	live_child_end(live, generation);
}

static COLD void detail_proxy(const struct region_proxy *proxy)
{
	struct op_detail detail = {
		.comm = load_relaxed(&proxy->comm),
		.kind = OP_DETAIL_PROXY,
		.channel = load_relaxed(&proxy->channel),
		.flags = load_relaxed(&proxy->flags) & (PROXY_IS_SEND | PROXY_IS_FOREIGN),
		.number = load_relaxed(&proxy->number),
		.peer = load_relaxed(&proxy->peer),
		.step = load_relaxed(&proxy->steps),
		.time_ns = { load_relaxed(&proxy->start_ns), load_relaxed(&proxy->active_ns), 0,
			     recorder_now() },
		.bytes = load_relaxed(&proxy->bytes),
		.origin_pid = (uint64_t)load_relaxed(&proxy->origin_pid),
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
	uint8_t flags;

	if (UNLIKELY(proxy == NULL)) {
		count_odd(ODD_STALE_HANDLE);
		return;
	}
	word = load_relaxed(&proxy->word);
	flags = load_relaxed(&proxy->flags);
	if (UNLIKELY(load_relaxed(&proxy->posted) != load_relaxed(&proxy->done)))
		stop_forgotten_steps(proxy, recorder_now());
	if (UNLIKELY(recorder.is_full))
		detail_proxy(proxy);
	link_add(proxy);
	live = live_of(proxy, &parent);
	/* While the reference is held: afterwards the slot may have another owner. */
	comm = live != NULL && !(flags & PROXY_IS_OTHERS) ? comm_of_live(live) : NULL;
	if (live != NULL && flags & PROXY_IS_CHILD) {
		if (UNLIKELY(flags & PROXY_IS_OTHERS)) {
			add_for_other(proxy, live, handle_generation(parent));
		} else {
			add_to_operation(proxy, live);
			live_proxy_end(live, handle_generation(parent));
		}
	}
	proxy_give(comm, proxy, word);
}

/* A communicator ended: free what its proxy thread left open and what it kept. */
void hot_proxy_forget(struct comm_state *comm)
{
	uint32_t kept = load_relaxed(&comm->kept_proxies);

	for (uint32_t i = 0; i < recorder.region.proxy_count; i++) {
		struct region_proxy *proxy = &recorder.region.proxies[i];
		uint64_t word = load_acquire(&proxy->word);

		if (!region_slot_is_used(word) ||
		    load_relaxed(&proxy->comm) != load_relaxed(&comm->shared->info.id))
			continue;
		stop_forgotten_steps(proxy, recorder_now());
		swap_if_acq_rel(&proxy->word, &word, (uint64_t)(REGION_GENERATION(word) + 1) << 32);
	}
	store_relaxed(&comm->kept_proxies, 0);
	for (uint32_t i = 0; i < kept; i++) {
		uint64_t *word = &recorder.region.proxies[load_relaxed(&comm->kept[i])].word;
		uint64_t found = load_relaxed(word);

		if (!region_slot_is_used(found))
			swap_if_acq_rel(word, &found, found & ~UINT64_C(1));
	}
}
