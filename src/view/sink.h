/*
 * Where encoders write: a file descriptor through a buffer, or memory that grows. The first failure
 * sticks, so an encoder writes on and the caller asks once, at the end.
 */
#ifndef SINK_H
#define SINK_H

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
void sink_repeat(struct sink *sink, char byte, size_t times);
void sink_format(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);

/* Hand everything to the descriptor; OK for memory. Gives back the first failure so far. */
enum status sink_flush(struct sink *sink);

/* What a memory sink holds; "" when it is empty or failed. Valid until the next write. */
const char *sink_string(const struct sink *sink);

/* Frees the buffer without flushing it. Fine on one that was never written to. */
void sink_release(struct sink *sink);

#endif
