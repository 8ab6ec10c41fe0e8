#include "trace/trace_code.h"

#include "base/hash.h"

uint64_t trace_block_checksum(const struct trace_block *block, const void *payload)
{
	uint64_t head = (uint64_t)block->type << 48 ^ (uint64_t)block->records << 24;

	return hash_word(hash_block(payload, block->payload_bytes), head);
}
