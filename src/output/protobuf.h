/*
 * A minimal writer of protocol buffers: fields are appended to a memory sink. A nested message is written to its
 * own sink first, because its length precedes it.
 */
#ifndef PROTOBUF_H
#define PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "output/sink.h"

void protobuf_varint(struct sink *sink, uint64_t value);

/* Integers, booleans and enums; negative ones as 64-bit two's complement. */
void protobuf_unsigned(struct sink *sink, uint32_t field, uint64_t value);
void protobuf_signed(struct sink *sink, uint32_t field, int64_t value);
void protobuf_fixed64(struct sink *sink, uint32_t field, uint64_t value);
void protobuf_double(struct sink *sink, uint32_t field, double value);
void protobuf_bytes(struct sink *sink, uint32_t field, const void *bytes, size_t length);
/* Bytes that are not UTF-8 become '?': readers would reject the whole trace. */
void protobuf_text(struct sink *sink, uint32_t field, const char *text);
/* Appends the content of `message`, which is empty afterwards, and takes over its failure. */
void protobuf_message(struct sink *sink, uint32_t field, struct sink *message);

#endif
