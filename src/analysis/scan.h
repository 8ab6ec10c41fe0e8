/*
 * The single pass over all operations that a report is made from. Process by process, batch by batch; what
 * is summed up while a process is read goes to the report's tables when it is done.
 *
 *	batch of columns --> entry (what is known of such an operation: cell, cursor, series)
 *	                       |--> cell      counts, sums, histogram     -> tallies
 *	                       |--> cursor    match with other ranks      -> matches
 *	                       |--> busy      union of times              -> ranks
 *	                       |--> series    over time                   -> windows
 *
 * Internal to src/analysis: all others use timeline_report.h.
 */
#ifndef SCAN_H
#define SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/collect.h"
#include "analysis/filter.h"
#include "analysis/job.h"
#include "analysis/match.h"
#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/op.h"
#include "common/status.h"

enum { SCAN_VIEWS = 8 + TIMELINE_CUSTOM_MAX, SCAN_CACHE = 256, SCAN_CELLS = 512 };

/* All similar operations of one process. */
struct scan_cell {
	/* First what each operation changes. */
	uint64_t calls;
	uint64_t bytes; /* meaningless if they are unknown: scan_cell_bytes() */
	uint64_t sum_ns;
	double square_sum;
	uint64_t min_ns;
	uint64_t max_ns;
	uint64_t apart; /* with a duration, but not matched with other ranks */
	uint64_t apart_ns;
	uint64_t untrusted;
	uint64_t open;
	uint64_t captured;
	uint64_t tag;
	uint32_t seat;	/* index into job.seats */
	uint32_t names; /* job-wide */
	uint8_t size_class;
	uint8_t source;	 /* op_shown_source() */
	bool has_shared; /* OP_FLAG_SHARED_TIME: not in bandwidths */
	uint32_t series; /* over time; UINT32_MAX none */
	double bus_factor;
	uint64_t told_calls; /* already in the series */
	uint64_t told_bytes;
	uint64_t told_ns;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

/*
 * Found by an operation's words: what to do with the next one like it. Calls come in much the same order
 * repeatedly, so the one that came after it last time is tried first.
 */
struct scan_entry {
	uint64_t kind; /* OP_WORD_KIND; 0: not in use */
	uint64_t what; /* of OP_WORD_STATE, and the size class: everything relevant */
	uint64_t tag;  /* 0 unless wanted */
	struct scan_entry *next;
	struct scan_cell *cell; /* NULL: not examined */
	struct match_what matches;
	uint32_t marks;
	uint32_t symbol; /* for iterations */
	struct scan_rank *rank;
};

/* One rank of the current process. */
struct scan_rank {
	uint32_t rank; /* index into job.ranks */
	bool is_shown;
	struct busy busy;
	/* Of calls without a duration: they make the rank's span longer, not busier. UINT64_MAX, 0: none. */
	uint64_t untimed_first_ns;
	uint64_t untimed_last_ns;
};

/* The first operation of a seat that was unfinished at the end. */
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
	struct matches matches;
	struct job_gaps gaps;
	struct links links;
	struct estimate estimate;
	struct tally *views[SCAN_VIEWS];
	size_t view_count;
	uint32_t *name_first; /* per communicator: the first one with the same name and shape */
	struct windows_local *locals; /* per process */
	uint32_t local_room;
	struct scan_open *opens; /* per seat */
	struct iterations_op *iteration_ops;
	size_t iteration_count;
	uint32_t iteration_process; /* UINT32_MAX none */
	bool is_iteration_cut;
	bool has_tags; /* part of a key */
	struct tally_scale scale;
	uint64_t ops_expected;
	uint64_t ops_done;
	uint64_t unflushed; /* operations since cells were flushed to the tables */
	enum status status;

	/* The current process. */
	uint32_t process;
	uint64_t since_ns; /* recorder's clock */
	uint64_t until_ns;
	uint64_t stretch_end_ns; /* local->current_end_ns; UINT64_MAX: no windows wanted */
	struct windows_local *local;
	struct scan_rank *ranks;
	size_t rank_count;
	struct match_cursor **cursors; /* per seat of the process: source and replay */
	struct scan_cell *cells;
	size_t cell_count;
	uint16_t cell_table[2 * SCAN_CELLS];
	struct scan_entry cache[SCAN_CACHE];
	struct scan_entry *latest; /* of the last row */
};

/* report->job is made; report's tallies are set up. Adds to them. */
enum status scan_init(struct scan *scan, struct timeline_report *report,
		      const struct filter *filter, const struct timeline_options *options);
enum status scan_run(struct scan *scan);
void scan_release(struct scan *scan);

/* Adds waiting, once everything is matched, to the tables and ranks. */
enum status scan_add_waiting(struct scan *scan);

/* Adds estimates for untimed calls, once waiting is known, to the tables, ranks and communicators. */
enum status scan_add_estimates(struct scan *scan);

#endif
