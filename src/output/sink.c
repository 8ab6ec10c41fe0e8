#include "output/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "common/text.h"

enum { SINK_FD_BYTES = 65536, SINK_MEMORY_BYTES = 256 };

void sink_init_fd(struct sink *sink, int fd)
{
	*sink = (struct sink){ .fd = fd };
}

void sink_init_memory(struct sink *sink)
{
	*sink = (struct sink){ .fd = -1 };
}

void sink_fail(struct sink *sink, enum status status, int error)
{
	if (sink->status != OK)
		return;
	sink->status = status;
	sink->error = error;
}

static void sink_drain(struct sink *sink)
{
	size_t at = 0;

	while (at < sink->used) {
		ssize_t wrote = write(sink->fd, sink->bytes + at, sink->used - at);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0) {
			sink_fail(sink, ERR_SYSTEM, errno);
			break;
		}
		at += (size_t)wrote;
	}
	sink->used = 0;
}

/* Room for `length` more bytes and a terminator. */
static int sink_reserve(struct sink *sink, size_t length)
{
	size_t room = sink->room ? sink->room : SINK_MEMORY_BYTES;
	char *bytes;

	while (room - sink->used <= length) {
		if (room > SIZE_MAX / 2) {
			sink_fail(sink, ERR_NO_SPACE, ENOMEM);
			return -1;
		}
		room *= 2;
	}
	if (room == sink->room)
		return 0;
	bytes = realloc(sink->bytes, room);
	if (bytes == NULL) {
		sink_fail(sink, ERR_NO_SPACE, ENOMEM);
		return -1;
	}
	sink->bytes = bytes;
	sink->room = room;
	return 0;
}

static void write_memory(struct sink *sink, const void *bytes, size_t length)
{
	if (sink_reserve(sink, length) == -1)
		return;
	memcpy(sink->bytes + sink->used, bytes, length);
	sink->used += length;
	sink->bytes[sink->used] = '\0';
}

static void write_fd(struct sink *sink, const char *bytes, size_t length)
{
	if (sink->bytes == NULL) {
		sink->bytes = malloc(SINK_FD_BYTES);
		if (sink->bytes == NULL) {
			sink_fail(sink, ERR_NO_SPACE, ENOMEM);
			return;
		}
		sink->room = SINK_FD_BYTES;
	}
	while (length > 0 && sink->status == OK) {
		size_t fits = sink->room - sink->used;
		size_t part = length < fits ? length : fits;

		memcpy(sink->bytes + sink->used, bytes, part);
		sink->used += part;
		bytes += part;
		length -= part;
		if (sink->used == sink->room)
			sink_drain(sink);
	}
}

void sink_write_more(struct sink *sink, const void *bytes, size_t length)
{
	if (sink->status != OK || length == 0)
		return;
	if (sink->fd == -1)
		write_memory(sink, bytes, length);
	else
		write_fd(sink, bytes, length);
}

void sink_text(struct sink *sink, const char *text)
{
	sink_write(sink, text, strlen(text));
}

size_t sink_digits(char to[static SINK_DIGITS], uint64_t number)
{
	char digits[SINK_DIGITS];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	memcpy(to, digits + at, sizeof(digits) - at);
	return sizeof(digits) - at;
}

void sink_unsigned(struct sink *sink, uint64_t number)
{
	char digits[SINK_DIGITS];

	sink_write(sink, digits, sink_digits(digits, number));
}

void sink_repeat(struct sink *sink, char byte, size_t times)
{
	char bytes[64];

	memset(bytes, byte, sizeof(bytes));
	for (; times > sizeof(bytes); times -= sizeof(bytes))
		sink_write(sink, bytes, sizeof(bytes));
	sink_write(sink, bytes, times);
}

void sink_format(struct sink *sink, const char *format, ...)
{
	char small[256];
	va_list values, again;
	char *large;
	int length;

	va_start(values, format);
	va_copy(again, values);
	length = vsnprintf(small, sizeof(small), format, values);
	va_end(values);
	if (length >= 0 && (size_t)length < sizeof(small)) {
		sink_write(sink, small, (size_t)length);
	} else if (length >= 0) {
		large = malloc((size_t)length + 1);
		if (large != NULL) {
			vsnprintf(large, (size_t)length + 1, format, again);
			sink_write(sink, large, (size_t)length);
			free(large);
		} else {
			sink_fail(sink, ERR_NO_SPACE, ENOMEM);
		}
	} else {
		sink_fail(sink, ERR_FORMAT, errno);
	}
	va_end(again);
}

enum status sink_flush(struct sink *sink)
{
	if (sink->fd != -1 && sink->status == OK)
		sink_drain(sink);
	return sink->status;
}

