/*
 * Output of encoders: a buffered file descriptor, or memory that grows. A sink keeps its first failure, so the
 * caller can check once at the end.
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
	enum status status; /* of the first failed write; nothing is written after it */
	int error;	    /* errno of that failure */
	int fd;		    /* -1: memory */
	char *bytes;	    /* not yet written; for memory: all bytes, terminated */
	size_t used;
	size_t room;
};

/* The caller owns *sink (see sink_release()) and the descriptor. */
void sink_init_fd(struct sink *sink, int fd);
void sink_init_memory(struct sink *sink);

/* Keeps a failure, unless there was one before. */
void sink_fail(struct sink *sink, enum status status, int error);

/* For writes that do not fit the buffer. */
void sink_write_more(struct sink *sink, const void *bytes, size_t length);

/* Inline, because encoders write a few bytes at a time, millions of times. */
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
/* Decimal digits. Hand-written, because printf takes 10x longer and dumps are mostly integers. */
void sink_unsigned(struct sink *sink, uint64_t number);
/* Without terminator. Returns the number of digits. */
enum { SINK_DIGITS = 20 };
size_t sink_digits(char to[static SINK_DIGITS], uint64_t number);
void sink_repeat(struct sink *sink, char byte, size_t times);
void sink_format(struct sink *sink, const char *format, ...) PRINTF_LIKE(2, 3);

/* Writes everything to the descriptor; OK for memory. Returns the first failure so far. */
enum status sink_flush(struct sink *sink);

/* Content of a memory sink; "" if empty or failed. Valid until the next write. */
const char *sink_string(const struct sink *sink);

/* Frees the buffer without flushing. */
void sink_release(struct sink *sink);

#endif
