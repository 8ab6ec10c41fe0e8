/*
 * Operations are issued: NCCL's names become numbers, missed calls are detected, and groups, API
 * calls and tasks become records.
 *
 * Names are compared by content, never by pointer: two copies of NCCL can live in one process, and
 * one can be unloaded. The pointer only selects a guess.
 */
#include <string.h>

#include "common/hash.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "plugin/recorder.h"

enum { NAME_WORDS = sizeof(struct region_name) / sizeof(uint64_t) };

/* A name's first word is written last; 0 there means that the name is incomplete. */
static bool is_name(const struct region_name *name, const uint64_t words[NAME_WORDS])
{
	const uint64_t *there = (const uint64_t *)(const void *)name;

	/* Pairs with the release in put_name(). */
	if (load_acquire(&there[0]) != words[0])
		return false;
	for (int i = 1; i < NAME_WORDS; i++)
		if (load_relaxed(&there[i]) != words[i])
			return false;
	return true;
}

static void put_name(struct region_name *name, const uint64_t words[NAME_WORDS])
{
	uint64_t *there = (uint64_t *)(void *)name;

	for (int i = 1; i < NAME_WORDS; i++)
		store_relaxed(&there[i], words[i]);
	/* Pairs with the acquire in is_name(), and in the trace thread. */
	store_release(&there[0], words[0]);
}

/* A name that is in no table gets a number of its own, once per process. */
static COLD uint8_t intern_name(const char *text)
{
	struct region_name *names = recorder.region.names;
	uint64_t used = load_relaxed(&recorder.region.header->names_used);
	uint64_t words[NAME_WORDS] = { 0 };

	memcpy(words, text, strnlen(text, sizeof(words) - 1));
	for (int i = 0; i < OP_NAMES_INTERNED_MAX; i++)
		if (is_name(&names[i], words))
			return (uint8_t)(OP_NAME_INTERNED + i);
	if (used >= OP_NAMES_INTERNED_MAX ||
	    !swap_if_acq_rel(&recorder.region.header->names_used, &used, used + 1))
		return 0; /* full, or another thread was faster: unknown this time */
	put_name(&names[used], words);
	return (uint8_t)(OP_NAME_INTERNED + used);
}

static COLD uint8_t find_and_remember(unsigned int table, const char *text, uint8_t *guess)
{
	int is_known;
	uint8_t id = op_name_find((enum op_name_table)table, text, &is_known);

	if (!is_known)
		return intern_name(text);
	store_relaxed(guess, id);
	return id;
}

uint8_t hot_name(unsigned int table, const char *text)
{
	uintptr_t at = (uintptr_t)text;
	uint8_t *guess = &recorder.guesses[table][(at >> 2 ^ at >> 8) % NAME_GUESSES];
	uint8_t id = load_relaxed(guess);

	if (text == NULL)
		return 0;
	if (LIKELY(strcmp(op_name_of_nccl((enum op_name_table)table, id), text) == 0))
		return id;
	return find_and_remember(table, text, guess);
}

uint8_t hot_datatype(const char *text)
{
	uint8_t id = hot_name(OP_NAMES_DATATYPE, text);

	/* Since 2.24 NCCL's table of names lacks ncclUint8, and only that datatype. */
	if (UNLIKELY(id == OP_DATATYPE_UNKNOWN) && text != NULL && strcmp(text, "Unknown") == 0)
		return OP_UINT8;
	return id;
}

static uint64_t hot_name_hash(unsigned int table, uint8_t id)
{
	/* Table numbers are the same on every rank; interned ones are not, so hash their text. */
	if (LIKELY(id < OP_NAME_INTERNED))
		return op_signature_name((enum op_name_table)table, id);
	return hash_bytes(recorder.region.names[id - OP_NAME_INTERNED].text,
			  sizeof(recorder.region.names[0].text));
}

/*
 * Calls that NCCL made but did not report. The event mask is one number per process that others can
 * change while the job runs: a second plugin, and since 2.31 any client of NCCL's RAS. Ranks switch
 * one after the other, so each misses different calls, and from then on "the n-th collective"
 * differs between ranks.
 *
 * NCCL numbers the collectives of each function whether it reports them or not (2.26 and later). A
 * jump in these numbers shows how many calls were missed. They are counted, and the numbers that
 * match ranks continue as if the calls had been recorded. The signature over all calls cannot be
 * continued; it is 0 (unknown) from there on.
 *
 * Not a gap: calls with an API event but no task, and numbers that do not move because the
 * collective is part of a graph. Since 2.29 Broadcast has Coll events rarely or never.
 * Communicators with captured calls are not checked at all.
 */

