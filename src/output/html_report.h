/*
 * What the HTML page draws, as one JSON object; docs/HTML.md lists its keys. Bounded whatever the job's
 * size: a few megabytes at most. Times are nanoseconds after the report's first operation, so that
 * they stay whole numbers in JavaScript.
 */
#ifndef HTML_REPORT_H
#define HTML_REPORT_H

#include <stdbool.h>

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "output/json.h"
#include "output/sink.h"

/* Key of the table behind the chart of sizes, see html_report_options(). */
enum {
	HTML_POINTS_BY = TALLY_BY_COMM_NAME | TALLY_BY_KIND | TALLY_BY_FUNCTION | TALLY_BY_SIZE |
			 TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL,
};

/*
 * A report as one HTML page that opens offline: the answer in words, charts, tables. Everything is in
 * the page: styles, scripts, the charts' library and the data; it fetches nothing.
 *
 *	html_report_options(&options);			before the report is made
 *	timeline_report_make(&report, ..., &options);
 *	if (!html_report_has_charts())
 *		say html_report_missing();
 *	html_report_write(&sink, &report);
 *
 * docs/HTML.md describes the page and its data.
 */

/* Is the charts' library in this program? It comes from npm; without it the program builds, too. */
bool html_report_has_charts(void);

/* What is missing and what to run, in one line; NULL when nothing is missing. Static. */
const char *html_report_missing(void);

/* Ask for the finer table behind the size-against-bandwidth chart. Without it, or where all
 * TIMELINE_CUSTOM_MAX tables are taken, the chart shows functions and sizes only. */
void html_report_options(struct timeline_options *options);

/*
 * The whole page, the same bytes for the same report. What a user or a file put into a name stays
 * text. ERR_GONE (and nothing is written) without charts, ERR_NO_SPACE (memory), else the sink's status.
 */
enum status html_report_write(struct sink *sink, const struct timeline_report *report);

#endif
