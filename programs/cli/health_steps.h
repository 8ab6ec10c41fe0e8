/*
 * What a check of health measures, on one rank among all: a few collectives with their results, AllReduce
 * over everything, every pair of ranks both ways with a large and a small message, AllReduce again. Rank 0
 * has the clock and says before each step how long it may take.
 */
#ifndef HEALTH_STEPS_H
#define HEALTH_STEPS_H

#include <stdint.h>

#include "programs/cli/bench_command.h"
#include "programs/cli/health_watch.h"

#define HEALTH_SECONDS 60.0 /* of the whole */

enum {
	HEALTH_LARGE = 64 << 20,       /* tells bandwidth */
	HEALTH_LARGE_SHARED = 8 << 20, /* ... where ranks share a GPU and talk over the loopback */
	HEALTH_SMALL = 1 << 10,	       /* tells latency */
};

struct health_budget {
	double seconds;	   /* of the whole, from began_ns on */
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t bytes;	   /* the large message; 0: as the GPUs are */
};

/* For bench_team_open(): buffers for the largest message. */
void health_steps_plan(struct bench_plan *plan, const struct health_budget *budget);

/* After bench_team_open(). Rank 0's run gets the cells, and a note for what there was no time for. 0, or -1:
 * the hub has the reason. */
int health_steps_measure(struct bench_team *team, const struct health_budget *budget,
			 struct health_watch *watch);

#endif
