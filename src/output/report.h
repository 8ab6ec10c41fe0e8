/* A report as text, JSON, CSV and HTML, and the sentences these share; two reports side by side; baselines. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/compare.h"
#include "analysis/straggler.h"
#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "doctor/doctor.h"
#include "output/json.h"
#include "output/sink.h"
#include "recording/recording.h"

/* A report as text, JSON and CSV, and the sentences these share. */

enum { REPORT_KEY_TEXT = 160 };

/* One part of a key, `bit` from 0 to TALLY_BYS - 1: "world", "AllReduce", "1 MiB - 2 MiB", "3", "node0001"; "-" if
 * unknown. */
const char *report_key_text(const struct timeline_report *report, const struct tally_key *key,
			    unsigned int bit, char to[static REPORT_KEY_TEXT]);

/* The title of its column: "COMMUNICATOR", "OPERATION", ... */
const char *report_key_title(unsigned int bit);

/* All parts of `by`, as keys of the open object. */
void report_key_json(struct json *json, const struct timeline_report *report,
		     const struct tally_key *key, uint32_t by);

/* "-", "0 B", "1 MiB - 2 MiB" (the second excluded). */
const char *report_size_text(unsigned int size_class, char to[static REPORT_KEY_TEXT]);

/* "tp-17" to "tp-*": each run of digits becomes '*'. */
void report_family_name(char to[static REPORT_KEY_TEXT], const char *name);

/* ---- sentences: the same in text, JSON and HTML ---------------------------------------------- */

enum { REPORT_WORDS = 400 };

/* "NCCL 2.28", "NCCL 2.27 and 2.28", "NCCL (unknown release)". */
void report_words_nccl(const struct recording *recording, char to[static REPORT_WORDS]);

/* "job 77: 8 of 16 ranks on 2 hosts", "3 jobs (a, b, c): 24 ranks on 4 hosts". */
void report_words_job(const struct timeline_report *report, char to[static REPORT_WORDS]);

/* "10.5 s from 2026-01-01 14:03:10 UTC"; "" if nothing has a time. */
void report_words_span(const struct timeline_report *report, char to[static REPORT_WORDS]);

/* A moment within the report: "14:03:10", with a date if the report spans more than a day, or "1.23 s after the start"
 * without wall time. */
void report_words_moment(const struct timeline_report *report, uint64_t ns,
			 char to[static REPORT_WORDS]);

/* "recording complete (5,208 operations)", or what is missing and why. */
void report_words_completeness(const struct timeline_report *report, struct sink *to);

/* "the GPU clock", "the GPU clock 93%, the host clock (upper bound) 7%"; of the timed calls. */
/* Run time of all ranks shown. */
double report_rank_seconds(const struct timeline_report *report);
/* Of a report without durations: what is known of the pace, "15.1 GB/s in messages, 63 calls per second"; else "". */
/* "11.9 GB/s on the wire (median of 4 links, 11.2 to 12.1)"; "" if no link has a time. */
void report_words_links(const struct timeline_report *report, char to[static REPORT_WORDS]);
void report_words_rates(const struct timeline_report *report, char to[static REPORT_WORDS]);
/* Calls of which only a network span or a bound by the host's clock is known; "" none. */
void report_words_spans(const struct tally_row *row, char to[static REPORT_WORDS]);
void report_words_sources(const struct tally_row *row, char to[static REPORT_WORDS]);
/* Do the durations of this row come from several sources? */
bool report_has_mixed_sources(const struct tally_row *row);

/* "2,000 of 100,000 calls (2.0%)"; "" if all finished calls were timed. */
void report_words_timed(const struct tally_row *row, char to[static REPORT_WORDS]);
/* "Broadcast of 1 MiB in world (600 calls), ... and 3 more kinds"; "" if each kind has timed calls. */
void report_words_not_timed(const struct timeline_report *report, char to[static REPORT_WORDS]);
/* Prefix of a total: "" exact, "~" estimated, ">" without kinds of calls that were never timed, ">~" both. */
const char *report_estimate_mark(const struct tally_row *row);

/* "ReduceScatter of 64 MiB - 128 MiB on net-only communicators: busbw without waiting fell 13% at 14:03:10, ...". */
void report_words_change(const struct timeline_report *report, const struct windows_change *change,
			 char to[static REPORT_WORDS]);

