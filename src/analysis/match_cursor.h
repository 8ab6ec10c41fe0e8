/*
 * Where a seat's operations of one source go, while its process is read. The path of nearly all operations
 * is in this header, because it is taken millions of times.
 */
#ifndef MATCH_CURSOR_H
#define MATCH_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/match.h"
#include "analysis/stats.h"
#include "common/attributes.h"

enum { MATCH_SAMPLES = 256 };

struct match_cursor {
	struct matches *matches;
	struct match_comm *comm;
	struct match_lane *lane;
	struct match_chunk *chunk;
	struct match_part *part;
	uint64_t number; /* of chunk */
	uint32_t hint;	 /* index of the previous chunk */
	uint32_t seat;	 /* index in job_comm.seats */
	uint32_t comm_index;
	uint32_t process;
	uint8_t source;
	bool is_replay;
	bool is_left_out; /* chunk is NULL because it is not kept */
	/* Moments that the lane's owner also has: every `step`-th, thinned out when full. */
	uint32_t sample_count;
	uint32_t sample_step;
	uint32_t sample_skip;
	struct align_sample samples[MATCH_SAMPLES];
};

void match_cursor_move(struct match_cursor *cursor, uint64_t number);
/* match_add(), out of line; without a match number it is counted as such. */
bool match_cursor_add(struct match_cursor *cursor, const struct match_op *op);
bool match_cursor_turn(struct match_cursor *cursor, const struct match_op *op);
void match_slot_start(struct match_cursor *cursor, struct match_slot *slot,
		      const struct match_op *op);
void match_take_sample(struct match_cursor *cursor, const struct match_slot *slot, uint64_t end_ns);

static inline bool match_is_agreed(const struct match_slot *slot, const struct match_op *op)
{
	return slot->kind == op->kind && slot->signature == (uint32_t)op->signature;
}

static inline void match_slot_join(struct match_cursor *cursor, struct match_slot *slot,
				   const struct match_op *op)
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
		match_take_sample(cursor, slot, op->end_ns);
}

/* Only the largest messages count. */
static inline void match_add_wire(struct match_part *part, uint32_t wire_class,
				  uint64_t send_net_ns, uint32_t send_steps)
{
	if (wire_class < part->wire_class)
		return;
	if (wire_class > part->wire_class) {
		part->wire_class = wire_class;
		part->send_net_ns = 0;
		part->send_steps = 0;
	}
	part->send_net_ns += send_net_ns;
	part->send_steps += send_steps;
}

/* Fast for ascending match numbers. True if it was matched. */
static inline bool match_add(struct match_cursor *cursor, const struct match_op *op)
{
	uint64_t number = op->match / MATCH_CHUNK;
	unsigned int place = op->match % MATCH_CHUNK;
	struct match_slot *slot;

	if (UNLIKELY(number != cursor->number))
		match_cursor_move(cursor, number);
	if (UNLIKELY(cursor->chunk == NULL || op->kind >= MATCH_KINDS_MAX)) {
		cursor->matches->left_out++;
		return false;
	}
	slot = &cursor->chunk->slots[place];
	/* Prefetches some collectives ahead; beyond the end of the chunk it is harmless. */
	__builtin_prefetch(slot + 12, 1);
	/* In a variant with only this rank, it may have returned to the others. */
	if (UNLIKELY((slot->count > 0 && !match_is_agreed(slot, op)) ||
		     (slot->count == 0 && cursor->lane->variant > 0))) {
		if (!match_cursor_turn(cursor, op)) {
			cursor->matches->left_out++;
			return false;
		}
		slot = &cursor->chunk->slots[place];
	}
	if (UNLIKELY(cursor->part->bits >> place & 1)) {
		cursor->matches->repeated++;
		return false;
	}
	cursor->part->bits |= UINT32_C(1) << place;
	cursor->part->sum_ns += op->duration_ns;
	match_add_wire(cursor->part, op->wire_class, op->send_net_ns, op->send_steps);
	if (slot->count == 0)
		match_slot_start(cursor, slot, op);
	else
		match_slot_join(cursor, slot, op);
	cursor->matches->joined++;
	return true;
}

