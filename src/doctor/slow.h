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

#include "common/status.h"
#include "doctor/baseline.h"
#include "doctor/verdict.h"
#include "foreign/expected.h"
#include "timeline/report.h"

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
 * report has windows and a table by BASELINE_BY (baseline.h); without that table there is no comparison
 * but with the others and the past. Where it matters, operations of some processes are walked once more.
 * ERR_NO_SPACE (memory).
 */
enum status slow_find(struct verdicts *verdicts, const struct timeline_report *report,
		      const struct slow_options *options);

#endif
