/* How slowness is found. */
#ifndef SLOW_INTERNAL_H
#define SLOW_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "doctor/doctor.h"
#include "doctor/verdict.h"

/* The table by BASELINE_BY of a report; NULL: it has none. */
const struct tally *baseline_table(const struct timeline_report *report);

/* Values of a row of that table, for both sides of a comparison. */
struct baseline_figures {
	bool is_joined;
	bool is_gpu; /* 90% of times are GPU timestamps */
	/* There are no durations: the rest is about the time on the wire of a transfer, without busbw. */
	bool is_wire;
	double busbw;
	double mean_ns;
	double log_mean;
	double log_variance;
	double samples; /* effective: similar calls count once, see struct paces */
};
struct baseline_figures baseline_figures(const struct timeline_report *report,
					 const struct tally_row *row);

/* ---- texts ----------------------------------------------------------------------------------- */

struct slow_text {
	char text[160];
};

/* When something was slow, in common time: 0 from the beginning, 0 to the end. */
struct slow_span {
	uint64_t from_ns;
	uint64_t until_ns;
	double share;  /* share of the time between them; 0: all of it */
	bool is_least; /* what it is known to cost is only a part */
	bool is_rough; /* ranks also wait for it where that is not seen, and would wait for others without it */
	bool is_unbound; /* nothing is known of the time lost in operations: only iterations show what it costs */
	bool is_hidden; /* by another cause: iterations do not show yet what it costs */
};
/* Shorter changes are common in any network. */
#define SLOW_BRIEF_NS UINT64_C(5000000000)
/* "always", "since 12:03:10", "until ...", "in bursts between ... and ... (12% of the time)". */
struct slow_text slow_when(const struct timeline_report *report, const struct slow_span *span);

/* ---- one comparison of transfers -------------------------------------------------------------- */

enum slow_against { SLOW_PAST = 0, SLOW_BASELINE = 1, SLOW_EXPECTED = 2, SLOW_PEAK = 3 };
const char *slow_than(enum slow_against against); /* after "than" or "as": "before", ... */
struct slow_row;
/* "38.86 GB/s busbw instead of 48.96"; "on the wire for 1.2 ms instead of 612 us". */
struct slow_text slow_speeds(const struct slow_row *row);

/* One operation type on one communicator: all its algorithms and protocols. */
struct slow_cell {
	uint32_t comm; /* index into job.comms */
	uint8_t function;
	uint8_t size_class;
	uint8_t algorithm; /* of most calls, like the protocol */
	uint8_t protocol;
	uint8_t choices;  /* number of algorithms and protocols */
	bool is_transfer; /* waiting is excluded, and times are GPU timestamps */
	bool is_wire; /* no durations: by the time on the wire of a transfer, of the fastest sender */
	uint32_t ranks;
	uint64_t calls;
	uint64_t moves;
	uint64_t bytes; /* of a message, mean */
	double busbw;
	double mean_ns;
	double p10_ns;	   /* of Sends: those with little waiting */
	double spent_ns;   /* in transfers, over all ranks */
	double wire_ns;	   /* of one transfer of its proxies; 0 unknown, like the next */
	double consume_ns; /* until the GPU has consumed received data */
	double channels;   /* mean; 0 unknown */
	double log_mean;
	double log_variance;
	double samples;
	/* The comparison: */
	bool is_compared;
	bool is_slow;
	bool is_send;	     /* by the fastest of its Sends: waiting cannot be excluded */
	bool is_other_ranks; /* with another number of ranks: by bus bandwidth */
	double ratio;	     /* time now over time then */
	double ratio_low;    /* 95% interval */
	double ratio_high;
	double busbw_then;
	double wire_then_ns; /* 0 unknown, like the next two */
	double consume_then_ns;
	double channels_then;
	double confidence;
	char was[48]; /* "RING SIMPLE": another algorithm or protocol was chosen; "" the same */
};

struct slow_cells {
	struct slow_cell *list; /* by communicator, function, size */
	size_t count;
};

/* From the report's table by BASELINE_BY; without one there are none. ERR_NO_SPACE. */
enum status slow_cells_make(struct slow_cells *cells, const struct timeline_report *report);
void slow_cells_release(struct slow_cells *cells);
/* NULL if there is none. */
const struct slow_cell *slow_cells_find(const struct slow_cells *cells, uint32_t comm,
					uint8_t function, uint8_t size_class);

