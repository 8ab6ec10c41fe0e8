/*
 * How ranks of the fake NCCL communicate: shared memory with a pipe of 64 KiB per pair and direction. It has no
 * name in any directory: rank 0's process keeps it open until all have joined, and it is freed with the last of
 * them.
 */
#ifndef FAKE_WIRE_H
#define FAKE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_wire;

enum { FAKE_RANKS_MAX = 64, FAKE_ID_BYTES = 128 };

/* Creates the shared memory and the id by which others find it. -1: the system refused. */
int fake_wire_id(char id[FAKE_ID_BYTES]);

/*
 * Joins all ranks: blocks until the last has arrived. `host` is this rank's host. -1: no such id, or inconsistent
 * ranks.
 */
int fake_wire_open(struct fake_wire **wire, const char id[FAKE_ID_BYTES], int nranks, int rank,
		   uint64_t host);
void fake_wire_close(struct fake_wire *wire);

uint64_t fake_wire_hash(const struct fake_wire *wire); /* the same on all ranks */
int fake_wire_hosts(const struct fake_wire *wire);     /* number of different hosts */

struct fake_transfer {
	int peer;
	bool is_send;
	void *bytes;
	size_t length;
	uint32_t what; /* must be equal on both sides */
	size_t moved;
	bool is_announced;
	bool is_over;
};

/*
 * All of them concurrently; those with one peer in order. Both sides must agree: if not, an error that makes real
 * NCCL hang or crash, one line reports it and the process aborts. *ready_ns becomes the latest of itself and the
 * times when the senders were ready. -1: *is_aborted was set meanwhile.
 */
int fake_wire_move(struct fake_wire *wire, struct fake_transfer *transfers, size_t count,
		   const int *is_aborted, uint64_t *ready_ns);

#endif
