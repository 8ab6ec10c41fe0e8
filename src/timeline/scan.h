/*
 * The one walk over all operations that a report is made of. Process by process, batch by batch; what is
 * summed up while a process is walked goes to the report's tables when it is done.
 *
 *	batch of columns --> entry (what is known of such an operation: cell, cursor, series)
 *	                       |--> cell      counts, sums, histogram     -> tallies
 *	                       |--> cursor    meeting with other ranks    -> meet
 *	                       |--> busy      union of times              -> ranks
 *	                       |--> series    over time                   -> windows
 *
 * For the room's own use: everybody else takes report.h.
 */
#ifndef SCAN_H
#define SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op.h"
#include "common/status.h"
#include "timeline/busy.h"
#include "timeline/estimate.h"
#include "timeline/filter_rows.h"
#include "timeline/job_gaps.h"
#include "timeline/links.h"
#include "timeline/meet.h"
#include "timeline/report.h"
#include "timeline/tally.h"
#include "timeline/windows_local.h"

enum { SCAN_VIEWS = 8 + TIMELINE_CUSTOM_MAX, SCAN_CACHE = 256, SCAN_CELLS = 512, SCAN_CURSORS = 4 };

/* All operations of one process that are alike. */
struct scan_cell {
	/* First what each operation changes. */
	uint64_t calls;
	uint64_t bytes; /* nonsense when they are unknown: scan_cell_bytes() */
	uint64_t sum_ns;
	double square_sum;
	uint64_t min_ns;
	uint64_t max_ns;
	uint64_t apart; /* with a duration, and not joined with other ranks' */
	uint64_t apart_ns;
	uint64_t untrusted;
	uint64_t open;
	uint64_t captured;
	uint64_t tag;
	uint32_t seat;	/* index into job.seats */
	uint32_t names; /* job-wide */
	uint8_t size_class;
	uint8_t source;
	uint32_t series; /* over time; UINT32_MAX none */
	double bus_factor;
	uint64_t told_calls; /* that the series has already */
	uint64_t told_bytes;
	uint64_t told_ns;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

static inline uint64_t scan_cell_bytes(const struct scan_cell *cell)
{
	return cell->size_class == 0 ? 0 : cell->bytes;
}

/* What is to be done with such an operation. */
enum scan_mark {
	SCAN_TIMED = 1u << 0, /* << source: whence its duration is */
	SCAN_ANY_SOURCE = SCAN_TIMED << 1 | SCAN_TIMED << 2 | SCAN_TIMED << 3,
	SCAN_IGNORED = 1u << 4,	  /* does not pass the filter: cell is NULL */
	SCAN_HIDDEN = 1u << 5,	  /* of a rank that is not shown: joined, and in no table */
	SCAN_CAPTURED = 1u << 6,  /* put into a graph: counted, no more */
	SCAN_UNTIMED = 1u << 7,	  /* without a duration */
	SCAN_UNTRUSTED = 1u << 8, /* OP_STAMPS_UNTRUSTED */
	SCAN_JOINED = 1u << 9,	  /* with other ranks' */
	SCAN_APART = 1u << 10,	  /* could be joined, but for its source or its communicator */
	SCAN_SEND = 1u << 11,
};

/*
 * Found by an operation's words: what to do with the next one like it. Calls come in much the same order again
 * and again, so the one that came after it last time is tried first.
 */
struct scan_entry {
	uint64_t kind; /* OP_WORD_KIND; 0: not in use */
	uint64_t what; /* of OP_WORD_STATE, and the size class: all that makes a difference */
	uint64_t tag;  /* 0 unless wanted */
	struct scan_entry *next;
	struct scan_cell *cell; /* NULL: not looked at */
	struct meet_what meet;
	uint32_t marks;
	uint32_t symbol; /* for iterations */
	struct scan_rank *rank;
};

/* What tells entries apart. */
struct scan_key {
	uint64_t kind;
	uint64_t what;
	uint64_t tag;
	uint64_t bytes; /* of one of them: says the size class */
};

/* One rank of the process that is being walked. */
struct scan_rank {
	uint32_t rank; /* index into job.ranks */
	bool is_shown;
	struct busy busy;
	/* Of calls without a duration: they make the rank's span longer, not busier. UINT64_MAX, 0: none. */
	uint64_t untimed_first_ns;
	uint64_t untimed_last_ns;
};

/* The first operation of a seat that was not over at the end. */
struct scan_open {
	uint64_t count;
	uint64_t match;
	uint64_t signature;
	uint64_t issue_ns;
	uint8_t function;
	uint8_t state;
};

struct scan {
	struct timeline_report *report;
	const struct job *job;
	const struct filter *filter;
	const struct timeline_options *options;
	struct meet meet;
	struct job_gaps gaps;
	struct links links;
	struct estimate estimate;
	struct tally *views[SCAN_VIEWS];
	size_t view_count;
	uint32_t *name_first; /* per communicator: the first one that is named and shaped alike */
	struct windows_local *locals; /* per process */
	uint32_t local_room;
	struct scan_open *opens; /* per seat */
	struct iterations_op *iteration_ops;
	size_t iteration_count;
	size_t iteration_room;
	uint32_t iteration_process; /* UINT32_MAX none */
	bool is_iteration_cut;
	bool has_tags; /* part of a key */
	struct tally_scale scale;
	uint64_t ops_expected;
	uint64_t ops_done;
	uint64_t unflushed; /* operations since cells went to the tables */
	enum status status;

