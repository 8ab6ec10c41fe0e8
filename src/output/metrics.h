/*
 * Metrics of the jobs on this node in Prometheus formats. docs/METRICS.md has the table of names; a test
 * compares it with metrics_names().
 *
 * The number of series is bounded: sizes fall into METRICS_SIZES classes; communicators beyond
 * METRICS_COMMS_PER_GPU and peers beyond METRICS_PEERS_PER_COMM are summed as "other", so nothing is dropped
 * silently. (nccl_job, comm, rank) is one rank of one communicator: recordings that claim the same one are
 * merged.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdint.h>

#include "doctor/live.h"
#include "output/sink.h"

/* Limits per GPU: the most used are kept, the others are summed. docs/METRICS.md has the budget. */
enum {
	METRICS_SIZES = 30,	     /* classes of message sizes */
	METRICS_COMMS_PER_GPU = 64,  /* communicators */
	METRICS_PEERS_PER_COMM = 16, /* peers per communicator and direction */
	METRICS_SIZE_ROWS = 512,     /* (communicator, function, size) */
	METRICS_FUNCTION_ROWS = 128, /* (communicator, function): histograms */
	METRICS_CHOICE_ROWS = 256,   /* (communicator, function, algorithm, protocol) */
	METRICS_LINK_ROWS = 256,     /* (communicator, direction, peer) */
	METRICS_JOBS = 128,	     /* of a node: jobs with their owner and labels */
	METRICS_JOBS_OF_USER = 64,   /* of these, of whoever owns the regions */
	METRICS_JOB_LABELS = 16,     /* RINGSIDE_LABELS of a job */
	METRICS_USERS = 32,	     /* with something left out */
};

enum metrics_format {
	METRICS_TEXT = 0,	 /* Prometheus text 0.0.4 */
	METRICS_OPENMETRICS = 1, /* version 1.0.0, ends with # EOF */
	METRICS_PROTOBUF = 2, /* delimited io.prometheus.client.MetricFamily, native histograms */
};

/* The format requested by an Accept header; text for NULL and for unknown formats. */
enum metrics_format metrics_negotiate(const char *accept);
const char *metrics_content_type(enum metrics_format format);

/* Results of requests for kernel events. */
enum metrics_kernel {
	METRICS_KERNEL_ASKED = 0, /* processes that were asked */
	METRICS_KERNEL_GRANTED = 1,
	METRICS_KERNEL_REFUSED = 2,
	METRICS_KERNEL_FAILED = 3,
	METRICS_KERNEL_EVENTS = 4,
};

/* State of the agent itself; NULL for a textfile, because the textfiles of a node must not repeat it. */
struct metrics_agent {
	const char *version;
	uint64_t looks;
	uint64_t look_ns;    /* time spent scanning */
	uint64_t judgements; /* of the speed of a job */
	uint64_t judge_ns;   /* CPU time of these */
	uint64_t given_up;   /* child processes that could not be killed */
	uint64_t cpu_ns;
	uint64_t refused;
	uint64_t unreadable;
	uint64_t left_out;
	/* Of the agent's own process; 0 means unknown and is not written. */
	uint64_t resident_bytes;
	uint64_t open_fds;
	uint64_t start_wall_ns;
	const uint64_t *verdicts; /* [VERDICT_CLASSES] so far; NULL: not written */
	const uint64_t *kernel;	  /* [METRICS_KERNEL_EVENTS] so far; NULL: not written */
};

/*
 * Writes everything, or for a textfile only one process (index into live->job.recording->processes; -1
 * for all). The sink's status tells whether it succeeded; output before a failure is incomplete. The
 * textfiles of all processes together contain every series once.
 */
void metrics_write(struct sink *sink, enum metrics_format format, const struct live *live,
		   const struct metrics_agent *agent, long only_process);

/* The table: name, type, help, labels (comma separated). A NULL name ends it. */
struct metrics_name {
	const char *name; /* without _total; with _info */
	const char *type; /* "counter", "gauge", "histogram", "info" */
	const char *labels;
	const char *help;
};
const struct metrics_name *metrics_names(void);

#endif
