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
#include "doctor/slow.h"
#include "doctor/verdict.h"

/* The table by BASELINE_BY of a report; NULL: it has none. */
const struct tally *baseline_table(const struct timeline_report *report);

/* Figures of a row of that table, for both sides of a comparison. */
struct baseline_figures {
	bool is_joined;
	bool is_gpu; /* nine of ten times are the GPU's */
	double busbw;
	double mean_ns;
	double log_mean;
	double log_variance;
	double samples; /* effective: of calls that are alike one counts, as in compare.h */
};
struct baseline_figures baseline_figures(const struct timeline_report *report,
					 const struct tally_row *row);

/* ---- words ----------------------------------------------------------------------------------- */

struct slow_text {
	char text[160];
};

/* When something was slow, in common time: 0 from the beginning, 0 to the end. */
struct slow_span {
	uint64_t from_ns;
	uint64_t until_ns;
	double share; /* of the time between them; 0: all of it */
};
/* "always", "since 12:03:10", "until ...", "in bursts between ... and ... (12 % of the time)". */
struct slow_text slow_when(const struct timeline_report *report, const struct slow_span *span);

/* ---- one comparison of transfers -------------------------------------------------------------- */

enum slow_against { SLOW_PAST = 0, SLOW_BASELINE = 1, SLOW_EXPECTED = 2, SLOW_PEAK = 3 };
const char *slow_than(enum slow_against against); /* behind "than" or "as": "before", ... */

