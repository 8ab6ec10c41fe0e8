/* The data movement of the fake NCCL's kernels. */
#ifndef FAKE_KERNEL_RUN_H
#define FAKE_KERNEL_RUN_H

#include "tests/fake_gpu/fake_call.h"

/*
 * Runs on the stream's thread while all other ranks do the same. *ready_ns becomes the time when the last rank that
 * this one receives from was ready. -1: the communicator was aborted meanwhile.
 */
int fake_collective_run(const struct fake_call *call, uint64_t *ready_ns);

/* Sends and Recvs of one group, AlltoAlls, Gathers and Scatters, concurrently. */
int fake_pairs_run(const struct fake_call *calls, size_t count, uint64_t *ready_ns);
/* Their duration in the model. */
uint64_t fake_pairs_duration(const struct fake_call *calls, size_t count);

bool fake_is_pairs(uint8_t function);

#endif
