/*
 * Everything about a recording in one struct, made in one pass over its operations.
 *
 *	struct timeline_options options = TIMELINE_OPTIONS_INIT;
 *	struct timeline_report report;
 *
 *	if (timeline_report_make(&report, &recording, &filter, &options) == OK) {
 *		...
 *		timeline_report_release(&report);
 *	}
 *
 * The recording is borrowed until release. Nothing here is thread safe.
 */
#ifndef TIMELINE_REPORT_H
#define TIMELINE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/align.h"
#include "analysis/filter.h"
#include "analysis/findings.h"
#include "analysis/iterations.h"
#include "analysis/job.h"
#include "analysis/match.h"
#include "analysis/pace.h"
#include "analysis/straggler.h"
#include "analysis/tally.h"
#include "analysis/windows.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "common/text.h"
#include "recording/recording.h"

enum { TIMELINE_CUSTOM_MAX = 4 };

struct timeline_options {
	/* Tables beside the fixed ones below: enum tally_by bits each. */
	uint32_t custom_by[TIMELINE_CUSTOM_MAX];
	size_t custom_count;
	uint32_t windows;     /* at most; 0: WINDOWS_DEFAULT */
	size_t match_limit;   /* collectives kept at most; 0: MATCH_LIMIT */
	bool without_windows; /* leave out windows and changes */
	bool without_iterations;
	bool without_joins;	     /* leave out waiting, stragglers, alignment */
	timeline_progress *progress; /* NULL: none */
	void *progress_context;
};
#define TIMELINE_OPTIONS_INIT ((struct timeline_options){ .custom_count = 0 })

/* Completeness of the data. */
struct timeline_completeness {
	uint64_t issued;	  /* from the recorders' counters, all processes; what NCCL
				     reported */
	uint64_t read;		  /* operations read, before any filter */
	uint64_t looked_at;	  /* of these: passed the filter */
	uint64_t in_flight;	  /* of read: not finished */
	uint64_t lost_operations; /* counted as lost by the recorders */
	uint64_t lost[LOST_REASONS];
	uint64_t
		overwritten; /* flight mode: recorded, but overwritten; or not part of a snapshot */
	uint64_t refused;    /* invalid records */
	uint64_t damages;    /* damaged blocks of files */
	uint64_t untimed;    /* times that do not match their source */
	size_t processes;
	size_t snapshots;   /* of these, known from snapshots only: the most recent operations,
			       by choice */
	size_t with_counts; /* processes whose counters are known and final */
	size_t ended;	    /* processes by life */
	size_t alive;
	size_t killed;
	size_t unknown_life;
	size_t without_end_mark; /* of these: logs of other tools, which do not mark their end */
	size_t troubles;	 /* entries of recording.troubles, left-out ones too */
	bool keeps_all;		 /* every process should have every operation (trace modes) */
	/* issued == read + lost, nothing damaged, all counters final, no trouble. */
	bool is_complete;
	double share; /* read / (issued + lost without counters), 0..1; 1 when complete */
};

/* One rank of the job. */
struct timeline_rank {
	bool is_shown; /* passes the filter's ranks */
	uint64_t calls;
	uint64_t open;
	uint64_t timed;
	uint64_t sum_ns;   /* of durations; overlapping ones count twice */
	double covered_ns; /* estimated for untimed calls, like the next; see tally.h */
	double covered_wait_ns;
	uint64_t bytes;
	uint64_t wait_ns;
	uint64_t joined_ns;
	uint64_t least_ns; /* see tally.h */
	uint64_t joined;
	/*
	 * Share of time in communication: union of the operations' times over the span from the first to
	 * the last operation of the rank. Without CUPTI the computation meanwhile is unknown, so it is an
	 * upper bound of the communication that compute waits for. If not all calls were timed the union
	 * has only the timed ones, and the share is scaled like the sum of durations.
	 */
	uint64_t busy_ns;
	uint64_t span_ns;
	bool is_busy_known; /* a call was timed, and the span is not 0 */
	double busy_share;  /* 0 if unknown */
	uint64_t first_ns;  /* common time of its first and last activity; 0 unknown */
	uint64_t last_ns;
};

