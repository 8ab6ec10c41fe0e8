/*
 * Over time: bytes, bandwidth, waiting; and where something changed.
 *
 * Windows have equal width in common time (align.h). Operations are collected per process in up to
 * WINDOWS_LOCAL time slots of its own clock and mapped to the windows afterwards; a slot that crosses a
 * border is divided in proportion. So the totals over all windows equal those of the tally except for
 * rounding, and single windows are accurate to the width of a slot.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/collect.h"
#include "analysis/job.h"
#include "analysis/match.h"
#include "common/status.h"

struct timeline_report;

enum {
	WINDOWS_LOCAL = 256,   /* time slots per process */
	WINDOWS_DEFAULT = 120, /* windows; fewer with few operations */
	WINDOWS_MOST = 240,
	WINDOWS_ROWS = 512, /* rows of the matrix of waiting */
	WINDOWS_SERIES_MAX = 64,
	WINDOWS_CHANGES_MAX = 64,
};

/* One line of a chart: a kind of communicator and a function, over all ranks examined. */
struct windows_series {
	enum job_comm_kind kind;
	uint8_t function;  /* job_name() */
	double *calls;	   /* [windows.count] each; calls that ended in the window */
	double *bytes;	   /* of the timed calls of known size */
	double *time_ns;   /* durations of those calls */
	double *bus_bytes; /* bytes x factor */
	/* From the matches: the same without waiting. Bytes (x factor) of one rank over the shortest
	 * duration; 0 in both: no match ended here. */
	double *move_bus_bytes;
	double *move_ns;
};

/* busbw with waiting: bus_bytes / time_ns. busbw of the transfer: move_bus_bytes / move_ns. */

/* Waiting of rank (or group of ranks) r in window w: wait_ns[r * count + w]. */
struct windows_matrix {
	uint32_t rows;
	uint32_t ranks_per_row; /* 1 up to WINDOWS_ROWS ranks; then rows are sums over neighbours */
	uint32_t *first_rank;	/* per row: index into job.ranks */
	uint32_t *last_rank;
	double *wait_ns;
	double *joined_ns; /* durations that the waiting is part of */
};

/* A lasting change of a transfer's speed, waiting excluded. */
struct windows_change {
	enum job_comm_kind kind;
	uint8_t function;
	uint8_t size_class;
	uint64_t at_ns;	 /* common time of the first match after the change */
	uint32_t window; /* in which it lies */
	double before;	 /* median busbw of the transfer, bytes per second */
	double after;
	double percent; /* (after - before) / before x 100 */
	uint64_t matches_before;
	uint64_t matches_after;
	uint64_t lost_ns;  /* time lost by it afterwards, over all ranks; 0 if it became faster */
	double confidence; /* as in straggler.h */
	uint32_t comms;	   /* communicators of this kind with this function and size */
	uint32_t comms_changed; /* of these: similar change at about that time */
	bool is_everywhere;	/* on (nearly) all of them: "on all ranks" */
	uint32_t ranks_changed; /* ranks of the changed communicators */
	uint32_t example_comm;	/* one of them: index into job.comms */
};

/* Two changes of the same kind of calls. */
static inline bool windows_is_same_kind(const struct windows_change *a,
					const struct windows_change *b)
{
	return a->kind == b->kind && a->function == b->function && a->size_class == b->size_class;
}

struct windows {
	uint64_t start_ns; /* common time */
	uint64_t end_ns;
	uint64_t width_ns;
	uint32_t count; /* 0: nothing with a time */
	struct windows_series *series;
	size_t series_count;
	size_t series_left_out;
	struct windows_matrix waiting;
	struct windows_change *changes; /* by cost, the most important first */
	size_t change_count;
	size_t changes_left_out; /* beyond WINDOWS_CHANGES_MAX */
};

void windows_release(struct windows *windows);

/* report: job, ranks (common times), align, start_ns and end_ns are set. most: maximum number of windows. */
enum status windows_make(struct windows *windows, const struct timeline_report *report,
			 const struct matches *matches, const struct windows_local *locals,
			 uint32_t most);

#endif
