/*
 * Slowness from totals: the time of each rank of a communicator in collectives, and of each link on the
 * wire, over one time span. For sources without individual operations, such as Prometheus. The rules are
 * those of live values (docs/STATISTICS.md, "Live waiting"): waiting is a lower bound, because ranks that are late in
 * turns cancel out.
 */
#ifndef SLOW_SUMS_H
#define SLOW_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/status.h"
#include "doctor/verdict.h"

/* One rank of one communicator: all its operations of one function and one size class, during the time
 * span. Only functions that synchronize their ranks show waiting; others are skipped. */
struct slow_member {
	const char *job;    /* "" none; strings are borrowed until slow_find_sums() returns */
	const char *comm;   /* label for display */
	uint64_t comm_hash; /* with job: identifies the communicator; 0: unknown, skipped */
	enum job_comm_kind kind;
	int32_t nranks; /* of the communicator; 0 unknown */
	int32_t comm_rank;
	int64_t rank; /* global; -1 unknown */
	const char *host;
	int64_t pid;	  /* -1 unknown */
	int32_t gpu;	  /* -1 unknown */
	uint8_t function; /* enum op_function */
	const char *size; /* size class as the source names it: compared, not parsed */
	double operations;
	double timed; /* of these: those that seconds and bus_bytes belong to; 0: all, or unknown */
	double seconds; /* in the timed ones, including waiting */
	double bus_bytes;
};

/* Sends over the network from one rank to another, during the time span. */
struct slow_edge {
	const char *job;
	const char *comm;
	uint64_t comm_hash;
	int32_t from; /* ranks of the communicator */
	int32_t to;   /* -1: all peers together */
	double transfers;
	double wire_seconds; /* time of transfers on the network */
	double bytes;
};

/* One time span. Lists in any order; duplicates are added up. */
struct slow_sums {
	const struct slow_member *members;
	size_t member_count;
	const struct slow_edge *edges;
	size_t edge_count;
	double seconds; /* length of the time span; 0: unknown, no share of time is reported */
};

struct slow_sums_options {
	const struct slow_sums *before; /* the same job earlier, "past"; NULL: none */
	double threshold;		/* 0: 0.1, as in the alerts */
	double gpu_hour_price;		/* 0: not given */
	uint64_t now_wall_ns;		/* end of the time span; 0 unknown */
};

/* Adds slow_rank, slow_host, slow_link, slow_network and slow_nvlink. ERR_NO_SPACE (out of memory). */
enum status slow_find_sums(struct verdicts *verdicts, const struct slow_sums *now,
			   const struct slow_sums_options *options);

#endif