enum { INTERFACE_WITHOUT_BROADCAST = 6 };

/* Larger than any job reaches: not one of NCCL's numbers. */
#define GAP_MAX (UINT64_C(1) << 40)

static struct comm_sequence *sequence_of(struct comm_state *comm, uint8_t function)
{
	if (function < OP_ALL_REDUCE || function > OP_REDUCE)
		return NULL;
	if (function == OP_BROADCAST && comm->shared->info.interface >= INTERFACE_WITHOUT_BROADCAST)
		return NULL;
	/* Replays take numbers, too, and come from another thread, so out of order is not a gap. */
	if (load_relaxed(&comm->capture_first) != 0)
		return NULL;
	return &comm->sequences[function];
}

static void hot_sequence_call(struct comm_state *comm, uint8_t function, const void *group)
{
	struct comm_sequence *of = sequence_of(comm, function);
	uint64_t opaque = (uint64_t)(uintptr_t)group;

	if (of == NULL)
		return;
	/* The tasks of a group come after all of its calls, and in a different order. */
	if (opaque == 0 || load_relaxed(&of->group) != opaque) {
		store_relaxed(&of->group, opaque);
		store_relaxed(&of->calls_before, load_relaxed(&of->calls));
	}
	bump_relaxed(&of->calls, 1);
}

/* How many numbers were skipped that belong to no known call. */
static uint64_t sequence_advance(struct comm_sequence *of, uint64_t sequence)
{
	uint64_t next = load_relaxed(&of->next), before = load_relaxed(&of->calls_before);
	uint64_t tasks = load_relaxed(&of->tasks), untasked = 0;
	uint64_t missed = sequence > next ? sequence - next : 0;

	/* Calls of earlier groups without a task had their API event and their number. */
	if (before > tasks) {
		untasked = before - tasks;
		tasks = before;
	}
	store_relaxed(&of->tasks, tasks + 1);
	store_relaxed(&of->next, sequence + 1);
	if (missed >= GAP_MAX)
		return 0;
	return missed > untasked ? missed - untasked : 0;
}

static COLD void count_gap(struct comm_state *comm, uint64_t missed)
{
	struct comm_counts *counts = &comm->shared->counts;

	count_lost(LOST_NOT_SHOWN, missed);
	bump_relaxed(&counts->collectives, missed);
	store_relaxed(&counts->signature, 0);
	bump_relaxed(&counts->missed, missed);
}

/* A group's calls were numbered before its first task revealed the gap in front of them. */
static COLD void sequence_align(struct comm_state *comm, struct op_record *op, uint64_t missed)
{
	bool is_after = load_relaxed(&op->number) > load_relaxed(&comm->gap_issued);

	if (missed > 0) {
		store_relaxed(&comm->gap_shift,
			      (is_after ? 0 : load_relaxed(&comm->gap_shift)) + missed);
		store_relaxed(&comm->gap_issued, load_relaxed(&comm->shared->counts.issued));
		or_relaxed(&op->flags, OP_FLAG_AFTER_GAP);
		is_after = false;
	}
	if (is_after)
		return;
	store_relaxed(&op->match, load_relaxed(&op->match) + load_relaxed(&comm->gap_shift));
	store_relaxed(&op->signature, 0);
}

/* `op` may be NULL; otherwise its numbers are corrected after a gap. */
static void hot_sequence_task(struct comm_state *comm, uint8_t function, uint64_t sequence,
			      struct op_record *op)
{
	struct comm_sequence *of = sequence_of(comm, function);
	uint64_t missed = of != NULL ? sequence_advance(of, sequence) : 0;

	if (UNLIKELY(missed > 0))
		count_gap(comm, missed);
	if (UNLIKELY(load_relaxed(&comm->shared->counts.missed) != 0) && op != NULL)
		sequence_align(comm, op, missed);
}

/* A task whose function is unknown. */
static COLD void hot_sequence_lose(struct comm_state *comm)
{
	for (unsigned int i = 0; i < ARRAY_LENGTH(comm->sequences); i++)
		store_relaxed(&comm->sequences[i].next, UINT64_MAX);
}

