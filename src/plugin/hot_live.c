/*
 * The table of operations in flight.
 *
 *	free --claim--> claimed --publish--> used --retire--> free (next generation)
 *
 * A slot's word is generation << 32 | retiring | open children. Odd generations are in use. A child
 * (kernel channel, proxy operation) takes a reference before it touches the slot and drops it when
 * it stops. A slot is retired only at zero references, or by force when its communicator ends.
 * After a forced retirement late children may still write for a moment, so the slot rests until the
 * cursor has gone around the table.
 *
 * An operation whose children have all stopped is done, but another child may still start: channels
 * are reported one by one, and the announced number cannot be trusted. So it lingers until LINGER
 * later operations of its communicator are done, too.
 */
#include <string.h>

#include "common/op.h"
#include "plugin/recorder.h"

enum { CLAIM_TRIES = 256 };

/*
 * Retired by force: an impossible number of open children keeps the slot unused until the cursor
 * passes.
 */
#define LIVE_RESTING UINT64_C(0xffffffff)

/* NULL if the slot has a new owner: the operation outlived its communicator. */
static struct comm_state *comm_of(const struct region_live *live)
{
	uint64_t slot = load_relaxed(&live->comm_slot);

	if (slot >= recorder.region.comm_count ||
	    load_relaxed(&recorder.comms[slot].shared->info.id) != load_relaxed(&live->op.comm))
		return NULL;
	return &recorder.comms[slot];
}

/* A group's tasks come after all of its calls. */
static bool is_awaiting_task(const struct comm_state *comm, const struct region_live *live)
{
	uint64_t group = load_relaxed(&live->group);

	return group != 0 && group == load_relaxed(&comm->current[0].group) &&
	       !(load_relaxed(&live->notes) & LIVE_HAS_TASK);
}

/*
 * May an operation without open children leave the table to make room? Not while its task or
 * children can still come, and not if it is the last call of its communicator: it may be the one
 * that hangs.
 */
static bool can_go(const struct region_live *live)
{
	const struct comm_state *comm = comm_of(live);
	const struct region_comm *shared;

	if (comm == NULL || load_relaxed(&live->op.state) == OP_DONE)
		return true;
	shared = comm->shared;
	if (load_relaxed(&shared->counts.issued) == load_relaxed(&live->op.number) ||
	    is_awaiting_task(comm, live))
		return false;
	return is_passed(comm, &live->op) || is_childless(comm, &live->op);
}

/* Take this slot if it is free; with makes_room, retire its operation if that is allowed. */
static bool claim_at(uint32_t at, bool makes_room)
{
	struct region_live *live = &recorder.region.live[at];
	uint64_t word = load_relaxed(&live->word);

	if (region_slot_is_used(word)) {
		if (!makes_room)
			return false;
		if ((word & LIVE_RESTING) != LIVE_RESTING) {
			if (!can_go(live) || !live_retire(live, REGION_GENERATION(word), false))
				return false;
			/*
			 * The word as live_retire() left it; the swap fails if another thread was
			 * faster.
			 */
			word = (uint64_t)(REGION_GENERATION(word) + 1) << 32;
		}
	}
	/* Pairs with the release in live_retire(). */
	return swap_if_acquire(&live->word, &word,
			       (uint64_t)((REGION_GENERATION(word) + 1) | 1) << 32 | LIVE_RETIRING);
}

/* A slot that was free or could be freed. NULL if a few tries found none. */
struct region_live *live_claim(struct comm_state *comm, uint32_t *slot)
{
	uint32_t mask = recorder.region.live_count - 1;
	uint32_t at = load_relaxed(&comm->live_hint);
	struct region_live *live;
	bool is_found = false;

	for (int i = 0; i < HINT_TRIES && !is_found; i++)
		is_found = claim_at(at++ & mask, false);
	for (int i = 0; i < CLAIM_TRIES && !is_found; i++) {
		/* Jump, because used slots cluster. */
		at = (uint32_t)add_relaxed(&recorder.region.header->live_cursor, 1) * SCATTER;
		is_found = claim_at(at++ & mask, true);
	}
	if (UNLIKELY(!is_found))
		return NULL;
	store_relaxed(&comm->live_hint, at & mask);
	*slot = (at - 1) & mask;
	live = &recorder.region.live[*slot];
	if (UNLIKELY(load_relaxed(&live->notes) & LIVE_HAS_OTHERS))
		words_clear(&recorder.others[*slot].started,
			    sizeof(*recorder.others) / sizeof(uint64_t));
	/* First of all, for readers after a kill: without a number a slot is being filled. */
	store_relaxed(&live->op.number, 0);
	words_clear(&live->word + 1, sizeof(*live) / sizeof(uint64_t) - 1);
	return live;
}

