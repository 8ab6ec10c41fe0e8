/*
 * A report as JSON: one object, the shape of docs/REPORT.md, whole or in parts. Keys are added in later
 * versions and never change their meaning; what is unknown is null and never 0.
 *
 *	json_init(&json, &sink);
 *	report_json(&json, &report, REPORT_JSON_ALL);
 *	json_line(&json);
 *
 * Nothing is kept; the first failure sticks in the sink.
 */
#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "view/json.h"

enum report_json_flag {
	/* Each row of each table with its histogram of durations. Without it, that of "total" and of the
	 * tables "function" and "size" only. */
	REPORT_JSON_HISTOGRAMS = 1u << 0,
	/* The tables "comm" and "rank", which may have thousands of rows. */
	REPORT_JSON_WIDE = 1u << 1,
	/* The windows' waiting per rank. */
	REPORT_JSON_MATRIX = 1u << 2,
	REPORT_JSON_ALL = REPORT_JSON_HISTOGRAMS | REPORT_JSON_WIDE | REPORT_JSON_MATRIX,
};

/* The whole report, as one value: an object with all keys below and those of docs/REPORT.md. */
void report_json(struct json *json, const struct timeline_report *report, unsigned int flags);

/* Parts. Those named put_ write a key of that name and its value into the object that is open. */
void report_json_put_head(struct json *json, const struct timeline_report *report);
/* The parts of a key, by name. */
void report_json_put_by(struct json *json, uint32_t by);
void report_json_put_completeness(struct json *json, const struct timeline_report *report);
void report_json_put_troubles(struct json *json, const struct recording *recording);
void report_json_put_jobs(struct json *json, const struct timeline_report *report);
void report_json_put_hosts(struct json *json, const struct timeline_report *report);
void report_json_put_ranks(struct json *json, const struct timeline_report *report);
void report_json_put_communicators(struct json *json, const struct timeline_report *report);
void report_json_put_tables(struct json *json, const struct timeline_report *report,
			    unsigned int flags);
/* Kinds of calls of which nothing was timed. */
void report_json_put_not_timed(struct json *json, const struct timeline_report *report);
void report_json_put_waiting(struct json *json, const struct timeline_report *report);
void report_json_put_stragglers(struct json *json, const struct timeline_report *report);
void report_json_put_alignment(struct json *json, const struct timeline_report *report);
void report_json_put_windows(struct json *json, const struct timeline_report *report,
			     unsigned int flags);
void report_json_put_iterations(struct json *json, const struct timeline_report *report);
void report_json_put_findings(struct json *json, const struct timeline_report *report);

/* One table as a value: {"by":[...],"rows":[...],"other":...}. */
void report_json_table(struct json *json, const struct timeline_report *report,
		       const struct tally *tally, bool has_histograms);
/* The keys of a row's figures, into the object that is open. */
void report_json_figures(struct json *json, const struct tally_row *row, bool has_histogram);
/* The same; waiting is null where no rank of the report met another one. */
void report_json_row(struct json *json, const struct timeline_report *report,
		     const struct tally_row *row, bool has_histogram);

/* null where the value is not known. */
void report_json_put_known(struct json *json, const char *key, bool is_known, uint64_t number);
void report_json_put_ratio(struct json *json, const char *key, bool is_known, double number);
void report_json_put_text(struct json *json, const char *key, const char *text); /* "": null */

#endif
