/* Fields of protocol buffers: a tag with number and type, then the value. */
#include "output/protobuf.h"

#include <string.h>

#include "common/text.h"

enum protobuf_type { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_LENGTH = 2 };

void protobuf_varint(struct sink *sink, uint64_t value)
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

static void protobuf_tag(struct sink *sink, uint32_t field, enum protobuf_type type)
{
	protobuf_varint(sink, (uint64_t)field << 3 | type);
}

void protobuf_unsigned(struct sink *sink, uint32_t field, uint64_t value)
{
	protobuf_tag(sink, field, PROTOBUF_VARINT);
	protobuf_varint(sink, value);
}

void protobuf_signed(struct sink *sink, uint32_t field, int64_t value)
{
	protobuf_unsigned(sink, field, (uint64_t)value);
}

void protobuf_fixed64(struct sink *sink, uint32_t field, uint64_t value)
{
	unsigned char bytes[8];

	for (unsigned int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	protobuf_tag(sink, field, PROTOBUF_FIXED64);
	sink_write(sink, bytes, sizeof(bytes));
}

void protobuf_double(struct sink *sink, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	protobuf_fixed64(sink, field, bits);
}

void protobuf_bytes(struct sink *sink, uint32_t field, const void *bytes, size_t length)
{
	protobuf_tag(sink, field, PROTOBUF_LENGTH);
	protobuf_varint(sink, length);
	sink_write(sink, bytes, length);
}

void protobuf_text(struct sink *sink, uint32_t field, const char *text)
{
	size_t length = strlen(text), at = 0;

	protobuf_tag(sink, field, PROTOBUF_LENGTH);
	protobuf_varint(sink, length);
	while (at < length) {
		size_t from = at, character;

		do {
			const unsigned char *here = (const unsigned char *)text + at;

			character = *here < 0x80 ? at < length : utf8_bytes(here, length - at);
			at += character;
		} while (character > 0);
		sink_write(sink, text + from, at - from);
		if (at < length) {
			sink_byte(sink, '?');
			at++;
		}
	}
}

void protobuf_message(struct sink *sink, uint32_t field, struct sink *message)
{
	if (message->status != OK)
		sink_fail(sink, message->status, message->error);
	protobuf_bytes(sink, field, message->bytes, message->used);
	message->used = 0;
}
