/* Options that choose operations and the parts of a key: for report, diff and export. */
#ifndef REPORT_FILTER_H
#define REPORT_FILTER_H

#include <stdint.h>

#include "analysis/filter.h"
#include "programs/cli/cli_page.h"
#include "recording/recording.h"

enum report_filter_option {
	REPORT_BY = CLI_LONG_ONLY + 64,
	REPORT_COMM,
	REPORT_OP,
	REPORT_RANK,
	REPORT_SINCE,
	REPORT_UNTIL,
	REPORT_TAG,
};

#define REPORT_OPTION_BY                                                                          \
	{                                                                                         \
		REPORT_BY, "by", "LIST",                                                          \
			"sum up by these, like function,size: comm, name, kind, function, size, " \
			"datatype, algorithm, protocol, rank, host, tag, source, job"             \
	}

#define REPORT_FILTER_OPTIONS                                                                     \
	{ REPORT_COMM, "comm", "COMM",                                                            \
	  "only this communicator, by its name or hash; may be said several times" },             \
		{ REPORT_OP, "op", "NAME", "only these operations, like AllReduce,AllGather" },   \
		{ REPORT_RANK, "rank", "RANKS", "only these ranks, like 0-7,12" },                \
		{ REPORT_SINCE, "since", "TIME",                                                  \
		  "from here on: 30s after the start, -30s before the end, a time of day, "       \
		  "2026-01-31T14:03:10Z" },                                                       \
		{ REPORT_UNTIL, "until", "TIME", "up to here" },                                  \
	{                                                                                         \
		REPORT_TAG, "tag", "NUMBER", "only operations that the user marked with this tag" \
	}

struct report_filter {
	struct filter filter;
	uint32_t by;			       /* enum tally_by bits, 0: none was asked for */
	char *functions[FILTER_FUNCTIONS_MAX]; /* own copies, that the filter borrows */
};

void report_filter_init(struct report_filter *chosen);
void report_filter_release(struct report_filter *chosen);

/* Take one of the options above. 0, or the exit code after an error was told. */
int report_filter_take(struct report_filter *chosen, const struct cli_page *page, int id,
		       const char *value);

/* Is there what was asked for? 0, or the exit code after an error was told. */
int report_filter_check(const struct report_filter *chosen, const struct cli_page *page,
			const struct recording *recording);

#endif
