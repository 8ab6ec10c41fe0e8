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
 * The recording is borrowed until release. Nothing here is thread safe. The parts of the report come first.
 */
#ifndef TIMELINE_REPORT_H
#define TIMELINE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/align.h"
#include "analysis/collect.h"
#include "analysis/filter.h"
#include "analysis/job.h"
#include "analysis/wires.h"
#include "analysis/match.h"
#include "analysis/stats.h"
#include "analysis/straggler.h"
#include "analysis/tally.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "common/text.h"
#include "recording/recording.h"

/*
 * Over time: bytes, bandwidth, waiting; and where something changed.
 *
 * Windows have equal width in common time (align.h). Operations are collected per process in up to
 * WINDOWS_LOCAL time slots of its own clock and mapped to the windows afterwards; a slot that crosses a
 * border is divided in proportion. So the totals over all windows equal those of the tally except for
 * rounding, and single windows are accurate to the width of a slot.
 */

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
	bool is_wire;	/* there are no durations: transfers are on the wire longer, or less long */
	uint64_t at_ns; /* common time of the first match after the change */
	uint32_t window; /* in which it lies */
	double before; /* median busbw of the transfer, bytes per second; is_wire: transfers per second, one at a time */
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
	return a->kind == b->kind && a->function == b->function && a->size_class == b->size_class &&
	       a->is_wire == b->is_wire;
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

/*
 * How long transfers take without waiting, over the course of a recording: what two runs are compared by.
 *
 * The shortest duration of a shared collective is its transfer, see match.h. Calls that are close in time
 * are alike, so they are not independent samples: a recording is divided into PACE_BLOCKS parts of equally
 * many collectives, and the spread between the parts says how well the mean is known. Communicators of one
 * row share their parts: what slows all of them at the same time is one sample.
 */

enum { PACE_BLOCKS = 32, PACE_BLOCKS_LEAST = 5 };

/* Logarithms of times in ns, by part of the recording. */
struct pace_series {
	double count[PACE_BLOCKS];
	double log_sum[PACE_BLOCKS];
};

/* One kind of collective of one communicator. */
struct pace_cell {
	struct tally_key key; /* no rank, host or group */
	uint64_t moves;	      /* collectives of at least two ranks */
	double least_ns;      /* sum of their shortest durations */
	double bytes;	      /* of their messages, those of known size */
	uint64_t sized;	      /* number of these */
	struct pace_series series;
};

/* The time on the wire per transfer: of a rank's part in the rings of the largest messages, or of its Sends
 * to one receiver. */
struct pace_sender {
	uint32_t comm; /* index into job.comms */
	uint32_t seat; /* index into job.seats */
	int32_t to;    /* receiver's rank in the communicator; -1: to its neighbours in rings */
	uint8_t size_class; /* 0: Sends of any size */
	double transfers;
	double wire_ns; /* total */
	struct pace_series series;
};

struct paces {
	struct pace_cell
		*cells; /* by communicator, function, size class, algorithm, protocol, ... */
	size_t cell_count;
	struct pace_sender *senders; /* by communicator, seat, receiver */
	size_t sender_count;
	/* Of all matched collectives, by part of the recording: waiting of all their ranks, and how many
	 * ranks' calls that is. */
	double wait_ns[PACE_BLOCKS];
	double wait_calls[PACE_BLOCKS];
};

/* After match_finish(). ERR_NO_SPACE: nothing to release. */
enum status paces_make(struct paces *paces, const struct matches *matches,
		       const struct links *links);
void paces_release(struct paces *paces);

void pace_add(struct pace_series *to, const struct pace_series *from);
/* The mean logarithm, and its error; count: independent parts. Fewer than PACE_BLOCKS_LEAST: unknown. */
struct stats_sample pace_mean(const struct pace_series *series);
/* The same without the parts in which something else happened: what is typical of the recording. */
struct stats_sample pace_typical(const struct pace_series *series);

/* All sources of time of one kind of collective together, as tables by BASELINE_BY have them; false: none. */
bool pace_find(const struct paces *paces, const struct tally_key *key, struct pace_series *series);

/*
 * Exposed communication: time in which a rank's GPU ran a kernel of NCCL and no other kernel, so the job waited for it.
 * docs/STATISTICS.md has the definition and its bounds.
 *
 * What ran on the GPU is known only from a profiler of the program (torch.profiler, through CUPTI). It is kept here per
 * rank, on the common time of all ranks:
 *
 *	exposed_add_compute(&activity, start_ns, end_ns);           every kernel that is not NCCL's
 *	exposed_add_comm(&activity, called_ns, start_ns, end_ns);   NCCL's, and when the host launched it
 *	exposed_finish(&activity);
 *	time = exposed_measure(&activity, from_ns, to_ns);
 *
 * Adding returns false if there is no memory. Nothing may be added after exposed_finish().
 */

