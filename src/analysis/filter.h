/* Selects operations. All conditions must hold; an empty filter passes everything. */
#ifndef FILTER_H
#define FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/op.h"
#include "common/status.h"
#include "recording/recording.h"

enum {
	FILTER_RANGES_MAX = 256,
	FILTER_COMMS_MAX = 64,
	FILTER_FUNCTIONS_MAX = 16,
};

enum filter_time_base {
	FILTER_NO_TIME = 0,
	FILTER_FROM_START = 1,	/* ns after the job's first operation or anchor */
	FILTER_FROM_END = 2,	/* ns before its last one */
	FILTER_WALL = 3,	/* ns since 1970, by each host's own wall clock */
	FILTER_TIME_OF_DAY = 4, /* ns after midnight UTC: the last such time within the job */
};

struct filter_time {
	enum filter_time_base base;
	uint64_t ns;
};

struct filter {
	/* Name (exact) or prefix of the hash in hexadecimal, with or without 0x. Borrowed. */
	const char *comms[FILTER_COMMS_MAX];
	size_t comm_count;
	/* Names of functions as NCCL spells them, case-insensitive. Borrowed. */
	const char *functions[FILTER_FUNCTIONS_MAX];
	size_t function_count;
	struct filter_range {
		int64_t first;
		int64_t last;
	} ranks[FILTER_RANGES_MAX];
	size_t range_count;
	struct filter_time since; /* the operation ended at or after it */
	struct filter_time until; /* the operation ended before it */
	bool has_tag;
	uint64_t tag;
};

/* "0-7,12": adds to filter->ranks. ERR_FORMAT, ERR_NO_SPACE (more than FILTER_RANGES_MAX). */
enum status filter_add_ranks(struct filter *filter, const char *text);

/*
 * "30s", "5m", "1.5h", "250ms": from the start. "-30s": before the end. "14:03:10[.5]": UTC, the last
 * such time within the job. "2026-01-31T14:03:10[.5][Z]": UTC. "@1700000000[.5]": seconds since 1970. ERR_FORMAT if
 * it is none of these.
 */
enum status filter_parse_time(struct filter_time *time, const char *text);

/* ERR_FORMAT unless a function with this name is known or interned in this job. */
enum status filter_check_function(const struct job *job, const char *name);

bool filter_has_rank(const struct filter *filter, int64_t rank);
bool filter_has_comm(const struct filter *filter, const struct job_comm *comm);
bool filter_has_function(const struct filter *filter, const struct job *job, uint8_t function);

/*
 * A filter for rows of recording_each_batch(), for callers that write rows. Reports use kinds of operations
 * instead (scan.h), with the same conditions.
 */

/* The last such time of day between these two; if there is none, that of the first day. */
uint64_t filter_time_of_day(uint64_t ns, uint64_t first_ns, uint64_t last_ns);

/* The filter's limits as wall time; 0: none, or unknown because no process has an anchor. */
void filter_wall_limits(const struct filter *filter, const struct recording *recording,
			uint64_t *since_ns, uint64_t *until_ns);
/* The same on a process's recorder's clock; 0 and UINT64_MAX: none. */
void filter_clock_limits(const struct recording_process *process, uint64_t since_wall_ns,
			 uint64_t until_wall_ns, uint64_t *since_ns, uint64_t *until_ns);

/* By its end, else by its call; an operation with neither passes. */
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

/* Does an operation pass, by the number of its communicator, its function, tag and times? */
bool filter_rows_has_op(const struct filter_rows *rows, const struct op_record *op);
/*
 * The same by communicator and rank only. 0 is an unknown communicator, which passes only if the filter names none.
 */
bool filter_rows_has_comm(const struct filter_rows *rows, uint32_t comm);

/*
 * Does a process pass: does it have one of the ranks, is it in one of the communicators, and was it recorded in that
 * time?
 */
bool filter_has_process(const struct filter *filter, const struct job *job, uint32_t process);

/*
 * Stores the indices of rows that pass; returns how many. Needs the words KIND, DONE, ISSUE, and USER_TAG if the
 * filter has a tag.
 */
uint32_t filter_rows_choose(struct filter_rows *rows, const struct op_batch *batch,
			    uint32_t *places);

#endif
