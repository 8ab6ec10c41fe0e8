/* What the text, JSON and CSV writers of a report share. */
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
enum { REPORT_FIGURES = 26, REPORT_FIGURES_BEFORE_SOURCES = 9 };

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

#endif
