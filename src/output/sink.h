/*
 * Where encoders write: a file descriptor through a buffer, or memory that grows. The first failure
 * sticks, so an encoder writes on and the caller asks once, at the end.
 */
#ifndef SINK_H
#define SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/attributes.h"
#include "common/status.h"

struct sink {
	enum status status; /* of the first write that failed; nothing is written after it */
	int error;	    /* errno of that failure */
	int fd;		    /* -1: memory */
	char *bytes;	    /* what is not written out yet; for memory: everything, terminated */
	size_t used;
	size_t room;
};

/* The caller owns *sink; see sink_release(). The descriptor stays the caller's. */
void sink_init_fd(struct sink *sink, int fd);
void sink_init_memory(struct sink *sink);

/* Where the buffer does not suffice. */
void sink_write_more(struct sink *sink, const void *bytes, size_t length);

/* Inline because an encoder writes a few bytes at a time, millions of times. */
static inline void sink_write(struct sink *sink, const void *bytes, size_t length)
{
	if (LIKELY(length < sink->room - sink->used && sink->status == OK)) {
		memcpy(sink->bytes + sink->used, bytes, length);
		sink->used += length;
		sink->bytes[sink->used] = '\0';
	} else {
		sink_write_more(sink, bytes, length);
	}
}

static inline void sink_byte(struct sink *sink, char byte)
{
	sink_write(sink, &byte, 1);
}

void sink_text(struct sink *sink, const char *text);
/* Decimal digits. By hand: dumps and timelines are mostly integers, and printf takes ten times as long. */
void sink_unsigned(struct sink *sink, uint64_t number);
/* The digits alone, not terminated. Gives back how many. */
enum { SINK_DIGITS = 20 };
size_t sink_digits(char to[static SINK_DIGITS], uint64_t number);
void sink_repeat(struct sink *sink, char byte, size_t times);
void sink_format(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);

/* Hand everything to the descriptor; OK for memory. Gives back the first failure so far. */
enum status sink_flush(struct sink *sink);

/* What a memory sink holds; "" when it is empty or failed. Valid until the next write. */
const char *sink_string(const struct sink *sink);

/* Frees the buffer without flushing it. Fine on one that was never written to. */
void sink_release(struct sink *sink);

/*
 * A gzip stream in front of another sink. Write to `plain`; gzip_sink_pass() compresses what has
 * gathered there, so call it now and then (it does nothing before there is enough) and once at the
 * end with is_last.
 */

struct gzip_sink {
	struct sink plain; /* memory */
	struct sink *to;   /* borrowed */
	void *stream;	   /* zlib's */
};

/* ERR_NO_SPACE (memory); *gzip needs no release then. */
enum status gzip_sink_open(struct gzip_sink *gzip, struct sink *to);

/* A failure sticks in gzip->plain.status as with any sink. */
void gzip_sink_pass(struct gzip_sink *gzip, bool is_last);

/* Frees what it took; what was not passed is lost. Fine twice. */
void gzip_sink_close(struct gzip_sink *gzip);

/*
 * Comma-separated values as RFC 4180 has them: a cell with a comma, a quote or the end of a line in it
 * stands in quotes, a quote is doubled, lines end with CR LF.
 */

/* A cell. "" is a pair of quotes, so that it is not the same as nothing. */
void csv_text(struct sink *sink, const char *text);

void csv_line(struct sink *sink);

/*
 * Protocol buffers, the few bytes of them that are needed: fields appended to a memory sink. A
 * message inside a message is written to a sink of its own first, because its length comes before it.
 */

void wire_varint(struct sink *sink, uint64_t value);

/* A field of its number: integers, booleans and enums; negative ones as 64-bit two's complement. */
void wire_unsigned(struct sink *sink, uint32_t field, uint64_t value);
void wire_signed(struct sink *sink, uint32_t field, int64_t value);
void wire_fixed64(struct sink *sink, uint32_t field, uint64_t value);
void wire_double(struct sink *sink, uint32_t field, double value);
void wire_bytes(struct sink *sink, uint32_t field, const void *bytes, size_t length);
/* Bytes that are no UTF-8 become '?': a reader would refuse the whole trace. */
void wire_text(struct sink *sink, uint32_t field, const char *text);
/* What `message` has gathered, which is empty afterwards. A failure of it is handed on. */
void wire_message(struct sink *sink, uint32_t field, struct sink *message);

/* How a byte is written between tags and in attributes, of HTML and of SVG. */

/* NULL: as it is. */
static inline const char *html_escape(char byte)
{
	switch (byte) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

#endif
