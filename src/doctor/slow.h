/*
 * Who or what makes a job slow: against the other ranks, against the job's own past, against a baseline,
 * against an expected bandwidth or a peak. The figures are those of the report (timeline/report.h); this
 * decides what they mean.
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
 * How fast a job was on a good day: `ringside baseline save`, a small JSON file. docs/REPORT.md.
 *
 * A report that is compared, or made into a baseline, has a table by BASELINE_BY among its own
 * (timeline_options.custom_by).
 */

enum {
	BASELINE_BY = TALLY_BY_COMM | TALLY_BY_KIND | TALLY_BY_FUNCTION | TALLY_BY_SIZE |
		      TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL,
	BASELINE_ROWS_MAX = 65536,
	BASELINE_VERSION = 1,
};

/* Transfers of one kind: by what they are, not by whose they are, so that another job compares. */
struct baseline_row {
	char comm_name[96]; /* "" none: those without a name, by their shape */
	char kind[16];	    /* job_comm_kind_name() */
	char function[32];
	char size[16];	    /* op_size_text() */
	char algorithm[24]; /* "" unknown */
	char protocol[16];
	int32_t nranks;
	int32_t nnodes;
	uint64_t calls;
	uint64_t comms;	  /* communicators that it is about */
	bool is_joined;	  /* waiting is left out of the next two */
	double busbw;	  /* bytes a second; 0 unknown */
	double mean_ns;	  /* of a transfer */
	double median_ns; /* of calls, waiting included, like p99_ns */
	double p99_ns;
	double p10_ns; /* nine of ten take longer: of Sends, those that hardly waited */
	/* Of transfers of its proxies: time on the wire, and until the GPU took over; 0 unknown. */
	double wire_ns;
	double consume_ns;
	double log_mean; /* of durations in ns, of transfers where joined: mean and deviation of
			    logarithms, for intervals */
	double log_deviation;
	double samples;
};

struct baseline {
	struct baseline_row *rows; /* sorted by their texts */
	size_t count;
	size_t left_out; /* rows beyond BASELINE_ROWS_MAX */
	char job[128];	 /* "" none, or several */
	uint32_t jobs;
	uint32_t ranks;
	uint64_t saved_wall_ns; /* end of the recording that it was made of; 0 unknown */
	double wait_share;	/* of the time in communication */
	/* Iterations of its first job; 0 of them: none were found. */
	uint64_t iterations;
	uint32_t iteration_ops;
	double iteration_ns; /* medians */
	double iteration_busy_ns;
};

void baseline_release(struct baseline *baseline);

/* ERR_NO_SPACE (memory); ERR_RANGE: the report has no table by BASELINE_BY. */
enum status baseline_make(struct baseline *baseline, const struct timeline_report *report);

/* From a file's bytes. ERR_FORMAT, ERR_VERSION (a newer one): `why` says what and where. ERR_NO_SPACE. */
enum status baseline_read(struct baseline *baseline, const char *text, size_t length, char *why,
			  size_t why_size);

struct slow_options {
	const struct baseline *baseline; /* NULL none */
	const struct expected *expected; /* NULL none */
	double peak_nvlink;		 /* bytes a second of bus bandwidth; 0 not given */
	double peak_network;
	double threshold;      /* 0: 0.05; slower by less is not told */
	double gpu_hour_price; /* 0: not given */
};

/*
 * Adds to verdicts; hangs that are among them explain ranks that look slow because they stand still. The
 * report has windows and a table by BASELINE_BY; without that table there is no comparison
 * but with the others and the past. Where it matters, operations of some processes are walked once more.
 * ERR_NO_SPACE (memory).
 */
enum status slow_find(struct verdicts *verdicts, const struct timeline_report *report,
		      const struct slow_options *options);

#endif