struct exposed_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

struct exposed_kernel {
	uint64_t called_ns;
	struct exposed_span span;
};

struct exposed_activity {
	struct exposed_span *compute; /* after exposed_finish(): disjoint, ascending */
	size_t compute_count;
	struct exposed_kernel *comms; /* after exposed_finish(): by called_ns */
	size_t comm_count;
	/* Complete between these: what the host called outside of them is not in the profile. 0: nothing. */
	uint64_t first_ns;
	uint64_t last_ns;
};

bool exposed_add_compute(struct exposed_activity *activity, uint64_t start_ns, uint64_t end_ns);
bool exposed_add_comm(struct exposed_activity *activity, uint64_t called_ns, uint64_t start_ns,
		      uint64_t end_ns);
void exposed_finish(struct exposed_activity *activity);
void exposed_release(struct exposed_activity *activity);

struct exposed_time {
	uint64_t kernels;
	uint64_t comm_ns;    /* union of the kernels */
	uint64_t exposed_ns; /* of it: no other kernel ran */
};

/* The kernels of NCCL that were launched in [from, to), whenever they ran. ERR_NO_SPACE. */
enum status exposed_measure(const struct exposed_activity *activity, uint64_t from_ns,
			    uint64_t to_ns, struct exposed_time *time);

/* Findings, most serious first: numbers and a sentence. */

struct scan;

enum findings_severity {
	FINDINGS_NOTE = 0,    /* worth knowing */
	FINDINGS_WARNING = 1, /* costs time, or limits what can be concluded */
	FINDINGS_ERROR = 2,   /* something is broken */
};

const char *findings_severity_name(enum findings_severity severity);

enum findings_kind {
	FINDINGS_NOTHING_RECORDED = 0,
	FINDINGS_HUNG = 1,     /* operations in flight at the end of a truncated recording */
	FINDINGS_MISMATCH = 2, /* ranks disagree on what was called */
	FINDINGS_SLOW_RANK = 3,
	FINDINGS_SLOW_HOST = 4,
	FINDINGS_SLOW_LINK = 5,
	FINDINGS_NETWORK = 6, /* slower everywhere */
	FINDINGS_CHANGE = 7,  /* a transfer's speed changed */
	FINDINGS_KILLED = 8,  /* truncated recordings */
	FINDINGS_LOST = 9,    /* operations that were counted as lost */
	FINDINGS_INCOMPLETE =
		10, /* damaged, truncated or unreadable files; counts that do not add up */
	FINDINGS_RANKS_MISSING = 11,  /* communicators with unrecorded ranks */
	FINDINGS_UNTRUSTED = 12,      /* GPU timestamps that were rejected */
	FINDINGS_UNTIMED = 13,	      /* many calls without a duration */
	FINDINGS_MIXED_SOURCES = 14,  /* durations from several sources in one total */
	FINDINGS_SMALL_MESSAGES = 15, /* many small messages */
	FINDINGS_WAITING = 16,	      /* a large share of communication is waiting, without a
					 single straggler */
	FINDINGS_UNALIGNED = 17,      /* processes without common time */
	FINDINGS_SEVERAL_JOBS = 18,
	FINDINGS_SAMPLED = 19,	/* waiting from a sample of the collectives */
	FINDINGS_CONFLICT = 20, /* two processes claim the same rank of one communicator */
	FINDINGS_SLOWER = 21,	/* the job became slower, by the doctor's verdict */
	FINDINGS_KINDS = 22,
};

const char *findings_kind_name(enum findings_kind kind); /* "slow_rank", ... */

struct finding {
	enum findings_kind kind;
	enum findings_severity severity;
	uint32_t rank; /* index into job.ranks, UINT32_MAX none; the same for the next three */
	uint32_t host;
	uint32_t comm;
	uint32_t peer;
	uint64_t count;	  /* operations, ranks, files: what the sentence counts */
	uint64_t of;	  /* out of this many; 0: not a share */
	uint64_t cost_ns; /* waiting or time lost, over all ranks; 0 unknown */
	double percent;
	uint64_t at_ns;	 /* common time; 0 none */
	char title[200]; /* "straggler: rank 5 on node-3" */
	char text[400];	 /* one or two sentences with the numbers */
	char hint[240];	 /* next step; "" none */
};