/*
 * Operations are issued by their API event (v5 and later) or by their Coll or P2p event (earlier
 * versions, and each replay of a CUDA graph).
 *
 *	number     n-th operation of this rank on this communicator
 *	match      what matches ranks: n-th collective, n-th replayed collective, n-th send to or
 *	           receive from that peer. Replays have their own count because they race with calls.
 *	signature  rolling hash over the collectives; ranks with different values have diverged
 */

enum { PEER_TRIES = 16 };

/* NULL for anything but the context of a living communicator; counted as lost. */
struct comm_state *hot_comm(const void *context)
{
	struct handle handle = handle_decode(recorder.salt, context);
	struct comm_state *comm;
	uint64_t word;

	if (UNLIKELY(handle_kind(handle) != HANDLE_CONTEXT ||
		     handle_slot(handle) >= recorder.region.comm_count)) {
		count_odd(ODD_UNKNOWN_CONTEXT);
		return NULL;
	}
	comm = &recorder.comms[handle_slot(handle)];
	/* Relaxed: the context comes from init, which NCCL finished before. */
	word = load_relaxed(&comm->shared->word);
	if (UNLIKELY((REGION_GENERATION(word) & HANDLE_GENERATION_MASK) !=
			     handle_generation(handle) ||
		     word & COMM_ENDED)) {
		count_odd(ODD_UNKNOWN_CONTEXT);
		return NULL;
	}
	return comm;
}

/* A communicator that found no slot has a special context; its operations are counted as lost. */
static void *refuse_call(const void *context, bool is_captured)
{
	struct handle handle = handle_decode(recorder.salt, context);

	if (handle_kind(handle) == HANDLE_CONTEXT &&
	    handle_slot(handle) == recorder.region.comm_count)
		count_lost(LOST_NO_COMM, 1);
	/* Each replay will be lost, too. */
	if (is_captured)
		return handle_encode_captured(recorder.salt, 0);
	return handle_make(HANDLE_UNTRACKED, 0, 0, 0);
}

void *hot_group_start(void)
{
	uint64_t cursor = add_relaxed(&recorder.group_cursor, 1);
	uint32_t slot = (uint32_t)cursor % GROUPS;
	uint32_t generation = (uint32_t)(cursor / GROUPS) & HANDLE_GENERATION_MASK;

	store_relaxed(&recorder.groups[slot].generation, generation);
	store_relaxed(&recorder.groups[slot].launch_ns, 0);
	store_relaxed(&recorder.groups[slot].is_open, 1);
	return handle_make(HANDLE_GROUP_API, generation, slot, 0);
}

/*
 * A Group event: the tasks of one kernel. Before v5 a NULL handle would suppress them. Nothing is
 * recorded; the handle only needs to differ from that of the communicator's previous kernel.
 */
void *hot_plan_start(const void *context)
{
	struct comm_state *comm = hot_comm(context);

	return handle_make(HANDLE_IGNORED, comm != NULL ? (uint32_t)load_relaxed(&comm->tasks) : 0,
			   1, 0);
}

static struct group_state *group_find(struct handle handle)
{
	if (handle_slot(handle) >= GROUPS ||
	    load_relaxed(&recorder.groups[handle_slot(handle)].generation) !=
		    handle_generation(handle))
		return NULL;
	return &recorder.groups[handle_slot(handle)];
}

void hot_group_stop(struct handle handle)
{
	struct group_state *group = group_find(handle);

	if (group != NULL)
		store_relaxed(&group->is_open, 0);
}

/* Quiet, unlike hot_comm(): a launch without a known communicator loses nothing but its time. */
static struct comm_state *launch_comm(const void *context)
{
	struct handle handle = handle_decode(recorder.salt, context);

	return handle_kind(handle) == HANDLE_CONTEXT &&
			       handle_slot(handle) < recorder.region.comm_count
		       ? hot_comm(context)
		       : NULL;
}

void *hot_launch_start(const void *context, const void *parent, void *stream)
{
	struct handle handle = handle_decode(recorder.salt, parent);
	struct comm_state *comm = launch_comm(context);
	void *timed = comm != NULL ? hot_times_begin(comm, stream, parent) : NULL;

	if (timed != NULL)
		return timed;
	if (handle_kind(handle) != HANDLE_GROUP_API || handle_slot(handle) >= GROUPS)
		return handle_ignored();
	return handle_make(HANDLE_LAUNCH, handle_generation(handle), handle_slot(handle), 0);
}

