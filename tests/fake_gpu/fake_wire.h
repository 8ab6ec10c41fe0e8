/*
 * How ranks of the fake NCCL reach each other: memory that they share, with a pipe of 64 KiB for each pair
 * and direction. It has no name in any directory: rank 0's process holds it open until all have come, and
 * it is gone with the last of them.
 */
#ifndef FAKE_WIRE_H
#define FAKE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_wire;

enum { FAKE_RANKS_MAX = 64, FAKE_ID_BYTES = 128 };

/* A new meeting place; what others need to find it. -1: the system refused. */
int fake_wire_id(char id[FAKE_ID_BYTES]);

/* Meet all ranks: blocks until the last has come. `host` is this rank's machine. -1: no such place, or ranks
 * that do not agree. */
int fake_wire_open(struct fake_wire **wire, const char id[FAKE_ID_BYTES], int nranks, int rank,
		   uint64_t host);
void fake_wire_close(struct fake_wire *wire);

uint64_t fake_wire_hash(const struct fake_wire *wire); /* the same on all ranks */
int fake_wire_hosts(const struct fake_wire *wire);     /* how many different machines */

struct fake_transfer {
	int peer;
	bool is_send;
	void *bytes;
	size_t length;
	uint32_t what; /* both sides must say the same */
	size_t moved;
	bool is_announced;
	bool is_over;
};

/* All of them at once; those with one peer in order. Both sides must want the same: if not, which is a
 * mistake that makes real NCCL hang or crash, one line says so and the process aborts. *ready_ns becomes the
 * latest of itself and of when the senders were ready. -1: *is_aborted was set meanwhile. */
int fake_wire_move(struct fake_wire *wire, struct fake_transfer *transfers, size_t count,
		   const int *is_aborted, uint64_t *ready_ns);

#endif