/* One operation type on all communicators of a kind. */
struct slow_row {
	enum job_comm_kind kind;
	uint8_t function;
	uint8_t size_class;
	uint8_t algorithm;
	uint8_t protocol;
	bool is_slow;
	uint32_t comms;	     /* compared */
	uint32_t comms_slow; /* of these */
	uint32_t comm;	     /* of those, the one that lost most: index into job.comms */
	bool is_one_name;    /* all slow ones have its name */
	uint32_t host;	     /* the only host of the slow ones; UINT32_MAX several or unknown */
	uint32_t ranks;	     /* ranks of the slow ones */
	bool is_wire; /* by the time on the wire: before and after are transfers per second, one at a time */
	double before; /* bus bandwidth then and now, bytes per second */
	double after;
	double ratio; /* time now over time then */
	double ratio_low;
	double ratio_high;
	double bound;	/* those that are not slow take at most this many times longer */
	double lost_ns; /* over all ranks */
	double confidence;
	struct slow_span span;
	bool is_over;	     /* it was slow at first and no longer is */
	bool is_send;	     /* by the fastest of its Sends: waiting cannot be excluded */
	double wire_then_ns; /* as in the cell, these four */
	double consume_then_ns;
	double channels_then;
	char was[48];
};

enum { SLOW_ROWS_MAX = 512 };

/* What was on the wire went between nodes, also before 2.27, where the kind of a communicator is not known. */
static inline bool slow_row_is_net(const struct slow_row *row)
{
	return row->is_wire || job_comm_is_over_network(row->kind);
}

struct slow_rows {
	enum slow_against against;
	struct slow_row *list; /* SLOW_ROWS_MAX */
	size_t count;
	size_t left_out;     /* cells that did not fit */
	size_t unmatched;    /* cells that could not be compared */
	bool is_other_ranks; /* bus bandwidths were compared: different numbers of ranks */
};

enum status slow_rows_init(struct slow_rows *rows, enum slow_against against);
void slow_rows_release(struct slow_rows *rows);

/* The same name, which frameworks give to what they create per group of ranks; without a name, the same shape. */
bool slow_is_same_name(const struct job_comm *a, const struct job_comm *b);

/* Each comparison fills in the cells. */
void slow_compare_baseline(struct slow_cells *cells, const struct timeline_report *report,
			   const struct slow_options *options, struct slow_rows *rows);
void slow_compare_expected(struct slow_cells *cells, const struct timeline_report *report,
			   const struct slow_options *options, struct slow_rows *rows);
void slow_compare_peak(struct slow_cells *cells, const struct timeline_report *report,
		       const struct slow_options *options, struct slow_rows *rows);
/* Compared cells of one job become rows. */
void slow_rows_collect(struct slow_rows *rows, const struct timeline_report *report,
		       const struct slow_cells *cells, uint32_t group);
/* Cells in which one choice of algorithm and protocol was replaced by a slower one, with their times. */
void slow_rows_switched(struct slow_rows *rows, const struct timeline_report *report,
			const struct slow_cells *cells, uint32_t group, double threshold);
/* Rows from the report's changes, and from the cells that did not change; Sends only if they have no rows yet. */
void slow_rows_past(struct slow_rows *rows, const struct timeline_report *report,
		    const struct slow_cells *cells, uint32_t group, double threshold);
/* Rows of Sends between nodes: their time on the wire in this span, compared with the rest. ERR_NO_SPACE. */
enum status slow_rows_sends(struct slow_rows *rows, const struct timeline_report *report,
			    uint32_t group, const struct slow_span *span);

/* Fills in wire_ns and consume_ns: reads the operations of some processes. ERR_NO_SPACE. */
enum status slow_cells_wire(struct slow_cells *cells, const struct timeline_report *report);

/* Time on the wire per transfer, before and while it is slow. */
struct slow_wire {
	bool is_known;
	double before_ns;
	double after_ns;
	uint32_t host; /* the only one whose GPUs consume later; UINT32_MAX none or several */
	bool is_one_receiver;	/* there only one rank does */
	uint32_t slow_receiver; /* and others do not: index into job.ranks; UINT32_MAX: not so */
	/*
	 * Compared with the past: ranks that send enough to be judged, how many of these spend longer on
	 * the wire than before, in proportion to the slowdown, and how many as long as before. The rest is
	 * in between.
	 */
	uint32_t senders;
	uint32_t senders_slower;
	uint32_t senders_same;
	/* Some senders take longer, others do not: only one, nearly all of one host, or of one position on the
	 * hosts (rail). UINT32_MAX: not so. */
	bool has_place;
	uint32_t slow_sender; /* index into job.ranks, like the next */
	uint32_t slow_both;   /* the only two slow senders are this one and one that sends to it */
	uint32_t slow_host;
	uint32_t slow_rail;
	double channels_before; /* of an operation, 0 unknown */
	double channels_after;
};
enum status slow_wire(struct slow_wire *wire, const struct timeline_report *report,
		      const struct slow_row *row);

