/* Buffers of sinks: full ones are written to a descriptor, or grow. */
#include "output/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
