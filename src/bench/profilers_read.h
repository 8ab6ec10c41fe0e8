/*
 * A comparison, made again from the JSON document that profilers_json_write() wrote: pages and tables can be
 * made again without a GPU. Every byte is distrusted.
 */
#ifndef PROFILERS_READ_H
#define PROFILERS_READ_H

#include <stddef.h>

#include "bench/bench_read.h"
#include "bench/profilers.h"
#include "common/status.h"

enum { PROFILERS_FORMAT_VERSION = 1 };
#define PROFILERS_FORMAT "ringside-profilers"

/*
 * On success the caller owns *comparison; see profilers_comparison_release(). Else it is empty and *problem (may be
 * NULL) says where and why. ERR_UNKNOWN: no document of this format; ERR_VERSION: of a newer version;
 * ERR_FORMAT: damaged; ERR_NO_SPACE.
 */
enum status profilers_read(struct profilers_comparison *comparison, const char *text, size_t length,
			   struct bench_read_problem *problem);

#endif