	/* The process that is being walked. */
	uint32_t process;
	uint64_t since_ns; /* recorder's clock */
	uint64_t until_ns;
	uint64_t stretch_end_ns; /* local->current_end_ns; UINT64_MAX: no windows wanted */
	struct windows_local *local;
	struct scan_rank *ranks;
	size_t rank_count;
	struct meet_cursor **cursors; /* per seat of the process: source and replay */
	struct scan_cell *cells;
	size_t cell_count;
	uint16_t cell_table[2 * SCAN_CELLS];
	struct scan_entry cache[SCAN_CACHE];
	struct scan_entry *latest; /* of the last row */
};

/* A series over time: kind of communicator and function. */
static inline uint16_t scan_series_id(enum job_comm_kind kind, uint8_t function)
{
	return (uint16_t)((unsigned int)kind << 8 | function);
}

/* report->job is made; report's tallies are set up. Adds to them. */
enum status scan_init(struct scan *scan, struct timeline_report *report,
		      const struct filter *filter, const struct timeline_options *options);
enum status scan_run(struct scan *scan);
void scan_release(struct scan *scan);

/* What becomes of operations like this one; *entry may be in use for others, and another entry may be after
 * it. Failures are in scan->status. */
void scan_entry_fill(struct scan *scan, const struct scan_key *key, struct scan_entry *entry);
/* Empty the cache: what entries point to is no longer there. */
void scan_entry_forget(struct scan *scan);

/* For recording_each_batch(): a struct scan is the context. */
bool scan_rows_visit(const struct op_batch *batch, enum recording_place place, void *context);

/* One process's cells into the tables. */
enum status scan_flush(struct scan *scan);

/* What cells have had since the last time, into the current stretch of time. */
void scan_tell_series(struct scan *scan);

/* Waiting, once everything is joined, into the tables and ranks. */
enum status scan_add_waiting(struct scan *scan);

/* Estimates for calls that were not timed, once waiting is known, into the tables, ranks and communicators. */
enum status scan_add_estimates(struct scan *scan);

/* Which words of a process's records are needed. */
uint32_t scan_words(const struct scan *scan, uint32_t process);

/* The filter's limits on a process's clock, and as wall time for the report. */
void scan_limits(struct scan *scan, uint32_t process);
void scan_find_limits(struct scan *scan);

#endif
