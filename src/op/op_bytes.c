#include "op/op_bytes.h"

#include "base/text.h"
#include "base/units.h"
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

bool op_size_range(unsigned int size_class, uint64_t *least, uint64_t *most)
{
	if (size_class == 0 || size_class > 2 + 63)
		return false;
	*least = size_class == 1 ? 0 : UINT64_C(1) << (size_class - 2);
	*most = size_class == 1 ? 0 : *least + (*least - 1);
	return true;
}

void op_size_text(char *to, size_t size, unsigned int size_class)
{
	char text[UNITS_TEXT];
	uint64_t least, most;

	if (op_size_range(size_class, &least, &most))
		text_copy(to, size, units_bytes(text, least));
	else
		text_copy(to, size, "unknown");
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
