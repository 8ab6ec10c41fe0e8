/*
 * Who sends how much from where, and what must lie where afterwards: counts and offsets of every function, as
 * nccl-tests lays its buffers out. Pure; in elements.
 */
#ifndef BENCH_LAYOUT_H
#define BENCH_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/bench_result.h"

struct bench_layout {
	uint64_t count;	     /* the one that NCCL is called with, and nccl-tests' column */
	uint64_t bytes;	     /* of the message */
	uint64_t send_count; /* in this rank's send buffer */
	uint64_t recv_count;
	uint64_t send_at; /* in place: where they begin in the one buffer; else 0 */
	uint64_t recv_at;
	uint64_t whole_count; /* in place: of the one buffer */
};

/* A stretch of a buffer, and where in its table (bench_pattern.h) it begins. */
struct layout_part {
	uint64_t at;
	uint64_t count;
	uint32_t phase;
};

bool layout_is_reduction(uint8_t function);
bool layout_is_rooted(uint8_t function);
/* Has it a form with one buffer? AlltoAll and Send with Recv have none. */
bool layout_has_in_place(uint8_t function);
/* Is the result still right after it was made again on its own result? */
bool layout_is_repeatable(const struct bench_cell *cell);

/* For cell->bytes, rounded down: parts of ranks to 16 bytes as nccl-tests does, or to whole elements
 * where that would leave nothing. false: nothing is left, or no such function or type. */
bool layout_of(struct bench_layout *layout, const struct bench_cell *cell, int rank);

/* What this rank sends; false: nothing that anybody reads. `at` is from the start of the buffer it lies in. */
bool layout_input(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		  struct layout_part *part);
/* What this rank must have received: parts from index 0 until false. A rank that is not promised
 * anything (not the root of a Reduce) has none. */
bool layout_expected(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		     int index, struct layout_part *part);

/* OP_SEND_RECV: whom a rank sends to and receives from; -1: nobody. */
int layout_send_peer(const struct bench_cell *cell, int rank);
int layout_recv_peer(const struct bench_cell *cell, int rank);

#endif