struct timeline_host {
	uint32_t ranks;
	uint32_t busy_ranks; /* for which busy_share is known */
	uint64_t timed;
	uint64_t wait_ns;
	uint64_t joined_ns;
	uint64_t sum_ns;
	double covered_ns; /* see timeline_rank */
	double covered_wait_ns;
	double busy_share; /* mean over busy_ranks */
};

/* A kind of calls without any timed one. */
struct timeline_untimed {
	uint32_t comm; /* index into job.comms */
	uint32_t
		names; /* job-wide: function, datatype, algorithm, protocol from the lowest byte up */
	uint8_t size_class;
	uint64_t calls;
};

/* Per communicator, beside its tally row. */
struct timeline_comm {
	bool is_shown;
	uint64_t complete; /* matches with all ranks */
	uint64_t partial;
	uint64_t wait_ns;
	/* All its synchronizing collectives relative to the timed ones, by their estimated time; 1: all
	 * were timed. Totals of timed ones are multiplied by it. */
	double scale;
	uint64_t mismatches;	 /* operations that disagree with other ranks */
	uint64_t first_mismatch; /* match number of the first, 0 none */
};

struct timeline_report {
	const struct recording *recording;
	struct job job;
	struct timeline_completeness completeness;
	uint64_t start_ns; /* common time: first call (or end) and last end examined; 0 nothing */
	uint64_t end_ns;
	bool has_wall;	   /* common time is wall time; false: no process had an anchor */
	uint64_t since_ns; /* the filter's limits as wall time, 0 none */
	uint64_t until_ns;

	/* Rows are sorted by time spent, those with size classes by function and size. */
	struct tally_row total;	   /* everything examined, in one row */
	struct tally by_comm;	   /* comm */
	struct tally by_comm_name; /* group, comm name, kind: thousands of similar ones in one
				      row */
	struct tally by_function;  /* function */
	struct tally by_size;	   /* function, size */
	struct tally by_algorithm; /* function, algorithm, protocol */
	struct tally by_rank;	   /* rank */
	struct tally by_kind;	   /* comm kind, function */
	struct tally by_source;	   /* source of time */
	struct tally custom[TIMELINE_CUSTOM_MAX];
	size_t custom_count;

	struct timeline_rank *ranks; /* as job.ranks */
	struct timeline_host *hosts; /* as job.hosts */
	struct timeline_comm *comms; /* as job.comms */
	struct timeline_untimed
		*untimed; /* kinds without any timed call, of the ranks shown; most calls first */
	size_t untimed_count;
	double busy_share;	 /* mean over the ranks shown for which it is known */
	size_t busy_ranks;	 /* number of these */
	double gpu_hours;	 /* spans of the ranks shown, summed */
	double gpu_hours_waited; /* total waiting of the ranks shown, estimated: GPU-hours lost */
	double gpu_hours_hung;	 /* lost in a hang at the end, set by callers that ask the doctor */
	struct matches matches;	 /* counts only: its lanes are freed */

	struct paces paces;
	struct align align;
	struct stragglers stragglers;
	struct windows windows;
	struct iterations iterations;
	struct findings findings;
	uint64_t memory_bytes; /* peak memory of the matches and tables, estimated */
};

/*
 * filter and options may be NULL. ERR_NO_SPACE (out of memory), ERR_GONE (progress returned false:
 * cancelled), or the status of recording_each_batch(); nothing to release then.
 */
enum status timeline_report_make(struct timeline_report *report, const struct recording *recording,
				 const struct filter *filter,
				 const struct timeline_options *options);
void timeline_report_release(struct timeline_report *report);

/* A time for display: "14:03:10", followed by `zone`, or "12.3 s after the start" without wall time. */
struct units_text timeline_time(const struct timeline_report *report, uint64_t ns,
				const char *zone);

#endif
