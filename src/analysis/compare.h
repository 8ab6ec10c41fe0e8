/*
 * Compares two runs: the same keys, how much slower or faster, and whether that is more than noise.
 *
 * Keys are matched by what is displayed (names, size class, kind of communicator), not by indices: the runs
 * have different hashes and may have different numbers of ranks (then busbw is compared, not time).
 */
#ifndef COMPARE_H
#define COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline_report.h"
#include "common/status.h"

struct compare_side {
	bool is_there;
	uint64_t calls;
	uint64_t open; /* of calls: in flight */
	uint64_t timed;
	uint64_t not_timed; /* of calls: of kinds without any timed one */
	uint64_t bytes;
	uint64_t sum_ns; /* of timed */
	double total_ns; /* of all calls, estimated if not all were timed */
	double mean_ns;
	uint64_t median_ns;
	uint64_t p99_ns; /* 0: fewer than TALLY_P99_LEAST timed calls */
	double algbw;	 /* bytes per second, 0 unknown */
	double busbw;
	uint64_t wait_ns;
	double wait_share; /* of the time of all calls; unmatched ones show no waiting */
	uint64_t joined;
};

struct compare_row {
	char key[9][96]; /* one string per part of `by`, in the order of its bits; "" beyond */
	struct compare_side a;
	struct compare_side b;
	/* B relative to A; 0 if a side has no such value. */
	double median_ratio;
	double mean_ratio;
	double busbw_ratio;
	/*
	 * 95% interval of the ratio of geometric mean durations, b / a (Welch's t of mean logarithms).
	 * Samples are counted conservatively: ranks of one collective once, and at most one per iteration;
	 * see docs/STATISTICS.md. has_interval false: fewer than COMPARE_SAMPLES_LEAST on a side.
	 */
	bool has_interval;
	double ratio; /* of geometric means */
	double ratio_low;
	double ratio_high;
	double samples_a; /* effective */
	double samples_b;
	bool is_significant; /* the interval, corrected for the number of rows, excludes 1 */
	bool is_slower;	     /* significant, and the whole interval is above 1 + threshold */
	bool is_faster;	     /* significant, and the whole interval is below 1 / (1 + threshold) */
};

enum { COMPARE_SAMPLES_LEAST = 5 };

struct compare {
	uint32_t by;
	double threshold;
	struct compare_row *rows; /* by |change| x time, the most important first */
	size_t count;
	size_t only_a; /* rows that only one side has */
	size_t only_b;
	size_t not_timed; /* rows of both sides that are not timed on both */
	size_t slower;
	size_t faster;
	struct compare_row total; /* key is empty */
};

/*
 * `by`: enum tally_by bits; both reports were made with custom_by[0] == by. threshold: 0.05 for 5%.
 * Communicators are matched by name, or by shape if unnamed; jobs are not part of a key. ERR_NO_SPACE;
 * ERR_RANGE: a report lacks the table, or more than nine parts.
 */
enum status compare_make(struct compare *compare, const struct timeline_report *a,
			 const struct timeline_report *b, double threshold);
void compare_release(struct compare *compare);

#endif
