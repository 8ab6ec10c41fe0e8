/*
 * What the HTML page draws, as one JSON object; docs/HTML.md lists its keys. Bounded whatever the job's
 * size: a few megabytes at most. Times are nanoseconds after the report's first operation, so that
 * they stay whole numbers in JavaScript.
 */
#ifndef HTML_DATA_H
#define HTML_DATA_H

#include <stdint.h>

#include "analysis/timeline_report.h"
#include "view/json.h"

enum {
	HTML_DATA_VERSION = 2,
	HTML_RANKS_MAX = 4096,	   /* rows of the table of ranks */
	HTML_ROWS_MAX = 2000,	   /* rows of each other table, dots of the chart of sizes */
	HTML_NAMES_MAX = 500,	   /* rows of the table of communicators' names */
	HTML_HISTOGRAMS_MAX = 500, /* of one kind */
	HTML_ITERATIONS_MAX = 2000,
};

/* Key of the table behind the chart of sizes, see html_report_options(). */
enum {
	HTML_POINTS_BY = TALLY_BY_COMM_NAME | TALLY_BY_KIND | TALLY_BY_FUNCTION | TALLY_BY_SIZE |
			 TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL,
};

void html_data_write(struct json *json, const struct timeline_report *report);

/* Its parts, each a key and its value. */
void html_data_tables(struct json *json, const struct timeline_report *report);
void html_data_histograms(struct json *json, const struct timeline_report *report);
void html_data_points(struct json *json, const struct timeline_report *report);
void html_data_windows(struct json *json, const struct timeline_report *report);
void html_data_iterations(struct json *json, const struct timeline_report *report);

/* Six significant digits: charts need no more, and the page stays small. */
void html_data_rounded(struct json *json, double number);
/* Common time as nanoseconds after the report's start; null when it is 0, "unknown". */
void html_data_time(struct json *json, const struct timeline_report *report, const char *key,
		    uint64_t common_ns);

#endif
