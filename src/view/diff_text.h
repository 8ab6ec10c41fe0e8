/* Two runs side by side, for people. docs/DIFF.md explains the columns. */
#ifndef DIFF_TEXT_H
#define DIFF_TEXT_H

#include <stdbool.h>

#include "analysis/compare.h"
#include "common/status.h"
#include "view/report_text.h"
#include "view/sink.h"

/* What is compared. A report is NULL where its side is a file of expected bandwidths. */
struct diff_side {
	const char *path;
	const struct timeline_report *report;
};

/* ERR_NO_SPACE (memory), or the sink's status. */
enum status diff_text(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
		      const struct compare *compare, const struct report_text_options *options);

/* "slower", "faster": past the threshold. "a bit slower": more than noise, and not surely past it. "same
 * within noise", "too few calls", "only in A". Static. */
const char *diff_verdict(const struct compare_row *row);

#endif