void hot_launch_stop(struct handle handle)
{
	struct group_state *group = NULL;

	if (handle_kind(handle) == HANDLE_TIMED || handle_kind(handle) == HANDLE_IN_GRAPH)
		handle = handle_decode(recorder.salt, hot_times_end(handle));
	if (handle_kind(handle) == HANDLE_LAUNCH || handle_kind(handle) == HANDLE_GROUP_API)
		group = group_find(handle);
	if (group != NULL)
		store_relaxed(&group->launch_ns, recorder_now());
}

/*
 * n-th operation between this rank and that peer in that direction. 0 if the table is full or calls
 * may have been missed: NCCL does not number these.
 */
static uint64_t peer_count(uint32_t comm, int32_t peer, bool is_receive, bool is_replay)
{
	uint64_t key = REGION_LINK_KEY(comm, is_receive, peer) | (uint64_t)is_replay << 33;
	uint32_t mask = recorder.region.peer_count - 1;
	uint32_t at = (uint32_t)hash_word(key, key) & mask;
	struct region_peer *free = NULL;

	if (UNLIKELY(load_relaxed(&recorder.region.header->lost[LOST_NOT_SHOWN]) != 0))
		return 0;
	for (int i = 0; i < PEER_TRIES; i++, at = (at + 1) & mask) {
		struct region_peer *slot = &recorder.region.peers[at];
		uint64_t found = load_relaxed(&slot->key);

		if (found == key)
			return add_relaxed(&slot->count, 1) + 1;
		if (found <= SLOT_FORGOTTEN && free == NULL)
			free = slot;
		if (found == 0)
			break;
	}
	if (free != NULL) {
		uint64_t found = load_relaxed(&free->key);

		if (found <= SLOT_FORGOTTEN && swap_if_acquire(&free->key, &found, key))
			found = key;
		/* Another thread may have claimed it first, for the same peer. */
		if (found == key)
			return add_relaxed(&free->count, 1) + 1;
	}
	return 0;
}

static void sign_call(struct comm_counts *counts, struct op_record *op)
{
	uint64_t hash;

	/* Nobody knows which functions the unreported calls were. */
	if (UNLIKELY(load_relaxed(&counts->missed) != 0))
		return;
	hash = op_signature(load_relaxed(&counts->signature),
			    hot_name_hash(OP_NAMES_FUNCTION, op->function),
			    hot_name_hash(OP_NAMES_DATATYPE, op->datatype), op->root, op->count);

	store_relaxed(&counts->signature, hash);
	store_relaxed(&op->signature, hash);
}

/*
 * NCCL shows a replay on ranks that take part in it over the network, and with kernel events on all. Where a node has
 * several ranks, some show fewer than others, so that the same number is not the same collective.
 */
static bool all_ranks_show_replays(const struct comm_state *comm)
{
	const struct comm_info *info = &comm->shared->info;

	return info->nnodes == info->nranks || load_relaxed(&comm->expects_kernels);
}

/* Fill in what is known when the operation is issued. */
static void issue_call(struct comm_state *comm, struct op_record *op, const struct call *call,
		       bool is_replay)
{
	struct region_comm *shared = comm->shared;
	uint64_t now = recorder_now();
	uint32_t flags = 0;

	/* No one has a handle of the new owner yet, but holders of an old handle may still read. */
	store_relaxed(&op->comm, shared->info.id);
	store_relaxed(&op->function, call->function);
	store_relaxed(&op->datatype, call->is_bytes ? OP_DATATYPE_UNKNOWN : call->datatype);
	store_relaxed(&op->count, call->count);
	store_relaxed(&op->bytes,
		      op_message_bytes(call->function, call->count,
				       call->is_bytes ? 1 : op_datatype_bytes(call->datatype),
				       shared->info.nranks));
	store_relaxed(&op->user_tag, call->user_tag);
	store_relaxed(&op->stream, call->stream);
	store_relaxed(&op->root, call->root);
	store_relaxed(&op->peer, OP_NOBODY);
	store_relaxed(&op->state, OP_ISSUED);
	store_relaxed(&op->issue_ns, now);
	/*
	 * Its number comes before it is counted, so that a process killed in between leaves no
	 * operation that is counted and cannot be read. Only a replay at this very moment makes it
	 * another one.
	 */
	store_relaxed(&op->number, load_relaxed(&shared->counts.issued) + 1);
	store_relaxed(&op->number, add_relaxed(&shared->counts.issued, 1) + 1);
	store_relaxed(&shared->counts.last_issue_ns, now);
	if (is_replay)
		flags |= OP_FLAG_REPLAY;
	/* Until its task joins a timed launch. */
	if (hot_times_are_on(comm))
		flags |= OP_FLAG_NOT_SAMPLED;
	store_relaxed(&op->flags, flags);
	if (!op_is_collective(call->function))
		return;
	if (is_replay) {
		uint64_t match = add_relaxed(&shared->counts.replays, 1) + 1;

		store_relaxed(&op->match, all_ranks_show_replays(comm) ? match : 0);
	} else {
		/* NCCL requires one calling thread at a time; only replays come from another. */
		store_relaxed(&op->match, bump_relaxed_get(&shared->counts.collectives) + 1);
		sign_call(&shared->counts, op);
	}
}

