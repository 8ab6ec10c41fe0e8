/*
 * How long operations take and which algorithm NCCL chooses: a number of hops with a latency, and a number of bytes
 * at a bandwidth. Settings: FAKE_NCCL_LATENCY_US (5), FAKE_NCCL_GBPS (10), FAKE_NCCL_SLOW=2-3:10,... (transfers
 * between ranks 2 and 3 take ten times as long), NCCL_ALGO and NCCL_PROTO.
 */
#ifndef FAKE_MODEL_H
#define FAKE_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_SLOW_PAIRS = 8 };

struct fake_slow_pair {
	int one;
	int other;
	double factor;
};

struct fake_model {
	int nranks;
	double latency_ns;
	double bytes_per_ns;
	unsigned int algorithms; /* bit per enum op_algorithm that is allowed */
	unsigned int protocols;
	struct fake_slow_pair slow[FAKE_SLOW_PAIRS];
	size_t slow_count;
};

struct fake_choice {
	uint8_t algorithm; /* enum op_algorithm */
	uint8_t protocol;
	uint64_t duration_ns;
};

/* Reads the environment, as NCCL does for each communicator. 0; -1 for an unknown algorithm or protocol. */
int fake_model_init(struct fake_model *model, int nranks);

/*
 * The fastest allowed one, for a collective with this message size as nccl-tests counts it. -1: none of the allowed
 * ones supports it.
 */
int fake_model_choose(const struct fake_model *model, uint8_t function, uint64_t bytes,
		      struct fake_choice *choice);

/* A Send or Recv between two ranks. */
uint64_t fake_model_transfer(const struct fake_model *model, int one, int other, uint64_t bytes);

#endif
