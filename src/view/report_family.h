/*
 * Large jobs have hundreds of communicators that are named alike but for a number: "tp-0", "tp-1", ... A
 * family is all of one job and kind whose names differ in numbers only; it is called "tp-*".
 */
#ifndef REPORT_FAMILY_H
#define REPORT_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "view/report_key.h"

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

/* More names than this, and families are shown instead. */
enum { REPORT_NAMES_SHOWN = 20 };

/* is_each: every name is a family of its own. ERR_NO_SPACE; then there is nothing to release. */
enum status report_families_make(struct report_families *families,
				 const struct timeline_report *report, bool is_each);
void report_families_release(struct report_families *families);

/* "tp-*" of "tp-17": digits become one '*'. */
void report_family_name(char to[static REPORT_KEY_TEXT], const char *name);

#endif
