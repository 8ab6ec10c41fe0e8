/*
 * Reads the output of ncclsee: ncclsee_YYYYMMDD_HHMMSS/PID.csv, one file per process, with the
 * number of calls, the bytes and the time of each collective by size class. It contains no single
 * calls, so it is not a recording; only `ringside bench profilers` reads it. docs/BENCH.md
 * explains its numbers.
 */
#ifndef NCCLSEE_READ_H
#define NCCLSEE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum {
	NCCLSEE_CLASSES = 8,
	NCCLSEE_FUNCTIONS = 7, /* six collectives and those it does not know */
	NCCLSEE_ROWS_MAX = NCCLSEE_CLASSES * NCCLSEE_FUNCTIONS,
	NCCLSEE_BYTES_MAX = 1 << 16, /* ten times larger than any such file */
};

struct ncclsee_row {
	uint8_t function; /* enum op_function as the file names it, see ncclsee_other_label(); 0: unknown */
	uint8_t size_class; /* of count * element size as NCCL shows them: one rank's part for AllGather,
			     * ReduceScatter and AlltoAll, the message otherwise */
	uint64_t calls;
	uint64_t bytes;	 /* what NCCL said would be moved, not the message */
	bool has_time;	 /* false: missing or impossible */
	double total_ns; /* total of host time and kernel time of all calls; it does not say which */
};

struct ncclsee_profile {
	int64_t pid; /* from the file name; -1: none */
	struct ncclsee_row rows[NCCLSEE_ROWS_MAX];
	size_t row_count;
	uint64_t groups;     /* ncclGroupEnd()s */
	size_t line;	     /* after a failure: where */
	const char *problem; /* what is wrong; static; NULL: nothing */
};

/* Does the text begin like such a file? */
bool ncclsee_is(const char *text, size_t length);

/*
 * Strict: ERR_FORMAT for a wrong header, an unknown class or collective, a duplicate row, or
 * invalid numbers. Without the last row ("Group"): ERR_TRUNCATED. See profile->line and ->problem.
 */
enum status ncclsee_read_memory(struct ncclsee_profile *profile, const char *text, size_t length);
/* From a file, whose name gives the process. Also ERR_SYSTEM (errno), ERR_RANGE: too long. */
enum status ncclsee_read(struct ncclsee_profile *profile, const char *path);

/*
 * 0 to NCCLSEE_CLASSES - 1, and the range of a class: *from to below *to, UINT64_MAX for the last.
 */
unsigned int ncclsee_class_of(uint64_t bytes);
void ncclsee_class_bounds(unsigned int size_class, uint64_t *from, uint64_t *to);

/*
 * Its table of names has Reduce and ReduceScatter in a different order than its table of counters,
 * so each is written under the other's name. A release may fix that: it shows if it is known what
 * was issued.
 */
uint8_t ncclsee_other_label(uint8_t function);

#endif
