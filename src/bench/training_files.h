/* Reads the counts that libringside-count.so wrote for one process. */
#ifndef TRAINING_FILES_H
#define TRAINING_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "bench/count_layout.h"
#include "common/status.h"

/*
 * Checks the bytes of a .count file and copies it; strings are terminated. ERR_FORMAT: not such a file, or another
 * version; ERR_TRUNCATED: too short.
 */
enum status count_read(struct count_file *file, const void *bytes, size_t length);

/* enum op_function of an enum count_function; OP_FUNCTION_UNKNOWN for groups. */
unsigned int count_op_function(unsigned int function);

struct count_sum {
	struct count_entry entries[COUNT_FUNCTIONS];
	size_t processes;
	size_t unreadable; /* files in another format */
};

/* Adds up all .count files of a directory. ERR_SYSTEM: cannot list it. */
enum status count_sum_directory(struct count_sum *sum, const char *directory);

/* Reads what src/bench/densenet.py wrote about one rank's training. */

enum { TRAIN_EPOCHS_MAX = 32 };

struct train_epoch {
	uint64_t begin_ns; /* wall time */
	uint64_t ns;
};

struct train_result {
	int32_t rank;
	int32_t ranks;
	uint64_t parameters;
	uint64_t steps; /* per epoch */
	char torch[32];
	char nccl[32]; /* "2.28.9" */
	char host[64];
	char gpu[64];
	struct train_epoch epochs[TRAIN_EPOCHS_MAX];
	uint32_t epoch_count;
};

/* ERR_FORMAT: not JSON, a missing or wrong key, no epoch; ERR_RANGE: too many epochs. */
enum status train_read(struct train_result *result, const char *text, size_t length);

/* src/bench/densenet.py, embedded in the tool; written where a training job runs. */

/* Its bytes, static. */
const char *densenet_script(size_t *length);

#endif
