/*
 * Metrics of the jobs on this node, for Prometheus and whoever reads its formats. docs/METRICS.md has
 * the table of names; a test compares it with metrics_names().
 *
 * Series are bounded: sizes fall into METRICS_SIZES classes, a communicator beyond METRICS_COMMS_PER_GPU
 * or a peer beyond METRICS_PEERS_PER_COMM is added up under "other", and nothing is left out in silence.
 * (nccl_job, comm, rank) is one member of one communicator: where two recordings claim the same, they
 * are shown as one.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdint.h>

#include "doctor/live.h"
#include "output/sink.h"

/* What one GPU gets: the most used ones, the others are added up. docs/METRICS.md has the budget. */
enum {
	METRICS_SIZES = 30,	     /* classes of message sizes */
	METRICS_COMMS_PER_GPU = 64,  /* communicators */
	METRICS_PEERS_PER_COMM = 16, /* peers of a communicator, for each direction */
	METRICS_SIZE_ROWS = 512,     /* (communicator, function, size) */
	METRICS_FUNCTION_ROWS = 128, /* (communicator, function): histograms */
	METRICS_CHOICE_ROWS = 256,   /* (communicator, function, algorithm, protocol) */
	METRICS_LINK_ROWS = 256,     /* (communicator, direction, peer) */
};

enum metrics_format {
	METRICS_TEXT = 0,	 /* Prometheus text 0.0.4 */
	METRICS_OPENMETRICS = 1, /* 1.0.0, ends in # EOF */
	METRICS_PROTOBUF = 2, /* delimited io.prometheus.client.MetricFamily, native histograms */
};

/* What the Accept header asks for; the text for NULL and for what nobody has. */
enum metrics_format metrics_negotiate(const char *accept);
const char *metrics_content_type(enum metrics_format format);

/* What came of requests for kernel events. */
enum metrics_kernel {
	METRICS_KERNEL_ASKED = 0, /* processes that were asked */
	METRICS_KERNEL_GRANTED = 1,
	METRICS_KERNEL_REFUSED = 2,
	METRICS_KERNEL_FAILED = 3,
	METRICS_KERNEL_EVENTS = 4,
};

/* The agent about itself; NULL for a textfile: several files of a node must not say the same twice. */
struct metrics_agent {
	const char *version;
	uint64_t looks;
	uint64_t look_ns; /* time spent in looks */
	uint64_t cpu_ns;
	uint64_t refused;
	uint64_t unreadable;
	uint64_t left_out;
	/* Of the agent's own process; 0 is not known, and not shown. */
	uint64_t resident_bytes;
	uint64_t open_fds;
	uint64_t start_wall_ns;
	const uint64_t *verdicts; /* [VERDICT_CLASSES] that appeared so far; NULL: not shown */
	const uint64_t *kernel;	  /* [METRICS_KERNEL_EVENTS] so far; NULL: not shown */
};

/*
 * Everything, or for a textfile one process alone (index into live->job.recording->processes; -1 all).
 * The sink's status says whether it succeeded; what was written before a failure is no whole answer.
 * The files of all processes together have every series once.
 */
void metrics_write(struct sink *sink, enum metrics_format format, const struct live *live,
		   const struct metrics_agent *agent, long only_process);

/* The table: name, type, help, labels (comma separated). NULL name ends it. */
struct metrics_name {
	const char *name; /* without _total; infos with their _info */
	const char *type; /* "counter", "gauge", "histogram", "info" */
	const char *labels;
	const char *help;
};
const struct metrics_name *metrics_names(void);

#endif
