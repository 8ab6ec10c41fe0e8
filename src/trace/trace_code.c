#include "trace/trace_code.h"

#include <string.h>

#include "base/hash.h"

static unsigned char *put_varint(unsigned char *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (unsigned char)(value | 0x80);
	*to++ = (unsigned char)value;
	return to;
}

/* Small differences of either sign become small numbers. */
static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unzigzag(uint64_t code)
{
	return code >> 1 ^ (0 - (code & 1));
}

size_t trace_code_record(unsigned char *to, const uint64_t *record, const uint64_t *before,
			 unsigned int words)
{
	unsigned char *at = to + 4;
	uint32_t mask = 0;

	for (unsigned int i = 0; i < words; i++) {
		uint64_t difference = record[i] - before[i];

		if (difference == 0)
			continue;
		mask |= 1u << i;
		at = put_varint(at, zigzag(difference));
	}
	memcpy(to, &mask, sizeof(mask));
	return (size_t)(at - to);
}

static enum status get_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
	const unsigned char *from = *at;
	uint64_t result = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		if (from == end)
			return ERR_FORMAT;
		result |= (uint64_t)(*from & 0x7f) << shift;
		if (!(*from++ & 0x80)) {
			*at = from;
			*value = result;
			return OK;
		}
	}
	return ERR_FORMAT;
}

enum status trace_decode_record(const unsigned char **at, const unsigned char *end,
				uint64_t *record, const uint64_t *before, unsigned int words)
{
	uint64_t code;
	uint32_t mask;

	if (end - *at < 4)
		return ERR_FORMAT;
	memcpy(&mask, *at, sizeof(mask));
	*at += 4;
	if (words < 32 && mask >> words != 0)
		return ERR_FORMAT;
	for (unsigned int i = 0; i < words; i++) {
		record[i] = before[i];
		if (!(mask & (1u << i)))
			continue;
		if (get_varint(at, end, &code) != OK)
			return ERR_FORMAT;
		record[i] += unzigzag(code);
	}
	return OK;
}

uint64_t trace_block_checksum(const struct trace_block *block, const void *payload)
{
	uint64_t head = (uint64_t)block->type << 48 ^ (uint64_t)block->records << 24;

	return hash_word(hash_bytes(payload, block->payload_bytes), head);
}
