/*
 * Which bandwidth to expect: measured by nccl-tests (its tables on stdout, or its JSON file) or by
 * `ringside bench`, looked up by function, message size and number of ranks. docs/FOREIGN.md has the
 * formats.
 *
 * Sizes are bytes of the message as nccl-tests counts them; bandwidths are GB/s, 10^9 bytes.
 */
#ifndef EXPECTED_H
#define EXPECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct expected_row {
	uint8_t function; /* enum op_function */
	uint8_t datatype; /* enum op_datatype, 0 unknown */
	bool is_in_place;
	int32_t nranks; /* 0 unknown */
	uint64_t bytes;
	uint64_t time_ns;
	double algbw;
	double busbw;
};

struct expected {
	struct expected_row *rows; /* by function, ranks, bytes once finished */
	size_t count;
	size_t damaged;	       /* rows that could not be read: passed over */
	uint64_t damaged_line; /* the first of them, from 1; 0 none */
	const char *problem;   /* of the first; static */
	bool is_gpu_shared; /* ranks shared a GPU: these are sockets of one machine, not its links */
};

/* How a value was come by; 0: this very size was measured with this number of ranks. */
enum expected_how {
	EXPECTED_BETWEEN = 1u << 0, /* between two measured sizes */
	EXPECTED_ABOVE = 1u << 1,   /* more than the largest: its bandwidth */
	EXPECTED_BELOW = 1u << 2,   /* less than the smallest: its time */
	EXPECTED_OTHER_RANKS =
		1u << 3, /* measured with `nranks` ranks, the nearest to those asked */
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
 * Add what a file says. `function` is what nccl-tests ran where the file does not tell (before its
 * release 2.17.3 it does not): enum op_function, 0 unknown. ERR_UNKNOWN: no such file; ERR_FORMAT: it
 * is one, and has no row that can be used; ERR_NO_SPACE, ERR_SYSTEM. Damaged rows are counted and
 * passed over.
 */
enum status expected_add_fd(struct expected *expected, int fd, uint8_t function);
enum status expected_add_memory(struct expected *expected, const char *text, size_t length,
				uint8_t function);

/* After the last add: sort. Of rows that were measured twice the faster one stays. */
void expected_finish(struct expected *expected);

/*
 * What to expect. In place and out of place count alike: the faster one stands. Between sizes the
 * logarithm of the time is interpolated over the logarithm of the size. False: this function was
 * never measured.
 */
bool expected_find(const struct expected *expected, uint8_t function, uint64_t bytes,
		   int32_t nranks, struct expected_value *value);

/* nccl-tests' name of a program or test ("all_reduce_perf"); 0 unknown. */
uint8_t expected_function(const char *name, size_t length);

#endif