/* "rank 5 on node0001 (3.02 ms late, last in 93% of 650 collectives)". */
void report_words_straggler(const struct timeline_report *report, const struct straggler *one,
			    char to[static REPORT_WORDS]);

/* "12%", "0.4%", "<0.1%"; "-" unless `of` is positive. */
enum { REPORT_SHARE = 16 };
const char *report_share(char to[static REPORT_SHARE], double part, double of);
/* "0.123", "12.3", "1234", "<0.001". */
const char *report_hours(char to[static REPORT_SHARE], double hours);
/* "2.57 of 82.6 GPU-seconds", "12.3 of 456 GPU-hours". */
void report_words_lost(double hours_lost, double hours, char to[static REPORT_WORDS]);

/* ---- text: a summary of 24 lines by 80 columns, then tables; docs/REPORT.md explains the columns ---- */

struct report_text_options {
	unsigned int width; /* of the terminal; 0: tables are not cut, sentences have 80 columns */
	bool has_blocks;    /* the terminal shows UTF-8: charts of blocks instead of digits */
	bool has_all;	    /* all rows, however many */
};

/* These return ERR_NO_SPACE or the sink's status. */
enum status report_text(struct sink *sink, const struct timeline_report *report,
			const struct report_text_options *options);

/* The summary alone. */
enum status report_text_answer(struct sink *sink, const struct timeline_report *report,
			       const struct report_text_options *options);

/* The head, then one table. */
enum status report_text_table(struct sink *sink, const struct timeline_report *report,
			      const struct tally *tally, const struct report_text_options *options);

/* For sentences. */
unsigned int report_text_width(const struct report_text_options *options);

/* Job, time span and completeness. */
void report_text_head(struct sink *sink, const struct timeline_report *report,
		      const struct report_text_options *options);

/* A small chart per kind of communicator and function, then the changes. */
enum status report_text_windows(struct sink *sink, const struct timeline_report *report,
				const struct report_text_options *options);
enum status report_text_iterations(struct sink *sink, const struct timeline_report *report,
				   const struct report_text_options *options);

/* The slowest first. */
enum status report_text_links(struct sink *sink, const struct timeline_report *report,
			      const struct report_text_options *options);

/* "12.3": GB/s, 10^9 bytes per second; "-" if 0, which is unknown. */
enum { REPORT_BANDWIDTH = 24 };
const char *report_bandwidth(char to[static REPORT_BANDWIDTH], double bytes_per_second);

/* Values as a line of blocks, or of digits from 1 to 8 (the largest); ' ' for a value that is not positive. At most
 * `most` characters; neighbours are averaged. */
void report_chart(struct sink *to, const double *values, size_t count, size_t most,
		  bool has_blocks);

/*
 * A report as JSON: one object with the keys of docs/REPORT.md. Later versions add keys and never change the meaning
 * of one; an unknown value is null, never 0.
 *
 *	json_init(&json, &sink);
 *	report_json(&json, &report, REPORT_JSON_WHOLE);
 *	json_line(&json);
 */

enum report_json_form {
	REPORT_JSON_WHOLE,
	/* For the HTML report, a few megabytes at most: without the lists of hosts, ranks, communicators, troubles and
	 * iterations; tables as arrays, the first rows only, histograms for a few. docs/REPORT.md has the differences. */
	REPORT_JSON_PAGE,
};

void report_json(struct json *json, const struct timeline_report *report,
		 enum report_json_form form);

/* Parts. put_X writes the key X and its value into the open object. */
void report_json_put_head(struct json *json, const struct timeline_report *report);
void report_json_put_by(struct json *json, uint32_t by);
void report_json_put_completeness(struct json *json, const struct timeline_report *report);
void report_json_put_troubles(struct json *json, const struct recording *recording);
void report_json_put_jobs(struct json *json, const struct timeline_report *report);
void report_json_put_communicators(struct json *json, const struct timeline_report *report);
void report_json_put_links(struct json *json, const struct timeline_report *report);
void report_json_put_windows(struct json *json, const struct timeline_report *report);

/*
 * One table of a report as CSV: a line of names, then a line per row. An unknown value is an empty cell. Columns are
 * named like the keys of the JSON.
 */

/* The index-th name of a table; NULL past the last. */
const char *report_table_name(size_t index);

/* The tally of that name; NULL if it has none ("windows", "iterations", "links") or the name is unknown. */
const struct tally *report_table(const struct timeline_report *report, const char *name);

