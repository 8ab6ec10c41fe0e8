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

#include "base/status.h"
#include "op/op_batch.h"
#include "timeline/busy.h"
#include "timeline/links.h"
#include "timeline/meet.h"
#include "timeline/report.h"
#include "timeline/tally.h"
#include "timeline/windows_local.h"

enum { SCAN_VIEWS = 8 + TIMELINE_CUSTOM_MAX, SCAN_CACHE = 256, SCAN_CELLS = 512 };

/* All operations of one process that are alike. */
struct scan_cell {
	uint32_t seat;	/* index into job.seats */
	uint32_t names; /* job-wide */
	uint64_t tag;
	uint8_t size_class;
	uint8_t source;
	uint64_t calls;
	uint64_t bytes;
	uint64_t sum_ns;
	uint64_t min_ns;
	uint64_t max_ns;
	double square_sum;
	uint64_t joined;
	uint64_t joined_ns;
	uint64_t untrusted;
	uint64_t open;
	uint64_t captured;
	uint32_t series; /* over time; UINT32_MAX none */
	double bus_factor;
	uint64_t told_calls; /* that the series has already */
	uint64_t told_bytes;
	uint64_t told_ns;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

/* Found by an operation's words: what to do with the next one like it. */
struct scan_entry {
	uint64_t kind;	/* OP_WORD_KIND */
	uint64_t bytes; /* OP_WORD_BYTES */
	uint64_t tag;	/* 0 unless wanted */
	uint32_t mode;	/* source | is replay << 2, + 8: used */
	uint32_t symbol;
	struct scan_cell *cell;	    /* NULL: not looked at */
	struct meet_cursor *cursor; /* NULL: not joined */
	struct scan_rank *rank;
	const struct job_seat *seat;
	uint32_t meet_kind;
	float size; /* bytes, 0 unknown */
	uint32_t wire_class;
	bool is_sync;
	bool is_send;
};

/* One rank of the process that is being walked. */
struct scan_rank {
	uint32_t rank; /* index into job.ranks */
	bool is_shown;
	struct busy busy;
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
	struct links links;
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

/* One process's cells into the tables. */
enum status scan_flush(struct scan *scan);

/* What cells have had since the last time, into the current stretch of time. */
void scan_tell_series(struct scan *scan);

/* Waiting, once everything is joined, into the tables and ranks. */
enum status scan_add_waiting(struct scan *scan);

/* Which words of a process's records are needed. */
uint32_t scan_words(const struct scan *scan, uint32_t process);

/* The filter's limits on a process's clock, and as wall time for the report. */
void scan_limits(struct scan *scan, uint32_t process);
void scan_find_limits(struct scan *scan);

#endif
