/*
 * Expected bandwidth: measured by nccl-tests (its tables on stdout, or its JSON file) or by
 * `ringside bench`, looked up by function, message size and number of ranks. docs/IMPORT.md has
 * the formats.
 *
 * Sizes are bytes of the message as nccl-tests counts them; bandwidths are in GB/s, 10^9 bytes.
 */
#ifndef EXPECTED_H
#define EXPECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct expected_row {
	uint8_t function; /* enum op_function */
	uint8_t datatype; /* enum op_datatype; 0: unknown */
	bool is_in_place;
	int32_t nranks; /* 0: unknown */
	uint64_t bytes;
	uint64_t time_ns;
	double algbw;
	double busbw;
};

struct expected {
	struct expected_row *rows; /* by function, ranks, bytes once finished */
	size_t count;
	size_t damaged;	       /* rows that could not be read: skipped */
	uint64_t damaged_line; /* the first of them, from 1; 0: none */
	const char *problem;   /* of the first; static */
	bool is_gpu_shared;    /* ranks shared a GPU: measures sockets of one host, not its links */
};

/* How a value was obtained; 0: this size was measured with this number of ranks. */
enum expected_how {
	EXPECTED_BETWEEN = 1u << 0, /* between two measured sizes */
	EXPECTED_ABOVE = 1u << 1,   /* above the largest size: its bandwidth */
	EXPECTED_BELOW = 1u << 2,   /* below the smallest size: its time */
	EXPECTED_OTHER_RANKS =
		1u << 3, /* measured with `nranks` ranks, the nearest to those requested */
};

struct expected_value {
	double time_ns;
	double algbw;
	double busbw;
	int32_t nranks;
	unsigned int how; /* enum expected_how */
};

void expected_init(struct expected *expected);
void expected_release(struct expected *expected);

/*
 * Add the contents of a file. `function` is the test that nccl-tests ran, for files that do not say
 * so (before release 2.17.3): enum op_function, 0: unknown. ERR_UNKNOWN: not such a file;
 * ERR_FORMAT: it is one, but has no usable row; ERR_NO_SPACE, ERR_SYSTEM. Damaged rows are counted
 * and skipped.
 */
enum status expected_add_fd(struct expected *expected, int fd, uint8_t function);
enum status expected_add_memory(struct expected *expected, const char *text, size_t length,
				uint8_t function);

/* After the last add: sort. Of duplicate measurements the fastest is kept. */
void expected_finish(struct expected *expected);

/*
 * Look up the expected value. In place and out of place count alike: the faster one is used.
 * Between sizes, the logarithm of the time is interpolated over the logarithm of the size. False:
 * this function was not measured.
 */
bool expected_find(const struct expected *expected, uint8_t function, uint64_t bytes,
		   int32_t nranks, struct expected_value *value);

/* nccl-tests' name of a program or test ("all_reduce_perf"); 0: unknown. */
uint8_t expected_function(const char *name, size_t length);

#endif
