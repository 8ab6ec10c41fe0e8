/* From what the PATHs lead to, to a report: with progress, and with trouble told. For report and diff. */
#ifndef REPORT_READ_H
#define REPORT_READ_H

#include <stdbool.h>

#include "analysis/timeline_report.h"
#include "programs/cli/cli_input.h"
#include "programs/cli/cli_page.h"
#include "programs/cli/report_filter.h"

/*
 * What could not be read is told on stderr. is_strict: everything that is not as it should be is, files of
 * others and files that end early too, and any of it is an exit code. Gives back
 * CLI_EXIT_TROUBLE when there was some, and when nothing is recorded there.
 */
int report_read_troubles(const struct cli_input *input, bool is_strict);

/* Make the report, with a line of progress. 0, or the exit code after an error was told; then there is
 * nothing to release. */
int report_read(struct timeline_report *report, const struct cli_input *input,
		const struct report_filter *chosen, const struct timeline_options *options,
		const struct cli_page *page);

/* Records that turned out not to be acceptable, with --strict: CLI_EXIT_TROUBLE, told. */
int report_read_strictly(const struct timeline_report *report);

#endif
