/*
 * Calls that NCCL made and did not show. The events to be shown are one number per process, which others can
 * change while the job runs: a second plugin, and from 2.31 on any client of NCCL's RAS. Ranks are switched
 * one after the other, so each misses other calls, and "the n-th collective" is another one on each of them
 * from then on.
 *
 * NCCL numbers the collectives of each function, shown or not (2.26 and later). A number that jumps tells how
 * many were missed: they are counted, and the numbers that join ranks go on as if they had been seen. The
 * signature over all calls cannot be continued; it is 0, unknown, from there on.
 *
 * What is not a gap: calls of which the API event was shown alone; numbers that do not move because the
 * collective is part of a graph. Broadcast has no Coll events from 2.29 on, or now and then one. A communicator
 * with captured calls is not looked at.
 */
#include "capture/recorder.h"
#include "op/op_layout.h"

enum { INTERFACE_WITHOUT_BROADCAST = 6 };

/* Further than any job goes: not a number of NCCL's. */
#define GAP_MAX (UINT64_C(1) << 40)

static struct comm_sequence *sequence_of(struct comm_state *comm, uint8_t function)
{
	if (function < OP_ALL_REDUCE || function > OP_REDUCE)
		return NULL;
	if (function == OP_BROADCAST && comm->shared->info.interface >= INTERFACE_WITHOUT_BROADCAST)
		return NULL;
	/* Replays take numbers, too, and are shown by another thread: out of order is no gap. */
	if (load_relaxed(&comm->capture_first) != 0)
		return NULL;
	return &comm->sequences[function];
}

void hot_sequence_call(struct comm_state *comm, uint8_t function, const void *group)
{
	struct comm_sequence *of = sequence_of(comm, function);
	uint64_t opaque = (uint64_t)(uintptr_t)group;

	if (of == NULL)
		return;
	/* The tasks of one group come after all its calls, and in another order. */
	if (opaque == 0 || load_relaxed(&of->group) != opaque) {
		store_relaxed(&of->group, opaque);
		store_relaxed(&of->calls_before, load_relaxed(&of->calls));
	}
	bump_relaxed(&of->calls, 1);
}

/* How many numbers were passed over that belong to no call we know. */
static uint64_t advance(struct comm_sequence *of, uint64_t sequence)
{
	uint64_t next = load_relaxed(&of->next), before = load_relaxed(&of->calls_before);
	uint64_t tasks = load_relaxed(&of->tasks), untasked = 0;
	uint64_t missed = sequence > next ? sequence - next : 0;

	/* Calls of earlier groups without a task: they had their API event, and their number. */
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

/* A group's calls were numbered before its first task told of the gap before them. */
static COLD void align(struct comm_state *comm, struct op_record *op, uint64_t missed)
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

void hot_sequence_task(struct comm_state *comm, uint8_t function, uint64_t sequence,
		       struct op_record *op)
{
	struct comm_sequence *of = sequence_of(comm, function);
	uint64_t missed = of != NULL ? advance(of, sequence) : 0;

	if (UNLIKELY(missed > 0))
		count_gap(comm, missed);
	if (UNLIKELY(load_relaxed(&comm->shared->counts.missed) != 0) && op != NULL)
		align(comm, op, missed);
}

/* A task of which not even the function is known. */
COLD void hot_sequence_lose(struct comm_state *comm)
{
	for (unsigned int i = 0; i < ARRAY_LENGTH(comm->sequences); i++)
		store_relaxed(&comm->sequences[i].next, UINT64_MAX);
}