/* ---- verdicts -------------------------------------------------------------------------------- */

struct slow_search {
	struct verdicts *verdicts;
	const struct timeline_report *report;
	const struct slow_options *options;
	double threshold;
	uint32_t group; /* the current job: index into job.groups */
	size_t first;	/* verdicts[first...] are ours, and this job's */
	/* Operation types that a verdict covers: later comparisons add to that verdict. */
	struct slow_told {
		enum job_comm_kind kind;
		uint8_t function;
		uint8_t size_class;
		size_t verdict;
	} told[SLOW_ROWS_MAX];
	size_t told_count;
	struct slow_compared {
		bool has_net, has_nvlink;
	} compared; /* transfers that are as fast as before */
	enum status status;
};

/* A new verdict with the common fields. */
struct verdict *slow_verdict(struct slow_search *search, enum verdict_class class,
			     enum slow_against against);
void slow_fill_rank(struct verdict *verdict, const struct job *job, uint32_t rank);
void slow_fill_comm(struct verdict *verdict, const struct job *job, uint32_t comm, uint32_t rank);
void slow_fill_span(struct verdict *verdict, const struct timeline_report *report,
		    const struct slow_span *span);
void slow_fill_cost(struct slow_search *search, struct verdict *verdict, double lost_ns);
/* What it costs the job: into the title, and a small cost makes it a note. After slow_fill_cost(), the title and
 * the span are set. */
void slow_fill_severity(struct slow_search *search, struct verdict *verdict,
			const struct slow_span *span);
/* Of several iterations, or what something costs the job; NAN: unknown. */
struct slow_estimate {
	double value, error; /* standard error */
};
/* The same where the cost is known. */
void slow_fill_measured(struct slow_search *search, struct verdict *verdict,
			const struct slow_span *span, struct slow_estimate measured);
/* Is it over, in a job that still runs? Then it is no warning. After the end of a job everything is over. */
bool slow_is_over(const struct slow_search *search, bool is_past);
/* Caveats: call it last for a verdict. */
void slow_fill_missing(struct slow_search *search, struct verdict *verdict);

/* Ranks, hosts and links of the report's stragglers. */
void slow_stragglers(struct slow_search *search);

/* A link of which only the sender is known so far: its receiver, title, advice and caveats. */
void slow_tell_sender(struct slow_search *search, struct verdict *verdict, uint32_t rank,
		      uint32_t comm);
/* A rank that takes late what it receives from the ranks of other nodes. */
void slow_tell_receiver(struct slow_search *search, struct verdict *verdict, uint32_t rank,
			uint32_t comm);
/* A rank to which and from which transfers are slower. */
void slow_tell_both(struct slow_search *search, struct verdict *verdict, uint32_t rank,
		    double slowdown);

/* Does the job have iterations, and are they most of its time? */
bool slow_has_iterations(const struct slow_search *search);
/* It has only begun, or did not last. */
bool slow_is_brief(const struct slow_search *search, const struct verdict *verdict);
/* The command that times every call, on this release and in this state of the job. */
void slow_advise_times(const struct slow_search *search, struct verdict *verdict);

/* A stretch of time in which iterations took longer than before, and after if it has an end. */
struct slow_rise {
	bool is_found;
	bool is_clear;	   /* a warning: it costs something, lasts and is beyond the spread */
	double gap, error; /* of the mean logarithms of durations */
	size_t first, end; /* of report.iterations.list */
	struct slow_span span;
};
void slow_find_rise(const struct slow_search *search, struct slow_rise *rise);
/* If nothing else explains it: a verdict about the rise itself. Call it last. */
void slow_longer(struct slow_search *search, const struct slow_rise *rise);

/* If nothing else was found: ranks that are late because they wait in other operations. Call it last. */
void slow_held_up(struct slow_search *search);

/* Does a named rank or an earlier verdict explain it? Then it is added there. */
bool slow_is_explained(struct slow_search *search, const struct slow_row *row,
		       enum slow_against against);

/* Did a rank that takes part in it become late at the same time, without being its explanation? Then *who. */
bool slow_is_beside(const struct slow_search *search, const struct slow_row *row,
		    struct slow_text *who);

/* How many operations of a communicator one timed operation represents: 1 if all are timed. */
double slow_sampled(const struct job *job, uint32_t comm);

#endif
