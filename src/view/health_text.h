/*
 * Is this job's communication healthy, for people: the verdict in one line, then what was found, bandwidth by
 * kind of link against what was expected, collectives, the slowest pairs, a matrix of all pairs, what
 * was not judged and why. docs/BENCH-HEALTH.md shows one.
 */
#ifndef HEALTH_TEXT_H
#define HEALTH_TEXT_H

#include <stdbool.h>

#include "bench/bench_result.h"
#include "bench/link_health.h"
#include "common/status.h"
#include "output/sink.h"

enum { HEALTH_MATRIX_RANKS = 16, HEALTH_SLOWEST = 5 };

struct health_text_options {
	unsigned int width; /* 0: as wide as it takes */
	bool is_quiet;	    /* the verdict's line alone */
};

/* ERR_NO_SPACE, or the sink's status. */
enum status health_text(struct sink *sink, const struct health *health, const struct bench_run *run,
			const struct health_text_options *options);

/* "rank 2 (node01, GPU 1)"; gives back `to`. */
enum { HEALTH_RANK_WORDS = 128 };
const char *health_rank_words(char to[static HEALTH_RANK_WORDS], const struct bench_run *run,
			      int32_t rank);

#endif