void live_publish(struct region_live *live)
{
	/* R3: pairs with the acquire in live_child_begin(), and with readers of the region. */
	store_release(&live->word, load_relaxed(&live->word) & ~LIVE_RETIRING);
}

/* Take a reference. False if the operation is gone. */
bool live_child_begin(struct region_live *live, uint32_t generation)
{
	uint64_t word = load_relaxed(&live->word);

	do {
		if ((REGION_GENERATION(word) & HANDLE_GENERATION_MASK) != generation ||
		    (word & LIVE_RETIRING) || LIVE_OPEN(word) == LIVE_OPEN(~UINT64_C(0)))
			return false;
		/* Pairs with the release in live_publish(). */
	} while (!swap_if_acquire(&live->word, &word, word + 1));
	/* All children so far had stopped; this one makes it running again. */
	if (UNLIKELY(load_relaxed(&live->op.state) == OP_DONE))
		store_relaxed(&live->op.state, OP_RUNNING);
	return true;
}

/*
 * All children have stopped: done, as far as anyone can tell. Called while the last reference is
 * still held, because without it the slot can change owners. True if it has to be queued, see
 * linger().
 */
static bool become_quiet(struct region_live *live, struct comm_state *comm, uint64_t done_ns)
{
	uint64_t first = load_relaxed(&live->group_first);

	store_relaxed(&live->op.done_ns, done_ns);
	store_relaxed(&live->op.state, OP_DONE);
	if (comm == NULL)
		return false;
	if (!live_has_proxies(live) && !load_relaxed(&comm->is_loose))
		store_relaxed(&comm->is_loose, 1);
	store_relaxed(&comm->shared->counts.last_done_ns, done_ns);
	if (first > load_relaxed(&comm->shared->counts.last_done_number))
		store_relaxed(&comm->shared->counts.last_done_number, first);
	return !(or_relaxed(&live->notes, LIVE_LINGERS) & LIVE_LINGERS);
}

/* Retire an operation that lingered. If a child started again, it will linger again. */
static void live_leave(uint64_t slot_and_generation)
{
	struct region_live *live = &recorder.region.live[(uint32_t)slot_and_generation];
	uint32_t generation = REGION_GENERATION(slot_and_generation);

	if (live_retire(live, generation, false))
		return;
	if ((REGION_GENERATION(load_relaxed(&live->word)) & HANDLE_GENERATION_MASK) == generation)
		and_relaxed(&live->notes, ~(uint64_t)LIVE_LINGERS);
}

/*
 * Called after the last reference was dropped: 64 others may follow at once, and whoever is pushed
 * out of the queue must have nothing open. If the slot has a new owner by now, the generation shows
 * it.
 */
static void linger(const struct region_live *live, uint32_t generation, struct comm_state *comm)
{
	uint64_t slot = (uint64_t)(live - recorder.region.live);
	uint64_t queued = add_relaxed(&comm->linger_cursor, 1) % LINGER;

	queued = swap_relaxed(&comm->linger[queued], (uint64_t)generation << 32 | slot);
	if (queued != 0)
		live_leave(queued);
}

/* Drop a reference. False: the operation is gone. *has_to_linger: see become_quiet(). */
static bool drop_child(struct region_live *live, uint32_t generation, struct comm_state *comm,
		       uint64_t done_ns, bool *has_to_linger)
{
	uint64_t word = load_relaxed(&live->word);
	bool is_quiet = false;

	do {
		if ((REGION_GENERATION(word) & HANDLE_GENERATION_MASK) != generation ||
		    (word & LIVE_RETIRING) || LIVE_OPEN(word) == 0)
			return false;
		if (LIVE_OPEN(word) == 1 && done_ns != 0)
			*has_to_linger |= become_quiet(live, comm, done_ns);
		else if (LIVE_OPEN(word) > 1 && done_ns != 0)
			store_relaxed(&live->op.done_ns, done_ns);
		else if (is_quiet) /* another child started in the meantime */
			store_relaxed(&live->op.state, OP_RUNNING);
		is_quiet = LIVE_OPEN(word) == 1 && done_ns != 0;
		/* Pairs with the acquire in live_retire(). */
	} while (!swap_if_acq_rel(&live->word, &word, word - 1));
	return true;
}