struct findings {
	struct finding *list;
	size_t count;
	size_t left_out;
};

void findings_release(struct findings *findings);

/* Before all others, for callers that know more than the operations show. */
struct finding *findings_add_first(struct findings *findings, enum findings_kind kind,
				   enum findings_severity severity, const char *title);

/* By severity. */
void findings_sort(struct findings *findings);

/* Removes all of a kind. */
void findings_drop(struct findings *findings, enum findings_kind kind);

/* The report is complete but for its findings. */
enum status findings_make(struct findings *findings, const struct timeline_report *report,
			  const struct scan *scan);

/*
 * Iterations, from the repeating sequence of operations of one rank: no code changes needed.
 *
 * Each operation becomes a symbol (communicator, function, datatype, size). The period is found where the
 * sequence repeats; it may be interrupted by a warm-up, a checkpoint or an irregular iteration, after which
 * it is picked up again. docs/STATISTICS.md has the method.
 */

enum {
	ITERATIONS_OPS_MAX = 1 << 20,	 /* operations examined */
	ITERATIONS_PERIOD_MAX = 1 << 16, /* operations of one iteration */
};

struct iteration {
	uint64_t first_op; /* how many operations of the rank came before it */
	uint32_t ops;
	/*
	 * From the call of its first operation (its end, if that is unknown) to the call of the next one's; the
	 * last ends with its last operation. is_by_end: from the end of the previous one's last operation.
	 */
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t called_ns; /* its first call, and that of the next one (or its own end) */
	uint64_t next_called_ns;
	uint32_t timed;	  /* of ops: with a duration; the next two are of these only */
	uint64_t busy_ns; /* union of its operations' times, see collect.h */
	uint64_t sum_ns;  /* sum of their durations */
	uint64_t bytes;
	bool is_odd; /* between two runs of the pattern: a checkpoint, an evaluation, ... */
	/* Communication that no computation hid, docs/STATISTICS.md: between these, if it is known at all. */
	bool is_exposed_known;
	bool is_exposed_measured; /* both are equal: from a profile of the GPU */
	uint64_t exposed_low_ns;
	uint64_t exposed_high_ns;
};

struct iterations {
	bool is_found;
	bool is_by_tag;		/* the user's tag marks iterations: it counts up */
	bool is_by_end;		/* the host runs ahead of the GPU: durations are between ends */
	uint32_t rank;		/* index into job.ranks: the rank of these operations */
	uint32_t period_ops;	/* operations of a regular iteration */
	struct iteration *list; /* in order of time; times are common time */
	size_t count;
	size_t regular;		 /* of these: not irregular */
	uint64_t warm_up_ops;	 /* before the first */
	uint64_t tail_ops;	 /* after the last complete one */
	uint64_t ops;		 /* examined */
	bool is_cut;		 /* there were more than ITERATIONS_OPS_MAX */
	uint64_t median_ns;	 /* duration of regular ones */
	size_t timed;		 /* of regular: with all operations timed */
	uint64_t median_busy_ns; /* of these; 0 if there are none */
	uint64_t p99_ns;
	uint64_t slowest_ns;
	size_t slowest; /* index into list */
	/* Of regular ones: how many have bounds, and how many of these were measured. Medians of each bound. */
	size_t exposed;
	size_t exposed_measured;
	uint64_t exposed_low_ns; /* if any was measured, only those count */
	uint64_t exposed_high_ns;
};

/* One operation as the detection sees it. */
struct iterations_op {
	uint32_t symbol;
	uint32_t comm;
	uint64_t tag;
	uint64_t issue_ns; /* 0 unknown */
	uint64_t done_ns;  /* 0 unknown */
	uint64_t duration_ns;
	uint64_t bytes;
	uint64_t
		floor_ns; /* end of the operations of its communicator before it: it began later; 0 unknown */
	uint64_t gpu_stop_ns; /* GPU's clock; 0: the duration is not from there */
	bool is_timed;	      /* false: no duration */
	bool is_default_stream;
};

/* ops in the order of issue; kept by the caller. ERR_NO_SPACE. */
enum status iterations_find(struct iterations *iterations, const struct iterations_op *ops,
			    size_t count);
void iterations_release(struct iterations *iterations);

/* Replaces the bounds of exposed communication where a profile of that rank covers an iteration. ERR_NO_SPACE. */
enum status iterations_measure(struct iterations *iterations,
			       const struct exposed_activity *activity);

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
	bool is_busy_known; /* a call was timed, the span is not 0, and all its calls are known */
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

	struct wires wires;
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
