/*
 * What encoder and decoder of coded blocks share; docs/FORMATS.md describes the coding in full.
 *
 * The records of a block are turned into columns, one per 64-bit word. Each column stores how far
 * it is from a prediction (zero, the previous row, another column), and these differences are
 * packed into as few bits as they need.
 */
#ifndef TRACE_CODE_H
#define TRACE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "format/trace_layout.h"

/* Maps small numbers of either sign to small unsigned numbers. */
static inline uint64_t trace_zigzag(uint64_t value)
{
	return value << 1 ^ (0 - (value >> 63));
}

static inline uint64_t trace_unzigzag(uint64_t code)
{
	return code >> 1 ^ (0 - (code & 1));
}

static inline uint64_t trace_width_mask(unsigned int width)
{
	return width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX;
}

/* Bytes needed for that many rows of bits. */
static inline size_t trace_packed_bytes(uint32_t rows, unsigned int width)
{
	return ((size_t)rows * width + 7) / 8;
}

/* One bit per word of a record: is its column present? */
static inline unsigned int trace_presence_bytes(unsigned int words)
{
	return (words + 7) / 8;
}

/* Bits of an index into a table with that many entries. */
static inline unsigned int trace_index_width(uint32_t entries)
{
	return entries < 2 ? 0 : 32 - (unsigned int)__builtin_clz(entries - 1);
}

/* The last signature of each communicator. A collision only makes a prediction wrong. */
struct trace_signatures {
	uint64_t last[TRACE_SIGNATURE_PLACES];
};

/* A cache of the current communicator's last signature, to avoid memory access for every row. */
struct trace_signature_run {
	uint32_t place;
	uint64_t last;
};

static inline void trace_signature_turn(struct trace_signatures *signatures,
					struct trace_signature_run *run, uint64_t kind)
{
	uint32_t place = op_kind_comm(kind) % TRACE_SIGNATURE_PLACES;

	if (place == run->place)
		return;
	signatures->last[run->place] = run->last;
	run->last = signatures->last[place];
	run->place = place;
}

/*
 * The predicted signature of an operation, from the last one of its communicator and four other
 * words of its record.
 */
static inline uint64_t trace_signature_guess(uint64_t last, uint64_t kind, uint64_t count,
					     uint64_t ends, uint64_t state)
{
	uint8_t function = (uint8_t)(kind >> 32), datatype = (uint8_t)(kind >> 40);

	/* Operations that not all ranks call have none. */
	if (op_state_flags(state) & OP_FLAG_REPLAY || !op_is_collective(function))
		return 0;
	return op_signature(last, op_signature_name(OP_NAMES_FUNCTION, function),
			    op_signature_name(OP_NAMES_DATATYPE, datatype), (int32_t)ends, count);
}

static inline uint64_t trace_block_checksum(const struct trace_block *block, const void *payload)
{
	uint64_t head = (uint64_t)block->type << 48 ^ (uint64_t)block->records << 24;

	return hash_word(hash_block(payload, block->payload_bytes), head);
}

#endif
