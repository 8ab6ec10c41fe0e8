/* Sentences of a report, for people: the same ones on the screen, in JSON and on the page. */
#ifndef REPORT_WORDS_H
#define REPORT_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline_report.h"
#include "view/sink.h"

enum { REPORT_WORDS = 400 };

/* Bit v: something of NCCL's profiler interface version v was recorded. */
unsigned int report_interfaces(const struct recording *recording);
/* "NCCL 2.28", "NCCL 2.27 and 2.28", "NCCL of unknown release". */
void report_words_nccl(const struct recording *recording, char to[static REPORT_WORDS]);

/* "job 77: 8 of 16 ranks on 2 hosts", "3 jobs (a, b, c): 24 ranks on 4 hosts". */
void report_words_job(const struct timeline_report *report, char to[static REPORT_WORDS]);

/* "10.5 s from 2026-01-01 14:03:10 UTC"; "" when nothing has a time. */
void report_words_span(const struct timeline_report *report, char to[static REPORT_WORDS]);

/* A moment within the report: "14:03:10", with a date when it lasts longer than a day, as
 * "1.23 s after the start" without wall time. */
void report_words_moment(const struct timeline_report *report, uint64_t ns,
			 char to[static REPORT_WORDS]);

/* "complete: all 5,208 operations that NCCL showed were read", or what is missing and why. */
void report_words_completeness(const struct timeline_report *report, struct sink *to);

/* "the GPU's clock", "93 % the GPU's clock, 7 % the host's clock (upper bound)"; of the timed calls. */
void report_words_sources(const struct tally_row *row, char to[static REPORT_WORDS]);
/* Do the durations of this row come from several sources? */
bool report_has_mixed_sources(const struct tally_row *row);

/* "2,000 of 100,000 calls (2.0 %)"; "" where all calls that are over were timed. */
void report_words_timed(const struct tally_row *row, char to[static REPORT_WORDS]);
/* "Broadcast of 1 MiB in world (600 calls), ... and 3 more kinds"; "" where something of each kind was timed. */
void report_words_not_timed(const struct timeline_report *report, char to[static REPORT_WORDS]);
/* Before a total: "" exact, "~" estimated, ">" without the calls of kinds with nothing timed, ">~" both. */
const char *report_estimate_mark(const struct tally_row *row);

/* "ReduceScatter of 64 MiB - 128 MiB on net-only communicators fell 13 % at 14:03:10, ...". */
void report_words_change(const struct timeline_report *report, const struct windows_change *change,
			 char to[static REPORT_WORDS]);

/* "rank 5 on node0001 (arrives late, last in 93 % of 650 collectives)". */
void report_words_straggler(const struct timeline_report *report, const struct straggler *one,
			    char to[static REPORT_WORDS]);

/* Could calls of this row be compared between ranks? A rank that met nobody says nothing of waiting. */
bool report_knows_waiting(const struct timeline_report *report, const struct tally_row *row);

/* "12 %", "0.4 %", "<0.1 %"; "-" unless `of` is positive. */
enum { REPORT_SHARE = 16 };
const char *report_share(char to[static REPORT_SHARE], double part, double of);
/* "0.123", "12.3", "1234", "<0.001". */
const char *report_hours(char to[static REPORT_SHARE], double hours);
/* "2.57 of 82.6 GPU-seconds", "12.3 of 456 GPU-hours". */
void report_words_lost(double hours_lost, double hours, char to[static REPORT_WORDS]);

#endif
