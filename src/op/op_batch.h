/*
 * Many records at once, word by word: column w holds word w of each record, as struct op_record has
 * it. Who reads a few words of millions of records takes these; the others take whole records.
 */
#ifndef OP_BATCH_H
#define OP_BATCH_H

#include <stdint.h>

#include "op/op_layout.h"

/* What the 64-bit words of a record hold; those with several fields are taken apart below. */
enum op_word {
	OP_WORD_SEQUENCE = 0,
	OP_WORD_KIND = 1, /* comm, function, datatype, algorithm, protocol */
	OP_WORD_NUMBER = 2,
	OP_WORD_MATCH = 3,
	OP_WORD_SIGNATURE = 4,
	OP_WORD_COUNT = 5,
	OP_WORD_BYTES = 6,
	OP_WORD_NCCL_SEQUENCE = 7,
	OP_WORD_USER_TAG = 8,
	OP_WORD_STREAM = 9,
	OP_WORD_ENDS = 10,  /* root, peer */
	OP_WORD_STATE = 11, /* flags, state, time_source, channels, warps */
	OP_WORD_ISSUE = 12,
	OP_WORD_LAUNCH = 13,
	OP_WORD_TASK = 14,
	OP_WORD_ACTIVE = 15,
	OP_WORD_DONE = 16,
	OP_WORD_GPU_START = 17,
	OP_WORD_GPU_STOP = 18,
	OP_WORD_SPREADS = 19,
	OP_WORD_CHILDREN = 20,
	OP_WORD_CAPTURED_NUMBER = 21,
	OP_WORD_SEND_BYTES = 22,
	OP_WORD_RECV_BYTES = 23,
	OP_WORD_WAITS = 24, /* six of them */
	OP_WORD_STEPS = 30,
	OP_WORD_RESERVED = 31,
};

#define OP_WORD_BIT(word) (UINT32_C(1) << (word))
#define OP_WORDS_ALL UINT32_MAX
/* What op_time.h needs to tell a duration. */
#define OP_WORDS_TIME                                                                          \
	(OP_WORD_BIT(OP_WORD_STATE) | OP_WORD_BIT(OP_WORD_ISSUE) | OP_WORD_BIT(OP_WORD_TASK) | \
	 OP_WORD_BIT(OP_WORD_ACTIVE) | OP_WORD_BIT(OP_WORD_DONE) |                             \
	 OP_WORD_BIT(OP_WORD_GPU_START) | OP_WORD_BIT(OP_WORD_GPU_STOP))

struct op_batch {
	uint32_t rows;
	uint32_t words;				 /* bit w: column w is there */
	const uint64_t *column[OP_RECORD_WORDS]; /* NULL where its bit is not set */
};

/* Parts of OP_WORD_KIND. All but the communicator in one number: a key to group by. */
static inline uint32_t op_kind_comm(uint64_t kind)
{
	return (uint32_t)kind;
}

static inline uint32_t op_kind_names(uint64_t kind)
{
	return (uint32_t)(kind >> 32);
}

/* Parts of OP_WORD_STATE. */
static inline uint32_t op_state_flags(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint8_t op_state_state(uint64_t word)
{
	return (uint8_t)(word >> 32);
}

static inline uint8_t op_state_source(uint64_t word)
{
	return (uint8_t)(word >> 40);
}

#endif
