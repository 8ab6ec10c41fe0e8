/*
 * A run, made again from the JSON document that bench_json_write() wrote. Every byte is distrusted: types,
 * ranges and the number of values are checked, and memory is never more than a small multiple of the
 * text. Keys come in the order in which they are written (docs/BENCH-FORMAT.md); unknown ones are passed
 * over.
 */
#ifndef BENCH_READ_H
#define BENCH_READ_H

#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "common/status.h"

enum { BENCH_READ_TEXT = 200 };

struct bench_read_problem {
	size_t offset; /* where in the text, in bytes from 0 */
	uint64_t line; /* from 1 */
	char text
		[BENCH_READ_TEXT]; /* what is wrong there, with the result's number where it is in one */
};

/*
 * On success the caller owns *run; see bench_run_release(). Else *run is as after bench_run_init() and
 * *problem (may be NULL) says where and why. ERR_UNKNOWN: no document of this format; ERR_VERSION: of a
 * newer version; ERR_FORMAT: damaged; ERR_NO_SPACE.
 */
enum status bench_read(struct bench_run *run, const char *text, size_t length,
		       struct bench_read_problem *problem);

#endif