void live_child_end(struct region_live *live, uint32_t generation)
{
	struct comm_state *comm = comm_of(live);
	bool has_to_linger = false;

	if (drop_child(live, generation, comm, recorder_now(), &has_to_linger) && has_to_linger)
		linger(live, generation, comm);
}

void live_reached(struct region_live *live, uint32_t generation, uint64_t now)
{
	bool unused = false;

	if (!live_child_begin(live, generation))
		return;
	live_mark_running(live, now);
	/* Not later than this; the exact time comes with that of the end. */
	if (load_relaxed(&live->op.gpu_start_ns) == 0)
		store_relaxed(&live->op.gpu_start_ns, now);
	drop_child(live, generation, comm_of(live), 0, &unused);
}

/* It is not known when the GPU was done; what the network showed remains. */
static COLD void forget_timing(struct region_live *live)
{
	and_relaxed(&live->op.flags, ~(uint32_t)(OP_FLAG_CUDA_EVENT | OP_FLAG_SHARED_TIME));
	or_relaxed(&live->op.flags, OP_FLAG_NOT_SAMPLED);
	store_relaxed(&live->op.gpu_start_ns, 0);
	if (load_relaxed(&live->op.state) != OP_RUNNING || live_has_proxies(live))
		return;
	store_relaxed(&live->op.state, OP_LAUNCHED);
	store_relaxed(&live->op.active_ns, 0);
}

void live_time_end(struct region_live *live, uint32_t generation, uint32_t flags, uint64_t start_ns,
		   uint64_t stop_ns)
{
	struct comm_state *comm = comm_of(live);
	uint64_t done_ns = stop_ns, network_ns;
	bool has_to_linger = false;

	if (((REGION_GENERATION(load_relaxed(&live->word)) ^ generation) &
	     HANDLE_GENERATION_MASK) != 0)
		return;
	if (UNLIKELY(stop_ns == 0)) {
		forget_timing(live);
	} else {
		store_relaxed(&live->op.gpu_start_ns, start_ns);
		store_relaxed(&live->op.gpu_stop_ns, stop_ns);
		if (flags != 0)
			or_relaxed(&live->op.flags, flags);
		if (load_relaxed(&live->op.active_ns) == 0)
			store_relaxed(&live->op.active_ns, start_ns);
	}
	if (live_has_proxies(live)) {
		network_ns = load_relaxed(&live->op.done_ns);
		done_ns = network_ns > stop_ns ? network_ns : stop_ns;
	}
	if (!drop_child(live, generation, comm, done_ns, &has_to_linger))
		return;
	/*
	 * Transfers can still begin. Without a network the time was all that could come, and the
	 * operation may have left the latest calls, which retire each other.
	 */
	if (comm != NULL && !may_have_children(comm, true))
		live_retire(live, generation, false);
	else if (has_to_linger)
		linger(live, generation, comm);
}

bool live_time_replay(struct region_live *live, uint32_t generation, uint32_t flags,
		      uint64_t start_ns, uint64_t stop_ns)
{
	if (!live_child_begin(live, generation))
		return false;
	and_relaxed(&live->op.flags, ~(uint32_t)OP_FLAG_NOT_SAMPLED);
	live_time_end(live, generation, flags | OP_FLAG_CUDA_EVENT, start_ns, stop_ns);
	return true;
}

static void choose_time_source(struct op_record *op, const struct comm_state *comm)
{
	op->time_source = op_choose_time_source(op);
	if (op->state != OP_LAUNCHED || op->time_source != OP_TIME_NONE || comm == NULL ||
	    !may_have_children(comm, true) ||
	    load_relaxed(&comm->shared->counts.last_done_number) <= op->number)
		return;
	/* One of a later group is over, so this one is, too. */
	op->done_ns = load_relaxed(&comm->shared->counts.last_done_ns);
	op->time_source = op->done_ns >= op->issue_ns ? OP_TIME_HOST : OP_TIME_NONE;
}

static uint32_t stamp_spread(uint64_t first, uint64_t last)
{
	uint64_t between = last > first ? last - first : 0;

	return between > UINT32_MAX ? UINT32_MAX : (uint32_t)between;
}