enum status report_csv_tally(struct sink *sink, const struct timeline_report *report,
			     const struct tally *tally);
enum status report_csv_windows(struct sink *sink, const struct timeline_report *report);
enum status report_csv_iterations(struct sink *sink, const struct timeline_report *report);
enum status report_csv_links(struct sink *sink, const struct timeline_report *report);

/* What the text, JSON and CSV writers of a report share. */

bool report_key_is_known(const struct tally_key *key, unsigned int bit);

/*
 * Large jobs have hundreds of communicators whose names differ only in numbers: "tp-0", "tp-1", ... A family is all of
 * these in one job and of one kind; its name is "tp-*".
 */
struct report_family {
	char name[REPORT_KEY_TEXT]; /* "tp-*"; the name itself if it has only one member */
	uint32_t group;
	uint8_t kind; /* enum job_comm_kind */
	size_t comms;
	int32_t least_ranks; /* of one communicator */
	int32_t most_ranks;
	size_t rows;	      /* of report->by_comm_name in its total */
	struct tally_row row; /* its histogram is the family's own; key is that of one of them */
};

struct report_families {
	struct report_family *list; /* most time first */
	size_t count;
};

/* is_each: every name is a family of its own. On ERR_NO_SPACE there is nothing to release. */
enum status report_families_make(struct report_families *families,
				 const struct timeline_report *report, bool is_each);
void report_families_release(struct report_families *families);

/* How many communicators a row of a table by name stands for, and the fewest and most ranks of one. */
struct report_alike {
	size_t comms;
	int32_t least;
	int32_t most;
};

struct report_alike report_count_alike(const struct job *job, const struct tally_key *key,
				       uint32_t by);

/* Bit v: NCCL's profiler interface version v was used. */
unsigned int report_interfaces(const struct recording *recording);

/*
 * The figures of a row, by JSON key and CSV column. The sources of durations precede the figure
 * REPORT_FIGURES_BEFORE_SOURCES: an object in JSON, a column each in CSV.
 */
enum { REPORT_FIGURES = 27, REPORT_FIGURES_BEFORE_SOURCES = 9 };

struct report_figure {
	const char *name;
	bool is_known;
	bool is_real; /* `real`, else `whole` */
	bool is_json; /* not in CSV */
	uint64_t whole;
	double real;
};

#define REPORT_WHOLE(key, known, number)                              \
	{                                                             \
		.name = (key), .is_known = (known), .whole = (number) \
	}
#define REPORT_REAL(key, known, number)                                               \
	{                                                                             \
		.name = (key), .is_known = (known), .is_real = true, .real = (number) \
	}

void report_figures(struct report_figure to[static REPORT_FIGURES], const struct tally_row *row,
		    bool knows_waiting);

/* Could calls of this row be compared between ranks? */
bool report_knows_waiting(const struct timeline_report *report, const struct tally_row *row);

/*
 * A report as one self-contained HTML page with summary, charts and tables; docs/REPORT.md describes it.
 *
 *	html_report_options(&options);			before the report is made
 *	timeline_report_make(&report, ..., &options);
 *	if (!html_report_has_charts())
 *		print html_report_missing();
 *	html_report_write(&sink, &report);
 */

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

/* Two runs side by side, as text, HTML and JSON. docs/REPORT.md explains the columns. */

/* `report` is NULL for a file of expected bandwidths. */
struct diff_side {
	const char *path;
	const struct timeline_report *report;
};

/* Returns ERR_NO_SPACE or the sink's status. */
enum status diff_text(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
		      const struct compare *compare, const struct report_text_options *options);

/* A self-contained page without scripts. Returns ERR_NO_SPACE or the sink's status. */
enum status diff_html(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
		      const struct compare *compare, bool has_all);

/* One object, see docs/REPORT.md. An unknown value is null, never 0. */
void diff_json(struct json *json, const struct diff_side *a, const struct diff_side *b,
	       const struct compare *compare);

/* A baseline as text and as JSON, which is the format of its file. */

/* width 0: no limit. Returns ERR_NO_SPACE or the sink's status. */
enum status baseline_text(struct sink *sink, const struct baseline *baseline, unsigned int width);

/* One object, see docs/REPORT.md; baseline_read() reads it back. */
void baseline_json(struct json *json, const struct baseline *baseline);

#endif
