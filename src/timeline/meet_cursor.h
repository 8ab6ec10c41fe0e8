/*
 * Where a seat's operations of one source go, while its process is walked. The way of nearly all operations
 * is in this header, because it is taken for each of millions.
 */
#ifndef MEET_CURSOR_H
#define MEET_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "timeline/align_fit.h"
#include "timeline/meet.h"

enum { MEET_SAMPLES = 256 };

struct meet_cursor {
	struct meet *meet;
	struct meet_comm *comm;
	struct meet_lane *lane;
	struct meet_chunk *chunk;
	struct meet_part *part;
	uint64_t number; /* of chunk */
	uint32_t hint;	 /* index of the chunk before */
	uint32_t seat;	 /* index in job_comm.seats */
	uint32_t comm_index;
	uint32_t process;
	uint8_t source;
	bool is_replay;
	bool is_left_out; /* chunk is NULL because it is not kept */
	/* Moments that the lane's owner saw, too: every `step`-th, thinned out when full. */
	uint32_t sample_count;
	uint32_t sample_step;
	uint32_t sample_skip;
	struct align_sample samples[MEET_SAMPLES];
};

void meet_cursor_move(struct meet_cursor *cursor, uint64_t number);
bool meet_cursor_turn(struct meet_cursor *cursor, const struct meet_op *op);
void meet_slot_start(struct meet_cursor *cursor, struct meet_slot *slot, const struct meet_op *op);
void meet_take_sample(struct meet_cursor *cursor, const struct meet_slot *slot, uint64_t end_ns);

static inline bool meet_is_agreed(const struct meet_slot *slot, const struct meet_op *op)
{
	return slot->kind == op->kind && slot->signature == (uint32_t)op->signature;
}

static inline void meet_slot_join(struct meet_cursor *cursor, struct meet_slot *slot,
				  const struct meet_op *op)
{
	uint64_t ns = op->duration_ns;
	bool is_least = ns < slot->least_ns;
	uint64_t other = is_least ? slot->least_ns : ns;

	slot->sum_ns += ns;
	slot->count++;
	slot->second_ns = other < slot->second_ns ? other : slot->second_ns;
	slot->least_ns = is_least ? ns : slot->least_ns;
	slot->last = is_least ? (uint16_t)cursor->seat : slot->last;
	if (slot->owner == cursor->lane->owner && ++cursor->sample_skip >= cursor->sample_step)
		meet_take_sample(cursor, slot, op->end_ns);
}

static inline void meet_add_wire(struct meet_part *part, const struct meet_op *op)
{
	if (op->wire_class < part->wire_class)
		return;
	if (op->wire_class > part->wire_class) {
		part->wire_class = op->wire_class;
		part->send_net_ns = 0;
		part->send_steps = 0;
	}
	part->send_net_ns += op->send_net_ns;
	part->send_steps += op->send_steps;
}

/* Rising match numbers are fast. True when it was joined. */
static inline bool meet_add(struct meet_cursor *cursor, const struct meet_op *op)
{
	uint64_t number = op->match / MEET_CHUNK;
	unsigned int place = op->match % MEET_CHUNK;
	struct meet_slot *slot;

	if (UNLIKELY(number != cursor->number))
		meet_cursor_move(cursor, number);
	if (UNLIKELY(cursor->chunk == NULL || op->kind >= MEET_KINDS_MAX)) {
		cursor->meet->left_out++;
		return false;
	}
	slot = &cursor->chunk->slots[place];
	/* Some collectives further on; across the end of the chunk it does no harm. */
	__builtin_prefetch(slot + 12, 1);
	/* In a variant that only this rank is in, it may have come back to the others. */
	if (UNLIKELY((slot->count > 0 && !meet_is_agreed(slot, op)) ||
		     (slot->count == 0 && cursor->lane->variant > 0))) {
		if (!meet_cursor_turn(cursor, op)) {
			cursor->meet->left_out++;
			return false;
		}
		slot = &cursor->chunk->slots[place];
	}
	if (UNLIKELY(cursor->part->bits >> place & 1)) {
		cursor->meet->repeated++;
		return false;
	}
	cursor->part->bits |= UINT32_C(1) << place;
	cursor->part->sum_ns += op->duration_ns;
	meet_add_wire(cursor->part, op);
	if (slot->count == 0)
		meet_slot_start(cursor, slot, op);
	else
		meet_slot_join(cursor, slot, op);
	cursor->meet->joined++;
	return true;
}

#endif
