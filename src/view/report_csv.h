/*
 * One table of a report as CSV: a line of names, then a line per row. An empty cell is "not known".
 * docs/REPORT.md explains the columns, which are named as the keys of the JSON.
 */
#ifndef REPORT_CSV_H
#define REPORT_CSV_H

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "view/sink.h"

/* The index-th name of a table that can be asked for; NULL past the last. */
const char *report_table_name(size_t index);

/* The tally behind a name; NULL: it has none ("windows", "iterations"), or nobody knows the name. */
const struct tally *report_table(const struct timeline_report *report, const char *name);

enum status report_csv_tally(struct sink *sink, const struct timeline_report *report,
			     const struct tally *tally);
enum status report_csv_windows(struct sink *sink, const struct timeline_report *report);
enum status report_csv_iterations(struct sink *sink, const struct timeline_report *report);

#endif
