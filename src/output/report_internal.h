/*
 * Large jobs have hundreds of communicators that are named alike but for a number: "tp-0", "tp-1", ... A
 * family is all of one job and kind whose names differ in numbers only; it is called "tp-*".
 */
#ifndef REPORT_INTERNAL_H
#define REPORT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "output/report.h"
#include "recording/recording.h"

bool report_key_is_known(const struct tally_key *key, unsigned int bit);

struct report_family {
	char name[REPORT_KEY_TEXT]; /* "tp-*"; the name itself where there is only one */
	uint32_t group;
	uint8_t kind; /* enum job_comm_kind */
	size_t comms;
	int32_t least_ranks; /* of one communicator */
	int32_t most_ranks;
	size_t rows;	      /* of report->by_comm_name that it sums up */
	struct tally_row row; /* its histogram is the family's own; key is that of one of them */
};

struct report_families {
	struct report_family *list; /* by time spent, the most first */
	size_t count;
};

/* is_each: every name is a family of its own. ERR_NO_SPACE; then there is nothing to release. */
enum status report_families_make(struct report_families *families,
				 const struct timeline_report *report, bool is_each);
void report_families_release(struct report_families *families);

/* Bit v: something of NCCL's profiler interface version v was recorded. */
unsigned int report_interfaces(const struct recording *recording);

/*
 * What is said of a row, by its key in JSON and its column in CSV. Where its durations come from stands before the
 * figure REPORT_FIGURES_BEFORE_SOURCES: an object in JSON, a column for each in CSV.
 */
enum { REPORT_FIGURES = 26, REPORT_FIGURES_BEFORE_SOURCES = 9 };

struct report_figure {
	const char *name;
	bool is_known;
	bool is_real; /* `real`, else `whole` */
	bool is_json; /* CSV has it not */
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

/* Could calls of this row be compared between ranks? A rank that met nobody says nothing of waiting. */
bool report_knows_waiting(const struct timeline_report *report, const struct tally_row *row);

#endif