/*
 * In a kernel with many works one channel can be far ahead of another that waits for the network.
 */
static void count_works(struct comm_state *comm, uint64_t plan)
{
	uint32_t works =
		load_relaxed(&comm->last_plan) == plan ? load_relaxed(&comm->plan_tasks) : 0;

	store_relaxed(&comm->last_plan, plan);
	store_relaxed(&comm->plan_tasks, works + 1);
	if (UNLIKELY(works >= KERNEL_WORKS) && !load_relaxed(&comm->is_loose))
		store_relaxed(&comm->is_loose, 1);
}

/* Add what the Coll, P2p or CeColl event knows. */
static void add_task(struct comm_state *comm, struct region_live *live, const struct call *call,
		     uint64_t now, uint64_t launch_ns)
{
	struct op_record *op = &live->op;
	uint8_t function;
	uint64_t plan;

	store_relaxed(&op->algorithm, call->algorithm);
	store_relaxed(&op->protocol, call->protocol);
	store_relaxed(&op->channels, call->channels);
	store_relaxed(&op->warps, call->warps);
	store_relaxed(&op->nccl_sequence, call->sequence);
	store_relaxed(&op->task_ns, now);
	store_relaxed(&op->launch_ns, launch_ns);
	store_relaxed(&live->task_index, bump_relaxed_get(&comm->tasks));
	if (call->peer != OP_NOBODY) {
		store_relaxed(&op->peer, call->peer);
		store_relaxed(&op->match, peer_count(load_relaxed(&op->comm), call->peer,
						     load_relaxed(&op->function) == OP_RECV,
						     load_relaxed(&op->flags) & OP_FLAG_REPLAY));
		if (call->peer == comm->shared->info.rank)
			or_relaxed(&op->flags, OP_FLAG_SELF);
	}
	/*
	 * Datatypes newer than our tables have no known size, but AllGather and Broadcast come in
	 * bytes.
	 */
	function = load_relaxed(&op->function);
	if (UNLIKELY(load_relaxed(&op->bytes) == OP_BYTES_UNKNOWN &&
		     (function == OP_ALL_GATHER || function == OP_BROADCAST)))
		store_relaxed(&op->bytes, op_message_bytes(function, call->count, 1,
							   comm->shared->info.nranks));
	/* The handle of its Group event without the bits that all of them share. */
	plan = (uint64_t)(uintptr_t)call->group >> HANDLE_GENERATION_SHIFT;
	count_works(comm, plan);
	or_relaxed(&live->notes, LIVE_HAS_TASK | plan << LIVE_PLAN_SHIFT);
	if (UNLIKELY(call->user_tag != 0))
		store_relaxed(&op->user_tag, call->user_tag);
	if (load_relaxed(&op->state) == OP_ISSUED)
		store_relaxed(&op->state, OP_LAUNCHED);
}

/*
 * Without children no event marks the end of an operation. Retire the one RECENT calls ago if no
 * child can come any more: none is expected, or a later operation is done. In a group the tasks
 * come after all calls, so an operation of the current group without a task stays.
 */
