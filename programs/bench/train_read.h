/* Reading what programs/bench/densenet.py wrote about one rank's training. */
#ifndef TRAIN_READ_H
#define TRAIN_READ_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { TRAIN_EPOCHS_MAX = 32 };

struct train_epoch {
	uint64_t begin_ns; /* wall time */
	uint64_t ns;
};

struct train_result {
	int32_t rank;
	int32_t ranks;
	uint64_t parameters;
	uint64_t steps; /* of one epoch */
	char torch[32];
	char nccl[32]; /* "2.28.9" */
	char host[64];
	char gpu[64];
	struct train_epoch epochs[TRAIN_EPOCHS_MAX];
	uint32_t epoch_count;
};

/* ERR_FORMAT: no JSON, a key that is missing or wrong, no epoch; ERR_RANGE: more epochs than there is room for. */
enum status train_read(struct train_result *result, const char *text, size_t length);

#endif
