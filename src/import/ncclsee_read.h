/*
 * What ncclsee leaves behind: ncclsee_YYYYMMDD_HHMMSS/PID.csv, one file per process, with the number of calls,
 * the bytes and the time of each collective by size class. There are no single calls in it, so it is no
 * recording; `ringside bench profilers` alone reads it. docs/PROFILERS.md says what its numbers mean.
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
	NCCLSEE_BYTES_MAX = 1 << 16, /* no file of its kind is a tenth of it */
};

struct ncclsee_row {
	uint8_t function; /* enum op_function as the file names it, see ncclsee_other_label(); 0 unknown */
	uint8_t size_class; /* of count * element size as NCCL shows them: one rank's part for AllGather,
			     * ReduceScatter and AlltoAll, the message otherwise */
	uint64_t calls;
	uint64_t bytes;	 /* what NCCL said would be moved, not the message */
	bool has_time;	 /* false: none, or none that can be one */
	double total_ns; /* host time and kernel time of all calls added up; it does not say which */
};

struct ncclsee_profile {
	int64_t pid; /* from the file's name; -1: it is none */
	struct ncclsee_row rows[NCCLSEE_ROWS_MAX];
	size_t row_count;
	uint64_t groups;     /* ncclGroupEnd()s */
	size_t line;	     /* after a failure: where */
	const char *problem; /* what is wrong; static, NULL nothing */
};

/* Does the text begin as such a file does? */
bool ncclsee_is(const char *text, size_t length);

/* Strict: a wrong header, a class or collective that it does not have, a row twice, or numbers that are
 * none: ERR_FORMAT. No last row ("Group"): ERR_TRUNCATED. profile->line and ->problem say more. */
enum status ncclsee_read_memory(struct ncclsee_profile *profile, const char *text, size_t length);
/* The same for a file, whose name gives the process. Also ERR_SYSTEM (errno), ERR_RANGE: too long. */
enum status ncclsee_read(struct ncclsee_profile *profile, const char *path);

/* 0 to NCCLSEE_CLASSES - 1, and what lies in a class: *from to below *to, UINT64_MAX for the last. */
unsigned int ncclsee_class_of(uint64_t bytes);
void ncclsee_class_bounds(unsigned int size_class, uint64_t *from, uint64_t *to);

/* Its table of names has Reduce and ReduceScatter in another order than its table of counters, so each is
 * written under the other's name. A release may mend that: who knows what was issued can tell. */
uint8_t ncclsee_other_label(uint8_t function);

#endif
