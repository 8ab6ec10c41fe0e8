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

/*
 * Reads a baseline; "-" is standard input. Returns 0, or CLI_EXIT_UNKNOWN after an error was reported; then there is
 * nothing to release.
 */
int baseline_file_read(struct baseline *baseline, const char *path);

/*
 * Compares a run with expected bandwidths (src/import/expected.h), measured by nccl-tests.
 *
 * In nccl-tests all ranks call at the same time, so there is no waiting. Therefore transfers of the run are compared:
 * durations without waiting, if ranks could be matched.
 */

enum diff_expected_found {
	DIFF_EXPECTED_NOT = 0, /* not a file of expected bandwidths */
	DIFF_EXPECTED_FOUND = 1,
	DIFF_EXPECTED_BAD = 2, /* unusable; the error was reported */
};

/* Is it a file of expected bandwidths? If found, the caller releases *expected. */
enum diff_expected_found diff_expected_read(struct expected *expected, const char *path);

/* Prints a line on stderr if ranks shared a GPU: a job with one GPU per rank is always faster. */
void diff_expected_warn(const struct expected *expected, const char *path);

/* Fields that the run must be grouped by: at least function, size and communicator. */
uint32_t diff_expected_by(uint32_t by);

/*
 * Like compare_make(). custom[0] of the run was made with diff_expected_by(). is_run_first: the run is A and the
 * expectation B. Rows that were not measured are left out and counted in *left_out. ERR_NO_SPACE.
 */
enum status diff_expected_make(struct compare *compare, const struct timeline_report *run,
			       const struct expected *expected, double threshold, bool is_run_first,
			       size_t *left_out);

#endif
