/*
 * Who met whom in the stretch of time that is shown: the ranks of each collective, and each Send with
 * its Recv. Waiting is worked out as in timeline/meet.h (duration minus the shortest one), of the
 * collectives that synchronise their ranks; beyond that, here it is known for each operation which
 * rank came last, and between which slices arrows lead.
 *
 * Two steps: viewer_meet_add() for every operation, then viewer_meet_find() for any of them. Memory is
 * bounded; operations that found no room are counted and stand without waiting and arrows.
 */
#ifndef VIEWER_MEET_H
#define VIEWER_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "view/viewer_place.h"

/* A collective has at most so many arrows: from the ranks that waited longest. */
enum { VIEWER_ARROWS_MAX = 32 };

#define VIEWER_MEET_BYTES (UINT64_C(512) << 20)

struct viewer_meeting;
struct viewer_waiter;

struct viewer_meet {
	const struct job *job;
	struct viewer_meeting *meetings;
	size_t count;
	size_t room;
	uint32_t *slots; /* hash table of indices + 1 */
	size_t slot_count;
	struct viewer_waiter *waiters; /* of all meetings, a stretch each */
	size_t waiter_count;
	size_t waiter_room;
	uint64_t limit_bytes;
	uint64_t left_out; /* operations */
	enum status status;
};

/* job is borrowed until viewer_meet_release(). limit_bytes 0: VIEWER_MEET_BYTES. */
void viewer_meet_init(struct viewer_meet *meet, const struct job *job, uint64_t limit_bytes);
void viewer_meet_release(struct viewer_meet *meet);

struct viewer_meet_op {
	const struct op_record *op;
	const struct job_seat *seat;
	const struct viewer_place *place;
	bool is_shown; /* it will have a slice: arrows can lead there */
};

void viewer_meet_add(struct viewer_meet *meet, const struct viewer_meet_op *op);

/* What is known of an operation after all were added. */
struct viewer_met {
	bool is_met;	   /* at least one other rank was there */
	bool is_partial;   /* ranks are missing: somebody else may have come last */
	bool has_wait;	   /* wait_ns and last are meant */
	bool is_differing; /* other ranks called something else here */
	uint64_t wait_ns;
	const struct job_seat *last; /* the seat that came last */
	/* Arrows that lead from or to it. Their moments: a tail's is the begin of its slice; a head's is
	 * the begin of its slice, but not before not_before_ns (common time). */
	size_t arrow_count;
	struct viewer_met_arrow {
		uint64_t number;
		uint64_t not_before_ns;
		bool is_head;
	} arrows[VIEWER_ARROWS_MAX];
};

void viewer_meet_find(const struct viewer_meet *meet, const struct viewer_meet_op *op,
		      struct viewer_met *met);

#endif