static void forget_older(struct comm_state *comm, uint64_t number, uint64_t slot_and_generation,
			 uint64_t group)
{
	uint64_t *recent = &comm->recent[number % RECENT];
	uint64_t old = load_relaxed(recent);
	struct region_live *live = &recorder.region.live[(uint32_t)old];

	store_relaxed(recent, slot_and_generation);
	if (old == 0 || (group != 0 && load_relaxed(&live->group) == group &&
			 !(load_relaxed(&live->notes) & LIVE_HAS_TASK)))
		return;
	if (!may_have_children(comm, number < CHILDLESS_AGE) ||
	    (load_relaxed(&live->op.active_ns) == 0 && is_passed(comm, &live->op)))
		live_retire(live, REGION_GENERATION(old), false);
}

/*
 * The calling thread is about to launch the kernel. Cleanup that can wait is done when the task
 * comes, while the GPU is already working, or at the next call.
 */
static void forget_later(struct comm_state *comm, uint64_t number, uint64_t slot_and_generation,
			 uint64_t group)
{
	store_relaxed(&comm->latest.number, number);
	store_relaxed(&comm->latest.group, group);
	store_relaxed(&comm->latest.slot_and_generation, slot_and_generation);
}

static void forget_now(struct comm_state *comm)
{
	uint64_t slot_and_generation = load_relaxed(&comm->latest.slot_and_generation);

	if (slot_and_generation == 0)
		return;
	store_relaxed(&comm->latest.slot_and_generation, 0);
	forget_older(comm, load_relaxed(&comm->latest.number), slot_and_generation,
		     load_relaxed(&comm->latest.group));
}

/* In a large group it left recent[] before its task came. */
static void remember_again(struct comm_state *comm, const struct region_live *live,
			   struct handle handle)
{
	uint64_t self = (uint64_t)handle_generation(handle) << 32 | handle_slot(handle);
	uint64_t number = load_relaxed(&live->op.number);

	if (UNLIKELY(load_relaxed(&comm->recent[number % RECENT]) != self))
		forget_older(comm, number, self, load_relaxed(&live->group));
}

/* No slot is free: record the operation as issued; nothing more will be known about it. */
static COLD void *record_untracked(struct comm_state *comm, const struct call *call, bool is_replay)
{
	struct op_record op = { .sequence = 0 };

	issue_call(comm, &op, call, is_replay);
	op.flags |= OP_FLAG_UNTRACKED;
	record_push(comm, &op);
	return handle_make(HANDLE_UNTRACKED, 0, 0, 0);
}

static struct capture_tag *capture_tag(const struct comm_state *comm, uint64_t number,
				       uint64_t *key)
{
	*key = (uint64_t)comm->shared->info.id << 40 ^ number;
	return &recorder.capture_tags[hash_word(*key, *key) % TAGGED_CAPTURES];
}

static COLD void remember_tag(const struct comm_state *comm, const struct op_record *op)
{
	uint64_t key;
	struct capture_tag *at = capture_tag(comm, op->number, &key);

	/*
	 * Replays read this later from another thread and must not find a tag under the wrong key.
	 */
	store_relaxed(&at->key, 0);
	store_release(&at->tag, op->user_tag);
	store_release(&at->key, key);
	store_relaxed(&recorder.has_capture_tags, 1);
}

/* Pairs with the releases in remember_tag(). 0 if another call took the entry. */
static COLD uint64_t recall_tag(const struct comm_state *comm, uint64_t number)
{
	uint64_t key, tag;
	const struct capture_tag *at = capture_tag(comm, number, &key);

	if (load_acquire(&at->key) != key)
		return 0;
	tag = load_acquire(&at->tag);
	return load_relaxed(&at->key) == key ? tag : 0;
}

/* Operations of a group end in any order, but all of them after those of earlier groups. */
static void join_group(struct comm_state *comm, struct region_live *live, const void *group,
		       bool is_replay)
{
	uint64_t opaque = (uint64_t)(uintptr_t)group;

	if (opaque == 0 || load_relaxed(&comm->current[is_replay].group) != opaque) {
		store_relaxed(&comm->current[is_replay].group, opaque);
		store_relaxed(&comm->current[is_replay].first, load_relaxed(&live->op.number));
	}
	store_relaxed(&live->group_first, load_relaxed(&comm->current[is_replay].first));
}

