/*
 * How far long work has come: one line on stderr that rewrites itself, when that is a terminal and
 * the work takes more than a second. Nothing at all otherwise.
 *
 *	  export  43 %  12,345,678 of 28,000,000 operations, 7 s left
 *
 *	cli_progress_start(&progress, "export", "operations", total);
 *	cli_progress_at(&progress, done);     cheap: after every few hundred of them
 *	cli_progress_hide(&progress);         before something else is written to stderr
 *	cli_progress_end(&progress);          takes the line away
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
	const char *what; /* both borrowed */
	const char *unit;
	uint64_t total; /* 0: unknown */
	uint64_t done;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t next_ns;  /* when to write the line again */
	int fd;
	bool is_on;    /* somebody may be looking */
	bool is_shown; /* there is a line to take away */
};

void cli_progress_start(struct cli_progress *progress, const char *what, const char *unit,
			uint64_t total);
void cli_progress_at(struct cli_progress *progress, uint64_t done);
void cli_progress_hide(struct cli_progress *progress);
void cli_progress_end(struct cli_progress *progress);

/* The same by a part of the total; `progress` is a struct cli_progress. For who is told fractions. Always true. */
bool cli_progress_fraction(double fraction, void *progress);

/* The same as cli_progress_at() at a given time: for tests. */
void cli_progress_at_time(struct cli_progress *progress, uint64_t done, uint64_t now_ns);

#endif
