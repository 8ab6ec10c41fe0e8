/*
 * What makes a job slow: compared with the other ranks, with the job's own past, with a baseline, with an
 * expected bandwidth or a peak. The values are those of the report (analysis/timeline_report.h); this file
 * interprets them.
 */
#ifndef SLOW_H
#define SLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "analysis/timeline_report.h"
#include "common/status.h"
#include "doctor/verdict.h"
#include "import/expected.h"

/*
 * The speed of a job on a good day: `ringside baseline save`, a small JSON file. docs/REPORT.md.
 *
 * A report that is compared, or made into a baseline, needs a table by BASELINE_BY
 * (timeline_options.custom_by).
 */

enum {
	BASELINE_BY = TALLY_BY_COMM | TALLY_BY_KIND | TALLY_BY_FUNCTION | TALLY_BY_SIZE |
		      TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL,
	BASELINE_ROWS_MAX = 65536,
	BASELINE_VERSION = 1,
};

/* One operation type: independent of the ranks, so that other jobs can be compared. */
struct baseline_row {
	char comm_name[96]; /* "" none: unnamed ones, by their shape */
	char kind[16];	    /* job_comm_kind_name() */
	char function[32];
	char size[16];	    /* op_size_text() */
	char algorithm[24]; /* "" unknown */
	char protocol[16];
	int32_t nranks;
	int32_t nnodes;
	uint64_t calls;
	uint64_t comms;	  /* number of communicators */
	bool is_joined;	  /* waiting is excluded from the next two */
	double busbw;	  /* bytes per second; 0 unknown */
	double mean_ns;	  /* of a transfer */
	double median_ns; /* of calls, waiting included, like p99_ns */
	double p99_ns;
	double p10_ns; /* 90% take longer: for Sends, those with little waiting */
	/* Transfers of its proxies: time on the wire, and until the GPU consumed them; 0 unknown. */
	double wire_ns;
	double consume_ns;
	double channels; /* of an operation, mean; 0 unknown */
	double log_mean; /* of durations in ns, of transfers if matched: mean and deviation of
			    logarithms, for intervals */
	double log_deviation;
	double samples;
};

struct baseline {
	struct baseline_row *rows; /* sorted by their strings */
	size_t count;
	size_t left_out; /* rows beyond BASELINE_ROWS_MAX */
	char job[128];	 /* "" none, or several */
	uint32_t jobs;
	uint32_t ranks;
	uint64_t saved_wall_ns; /* end of the recording it was made from; 0 unknown */
	double wait_share;	/* of communication time */
	/* Iterations of its first job; 0: none were found. */
	uint64_t iterations;
	uint32_t iteration_ops;
	double iteration_ns; /* medians */
	double iteration_busy_ns;
};

void baseline_release(struct baseline *baseline);

/* ERR_NO_SPACE (out of memory); ERR_RANGE: the report has no table by BASELINE_BY. */
enum status baseline_make(struct baseline *baseline, const struct timeline_report *report);

/* From a file's bytes. ERR_FORMAT, ERR_VERSION (a newer one): `why` says what and where. ERR_NO_SPACE. */
enum status baseline_read(struct baseline *baseline, const char *text, size_t length, char *why,
			  size_t why_size);

struct slow_options {
	const struct baseline *baseline; /* NULL none */
	const struct expected *expected; /* NULL none */
	double peak_nvlink;		 /* bus bandwidth in bytes per second; 0 not given */
	double peak_network;
	double threshold;      /* 0: 0.05; a smaller slowdown is not reported */
	double gpu_hour_price; /* 0: not given */
};

/*
 * Adds to verdicts; hangs among them explain ranks that look slow because they are stuck. The report has
 * windows and a table by BASELINE_BY; without that table only the other ranks and the past are compared. If
 * needed, operations of some processes are read once more. ERR_NO_SPACE (out of memory).
 */
enum status slow_find(struct verdicts *verdicts, const struct timeline_report *report,
		      const struct slow_options *options);

#endif
