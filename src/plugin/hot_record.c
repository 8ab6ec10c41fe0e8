/* Finished operations: the ring, the totals, and the details of mode full. */
#include <string.h>

#include "common/hash.h"
#include "common/op.h"
#include "plugin/recorder.h"

enum { TOTAL_TRIES = 16 };

/*
 * R2, the writing side. RING_BUSY in the sequence word claims the slot. A writer that finds it
 * busy, or finds a later record, was overtaken by a whole lap; it drops its own record, counted.
 * Pairs with the trace thread and every reader, which check the sequence before and after copying.
 */
static bool slot_take(uint64_t *slot, uint64_t sequence)
{
	uint64_t found = load_relaxed(slot);

	/* Busy is the top bit, so one comparison covers both cases. */
	if (UNLIKELY(found >= sequence) || !swap_if_acquire(slot, &found, RING_BUSY | sequence))
		return false;
	fence_release();
	return true;
}

static void copy_words(uint64_t *to, const uint64_t *from, unsigned int words)
{
	for (unsigned int i = 1; i < words; i++)
		store_relaxed(&to[i], from[i]);
}

/* The slot with this key, or a free slot that now has it, or NULL. */
struct region_total *record_total_find(uint64_t key)
{
	struct region_total *totals = recorder.region.totals, *free = NULL;
	uint32_t mask = recorder.region.total_count - 1;
	uint32_t at = (uint32_t)hash_word(key, key) & mask;
	uint64_t found;

	for (int i = 0; i < TOTAL_TRIES; i++, at = (at + 1) & mask) {
		found = load_relaxed(&totals[at].key);
		if (found == key)
			return &totals[at];
		if (found <= SLOT_FORGOTTEN && at != 0 && free == NULL)
			free = &totals[at];
		if (found == 0 && at != 0)
			break;
	}
	if (free == NULL)
		return NULL;
	found = load_relaxed(&free->key);
	if (found > SLOT_FORGOTTEN || !swap_if_acquire(&free->key, &found, key))
		return found == key ? free : NULL; /* another thread was faster */
	bump_relaxed(&recorder.region.header->totals_used, 1);
	return free;
}

static uint64_t total_key(const struct op_record *op, uint32_t comm)
{
	return TOTALS_KEY(comm, op->function, op->datatype, op->algorithm, op->protocol,
			  op_size_class(op->bytes));
}

static struct region_total *total_for(const struct op_record *op)
{
	struct region_total *total = record_total_find(total_key(op, op->comm));

	if (LIKELY(total != NULL))
		return total;
	count_lost(LOST_TOTALS, 1);
	total = record_total_find(total_key(op, 0));
	return total ? total : &recorder.region.totals[0];
}

static void record_total(const struct op_record *op)
{
	struct region_total *total = total_for(op);
	uint64_t ns = op_duration_ns(op);

	add_relaxed(&total->count, 1);
	if (op->bytes != OP_BYTES_UNKNOWN)
		add_relaxed(&total->bytes, op->bytes);
	if (op->proxies_stopped > 0) {
		add_relaxed(&total->send_bytes, op->send_bytes);
		add_relaxed(&total->recv_bytes, op->recv_bytes);
		for (int i = 0; i < OP_WAITS; i++)
			if (op->wait_ns[i] != 0)
				add_relaxed(&total->wait_ns[i], op->wait_ns[i]);
	}
	if (!op_has_duration(op))
		return;
	if (op->flags & OP_FLAG_SHARED_TIME) {
		add_relaxed(&total->shared, 1);
		add_relaxed(&total->shared_ns, ns);
		return;
	}
	add_relaxed(&total->timed, 1);
	add_relaxed(&total->sum_ns, ns);
	if (op->bytes != OP_BYTES_UNKNOWN)
		add_relaxed(&total->timed_bytes, op->bytes);
	add_relaxed(&total->buckets[histogram_bucket(ns)], 1);
	if (ns > load_relaxed(&total->max_ns))
		store_relaxed(&total->max_ns, ns);
}

static void count_record(struct comm_state *comm, const struct op_record *op)
{
	struct comm_counts *counts;

	if (UNLIKELY(comm == NULL))
		return;
	counts = &comm->shared->counts;
	add_relaxed(&counts->recorded, 1);
	if (op_has_duration(op))
		add_relaxed(&counts->timed, 1);
	if (op->state == OP_CAPTURED)
		add_relaxed(&counts->captured, 1);
	if (op->flags & OP_FLAG_REPLAY)
		add_relaxed(&counts->replayed, 1);
	if (op->state == OP_ABANDONED)
		add_relaxed(&counts->abandoned, 1);
	if (op->flags & OP_FLAG_UNTRACKED)
		add_relaxed(&counts->untracked, 1);
	if (op->flags & OP_STAMPS_UNTRUSTED)
		add_relaxed(&counts->untrusted, 1);
}

void record_push(struct comm_state *comm, struct op_record *op)
{
	struct region_header *header = recorder.region.header;
	struct op_record *slot;

	op->sequence = add_relaxed(&header->ring_head, 1) + 1;
	count_record(comm, op);
	if (op->state != OP_CAPTURED)
		record_total(op);
	if (recorder.region.ring_count == 0)
		return;
	slot = &recorder.region.ring[(op->sequence - 1) & (recorder.region.ring_count - 1)];
	if (UNLIKELY(!slot_take(&slot->sequence, op->sequence)))
		return; /* the trace thread finds the gap and counts it */
	copy_words((uint64_t *)(void *)slot, (const uint64_t *)(const void *)op, OP_RECORD_WORDS);
	store_release(&slot->sequence, op->sequence);
}

void record_detail(struct op_detail *detail)
{
	struct op_detail *slot;

	if (recorder.region.detail_count == 0)
		return;
	detail->sequence = add_relaxed(&recorder.region.header->details_head, 1) + 1;
	slot = &recorder.region
			.details[(detail->sequence - 1) & (recorder.region.detail_count - 1)];
	if (UNLIKELY(!slot_take(&slot->sequence, detail->sequence)))
		return; /* the trace thread finds the gap and counts it */
	copy_words((uint64_t *)(void *)slot, (const uint64_t *)(const void *)detail,
		   OP_DETAIL_WORDS);
	store_release(&slot->sequence, detail->sequence);
}