/*
 * Many of one cursor, in sequence: what does not change from one to the next, and the sums, stay in
 * registers. Nothing else may be added to this cursor between start and end.
 *
 *	match_run_start(&run, cursor);
 *	for (...)
 *		is_joined = match_run_add(&run, columns, row, what);
 *	match_run_end(&run);
 */
struct match_run {
	struct match_cursor *cursor; /* NULL: none yet */
	struct match_slot *slots;
	uint64_t number; /* of the chunk; UINT64_MAX: there is none */
	struct match_part part;
	uint32_t joined;
	uint32_t samples_left; /* to skip before the next is taken */
	uint16_t owner;
	uint16_t seat;
};

static inline void match_run_start(struct match_run *run, struct match_cursor *cursor)
{
	run->cursor = cursor;
	run->number = UINT64_MAX;
	run->joined = 0;
	run->samples_left = cursor->sample_step - cursor->sample_skip;
	run->owner = cursor->lane->owner;
	run->seat = (uint16_t)cursor->seat;
	if (cursor->chunk == NULL)
		return;
	run->number = cursor->number;
	run->slots = cursor->chunk->slots;
	run->part = *cursor->part;
}

static inline void match_run_end(struct match_run *run)
{
	struct match_cursor *cursor = run->cursor;

	if (cursor == NULL)
		return;
	cursor->sample_skip = cursor->sample_step - run->samples_left;
	cursor->matches->joined += run->joined;
	if (run->number != UINT64_MAX)
		*cursor->part = run->part;
}

/* The first of its match, another chunk, or something that does not fit. */
static inline bool match_run_add_alone(struct match_run *run, const struct match_columns *columns,
				       uint32_t row, const struct match_what *what)
{
	struct match_cursor *cursor = run->cursor;
	uint64_t bytes = columns->bytes[row];
	const struct match_op op = {
		.match = columns->match[row],
		.signature = columns->signature[row],
		.duration_ns = columns->duration_ns[row],
		.end_ns = columns->end_ns[row],
		.send_net_ns = columns->send_net_ns[row],
		.send_steps = (uint32_t)columns->steps[row],
		.kind = what->kind,
		.bytes = bytes == OP_BYTES_UNKNOWN ? 0 : (float)bytes,
		.wire_class = what->wire_class,
	};
	bool is_joined;

	match_run_end(run);
	is_joined = match_cursor_add(cursor, &op);
	match_run_start(run, cursor);
	return is_joined;
}

static inline void match_run_sample(struct match_run *run, const struct match_slot *slot,
				    uint64_t end_ns)
{
	match_take_sample(run->cursor, slot, end_ns);
	run->samples_left = run->cursor->sample_step;
}

static inline bool match_run_add(struct match_run *run, const struct match_columns *columns,
				 uint32_t row, const struct match_what *what)
{
	uint64_t match = columns->match[row], ns = columns->duration_ns[row], other;
	uint32_t place = match % MATCH_CHUNK;
	struct match_slot *slot;
	bool is_least;

	if (UNLIKELY(match / MATCH_CHUNK != run->number))
		return match_run_add_alone(run, columns, row, what);
	slot = &run->slots[place];
	/* Prefetches some collectives ahead, also in the next chunk: they are contiguous. */
	__builtin_prefetch(slot + 32, 1);
	/* All that must agree, at once. Free slots have kind 0. */
	if (UNLIKELY((slot->signature ^ (uint32_t)columns->signature[row]) |
		     (slot->kind ^ what->kind) | (uint32_t)(slot->owner ^ run->owner) |
		     (run->part.bits >> place & 1)))
		return match_run_add_alone(run, columns, row, what);
	run->part.bits |= UINT32_C(1) << place;
	run->part.sum_ns += ns;
	if (what->wire_class >= run->part.wire_class)
		match_add_wire(&run->part, what->wire_class, columns->send_net_ns[row],
			       (uint32_t)columns->steps[row]);
	is_least = ns < slot->least_ns;
	other = is_least ? slot->least_ns : ns;
	slot->sum_ns += ns;
	slot->count++;
	slot->second_ns = other < slot->second_ns ? other : slot->second_ns;
	slot->least_ns = is_least ? ns : slot->least_ns;
	slot->last = is_least ? run->seat : slot->last;
	run->joined++;
	if (UNLIKELY(--run->samples_left == 0))
		match_run_sample(run, slot, columns->end_ns[row]);
	return true;
}

#endif