/* Transfers of one kind on one communicator: its algorithms and protocols together. */
struct slow_cell {
	uint32_t comm; /* index into job.comms */
	uint8_t function;
	uint8_t size_class;
	uint8_t algorithm; /* of most calls, like the protocol */
	uint8_t protocol;
	uint8_t choices;  /* how many algorithms and protocols there are */
	bool is_transfer; /* waiting is left out, and times are the GPU's */
	uint32_t ranks;
	uint64_t calls;
	uint64_t moves;
	uint64_t bytes; /* of a message, the mean */
	double busbw;
	double mean_ns;
	double p10_ns;	   /* of Sends: those that hardly waited */
	double spent_ns;   /* in transfers, over all ranks */
	double wire_ns;	   /* of one transfer of its proxies; 0 unknown, like the next */
	double consume_ns; /* until the GPU has taken over what arrived */
	double log_mean;
	double log_variance;
	double samples;
	/* The comparison: */
	bool is_compared;
	bool is_slow;
	bool is_send;	     /* by the quicker of its Sends: waiting cannot be left out */
	bool is_other_ranks; /* with another number of ranks: by bus bandwidth */
	double ratio;	     /* time now over time then */
	double ratio_low;    /* 95 % interval */
	double ratio_high;
	double busbw_then;
	double wire_then_ns; /* 0 unknown, like the next */
	double consume_then_ns;
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
/* NULL: there is none. */
const struct slow_cell *slow_cells_find(const struct slow_cells *cells, uint32_t comm,
					uint8_t function, uint8_t size_class);

/* The same kind of transfers on all communicators of a kind. */
struct slow_row {
	enum job_comm_kind kind;
	uint8_t function;
	uint8_t size_class;
	uint8_t algorithm;
	uint8_t protocol;
	bool is_slow;
	uint32_t comms;	     /* compared */
	uint32_t comms_slow; /* of these */
	uint32_t comm;	     /* one of those, that which lost most: index into job.comms */
	bool is_one_name;    /* all slow ones have its name */
	uint32_t host;	/* the only one on which slow ones are; UINT32_MAX several or unknown */
	uint32_t ranks; /* members of the slow ones */
	double before;	/* bus bandwidth then and now, bytes a second */
	double after;
	double ratio; /* time now over time then */
	double ratio_low;
	double ratio_high;
	double bound;	/* those that are not slow take at most so many times as long */
	double lost_ns; /* over all ranks */
	double confidence;
	struct slow_span span;
	bool is_over;	     /* it was slow at first and is no more */
	bool is_send;	     /* by the quicker ones of its Sends: waiting cannot be left out */
	double wire_then_ns; /* as in the cell, these three */
	double consume_then_ns;
	char was[48];
};

enum { SLOW_ROWS_MAX = 512 };

struct slow_rows {
	enum slow_against against;
	struct slow_row *list; /* SLOW_ROWS_MAX */
	size_t count;
	size_t left_out;     /* cells that found no room */
	size_t unmatched;    /* cells that could not be compared */
	bool is_other_ranks; /* bus bandwidths were compared: other numbers of ranks */
};

enum status slow_rows_init(struct slow_rows *rows, enum slow_against against);
void slow_rows_release(struct slow_rows *rows);

/* Compare: each fills in the cells' comparison. */
void slow_compare_baseline(struct slow_cells *cells, const struct timeline_report *report,
			   const struct slow_options *options, struct slow_rows *rows);
void slow_compare_expected(struct slow_cells *cells, const struct timeline_report *report,
			   const struct slow_options *options, struct slow_rows *rows);
void slow_compare_peak(struct slow_cells *cells, const struct timeline_report *report,
		       const struct slow_options *options, struct slow_rows *rows);
/* Cells that were compared, of one job, become rows. */
void slow_rows_collect(struct slow_rows *rows, const struct timeline_report *report,
		       const struct slow_cells *cells, uint32_t group);
/* Cells in which one choice of algorithm and protocol gave way to a slower one, with their times. */
void slow_rows_switched(struct slow_rows *rows, const struct timeline_report *report,
			const struct slow_cells *cells, uint32_t group, double threshold);
/* Rows from the changes that the report found, and from the cells that did not change. */
void slow_rows_past(struct slow_rows *rows, const struct timeline_report *report,
		    const struct slow_cells *cells, uint32_t group, double threshold);

/* Fills in wire_ns and consume_ns: walks the operations of some processes. ERR_NO_SPACE. */
enum status slow_cells_wire(struct slow_cells *cells, const struct timeline_report *report);

/* Time on the wire per transfer, before and while it is slow. */
struct slow_wire {
	bool is_known;
	double before_ns;
	double after_ns;
	uint32_t host; /* the only one whose GPUs take over later; UINT32_MAX none or several */
	/* Compared with the past: who sends enough to tell, how many of these have it on the wire longer than
	 * before, as the transfers are, and how many as long as before. The rest is in between. */
	uint32_t senders;
	uint32_t senders_slower;
	uint32_t senders_same;
};
enum status slow_wire(struct slow_wire *wire, const struct timeline_report *report,
		      const struct slow_row *row);

/* ---- verdicts -------------------------------------------------------------------------------- */

struct slow_search {
	struct verdicts *verdicts;
	const struct timeline_report *report;
	const struct slow_options *options;
	double threshold;
	uint32_t group; /* the job that is looked at: index into job.groups */
	size_t first;	/* verdicts[first...] are ours, and this job's */
	/* Kinds of transfers that are slow by a verdict: later comparisons add to that one. */
	struct slow_told {
		enum job_comm_kind kind;
		uint8_t function;
		uint8_t size_class;
		size_t verdict;
	} told[SLOW_ROWS_MAX];
	size_t told_count;
	enum status status;
};

/* A new verdict with what all have in common. */
struct verdict *slow_verdict(struct slow_search *search, enum verdict_class class,
			     enum slow_against against);
void slow_fill_rank(struct verdict *verdict, const struct job *job, uint32_t rank);
void slow_fill_comm(struct verdict *verdict, const struct job *job, uint32_t comm, uint32_t rank);
void slow_fill_span(struct verdict *verdict, const struct timeline_report *report,
		    const struct slow_span *span);
void slow_fill_cost(struct slow_search *search, struct verdict *verdict, double lost_ns);
/* What limits what can be concluded: at the end of a verdict's making. */
void slow_fill_missing(struct slow_search *search, struct verdict *verdict);

/* Ranks, hosts and links of the report's stragglers. */
void slow_stragglers(struct slow_search *search);

/* Is it explained by somebody who was named, or told before? Then it is told there. */
bool slow_is_explained(struct slow_search *search, const struct slow_row *row,
		       enum slow_against against);

/* How many operations of a communicator one that is timed stands for: 1 where all are. */
double slow_sampled(const struct job *job, uint32_t comm);

#endif
