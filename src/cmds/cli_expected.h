/* Files that a job is compared with: a baseline, expected bandwidths. */
#ifndef CLI_EXPECTED_H
#define CLI_EXPECTED_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/compare.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "doctor/slow.h"
#include "import/expected.h"

/* A baseline. 0, or CLI_EXIT_UNKNOWN after the reason was reported; then there is nothing to release. "-": standard input. */
int baseline_file_read(struct baseline *baseline, const char *path);

/*
 * A run against expected bandwidths (src/import/expected.h): what nccl-tests measured takes the place of
 * one of the two runs.
 *
 * nccl-tests calls from all ranks at once, so nobody waits there. Therefore the run's transfers are compared:
 * durations without waiting, where ranks could be joined.
 */

enum diff_expected_found {
	DIFF_EXPECTED_NOT = 0, /* no such file */
	DIFF_EXPECTED_FOUND = 1,
	DIFF_EXPECTED_BAD = 2, /* one that cannot be used: reported */
};

/* Is it a file of expected bandwidths? When found, the caller releases *expected. */
enum diff_expected_found diff_expected_read(struct expected *expected, const char *path);

/* One line on stderr where ranks shared a GPU: a job on GPUs of its own is always faster than that. */
void diff_expected_warn(const struct expected *expected, const char *path);

/* What such a comparison has to be summed up by: function, size and communicators, at least. */
uint32_t diff_expected_by(uint32_t by);

/*
 * As compare_make(). The run's custom[0] was made with diff_expected_by(). is_run_first: the run is A, and
 * the expectation B. Rows that nobody measured are left out; *left_out counts them. ERR_NO_SPACE.
 */
enum status diff_expected_make(struct compare *compare, const struct timeline_report *run,
			       const struct expected *expected, double threshold, bool is_run_first,
			       size_t *left_out);

#endif