static uint16_t sum_of_16(uint64_t one, uint64_t other)
{
	return one + other > UINT16_MAX ? UINT16_MAX : (uint16_t)(one + other);
}

static COLD void add_others(struct op_record *op, const struct live_others *others)
{
	op->proxies_started = sum_of_16(op->proxies_started, load_relaxed(&others->started));
	op->proxies_stopped = sum_of_16(op->proxies_stopped, load_relaxed(&others->stopped));
	op->send_bytes += load_relaxed(&others->send_bytes);
	op->recv_bytes += load_relaxed(&others->recv_bytes);
	op->send_steps += (uint32_t)load_relaxed(&others->send_steps);
	op->recv_steps += (uint32_t)load_relaxed(&others->recv_steps);
	for (int i = 0; i < OP_WAITS; i++)
		op->wait_ns[i] += load_relaxed(&others->wait_ns[i]);
}

static void complete_record(struct region_live *live, const struct comm_state *comm, bool is_open,
			    struct op_record *op)
{
	words_copy(op, &live->op, OP_RECORD_WORDS);
	if (UNLIKELY(load_relaxed(&live->notes) & LIVE_HAS_OTHERS))
		add_others(op, &recorder.others[live - recorder.region.live]);
	if (is_open)
		op->state = OP_ABANDONED;
	/* A child that came and went while the last one was ending set it running again. */
	else if (op->state == OP_RUNNING)
		op->state = OP_DONE;
	if (op->kernels_stopped > 0) {
		op->start_spread_ns =
			stamp_spread(op->gpu_start_ns, load_relaxed(&live->last_start_ns));
		op->stop_spread_ns =
			stamp_spread(load_relaxed(&live->first_stop_ns), op->gpu_stop_ns);
	}
	if (comm != NULL && load_relaxed(&comm->shared->info.flags) & COMM_FLAG_SEES_KERNELS &&
	    op_kernels_were_asked(&comm->shared->info, op) && op->kernels_started < op->channels &&
	    op->channels <= STAMPED_CHANNELS && op->state != OP_ABANDONED &&
	    !(op->flags & (OP_FLAG_SELF | OP_FLAG_COPY_ENGINE)))
		op->flags |= OP_FLAG_CHANNELS_MISSING;
	if (!(load_relaxed(&live->notes) & LIVE_HAS_TASK) && op->state == OP_ISSUED)
		op->flags |= OP_FLAG_API_ONLY;
	if (!is_open)
		choose_time_source(op, comm);
}

/* Move the record to ring and totals and the slot to its next generation. False: still in use. */
bool live_retire(struct region_live *live, uint32_t generation, bool by_force)
{
	uint64_t word = load_relaxed(&live->word);
	struct comm_state *comm;
	struct op_record op;
	bool is_open;

	do {
		if (((REGION_GENERATION(word) ^ generation) & HANDLE_GENERATION_MASK) != 0 ||
		    !region_slot_is_used(word) || (word & LIVE_RETIRING) ||
		    (LIVE_OPEN(word) != 0 && !by_force))
			return false;
		/* Pairs with the release in live_child_end(). */
	} while (!swap_if_acquire(&live->word, &word, word | LIVE_RETIRING));
	is_open = LIVE_OPEN(word) != 0;
	comm = comm_of(live);
	complete_record(live, comm, is_open, &op);
	record_push(comm, &op);
	if (is_open) {
		/* Late children may still write for a moment. */
		store_release(&live->word, (word & ~LIVE_RESTING) | LIVE_RESTING);
		return true;
	}
	if (comm != NULL)
		hint_lower(&comm->live_hint, (uint32_t)(live - recorder.region.live));
	/* Pairs with the acquire in claim_at(). */
	store_release(&live->word, (uint64_t)(REGION_GENERATION(word) + 1) << 32);
	return true;
}

uint64_t live_record(struct region_live *live, struct comm_state *comm)
{
	uint64_t word = load_relaxed(&live->word);
	struct op_record op;

	words_copy(&op, &live->op, OP_RECORD_WORDS);
	record_push(comm, &op);
	hint_lower(&comm->live_hint, (uint32_t)(live - recorder.region.live));
	/* Pairs with the acquire in claim_at(). */
	store_release(&live->word, (uint64_t)(REGION_GENERATION(word) + 1) << 32);
	return op.number;
}
