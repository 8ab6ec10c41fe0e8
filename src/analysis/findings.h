/* Findings, most serious first: numbers and a sentence. */
#ifndef FINDINGS_H
#define FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct scan;
struct timeline_report;

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
	FINDINGS_KINDS = 21,
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

#endif