/* A new live operation; NULL if record_untracked() had to take it. */
static struct region_live *begin_op(struct comm_state *comm, const struct call *call,
				    bool is_replay, uint32_t *slot)
{
	struct region_live *live = live_claim(comm, slot);

	if (UNLIKELY(live == NULL))
		return NULL;
	store_relaxed(&live->comm_slot, (uint64_t)(comm - recorder.comms));
	issue_call(comm, &live->op, call, is_replay);
	return live;
}

/*
 * A captured call runs when its graph does; each replay gets a record of its own. It is in a live
 * slot until its record is in the ring, in case the process is killed in between.
 */
static void *record_captured(struct comm_state *comm, const struct call *call, const void *group)
{
	struct op_record untracked = { .sequence = 0 };
	uint32_t slot;
	struct region_live *live = begin_op(comm, call, false, &slot);
	struct op_record *op = live != NULL ? &live->op : &untracked;

	bool is_first = load_relaxed(&comm->capture_group) != (uint64_t)(uintptr_t)group;

	if (UNLIKELY(live == NULL))
		issue_call(comm, op, call, false);
	if (is_first) {
		store_relaxed(&comm->capture_group, (uint64_t)(uintptr_t)group);
		store_relaxed(&comm->capture_first, op->number);
		store_relaxed(&comm->capture_calls, 0);
		store_relaxed(&comm->capture_tasks, 0);
	}
	bump_relaxed(&comm->capture_calls, 1);
	if (hot_times_are_on(comm))
		hot_times_capture(comm, op, is_first);
	if (UNLIKELY(op->user_tag != 0))
		remember_tag(comm, op);
	store_relaxed(&op->state, OP_CAPTURED);
	if (LIKELY(live != NULL))
		return handle_encode_captured(recorder.salt, live_record(live, comm));
	record_push(comm, op);
	return handle_encode_captured(recorder.salt, op->number);
}

void *hot_api_call(const void *context, const void *parent, const struct call *call)
{
	struct comm_state *comm = hot_comm(context);
	uint64_t group = (uint64_t)(uintptr_t)parent, number;
	struct region_live *live;
	uint32_t slot, generation;

	if (UNLIKELY(comm == NULL))
		return refuse_call(context, call->is_captured);
	if (UNLIKELY(call->is_captured))
		return record_captured(comm, call, parent);
	hot_sequence_call(comm, call->function, parent);
	forget_now(comm);
	live = begin_op(comm, call, false, &slot);
	if (UNLIKELY(live == NULL))
		return record_untracked(comm, call, false);
	store_relaxed(&live->group, group);
	join_group(comm, live, parent, false);
	generation = REGION_GENERATION(load_relaxed(&live->word));
	number = load_relaxed(&live->op.number);
	if (hot_times_are_on(comm))
		hot_times_choose(comm, &live->op, group,
				 number == load_relaxed(&comm->current[0].first));
	live_publish(live);
	forget_later(comm, number, (uint64_t)generation << 32 | slot, group);
	return handle_make(HANDLE_CALL, generation, slot, 0);
}

/*
 * While the capturing group continues, a task is not a replay: NCCL reports the tasks of a graph
 * once, during capture, if it will report nothing of its replays.
 */
static bool is_capture_itself(struct comm_state *comm, uint64_t captured_number)
{
	uint64_t opaque = load_relaxed(&comm->capture_group);
	struct handle handle = handle_decode(recorder.salt, (const void *)(uintptr_t)opaque);
	const struct group_state *group =
		handle_kind(handle) == HANDLE_GROUP_API ? group_find(handle) : NULL;

	if (group == NULL || !load_relaxed(&group->is_open) ||
	    captured_number < load_relaxed(&comm->capture_first) ||
	    load_relaxed(&comm->capture_tasks) >= load_relaxed(&comm->capture_calls))
		return false;
	bump_relaxed(&comm->capture_tasks, 1);
	return true;
}

/* Record nothing, but account for the number NCCL gave it. */
static COLD void *untracked_task(struct comm_state *comm, const struct call *call)
{
	if (comm != NULL && call->has_sequence)
		hot_sequence_task(comm, call->function, call->sequence, NULL);
	return handle_make(HANDLE_UNTRACKED, 0, 0, 0);
}

