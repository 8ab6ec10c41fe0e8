/* The rolling signature of a communicator: over function, count, datatype and root of each collective
 * in turn. Recorder and simulator compute it; trace files leave out what it can be computed from. */
#ifndef OP_SIGNATURE_H
#define OP_SIGNATURE_H

#include <stdint.h>

#include "base/hash.h"
#include "op/op_names.h"

/* What a name counts as. Interned ones are another number in every process: these count as the
 * hash of their text. */
static inline uint64_t op_signature_name(enum op_name_table table, uint8_t number)
{
	return (uint64_t)table << 8 | number;
}

static inline uint64_t op_signature(uint64_t before, uint64_t function, uint64_t datatype,
				    int32_t root, uint64_t count)
{
	uint64_t what = function ^ datatype << 16 ^ (uint64_t)(uint32_t)root << 32;

	return hash_word(hash_word(before, what), count);
}

#endif
