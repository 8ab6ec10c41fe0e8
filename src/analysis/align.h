/*
 * One time base for all processes, from the collectives themselves.
 *
 * A collective that synchronizes its ranks ends at nearly the same moment for all of them. For each pair of
 * processes with many shared collectives the median of the differences of done_ns is the offset between
 * their clocks, and the slope of block medians the drift. Processes without shared collectives are
 * connected through others, along the path with the smallest uncertainty.
 *
 *	common = clock + offset + drift x (clock - middle)
 *
 * Common time is wall time (ns since 1970) of the reference process's host. A process without shared
 * collectives is placed by its own wall clock; source says so.
 */
#ifndef ALIGN_H
#define ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "analysis/match.h"
#include "common/status.h"

enum align_source {
	ALIGN_NOTHING = 0,    /* no shared collective, no anchor: its clock is used as it is */
	ALIGN_ANCHOR = 1,     /* its own wall clock */
	ALIGN_REFERENCE = 2,  /* others are aligned to it; absolute time from its anchors */
	ALIGN_DIRECT = 3,     /* shares collectives with the reference */
	ALIGN_CHAIN = 4,      /* shares collectives with an aligned process */
	ALIGN_SAME_CLOCK = 5, /* same host and boot as an aligned process: the same clock */
};

const char *align_source_name(enum align_source source); /* "anchor", ... */

struct align_process {
	enum align_source source;
	uint32_t via;  /* process that it is aligned to (direct, chain, same clock); else itself */
	uint32_t hops; /* from the reference; 0 for the reference itself */
	uint32_t island;	 /* processes with equal numbers are aligned to each other by
				    shared collectives; islands are placed by the wall clock of
				    one of them */
	uint32_t samples;	 /* shared collectives used */
	int64_t offset_ns;	 /* common minus clock, at middle_ns */
	double drift;		 /* additional ns per ns */
	uint64_t middle_ns;	 /* recorder's clock */
	uint64_t uncertainty_ns; /* 90% of ends are within this of the reference's, summed along
				    the path; for ALIGN_ANCHOR it does not include the unknown
				    difference of wall clocks */
	bool is_uncertain;	 /* placed by wall clock or not at all */
};

struct align {
	struct align_process *processes; /* as recording.processes */
	size_t count;
	uint32_t reference;	       /* process */
	uint32_t island_count;	       /* 1: all processes are aligned by shared collectives */
	uint32_t unaligned;	       /* processes of source ALIGN_ANCHOR or ALIGN_NOTHING */
	uint64_t worst_uncertainty_ns; /* over the aligned processes */
};

/* Return false to cancel. fraction: 0..1. */
typedef bool timeline_progress(double fraction, void *context);

/*
 * Reads all operations once. progress may be NULL. ERR_NO_SPACE, ERR_GONE if progress returned false, or
 * the status of recording_each_batch(); nothing to release then.
 */
enum status align_make(struct align *align, const struct job *job, timeline_progress *progress,
		       void *context);
void align_release(struct align *align);

/* Recorder's clock of a process to common time, 0 stays 0 ("unknown"). */
static inline uint64_t align_ns(const struct align *align, size_t process, uint64_t clock_ns)
{
	const struct align_process *own = &align->processes[process];
	double elapsed = (double)(int64_t)(clock_ns - own->middle_ns);

	if (clock_ns == 0)
		return 0;
	return clock_ns + (uint64_t)own->offset_ns + (uint64_t)(int64_t)(own->drift * elapsed);
}
/* The inverse. */
uint64_t align_clock_ns(const struct align *align, size_t process, uint64_t common_ns);
uint64_t align_uncertainty_ns(const struct align *align, size_t process);

/* From pairs of processes with shared collectives to one time base. */

/* ERR_NO_SPACE; nothing to release then. */
enum status align_solve(struct align *align, const struct job *job, const struct match_edge *edges,
			size_t edge_count);

#endif
