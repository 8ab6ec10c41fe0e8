/*
 * Compares two runs: the same keys, how much slower or faster, and whether that is more than noise.
 *
 * Keys are matched by what is displayed (names, size class, kind of communicator), not by indices: the runs
 * have different hashes. Rows of communicators with different numbers of ranks are compared by bus bandwidth
 * and not judged.
 */
#ifndef COMPARE_H
#define COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline_report.h"
#include "common/status.h"

/* ---- the comparison itself, also of a run with a baseline ------------------------------------- */

/* Logarithms of times: their mean, and how well it is known. */
struct compare_sample {
	double mean;
	double error;	/* standard error of the mean; 0: exact */
	double samples; /* independent ones, for degrees of freedom; 0: exact */
};

/* B relative to A. */
struct compare_result {
	double ratio;
	double ratio_low; /* 95% interval */
	double ratio_high;
	bool is_significant; /* the interval, corrected for the number of comparisons, excludes 1 */
	bool is_slower;	     /* significant, and the whole interval is above 1 + threshold */
	bool is_faster;	     /* significant, and the whole interval is below 1 / (1 + threshold) */
	double confidence;   /* that it is slower by more than the threshold */
	bool is_mean;	     /* slow for part of the time: means, not what is typical */
};

/* Welch's t. Two runs of one job never agree better than 1%, however many calls there are: that is added to
 * the error. */
struct compare_result compare_judge(const struct compare_sample *a, const struct compare_sample *b,
				    double threshold, double comparisons);

/* ---- two runs --------------------------------------------------------------------------------- */

enum compare_basis {
	COMPARE_NOTHING = 0,
	COMPARE_TRANSFER = 1, /* matched collectives: the time from the last arrival to the end */
	COMPARE_FASTEST =
		2, /* Sends and Recvs: the fastest tenth, which found their peer waiting */
	COMPARE_DURATION = 3,  /* whole durations: waiting cannot be left out */
	COMPARE_BANDWIDTH = 4, /* different numbers of ranks: not judged */
	COMPARE_WIRE =
		5, /* no durations: the time on the wire of a transfer, of the fastest sender */
	COMPARE_BASES = 6,
};
const char *compare_basis_name(enum compare_basis basis); /* "transfer", ... */

struct compare_side {
	bool is_there;
	uint64_t calls;
	uint64_t open; /* of calls: in flight */
	uint64_t timed;
	uint64_t not_timed; /* of calls: of kinds without any timed one */
	uint64_t bytes;
	uint64_t sum_ns; /* of timed */
	double total_ns; /* of all calls, estimated if not all were timed */
	double mean_ns;
	uint64_t median_ns;
	uint64_t p99_ns; /* 0: fewer than TALLY_P99_LEAST timed calls */
	double algbw;	 /* bytes per second, 0 unknown */
	double busbw;
	uint64_t wait_ns;
	double wait_share; /* of the time of all calls; unmatched ones show no waiting */
	uint64_t joined;
	double transfer_ns; /* what is compared, by basis: geometric mean, or quantile; 0 unknown */
	double transfer_busbw; /* without waiting; 0 unknown */
};

struct compare_row {
	char key[9][96]; /* one string per part of `by`, in the order of its bits; "" beyond */
	struct compare_side a;
	struct compare_side b;
	/* B relative to A; 0 if a side has no such value. */
	double median_ratio;
	double mean_ratio;
	double busbw_ratio;
	enum compare_basis basis;
	double share; /* of the time in all calls without waiting, the larger of the two sides'; without times of bytes */
	/*
	 * 95% interval of the ratio of geometric means, b / a, see docs/STATISTICS.md. has_interval false:
	 * fewer than COMPARE_SAMPLES_LEAST samples on a side.
	 */
	bool has_interval;
	double ratio;
	double ratio_low;
	double ratio_high;
	double samples_a; /* independent */
	double samples_b;
	bool is_significant; /* as in struct compare_result, these three */
	bool is_slower;
	bool is_faster;
	bool is_undecided; /* it may well be slower, but is not certainly so, and it matters */
};

/* One rank's transfers over the network: their time on the wire. */
struct compare_sender {
	char comm[96];
	char from[64]; /* rank */
	char to[64];   /* "": its neighbours in rings */
	char host_a[64];
	char host_b[64];
	double wire_a_ns; /* per transfer, geometric mean */
	double wire_b_ns;
	struct compare_result result;
	bool is_undecided; /* more than noise, beyond the threshold by the best estimate only */
};

/* A value of the job: a time, or a share of its time. */
struct compare_value {
	bool is_known; /* on both sides */
	bool has_interval;
	double a;
	double b;
	/* Of times the ratio and its interval; of shares the difference, as a ratio of the job's time: 1.02
	 * if two points more are lost. */
	struct compare_result result;
};

/* Exposed communication of an iteration: bounds on each side, or measured values. */
struct compare_exposed {
	bool is_known; /* on both sides */
	uint64_t a_low_ns;
	uint64_t a_high_ns;
	uint64_t b_low_ns;
	uint64_t b_high_ns;
	/* The bounds are apart by more than the threshold. Neither: could not tell, or the same. */
	bool is_more;
	bool is_less;
};

struct compare_difference {
	char what[64];
	char a[96];
	char b[96];
};

enum { COMPARE_SAMPLES_LEAST = 5 };
/* A row with a smaller share is not worth an "unknown". */
#define COMPARE_SHARE_LEAST 0.05

struct compare {
	uint32_t by;
	double threshold;
	struct compare_row *rows; /* by |change| x time, the most important first */
	size_t count;
	size_t only_a; /* rows that only one side has */
	size_t only_b;
	size_t not_timed; /* rows of both sides that are not timed on both */
	size_t slower;
	size_t faster;
	size_t undecided;
	size_t judged;		  /* rows with an interval, of equal shape */
	double judged_share;	  /* of the bytes in B */
	struct compare_row total; /* key is empty */
	/* Of two runs only: */
	struct compare_sender *senders; /* slowest first */
	size_t sender_count;
	size_t senders_slower;
	size_t senders_faster;
	size_t senders_undecided;
	struct compare_value iteration;	    /* its duration, ns */
	struct compare_value communication; /* time of an iteration in communication, ns */
	struct compare_exposed exposed;	    /* of it: not hidden by computation */
	struct compare_value waiting;	    /* of all ranks, as a share of their time */
	bool is_job_slower;		    /* the iteration; without known iterations, waiting */
	struct compare_difference *differences;
	size_t difference_count;
};

enum compare_answer { COMPARE_SAME = 0, COMPARE_SLOWER = 1, COMPARE_UNKNOWN = 2 };
/* Unknown: nothing could be judged, or less than half of the bytes if iterations are unknown; or something
 * that matters may be slower. */
enum compare_answer compare_answer(const struct compare *compare);

/*
 * `by`: enum tally_by bits; both reports were made with custom_by[0] == by. threshold: 0.05 for 5%.
 * Communicators are matched by name, or by shape if unnamed; jobs are not part of a key. ERR_NO_SPACE;
 * ERR_RANGE: a report lacks the table, or more than nine parts.
 */
enum status compare_make(struct compare *compare, const struct timeline_report *a,
			 const struct timeline_report *b, double threshold);
void compare_release(struct compare *compare);

#endif
