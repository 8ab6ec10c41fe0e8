#include "view/perfetto_wire.h"

#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };

void wire_varint(struct sink *sink, uint64_t value)
{
	unsigned char bytes[10];
	size_t length = 0;

	while (value >= 0x80) {
		bytes[length++] = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	bytes[length++] = (unsigned char)value;
	sink_write(sink, bytes, length);
}

static void tag(struct sink *sink, uint32_t field, enum wire_type type)
{
	wire_varint(sink, (uint64_t)field << 3 | type);
}

void wire_unsigned(struct sink *sink, uint32_t field, uint64_t value)
{
	tag(sink, field, WIRE_VARINT);
	wire_varint(sink, value);
}

void wire_signed(struct sink *sink, uint32_t field, int64_t value)
{
	wire_unsigned(sink, field, (uint64_t)value);
}

void wire_fixed64(struct sink *sink, uint32_t field, uint64_t value)
{
	unsigned char bytes[8];

	for (unsigned int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	tag(sink, field, WIRE_FIXED64);
	sink_write(sink, bytes, sizeof(bytes));
}

void wire_double(struct sink *sink, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	wire_fixed64(sink, field, bits);
}

void wire_bytes(struct sink *sink, uint32_t field, const void *bytes, size_t length)
{
	tag(sink, field, WIRE_LENGTH);
	wire_varint(sink, length);
	sink_write(sink, bytes, length);
}

/* Bytes of the character at `at`, of which at least one is left; 0 when it is no UTF-8. */
static size_t character_length(const char *at, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = (unsigned char)*at;
	size_t length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	uint32_t point = lead & (0xff >> (length + 1));

	if (length < 2 || length > left || lead > 0xf4)
		return length == 1;
	for (size_t i = 1; i < length; i++) {
		if (((unsigned char)at[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | ((unsigned char)at[i] & 0x3f);
	}
	/* Not longer than it need be, no half of a pair, within the range. */
	if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return 0;
	return length;
}

void wire_text(struct sink *sink, uint32_t field, const char *text)
{
	size_t length = strlen(text), at = 0;

	tag(sink, field, WIRE_LENGTH);
	wire_varint(sink, length);
	while (at < length) {
		size_t from = at, character;

		while (at < length && (character = character_length(text + at, length - at)) > 0)
			at += character;
		sink_write(sink, text + from, at - from);
		if (at < length) {
			sink_byte(sink, '?');
			at++;
		}
	}
}

void wire_message(struct sink *sink, uint32_t field, struct sink *message)
{
	if (message->status != OK && sink->status == OK) {
		sink->status = message->status;
		sink->error = message->error;
	}
	wire_bytes(sink, field, message->bytes, message->used);
	message->used = 0;
}
