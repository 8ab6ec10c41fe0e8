/* How large an operation's message is, and classes of sizes. */
#ifndef OP_BYTES_H
#define OP_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the message as nccl-tests counts them: the whole buffer for AllGather, ReduceScatter,
 * AlltoAll, Gather and Scatter (nranks times the per-rank count), the count itself otherwise.
 * OP_BYTES_UNKNOWN where the element's size or a needed nranks (0) is unknown, or past 64 bits.
 */
uint64_t op_message_bytes(uint8_t function, uint64_t count, unsigned int element_bytes, int nranks);

/* 0 unknown, 1 for 0 bytes, else 2 + floor(log2(bytes)). */
unsigned int op_size_class(uint64_t bytes);
/* The bytes that fall into a class, both included; false for 0, unknown, and for what is no class. */
bool op_size_range(unsigned int size_class, uint64_t *least, uint64_t *most);
/* What a class begins with: "32 MiB"; "unknown". */
void op_size_text(char *to, size_t size, unsigned int size_class);

/* Does every rank of the communicator issue this one, so that ranks can be joined by its number? */
int op_is_collective(uint8_t function);

#endif
