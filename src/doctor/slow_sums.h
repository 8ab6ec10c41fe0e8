/*
 * Slowness from sums: what each member of a communicator spent in collectives, and each edge on the wire,
 * over one stretch of time. For sources that have no single operations, such as Prometheus. The rules are
 * those of live figures (docs/STATISTICS.md, "Live waiting"): waiting is a lower bound, because members that are late
 * in turns cancel out.
 */
#ifndef SLOW_SUMS_H
#define SLOW_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/status.h"
#include "doctor/verdict.h"

/* One member of one communicator: all its operations of one function and one class of size, during the
 * stretch. Only functions that synchronise their ranks tell about waiting; others are passed over. */
struct slow_member {
	const char *job;    /* "" none; texts are borrowed until slow_find_sums() returns */
	const char *comm;   /* label for people */
	uint64_t comm_hash; /* with job: who belongs together; 0: not known, passed over */
	enum job_comm_kind kind;
	int32_t nranks; /* of the communicator; 0 unknown */
	int32_t comm_rank;
	int64_t rank; /* global; -1 unknown */
	const char *host;
	int64_t pid;	  /* -1 unknown */
	int32_t gpu;	  /* -1 unknown */
	uint8_t function; /* enum op_function */
	const char *size; /* class of size as the source names it: compared, not read */
	double operations;
	double timed; /* of these: those that seconds and bus_bytes are of; 0: all, or the source does not say */
	double seconds; /* in the timed ones, waiting included */
	double bus_bytes;
};

/* Sends over the network from one member to another, during the stretch. */
struct slow_edge {
	const char *job;
	const char *comm;
	uint64_t comm_hash;
	int32_t from; /* ranks of the communicator */
	int32_t to;   /* -1: all peers together */
	double transfers;
	double wire_seconds; /* that transfers were with the network */
	double bytes;
};

/* One stretch of time. Lists in any order; what occurs twice is added up. */
struct slow_sums {
	const struct slow_member *members;
	size_t member_count;
	const struct slow_edge *edges;
	size_t edge_count;
	double seconds; /* how long the stretch is; 0: unknown, no share of time is told */
};

struct slow_sums_options {
	const struct slow_sums *before; /* the same job earlier, "past"; NULL: none */
	double threshold;		/* 0: 0.1, as the alerts have it */
	double gpu_hour_price;		/* 0: not given */
	uint64_t now_wall_ns;		/* when the stretch ended; 0 unknown */
};

/* Adds slow_rank, slow_host, slow_link, slow_network and slow_nvlink. ERR_NO_SPACE (memory). */
enum status slow_find_sums(struct verdicts *verdicts, const struct slow_sums *now,
			   const struct slow_sums_options *options);

#endif