/* The operation is known only from its Coll or P2p event: older interfaces and replays. */
static void *begin_from_task(const void *context, const struct call *call, uint64_t captured_number)
{
	struct comm_state *comm = hot_comm(context);
	bool is_replay = captured_number != 0;
	uint32_t slot, generation;
	struct region_live *live;
	uint64_t number;

	if (UNLIKELY(comm == NULL))
		return refuse_call(context, false);
	if (UNLIKELY(is_replay && is_capture_itself(comm, captured_number)))
		return untracked_task(comm, call);
	live = begin_op(comm, call, is_replay, &slot);
	if (UNLIKELY(live == NULL)) {
		untracked_task(comm, call);
		return record_untracked(comm, call, is_replay);
	}
	if (call->has_sequence)
		hot_sequence_task(comm, call->function, call->sequence,
				  is_replay ? NULL : &live->op);
	store_relaxed(&live->notes, LIVE_FROM_TASK);
	store_relaxed(&live->op.captured_number, captured_number);
	join_group(comm, live, call->group, is_replay);
	add_task(comm, live, call, load_relaxed(&live->op.issue_ns), 0);
	if (UNLIKELY(is_replay && load_relaxed(&recorder.has_capture_tags) && call->user_tag == 0))
		store_relaxed(&live->op.user_tag, recall_tag(comm, captured_number));
	generation = REGION_GENERATION(load_relaxed(&live->word));
	number = load_relaxed(&live->op.number);
	live_publish(live);
	if (UNLIKELY(is_replay && load_relaxed(&recorder.timing.has_graphs)))
		hot_times_replay(comm, captured_number, (uint64_t)generation << 32 | (slot + 1));
	forget_older(comm, number, (uint64_t)generation << 32 | slot, 0);
	return handle_make(HANDLE_TASK, generation, slot, 0);
}

/* The task of a known call: its KernelLaunch event has just given the launch time. */
static void *continue_call(struct region_live *live, struct handle handle, const struct call *call)
{
	uint64_t slot = load_relaxed(&live->comm_slot);
	uint64_t opaque = load_relaxed(&live->group), launch_ns = 0;
	struct handle group_handle = handle_decode(recorder.salt, (void *)(uintptr_t)opaque);
	struct group_state *group = NULL;

	if (load_relaxed(&live->notes) & LIVE_HAS_TASK) {
		count_odd(ODD_REPEATED_START);
	} else if (slot < recorder.region.comm_count) {
		if (handle_kind(group_handle) == HANDLE_GROUP_API)
			group = group_find(group_handle);
		if (group != NULL)
			launch_ns = load_relaxed(&group->launch_ns);
		if (call->has_sequence)
			hot_sequence_task(&recorder.comms[slot], load_relaxed(&live->op.function),
					  call->sequence, &live->op);
		add_task(&recorder.comms[slot], live, call,
			 launch_ns != 0 ? launch_ns : recorder_now(), launch_ns);
		forget_now(&recorder.comms[slot]);
		remember_again(&recorder.comms[slot], live, handle);
		hot_times_join(&recorder.comms[slot], live, handle, call->algorithm);
	}
	return handle_make(HANDLE_TASK, handle_generation(handle), handle_slot(handle), 0);
}

void *hot_task(const void *context, const void *parent, const struct call *call)
{
	struct handle handle = handle_decode(recorder.salt, parent);
	struct region_live *live;

	switch (handle_kind(handle)) {
	case HANDLE_CALL:
		live = live_find(handle);
		if (LIKELY(live != NULL))
			return continue_call(live, handle, call);
		/* It was recorded and retired already. */
		count_lost(LOST_LATE_CHILD, 1);
		if (call->has_sequence && hot_comm(context) != NULL)
			hot_sequence_lose(hot_comm(context));
		return handle_make(HANDLE_UNTRACKED, 0, 0, 0);
	case HANDLE_CAPTURED:
		return begin_from_task(context, call,
				       handle_captured_number(recorder.salt, parent));
	case HANDLE_UNTRACKED:
		return untracked_task(hot_comm(context), call);
	default:
		return begin_from_task(context, call, 0);
	}
}

void *hot_copy_engine(const void *context, const void *parent, const struct call *call)
{
	void *opaque = hot_task(context, parent, call);
	struct handle handle = handle_decode(recorder.salt, opaque);
	struct region_live *live = handle_kind(handle) == HANDLE_TASK ? live_find(handle) : NULL;

	if (live != NULL)
		or_relaxed(&live->op.flags, OP_FLAG_COPY_ENGINE);
	return opaque;
}
