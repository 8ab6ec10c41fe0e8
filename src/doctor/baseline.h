/* How fast a job was on a good day: `ringside baseline save`, a small JSON file. docs/BASELINE.md. */
#ifndef BASELINE_H
#define BASELINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "op/op_layout.h"
#include "timeline/report.h"

/* Transfers of one kind: by what they are, not by whose they are, so that another job compares. */
struct baseline_row {
	char comm_name[96];    /* "" any */
	char kind[16];	       /* job_comm_kind_name() */
	char function[32];
	char size[16];	       /* the class, as the report names it */
	char algorithm[24];
	char protocol[16];
	int32_t nranks;
	int32_t nnodes;
	uint64_t calls;
	double busbw;	       /* bytes a second, waiting left out where ranks could be joined */
	double median_ns;
	double p99_ns;
	double log_mean;       /* of durations: mean and deviation of logarithms, for intervals */
	double log_deviation;
	double samples;
};

struct baseline {
	struct baseline_row *rows;
	size_t count;
	char job[128];
	uint64_t saved_wall_ns;
	double wait_share; /* of the time in communication */
};

void baseline_release(struct baseline *baseline);

enum status baseline_make(struct baseline *baseline, const struct timeline_report *report);

/* From a file's bytes. ERR_FORMAT: `why` says what and where. ERR_NO_SPACE. */
enum status baseline_read(struct baseline *baseline, const char *text, size_t length, char *why,
			  size_t why_size);

#endif
