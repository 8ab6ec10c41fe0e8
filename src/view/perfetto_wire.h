/*
 * Protocol buffers, the few bytes of them that are needed: fields appended to a memory sink. A
 * message inside a message is written to a sink of its own first, because its length comes before it.
 */
#ifndef PERFETTO_WIRE_H
#define PERFETTO_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "view/sink.h"

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

#endif
