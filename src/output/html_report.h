/*
 * A report as one self-contained HTML page with summary, charts and tables; docs/REPORT.md describes it.
 *
 *	html_report_options(&options);			before the report is made
 *	timeline_report_make(&report, ..., &options);
 *	if (!html_report_has_charts())
 *		print html_report_missing();
 *	html_report_write(&sink, &report);
 */
#ifndef HTML_REPORT_H
#define HTML_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "output/sink.h"

/* Key of the table for the chart of bandwidth by size, see html_report_options(). */
enum {
	HTML_POINTS_BY = TALLY_BY_COMM_NAME | TALLY_BY_KIND | TALLY_BY_FUNCTION | TALLY_BY_SIZE |
			 TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL,
};

/* Was the chart library, which comes from npm, there when this program was built? */
bool html_report_has_charts(void);

/* What is missing and what to run, in one line; NULL if nothing is missing. */
const char *html_report_missing(void);

/* Requests a detailed table for the chart of bandwidth by size. Without it, or if all TIMELINE_CUSTOM_MAX tables are
 * taken, the chart uses the table by function and size. */
void html_report_options(struct timeline_options *options);

/* Text of a page: markup characters are escaped, bytes that are not UTF-8 become U+FFFD. */
void html_write_text(struct sink *sink, const char *text);

/* The head of a page without scripts, in the report's style, up to and including <main>; its end. */
void html_write_start(struct sink *sink, const char *title);
void html_write_end(struct sink *sink);

/*
 * The same report gives the same bytes. Names from users and files stay text. Returns ERR_GONE (nothing is written) without
 * the chart library, ERR_NO_SPACE, or the sink's status.
 */
enum status html_report_write(struct sink *sink, const struct timeline_report *report);

/*
 * The parts of the HTML report, embedded from the source tree by the assembler. The chart library comes from npm; without
 * it, its parts are empty.
 */

struct html_asset {
	const char *text; /* followed by a terminating zero */
	size_t length;
};

enum html_asset_name {
	HTML_ASSET_PAGE = 0,	     /* src/output/html/report.html */
	HTML_ASSET_STYLE = 1,	     /* report.css */
	HTML_ASSET_SCRIPT = 2,	     /* base.js to report.js */
	HTML_ASSET_CHARTS_STYLE = 3, /* uPlot.min.css */
	HTML_ASSET_CHARTS = 4,	     /* uPlot.iife.min.js */
	HTML_ASSET_CHARTS_LICENCE = 5,
	HTML_ASSETS = 6,
};

struct html_asset html_asset(enum html_asset_name name);

#endif
