/*
 * A report for people. First the answer, in a screenful of 24 lines by 80 columns; then the tables.
 * docs/REPORT.md explains the columns.
 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "view/report_grid.h"
#include "view/sink.h"

struct report_text_options {
	unsigned int
		width;	 /* of the terminal; 0: tables as wide as they are, sentences 80 columns */
	bool has_blocks; /* the terminal shows UTF-8: small charts of blocks instead of digits */
	bool has_all;	 /* all rows, however many */
};

/* All return the first failure: ERR_NO_SPACE (memory), or the sink's status. */
enum status report_text(struct sink *sink, const struct timeline_report *report,
			const struct report_text_options *options);

/* The first screenful alone. */
enum status report_text_answer(struct sink *sink, const struct timeline_report *report,
			       const struct report_text_options *options);

/* Who, when, how complete; then one table. */
enum status report_text_table(struct sink *sink, const struct timeline_report *report,
			      const struct tally *tally, const struct report_text_options *options);

/* ---- parts ----------------------------------------------------------------------------------- */

enum { REPORT_TEXT_WIDTH = 80, REPORT_TEXT_LINES = 24 };

/* For sentences. */
unsigned int report_text_width(const struct report_text_options *options);

/* Who, when, how complete: two lines or more. */
void report_text_head(struct sink *sink, const struct timeline_report *report,
		      const struct report_text_options *options);

/* The first screenful; *has_all_findings: with all findings in full, so that nothing is to be added. */
enum status report_text_first(struct sink *sink, const struct timeline_report *report,
			      const struct report_text_options *options, bool *has_all_findings);

/* The table of ranks: those that waited least and most, when there are many. left_out as in
 * report_grid.h. */
enum status report_text_ranks(struct sink *sink, const struct timeline_report *report,
			      const struct report_text_options *options,
			      struct report_grid_left_out *left_out);
/* Over time: a small chart per kind of communicator and function, changes in words. */
enum status report_text_windows(struct sink *sink, const struct timeline_report *report,
				const struct report_text_options *options);
enum status report_text_iterations(struct sink *sink, const struct timeline_report *report,
				   const struct report_text_options *options);
void report_text_findings(struct sink *sink, const struct timeline_report *report,
			  const struct report_text_options *options);

/* Columns of a row's figures, and a row of them. is_mixed: name the source of durations. */
void report_figures_columns(struct report_grid *grid, bool is_mixed);
void report_figures_cells(struct report_grid *grid, const struct timeline_report *report,
			  const struct tally_row *row, bool is_mixed);

/* For a column TIMED: how many calls were timed; "-" where all calls of the report were: no column then. */
void report_timed_cell(struct report_grid *grid, const struct timeline_report *report,
		       const struct tally_row *row);
/* For columns TIME and SHARE: totals, marked where they are estimates. */
void report_total_cells(struct report_grid *grid, const struct timeline_report *report,
			const struct tally_row *row);

/* "12.3": GB/s, 10^9 bytes per second; "-" when it is 0, unknown. */
enum { REPORT_BANDWIDTH = 24 };
const char *report_bandwidth(char to[static REPORT_BANDWIDTH], double bytes_per_second);

/* Values as a line of blocks or of digits from 1 to 8, which is the largest; ' ' where a value is not
 * above 0. At most `most` characters: neighbours are averaged. */
void report_chart(struct sink *to, const double *values, size_t count, size_t most,
		  bool has_blocks);

#endif
