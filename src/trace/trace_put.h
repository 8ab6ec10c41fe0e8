/* Numbers and bits into bytes, for the encoder. All of these may touch up to eight bytes behind what
 * they give back as the end. */
#ifndef TRACE_PUT_H
#define TRACE_PUT_H

#include <stdint.h>
#include <string.h>

#include "trace/trace_code.h"
#include "trace/trace_layout.h"

static inline unsigned int trace_bits_of(uint64_t value)
{
	return value == 0 ? 0 : 64 - (unsigned int)__builtin_clzll(value);
}

static inline unsigned char *trace_put_varint(unsigned char *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (unsigned char)(value | 0x80);
	*to++ = (unsigned char)value;
	return to;
}

static inline size_t trace_varint_bytes(uint64_t value)
{
	return value == 0 ? 1 : (trace_bits_of(value) + 6) / 7;
}

static inline unsigned char *trace_put_sized(unsigned char *to, uint64_t value, unsigned int bytes)
{
	memcpy(to, &value, sizeof(value));
	return to + bytes;
}

/* Bits that do not fill a byte yet. */
struct trace_bits {
	unsigned char *to;
	uint64_t word;
	unsigned int filled;
};

/* At most TRACE_WIDTH_MAX bits; those above are 0. */
static inline void trace_add_bits(struct trace_bits *bits, uint64_t value, unsigned int width)
{
	bits->word |= value << bits->filled;
	bits->filled += width;
	memcpy(bits->to, &bits->word, sizeof(bits->word));
	bits->to += bits->filled / 8;
	bits->word >>= bits->filled & ~7u;
	bits->filled &= 7;
}

/* The low bits of value - base for each; those of all other bits are given up. */
static inline unsigned char *trace_put_bits(unsigned char *to, const uint64_t *values,
					    uint32_t rows, uint64_t base, unsigned int width)
{
	const uint64_t mask = trace_width_mask(width);
	unsigned char *end = to + trace_packed_bytes(rows, width);
	struct trace_bits bits = { .to = to };
	uint32_t i = 0;

	if (width == 64)
		for (; i < rows; i++)
			to = trace_put_sized(to, values[i] - base, 8);
	if (width == 64 || width == 0)
		return end;
	/* Each step has to wait for the one before: as many at a time as fit. */
	for (; 4 * width <= TRACE_WIDTH_MAX && i + 4 <= rows; i += 4)
		trace_add_bits(&bits,
			       ((values[i] - base) & mask) |
				       ((values[i + 1] - base) & mask) << width |
				       ((values[i + 2] - base) & mask) << 2 * width |
				       ((values[i + 3] - base) & mask) << 3 * width,
			       4 * width);
	for (; 2 * width <= TRACE_WIDTH_MAX && i + 2 <= rows; i += 2)
		trace_add_bits(&bits,
			       ((values[i] - base) & mask) | ((values[i + 1] - base) & mask)
								     << width,
			       2 * width);
	for (; i < rows; i++)
		trace_add_bits(&bits, (values[i] - base) & mask, width);
	return end;
}

/* At most seven bits each. */
static inline unsigned char *trace_put_indexes(unsigned char *to, const uint8_t *indexes,
					       uint32_t rows, unsigned int width)
{
	unsigned char *end = to + trace_packed_bytes(rows, width);
	struct trace_bits bits = { .to = to };
	uint32_t i = 0;

	for (; i + 8 <= rows; i += 8) {
		uint64_t eight = 0;

		for (unsigned int k = 8; k-- > 0;)
			eight = eight << width | indexes[i + k];
		trace_add_bits(&bits, eight, 8 * width);
	}
	for (; i < rows; i++)
		trace_add_bits(&bits, indexes[i], width);
	return end;
}

#endif
