/*
 * Protocol buffers as text that can be compared: fields by number, "8 = 17", bytes that are fields themselves indented
 * below. False: these are no fields.
 */
#ifndef WIRE_SHOW_H
#define WIRE_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sink.h"

static inline bool wire_show(struct sink *to, const unsigned char *at, const unsigned char *end,
			     unsigned int depth);

static inline uint64_t wire_show_varint(const unsigned char **at, const unsigned char *end)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < end && shift < 64; shift += 7) {
		value |= (uint64_t)(**at & 0x7f) << shift;
		if ((*(*at)++ & 0x80) == 0)
			break;
	}
	return value;
}

static inline void wire_show_bytes(struct sink *to, const unsigned char *at, size_t length,
				   unsigned int depth)
{
	struct sink below;
	bool is_text = true;

	for (size_t i = 0; i < length; i++)
		is_text &= at[i] >= ' ' && at[i] < 127;
	sink_init_memory(&below);
	if (is_text) {
		sink_format(to, " \"%.*s\"\n", (int)length, at);
	} else if (wire_show(&below, at, at + length, depth + 1)) {
		sink_byte(to, '\n');
		sink_write(to, below.bytes, below.used);
	} else {
		for (size_t i = 0; i < length; i++)
			sink_format(to, " %02x", at[i]);
		sink_byte(to, '\n');
	}
	sink_release(&below);
}

static inline bool wire_show(struct sink *to, const unsigned char *at, const unsigned char *end,
			     unsigned int depth)
{
	while (at < end) {
		uint64_t tag = wire_show_varint(&at, end), length = 8;

		if (tag >> 3 == 0 || ((tag & 7) != 0 && (tag & 7) != 1 && (tag & 7) != 2))
			return false;
		sink_repeat(to, ' ', depth);
		sink_unsigned(to, tag >> 3);
		if ((tag & 7) == 0) {
			sink_text(to, " = ");
			sink_unsigned(to, wire_show_varint(&at, end));
			sink_byte(to, '\n');
			continue;
		}
		if ((tag & 7) == 2)
			length = wire_show_varint(&at, end);
		if (length > (size_t)(end - at))
			return false;
		if ((tag & 7) == 2) {
			wire_show_bytes(to, at, length, depth);
		} else {
			for (size_t i = 0; i < length; i++)
				sink_format(to, " %02x", at[i]);
			sink_byte(to, '\n');
		}
		at += length;
	}
	return true;
}

#endif
