#include "op/op_bytes.h"

#include "op/op_layout.h"

static int is_per_rank(uint8_t function)
{
	return function == OP_ALL_GATHER || function == OP_REDUCE_SCATTER ||
	       function == OP_ALL_TO_ALL || function == OP_GATHER || function == OP_SCATTER;
}

uint64_t op_message_bytes(uint8_t function, uint64_t count, unsigned int element_bytes, int nranks)
{
	uint64_t bytes;

	if (element_bytes == 0 || function == OP_FUNCTION_UNKNOWN)
		return OP_BYTES_UNKNOWN;
	if (__builtin_mul_overflow(count, (uint64_t)element_bytes, &bytes))
		return OP_BYTES_UNKNOWN;
	if (!is_per_rank(function))
		return bytes;
	if (nranks <= 0 || __builtin_mul_overflow(bytes, (uint64_t)nranks, &bytes))
		return OP_BYTES_UNKNOWN;
	return bytes;
}

unsigned int op_size_class(uint64_t bytes)
{
	if (bytes == OP_BYTES_UNKNOWN)
		return 0;
	return bytes == 0 ? 1 : 2 + 63 - (unsigned int)__builtin_clzll(bytes);
}

int op_is_collective(uint8_t function)
{
	switch (function) {
	case OP_SEND:
	case OP_RECV:
	case OP_SEND_RECV:
	case OP_PUT_SIGNAL:
	case OP_SIGNAL:
	case OP_WAIT_SIGNAL:
		return 0;
	default:
		return 1;
	}
}