const char *sink_string(const struct sink *sink)
{
	return sink->bytes && sink->status == OK ? sink->bytes : "";
}

void sink_release(struct sink *sink)
{
	free(sink->bytes);
	sink->bytes = NULL;
	sink->used = 0;
	sink->room = 0;
}

enum {
	PASS_BYTES = 256 * 1024, /* collected before compressing: zlib is faster on larger input */
	OUT_BYTES = 64 * 1024,
	GZIP_WINDOW = 15 + 16, /* the largest window, with gzip's header */
	LEVEL = 3,	       /* higher levels take long and gain little for traces */
	MEMORY_LEVEL = 8,
};

enum status gzip_sink_open(struct gzip_sink *gzip, struct sink *to)
{
	z_stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL)
		return ERR_NO_SPACE;
	if (deflateInit2(stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(stream);
		return ERR_NO_SPACE;
	}
	gzip->stream = stream;
	gzip->to = to;
	sink_init_memory(&gzip->plain);
	return OK;
}

/* Until all input is consumed; with Z_FINISH also until all output is written. */
static void deflate_all(struct gzip_sink *gzip, int flush)
{
	z_stream *stream = gzip->stream;
	unsigned char out[OUT_BYTES];
	int result;

	do {
		stream->next_out = out;
		stream->avail_out = sizeof(out);
		result = deflate(stream, flush);
		sink_write(gzip->to, out, sizeof(out) - stream->avail_out);
		if (result == Z_STREAM_ERROR)
			sink_fail(&gzip->plain, ERR_FORMAT, EINVAL);
	} while (gzip->plain.status == OK &&
		 (stream->avail_out == 0 || (flush == Z_FINISH && result != Z_STREAM_END)));
	if (gzip->to->status != OK)
		sink_fail(&gzip->plain, gzip->to->status, gzip->to->error);
}

void gzip_sink_pass(struct gzip_sink *gzip, bool is_last)
{
	struct sink *plain = &gzip->plain;
	z_stream *stream = gzip->stream;
	size_t at = 0;

	if (plain->status != OK || (!is_last && plain->used < PASS_BYTES))
		return;
	while (at < plain->used && plain->status == OK) {
		size_t part = plain->used - at;

		/* zlib has 32-bit lengths. */
		if (part > UINT32_MAX / 2)
			part = UINT32_MAX / 2;
		stream->next_in = (unsigned char *)plain->bytes + at;
		stream->avail_in = (unsigned int)part;
		deflate_all(gzip, Z_NO_FLUSH);
		at += part;
	}
	plain->used = 0;
	stream->next_in = NULL;
	stream->avail_in = 0;
	if (is_last && plain->status == OK)
		deflate_all(gzip, Z_FINISH);
}

void gzip_sink_close(struct gzip_sink *gzip)
{
	if (gzip->stream == NULL)
		return;
	deflateEnd(gzip->stream);
	free(gzip->stream);
	gzip->stream = NULL;
	sink_release(&gzip->plain);
}

void csv_text(struct sink *sink, const char *text)
{
	size_t length = strlen(text);

	if (length > 0 && strcspn(text, ",\"\r\n") == length) {
		sink_write(sink, text, length);
		return;
	}
	sink_byte(sink, '"');
	while (*text != '\0') {
		size_t part = strcspn(text, "\"");

		sink_write(sink, text, part);
		text += part;
		if (*text == '"') {
			sink_write(sink, "\"\"", 2);
			text++;
		}
	}
	sink_byte(sink, '"');
}

void csv_line(struct sink *sink)
{
	sink_write(sink, "\r\n", 2);
}

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

static void wire_tag(struct sink *sink, uint32_t field, enum wire_type type)
{
	wire_varint(sink, (uint64_t)field << 3 | type);
}

void wire_unsigned(struct sink *sink, uint32_t field, uint64_t value)
{
	wire_tag(sink, field, WIRE_VARINT);
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
	wire_tag(sink, field, WIRE_FIXED64);
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
	wire_tag(sink, field, WIRE_LENGTH);
	wire_varint(sink, length);
	sink_write(sink, bytes, length);
}

void wire_text(struct sink *sink, uint32_t field, const char *text)
{
	size_t length = strlen(text), at = 0;

	wire_tag(sink, field, WIRE_LENGTH);
	wire_varint(sink, length);
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

void wire_message(struct sink *sink, uint32_t field, struct sink *message)
{
	if (message->status != OK)
		sink_fail(sink, message->status, message->error);
	wire_bytes(sink, field, message->bytes, message->used);
	message->used = 0;
}
