/*
 * A filter against rows as recording_each_batch() gives them: for who writes rows. Reports look at kinds of
 * operations instead (scan.h), by the same conditions.
 */
#ifndef FILTER_ROWS_H
#define FILTER_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/op.h"
#include "recording/recording.h"
#include "timeline/filter.h"
#include "timeline/job.h"

/* The filter's limits as wall time; 0: none, or it cannot be told because no process has an anchor. */
void filter_wall_limits(const struct filter *filter, const struct recording *recording,
			uint64_t *since_ns, uint64_t *until_ns);
/* The same on a process's recorder's clock; 0 and UINT64_MAX: none. */
void filter_clock_limits(const struct recording_process *process, uint64_t since_wall_ns,
			 uint64_t until_wall_ns, uint64_t *since_ns, uint64_t *until_ns);

/* By its end; by its issue where that is not known; with neither it passes. */
static inline bool filter_is_within(uint64_t since_ns, uint64_t until_ns, uint64_t done_ns,
				    uint64_t issue_ns)
{
	uint64_t ns = done_ns ? done_ns : issue_ns;

	return (ns >= since_ns && ns < until_ns) || ns == 0;
}

bool filter_is_empty(const struct filter *filter);

/* One process's rows. */
struct filter_rows {
	const struct filter *filter;
	const struct job *job;
	uint32_t process;
	uint64_t since_ns; /* recorder's clock */
	uint64_t until_ns;
	uint64_t last_kind; /* OP_WORD_KIND; 0 none */
	bool is_last_passing;
};

/* filter and job are borrowed while it is used. False: none of the process's ranks passes. */
bool filter_rows_start(struct filter_rows *rows, const struct filter *filter, const struct job *job,
		       uint32_t process);

/* Which rows pass: their places, as many as come back. Needs the words KIND, DONE, ISSUE, and USER_TAG
 * where the filter has a tag. */
uint32_t filter_rows_choose(struct filter_rows *rows, const struct op_batch *batch,
			    uint32_t *places);

#endif
